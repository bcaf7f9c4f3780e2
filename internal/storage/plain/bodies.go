package plain

import (
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// objectBodies are the bodies of objects of the resource, and of patches of them.
type objectBodies struct{ a *access }

// IsOpaque reports whether the body is a patch that is left to a backend which knows patches: the resource
// says so, and nothing has to be known of the object that results from it.
func (s objectBodies) IsOpaque(i *resource.Info) bool {
	return s.a.leavesPatch(i) && !readsToWrite(s.a.Resource)
}

// CheckOptions implements storage.Strategy.
func (s objectBodies) CheckOptions(w *storage.Write) error { return checkOptions(s.a.Resource, w) }

// Complete implements storage.Strategy.
func (s objectBodies) Complete(w *storage.Write) error { return s.a.complete(w, true) }

// patchedBodies are the bodies of objects at a backend that has PATCH itself.
type patchedBodies struct{ a *access }

// IsOpaque implements storage.Strategy. A patch passes unchanged if nothing depends on its result.
func (s patchedBodies) IsOpaque(i *resource.Info) bool {
	return i.Verb == resource.VerbPatch && !i.Options.DryRun && s.a.admitsAnyPatch() &&
		!storage.IsConcerned(s.a.Policies, i)
}

// CheckOptions implements storage.Strategy.
func (s patchedBodies) CheckOptions(w *storage.Write) error { return checkOptions(s.a.Resource, w) }

// Complete implements storage.Strategy.
func (s patchedBodies) Complete(w *storage.Write) error { return s.a.complete(w, true) }

// leavesPatch reports whether the body is a patch that is left to a backend which knows patches.
func (c *collection) leavesPatch(i *resource.Info) bool {
	return i.Verb == resource.VerbPatch && !appliesPatches(c.Resource) && c.schema(i.Verb) == nil && c.status == nil &&
		!c.Policies.Concerns(i, admission.Update)
}

// admitsAnyPatch reports whether no patch of an object is invalid, and none has to be completed.
func (c *collection) admitsAnyPatch() bool {
	return c.schema(resource.VerbPatch) == nil && c.status == nil && c.Resource.Fields.Name == nil &&
		c.Resource.Fields.Version == nil
}

// checkOptions refuses parameters of a write that only the gateway would read.
func checkOptions(r *resource.Resource, w *storage.Write) error {
	if w.Info.Query == "" || r.Envelope != resource.Kubernetes {
		return nil
	}
	var failures field.ErrorList
	if _, found := w.Info.Param("force"); found && w.Info.Verb == resource.VerbPatch {
		failures = append(failures, field.Forbidden(field.NewPath("force"), "may not be specified for non-apply patch"))
	}
	if manager, found := w.Info.Param("fieldManager"); found {
		failures = append(failures, metav1validation.ValidateFieldManager(storage.Short(manager),
			field.NewPath("fieldManager"))...)
	}
	if len(failures) == 0 {
		return nil
	}
	return status.Invalid(apischema.GroupKind{Group: "meta.k8s.io", Kind: w.Info.Verb.OptionsKind()}, "", failures, 0)
}

// complete checks the object against the URL, and sets what it leaves out if the object is one of
// the resource.
func (c *collection) complete(w *storage.Write, fills bool) error {
	if c.Resource.Envelope == resource.Bare {
		of, kind := c.Schemas.Of(w), w.Object.Root().Kind()
		if of.IsList() || w.Declared != nil && kind != document.Object && of.Accepts(kind) {
			return nil // the schema says what else it must be
		}
		return storage.CompleteBare(w)
	}
	d := storage.Identity{IsPatched: w.Info.Verb == resource.VerbPatch && appliesPatches(c.Resource)}
	if err := d.ReadType(w); err != nil {
		return err
	}
	if err := checkType(c.Resource, w, &d, fills); err != nil {
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
func checkType(r *resource.Resource, w *storage.Write, d *storage.Identity, isObject bool) error {
	if !d.IsPatched || !isObject {
		return d.CheckType(w)
	}
	existing := w.Existing.Root()
	if d.Kind == "" && storage.TextIn(existing, "kind") != "" {
		return w.Unreadable("Object 'Kind' is missing")
	}
	var failures field.ErrorList
	if d.Kind != "" && d.Kind != r.Names.Kind {
		failures = append(failures, field.Invalid(field.NewPath("kind"), storage.Short(d.Kind),
			"must be "+r.Names.Kind))
	}
	expected := storage.GroupVersion(&w.Info)
	if d.APIVersion != expected && (d.APIVersion != "" || storage.TextIn(existing, "apiVersion") != "") {
		failures = append(failures, field.Invalid(field.NewPath("apiVersion"), storage.Short(d.APIVersion),
			"must be "+expected))
	}
	if len(failures) > 0 {
		return w.Invalid(w.Info.Name, failures, 0)
	}
	return nil
}

// checkKeys refuses an object with two keys that differ in case alone: policies judge one of them, and a backend that
// folds case, as many do, takes the other one.
func (c *collection) checkKeys(w *storage.Write) error {
	keys := &c.keys.update
	switch w.Info.Verb {
	case resource.VerbCreate:
		keys = &c.keys.create
	case resource.VerbPatch:
		keys = &c.keys.patch
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
		"or name the map in `dataMaps` of the resource if its keys are data", storage.Short(first.Key()),
		storage.Short(second.Key()), where)
}
