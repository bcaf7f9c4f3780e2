package storage

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/status"
)

// deleteOptions are the options of a deletion that came without any.
var deleteOptions = []byte(`{"kind":"DeleteOptions","apiVersion":"v1"}`)

// deleteOptionFields are the members of DeleteOptions. What Kubernetes ignores is ignored, but not what was
// meant to be one of these: a precondition that is not read lets everything pass.
var deleteOptionFields = document.NewFields("kind", "apiVersion", "gracePeriodSeconds", "preconditions",
	"orphanDependents", "propagationPolicy",
	"dryRun", "ignoreStoreReadErrorWithClusterBreakingPotential")

var preconditionFields = document.NewFields("uid", "resourceVersion")

// ReadDeleteOptions reads the options of a deletion: from the body, else from the query, as Kubernetes does.
// A dry run is one wherever it is asked for.
func (w *Write) ReadDeleteOptions(l *Limits) error {
	o := &metav1.DeleteOptions{}
	var err error
	switch {
	case w.Object != nil:
		err = w.decodeDeleteOptions(o)
	case w.Info.Query != "":
		err = w.queryDeleteOptions(o, l)
	}
	if err != nil {
		return err
	}
	if failures := metav1validation.ValidateDeleteOptions(o); len(failures) > 0 {
		return status.Invalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", failures, 0)
	}
	w.Info.Options.DryRun = w.Info.Options.DryRun || len(o.DryRun) > 0
	w.Options = o
	return nil
}

// decodeDeleteOptions reads the options in the body, whose kind alone counts: clients of old sent options of
// the resource's group.
func (w *Write) decodeDeleteOptions(o *metav1.DeleteOptions) error {
	root := w.Object.Root()
	if root.Kind() == document.Null {
		return nil
	}
	if root.Kind() != document.Object {
		return status.BadRequest("the body must be a JSON object, not %s", root.Kind().WithArticle())
	}
	if err := ExactCase(root, deleteOptionFields, nil, ""); err != nil {
		return err
	}
	if preconditions, _ := root.Get("preconditions"); preconditions.Kind() == document.Object {
		if err := ExactCase(preconditions, preconditionFields, nil, "preconditions."); err != nil {
			return err
		}
	}
	kind, err := Text(root, "kind", "")
	if err == nil {
		_, err = Text(root, "apiVersion", "")
	}
	if err != nil {
		return err
	}
	if kind != "" && kind != "DeleteOptions" {
		return status.BadRequest("the kind in the data (%.253s) does not match the expected kind (DeleteOptions)", kind)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(w.Object.AppendTo(nil), o); err != nil {
		return status.BadRequest("%s", err.Error())
	}
	return nil
}

// queryDeleteOptions reads the options in the query, and lets policies see them as the options of a body.
func (w *Write) queryDeleteOptions(o *metav1.DeleteOptions, l *Limits) error {
	if err := decodeOptions(w.Info.Query, o); err != nil {
		return err
	}
	o.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("DeleteOptions"))
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	d, err := w.Exchanges.Parse(text, l.Sent)
	w.SetObject(d)
	w.ContentType = valueJSON // whatever type the client named for no body at all
	return err
}

// Orphans returns the older form of a propagation policy.
func Orphans(o *metav1.DeleteOptions) *bool {
	//lint:ignore SA1019 clients send it, and Kubernetes reads it
	return o.OrphanDependents
}

// CheckDeletedVersion compares the version of a stored object with the one that the client wants to delete, if it names
// one. The error is the API server's.
func CheckDeletedVersion(o *metav1.DeleteOptions, kind schema.GroupResource, name, version string) error {
	if o == nil || o.Preconditions == nil || o.Preconditions.ResourceVersion == nil ||
		*o.Preconditions.ResourceVersion == version {
		return nil
	}
	return status.Conflict(kind, name, "the ResourceVersion in the precondition ("+
		Short(*o.Preconditions.ResourceVersion)+") does not match the ResourceVersion in record ("+version+
		"). The object might have been modified")
}
