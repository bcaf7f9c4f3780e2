package outcome

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// A Stray is a text that an expression compares with a value which never is that text.
type Stray struct {
	// Path is the chain of fields that has the value, and Among are the texts that it has.
	Path, Text string
	Among      []string
}

// Strays returns the texts of an expression that are compared with enumerated values of the roots, and are none of
// them. The empty text is none: what it is compared with is asked for a value.
func Strays(expression string, roots map[string]*Shape) (all []Stray) {
	e, ok := parse(expression)
	if !ok {
		return nil
	}
	v := &evaluation{roots: roots, assumed: assumptions{}}
	look := func(of, with celast.Expr) {
		path, isChain := pathOf(of)
		if !isChain {
			return
		}
		among := v.eval(of).shape.Enum
		for _, text := range textsOf(with) {
			if among != nil && text != "" && !slices.Contains(among, text) {
				all = append(all, Stray{path, text, among})
			}
		}
	}
	celast.PostOrderVisit(e, celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.CallKind || len(e.AsCall().Args()) != 2 {
			return
		}
		args := e.AsCall().Args()
		switch e.AsCall().FunctionName() {
		case operators.Equals, operators.NotEquals:
			look(args[0], args[1])
			look(args[1], args[0])
		case operators.In:
			look(args[0], args[1])
		}
	}))
	return all
}
