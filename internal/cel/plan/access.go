package plan

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// code is the chain as a part of an expression.
func (c *chain) code() code { return code{eval: c.eval, chain: c} }

// then is the chain with one more link. name is the member's name in JSON if the link is a member
// of a value whose type is known, which continues the path.
func (c *chain) then(l link, name string, known bool) *chain {
	next := *c
	next.links = slices.Concat(c.links, []link{l})
	next.units++
	next.optional = c.optional || l.optional
	next.typ = nil
	if known && c.direct() {
		m := member{name: document.NewName(name)}
		if next.keyed = c.base == nil && c.local < 0; next.keyed {
			m.key = newPathKey(c.slot, c.path, name)
			next.whole = m.key
		}
		next.path = slices.Concat(c.path, []member{m})
		next.typ = l.child
	}
	return &next
}

// member is the chain with a member that has a literal name.
func (c *chain) member(name string, optional bool) *chain {
	l := link{key: stringVal(name), optional: optional}
	switch {
	case !c.direct():
	case c.root == nil:
		return c.then(l, name, true)
	case c.typ != nil && c.typ.Kind == value.KindObject:
		plain := name
		if c.typ.Members != nil {
			var ok bool
			if plain, ok = c.typ.Unescape(name); !ok {
				break
			}
		}
		if m, ok := c.typ.Member(plain); ok {
			l.child = m
			return c.then(l, plain, true)
		}
	}
	return c.then(l, "", false)
}

// chainOf is the part as a chain to add links to.
func (k code) chainOf() *chain {
	if k.chain != nil {
		return k.chain
	}
	return &chain{base: k.eval, local: -1}
}

// selected compiles a member, or the test for one.
func (c *nativeCompiler) selected(e celast.Expr) code {
	if _, ok := c.ast.ReferenceMap()[e.ID()]; ok {
		return c.named(e, "")
	}
	s := e.AsSelect()
	if v, ok := c.policyVariable(s.Operand(), s.FieldName()); ok && !s.IsTestOnly() {
		return v
	}
	operand := c.compile(s.Operand()).chainOf()
	next := operand.member(s.FieldName(), false)
	if t := c.ast.GetType(s.Operand().ID()); t.Kind() == types.StructKind {
		if field, ok := c.env.Types.FindStructFieldType(t.TypeName(), s.FieldName()); ok && field.IsSet != nil &&
			field.GetFrom != nil {
			next = operand.then(link{field: field, adapter: c.env.Adapter}, "", false)
		}
	}
	if s.IsTestOnly() {
		next.test = true
		k := next.code()
		k.test = isThere(next)
		return k
	}
	return next.code()
}

// policyVariable compiles variables.NAME.
func (c *nativeCompiler) policyVariable(operand celast.Expr, name string) (code, bool) {
	if c.variables == nil || operand.Kind() != celast.IdentKind || operand.AsIdent() != NameVariables ||
		c.find(NameVariables) != nil {
		return code{}, false
	}
	if value.MayBeEscaped(name) {
		var ok bool
		if name, ok = apiservercel.Unescape(name); !ok {
			return code{}, false
		}
	}
	i, ok := c.variables[name]
	if !ok {
		return code{}, false
	}
	return code{eval: func(f *Machine) Val {
		if v, ok := f.others.Composited(i, name); ok {
			return v
		}
		return f.member1(f.global(NameVariables), name)
	}}, true
}

// member1 is a member of a value of cel-go's.
func (f *Machine) member1(v Val, name string) Val {
	if v.Kind == ValErr {
		return v
	}
	m, _ := f.qualify(v, stringVal(name), false)
	return m
}

// indexed compiles an index or an optional member or index.
func (c *nativeCompiler) indexed(call celast.CallExpr) code {
	args := call.Args()
	operand := c.compile(args[0]).chainOf()
	index := c.compile(args[1]).attribute()
	optional := call.FunctionName() != operators.Index
	switch {
	case index.lit == nil:
		return operand.then(link{index: index.eval, optional: optional}, "", false).code()
	case index.lit.Kind == ValString:
		return operand.member(index.lit.Str(), optional).code()
	}
	return operand.then(link{key: *index.lit, optional: optional}, "", false).code()
}

// lookup is the value of an optional part, which need not be made into a value of cel-go's.
func (k code) lookup() func(*Machine) (Val, chainResult) {
	if k.chain != nil && !k.chain.test {
		chain := k.chain
		return func(f *Machine) (Val, chainResult) {
			v, how := chain.find(f)
			if how == present {
				return f.unwrap(v)
			}
			return v, how
		}
	}
	eval := k.eval
	return func(f *Machine) (Val, chainResult) { return f.unwrap(eval(f)) }
}

// unwrap is the value in an optional value. What is not optional is present.
func (f *Machine) unwrap(v Val) (Val, chainResult) {
	if v.Kind == ValErr {
		return v, failed
	}
	o, ok := v.optional()
	switch {
	case !ok:
		if v = f.Scalar(v); v.Kind == ValErr {
			return v, failed
		}
		return v, present
	case o.HasValue():
		return f.Of(o.GetValue()), some
	}
	return Val{}, none
}

// alternative compiles 'or' and 'orValue'; see PlanAlternative.
func (c *nativeCompiler) alternative(args []celast.Expr, unwrap bool) code {
	first, second := c.compile(args[0]).lookup(), c.compile(args[1]).eval
	return code{eval: func(f *Machine) Val {
		v, how := first(f)
		switch how {
		case none:
			return second(f)
		case some:
			if unwrap {
				return v
			}
			return refVal(types.OptionalOf(f.Ref(v)))
		case failed:
			return v
		}
		return ErrVal(types.NoSuchOverloadErr())
	}}
}

// hasValue is the test of an optional value.
func hasValue(call *invocation) code {
	find := call.args[0].lookup()
	return conditionCode(func(f *Machine) verdict {
		v, how := find(f)
		switch how {
		case some:
			return IsTrue
		case none:
			return IsFalse
		}
		return f.truth(call.one(f, v))
	})
}

// unwrapped is the value in an optional value.
func unwrapped(call *invocation) code {
	find := call.args[0].lookup()
	return code{eval: func(f *Machine) Val {
		v, how := find(f)
		switch how {
		case some:
			return v
		case none:
			v = refVal(types.OptionalNone)
		}
		return call.one(f, v)
	}}
}
