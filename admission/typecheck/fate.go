package typecheck

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cel/outcome"
)

// decides reports whether the policy fails if the expression at a path does. A message that has no value is replaced by
// the one of the policy, and a variable is evaluated where it is read.
func decides(path *field.Path) bool {
	at := path.String()
	return !isMessage(path) && !strings.HasPrefix(at, "spec.variables[")
}

// fail notes that an expression always fails.
func (w *warnings) fail(e Expression, prefix string, err error, forAll bool) {
	at := e.Field.String()
	if !slices.Contains(w.order, at) {
		w.order = append(w.order, at)
	}
	w.fails[at] = failure{cel.Prefixed(err, prefix+": "), cel.Prefixed(err, ""), forAll}
}

// fates finds expressions that fail for every object of the matched kinds, or of some of them. Kinds that the
// conditions of the policy leave out do not count.
func (w *warnings) fates(p *Policy, checkers []*checker) {
	tells := slices.ContainsFunc(p.Conditions,
		func(c admissionv1.MatchCondition) bool { return tellsKinds(c.Expression) })
	judged := slices.DeleteFunc(slices.Clone(checkers), func(c *checker) bool {
		return slices.ContainsFunc(p.Conditions, func(m admissionv1.MatchCondition) bool {
			fate, _ := c.Fate(w.parse(m.Expression))
			return fate == outcome.AlwaysFalse
		})
	})
	for _, e := range append(conditions(p), p.Expressions...) {
		if at := e.Field.String(); !decides(e.Field) || w.fails[at].forAll || len(w.texts[at]) == 0 && len(judged) < 2 {
			continue
		}
		var failing []*checker
		var first error
		for _, c := range judged {
			if fate, err := c.Fate(w.parse(e.Text)); fate == outcome.AlwaysErrs {
				failing = append(failing, c)
				if first == nil {
					first = err
				}
			}
		}
		switch {
		case len(failing) == 0 || len(checkers) > 1 && (tells || tellsKinds(e.Text)):
		case len(failing) == len(judged) && p.isWhollyKnown(checkers):
			w.fail(e, cel.FailsAlways, first, true)
		case p.Defaulting: // the condition of the default may leave these kinds out
		default:
			w.fail(e, cel.FailsAlways+" of "+kindsOf(failing), first, false)
		}
	}
}

// isWhollyKnown reports whether the schemas of all kinds that the policy matches are in the policy files.
func (p *Policy) isWhollyKnown(checkers []*checker) bool {
	if p.Match == nil || slices.ContainsFunc(checkers, func(c *checker) bool { return !c.kind.Own }) {
		return false
	}
	named := 0
	for i := range p.Match.ResourceRules {
		r := &p.Match.ResourceRules[i]
		of := namedBy(r)
		if len(of) < len(r.APIGroups)*len(r.APIVersions)*len(r.Resources) {
			return false // wildcards, or subresources
		}
		named += len(of)
	}
	return named == len(checkers)
}

// kindsOf names kinds for messages.
func kindsOf(of []*checker) string {
	names := make([]string, len(of))
	for i, c := range of {
		names[i] = "'" + c.kind.Kind + "'"
	}
	return strings.Join(names, ", ")
}
