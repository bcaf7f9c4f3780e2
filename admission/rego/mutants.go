package rego

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/admission-gateway/gateway/admission/rego/builtin"
)

// A Mutant is a module with one change.
type Mutant struct {
	// Line and Column are the place of the change in the file of the module.
	Line, Column int
	// Rule is the rule that was changed. Change says what was changed into what.
	Rule, Change string
	Source       []byte
}

// Mutants returns a module with one change at a time: a rule has no value, a condition is always true, a comparison is
// another one, a number is greater by one, a boolean is the other one, a negation is gone. Rules that are tests stay as
// they are. The module may be of either version of the language. One that cannot be parsed has no mutants.
func Mutants(m Module) []Mutant {
	builtin.Guard()
	p := &Program{}
	all, _, errs := p.parse([]Module{m})
	if len(errs) > 0 {
		p = &Program{options: Options{V0: true}}
		if all, _, errs = p.parse([]Module{m}); len(errs) > 0 {
			return nil
		}
	}
	c := mutation{program: p, source: m.Source}
	for _, module := range all {
		for _, rule := range module.Rules {
			if _, test := testOf(rule); test != nil {
				continue
			}
			c.rule = rule.Head.Ref().GroundPrefix().String()
			for r := rule; r != nil; r = r.Else {
				c.disable(r)
				c.within(r)
			}
		}
	}
	slices.SortStableFunc(c.all,
		func(a, b Mutant) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)) })
	return slices.CompactFunc(c.all, func(a, b Mutant) bool { return string(a.Source) == string(b.Source) })
}

// A mutation collects the changes of a module.
type mutation struct {
	program *Program
	source  []byte
	rule    string
	all     []Mutant
}

// put adds a change of the text at a location.
func (c *mutation) put(at *ast.Location, by, change string) {
	if at == nil || len(at.Text) == 0 || at.Offset < 0 || at.Offset+len(at.Text) > len(c.source) ||
		string(c.source[at.Offset:at.Offset+len(at.Text)]) != string(at.Text) {
		return // the compiler's own
	}
	_, line, column := c.program.sources.place(at)
	changed := slices.Concat(c.source[:at.Offset], []byte(by), c.source[at.Offset+len(at.Text):])
	c.all = append(c.all, Mutant{Line: line, Column: column, Rule: c.rule, Change: change, Source: changed})
}

// disable lets a rule never have a value: its first condition is false. A rule without one is left out.
func (c *mutation) disable(rule *ast.Rule) {
	for _, e := range rule.Body {
		if isCondition(e) {
			c.put(e.Location, "false", fmt.Sprintf("`%s` to `false`", firstLine(e.Location.Text)))
			return
		}
	}
	if at := rule.Location; at != nil && !rule.Default && rule.Else == nil {
		c.put(at, strings.Repeat("\n", strings.Count(string(at.Text), "\n")),
			fmt.Sprintf("`%s` is left out", firstLine(at.Text)))
	}
}

// isCondition reports whether an expression is written by an author, and gives no variable its value.
func isCondition(e *ast.Expr) bool {
	if _, declares := e.Terms.(*ast.SomeDecl); declares || e.Generated || e.IsAssignment() || e.IsEquality() ||
		e.Location == nil {
		return false
	}
	text := string(e.Location.Text)
	return text != "true" && !strings.HasPrefix(text, "else ")
}

// within changes the conditions of a rule, and the values in them.
func (c *mutation) within(rule *ast.Rule) {
	ast.WalkExprs(rule.Body, func(e *ast.Expr) bool {
		c.expression(e)
		return false
	})
	for _, part := range []any{rule.Head, rule.Body} {
		ast.WalkTerms(part, func(t *ast.Term) bool {
			c.value(t)
			return false
		})
	}
}

// comparisons have for each comparison the one that takes its place.
var comparisons = map[string]string{"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}

func (c *mutation) expression(e *ast.Expr) {
	if e.Generated || e.Location == nil {
		return
	}
	text := string(e.Location.Text)
	if rest, isNegated := strings.CutPrefix(text, "not "); isNegated && e.Negated {
		c.put(e.Location, rest, fmt.Sprintf("`%s` without `not`", firstLine(e.Location.Text)))
	}
	if isCondition(e) {
		c.put(e.Location, "true", fmt.Sprintf("`%s` to `true`", firstLine(e.Location.Text)))
	}
	if terms, isCall := e.Terms.([]*ast.Term); isCall && terms[0].Location != nil {
		if by, is := comparisons[string(terms[0].Location.Text)]; is {
			c.put(terms[0].Location, by, fmt.Sprintf("`%s` to `%s`", terms[0].Location.Text, by))
		}
	}
}

// value makes a whole number greater by one, and a boolean the other one.
func (c *mutation) value(t *ast.Term) {
	by := ""
	switch v := t.Value.(type) {
	case ast.Number:
		if i, err := json.Number(v).Int64(); err == nil {
			by = fmt.Sprint(i + 1)
		}
	case ast.Boolean:
		by = fmt.Sprint(!bool(v))
	}
	if by != "" && t.Location != nil && string(t.Location.Text) == t.Value.String() {
		c.put(t.Location, by, fmt.Sprintf("`%s` to `%s`", t.Location.Text, by))
	}
}

// firstLine returns the first line of a text.
func firstLine(text []byte) string {
	line, rest, _ := strings.Cut(string(text), "\n")
	if strings.TrimSpace(rest) != "" {
		line += " …"
	}
	return line
}
