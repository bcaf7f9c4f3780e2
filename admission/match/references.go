package match

import "github.com/admission-gateway/gateway/admission"

// References returns what the matcher asks for beyond the request, and the subresources that its rules name.
func (m *Matcher) References() admission.References {
	if m == nil {
		return admission.References{}
	}
	r := admission.References{Namespaces: !m.namespaces.Empty() && !m.namespaceByNameAlone}
	if m.all {
		r.Subresources = []string{anyName}
	}
	for i := range m.rules {
		for _, name := range m.rules[i].resources {
			if name.subresource != "" {
				r.Add(admission.References{Subresources: []string{name.subresource}})
			}
		}
	}
	return r
}
