package storage

import (
	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/status"
)

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
