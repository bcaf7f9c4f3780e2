package outcome

import (
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// assume returns what else is known if an expression is true, or if it is not.
func (v *evaluation) assume(e celast.Expr, is bool, f assumptions) assumptions {
	if e.Kind() != celast.CallKind {
		return f
	}
	c := e.AsCall()
	args := c.Args()
	switch name := c.FunctionName(); {
	case name == operators.LogicalAnd && is, name == operators.LogicalOr && !is:
		return v.assume(args[1], is, v.assume(args[0], is, f))
	case name == operators.LogicalNot:
		return v.assume(args[0], !is, f)
	case name == "has" && len(args) == 1:
		path, ok := pathOf(args[0])
		if !ok {
			return f
		}
		return f.with(path, func(f *assumption) { f.set, f.unset = is, !is })
	case name == operators.In && is && len(args) == 2:
		return v.assumeIn(args[0], args[1], f)
	case len(args) == 2 && isComparison(name):
		if !is {
			if name = opposite[name]; name == "" {
				return f
			}
		}
		f = v.bound(name, args[0], args[1], f)
		return v.bound(mirror[name], args[1], args[0], f)
	}
	return f
}

func (v *evaluation) assumeIn(x, list celast.Expr, f assumptions) assumptions {
	path, ok := pathOf(x)
	if !ok || list.Kind() != celast.ListKind {
		return f
	}
	enum := []string{}
	for _, one := range v.eval(list).list {
		if one.text == nil {
			return f
		}
		enum = append(enum, *one.text)
	}
	return f.with(path, func(f *assumption) { f.enum = enum })
}

// bound adds what a comparison of a field with a literal implies for the field.
func (v *evaluation) bound(operator string, x, y celast.Expr, f assumptions) assumptions {
	path, whole := v.measured(x)
	if path == "" || y.Kind() == celast.IdentKind {
		return f
	}
	r := v.eval(y)
	switch {
	case r.text != nil && operator == operators.Equals:
		return f.with(path, func(f *assumption) { f.enum = []string{*r.text} })
	case r.number == nil:
		return f
	}
	at := *r.number
	return f.with(path, func(f *assumption) {
		step := 0.0
		if whole {
			step = 1
		}
		above, below := at+step, at-step
		switch operator {
		case operators.Equals:
			f.min, f.max = tighter(f.min, &at, 1), tighter(f.max, &at, -1)
		case operators.Greater:
			f.min = tighter(f.min, &above, 1)
		case operators.GreaterEquals:
			f.min = tighter(f.min, &at, 1)
		case operators.Less:
			f.max = tighter(f.max, &below, -1)
		case operators.LessEquals:
			f.max = tighter(f.max, &at, -1)
		}
	})
}

// measured returns the path of a field, or of its size, and whether the value is a whole number.
func (v *evaluation) measured(e celast.Expr) (path string, whole bool) {
	if path, ok := pathOf(e); ok {
		return path, v.eval(e).shape.Type == "integer"
	}
	if e.Kind() == celast.CallKind && e.AsCall().FunctionName() == "size" {
		return v.eval(e).path, true
	}
	return "", false
}
