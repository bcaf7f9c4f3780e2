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
	c := &translation{
		Translator: t, in: in, out: &Outcome{Table: &routing.Table{}},
		grants: grantsOf(in.ReferenceGrants), namespaces: namespacesOf(in.Namespaces, t.options.AreOfFiles),
		services: servicesOf(in), secrets: byName(in.Secrets), configMaps: byName(in.ConfigMaps),
		backends: map[backendKey]int{},
	}
	c.statuses.now = now
	c.policies = c.tlsPolicies()
	c.classes()
	c.gateways()
	c.routes()
	c.ingresses()
	c.unsupportedRoutes()
	c.out.translation = c
	t.pairs.turn()
	t.cas.turn()
	return c.out
}

// Statuses returns what became of the objects. unserved has the listeners of the table that take no requests although they
// are in force, by their names, and why.
func (o *Outcome) Statuses(unserved map[string]string) []Status {
	c := *o.translation
	c.statuses.all = slices.Clip(c.statuses.all)
	c.report(unserved)
	return c.statuses.all
}

// routes translates HTTPRoutes and GRPCRoutes, the oldest first.
func (c *translation) routes() {
	type one struct {
		metav1.Object
		translate func()
	}
	all := make([]one, 0, len(c.in.HTTPRoutes)+len(c.in.GRPCRoutes))
	for _, r := range c.in.HTTPRoutes {
		all = append(all, one{r, func() { c.httpRoute(r) }})
	}
	for _, r := range c.in.GRPCRoutes {
		all = append(all, one{r, func() { c.grpcRoute(r) }})
	}
	slices.SortStableFunc(all, older[one])
	for i := range all {
		all[i].translate()
	}
}
