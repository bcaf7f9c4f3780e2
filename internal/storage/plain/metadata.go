package plain

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	storagenames "k8s.io/apiserver/pkg/storage/names"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema/meta"
	"github.com/admission-gateway/gateway/internal/storage"
)

// systemMembers are the members of metadata that a client cannot set when it creates an object.
// Some have no other use here: fields are not managed on a plain backend, and selfLink is of the
// past.
var systemMembers = document.NewNames([]string{"uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields"})

// dropSystemMetadata takes out what the system owns, before any policy sees the object that is to be created
// (META-1).
func (s objectStrategy) dropSystemMetadata(w *storage.Write) {
	if s.a.Resource.Envelope == resource.Kubernetes {
		dropSystemMembers(w.Object, storage.Metadata(w.Object))
	}
}

// dropSystemMembers takes what the system owns out of the metadata of an object.
func dropSystemMembers(object *document.Document, metadata document.Node) {
	for c := metadata.Children(); c.Valid(); c.Next() {
		if c.Find(&systemMembers) >= 0 {
			object.Remove(c.Node())
		}
	}
}

// SetMetadata sets what the system owns, after the mutating policies and before anything is validated
// (META-1).
func (s objectStrategy) SetMetadata(w *storage.Write) {
	switch {
	case s.a.Resource.Envelope != resource.Kubernetes:
	case w.Creates():
		checkOwners(w, s.setNewMetadata(w))
	case w.Existing.Object != nil && emulates(s.a.Resource, resource.SystemMetadata):
		s.carryMetadata(w)
	}
}

// setNewMetadata makes the metadata of a new object, and returns it.
func (s objectStrategy) setNewMetadata(w *storage.Write) (metadata document.Node) {
	metadata = storage.EnsureMetadata(w.Object)
	dropSystemMembers(w.Object, metadata) // which a policy set
	if emulates(s.a.Resource, resource.SystemMetadata) {
		w.Object.SetString(metadata, "uid", string(uuid.NewUUID()))
		var now [len(time.RFC3339) + 2]byte
		w.Object.Set(metadata, "creationTimestamp", append(time.Now().UTC().AppendFormat(append(now[:0], '"'), time.RFC3339), '"'))
		w.Object.Set(metadata, "generation", []byte("1"))
	}
	if !emulates(s.a.Resource, resource.GeneratedNames) {
		return metadata
	}
	if base := storage.TextIn(metadata, "generateName"); base != "" && storage.TextIn(metadata, "name") == "" {
		w.Info.Name = storagenames.SimpleNameGenerator.GenerateName(base)
		w.Object.SetString(metadata, "name", w.Info.Name)
		w.HasGeneratedName = true
	}
	return metadata
}

// carryMetadata carries over what the system owns.
func (s objectStrategy) carryMetadata(w *storage.Write) {
	existing := w.Existing.Root()
	meta.Carry(w.Object, existing)
	metadata := storage.EnsureMetadata(w.Object)
	if at, found := metadata.Get("selfLink"); found {
		w.Object.Remove(at)
	}
	if version, found := storage.Find(existing, s.a.Resource.Fields.Version); found {
		// It is the backend's, which may not even be known to the schema.
		_ = storage.SetAt(w.Object, s.a.Resource.Fields.Version, version.Raw()) // without a place for it, it has changed
	}
	setGeneration(w, metadata)
	checkOwners(w, metadata)
}

// checkOwners looks for owners that are named twice.
func checkOwners(w *storage.Write, metadata document.Node) {
	if owners, _ := metadata.Get("ownerReferences"); owners.Len() > 1 {
		dropRepeatedOwners(w, owners)
	}
}

// Warn implements storage.Strategy.
func (s objectStrategy) Warn(w *storage.Write) {
	if !keeps(s.a.Resource, resource.SystemMetadata) {
		return
	}
	if finalizers, _ := storage.Metadata(w.Object).Get("finalizers"); finalizers.Len() > 0 {
		warnOfFinalizers(w, finalizers)
	}
}

// ValidateMetadata refuses an update that changes immutable metadata (META-1).
func (s objectStrategy) ValidateMetadata(w *storage.Write) field.ErrorList {
	if w.Existing.Object == nil || !keeps(s.a.Resource, resource.SystemMetadata) {
		return nil
	}
	return meta.ValidateUpdate(w.Object.Root(), w.Existing.Root())
}

// setGeneration counts the changes of anything but metadata; a status that is kept apart is the same in both.
func setGeneration(w *storage.Write, metadata document.Node) {
	if storage.EqualBeside(w.Object.Root(), w.Existing.Root(), "metadata") {
		return
	}
	before, _ := storage.Metadata(w.Existing.Object).Get("generation")
	n, _ := before.Int64()
	w.Object.Set(metadata, "generation", strconv.AppendInt(nil, n+1, 10))
}
