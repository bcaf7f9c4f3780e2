package policies

import (
	"github.com/admission-gateway/gateway/admission/gatekeeper"
	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/admission/typecheck"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/applicability"
	"github.com/admission-gateway/gateway/policies/reuse"
)

// constantsOf returns how severe a finding about the modules of a policy is. A bundle comes while the gateway runs, and
// a mistake in it must not keep other files from being loaded.
func constantsOf(spec *rego.RegoPolicySpec) Severity {
	if spec.Bundle != "" {
		return Warning
	}
	return Error
}

// maxTypes is for how many kinds of objects rules are proved impossible.
const maxTypes = 10

// impossibleKey is the key of what was found impossible.
type impossibleKey struct {
	policy  manifest.Sum
	modules regoKey
	types   [maxTypes]*cel.ObjectType
}

// impossibleByRego finds the rules of a RegoPolicy that can never have a value for objects of the kinds that it
// matches, if the policy files describe these. Modules that ask for the kind of an object, and bundles, may be meant
// for other kinds too: of them all rules of a name must be impossible. It reports whether there are such rules.
func (l *loader) impossibleByRego(p loadedRego, modules regoKey, c *compiledRego, kinds typecheck.Kinds) bool {
	types := typesOf(typecheck.Described(p.spec.Spec.MatchConstraints, kinds))
	if types[0] == nil {
		return false
	}
	found := reuse.Of(l.kept, impossibleKey{p.from.Sum(), modules, types}, func() rego.Errors {
		return c.program.Impossible(unionOf(types), p.spec.Spec.Bundle == "" && len(c.reads.Kind) == 0,
			c.policy.Queries()...)
	})
	l.regoFound(&l.findings, applicability.AlwaysFails, found, constantsOf(&p.spec.Spec))
	return len(found) > 0
}

// impossibleByTemplate finds that a template can never find anything in objects of the kinds that a constraint names,
// if the policy files describe these.
func (l *loader) impossibleByTemplate(f *findings, o *manifest.Object, t *gatekeeper.Template, kinds *knownKinds) {
	list, _ := o.At("spec.match.kinds")
	var all []typecheck.Kind
	for block := list.First(); block.Valid(); block = block.Next() {
		for _, group := range manifest.Texts(manifest.Member(block, "apiGroups")) {
			for _, name := range manifest.Texts(manifest.Member(block, "kinds")) {
				before := len(all)
				for i := range l.resources {
					if r := &l.resources[i]; r.Operation == nil && r.Group == group && r.Names.Kind == name {
						all = append(all, kinds.of(r))
					}
				}
				if len(all) == before || all[before].Type == nil {
					return // a kind that no file describes
				}
			}
		}
	}
	types := typesOf(all)
	if types[0] == nil {
		return
	}
	found := reuse.Of(l.kept, templateKey{t, types},
		func() rego.Errors { return t.Modules().Impossible(unionOf(types), false, t.Rule()) })
	if len(found) > 0 {
		f.By(applicability.AlwaysFails, o, Error, "spec.match.kinds",
			"matches objects in which the template can never find anything: %s", found[0].Message)
	}
}

// templateKey is the key of what was found impossible in a template.
type templateKey struct {
	template *gatekeeper.Template
	types    [maxTypes]*cel.ObjectType
}

// typesOf returns the types of kinds; none if there are too many, or the type of one is not known.
func typesOf(kinds []typecheck.Kind) (types [maxTypes]*cel.ObjectType) {
	if len(kinds) > maxTypes {
		return types
	}
	for i, k := range kinds {
		if k.Type == nil {
			return [maxTypes]*cel.ObjectType{}
		}
		types[i] = k.Type
	}
	return types
}

// unionOf returns the schema of the objects of all these types.
func unionOf(types [maxTypes]*cel.ObjectType) map[string]any {
	var all []any
	for _, t := range types {
		if t != nil {
			all = append(all, t.JSONSchema())
		}
	}
	if len(all) == 1 {
		return all[0].(map[string]any)
	}
	return map[string]any{"anyOf": all}
}
