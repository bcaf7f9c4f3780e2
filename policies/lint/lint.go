// Package lint holds CustomResourceDefinitions and OpenAPI documents to the API conventions, and finds what a new version of
// them breaks.
package lint

import (
	"fmt"
	"maps"
	"slices"

	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/report"
	"github.com/admission-gateway/gateway/policies/source"
)

// Of holds the definitions in files to the conventions.
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
func Checks() []report.Check {
	all := make([]report.Check, 0, len(rules)+len(breaks))
	for _, list := range [][]*rule{rules, breaks} {
		for _, r := range list {
			all = append(all, report.Check{ID: r.id, Why: r.why, Section: r.section})
		}
	}
	return all
}

// Summarized returns the findings with advice counted, one finding for each file.
func Summarized(found []finding.Finding) (short []finding.Finding) {
	counts := map[string]int{}
	for _, f := range found {
		if f.Severity == finding.Wording {
			counts[f.File]++
			continue
		}
		short = append(short, f)
	}
	for _, file := range slices.Sorted(maps.Keys(counts)) {
		message := "1 piece of advice; 'gateway lint -v' shows it"
		if n := counts[file]; n > 1 {
			message = fmt.Sprintf("%d pieces of advice; 'gateway lint -v' lists them", n)
		}
		short = append(short, finding.Finding{File: file, Message: message, Severity: finding.Wording})
	}
	return short
}
