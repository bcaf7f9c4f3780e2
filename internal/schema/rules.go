package schema

import (
	"errors"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cel/explain"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// celRules are the rules of one shape.
type celRules struct {
	compiled *cel.Rules
	rules    []rule // of these
	typeName string // as errors show values that cannot be shown
}

// rule is a rule with what explains why it does not hold.
type rule struct {
	*cel.Rule
	explanation *explain.Explanation
}

func newRules(st *structuralschema.Structural, resourceRoot bool) (*celRules, error) {
	if len(st.XValidations) == 0 {
		return nil, nil
	}
	compiled, checked, errs := cel.CompileRules(st.XValidations, st, resourceRoot,
		field.NewPath("x-kubernetes-validations"))
	if len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	rules := make([]rule, len(compiled.Rules))
	for i, explanation := range explain.OfRules(checked) {
		rules[i] = rule{&compiled.Rules[i], explanation}
	}
	return &celRules{compiled: compiled, rules: rules, typeName: st.Type}, nil
}

// predecessor is a value with what it was before an update.
type predecessor struct {
	shape      *Shape
	value, old document.Node
}

func (p predecessor) unchanged() bool {
	return p.old.Valid() && unchanged(p.shape, p.value, p.old)
}

// evaluator is the walk that evaluates CEL rules.
type evaluator struct {
	walk     *validator // which adds what it finds
	frame    *cel.Frame
	vars     *cel.Vars
	warnings []string
	violated []violation
	details  field.ErrorList
	err      error // the request is over
	stopped  bool  // nothing more may be evaluated

	around          document.Node // the value that tolerates compared last
	aroundUnchanged bool
}

const (
	skippedRules = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
	outOfBudget  = "validation failed due to running out of cost budget, no further validation rules will be run"
)

// evaluate evaluates the rules of a whole object. Their cost has a budget of its own.
func (w *validator) evaluate(s *Shape, f *cel.Frame, obj,
	old document.Node) (warnings []string, details field.ErrorList, err error) {
	f.SetBudget(cel.PolicyBudget)
	e := evaluator{walk: w, frame: f, vars: f.Vars()}
	e.value(s, obj, old, predecessor{})
	for i := range e.violated {
		e.explain(&e.violated[i])
	}
	e.vars.Set(value.Self, document.Node{}, nil)
	e.vars.Set(value.OldSelf, document.Node{}, nil)
	return e.warnings, e.details, e.err
}

// value evaluates the rules about a value and everything in it. nearest is the closest value around
// it whose earlier value is known.
func (e *evaluator) value(s *Shape, v, old document.Node, nearest predecessor) {
	kind := v.Kind()
	if kind == document.Null {
		return
	}
	if s.rules != nil {
		e.rules(s, v, old, nearest)
	}
	if old.Valid() {
		nearest = predecessor{s, v, old}
	}
	switch kind {
	case document.Object:
		e.members(s, v, old, nearest)
	case document.Array:
		e.items(s, v, old, nearest)
	}
}

func (e *evaluator) members(s *Shape, v, old document.Node, nearest predecessor) {
	for m := v.First(); m.Valid() && !e.stopped; m = m.Next() {
		child := s.child(m)
		if child == nil || child.rulesIn == noRules {
			continue
		}
		var before document.Node
		if old.Valid() {
			before, _ = old.Get(m.Key())
		}
		e.value(child, m, before, nearest)
	}
}

func (e *evaluator) items(s *Shape, v, old document.Node, nearest predecessor) {
	if s.list.items == nil || s.list.items.rulesIn == noRules {
		return
	}
	previous := s.list.kind.Predecessors(old)
	for n := v.First(); n.Valid() && !e.stopped; n = n.Next() {
		e.value(s.list.items, n, previous.Of(n), nearest)
	}
}

// rules evaluates the rules about one value.
func (e *evaluator) rules(s *Shape, v, old document.Node, nearest predecessor) {
	hasOld := e.bind(s.rules.compiled, v, old)
	for i := range s.rules.rules {
		r := &s.rules.rules[i]
		if e.stopped {
			return
		}
		if !r.Applies(hasOld) {
			continue
		}
		ok, err := r.Program.EvalBool(e.frame, e.vars)
		if err != nil {
			e.broken(s.rules, r, v, err)
		} else if !ok {
			e.violate(s, r, v, old, nearest)
		}
	}
}

// bind makes a value what rules are about; it reports whether there is one before it.
func (e *evaluator) bind(rules *cel.Rules, v, old document.Node) bool {
	e.vars.Set(value.Self, v, rules.Type)
	if !old.Valid() || old.Kind() == document.Null {
		e.vars.Set(value.OldSelf, document.Node{}, nil)
		return false
	}
	e.vars.Set(value.OldSelf, old, rules.Type)
	return true
}

// broken adds the failure of a rule that has no value: it is an error whatever else is right.
func (e *evaluator) broken(rules *celRules, r *rule, v document.Node, err error) {
	detail := err.Error()
	var failure *cel.Error
	if errors.As(err, &failure) {
		switch {
		case failure.Cause == value.Cancelled:
			e.err, e.stopped = err, true
			return
		case failure.Cause == value.OverBudget:
			detail, e.stopped = outOfBudget, true
		case failure.Cause == value.OverLimit:
			detail, e.stopped = "'"+failure.Detail+"': no further validation rules will be run due to call cost exceeds limit for rule: "+named(r), true
		case strings.HasPrefix(failure.Detail, "no such overload"):
			detail = "'" + failure.Detail + "': call arguments did not match a supported operator, function or macro signature for rule: " + named(r)
		default:
			detail = failure.Detail + " evaluating rule: " + named(r)
		}
	}
	if !e.walk.fails() {
		e.walk.add(v, field.Invalid(e.walk.path(v), rules.typeName, detail))
	}
}

// named is how messages call a rule.
func named(r *rule) string {
	if r.Message != "" {
		return r.Message
	}
	return r.Source
}

// violate adds the failure of a rule that does not hold.
func (e *evaluator) violate(s *Shape, r *rule, v, old document.Node, nearest predecessor) {
	tolerated := !r.UsesOldSelf && e.walk.update && e.tolerates(predecessor{s, v, old}, nearest)
	if tolerated && len(e.warnings) >= maxFailures || !tolerated && e.walk.fails() {
		return // there are enough to show
	}
	detail, err := r.EvalMessage(e.frame, e.vars)
	if err != nil {
		e.broken(s.rules, r, v, err)
		return
	}
	x := violation{rules: s.rules.compiled, rule: r, value: v, old: old, worded: detail != "" || r.Message != "" ||
		r.HasMessageExpression(), warning: -1}
	if detail == "" {
		if detail = r.Message; detail == "" {
			detail = "failed rule: " + r.Source
		}
	}
	x.failure, x.detail = e.failure(s, r, v, detail), detail
	if tolerated {
		x.warning = len(e.warnings)
		e.warnings = append(e.warnings, x.failure.Error())
	} else {
		e.walk.add(v, x.failure)
	}
	e.violated = append(e.violated, x)
}

// tolerates reports whether an update leaves a value as it was, or what is around it if it was
// nothing by itself. The values that are next to each other have the same around them, which is not
// compared again for each.
func (e *evaluator) tolerates(current, nearest predecessor) bool {
	if current.old.Valid() {
		return current.unchanged()
	}
	if e.around != nearest.value || !nearest.value.Valid() {
		e.around, e.aroundUnchanged = nearest.value, nearest.unchanged()
	}
	return e.aroundUnchanged
}

func (e *evaluator) failure(s *Shape, r *rule, v document.Node, detail string) *field.Error {
	path := e.fieldOf(r, v)
	var value any = wording.Omitted
	if t := s.rules.typeName; t != "object" && t != "array" {
		value = wording.Shown(v)
	}
	if r.Reason != nil {
		switch *r.Reason {
		case apiextensionsv1.FieldValueForbidden:
			return field.Forbidden(path, detail)
		case apiextensionsv1.FieldValueRequired:
			return field.Required(path, detail)
		case apiextensionsv1.FieldValueDuplicate:
			return field.Duplicate(path, value)
		}
	}
	return field.Invalid(path, value, detail)
}

// fieldOf is the field that the rule names, or the value that it constrains. For a rule of the
// whole object that names none it is what all its paths have in common.
func (e *evaluator) fieldOf(r *rule, v document.Node) *field.Path {
	path, rest := e.walk.path(v), r.FieldPath
	if path == nil && rest == "" {
		rest = r.explanation.Field()
	}
	if rest == "" {
		return path
	}
	return field.NewPath(below(path, rest))
}

// below is the path of a field of the value at another path.
func below(path *field.Path, rest string) string {
	switch {
	case path == nil:
		return rest
	case rest == "" || strings.HasPrefix(rest, "["):
		return path.String() + rest
	}
	return path.String() + "." + rest
}

// blocks reports whether a failure makes CEL rules meaningless, as Kubernetes has it: a type, a required field, an
// enumeration, or more than there may be.
func blocks(err *field.Error) bool {
	switch err.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany,
		field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}

func (f *failures) block() bool {
	if f.more > 0 {
		return true
	}
	for _, x := range f.list {
		if blocks(x.err) {
			return true
		}
	}
	return false
}

// Programs are all expressions of the schema: rules with their messages, and
// computed defaults.
func (s *Schema) Programs() []*cel.Program {
	all := s.root.programs(nil, map[*Shape]bool{})
	for i := range s.derived {
		all = append(all, s.derived[i].Programs()...)
	}
	return all
}

func (s *Shape) programs(all []*cel.Program, seen map[*Shape]bool) []*cel.Program {
	if s == nil || s.rulesIn == noRules || seen[s] {
		return all
	}
	seen[s] = true
	if s.rules != nil {
		for i := range s.rules.compiled.Rules {
			all = append(all, s.rules.compiled.Rules[i].Programs()...)
		}
	}
	for i := range s.object.properties {
		all = s.object.properties[i].Shape.programs(all, seen)
	}
	return s.object.additional.programs(s.list.items.programs(all, seen), seen)
}
