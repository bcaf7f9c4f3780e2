package policies

import (
	"fmt"
	"slices"
	"strings"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/admission-gateway/gateway/internal/ingress"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/routing"
	"github.com/admission-gateway/gateway/policies/applicability"
	"github.com/admission-gateway/gateway/policies/finding"
)

// The groups of the kinds that routes are made of, beside Kubernetes' core.
const (
	gatewayGroup    = gatewayv1.GroupName
	networkingGroup = "networking.k8s.io"
)

// routeObject names an object that routes are made of.
type routeObject struct{ kind, namespace, name string }

// routeFiles are the objects of the files that routes are made of.
type routeFiles struct {
	objects ingress.Objects
	from    map[routeObject]*manifest.Object
	// referred are objects of kinds that are about other things too, which are read if there are routes.
	referred []*manifest.Object
}

// routes makes the kinds of a group that routes are made of, of which an object is read into the type that ingress has.
func routes(group, name string) kind {
	k := routeKind(group, name)
	return kind{
		group: group, name: name, versions: k.Versions, isNamespaced: !k.IsClusterScoped,
		sharesGroup: group != gatewayGroup,
		part:        func(l *loader) any { return part[routeFiles](l) },
		decode: func(f *findings, o *manifest.Object) (any, bool) {
			into := k.New()
			return into, readKubernetes(f, o, into)
		},
		collect: func(l *loader, o *manifest.Object, read any) {
			part[routeFiles](l).add(k, o, read)
			if !k.IsClusterScoped {
				l.otherObject(o) // others may refer to it
			}
		},
	}
}

// routeKind returns a kind that routes are made of; nil if it is none.
func routeKind(group, name string) *ingress.Kind {
	i := slices.IndexFunc(ingress.Kinds, func(k ingress.Kind) bool { return k.Group == group && k.Kind == name })
	if i < 0 {
		return nil
	}
	return &ingress.Kinds[i]
}

func (r *routeFiles) add(k *ingress.Kind, o *manifest.Object, read any) {
	k.Add(&r.objects, read)
	if r.from == nil {
		r.from = map[routeObject]*manifest.Object{}
	}
	namespace := o.Namespace
	if k.IsClusterScoped {
		namespace = ""
	}
	r.from[routeObject{k.Kind, namespace, o.Name}] = o
}

// refer keeps an object that is none of a policy for the routes, if its kind is one that they refer to.
func (r *routeFiles) refer(o *manifest.Object) {
	if group, _ := o.GroupVersion(); routeKind(group, o.Kind) != nil && group != gatewayGroup &&
		group != networkingGroup {
		r.referred = append(r.referred, o)
	}
}

// translate makes routes of the objects of the files. What of them cannot be in force is an error.
func (l *loader) translate() {
	r := part[routeFiles](l)
	if len(r.from) == 0 {
		return
	}
	for _, o := range r.referred {
		group, _ := o.GroupVersion()
		k := routeKind(group, o.Kind)
		if into := k.New(); readKubernetes(&l.findings, o, into) {
			r.add(k, o, into)
		}
	}
	out := ingress.New(ingress.Options{Controller: l.gateway.Controller, AreOfFiles: true}).Translate(&r.objects,
		time.Time{})
	for _, p := range out.Problems {
		if o := r.from[routeObject{p.Kind, p.Namespace, p.Name}]; o != nil {
			l.At(o, Error, p.Path, "%s", p.Message)
		}
	}
	l.unattached(r, out)
	l.set.routing = out.Table
	l.set.listenersAt = make(map[string]Finding, len(out.Table.Listeners))
	for i := range out.Table.Listeners {
		one := &out.Table.Listeners[i]
		if o := r.from[ownerOf(one)]; o != nil {
			l.set.listenersAt[one.Name()] = finding.Of(o, "spec.listeners")
		}
	}
	if l.gateway.DescribesRoutes {
		l.describeRoutes(r, out.Table)
	}
}

// ownerOf names the object that has a listener.
func ownerOf(l *routing.Listener) routeObject {
	kind, id := "Gateway", l.Gateway
	if set := strings.LastIndexByte(l.Section, '/'); set >= 0 {
		kind, id = "ListenerSet", l.Section[:set]
	}
	namespace, name, _ := strings.Cut(id, "/")
	return routeObject{kind, namespace, name}
}

// ListenerAt returns a finding without a message at the object that has a listener of Routing.
func (s *Set) ListenerAt(name string) Finding { return s.listenersAt[name] }

// unattached finds objects that are meant for no Gateway of the files. Those of another controller, whose class the
// files have, are its own affair.
func (l *loader) unattached(r *routeFiles, out *ingress.Outcome) {
	attached := map[routeObject]bool{}
	for _, s := range out.Statuses(nil) {
		attached[routeObject{s.Kind, s.Namespace, s.Name}] = true
	}
	controller := l.gateway.Controller
	if controller == "" {
		controller = ingress.DefaultController
	}
	isForeign := slices.ContainsFunc(r.objects.GatewayClasses,
		func(c *gatewayv1.GatewayClass) bool { return string(c.Spec.ControllerName) != controller })
	for _, o := range l.all {
		id := routeObject{o.Kind, o.Namespace, o.Name}
		if r.from[id] != o || attached[id] {
			continue
		}
		switch group, _ := o.GroupVersion(); {
		case o.Kind == "Ingress":
			l.At(o, Warning, "spec.ingressClassName", "the Ingress is not served: the files have no IngressClass of it whose `controller` is '%s'", controller)
		case group != gatewayGroup || isForeign:
		case o.Kind == "Gateway":
			l.At(o, Error, "spec.gatewayClassName",
				"must be the name of a GatewayClass of the files whose `controllerName` is '%s'", controller)
		case o.Kind == "ListenerSet":
			l.At(o, Error, "spec.parentRef", "must lead to a Gateway of the files")
		case strings.HasSuffix(o.Kind, "Route"):
			l.At(o, Error, "spec.parentRefs", "must lead to a Gateway or a ListenerSet of the files")
		}
	}
}

// maxDescribed is how many of the places are named at which a route takes requests.
const maxDescribed = 4

// describeRoutes says of each route for which requests it is in force.
func (l *loader) describeRoutes(r *routeFiles, table *routing.Table) {
	places := map[routeObject][]string{}
	for i := range table.Routes {
		one := &table.Routes[i]
		id := routeObject{one.Kind, one.Namespace, one.Name}
		for _, a := range one.Attachments {
			at := &table.Listeners[a.Listener]
			host := "all hosts"
			if a.Host != "" {
				host = "'" + a.Host + "'"
			}
			if text := fmt.Sprintf("%s on the port %d of '%s' (%s)", host, at.Port, at.Gateway,
				at.Section); !slices.Contains(places[id], text) {
				places[id] = append(places[id], text)
			}
		}
	}
	for id, all := range places {
		if len(all) > maxDescribed {
			all = append(all[:maxDescribed:maxDescribed], fmt.Sprintf("%d more", len(all)-maxDescribed))
		}
		l.At(r.from[id], Remark, "", "takes requests for %s", strings.Join(all, ", "))
	}
}

// checkEdits finds filters that edit header lines on which it depends what a backend takes a request for: the gateway
// leaves these as they are if files describe the request.
func (l *loader) checkEdits() []Finding {
	var f findings
	table := l.set.routing
	if table == nil || l.set.registry == nil {
		return nil
	}
	objects := part[routeFiles](l).from
	for i := range table.Routes {
		r := &table.Routes[i]
		names := judgedNames(r)
		if len(names) == 0 || !slices.ContainsFunc(r.Attachments,
			func(a routing.Attachment) bool { return l.describes(ruleAt(table, r, a)) }) {
			continue
		}
		if o := objects[routeObject{r.Kind, r.Namespace, r.Name}]; o != nil {
			f.At(o, Warning, "spec.rules", "the filters of the rule '%s' do not edit '%s' of requests that files describe: these were judged with what the client sent",
				r.Rule, strings.Join(names, "', '"))
		}
	}
	return f.Found
}

// judgedNames are the names of the header lines of requests that filters of a rule edit, and that the gateway leaves as
// they are if the requests are judged.
func judgedNames(r *routing.Route) (names []string) {
	note := func(name string) {
		if (message.Judged | message.Paths).IsEdited(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	all := slices.Clone(r.Filters)
	for i := range r.Backends {
		all = append(all, r.Backends[i].Filters...)
	}
	for i := range all {
		if e := all[i].Request; e != nil {
			for _, h := range slices.Concat(e.Set, e.Add) {
				note(h.Name)
			}
			for _, name := range e.Remove {
				note(name)
			}
		}
	}
	return names
}

// describes reports whether files describe anything for requests that come by a route.
func (l *loader) describes(p *resource.RouteRef) bool {
	return slices.ContainsFunc(l.set.registry.Resources(),
		func(r *resource.Resource) bool { return r.Scope.Covers(p) }) ||
		slices.ContainsFunc(l.set.registry.Documented(),
			func(d *resource.Documented) bool { return d.IsHeld && d.Scope.Covers(p) })
}

// Routing are the listeners and routes of the files; nil if there are none. The answer must not be changed.
func (s *Set) Routing() *routing.Table { return s.routing }

// hasTarget reports whether a table, which may be nil, has requests for a target.
func hasTarget(table *routing.Table, t *resource.Target) bool {
	if table == nil {
		return false
	}
	scope := resource.Scope{Targets: []resource.Target{*t}}
	for i := range table.Listeners { // a Gateway without routes yet is one all the same
		if l := &table.Listeners[i]; t.Route == "" &&
			scope.Covers(&resource.RouteRef{Gateway: l.Gateway, Listener: l.Section}) {
			return true
		}
	}
	for i := range table.Routes {
		r := &table.Routes[i]
		if t.Route != "" && scope.Covers(&resource.RouteRef{Route: r.Kind + "/" + r.Namespace + "/" + r.Name,
			Rule: r.Rule}) {
			return true
		}
	}
	return false
}

// placesOf are the rules of a table, once for each listener, as scopes name them.
func placesOf(table *routing.Table) []applicability.NamedPlace {
	var all []applicability.NamedPlace
	for i := range table.Routes {
		r := &table.Routes[i]
		for _, a := range r.Attachments {
			all = append(all, applicability.NamedPlace{
				RouteRef: ruleAt(table, r, a), Words: fmt.Sprintf("the rule '%s' of the %s '%s/%s'", r.Rule, r.Kind,
					r.Namespace, r.Name),
			})
		}
	}
	return all
}

// ruleAt is a rule of a table as scopes name it, by one of its attachments.
func ruleAt(table *routing.Table, r *routing.Route, a routing.Attachment) *resource.RouteRef {
	l := &table.Listeners[a.Listener]
	return &resource.RouteRef{Host: a.Host, Route: r.Kind + "/" + r.Namespace + "/" + r.Name, Rule: r.Rule,
		Gateway: l.Gateway, Listener: l.Section}
}
