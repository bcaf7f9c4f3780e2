package plain

import (
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/storage"
)

// A collection is the objects of a resource at a backend: how the files describe them, and how they
// are read, pinned to a version and sent. The strategies of a store share one.
type collection struct {
	Options
	status     resource.FieldPath // that only the status subresource may write; nil for none
	mediaTypes storage.MediaTypes

	createKeys, updateKeys, patchKeys dataKeys
	// outlines returns what is read of objects to complete them for clients that read them. It is made for the first one.
	outlines func() outlines
	// compares says that the gateway compares the preconditions of requests for objects.
	compares bool
}

// emulates reports whether the gateway supplies a capability that the backend lacks.
func emulates(r *resource.Resource, any resource.Capabilities) bool {
	return r.Backend.Emulated&any != 0
}

// keeps reports whether the gateway supplies a capability in the metadata of objects of Kubernetes' form.
func keeps(r *resource.Resource, any resource.Capabilities) bool {
	return emulates(r, any) && r.Envelope == resource.Kubernetes
}

// appliesPatches reports whether the gateway applies patches itself.
func appliesPatches(r *resource.Resource) bool {
	return r.Backend.Patch == resource.PatchEmulated || r.Backend.Patch == resource.PatchValidated
}

// isRegistered reports whether a policy file describes the resource.
func isRegistered(r *resource.Resource) bool { return r != &unregistered }

// keepsStatus reports whether it is the gateway that keeps the status apart.
func keepsStatus(r *resource.Resource) bool { return emulates(r, resource.StatusSubresource) }

// schema returns the schema of the object in the body of a verb; nil if there is none.
func (c *collection) schema(verb resource.Verb) *schema.Schema { return c.Schemas.For(verb) }

// outlines say what is read of an object to complete it, and of an event with one. They are nil if all of it is.
type outlines struct{ object, event *document.Outline }

// newOutlines makes the outlines.
func (c *collection) newOutlines() outlines {
	schema, isVersioned := c.defaulting(resource.VerbGet), keeps(c.Resource, resource.ResourceVersions)
	if isPlaced(c.Resource) || schema != nil && len(schema.Derived()) > 0 || isVersioned && isDigested(c.Resource) {
		return outlines{}
	}
	object := schema.DefaultedParts()
	if isVersioned {
		object.Along("metadata")
		object.Along(c.Resource.Fields.Version...)
	}
	event := &document.Parts{Members: map[string]*document.Parts{"object": object}}
	return outlines{document.NewOutline(object), document.NewOutline(event)}
}
