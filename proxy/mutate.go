package proxy

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/merge"
	"github.com/admission-gateway/gateway/internal/merge/kubernetes"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// mutate lets the mutating policies change the object. What they made of it is held to what holds for the object of a
// client: it is the one that the URL names, its status is not theirs to set, and what it leaves unset has defaults.
func (x *exchange) mutate() error {
	if !x.describe() {
		return nil
	}
	x.attributes.Schema = x
	if err := x.set.Admission().Mutate(context.Background(), &x.attributes, &x.report); err != nil {
		for _, d := range x.report.Denials() {
			x.gateway.metrics.AdmissionDenied(d.Policy)
		}
		if late := x.undecided(); late != nil {
			return late
		}
		return err
	}
	if x.attributes.Changes() == 0 {
		return nil
	}
	if most := x.gateway.bodyLimit; int64(x.doc.Extent()) > most {
		return status.RequestEntityTooLarge("the object as policies change it must be at most %d bytes", most)
	}
	if err := x.identifyAgain(); err != nil {
		return err
	}
	// What a policy sets and the schema does not know is no fault of the client, and is gone before it is validated.
	if s := x.schema(); s != nil {
		if err := s.PruneUnknown(x.doc); err != nil {
			return status.Internal("the policies made an object that cannot be read: %s", err.Error())
		}
	}
	if err := x.holdStatus(); err != nil {
		return err
	}
	return x.setDefaults()
}

// identifyAgain holds the changed object to the URL. As in Kubernetes a policy may give another name to an object that is
// created, and none to one that exists.
func (x *exchange) identifyAgain() error {
	if x.info.Verb == resource.VerbCreate {
		x.info.Name = ""
		return x.complete()
	}
	path := resource.FieldPath{"metadata", "name"}
	if x.res != nil && x.res.Envelope == resource.Bare {
		path = x.res.Fields.Name
	}
	if name, found := find(x.doc.Root(), path); found && name.Kind() == document.String && !name.Is("") && !name.Is(x.info.Name) {
		return status.Invalid(groupKind(x), x.info.Name, field.ErrorList{status.Immutable(name.Path(), short(name.Str()))}, 0)
	}
	return x.complete()
}

// SetDefaults implements admission.Schema.
func (x *exchange) SetDefaults() error { return x.setDefaults() }

// MergeType implements admission.Schema.
func (x *exchange) MergeType(as schema.GroupVersionResource, kind schema.GroupVersionKind) *merge.Type {
	return x.set.MergeType(as, kind)
}

// PatchLimits implements admission.Schema.
func (x *exchange) PatchLimits() document.Limits { return x.gateway.documentLimits }

// strategicType is the type by which a strategic merge patch of the stored object is applied; nil where there is none.
func (x *exchange) strategicType() *merge.Type {
	if x.res != nil {
		return x.set.StrategicType(x.res)
	}
	version, kind := textIn(x.old.Root(), "apiVersion"), textIn(x.old.Root(), "kind")
	return kubernetes.TypeOf(schema.FromAPIVersionAndKind(version, kind))
}
