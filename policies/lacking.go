package policies

import (
	"slices"

	"github.com/admission-gateway/gateway/admission/typecheck"
	"github.com/admission-gateway/gateway/policies/applicability"
)

// lackingByRego warns of what the modules of a RegoPolicy read of fields that no object has which its rules match.
// Modules that ask for the kind of an object, and bundles, may be meant for other kinds too.
func (l *loader) lackingByRego(p loadedRego, c *compiledRego, kinds typecheck.Kinds) {
	described := typecheck.Described(p.spec.Spec.MatchConstraints, kinds)
	if len(described) == 0 || p.spec.Spec.Bundle != "" || len(c.reads.Kind) > 0 {
		return
	}
	l.regoFound(&l.findings, applicability.UnknownName, c.program.LackingReads(func(path string) bool {
		return !slices.ContainsFunc(described, func(k typecheck.Kind) bool { return !k.Type.Lacks(path) })
	}), Warning)
}
