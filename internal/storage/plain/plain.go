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
	Backend  *storage.Backend
	Limits   *storage.Limits
	Policies *admission.Chain
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
	Memory                      Memory
	// Comparison says whether the backend compares versions, as far as that is known; nil if nobody asks.
	Comparison *Comparison
}

// Memory keeps memory of large objects for the next ones. What a request takes of it was asked for.
type Memory interface {
	// Take returns 1<<class bytes.
	Take(class int) []byte
	// Give gives them back.
	Give(memory []byte, class int)
}

// A Store is the storage of whole objects. It is made of layers. Each layer knows the ones below alone:
// what is deleted was read and is written, what is written was prepared.
type Store struct{ writer }

type (
	existing struct{ definition } // the stored object, and what a write of it is pinned to
	strategy struct{ existing }   // how objects are prepared
	reader   struct{ strategy }   // what clients read
	writer   struct{ reader }     // what is sent, and what of it is answered
)

func newStore(d definition) Store {
	return Store{writer{reader{strategy{existing{d}}}}}
}

// New returns the storage of the objects of a resource, or of a subresource of it.
func New(o Options, subresource string) storage.Storage {
	d := definition{
		Options: o, mediaTypes: mediaTypesOf(o.Resource),
		createKeys: dataKeys{o.Schemas.Create, o.Resource}, updateKeys: dataKeys{o.Schemas.Update, o.Resource},
	}
	switch {
	case o.Resource != nil:
		d.status = storage.StatusPath(o.Resource)
	case o.ProtectsStatus:
		d.status = storage.KubernetesStatus
	}
	if o.Resource == nil {
		d.Resource = &unregistered
	}
	s := newStore(d)
	if o.Resource == nil {
		if subresource != "" {
			return &unregisteredSubresource{subresourceStore{s}}
		}
		return &unregisteredStore{s}
	}
	if subresource == "status" || subresource == scaleSubresource {
		s.Schemas.Update = s.Schemas.Patch // what is written is made of the stored object
	}
	switch {
	case o.Resource.Operation != nil:
		return &operationStore{subresourceStore{s}}
	case subresource == "" && o.Resource.Backend.Patch == resource.PatchValidated:
		return &patchingStore{s}
	case subresource == "":
		return &s
	case subresource == "status" && o.Resource.Backend.Patch == resource.PatchValidated && o.Resource.Subresources.Status && s.emulates(resource.StatusSubresource):
		return &patchingStatusStore{statusStore{s}}
	case subresource == "status" && o.Resource.Subresources.Status && s.emulates(resource.StatusSubresource):
		return &statusStore{s}
	case subresource == "status":
		return &nativeStatusStore{subresourceStore{s}}
	case subresource == scaleSubresource && s.emulates(resource.ScaleSubresource):
		return newScaleStore(s)
	}
	s.Schemas = storage.Schemas{}
	return &subresourceStore{s}
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
