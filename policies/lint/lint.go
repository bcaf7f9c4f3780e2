// Package lint finds in policy files what the loader leaves alone: what CustomResourceDefinitions
// and OpenAPI documents have against the API conventions (Of), what a new version of them breaks
// (Against), and what compiles and still cannot be meant (Review). Refine makes findings exact, the
// loader's too.
package lint

import (
	"fmt"
	"strings"

	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/source"
)

// Of checks the definitions in files against the conventions.
func Of(files []source.File) []finding.Finding {
	l := &linter{}
	for _, d := range definitionsIn(files) {
		l.begin(d)
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

// Gathered returns one finding of each rule for a file that describes an ordinary API, in place of one for each field:
// such an API has conventions of its own, and what it does otherwise it does throughout.
func Gathered(found []finding.Finding) []finding.Finding {
	type group struct{ file, rule string }
	first, more := map[group]int{}, map[group]int{}
	gathered := make([]finding.Finding, 0, len(found))
	for _, f := range found {
		key := group{f.File, f.Rule}
		if isGathered := f.Rule != "" && isOrdinary(f.Field); isGathered {
			if _, found := first[key]; found {
				more[key]++
				continue
			}
			first[key] = len(gathered)
		}
		gathered = append(gathered, f)
	}
	for key, n := range more {
		places := "place, which 'gateway lint -v' shows"
		if n > 1 {
			places = "places, which 'gateway lint -v' lists"
		}
		gathered[first[key]].Message += fmt.Sprintf("; and %d more %s", n, places)
	}
	return gathered
}

// isOrdinary reports whether a field stands in an OpenAPI document or in an APIResource.
func isOrdinary(field string) bool {
	for _, schemas := range []string{"components", "definitions", "spec.schema"} {
		if strings.HasPrefix(field, schemas) {
			return true
		}
	}
	return false
}

// Summarized returns the findings with advice counted, one finding for each file.
func Summarized(found []finding.Finding) []finding.Finding {
	return finding.SummarizedBy(found, "gateway lint", func(_ finding.Severity, n int) string {
		if n == 1 {
			return "1 piece of advice; 'gateway lint -v' shows it"
		}
		return fmt.Sprintf("%d pieces of advice; 'gateway lint -v' lists them", n)
	})
}
