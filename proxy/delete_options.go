package proxy

import (
	"encoding/json"
	"net/url"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/status"
)

// deleteOptionFields are the members of DeleteOptions. What Kubernetes ignores is ignored, but not what was meant to be one
// of these: a precondition that is not read lets everything pass.
var deleteOptionFields = document.NewFoldSet("kind", "apiVersion", "gracePeriodSeconds", "preconditions", "orphanDependents", "propagationPolicy",
	"dryRun", "ignoreStoreReadErrorWithClusterBreakingPotential")

var preconditionFields = document.NewFoldSet("uid", "resourceVersion")

// readDeleteOptions reads the options of a deletion: from the body, else from the query, as Kubernetes does. A dry run is one
// wherever it is asked for.
func (x *exchange) readDeleteOptions() error {
	o := &metav1.DeleteOptions{}
	var err error
	switch {
	case x.doc != nil:
		err = x.decodeDeleteOptions(o)
	case x.info.Query != "":
		err = x.queryDeleteOptions(o)
	}
	if err != nil {
		return err
	}
	if failures := metav1validation.ValidateDeleteOptions(o); len(failures) > 0 {
		return status.Invalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", failures, 0)
	}
	x.info.Options.DryRun = x.info.Options.DryRun || len(o.DryRun) > 0
	x.options = o
	return nil
}

// readServersOptions reads the options of a deletion by a Kubernetes API server, where something on the way depends on them. That
// server reads either the body or, without one, the query: policies have to see the same, and options that the gateway adds
// must not hide those in the query.
func (x *exchange) readServersOptions() error {
	if x.upstream.plain || !x.info.IsResource || !x.set.Admission().Concerns(&x.info, admission.Delete) && !x.needsOld() {
		return nil
	}
	if x.doc != nil {
		x.info.Options.DryRun = false
	}
	return x.readDeleteOptions()
}

// decodeDeleteOptions reads the options in the body, whose kind alone counts: clients of old sent those of the resource's group.
func (x *exchange) decodeDeleteOptions(o *metav1.DeleteOptions) error {
	root := x.doc.Root()
	if root.Kind() == document.Null {
		return nil
	}
	if root.Kind() != document.Object {
		return status.BadRequest("the body must be a JSON object, not %s", article(root.Kind()))
	}
	if err := exactCase(root, deleteOptionFields, ""); err != nil {
		return err
	}
	if preconditions, _ := root.Get("preconditions"); preconditions.Kind() == document.Object {
		if err := exactCase(preconditions, preconditionFields, "preconditions."); err != nil {
			return err
		}
	}
	kind, err := text(root, "kind", "")
	if err == nil {
		_, err = text(root, "apiVersion", "")
	}
	if err != nil {
		return err
	}
	if kind != "" && kind != "DeleteOptions" {
		return status.BadRequest("the kind in the data (%.253s) does not match the expected kind (DeleteOptions)", kind)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(x.body, o); err != nil {
		return status.BadRequest("%s", err.Error())
	}
	return nil
}

// queryDeleteOptions reads the options in the query, and lets policies see them as those of a body.
func (x *exchange) queryDeleteOptions(o *metav1.DeleteOptions) error {
	values, err := url.ParseQuery(x.info.Query)
	if err == nil {
		err = scheme.ParameterCodec.DecodeParameters(values, metav1.SchemeGroupVersion, o)
	}
	if err != nil {
		return status.BadRequest("%s", err.Error())
	}
	o.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("DeleteOptions"))
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	x.doc, err = document.Parse(text, x.gateway.documentLimits)
	x.rebuilt, x.transcoded = true, true // whatever type the client named for no body at all
	return err
}
