package proxy

import (
	"bytes"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	storagenames "k8s.io/apiserver/pkg/storage/names"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
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
	return x.ownUpdated()
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

// ownUpdated carries over what the system owns. What an update may not change and yet does the checks of metadata refuse.
func (x *exchange) ownUpdated() error {
	metadata, stored := ensureMetadata(x.doc), metadataOf(x.old)
	if uid, found := given(stored, "uid"); found && textIn(metadata, "uid") == "" {
		x.doc.Set(metadata, "uid", uid.Raw())
	} else if sent := textIn(metadata, "uid"); x.schema() == nil && sent != uid.Str() {
		return status.Invalid(groupKind(x), x.info.Name, field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), short(sent), "may not be changed")}, 0)
	}
	for _, name := range [...]string{"creationTimestamp", "deletionTimestamp"} {
		if at, found := given(stored, name); found {
			x.setTo(metadata, name, at.Raw())
		}
	}
	if period, found := given(stored, "deletionGracePeriodSeconds"); found {
		if _, set := given(metadata, "deletionGracePeriodSeconds"); !set {
			x.setTo(metadata, "deletionGracePeriodSeconds", period.Raw())
		}
	}
	for _, name := range [...]string{"selfLink", "managedFields"} {
		if at, found := metadata.Get(name); found {
			x.doc.Remove(at)
		}
	}
	x.setGeneration(metadata, stored)
	x.tidyOwners(metadata)
	return nil
}

// setGeneration counts the changes of anything but metadata; a status that is kept apart is the same in both.
func (x *exchange) setGeneration(metadata, stored document.Node) {
	before, _ := given(stored, "generation")
	n, _ := before.Int64()
	switch {
	case !sameBeside(x.doc.Root(), x.old.Root(), "metadata"):
		x.doc.Set(metadata, "generation", strconv.AppendInt(nil, n+1, 10))
	case before.Valid():
		x.setTo(metadata, "generation", before.Raw())
	default:
		if at, found := metadata.Get("generation"); found {
			x.doc.Remove(at)
		}
	}
}

// setTo sets a member unless it has the very text already, as in most patches.
func (x *exchange) setTo(object document.Node, key string, raw []byte) {
	if at, found := object.Get(key); !found || !bytes.Equal(at.Raw(), raw) {
		x.doc.Set(object, key, raw)
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
