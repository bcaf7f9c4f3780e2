package plain

import (
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// A definition is the lowest layer: what is said of the resource.
type definition struct {
	Options
	status     resource.FieldPath // that only the status subresource may write; nil for none
	mediaTypes storage.MediaTypes

	createKeys, updateKeys dataKeys
}

// emulates reports whether the gateway supplies a capability that the backend lacks.
func (s *definition) emulates(c resource.Capabilities) bool {
	return s.Resource.Backend.Emulated&c != 0
}

// keeps reports whether the gateway supplies a capability in the metadata of objects of Kubernetes' form.
func (s *definition) keeps(c resource.Capabilities) bool {
	return s.emulates(c) && s.Resource.Envelope == resource.Kubernetes
}

// appliesPatches reports whether the gateway applies patches itself.
func (s *definition) appliesPatches() bool {
	return s.Resource.Backend.Patch == resource.PatchEmulated || s.Resource.Backend.Patch == resource.PatchValidated
}

// isRegistered reports whether a policy file describes the resource.
func (s *definition) isRegistered() bool { return s.Resource != &unregistered }

// Schema implements storage.Strategy.
func (s *definition) Schema(verb resource.Verb) *schema.Schema { return s.Schemas.For(verb) }

// MediaTypes implements storage.Strategy. As a server may, the gateway gives JSON to clients that ask for YAML, which
// it is.
func (s *definition) MediaTypes() *storage.MediaTypes { return &s.mediaTypes }

// StatusPath implements storage.Strategy.
func (s *definition) StatusPath() resource.FieldPath { return s.status }

// IsOpaque reports whether the body is a patch that is left to a backend which knows patches: the resource
// says so, and nothing has to be known of the object that results from it.
func (s *strategy) IsOpaque(i *resource.Info) bool {
	return i.Verb == resource.VerbPatch && !s.appliesPatches() && s.Schema(i.Verb) == nil && s.status == nil &&
		!s.readsToWrite() && !s.Policies.Concerns(i, admission.Update)
}

// OperationOptions implements storage.Strategy: a deletion has the options of its body, other writes have none.
func (s *strategy) OperationOptions(w *storage.Write, operation admission.Operation) (document.Node, error) {
	if operation != admission.Delete || w.Object == nil {
		return document.Node{}, nil
	}
	return w.Object.Root(), nil
}

// Reveal implements storage.Strategy. The gateway sets all of it itself.
func (s *strategy) Reveal(*storage.Write, bool) {}

// CheckOptions implements storage.Strategy. Nobody else reads these parameters.
func (s *strategy) CheckOptions(w *storage.Write) error {
	if w.Info.Query == "" || s.Resource.Envelope != resource.Kubernetes {
		return nil
	}
	var failures field.ErrorList
	if _, found := w.Info.Param("force"); found && w.Info.Verb == resource.VerbPatch {
		failures = append(failures, field.Forbidden(field.NewPath("force"), "may not be specified for non-apply patch"))
	}
	if manager, found := w.Info.Param("fieldManager"); found {
		failures = append(failures, metav1validation.ValidateFieldManager(storage.Short(manager), field.NewPath("fieldManager"))...)
	}
	if len(failures) == 0 {
		return nil
	}
	return status.Invalid(apischema.GroupKind{Group: "meta.k8s.io", Kind: w.Info.Verb.OptionsKind()}, "", failures, 0)
}

// Complete implements storage.Strategy.
func (s *strategy) Complete(w *storage.Write) error { return s.complete(w, true) }

// complete holds the object to the URL, and sets what it leaves out if the object is one of the resource.
func (s *strategy) complete(w *storage.Write, fills bool) error {
	if s.Resource.Envelope == resource.Bare {
		if s.Schema(w.Info.Verb).IsList() {
			return nil // the schema says what else it must be
		}
		return storage.CompleteBare(w)
	}
	if err := storage.CheckEnvelope(w.Object.Root()); err != nil {
		return err
	}
	d := storage.Identity{IsPatched: w.Info.Verb == resource.VerbPatch && s.appliesPatches()}
	if err := d.ReadType(w); err != nil {
		return err
	}
	if err := s.checkType(w, &d, fills); err != nil {
		return err
	}
	if err := d.ReadMetadata(w); err != nil {
		return err
	}
	if err := d.CheckMetadata(w); err != nil {
		return err
	}
	if fills {
		d.Fill(w)
	}
	return nil
}

// checkType compares kind and apiVersion with the resource. After a patch they are validated as
// Kubernetes does it: against what was there before.
func (s *strategy) checkType(w *storage.Write, d *storage.Identity, isObject bool) error {
	if !d.IsPatched || !isObject {
		return d.CheckType(w)
	}
	existing := w.Existing.Root()
	if d.Kind == "" && storage.TextIn(existing, "kind") != "" {
		return w.Unreadable("Object 'Kind' is missing")
	}
	var failures field.ErrorList
	if d.Kind != "" && d.Kind != s.Resource.Names.Kind {
		failures = append(failures, field.Invalid(field.NewPath("kind"), storage.Short(d.Kind), "must be "+s.Resource.Names.Kind))
	}
	expected := storage.GroupVersion(&w.Info)
	if d.APIVersion != expected && (d.APIVersion != "" || storage.TextIn(existing, "apiVersion") != "") {
		failures = append(failures, field.Invalid(field.NewPath("apiVersion"), storage.Short(d.APIVersion), "must be "+expected))
	}
	if len(failures) > 0 {
		return w.Request.Invalid(w.Info.Name, failures, 0)
	}
	return nil
}

// CheckKeys refuses an object with two keys that differ in case alone: policies judge one of them, and a backend that
// folds case, as many do, takes the other one.
func (s *strategy) CheckKeys(w *storage.Write) error {
	keys := &s.updateKeys
	if w.Info.Verb == resource.VerbCreate {
		keys = &s.createKeys
	}
	first, second := w.Object.Root().CaseTwins(keys)
	if !first.Valid() {
		return nil
	}
	where := "the body"
	if path := first.Parent().Path(); path != "" {
		where = "`" + storage.Short(path) + "`"
	}
	return status.BadRequest("the keys '%s' and '%s' in %s differ in case alone, so that two readers may take different ones: send one of them, "+
		"or name the map in `dataMaps` of the resource if its keys are data", storage.Short(first.Key()), storage.Short(second.Key()), where)
}

// PrepareForCreate implements storage.Strategy: a client's status never counts (STAT-1), nor does a uid
// (META-1).
func (s *strategy) PrepareForCreate(w *storage.Write) error {
	s.warnOfStatus(w)
	if err := s.protectStatus(w); err != nil {
		return err
	}
	s.dropSystemMetadata(w)
	return nil
}

// PrepareForUpdate implements storage.Strategy.
func (s *strategy) PrepareForUpdate(w *storage.Write) error {
	if err := s.checkVersion(w); err != nil {
		return err
	}
	s.warnOfStatus(w)
	if err := s.protectStatus(w); err != nil {
		return err
	}
	if err := s.carryOver(w); err != nil {
		return err
	}
	if w.Existing.IsAbsent {
		s.dropSystemMetadata(w)
	}
	return nil
}

// carryOver completes an update by what is stored: immutable fields that are left out (DEF-7), and members
// of unions that a new discriminator makes stale (VAL-6).
func (s *strategy) carryOver(w *storage.Write) error {
	schema := s.Schema(w.Info.Verb)
	if schema == nil || w.Existing.IsAbsent {
		return nil
	}
	if w.Existing.Object == nil && schema.Stale(w.Object.Root()) {
		if err := s.Get(w); err != nil {
			return err
		}
	}
	if w.Existing.Object != nil {
		schema.Carry(w.Object, w.Existing.Root(), w.Info.Verb == resource.VerbPatch)
	}
	return nil
}

// keepsStatus reports whether it is the gateway that keeps the status apart.
func (s *definition) keepsStatus() bool { return s.emulates(resource.StatusSubresource) }

// protectStatus takes a status that the client sent out of the object, and puts the stored one in its place,
// so that a PUT leaves it as it is (STAT-1).
func (s *strategy) protectStatus(w *storage.Write) error {
	if s.status == nil {
		return nil
	}
	if sent, found := storage.Find(w.Object.Root(), s.status); found {
		w.Object.Remove(sent)
	}
	if w.Existing.Object == nil || !s.keepsStatus() {
		return nil
	}
	stored, found := storage.Find(w.Existing.Root(), s.status)
	if !found {
		return nil
	}
	return s.misplace(w, storage.SetAt(w.Object, s.status, stored.Raw()))
}

// warnOfStatus tells a client of an ordinary API, which may know of no status, that the one it sent is dropped. A client
// of Kubernetes knows, and one that sends the stored one loses nothing.
func (s *strategy) warnOfStatus(w *storage.Write) {
	sent, found := storage.Find(w.Object.Root(), s.status)
	if !found || s.Resource.Envelope != resource.Bare || !s.isRegistered() {
		return
	}
	if stored, _ := storage.Find(w.Existing.Root(), s.status); stored.Valid() && document.EqualNodes(sent, stored) {
		return
	}
	w.Request.Warn("`" + storage.PathString(s.status) + "` may be written by the API alone: the value that was sent was dropped")
}

// misplace notes that something stands where the status has to. With a schema that is said together with
// everything else that is wrong.
func (s *strategy) misplace(w *storage.Write, err error) error {
	w.Misplaced = storage.AsMisplaced(err)
	if s.Schema(w.Info.Verb) != nil {
		return nil
	}
	return w.Request.Unplaced(&w.Info, w.Misplaced)
}

// KeepStatus implements storage.Strategy.
func (s *strategy) KeepStatus(w *storage.Write) error {
	if s.status == nil {
		return nil
	}
	var stored document.Node
	if w.Existing.Object != nil && s.keepsStatus() {
		stored, _ = storage.Find(w.Existing.Root(), s.status)
	}
	if set, _ := storage.Find(w.Object.Root(), s.status); document.EqualNodes(set, stored) {
		return nil
	}
	return s.protectStatus(w)
}

// Validate implements storage.Strategy.
func (s *strategy) Validate(schema *schema.Schema, f *cel.Frame, w *storage.Write) schema.Result {
	return schema.Validate(f, w.Object.Root(), w.Existing.Root())
}
