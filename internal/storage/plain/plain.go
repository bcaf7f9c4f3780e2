// Package plain is the storage of an ordinary JSON API: GET, POST, PUT, DELETE and an ETag. What Kubernetes'
// clients expect beyond that is supplied here, as far as the resource asks for it: versions and system
// metadata, a status and a scale that are kept apart, PATCH, deletion with finalizers, selectors and pages,
// dry runs, defaults on read. A write that depends on what is stored is pinned to the version that was
// read, so that a backend which compares versions never loses an update.
package plain

import (
	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/compress"
	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/merge"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

// Options describe a resource of an ordinary API.
type Options struct {
	Backend *storage.Backend
	Limits  *storage.Limits
	// Policies are the policies that may match operations on the resource, or the subresource; ObjectPolicies are for
	// the object that the subresource is a part of.
	Policies, ObjectPolicies *admission.Scoped
	// Resource describes the objects; nil if no policy file does.
	Resource *resource.Resource
	Schemas  storage.Schemas
	// Hidden says what the API takes in objects and does not show; nil if nothing is known.
	Hidden *contract.Members
	// StrategicType returns the type by which a strategic merge patch of a stored object is applied; nil if
	// there is none.
	StrategicType func(existing document.Node) *merge.Type
	// ProtectsStatus and ChecksNames say what holds for objects that no policy file describes.
	ProtectsStatus, ChecksNames bool
	Locks                       *storage.Locks
	// LocksAlone says that there are several gateways, and each locks objects for its own writes alone.
	LocksAlone bool
	Memory     Memory
	// Comparison says whether the backend compares versions, as far as that is known; nil if not
	// needed.
	Comparison *Comparison
}

// Memory keeps memory of large objects for the next ones. What a request takes of it was asked for.
type Memory interface {
	// Take returns 1<<class bytes.
	Take(class int) []byte
	// Give gives them back.
	Give(memory []byte, class int)
}

// New returns the storage of the objects of a resource, or of a subresource of it.
func New(o Options, subresource string) storage.Storage {
	keys, r := keysOf(&o), o.Resource
	if subresource == "status" || subresource == scaleSubresource {
		o.Schemas.Update = o.Schemas.Patch // what is written is made of the stored object
	}
	switch {
	case r == nil && subresource == "":
		return newUndescribed(accessTo(&o, keys))
	case r == nil:
		return newUndescribedSubresource(accessTo(&o, keys))
	case r.Operation != nil:
		return newOperation(accessTo(&o, keys))
	}
	sendsPatches, isApart := r.Backend.Patch == resource.PatchValidated, r.Subresources.Status && keepsStatus(r)
	switch {
	case subresource == "" && sendsPatches:
		return newPatchedObjects(accessTo(&o, keys))
	case subresource == "":
		return newObjects(accessTo(&o, keys))
	case subresource == "status" && isApart && sendsPatches:
		return newPatchedStatus(accessTo(&o, keys))
	case subresource == "status" && isApart:
		return newStatus(accessTo(&o, keys))
	case subresource == "status":
		return newNativeStatus(accessTo(&o, keys))
	}
	of := o
	of.Schemas = storage.Schemas{} // of the objects, not of the subresource
	if subresource == scaleSubresource && emulates(r, resource.ScaleSubresource) {
		o.Policies = o.ObjectPolicies
		return newScale(accessTo(&of, keys), accessTo(&o, keys))
	}
	return newSubresource(accessTo(&of, keys))
}

// comparesPreconditions reports whether it is the gateway that compares preconditions, as far as the backend is not
// proved to.
func comparesPreconditions(o *Options) bool {
	if o.Resource == nil || o.Resource.Operation != nil {
		return false
	}
	switch o.Resource.Backend.Preconditions {
	case resource.GatewayPreconditions:
		return true
	case resource.AutoPreconditions:
		return !o.LocksAlone && o.Resource.Backend.Versions != resource.NativeVersions
	}
	return false
}

func mediaTypesOf(r *resource.Resource) storage.MediaTypes {
	t := storage.MediaTypes{Objects: storage.JSON, Patches: patchTypes, Encodings: compress.Readable}
	if r == nil || r.Envelope == resource.Bare {
		t.Patches += ", " + storage.JSON
	}
	if r == nil || r.Backend.Patch != resource.PatchValidated { // no ordinary API knows strategic merge patches
		// They are read, but only of resources whose lists have merge keys.
		t.Patches += ", " + storage.StrategicMergePatchType
	}
	if r == nil {
		t.Errors = storage.Anything
		return t
	}
	for _, one := range r.Writes.PatchTypes {
		t.Patches += ", " + one
	}
	if r.Errors.ArePassed {
		t.Errors = storage.Anything
	}
	for _, also := range r.Writes.MediaTypes {
		t.Objects += ", " + also
	}
	if r.Envelope == resource.Kubernetes {
		t.Answers = storage.JSON
	}
	return t
}
