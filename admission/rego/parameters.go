package rego

import (
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/admission-gateway/gateway/internal/manifest"
)

// ParameterReads are the members of input.parameters that modules read.
type ParameterReads struct {
	// Named has the places at which they are read, by their names.
	Named map[string]Error
	// IsWhole says that modules read others too, or all of them: a name is computed, or the whole is handed on.
	IsWhole bool
}

// ParameterReads returns what the modules read of the parameters.
func (p *Program) ParameterReads() ParameterReads {
	reads := ParameterReads{Named: map[string]Error{}}
	if input, _ := p.replaced(); input {
		return ParameterReads{IsWhole: true}
	}
	for _, name := range p.sources.names() {
		m, ok := p.compiled().Modules[name]
		if !ok {
			continue
		}
		for _, rule := range m.Rules {
			ast.WalkRefs(rule, func(r ast.Ref) bool {
				names := stepsOf(r)
				switch {
				case !r.HasPrefix(ast.InputRootRef), len(names) > 0 && names[0] != parametersName:
				case len(names) < 2:
					reads.IsWhole = true
				default:
					e := Error{File: name}
					if e.locate(p.sources, placeOf(r)); !isRead(reads.Named, names[1]) {
						reads.Named[names[1]] = e
					}
				}
				return false
			})
		}
	}
	return reads
}

func isRead(all map[string]Error, name string) bool {
	_, is := all[name]
	return is
}

// parametersName is the member of the input that has the parameters of a policy.
const parametersName = "parameters"

// Lacking returns the reads of parameters that there can never be, since only some are known.
func (r ParameterReads) Lacking(known []string, why string) (all Errors) {
	for name, e := range r.Named {
		if !slices.Contains(known, name) {
			e.Message = "'input.parameters." + name + "' has no value: " + why +
				manifest.Suggest(name, slices.Values(known))
			all = append(all, e)
		}
	}
	all.sort()
	return all
}

// Ignores returns what to say of a parameter that no module reads; "" if one may.
func (r ParameterReads) Ignores(name string) string {
	if r.IsWhole || isRead(r.Named, name) {
		return ""
	}
	return "no module reads the parameter" + manifest.Suggest(name, maps.Keys(r.Named))
}
