package outcome

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"github.com/google/cel-go/common/operators"
)

// evaluation goes through one expression.
type evaluation struct {
	roots   map[string]*Shape
	assumed assumptions
	because []string
	unset   []string // the optional fields that are read without being asked for
}

// with evaluates under other assumptions.
func (v *evaluation) with(f assumptions, e celast.Expr) result {
	before := v.assumed
	defer func() { v.assumed = before }()
	v.assumed = f
	return v.eval(e)
}

func (v *evaluation) eval(e celast.Expr) result {
	switch e.Kind() {
	case celast.LiteralKind:
		return literal(e)
	case celast.IdentKind:
		shape, known := v.roots[e.AsIdent()]
		if !known {
			return anything(true)
		}
		return v.narrowed(result{truth: either, shape: shape, path: e.AsIdent()})
	case celast.SelectKind:
		return v.field(e)
	case celast.ListKind:
		r := result{truth: either, shape: &Shape{Type: "array"}, list: []result{}}
		for _, item := range e.AsList().Elements() {
			r.list = append(r.list, v.eval(item))
		}
		return r
	case celast.CallKind:
		return v.call(e)
	}
	return anything(true)
}

func literal(e celast.Expr) result {
	r := result{truth: either, shape: &Shape{}}
	switch l := e.AsLiteral().(type) {
	case types.Bool:
		return boolean(truth{bool(l), !bool(l)}, false)
	case types.Int:
		n := float64(l)
		r.number = &n
	case types.Double:
		n := float64(l)
		r.number = &n
	case types.Uint:
		n := float64(l)
		r.number = &n
	case types.String:
		s := string(l)
		r.text = &s
		n := float64(len([]rune(s)))
		r.shape = &Shape{Type: "string", MinSize: &n, MaxSize: &n, Enum: []string{s}}
		return r
	case types.Null:
		r.shape = &Shape{Type: Null}
		return r
	default:
		return anything(false)
	}
	r.shape = &Shape{Type: "number", Min: r.number, Max: r.number}
	return r
}

// field reads a member of an object.
func (v *evaluation) field(e celast.Expr) result {
	of := v.eval(e.AsSelect().Operand())
	name := e.AsSelect().FieldName()
	if of.neverSucceeds() {
		return failure()
	}
	member := of.shape.Fields[name]
	if member == nil {
		return anything(true)
	}
	r := result{truth: either, shape: member, path: of.path + "." + name}
	if of.path == "" {
		r.path = ""
	}
	isUnset := !member.IsSet && !v.assumed.isSet(r.path)
	if isUnset && !of.fails && r.path != "" && !slices.Contains(v.unset, r.path) {
		v.unset = append(v.unset, r.path)
	}
	r.fails = of.fails || isUnset
	return v.narrowed(r)
}

// narrowed restricts a value to what is known of it beside the schema.
func (v *evaluation) narrowed(r result) result {
	if f, ok := v.assumed[r.path]; ok && r.path != "" {
		r.shape = f.narrow(r.shape)
	}
	return r
}

func (v *evaluation) call(e celast.Expr) result {
	c := e.AsCall()
	args := c.Args()
	switch name := c.FunctionName(); {
	case name == operators.LogicalAnd && len(args) == 2:
		return v.and(args[0], args[1])
	case name == operators.LogicalOr && len(args) == 2:
		return v.or(args[0], args[1])
	case name == operators.LogicalNot && len(args) == 1:
		r := v.eval(args[0])
		return boolean(truth{r.truth.no, r.truth.yes}, r.fails)
	case name == operators.Negate && len(args) == 1:
		if r := v.eval(args[0]); r.number != nil {
			n := -*r.number
			return result{truth: either, number: &n, shape: &Shape{Type: "number", Min: &n, Max: &n}}
		}
		return anything(true)
	case name == "has" && !c.IsMemberFunction() && len(args) == 1:
		return v.has(args[0])
	case name == "size" && (c.IsMemberFunction() || len(args) == 1):
		of := c.Target()
		if !c.IsMemberFunction() {
			of = args[0]
		}
		return v.size(of)
	case (name == "all" || name == "exists") && c.IsMemberFunction() && len(args) == 2 &&
		args[0].Kind() == celast.IdentKind:
		return v.each(name, c.Target(), args[0].AsIdent(), args[1])
	case name == operators.In && len(args) == 2:
		return v.in(v.eval(args[0]), v.eval(args[1]))
	case len(args) == 2 && isComparison(name):
		return v.compare(name, v.eval(args[0]), v.eval(args[1]))
	case c.IsMemberFunction() && v.eval(c.Target()).neverSucceeds():
		return failure()
	}
	return anything(true)
}

func (v *evaluation) and(x, y celast.Expr) result {
	a := v.eval(x)
	if a.isFailure() {
		b := v.eval(y)
		return boolean(truth{no: b.truth.no}, b.truth.yes || b.fails)
	}
	b := v.with(v.assume(x, true, v.assumed), y)
	return boolean(truth{a.truth.yes && b.truth.yes, a.truth.no || a.truth.yes && b.truth.no}, a.fails || a.truth.yes &&
		b.fails)
}

func (v *evaluation) or(x, y celast.Expr) result {
	a := v.eval(x)
	if a.isFailure() {
		b := v.eval(y)
		return boolean(truth{yes: b.truth.yes}, b.truth.no || b.fails)
	}
	b := v.with(v.assume(x, false, v.assumed), y)
	return boolean(truth{a.truth.yes || a.truth.no && b.truth.yes, a.truth.no && b.truth.no}, a.fails || a.truth.no &&
		b.fails)
}

// has tests for a member of an object.
func (v *evaluation) has(e celast.Expr) result {
	if e.Kind() != celast.SelectKind {
		return anything(true)
	}
	of := v.eval(e.AsSelect().Operand())
	if of.neverSucceeds() {
		return failure()
	}
	member := of.shape.Fields[e.AsSelect().FieldName()]
	path := of.path + "." + e.AsSelect().FieldName()
	switch {
	case member == nil || of.path == "":
		return boolean(either, of.fails)
	case member.IsSet && !of.fails:
		v.because = append(v.because, "`"+path+"` is always set")
		return boolean(truth{yes: true}, false)
	case v.assumed.isSet(path):
		return boolean(truth{yes: true}, of.fails)
	case v.assumed[path].unset:
		return boolean(truth{no: true}, of.fails)
	}
	return boolean(either, of.fails)
}

func (v *evaluation) size(e celast.Expr) result {
	of := v.eval(e)
	if of.neverSucceeds() {
		return failure()
	}
	least := 0.0
	s := &Shape{Type: "number", Min: of.shape.MinSize, Max: of.shape.MaxSize}
	if s.Min == nil {
		s.Min = &least
	}
	r := result{truth: either, fails: of.fails, shape: s}
	if of.path != "" {
		r.path = "size(" + of.path + ")"
	}
	return v.narrowed(r)
}

// each evaluates `all` and `exists` over the items of a list.
func (v *evaluation) each(name string, over celast.Expr, item string, body celast.Expr) result {
	list := v.eval(over)
	if list.neverSucceeds() {
		return failure()
	}
	if list.shape.Items == nil || v.roots[item] != nil {
		return boolean(either, true)
	}
	v.roots[item] = list.shape.Items
	r := v.eval(body)
	delete(v.roots, item)
	mayBeEmpty := list.shape.MinSize == nil || *list.shape.MinSize < 1
	mayHave := list.shape.MaxSize == nil || *list.shape.MaxSize >= 1
	if name == "all" {
		return boolean(truth{mayBeEmpty || r.truth.yes, mayHave && r.truth.no}, list.fails || r.fails)
	}
	return boolean(truth{mayHave && r.truth.yes, mayBeEmpty || r.truth.no}, list.fails || r.fails)
}

// in looks for a value in a list of literals.
func (v *evaluation) in(x, list result) result {
	if x.isFailure() || list.neverSucceeds() {
		return failure()
	}
	unsure := boolean(either, x.fails || list.fails)
	if x.shape.Enum == nil || list.list == nil {
		return unsure
	}
	t := truth{}
	for _, one := range x.shape.Enum {
		if slices.ContainsFunc(list.list, func(r result) bool { return r.text == nil }) {
			return unsure
		}
		if slices.ContainsFunc(list.list, func(r result) bool { return *r.text == one }) {
			t.yes = true
		} else {
			t.no = true
		}
	}
	v.decided(t, x)
	return boolean(t, x.fails)
}

// decided notes what decides an expression.
func (v *evaluation) decided(t truth, by ...result) {
	if t == either {
		return
	}
	for _, r := range by {
		if r.path == "" {
			continue
		}
		if text := describe(r.path, r.shape); text != "" && !slices.Contains(v.because, text) {
			v.because = append(v.because, text)
		}
	}
}
