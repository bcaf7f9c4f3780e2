package kubernetes

import (
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// Schema implements storage.Strategy.
func (s *Store) Schema(w *storage.Write) *schema.Schema { return s.Schemas.Of(w) }

// mediaTypes are the types of everything at an API server, as it lists them: protobuf for custom resources too, which
// have none.
var mediaTypes = storage.MediaTypes{
	Untyped: storage.JSON, // as API servers read it, and client-go's client of scales sends it
	Objects: storage.JSON + ", " + storage.YAML + ", " + storage.Protobuf,
	Patches: storage.JSONPatchType + ", " + storage.MergePatchType + ", " + storage.StrategicMergePatchType + ", " +
		storage.ApplyPatchType,
	CBOR:   true,
	Unread: true,
	Errors: storage.YAML + ", " + storage.Protobuf + ", " + storage.CBOR,
}

// MediaTypes implements storage.Strategy.
func (s *Store) MediaTypes() *storage.MediaTypes { return &mediaTypes }

// StatusPath implements storage.Strategy.
func (s *Store) StatusPath() resource.FieldPath { return s.Status }

// IsOpaque implements storage.Strategy.
func (s *Store) IsOpaque(i *resource.Info) bool {
	if i.Verb.Operation() == admission.Delete { // with options, which no schema describes
		return s.Resource == nil && !s.Policies.Concerns(i, admission.Delete)
	}
	return s.Resource == nil && s.Status == nil && !s.ChecksNames && !storage.IsConcerned(s.Policies, i)
}

// CheckOptions implements storage.Strategy. The server checks its own options.
func (s *Store) CheckOptions(*storage.Write) error { return nil }

// Reveal implements storage.Strategy.
func (s *Store) Reveal(w *storage.Write, validates bool) {
	metadata := storage.Metadata(w.Object)
	isWhole := storage.TextIn(metadata, "name") != "" && (w.Info.ObjectNamespace() == "" ||
		storage.TextIn(metadata, "namespace") != "")
	if w.Object != nil {
		apiVersion, kind := storage.UnsaidType(w.Object.Root(), w.Served)
		isWhole = isWhole && apiVersion == "" && kind == ""
	}
	if !isWhole && (s.Resource == nil || s.Resource.Envelope == resource.Kubernetes) {
		w.Reveal(validates)
	}
}

// Complete implements storage.Strategy. The server itself sets what the object leaves out.
func (s *Store) Complete(w *storage.Write) error {
	if s.Resource != nil && s.Resource.Envelope == resource.Bare {
		return storage.CompleteBare(w)
	}
	if err := storage.CheckIdentity(w); err != nil || !s.ChecksNames {
		return err
	}
	return storage.CheckName(w)
}

// CheckKeys implements storage.Strategy. API servers do not fold case, and store both of two such keys.
func (s *Store) CheckKeys(*storage.Write) error { return nil }

// getStale reads the stored object if a member of a union may be stale, which only that object
// shows.
func (s *Store) getStale(w *storage.Write) error {
	schema := s.Schema(w)
	if schema == nil || w.Existing.IsAbsent || w.Existing.Object != nil || !schema.Stale(w.Object.Root()) {
		return nil
	}
	return s.Get(w)
}

// checkVersion refuses an update of a custom resource that names no version, as the server would.
func (s *Store) checkVersion(w *storage.Write) error {
	if !s.needsVersion(w, storage.TextIn(storage.Metadata(w.Object), "resourceVersion")) {
		return nil
	}
	kind := apischema.GroupKind{Group: w.Info.Group, Kind: w.Info.Resource}
	at := field.NewPath("metadata", "resourceVersion")
	return status.Invalid(kind, w.Info.Name, field.ErrorList{field.Invalid(at, 0, "must be specified for an update")},
		0)
}

// needsVersion reports whether the server refuses a PUT of an object with this resourceVersion because it
// names none: custom resources are updated by version alone.
func (s *Store) needsVersion(w *storage.Write, named string) bool {
	return (named == "" || named == "0") && w.Info.Verb == resource.VerbUpdate && s.replacesExactly()
}

// unversioned returns how the server handles a write that names no version: it refuses it for
// custom resources, and takes it for most of its own kinds. Of what no policy file describes only
// the server knows.
func (s *Store) unversioned(w *storage.Write) storage.Unversioned {
	if w.Info.Verb != resource.VerbUpdate {
		return storage.Unversioned{}
	}
	isRefused := s.replacesExactly()
	isTaken := !s.hasOwnKind && s.Resource != nil && s.Resource.Writes.UnconditionalUpdate
	return storage.Unversioned{ZeroIsNone: true, IsRefused: isRefused, IsUncertain: !isRefused && !isTaken}
}

// replacesExactly reports whether a PUT neither creates nor overwrites.
func (s *Store) replacesExactly() bool {
	r := s.Resource
	return !s.hasOwnKind && r != nil && r.Envelope == resource.Kubernetes && !r.Writes.CreateOnUpdate &&
		!r.Writes.UnconditionalUpdate
}

// PrepareForCreate implements storage.Strategy.
func (s *Store) PrepareForCreate(w *storage.Write) error {
	s.strategy.prepareForCreate(s, w)
	return nil
}

// PrepareForUpdate implements storage.Strategy.
func (s *Store) PrepareForUpdate(w *storage.Write) error {
	return s.strategy.prepareForUpdate(s, w)
}

// KeepStatus implements storage.Strategy.
func (s *Store) KeepStatus(w *storage.Write) error {
	s.strategy.keepStatus(s, w)
	return nil
}

// Validate implements storage.Strategy.
func (s *Store) Validate(schema *schema.Schema, f *cel.Frame, w *storage.Write) schema.Result {
	return s.strategy.validate(schema, f, w)
}

// Preview implements storage.Creater. The result of a patch is known already, but for the changes
// of policies.
func (s *Store) Preview(w *storage.Write) error {
	switch {
	case w.Patch != nil:
		s.recount(w)
	case w.Existing.Object != nil && s.showsCarried(&w.Info):
		s.strategy.carry(s, w)
	case s.PreviewsWrites:
		return preview(s, w)
	}
	return nil
}

// SetMetadata implements storage.Strategy. The server owns the metadata.
func (s *Store) SetMetadata(*storage.Write) {}

// ValidateMetadata implements storage.Strategy. The server does it.
func (s *Store) ValidateMetadata(*storage.Write) field.ErrorList { return nil }

// Warn implements storage.Strategy. The server warns itself.
func (s *Store) Warn(*storage.Write) {}

// A strategy is what stores of objects, of their status and of other subresources do differently.
// Each method implements the exported method of Store with the same name.
type strategy interface {
	prepareForCreate(s *Store, w *storage.Write)
	prepareForUpdate(s *Store, w *storage.Write) error
	keepStatus(s *Store, w *storage.Write)
	validate(schema *schema.Schema, f *cel.Frame, w *storage.Write) schema.Result
	// carry makes the object that validating policies see of a PUT, with what the server carries over to it.
	carry(s *Store, w *storage.Write)
	// changes reports whether the gateway may have to change what the client sent.
	changes(s *Store) bool
}

// objectStrategy is the strategy of whole objects.
type objectStrategy struct{}

// prepareForCreate takes the client's status out (STAT-1).
func (objectStrategy) prepareForCreate(s *Store, w *storage.Write) { dropStatus(s, w) }

func (objectStrategy) prepareForUpdate(s *Store, w *storage.Write) error {
	if err := s.checkVersion(w); err != nil {
		return err
	}
	dropStatus(s, w)
	if err := s.getStale(w); err != nil {
		return err
	}
	if schema := s.Schema(w); schema != nil && w.Existing.Object != nil {
		schema.Carry(w.Object, w.Existing.Object.Root(), false)
	}
	return nil
}

func (objectStrategy) keepStatus(s *Store, w *storage.Write) { dropStatus(s, w) }

func (objectStrategy) validate(schema *schema.Schema, f *cel.Frame, w *storage.Write) schema.Result {
	return schema.Validate(f, w.Object.Root(), w.Existing.Root())
}

func (objectStrategy) carry(s *Store, w *storage.Write) { s.carry(w) }

func (objectStrategy) changes(s *Store) bool { return s.Resource != nil || s.Status != nil }

func dropStatus(s *Store, w *storage.Write) {
	if sent, found := storage.Find(w.Object.Root(), s.Status); found {
		w.Object.Remove(sent)
	}
}

// statusStrategy is the strategy of the status of objects. The server takes the rest from what is
// stored.
type statusStrategy struct{}

func (statusStrategy) prepareForCreate(*Store, *storage.Write) {}

func (statusStrategy) prepareForUpdate(s *Store, w *storage.Write) error {
	if err := s.checkVersion(w); err != nil {
		return err
	}
	if err := s.getStale(w); err != nil {
		return err
	}
	if schema := s.Schema(w); schema != nil && w.Existing.Object != nil {
		schema.CarryStatus(w.Object, w.Existing.Object.Root(), false)
	}
	return nil
}

func (statusStrategy) keepStatus(*Store, *storage.Write) {}

func (statusStrategy) validate(schema *schema.Schema, f *cel.Frame, w *storage.Write) schema.Result {
	return schema.ValidateStatus(f, w.Object.Root(), w.Existing.Root())
}

func (statusStrategy) carry(s *Store, w *storage.Write) { s.carryStatus(w) }

// changes reports false for what no file describes: nothing is changed in a body of the status
// alone.
func (statusStrategy) changes(s *Store) bool { return s.Resource != nil }

// subresourceStrategy is the strategy of a subresource whose object is of a kind of its own, such
// as a Scale.
type subresourceStrategy struct{}

func (subresourceStrategy) prepareForCreate(*Store, *storage.Write) {}

func (subresourceStrategy) prepareForUpdate(*Store, *storage.Write) error { return nil }

func (subresourceStrategy) keepStatus(*Store, *storage.Write) {}

func (subresourceStrategy) validate(schema *schema.Schema, f *cel.Frame, w *storage.Write) schema.Result {
	return schema.Validate(f, w.Object.Root(), w.Existing.Root())
}

func (subresourceStrategy) carry(_ *Store, w *storage.Write) { carryScale(w) }

func (subresourceStrategy) changes(*Store) bool { return false }
