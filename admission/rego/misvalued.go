package rego

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"
)

// Misvalued returns the rules of a policy whose values cannot be what the policy takes of them, by the types that OPA's
// type checker finds: a `deny` that is a number, and a violation without `msg`.
func (p *Policy) Misvalued() Errors {
	if p.program == nil {
		return nil
	}
	return p.program.Misvalued(p.names...)
}

// Misvalued returns those of some rules, such as data.policy.deny, whose values cannot be what is taken of rules of
// that name.
func (p *Program) Misvalued(names ...string) (all Errors) {
	var modules map[string]*ast.Module
	for _, name := range names {
		t := taker{base: name[strings.LastIndexByte(name, '.')+1:], ofTemplate: p.options.Template}
		t.isStrict = true
		if t.why(p.compiled(), name) == "" {
			continue // of no rule of the name
		}
		if t.isStrict = false; modules == nil {
			modules = p.modules()
		}
		t.hasDefault = hasDefault(modules, name)
		for _, c := range clausesOf(modules, name) {
			alone := p.alone(modules, name, c)
			if alone == nil {
				continue
			}
			if why := t.why(alone, name); why != "" {
				e := Error{Message: fmt.Sprintf("'%s' can never be used: %s", t.base, why)}
				e.locate(p.sources, c.Location)
				all = append(all, e)
			}
		}
	}
	all.sort()
	return slices.Compact(all)
}

// clausesOf returns the rules of a name. A default and the rules after `else` belong to others.
func clausesOf(modules map[string]*ast.Module, name string) (all []*ast.Rule) {
	for _, m := range modules {
		for _, r := range m.Rules {
			if r.Ref().GroundPrefix().String() == name && !r.Default {
				all = append(all, r)
			}
		}
	}
	return all
}

// hasDefault reports whether a rule has a value whatever the input.
func hasDefault(modules map[string]*ast.Module, name string) bool {
	for _, m := range modules {
		for _, r := range m.Rules {
			if r.Default && r.Ref().GroundPrefix().String() == name {
				return true
			}
		}
	}
	return false
}

// alone compiles modules with only one of the rules of a name; nil if others need them.
func (p *Program) alone(modules map[string]*ast.Module, name string, clause *ast.Rule) *ast.Compiler {
	left := map[string]*ast.Module{}
	for file, m := range modules {
		one := *m
		one.Rules = slices.DeleteFunc(slices.Clone(m.Rules), func(r *ast.Rule) bool {
			return r != clause && r.Ref().GroundPrefix().String() == name
		})
		left[file] = &one
	}
	c, errs := p.compile(left, false)
	if len(errs) > 0 {
		return nil
	}
	return c
}

// A taker says of the types of values why they cannot be taken as the value of a rule.
type taker struct {
	base       string // the name of the rule in its package
	ofTemplate bool
	hasDefault bool
	isStrict   bool // a value of several types must be right with each of them
}

// violations are what the rules deny, violation and warn have.
const violations = "a set of strings, or of objects with 'msg'"

// why says why no value of a rule can be taken; "" if one may.
func (t *taker) why(c *ast.Compiler, name string) string {
	ref, err := ast.ParseRef(name)
	if err != nil {
		return ""
	}
	of := c.TypeEnv.GetByRef(ref)
	switch t.base {
	case "allow":
		return t.each(of, verdict)
	case "defaults":
		return t.each(of, func(of types.Type) string {
			if _, is := of.(*types.Object); is {
				return ""
			}
			return mustBe("an object", of)
		})
	case "patch":
		return t.each(of, func(of types.Type) string {
			switch of.(type) {
			case *types.Array, *types.Set:
				return ""
			}
			return mustBe("a list of operations", of)
		})
	}
	return t.each(of, t.violations)
}

// each asks about a type, or about each of those that a value may have.
func (t *taker) each(of types.Type, wrong func(types.Type) string) (why string) {
	all := []types.Type{of}
	switch of := of.(type) {
	case nil:
		return ""
	case types.Any:
		all = of // none if nothing is known
	case *types.NamedType:
		return t.each(of.Type, wrong)
	}
	for _, one := range all {
		one := wrong(one)
		if one == "" && !t.isStrict {
			return ""
		}
		why = cmp.Or(why, one)
	}
	return why
}

// violations says why a value is no set of violations.
func (t *taker) violations(of types.Type) string {
	switch of := of.(type) {
	case *types.Set:
		return t.each(of.Of(), t.violation)
	case *types.Array:
		return t.each(of.Select(0), t.violation)
	case *types.Object:
		if of.DynamicProperties() == nil && of.Select("msg") != nil {
			return mustBe(violations, of) + ", whose keys are the messages"
		}
		return ""
	case types.Boolean:
		if t.ofTemplate || !t.hasDefault {
			return mustBe(violations, of) + ", which has no value where the rule is not met"
		}
		return ""
	}
	return mustBe(violations, of)
}

// violation says why a value is no violation.
func (t *taker) violation(of types.Type) string {
	o, is := of.(*types.Object)
	switch {
	case types.Compare(of, types.S) == 0, is && o.DynamicProperties() != nil:
		return ""
	case !is:
		return "a violation must be a string, or an object with 'msg', not " + typeName(of)
	case o.Select("msg") == nil:
		return "a violation must have a member 'msg'"
	}
	for _, m := range [...]struct {
		name string
		is   types.Type
	}{{"msg", types.S}, {"field", types.S}, {"reason", types.S}, {"code", types.N}} {
		if why := t.each(o.Select(m.name), func(of types.Type) string {
			if types.Compare(of, m.is) == 0 {
				return ""
			}
			return fmt.Sprintf("the member '%s' of a violation must be %s, not %s", m.name, typeName(m.is),
				typeName(of))
		}); why != "" {
			return why
		}
	}
	return ""
}

// verdict says why a value is no verdict of `allow`.
func verdict(of types.Type) string {
	o, is := of.(*types.Object)
	switch {
	case types.Compare(of, types.B) == 0, is && (o.DynamicProperties() != nil || o.Select("allowed") != nil ||
		o.Select("allow") != nil):
		return ""
	case is:
		return "the object must have a member 'allowed' or 'allow'"
	}
	return mustBe("a boolean, or an object with 'allowed' or 'allow'", of)
}

func mustBe(wanted string, of types.Type) string {
	return "it must be " + wanted + ", not " + typeName(of)
}

// typeName names a type with its article.
func typeName(t types.Type) string {
	switch t.(type) {
	case *types.Set:
		return "a set"
	case *types.Array:
		return "a list"
	case *types.Object:
		return "an object"
	case types.Null:
		return "null"
	}
	return "a " + t.String()
}
