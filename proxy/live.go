package proxy

import "github.com/admission-gateway/gateway/policies/applicability"

// Live returns what the API servers are known to have at the moment. Nothing is asked for it.
func (g *Gateway) Live() *applicability.Live {
	live := &applicability.Live{}
	for _, b := range g.routes.backends {
		if b.served == nil {
			continue
		}
		c := b.served.Catalog()
		if c.Len() == 0 {
			c = nil // the server has no discovery
		}
		live.Catalogs = append(live.Catalogs, c)
	}
	for _, s := range g.policies().States() {
		if s.Kind != namespaceKind || s.Query != "" {
			continue
		}
		if all, known := g.states.Known(s); known {
			live.Namespaces, live.HasNamespaces = append(live.Namespaces, all...), true
		}
	}
	return live
}
