package rego

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Misprinted returns the calls of sprintf whose text has places for more or for fewer values than the call has.
func (p *Program) Misprinted() (all Errors) {
	note := func(at *ast.Location, terms []*ast.Term) {
		if len(terms) < 3 || terms[0].String() != ast.Sprintf.Name {
			return
		}
		text, isText := terms[1].Value.(ast.String)
		values, isList := terms[2].Value.(*ast.Array)
		if !isText || !isList || named.MatchString(string(text)) {
			return
		}
		places := len(placeOfValue.FindAllString(string(text), -1)) - len(percent.FindAllString(string(text), -1))
		if places != values.Len() {
			e := Error{Message: fmt.Sprintf("the text has places for %d values, and sprintf gets %d", places,
				values.Len())}
			e.locate(p.sources, at)
			all = append(all, e)
		}
	}
	for _, m := range p.modules() {
		ast.NewGenericVisitor(func(x any) bool {
			switch x := x.(type) {
			case *ast.Expr:
				if terms, is := x.Terms.([]*ast.Term); is {
					note(x.Location, terms)
				}
			case *ast.Term:
				if call, is := x.Value.(ast.Call); is {
					note(x.Location, call)
				}
			}
			return false
		}).Walk(m)
	}
	all.sort()
	return slices.Compact(all)
}

// placeOfValue matches where Go's formats put a value, or a percent sign.
var (
	placeOfValue = regexp.MustCompile(`%[-+# 0]*[0-9]*(\.[0-9]+)?[a-zA-Z%]`)
	percent      = regexp.MustCompile(`%[-+# 0]*[0-9]*(\.[0-9]+)?%`)
	named        = regexp.MustCompile(`%[-+# 0-9.]*[\[*]`) // a value that is named by its index, or is a width
)
