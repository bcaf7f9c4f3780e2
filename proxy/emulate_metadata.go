package proxy

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	storagenames "k8s.io/apiserver/pkg/storage/names"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
)

// systemOwned are the members of metadata that a client cannot set when it creates an object. Those that no backend of
// objects keeps have no other use here: nobody manages fields on a plain backend, and selfLink is of the past.
var systemOwned = [...]string{"uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields"}

// disownMetadata takes out what the system owns before any policy sees the object that is to be created (META-1).
func (x *exchange) disownMetadata() error {
	if !x.upstream.plain || x.res == nil || x.res.Envelope != resource.Kubernetes || x.info.Verb != resource.VerbCreate && !x.creates {
		return nil
	}
	metadata := metadataOf(x.doc)
	for _, name := range systemOwned {
		if at, found := metadata.Get(name); found {
			x.doc.Remove(at)
		}
	}
	return nil
}

// ownMetadata sets what the system owns, after the mutating policies and before anything is validated (META-1).
func (x *exchange) ownMetadata() error {
	switch {
	case x.res == nil || x.res.Envelope != resource.Kubernetes || !x.upstream.plain || x.info.Subresource != "" && !x.emulatesStatus():
		return nil
	case x.info.Verb == resource.VerbCreate || x.creates:
		x.ownCreated()
		x.tidyOwners(metadataOf(x.doc))
		return nil
	case x.old == nil || !x.emulates(resource.SystemMetadata) || x.emulatesStatus():
		return nil // what is written to the status is the stored object with another status
	}
	x.ownUpdated()
	return nil
}

// ownCreated makes the metadata of a new object.
func (x *exchange) ownCreated() {
	_ = x.disownMetadata() // what a policy set
	metadata := ensureMetadata(x.doc)
	if x.emulates(resource.SystemMetadata) {
		x.doc.SetString(metadata, "uid", string(uuid.NewUUID()))
		var now [len(time.RFC3339) + 2]byte
		x.doc.Set(metadata, "creationTimestamp", append(time.Now().UTC().AppendFormat(append(now[:0], '"'), time.RFC3339), '"'))
		x.doc.Set(metadata, "generation", []byte("1"))
	}
	if base := textIn(metadata, "generateName"); base != "" && textIn(metadata, "name") == "" && x.emulates(resource.GeneratedNames) {
		x.info.Name = storagenames.SimpleNameGenerator.GenerateName(base)
		x.doc.SetString(metadata, "name", x.info.Name)
		x.generated = true
	}
}

// ownUpdated carries over what the system owns.
func (x *exchange) ownUpdated() {
	schema.CarryMetadata(x.doc, x.old.Root())
	metadata := ensureMetadata(x.doc)
	if at, found := metadata.Get("selfLink"); found {
		x.doc.Remove(at)
	}
	if version, found := find(x.old.Root(), x.res.Fields.Version); found {
		// It is the backend's, which may not even be known to the schema.
		_ = setAt(x.doc, x.res.Fields.Version, version.Raw()) // where there is no place for it, it has changed
	}
	x.setGeneration(metadata, metadataOf(x.old))
	x.tidyOwners(metadata)
}

// checkOwned holds an update to what of the metadata it may not change (META-1).
func (x *exchange) checkOwned() field.ErrorList {
	if x.old == nil || !x.emulatesMetadata(resource.SystemMetadata) || x.info.Subresource != "" {
		return nil
	}
	return schema.ValidateMetadataUpdate(x.doc.Root(), x.old.Root())
}

// setGeneration counts the changes of anything but metadata; a status that is kept apart is the same in both.
func (x *exchange) setGeneration(metadata, stored document.Node) {
	if !sameBeside(x.doc.Root(), x.old.Root(), "metadata") {
		before, _ := stored.Get("generation")
		n, _ := before.Int64()
		x.doc.Set(metadata, "generation", strconv.AppendInt(nil, n+1, 10))
	}
}

// sameBeside tells whether two objects are equal but for one member.
func sameBeside(a, b document.Node, beside string) bool {
	n := 0
	for m := a.First(); m.Valid(); m = m.Next() {
		key := m.Key()
		if key == beside {
			continue
		}
		other, found := b.Get(key)
		if !found || !document.EqualNodes(m, other) {
			return false
		}
		n++
	}
	if _, found := b.Get(beside); found {
		n++
	}
	return n == b.Len()
}
