package explain

import (
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/admission-gateway/gateway/internal/cel/plan"
	"github.com/admission-gateway/gateway/internal/document"
)

// An iteration is a variable of a loop around an expression.
type iteration struct {
	name  string
	place operandLocation // where its values stand
	known bool            // the place is known
	over  operandLocation // what the loop goes through
	text  string
}

// A reader finds the places that a checked expression reads.
type reader struct {
	ast       *celast.AST
	variables *knowledge // of the policy
	scope     []iteration
	level     int // of loops around the expression
}

// find is the innermost loop variable of the name; nil for variables of the environment.
func (r *reader) find(name string) *iteration {
	for i := len(r.scope) - 1; i >= 0; i-- {
		if r.scope[i].name == name {
			return &r.scope[i]
		}
	}
	return nil
}

// place is the location of the value of the expression, if there is just one: a chain of members
// and literal indexes from a variable. What optional values add to such a chain changes nothing.
func (r *reader) place(e celast.Expr) (operandLocation, bool) {
	switch e.Kind() {
	case celast.IdentKind:
		return r.variable(e.AsIdent())
	case celast.SelectKind:
		s := e.AsSelect()
		if s.IsTestOnly() {
			return operandLocation{}, false
		}
		if i, ok := r.composited(e); ok {
			if m := r.variables.all[i]; m.operand.kind == operandPlace {
				return m.operand.place, true
			}
			return operandLocation{}, false
		}
		p, ok := r.place(s.Operand())
		if !ok || p.base == baseKey {
			return operandLocation{}, false
		}
		return p.follow(r.member(p, s.Operand(), s.FieldName(), false)), true
	case celast.CallKind:
		return r.indexed(e.AsCall())
	}
	return operandLocation{}, false
}

// chooses reports whether the value of the expression stands at one of several places of the object, by a condition:
// a ? object.spec : object.spec.template.spec.
func (r *reader) chooses(e celast.Expr) bool {
	if e.Kind() != celast.CallKind || e.AsCall().FunctionName() != operators.Conditional {
		return false
	}
	for _, one := range e.AsCall().Args()[1:] {
		if p, ok := r.place(one); !r.chooses(one) && (!ok || !p.ofObject()) {
			return false
		}
	}
	return true
}

func (r *reader) variable(name string) (operandLocation, bool) {
	if l := r.find(name); l != nil {
		return l.place, l.known
	}
	switch name {
	case plan.NameSelf, plan.NameObject:
		return operandLocation{base: baseObject, name: name}, true
	case plan.NameOldSelf, plan.NameOldObject:
		return operandLocation{base: baseOld, name: name}, true
	}
	return operandLocation{base: baseOther, name: name}, true
}

// indexed is the place behind an index or a function of optional values.
func (r *reader) indexed(call celast.CallExpr) (operandLocation, bool) {
	switch call.FunctionName() {
	case operators.Index, operators.OptIndex:
	case operators.OptSelect:
		p, ok := r.place(call.Args()[0])
		name, literal := stringLiteral(call.Args()[1])
		if !ok || !literal || p.base == baseKey {
			return operandLocation{}, false
		}
		return p.follow(r.member(p, call.Args()[0], name, false)), true
	case "orValue", "value":
		if !call.IsMemberFunction() {
			return operandLocation{}, false
		}
		return r.place(call.Target())
	case "dyn":
		return r.place(call.Args()[0])
	default:
		return operandLocation{}, false
	}
	p, ok := r.place(call.Args()[0])
	if !ok || p.base == baseKey {
		return operandLocation{}, false
	}
	at := call.Args()[1]
	if at.Kind() == celast.IdentKind {
		// labels[k] in a loop over labels is the value behind the key.
		if l := r.find(at.AsIdent()); l != nil && l.known && l.place.base != baseMember && len(l.place.steps) == 0 &&
			l.over.equal(p) {
			return operandLocation{base: baseMember, level: l.place.level}, true
		}
		return operandLocation{}, false
	}
	if at.Kind() != celast.LiteralKind {
		return operandLocation{}, false
	}
	switch at := at.AsLiteral().(type) {
	case types.String:
		return p.follow(r.member(p, call.Args()[0], string(at), true)), true
	case types.Int:
		return p.follow(step{index: int(at), item: true}), true
	}
	return operandLocation{}, false
}

// member is the step to a member. Only a member of an object with a schema is named by its escaped name.
func (r *reader) member(p operandLocation, operand celast.Expr, name string, indexed bool) step {
	switch r.ast.GetType(operand.ID()).Kind() {
	case types.StructKind:
		if plain, ok := apiservercel.Unescape(name); ok {
			name = plain
		}
		return step{name: name}
	case types.MapKind:
		return step{name: name, key: true}
	case types.OpaqueKind: // an optional value
		if parameters := r.ast.GetType(operand.ID()).Parameters(); len(parameters) == 1 {
			switch parameters[0].Kind() {
			case types.StructKind:
				if plain, ok := apiservercel.Unescape(name); ok {
					name = plain
				}
				return step{name: name}
			case types.MapKind:
				return step{name: name, key: true}
			}
		}
	}
	return step{name: name, key: indexed || isMap(p.steps)}
}

// isMap reports whether what stands there is a map in every object: labels and annotations.
func isMap(steps []step) bool {
	n := len(steps)
	return n >= 2 && steps[n-2].name == "metadata" && (steps[n-1].name == "labels" || steps[n-1].name == "annotations")
}

// composited is the index of the policy's variable that the expression reads.
func (r *reader) composited(e celast.Expr) (int, bool) {
	if r.variables == nil || e.Kind() != celast.SelectKind {
		return 0, false
	}
	s := e.AsSelect()
	if s.Operand().Kind() != celast.IdentKind || s.Operand().AsIdent() != plan.NameVariables ||
		r.find(plan.NameVariables) != nil {
		return 0, false
	}
	i, ok := r.variables.places[s.FieldName()]
	return i, ok && !s.IsTestOnly()
}

// pathText writes steps in JavaScript's syntax, keys of maps in brackets.
func pathText(steps []step) string { return string(appendSteps(nil, steps)) }

func appendSteps(b []byte, steps []step) []byte {
	for _, s := range steps {
		switch {
		case s.item:
			b = document.AppendPathIndex(b, s.index)
		case s.key:
			b = appendKey(b, s.name)
		default:
			b = document.AppendPathKey(b, s.name)
		}
	}
	return b
}

// appendKey appends the step to a key of a map, in brackets whatever the key is.
func appendKey(b []byte, key string) []byte {
	bracketed := document.AppendPathKey(nil, key)
	if bracketed[0] == '[' {
		return append(b, bracketed...)
	}
	b = append(b, '[')
	b = append(b, bracketed...)
	return append(b, ']')
}

// tested returns the place if the expression asks whether it is set.
func (r *reader) tested(e celast.Expr) (operandLocation, bool) {
	switch e.Kind() {
	case celast.SelectKind:
		if s := e.AsSelect(); s.IsTestOnly() {
			p, ok := r.place(s.Operand())
			if !ok || p.base == baseKey {
				return operandLocation{}, false
			}
			return p.follow(r.member(p, s.Operand(), s.FieldName(), false)), true
		}
	case celast.CallKind:
		call := e.AsCall()
		switch {
		case call.FunctionName() == "hasValue" && call.IsMemberFunction():
			return r.place(call.Target())
		case call.FunctionName() == operators.In:
			// 'a' in labels
			name, ok := stringLiteral(call.Args()[0])
			p, found := r.place(call.Args()[1])
			if ok && found && p.base != baseKey && (r.ast.GetType(call.Args()[1].ID()).Kind() == types.MapKind ||
				isMap(p.steps)) {
				return p.follow(step{name: name, key: true}), true
			}
		}
	}
	return operandLocation{}, false
}

func stringLiteral(e celast.Expr) (string, bool) {
	if e.Kind() != celast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}
