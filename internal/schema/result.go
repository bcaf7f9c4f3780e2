package schema

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/list"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// Result holds the findings of Validate. The zero value says that an object is valid.
type Result struct {
	// Errors are the failures in the order of the document.
	Errors field.ErrorList
	// More is how many further failures there are.
	More int
	// Details say more about some of the Errors: which items fail rules whose authors have a message of their own.
	Details field.ErrorList
	// Warnings are failures of CEL rules that an update may leave as they were.
	Warnings []string
	// Err is set when the request was over before all CEL rules were evaluated: a [*cel.Error]. The object is not
	// known to be valid then.
	Err error
}

// Valid reports whether everything was checked and nothing found.
func (r *Result) Valid() bool { return len(r.Errors) == 0 && r.Err == nil }

// Validate checks an object against its schema, and against the schema's CEL rules unless something
// is wrong that makes them meaningless. old is the object before an update, and invalid if there is
// none: failures of what an update leaves as it was do not count, as in Kubernetes.
//
// An error names its field, keeps copies of what it shows of the object, and shows no more than a few hundred bytes.
//
// The frame is for the rules, and may be nil if [Schema.HasRules] is false. Its budget is spent and
// its variables self and oldSelf are set.
func (s *Schema) Validate(f *cel.Frame, obj, old document.Node) Result {
	return s.validate(f, obj, old, nil)
}

func (s *Schema) validate(f *cel.Frame, obj, old document.Node, p *patched) Result {
	w := s.validator(obj, old)
	defer w.release()
	if s.metadata != nil {
		if meta, found := obj.Lookup(metadataName); found {
			if !w.trusting || !meta.Marked(document.Sound) {
				w.metadata(*s.metadata, meta)
			}
		} else if !w.fails() {
			w.failures.add(failure{err: wording.Nameless(field.NewPath("metadata", "name")), at: obj.Index(),
				class: ofResource})
		}
	}
	if s.check != nil {
		w.check(s, obj, obj)
		w.listTypes(s.root, obj)
	} else if !w.passes(s.root, obj) {
		w.value(s.root, obj, old)
	}
	w.dropListTypes(s.root, old)
	w.extended(s.root, obj, old)
	if s.scale != nil {
		s.scale.spec.checkReplicas(w, obj)
		s.scale.checkStatus(w, obj)
	}
	if p != nil && old.Valid() {
		w.forgive(s, p, obj, old)
	}
	return w.finish(s.root, f, obj, old)
}

// ValidateStatus checks only the status of an object against its schema, and against the CEL rules
// within it: on a write to the status subresource nothing else of what is sent counts. An object
// that is put together from what is stored and what was sent is better checked against the whole
// schema with [Schema.Validate].
func (s *Schema) ValidateStatus(f *cel.Frame, obj, old document.Node) Result {
	w := s.validator(obj, old)
	defer w.release()
	v, found := obj.Lookup(statusName)
	shape := s.root.child(v)
	if !found || shape == nil {
		return Result{}
	}
	before, _ := old.Lookup(statusName)
	if s.check != nil {
		w.check(s, obj, v)
		w.listTypes(shape, v)
	} else if !w.passes(shape, v) {
		w.value(shape, v, before)
	}
	w.dropListTypes(shape, before)
	w.extended(shape, v, before)
	if s.scale != nil {
		s.scale.checkStatus(w, obj)
	}
	return w.finish(shape, f, v, before)
}

// validator begins a walk.
func (s *Schema) validator(obj, old document.Node) *validator {
	w := validators.Get().(*validator)
	w.begin(s, obj, old)
	return w
}

func (w *validator) begin(s *Schema, obj, old document.Node) {
	w.update = old.Valid()
	w.trusting = obj.Document().NotedBy(s.notes)
	w.locator = locator{top: obj, shape: s.root, meta: s.meta}
}

// dropListTypes drops failures of list types if the old value broke them too, as Kubernetes does.
func (w *validator) dropListTypes(s *Shape, old document.Node) {
	if w.failures.listTypes && old.Valid() && breaksListType(s, old) {
		w.failures.drop(mark{}, func(f failure) bool { return f.class != ofListType })
	}
}

// finish evaluates the CEL rules about a value and in it, and hands out what was found.
func (w *validator) finish(s *Shape, f *cel.Frame, v, old document.Node) Result {
	skipped := s.rulesIn != noRules && w.failures.block()
	var warnings []string
	var details field.ErrorList
	var err error
	if s.rulesIn != noRules && !skipped {
		warnings, details, err = w.evaluate(s, f, v, old)
	}
	r := w.result(v)
	r.Warnings, r.Details, r.Err = warnings, details, err
	if skipped {
		r.Errors = append(r.Errors, field.Invalid(nil, nil, skippedRules))
	}
	return r
}

// HasRules reports whether the schema has CEL rules.
func (s *Schema) HasRules() bool { return s.root.rulesIn != noRules }

// NeedsOld reports whether the schema compares an object with what it was before an update: in CEL rules, or because
// values are immutable.
func (s *Schema) NeedsOld() bool { return s.root.rulesIn == rulesOnOld || hasImmutable(s.root) }

var (
	metadataName = document.NewName("metadata")
	statusName   = document.NewName("status")
)

// result hands the failures out.
func (w *validator) result(root document.Node) Result {
	if len(w.failures.list) == 0 {
		return Result{}
	}
	w.failures.sort(root)
	r := Result{More: w.failures.more, Errors: make(field.ErrorList, 0, len(w.failures.list))}
	for _, f := range w.failures.list {
		r.Errors = append(r.Errors, f.err)
	}
	return r
}

// keptDecoded bounds the room for a decoded string that a walk that is given back keeps.
const keptDecoded = 4 << 10

// release gives the walk back.
func (w *validator) release() {
	w.forget()
	validators.Put(w)
}

// forget clears what the walk has of the object.
func (w *validator) forget() {
	clear(w.failures.list)
	w.failures = failures{list: w.failures.list[:0]}
	w.failed, w.update, w.trusting, w.probing, w.changes = false, false, false, 0, 0
	w.locator = locator{}
	w.items.Release()
	clear(w.repeated)
	if cap(w.decoded) > keptDecoded {
		w.decoded = nil
	}
}

// breaksListType reports whether a list of type set or map repeats itself.
func breaksListType(s *Shape, v document.Node) bool {
	switch v.Kind() {
	case document.Object:
		for m := v.First(); m.Valid(); m = m.Next() {
			if child := s.child(m); child != nil && breaksListType(child, m) {
				return true
			}
		}
	case document.Array:
		if s.list.kind != nil {
			repeated, misfit := s.list.kind.Repeats(nil, v, &list.Items{})
			if len(repeated) > 0 || misfit.Valid() {
				return true
			}
		}
		if s.list.items == nil {
			return false
		}
		for n := v.First(); n.Valid(); n = n.Next() {
			if breaksListType(s.list.items, n) {
				return true
			}
		}
	}
	return false
}

// CheckLiteral checks a value in a policy against the shape of its field. It looks at that value
// alone, so CEL rules do not run. A nil shape takes any. Fields of errors are within the value.
func (s *Schema) CheckLiteral(shape *Shape, value document.Node) field.ErrorList {
	if shape == nil {
		return nil
	}
	w := s.validator(value, document.Node{})
	defer w.release()
	w.trusting = false
	w.locator = locator{top: value, shape: shape, meta: s.meta}
	if shape.check != nil {
		w.found(shape.check.Check(value, s.use), value)
	} else {
		w.value(shape, value, document.Node{})
	}
	return w.result(value).Errors
}
