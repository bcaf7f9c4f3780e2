package mutate

import "github.com/admission-gateway/gateway/internal/cel"

// Programs are all expressions of the policy.
func (p *Policy) Programs() []*cel.Program {
	all := p.Policy.Programs()
	for _, m := range p.mutations {
		all = append(all, m.program)
	}
	return all
}
