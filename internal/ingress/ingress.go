// Package ingress translates objects of Gateway API, and Ingresses, into what the data plane routes by, and into the
// statuses that say what became of them. It reads and writes nothing itself: where the objects come from, files or a
// cluster, is its caller's affair.
//
// It fails closed. A reference into another namespace counts only if a ReferenceGrant allows it, a route takes requests
// only from listeners that allow its namespace and its kind, and what cannot be carried out is an error for the clients
// of the rule that asks for it, never a rule that is left out in silence.
package ingress

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/admission-gateway/gateway/internal/routing"
)

// New returns a Translator.
func New(o Options) *Translator {
	if o.Controller == "" {
		o.Controller = DefaultController
	}
	if o.IngressPort == 0 {
		o.IngressPort = 80
	}
	if o.IngressTLSPort == 0 {
		o.IngressTLSPort = 443
	}
	return &Translator{options: o}
}

// Translate translates a snapshot. Conditions that change have changed now.
func (t *Translator) Translate(in *Objects, now time.Time) *Outcome {
	typical := len(in.HTTPRoutes) + len(in.GRPCRoutes) // routes have one rule with one backend more often than not
	c := &translation{
		Translator: t, in: in,
		out: &Outcome{Table: &routing.Table{
			Routes:   make([]routing.Route, 0, typical),
			Backends: make([]routing.Backend, 0, min(typical, len(in.Services))),
		}},
		statuses: statuses{now: now, all: make([]Status, 0, typical)},
		grants:   grantsOf(in.ReferenceGrants), namespaces: namespacesOf(in.Namespaces, t.options.AreOfFiles),
		services: servicesOf(in), secrets: byName(in.Secrets), configMaps: byName(in.ConfigMaps),
		backends: make(map[backendKey]int, min(typical, len(in.Services))),
	}
	c.policies = c.tlsPolicies()
	c.classes()
	c.gateways()
	c.routes()
	c.ingresses()
	c.unsupportedRoutes()
	c.out.translation = c
	t.pairs.turn()
	t.cas.turn()
	t.hosts.turn()
	return c.out
}

// Statuses returns what became of the objects. unserved has the listeners of the table that take no requests although
// they are in force, by their names, and why.
func (o *Outcome) Statuses(unserved map[string]string) []Status {
	c := *o.translation
	c.statuses.all = slices.Clip(c.statuses.all)
	c.report(unserved)
	return c.statuses.all
}

// routes translates HTTPRoutes and GRPCRoutes, the oldest first.
func (c *translation) routes() {
	all := make([]metav1.Object, 0, len(c.in.HTTPRoutes)+len(c.in.GRPCRoutes))
	for _, r := range c.in.HTTPRoutes {
		all = append(all, r)
	}
	for _, r := range c.in.GRPCRoutes {
		all = append(all, r)
	}
	for _, o := range byAge(all) {
		switch r := o.(type) {
		case *gatewayv1.HTTPRoute:
			c.httpRoute(r)
		case *gatewayv1.GRPCRoute:
			c.grpcRoute(r)
		}
	}
}
