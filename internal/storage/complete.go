package storage

import (
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// envelopeFields are the members of a Kubernetes object that some backends would also find under
// another case, metadataFields the members of metadata that identify the object of a request and
// decide who may change it. Those whose values are read come first.
var (
	envelopeFields = document.NewFields("apiVersion", "kind", "metadata", "spec", "status")
	metadataFields = document.NewFields("name", "namespace", "generateName", "uid", "resourceVersion", "generation",
		"creationTimestamp",
		"deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "finalizers", "ownerReferences",
		"managedFields")
)

// An Identity names an object of Kubernetes' form by its own members.
type Identity struct {
	Kind, APIVersion, Name, Namespace string
	// IsPatched says that the object results from a patch, which is to blame if it cannot be read.
	IsPatched bool

	metadata document.Node
}

// text reads a member that must be a string.
func (d *Identity) text(w *Write, at document.Node, key, prefix string) (string, error) {
	s, err := textOf(at, key, prefix)
	if err != nil && d.IsPatched {
		return "", w.Unreadable(err.Error())
	}
	return s, err
}

// ReadType reads kind and apiVersion. It refuses a body that is no object, and members of an object of
// Kubernetes' form that a backend which folds case would take for others.
func (d *Identity) ReadType(w *Write) (err error) {
	root := w.Object.Root()
	if root.Kind() != document.Object {
		return status.BadRequest("the body must be a JSON object, not %s", root.Kind().WithArticle())
	}
	var found [3]document.Node
	if err = ExactCase(root, envelopeFields, found[:], ""); err != nil {
		return err
	}
	d.metadata = found[2]
	if d.APIVersion, err = d.text(w, found[0], "apiVersion", ""); err != nil {
		return err
	}
	d.Kind, err = d.text(w, found[1], "kind", "")
	return err
}

// CheckType compares kind and apiVersion with the resource that the URL names. The object of a subresource
// such as scale, eviction or binding is of a kind and group of its own.
func (d *Identity) CheckType(w *Write) error {
	if w.Info.Subresource != "" && w.Info.Subresource != "status" {
		return nil
	}
	if d.APIVersion != "" && !isGroupVersion(d.APIVersion, &w.Info) {
		return status.BadRequest("the API version in the data (%.253s) does not match the expected API version (%s)", d.APIVersion, GroupVersion(&w.Info))
	}
	if r := w.Resource; d.Kind != "" && r != nil && d.Kind != r.Names.Kind {
		return status.BadRequest("the kind in the data (%.253s) does not match the expected kind (%s)", d.Kind,
			r.Names.Kind)
	}
	return nil
}

// ReadMetadata reads name and namespace, after ReadType.
func (d *Identity) ReadMetadata(w *Write) (err error) {
	switch kind := d.metadata.Kind(); kind {
	case document.Invalid:
		return nil
	case document.Null:
		d.metadata = document.Node{}
		return nil
	case document.Object:
	default:
		return status.BadRequest("`metadata` must be an object, not %s", kind.WithArticle())
	}
	var found [3]document.Node
	if err := ExactCase(d.metadata, metadataFields, found[:], "metadata."); err != nil {
		return err
	}
	if d.Name, err = d.text(w, found[0], "name", "metadata."); err != nil {
		return err
	}
	if d.Namespace, err = d.text(w, found[1], "namespace", "metadata."); err != nil {
		return err
	}
	_, err = d.text(w, found[2], "generateName", "metadata.")
	return err
}

// CheckMetadata compares name and namespace with the URL, and takes the name of a new object.
func (d *Identity) CheckMetadata(w *Write) error {
	if d.Namespace != "" && d.Namespace != w.Info.ObjectNamespace() {
		return status.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if w.Info.Name != "" && d.Name != "" && d.Name != w.Info.Name {
		return status.BadRequest("the name of the object (%.253s) does not match the name on the URL (%s)", d.Name,
			w.Info.Name)
	}
	if w.Info.Verb == resource.VerbCreate && w.Info.Name == "" {
		w.Info.Name = d.Name
	}
	return nil
}

// Fill sets what the object leaves out of itself.
func (d *Identity) Fill(w *Write) {
	root := w.Object.Root()
	if d.Kind == "" {
		w.Object.SetString(root, "kind", w.Resource.Names.Kind)
	}
	if d.APIVersion == "" {
		w.Object.SetString(root, "apiVersion", GroupVersion(&w.Info))
	}
	isNamed, isPlaced := d.Name != "" || w.Info.Name == "", d.Namespace != "" || w.Info.ObjectNamespace() == ""
	if isNamed && isPlaced {
		return
	}
	if !d.metadata.Valid() {
		d.metadata = w.Object.Set(root, "metadata", []byte("{}"))
	}
	if !isNamed {
		w.Object.SetString(d.metadata, "name", w.Info.Name)
	}
	if !isPlaced {
		w.Object.SetString(d.metadata, "namespace", w.Info.ObjectNamespace())
	}
}

// CheckIdentity compares the identity in an object of Kubernetes' form with the URL, and takes the
// name of a new object. Nothing is added.
func CheckIdentity(w *Write) error {
	var d Identity
	if err := d.ReadType(w); err != nil {
		return err
	}
	if err := d.CheckType(w); err != nil {
		return err
	}
	if err := d.ReadMetadata(w); err != nil {
		return err
	}
	return d.CheckMetadata(w)
}

// CompleteBare compares the name of an ordinary API's object with the one in the URL. Such an object gets
// nothing added.
func CompleteBare(w *Write) error {
	root := w.Object.Root()
	if root.Kind() != document.Object {
		return status.BadRequest("the body must be a JSON object, not %s", root.Kind().WithArticle())
	}
	at, found := Find(root, w.Resource.Fields.Name)
	if !found || at.Kind() == document.Null || w.Info.Name != "" && w.Resource.Writes.NameMayChange {
		return nil
	}
	if stored, _ := Find(w.Existing.Root(), w.Resource.Fields.Name); w.Info.Verb == resource.VerbPatch &&
		stored.Valid() && document.EqualNodes(at, stored) {
		return nil // which the patch did not change, whatever it is
	}
	var name string
	switch {
	case at.Kind() == document.String && !at.HasNUL():
		name = at.Str()
	case at.Kind() == document.Number:
		name = string(at.Raw())
	default:
		return status.BadRequest("`%s` must be a string without NUL characters", at.Path())
	}
	if w.Info.Name != "" && name != w.Info.Name {
		return status.BadRequest("the name of the object (%.253s) does not match the name on the URL (%s)", name,
			w.Info.Name)
	}
	w.Info.Name = name
	return nil
}

// CheckName holds the name of an object that no schema checks to the form that Kubernetes gives most names
// (RES-3).
func CheckName(w *Write) error {
	if !w.Info.IsResource || w.Info.Name == "" || w.Info.Subresource != "" {
		return nil
	}
	problems := validation.NameIsDNSSubdomain(w.Info.Name, false)
	if len(problems) == 0 {
		return nil
	}
	at := field.NewPath("metadata", "name")
	failures := make(field.ErrorList, 0, len(problems))
	for _, p := range problems {
		failures = append(failures, field.Invalid(at, w.Info.Name, p))
	}
	return w.Invalid(w.Info.Name, failures, 0)
}

// Unreadable returns the Status of an object that cannot be read as one of its kind: of a request that has
// to be another one, or of a patch that results in such an object.
func (w *Write) Unreadable(message string) error {
	if w.Info.Verb != resource.VerbPatch {
		return status.BadRequest("%s", message)
	}
	patch := field.Invalid(field.NewPath("patch"), Short(str(w.Exchanges.Body)), message)
	return w.Invalid(w.Info.Name, field.ErrorList{patch}, 0)
}

// isGroupVersion compares without building the string.
func isGroupVersion(s string, i *resource.Info) bool {
	if i.Group == "" {
		return s == i.Version
	}
	n := len(i.Group)
	return len(s) == n+1+len(i.Version) && s[:n] == i.Group && s[n] == '/' && s[n+1:] == i.Version
}

// GroupVersion returns the apiVersion that the URL says.
func GroupVersion(i *resource.Info) string {
	if i.Group == "" {
		return i.Version
	}
	return i.Group + "/" + i.Version
}
