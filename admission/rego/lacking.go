package rego

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// LackingReads returns what modules read of fields that no object has. Lacks says so of a path, such as '.spec.size'
// and '.lines[*].count'. What is read has no value, so that a `deny` which needs it denies nothing, and one that asks
// for it by `not` denies everything.
func (p *Program) LackingReads(lacks func(path string) bool) (all Errors) {
	if input, _ := p.replaced(); input {
		return nil // of other objects nothing is known
	}
	for _, name := range p.sources.names() {
		m, ok := p.compiled().Modules[name]
		if !ok {
			continue
		}
		r := &unfilledReader{named: map[string]string{}}
		r.name(m)
		seen := map[string]bool{}
		for _, rule := range m.Rules {
			ast.WalkRefs(rule, func(ref ast.Ref) bool {
				for _, path := range r.paths(ref) {
					end := strings.IndexAny(path, ".[")
					if end < 0 || !lacks(path[end:]) {
						continue
					}
					if !seen[path] {
						seen[path] = true
						e := Error{File: name, Message: "reads `" + path +
							"`, which has no value: the schema of the objects has no such field"}
						e.locate(p.sources, placeOf(ref))
						all = append(all, e)
					}
					break
				}
				return false
			})
		}
	}
	return all
}
