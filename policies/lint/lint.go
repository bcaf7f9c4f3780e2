// Package lint finds in policy files what the loader leaves alone: what CustomResourceDefinitions
// and OpenAPI documents have against the API conventions (Of), what a new version of them breaks
// (Against), and what compiles and still cannot be meant (Review). Refine makes findings exact, the
// loader's too.
package lint

import (
	"fmt"

	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/source"
)

// Of checks the definitions in files against the conventions.
func Of(files []source.File) []finding.Finding {
	l := &linter{}
	for _, d := range definitionsIn(files) {
		l.definition = d
		l.names()
		for _, s := range d.schemas {
			l.schema(s)
		}
	}
	return finding.Sort(l.Found)
}

// Checks describes the rules.
func Checks() []finding.Check {
	all := make([]finding.Check, 0, len(rules)+len(breaks))
	for _, list := range [][]*rule{rules, breaks} {
		for _, r := range list {
			all = append(all, finding.Check{ID: r.id, Why: r.why, Section: r.section})
		}
	}
	return all
}

// Summarized returns the findings with advice counted, one finding for each file.
func Summarized(found []finding.Finding) []finding.Finding {
	return finding.SummarizedBy(found, func(_ finding.Severity, n int) string {
		if n == 1 {
			return "1 piece of advice; 'gateway lint -v' shows it"
		}
		return fmt.Sprintf("%d pieces of advice; 'gateway lint -v' lists them", n)
	})
}
