package schema

import "github.com/admission-gateway/gateway/internal/cel"

// Programs are all expressions of the schema: rules with their messages, and
// computed defaults.
func (s *Schema) Programs() []*cel.Program {
	all := s.root.programs(nil)
	for i := range s.derived {
		all = append(all, s.derived[i].Programs()...)
	}
	return all
}

func (s *Shape) programs(all []*cel.Program) []*cel.Program {
	if s == nil || !s.hasRules {
		return all
	}
	if s.rules != nil {
		for i := range s.rules.compiled.Rules {
			all = append(all, s.rules.compiled.Rules[i].Programs()...)
		}
	}
	for i := range s.properties {
		all = s.properties[i].Shape.programs(all)
	}
	return s.additional.programs(s.items.programs(all))
}
