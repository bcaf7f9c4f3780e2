package plain

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	storagenames "k8s.io/apiserver/pkg/storage/names"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/schema/meta"
	"github.com/admission-gateway/gateway/internal/storage"
)

// objectStrategy prepares objects of the resource.
type objectStrategy struct{ a *access }

// PrepareForCreate implements storage.Strategy: a client's status never counts (STAT-1), nor does a uid
// (META-1).
func (s objectStrategy) PrepareForCreate(w *storage.Write) error {
	s.warnOfStatus(w)
	if err := s.protectStatus(w); err != nil {
		return err
	}
	s.dropSystemMetadata(w)
	return nil
}

// PrepareForUpdate implements storage.Strategy.
func (s objectStrategy) PrepareForUpdate(w *storage.Write) error {
	if err := checkVersion(s.a.Resource, w); err != nil {
		return err
	}
	s.warnOfStatus(w)
	if err := s.protectStatus(w); err != nil {
		return err
	}
	if err := s.a.reader.carryOver(w); err != nil {
		return err
	}
	if w.Existing.IsAbsent {
		s.dropSystemMetadata(w)
	}
	return nil
}

// protectStatus takes a status that the client sent out of the object, and puts the stored one in its place,
// so that a PUT leaves it as it is (STAT-1).
func (s objectStrategy) protectStatus(w *storage.Write) error {
	if s.a.status == nil {
		return nil
	}
	if sent, found := storage.Find(w.Object.Root(), s.a.status); found {
		w.Object.Remove(sent)
	}
	if w.Existing.Object == nil || !keepsStatus(s.a.Resource) {
		return nil
	}
	if w.Shown == storage.ShownNothing {
		w.Shown = shows(s.a.Resource, storage.ShownStatus)
	}
	stored, found := storage.Find(w.Existing.Root(), s.a.status)
	if !found {
		return nil
	}
	return s.a.misplace(w, storage.SetAt(w.Object, s.a.status, stored.Raw()))
}

// warnOfStatus warns a client that the status it sent is dropped. Clients of an ordinary API may
// not know that there is a status. A client of Kubernetes knows, and one that sends the stored one
// loses nothing.
func (s objectStrategy) warnOfStatus(w *storage.Write) {
	if s.a.Resource.Envelope != resource.Bare || !isRegistered(s.a.Resource) {
		return
	}
	sent, found := storage.Find(w.Object.Root(), s.a.status)
	if !found {
		return
	}
	if stored, _ := storage.Find(w.Existing.Root(), s.a.status); stored.Valid() && document.EqualNodes(sent, stored) {
		return
	}
	w.Exchanges.Warn("`" + storage.PathString(s.a.status) +
		"` may be written by the API alone: the value that was sent was dropped")
}

// KeepStatus implements storage.Strategy.
func (s objectStrategy) KeepStatus(w *storage.Write) error {
	if s.a.status == nil {
		return nil
	}
	var stored document.Node
	if w.Existing.Object != nil && keepsStatus(s.a.Resource) {
		stored, _ = storage.Find(w.Existing.Root(), s.a.status)
	}
	if set, _ := storage.Find(w.Object.Root(), s.a.status); document.EqualNodes(set, stored) {
		return nil
	}
	return s.protectStatus(w)
}

// Validate implements storage.Strategy.
func (s objectStrategy) Validate(schema *schema.Schema, f *cel.Frame, w *storage.Write) schema.Result {
	if w.Info.Verb == resource.VerbPatch && s.a.Schemas.BlamesPatches {
		return schema.ValidatePatched(f, w.Object.Root(), w.Existing.Root(), w.DeclaredPatch.SchemaOf(), w.KeepsNulls)
	}
	return schema.Validate(f, w.Object.Root(), w.Existing.Root())
}

// carryOver completes an update by what is stored: immutable fields that are left out (DEF-7), and members
// of unions that a new discriminator makes stale (VAL-6).
func (s storedReader) carryOver(w *storage.Write) error {
	schema := s.Schemas.Of(w)
	if schema == nil || w.Existing.IsAbsent {
		return nil
	}
	if w.Existing.Object == nil && schema.Stale(w.Object.Root()) {
		if err := s.getObject(w); err != nil {
			return err
		}
	}
	if w.Existing.Object != nil {
		schema.Carry(w.Object, w.Existing.Root(), w.Info.Verb == resource.VerbPatch)
	}
	return nil
}

// misplace notes that another value is in the place of the status. With a schema that is said
// together with everything else that is wrong.
func (c *collection) misplace(w *storage.Write, err error) error {
	w.Misplaced = nil
	if c.Schemas.Of(w) == nil {
		return w.Unplaced(err)
	}
	if misplaced, is := errors.AsType[*field.Error](err); is {
		w.Misplaced = field.ErrorList{misplaced}
	}
	return nil
}

// systemMembers are the members of metadata that a client cannot set when it creates an object.
// Some have no other use here: fields are not managed on a plain backend, and selfLink is of the
// past.
var systemMembers = document.NewNames([]string{"uid", "creationTimestamp", "generation", "deletionTimestamp",
	"deletionGracePeriodSeconds", "selfLink", "managedFields"})

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
		w.Object.Set(metadata, "creationTimestamp",
			append(time.Now().UTC().AppendFormat(append(now[:0], '"'), time.RFC3339), '"'))
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
		// without a place for it, it has changed
		_ = storage.SetAt(w.Object, s.a.Resource.Fields.Version, version.Raw())
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

// dropRepeatedOwners takes owner references out that are there already, and says so, as Kubernetes does.
func dropRepeatedOwners(w *storage.Write, owners document.Node) {
	first := make(map[string]document.Node, owners.Len())
	var repeated []string
	var next document.Node
	for owner := owners.First(); owner.Valid(); owner = next {
		next = owner.Next()
		uid := storage.TextIn(owner, "uid")
		if before, found := first[uid]; !found {
			first[uid] = owner
		} else if document.EqualNodes(before, owner) {
			if w.Object.Remove(owner); len(repeated) < maxNamed {
				repeated = append(repeated, storage.Short(uid))
			}
		}
	}
	if len(repeated) > 0 {
		w.Exchanges.Warn(".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, " +
			"and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: " + strings.Join(repeated, ", "))
	}
}

// maxNamed is how many of what is wrong in one way are named in warnings, whose space is bounded.
const maxNamed = 20

// warnOfFinalizers warns of new finalizers whose names may be names of others.
func warnOfFinalizers(w *storage.Write, finalizers document.Node) {
	stored, _ := storage.Metadata(w.Existing.Object).Get("finalizers")
	named := 0
	for f := finalizers.First(); f.Valid() && named < maxNamed; f = f.Next() {
		if name := f.Str(); name != "" && !hasText(stored, name) {
			warnOfFinalizer(w.Exchanges, name)
			named++
		}
	}
}

func hasText(list document.Node, s string) bool {
	for item := list.First(); item.Valid(); item = item.Next() {
		if item.Is(s) {
			return true
		}
	}
	return false
}

// warnOfFinalizer warns of the name of a new finalizer.
func warnOfFinalizer(e *storage.Exchanges, name string) {
	warn := func(why string) {
		e.Warn(fmt.Sprintf("metadata.finalizers: %q: %s", storage.Short(name), why))
	}
	for _, problem := range validation.IsQualifiedName(name) {
		warn(problem)
	}
	switch {
	case strings.Contains(name, "/"), name == metav1.FinalizerOrphanDependents,
		name == metav1.FinalizerDeleteDependents, name == "kubernetes":
	case strings.Contains(name, "."):
		warn("prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers")
	default:
		warn("prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers")
	}
}
