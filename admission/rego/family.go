package rego

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Family returns the rules of a package, such as data.policy, that count as the rule of a name: that
// rule, and the sets whose names begin with the name and '_', as Conftest reads them. They are in the
// order of their names. A rule of the name that is no set counts alone: others are parts of it.
func (p *Program) Family(from, name string) []string {
	path, err := ast.ParseRef(from)
	if err != nil {
		return nil
	}
	var all []string
	isSet := true
	for _, m := range p.compiled().Modules {
		if !m.Package.Path.Equal(path) {
			continue
		}
		for _, r := range m.Rules {
			ref := r.Head.Ref()
			head, ok := ref[0].Value.(ast.Var)
			rule := from + "." + string(head)
			named := string(head) == name
			switch {
			case !ok || !named && !strings.HasPrefix(string(head), name+"_"):
				continue
			case named:
				isSet = isSet && isSetRule(r)
			case !isSetRule(r):
				continue
			}
			if !slices.Contains(all, rule) {
				all = append(all, rule)
			}
		}
	}
	if !isSet {
		return []string{from + "." + name}
	}
	slices.Sort(all)
	return all
}

func isSetRule(r *ast.Rule) bool {
	return r.Head.RuleKind() == ast.MultiValue && len(r.Head.Ref()) == 1
}

// Union prepares the sets of several rules as one set.
func (p *Program) Union(rules []string) (*Query, error) {
	if len(rules) == 1 {
		return p.Query(rules[0])
	}
	return p.prepare(rules[0], "result = "+strings.Join(rules, " | "))
}
