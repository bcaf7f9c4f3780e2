// Package outcome finds the possible results of a CEL expression, given what a schema allows: whether
// it can be true at all, and whether it can be false. It says nothing if it is not sure.
//
// It follows an expression as written, with the bounds of the schema and the bounds that other parts of the expression
// set: in `!has(self.a) || self.a > 3` the comparison is only reached if the field is set.
package outcome

import (
	"maps"
	"slices"
	"strings"

	celast "github.com/google/cel-go/common/ast"
)

// An Outcome is the possible results of an expression.
type Outcome struct {
	CanBeTrue, CanBeFalse, CanFail bool
	// Because says what of the schema decides, with an example for each part; empty if nothing does.
	Because []string
	// Unset are the optional fields that the expression reads without asking for them first.
	Unset []string
}

// AlwaysFails reports whether the expression has no value.
func (o *Outcome) AlwaysFails() bool { return !o.CanBeTrue && !o.CanBeFalse && o.CanFail }

// Of returns the possible results of an expression over the roots, such as `self`. It is unsure
// about whatever it does not understand.
func Of(expression string, roots map[string]*Shape) Outcome {
	return given(expression, nil, roots)
}

// Given returns the possible results of an expression if all conditions are true.
func Given(expression string, conditions []string, roots map[string]*Shape) Outcome {
	return given(expression, conditions, roots)
}

func given(expression string, conditions []string, roots map[string]*Shape) Outcome {
	unsure := Outcome{CanBeTrue: true, CanBeFalse: true, CanFail: true}
	e, ok := parse(expression)
	if !ok {
		return unsure
	}
	v := &evaluation{roots: roots, assumed: assumptions{}}
	for _, c := range conditions {
		if e, ok := parse(c); ok {
			v.assumed = v.assume(e, true, v.assumed)
		}
	}
	v.unset = nil // conditions are judged for themselves
	r := v.eval(e)
	return Outcome{CanBeTrue: r.truth.yes, CanBeFalse: r.truth.no, CanFail: r.fails, Because: v.because, Unset: v.unset}
}

// Names returns the chain of names that an expression reads of a root: for `self` of `self.a.b > 1`, {"a.b"}.
func Names(expression, root string) []string {
	e, ok := parse(expression)
	if !ok {
		return nil
	}
	found := map[string]bool{}
	celast.PostOrderVisit(e, celast.NewExprVisitor(func(e celast.Expr) {
		if path, ok := pathOf(e); ok {
			if rest, ok := strings.CutPrefix(path, root+"."); ok {
				found[rest] = true
			}
		}
	}))
	return slices.Sorted(maps.Keys(found))
}
