package vap

import "github.com/admission-gateway/gateway/internal/cel"

// Programs are all expressions of the policy.
func (p *Policy) Programs() []*cel.Program {
	all := p.Policy.Programs()
	for _, v := range p.validations {
		all = append(all, v.program)
		if v.compute != nil {
			all = append(all, v.compute.Program())
		}
	}
	for _, a := range p.annotations {
		all = append(all, a.program)
	}
	return all
}
