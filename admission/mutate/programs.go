package mutate

import "github.com/admission-gateway/gateway/internal/cel"

// Programs are all expressions of the policy.
func (p *Policy) Programs() []*cel.Program {
	all := append([]*cel.Program{}, p.conditions...)
	if p.variables != nil {
		all = append(all, p.variables.Programs()...)
	}
	for _, m := range p.mutations {
		all = append(all, m.program)
	}
	return all
}
