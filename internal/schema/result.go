package schema

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
)

// Result is what Validate found. The zero value is that of a valid object.
type Result struct {
	// Errors are the failures in the order of the document.
	Errors field.ErrorList
	// More is how many further failures there are.
	More int
	// Warnings are failures of CEL rules that an update may leave as they were.
	Warnings []string
	// Err is set when the request was over before all CEL rules were evaluated: a [*cel.Error]. The object is not
	// known to be valid then.
	Err error
}

// Valid tells whether everything was checked and nothing found.
func (r *Result) Valid() bool { return len(r.Errors) == 0 && r.Err == nil }

// Validate holds an object against its schema, and against the schema's CEL rules unless something is wrong that makes
// them meaningless. old is the object before an update, and invalid where there is none: failures of what an update
// leaves as it was do not count, as in Kubernetes.
//
// An error names its field, keeps copies of what it shows of the object, and shows no more than a few hundred bytes.
//
// The frame is for the rules, and may be nil where [Schema.HasRules] is false. Its budget is spent and its variables
// self and oldSelf are set.
func (s *Schema) Validate(f *cel.Frame, obj, old document.Node) Result {
	w := validators.Get().(*validator)
	defer w.release()
	w.update = old.Valid()
	w.locator = locator{top: obj, shape: s.root, meta: s.meta}
	s.shapes(w, obj, old)
	skipped := s.root.hasRules && w.failures.block()
	var warnings []string
	var err error
	if s.root.hasRules && !skipped {
		warnings, err = w.evaluate(s.root, f, obj, old)
	}
	r := w.result(obj)
	r.Warnings, r.Err = warnings, err
	if skipped {
		r.Errors = append(r.Errors, field.Invalid(nil, nil, skippedRules))
	}
	return r
}

// HasRules tells whether the schema has CEL rules.
func (s *Schema) HasRules() bool { return s.root.hasRules }

// NeedsOld tells whether the schema has CEL rules that compare an object with what it was before an update.
func (s *Schema) NeedsOld() bool { return s.root.needsOld }

// shapes is everything but CEL rules.
func (s *Schema) shapes(w *validator, obj, old document.Node) {
	if s.metadata != nil {
		if meta, found := obj.Lookup(metadataName); found {
			w.metadata(*s.metadata, meta)
		} else if !w.fails() {
			w.failures.add(failure{err: namelessFailure(field.NewPath("metadata", "name")), at: obj.Index(), class: ofResource})
		}
	}
	w.value(s.root, obj, old)
	if w.failures.listTypes && w.update && breaksListType(s.root, old) {
		w.failures.drop(mark{}, func(f failure) bool { return f.class != ofListType })
	}
	if s.scale != nil {
		w.scale(s.scale, obj)
	}
}

var metadataName = document.NewName("metadata")

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

// release gives the walk back, without anything of the object.
func (w *validator) release() {
	clear(w.failures.list)
	w.failures = failures{list: w.failures.list[:0]}
	w.failed, w.update, w.changes = false, false, 0
	w.locator = locator{}
	w.items.release()
	clear(w.repeated)
	validators.Put(w)
}

// breaksListType tells whether a list of type set or map repeats itself.
func breaksListType(s *Shape, v document.Node) bool {
	switch v.Kind() {
	case document.Object:
		for m := v.First(); m.Valid(); m = m.Next() {
			if child := s.child(m); child != nil && breaksListType(child, m) {
				return true
			}
		}
	case document.Array:
		if s.list != nil {
			repeated, misfit := s.list.repeats(nil, v, &keyedItems{})
			if len(repeated) > 0 || misfit.Valid() {
				return true
			}
		}
		if s.items == nil {
			return false
		}
		for n := v.First(); n.Valid(); n = n.Next() {
			if breaksListType(s.items, n) {
				return true
			}
		}
	}
	return false
}
