package meta

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/compare"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// ownership says how an update may change a member of metadata that is the system's (META-1).
type ownership uint8

const (
	carried   ownership = iota // it keeps its value, whatever the client sends; one that is not stored is dropped
	completed                  // it keeps its value if the client leaves it out
	final                      // once it is stored it keeps its value
)

// systemFields are the members of metadata that an API server looks after, in the order of its own fields.
var systemFields = []struct {
	name document.Name
	by   ownership
}{
	{document.NewName("uid"), completed},
	{document.NewName("generation"), carried},
	{document.NewName("creationTimestamp"), carried},
	{document.NewName("deletionTimestamp"), final},
	{document.NewName("deletionGracePeriodSeconds"), completed},
	{document.NewName("managedFields"), carried},
}

var (
	uidName               = systemFields[0].name
	deletionTimestampName = systemFields[3].name
	gracePeriodName       = systemFields[4].name
	metadataName          = document.NewName("metadata")
	finalizersName        = document.NewName("finalizers")
)

// Carry gives the object of an update the members of metadata that are the system's, from the stored object, as
// k8s.io/apiserver's rest.BeforeUpdate does: a client can neither change a creationTimestamp or generation nor take
// back or postpone a deletionTimestamp. What a client may not send at all is left for [ValidateUpdate].
func Carry(d *document.Document, old document.Node) {
	root := d.Root()
	meta, found := root.Lookup(metadataName)
	if !found || meta.Kind() == document.Null {
		meta = d.Set(root, "metadata", []byte("{}"))
	}
	stored, _ := old.Lookup(metadataName)
	for _, f := range systemFields {
		m, sent := meta.Lookup(f.name)
		sent = sent && m.Kind() != document.Null && !m.Is("")
		before, had := stored.Lookup(f.name)
		had = had && before.Kind() != document.Null && !before.Is("")
		switch {
		case had && sent && (f.by == completed || compare.Equal(m, before)):
		case had:
			d.Set(meta, f.name.String(), before.Raw())
		case sent && f.by == carried:
			d.Remove(m)
		}
	}
}

// ValidateUpdate checks the metadata of an update against the stored object's with the library's
// own check, which knows what may not change. Versions are not compared.
func ValidateUpdate(obj, old document.Node) field.ErrorList {
	meta, _ := obj.Lookup(metadataName)
	stored, _ := old.Lookup(metadataName)
	if meta.Kind() != document.Object || quickUpdate(meta, stored) {
		return nil
	}
	path := field.NewPath("metadata")
	decoded, _, err := decode(meta)
	if err != nil {
		return nil // which the check of the object itself finds
	}
	before, _, err := decode(stored)
	if err != nil {
		before = &metav1.ObjectMeta{} // of what cannot be read nothing is known: the client may set none of it
	}
	before.Name, before.Namespace = decoded.Name, decoded.Namespace // the URL names them
	decoded.ResourceVersion, before.ResourceVersion = "1", "1"
	errs := validation.ValidateObjectMetaDeclaratively(context.Background(), operation.Update, decoded, before,
		decoded.Namespace != "",
		validation.NameIsDNSSubdomain, path, utilfeature.DefaultFeatureGate.Enabled(features.DeclarativeValidationBeta))
	for _, err := range errs {
		if before, list, found := strings.Cut(err.Detail, "[]string{"); found {
			err.Detail = before + strings.TrimSuffix(list, "}") // Go's own way to write a list
		}
		_ = curtailed(wording.Conformant(err))
	}
	inOrder(errs)
	return errs
}

// quickUpdate reports whether nothing changes that the system looks after.
func quickUpdate(meta, stored document.Node) bool {
	for _, name := range []document.Name{uidName, deletionTimestampName, gracePeriodName} {
		m, sent := meta.Lookup(name)
		if before, had := stored.Lookup(name); sent != had || sent && !compare.Equal(m, before) {
			return false
		}
	}
	if _, deleting := stored.Lookup(deletionTimestampName); !deleting {
		return true
	}
	_, finalizers := meta.Lookup(finalizersName)
	return !finalizers
}
