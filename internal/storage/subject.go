package storage

import (
	"errors"
	"slices"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/discovery"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/status"
)

// A Subject names what a client asks for, or what a write changes. It words the errors that name it.
type Subject struct {
	Info     resource.Info
	Resource *resource.Resource // nil if no policy file describes it
	// Served is the API server's description of the resource; nil if it is not asked, or does not
	// serve it.
	Served *discovery.Resource
}

// IsRead reports whether the request changes nothing, so that it may be sent again.
func (s *Subject) IsRead() bool { return s.Info.Verb.Reads() }

// GroupKind returns the kind that messages name; the plural stands in for it if no policy file describes
// the resource.
func (s *Subject) GroupKind() apischema.GroupKind {
	if s.Resource != nil {
		return s.Resource.GroupKind()
	}
	return apischema.GroupKind{Group: s.Info.Group, Kind: s.Info.Resource}
}

// Conflict returns the answer to a write of another version than the stored one.
func (s *Subject) Conflict() error {
	return status.Conflict(s.Info.GroupResource(), s.Info.Name, status.ModifiedMessage)
}

// Unplaced returns the Status of an object that has another value in place of a required parent of
// a field; nil for nil.
func (s *Subject) Unplaced(err error) error {
	misplaced, is := errors.AsType[*field.Error](err)
	if !is {
		return err
	}
	return s.Invalid(s.Info.Name, field.ErrorList{misplaced}, 0)
}

// Invalid returns the Status of an object with failures. A name that an ordinary API has yet to
// give is left out. No field means the whole of an ordinary object.
func (s *Subject) Invalid(name string, failures field.ErrorList, more int) *status.Error {
	if s.Info.Documented != nil {
		return status.InvalidRequest(ofWhole(failures), more)
	}
	if s.Resource != nil && s.Resource.Envelope == resource.Bare {
		failures = ofWhole(failures)
	}
	if name == "" && s.Resource != nil && s.Resource.Envelope == resource.Bare {
		return status.InvalidNameless(s.GroupKind(), failures, more)
	}
	return status.Invalid(s.GroupKind(), name, failures, more)
}

// ofWhole names no field in failures of the whole object.
func ofWhole(failures field.ErrorList) field.ErrorList {
	var whole *field.Path
	isWhole := func(f *field.Error) bool { return f.Field == whole.String() }
	if !slices.ContainsFunc(failures, isWhole) {
		return failures
	}
	failures = slices.Clone(failures)
	for i, f := range failures {
		if isWhole(f) {
			one := *f
			if one.Field = ""; one.BadValue == nil {
				one.BadValue = field.OmitValueType{}
			}
			failures[i] = &one
		}
	}
	return failures
}

// Schemas are the schemas of a resource. OpenAPI documents may have different ones for objects that
// are created and updated, that consist of what the API shows of the stored ones, and that are
// read. Each may be nil.
type Schemas struct {
	Create, Update, Patch, Read *schema.Schema
	// BlamesPatches says that the result of a patch is refused only for what the patch changed.
	BlamesPatches bool
}

// For returns the schema of the objects that requests of a verb carry, or ask for.
func (s *Schemas) For(verb resource.Verb) *schema.Schema {
	switch verb.Schema() {
	case resource.SchemaOfCreates:
		return s.Create
	case resource.SchemaOfPatches:
		return s.Patch
	case resource.SchemaOfReads:
		return s.Read
	}
	return s.Update
}

// Of returns the schema of the object of a write: of its media type if the API's document declares that.
func (s *Schemas) Of(w *Write) *schema.Schema {
	if w.Declared != nil {
		return w.Declared.Schema
	}
	return s.For(w.Info.Verb)
}

// NamesObject reports whether a write is a PUT of a whole object, which may turn out to create it.
func NamesObject(i *resource.Info, r *resource.Resource) bool {
	return i.Verb == resource.VerbUpdate && i.Subresource == "" && (r == nil || r.Writes.CreateOnUpdate)
}

// IsConcerned reports whether any policy may concern the write of an object: as itself, or as the
// creation that it may turn out to be.
func IsConcerned(policies *admission.Scoped, i *resource.Info) bool {
	operation := i.Verb.Operation()
	return policies.Concerns(i, operation) || policies.Concerns(i, admission.Create)
}

// ReadsExisting reports whether a policy that may concern the write reads the stored object.
func ReadsExisting(policies *admission.Scoped, i *resource.Info) bool {
	operation := i.Verb.Operation()
	return operation != 0 && policies.NeedsOld(i, operation)
}

// StatusPath returns where objects of a resource keep a status that is a subresource; nil if they have none.
func StatusPath(r *resource.Resource) resource.FieldPath {
	switch {
	case !r.Subresources.Status:
		return nil
	case r.Envelope == resource.Bare:
		return r.Fields.Status
	}
	return KubernetesStatus
}

// KubernetesStatus is the path of the status in objects of Kubernetes' form.
var KubernetesStatus = resource.FieldPath{"status"}

// UnreadableStored returns the answer to a write that depends on a stored object which cannot be read.
func UnreadableStored() error {
	return status.BadGateway("the stored object, which this write depends on, must be a JSON object that the gateway can read")
}

// TooLarge returns the answer to a write of more than so many bytes. What the gateway adds, a status that is
// kept, or what a patch left comes on top of what was sent.
func TooLarge(limit int) error {
	return status.RequestEntityTooLarge("the object as it would be stored must be at most %d bytes", limit)
}
