package ingress

import (
	"slices"

	"github.com/admission-gateway/gateway/internal/routing"
)

// begin finds the parents of a route; a nil reading means that it is none of the controller's.
func (c *translation) begin(o routeObject) (*reading, []attachedParent) {
	parents := c.attach(&o)
	if len(parents) == 0 {
		c.statuses.route(&o, c.options.Controller, nil, fault{}, fault{}) // to take back what was said before
		return nil, nil
	}
	r := &reading{translation: c, object: o}
	for i := range parents {
		if p := &parents[i]; !slices.Contains(r.gateways, p.gateway) {
			r.gateways = append(r.gateways, p.gateway)
		}
	}
	return r, parents
}

// end puts the rules of a route into the table, and says what became of it.
func (r *reading) end(parents []attachedParent, rules []madeRule) {
	var refused, partly fault
	switch {
	case r.dropped > 0 && len(rules) == 0:
		refused = r.unsupported
	case r.unsupported.is():
		partly = r.unsupported
		if r.dropped > 0 {
			partly.message = "Dropped Rule: " + partly.message
		}
	}
	if refused.is() {
		for i := range parents {
			if p := &parents[i]; !p.refused.is() {
				p.refused, p.takes = refused, nil
			}
		}
	}
	count(parents)
	for i := range rules {
		r.put(&rules[i], parents)
	}
	r.statuses.route(&r.object, r.options.Controller, parents, r.unresolved, partly)
}

// put puts a rule into the table: once for each of the certificates by which its Gateways are known to its backends.
func (r *reading) put(rule *madeRule, parents []attachedParent) {
	var done []*routing.Certificate
	for i := range parents {
		client := parents[i].gateway.client
		if !rule.asksTLS() {
			client = nil
		}
		if slices.Contains(done, client) {
			continue
		}
		done = append(done, client)
		var attachments []routing.Attachment
		for j := range parents {
			if p := &parents[j]; !rule.asksTLS() || p.gateway.client == client {
				attachments = appendAttachments(attachments, p.takes)
			}
		}
		if len(attachments) == 0 {
			continue
		}
		one := rule.Route
		one.Kind, one.Namespace, one.Name = r.object.kind, r.object.GetNamespace(), r.object.GetName()
		one.Attachments = attachments
		one.Backends = make([]routing.WeightedBackend, 0, len(rule.backends))
		for _, b := range rule.backends {
			one.Backends = append(one.Backends, routing.WeightedBackend{Backend: r.backend(b.target, client),
				Weight: b.weight, Filters: b.filters})
		}
		r.out.Table.Routes = append(r.out.Table.Routes, one)
	}
}

// appendAttachments adds the listeners that are open, each host once.
func appendAttachments(to []routing.Attachment, takes []attachment) []routing.Attachment {
	for _, a := range takes {
		if one := (routing.Attachment{Listener: a.listener.index, Host: a.host}); a.listener.isOpen &&
			!slices.Contains(to, one) {
			to = append(to, one)
		}
	}
	return to
}
