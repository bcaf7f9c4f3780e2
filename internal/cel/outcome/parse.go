package outcome

import (
	"github.com/google/cel-go/common"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/parser"
)

// parse reads an expression without expanding macros, so that it is analyzed as written.
func parse(expression string) (celast.Expr, bool) {
	p, err := parser.NewParser(parser.EnableOptionalSyntax(true))
	if err != nil {
		return nil, false
	}
	parsed, errs := p.Parse(common.NewTextSource(expression))
	if len(errs.GetErrors()) > 0 {
		return nil, false
	}
	return parsed.Expr(), true
}

// pathOf returns the names of a chain of fields; false for other expressions.
func pathOf(e celast.Expr) (string, bool) {
	switch e.Kind() {
	case celast.IdentKind:
		return e.AsIdent(), true
	case celast.SelectKind:
		of, ok := pathOf(e.AsSelect().Operand())
		return of + "." + e.AsSelect().FieldName(), ok
	}
	return "", false
}
