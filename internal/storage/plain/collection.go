package plain

import (
	"sync"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/storage"
)

// A collection is how the files describe the objects of a resource at a backend. It does not change.
type collection struct {
	Options
	status     resource.FieldPath // that only the status subresource may write; nil for none
	mediaTypes storage.MediaTypes
	keys       dataKeysByVerb
}

// An access is all that the strategies of a store need to read and write objects: each part is made of the collection.
type access struct {
	*collection
	conditions conditions
	reader     storedReader
	locker     locker
	sender     sender
	completer  completer
}

// conditions compare the preconditions of requests for objects, and know what the backend compares itself.
type conditions struct {
	*collection
	compares bool // the gateway compares them, as far as the backend does not
}

// A storedReader reads the objects that writes depend on.
type storedReader struct{ conditions }

// A locker takes the locks of objects.
type locker struct{ conditions }

// A sender sends writes, and resolves their outcome if that is unknown.
type sender struct{ *collection }

// A completer completes what clients read.
type completer struct {
	conditions
	// outlines returns what is read of objects to complete them. It is made for the first one.
	outlines func() outlines
}

// accessTo makes the access to the objects that options describe.
func accessTo(o *Options, keys dataKeysByVerb) *access {
	c := &collection{Options: *o, mediaTypes: mediaTypesOf(o.Resource), keys: keys}
	switch {
	case o.Resource != nil:
		c.status = storage.StatusPath(o.Resource)
	case o.ProtectsStatus:
		c.status = storage.KubernetesStatus
	}
	if o.Resource == nil {
		c.Resource = &unregistered
	}
	by := conditions{c, comparesPreconditions(o)}
	return &access{
		collection: c, conditions: by, reader: storedReader{by}, locker: locker{by}, sender: sender{c},
		completer: completer{by, sync.OnceValue(c.newOutlines)},
	}
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
	event := &document.Projection{Members: map[string]*document.Projection{"object": object}}
	return outlines{document.NewOutline(object), document.NewOutline(event)}
}
