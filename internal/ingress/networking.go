package ingress

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/admission-gateway/gateway/internal/routing"
)

// Kinds and annotations of networking.k8s.io.
const (
	kindIngress      = "Ingress"
	kindIngressClass = "IngressClass"
	classAnnotation  = "kubernetes.io/ingress.class" // older than the field
)

// ingressListeners are the listeners of Ingresses, one for each host and protocol, which are made as Ingresses ask for
// them.
type ingressListeners struct {
	addresses []netip.Addr
	shown     []gatewayv1.GatewayStatusAddress
	plain     map[string]int // indexes of the table's listeners, by host
	secure    map[string]int
	// owners are the namespaces that hosts belong to: that of the oldest Ingress that names the host.
	owners map[string]string
}

// ownIngresses are the Ingresses of the controller's classes, the oldest first.
func (c *translation) ownIngresses() []*networkingv1.Ingress {
	owned, isDefault := map[string]bool{}, false
	for _, class := range c.in.IngressClasses {
		if class.Spec.Controller == c.options.Controller {
			owned[class.Name] = true
			isDefault = isDefault || class.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true"
		}
	}
	var all []*networkingv1.Ingress
	for _, i := range byAge(c.in.Ingresses) {
		class := i.Annotations[classAnnotation]
		if i.Spec.IngressClassName != nil {
			class = *i.Spec.IngressClassName
		}
		if class == "" && isDefault || owned[class] {
			all = append(all, i)
		}
	}
	return all
}

// ingresses translates the Ingresses of the controller's classes.
func (c *translation) ingresses() {
	all := c.ownIngresses()
	if len(all) == 0 {
		return
	}
	l := &ingressListeners{plain: map[string]int{}, secure: map[string]int{}, owners: map[string]string{}}
	if len(c.options.Pool) > 0 {
		if !c.ofIngresses.IsValid() {
			for a := range c.free() {
				c.ofIngresses = a
				break
			}
		}
		if !c.ofIngresses.IsValid() {
			for _, i := range all {
				c.problem(kindIngress, i.Namespace, i.Name, "",
					"all addresses of the controller's pool belong to Gateways")
			}
			return
		}
		var own gateway
		own.take(c, c.ofIngresses)
		own.show(gatewayv1.IPAddressType, c.ofIngresses.String())
		l.addresses, l.shown = own.addresses, own.shown
	} else {
		l.shown = c.published()
	}
	for _, i := range all {
		c.ingress(l, i)
	}
}

// ingress translates an Ingress.
func (c *translation) ingress(l *ingressListeners, o *networkingv1.Ingress) {
	r := &reading{translation: c, object: routeObject{kind: kindIngress, Object: o}}
	for i := range o.Spec.TLS {
		r.ingressTLS(l, &o.Spec.TLS[i], i)
	}
	for i := range o.Spec.Rules {
		spec, path := &o.Spec.Rules[i], rulePath(i)
		host := strings.ToLower(spec.Host)
		attachments := r.ingressHost(l, host, path+".host")
		if len(attachments) == 0 {
			continue
		}
		if spec.HTTP == nil {
			if o.Spec.DefaultBackend != nil {
				r.ingressPath(attachments, strconv.Itoa(i), routing.PathMatch{Value: "/"}, o.Spec.DefaultBackend,
					"spec.defaultBackend")
			}
			continue
		}
		for j := range spec.HTTP.Paths {
			p, at := &spec.HTTP.Paths[j], fmt.Sprintf("%s.http.paths[%d]", path, j)
			match := routing.PathMatch{Value: p.Path}
			if match.Value == "" {
				match.Value = "/"
			}
			switch kind := or(p.PathType, networkingv1.PathTypeImplementationSpecific); kind {
			case networkingv1.PathTypeExact:
				match.Kind = routing.PathExact
			case networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific:
			default:
				r.problem(at+".pathType", fmt.Sprintf("the type '%s' is not supported", kind))
				continue
			}
			if !strings.HasPrefix(match.Value, "/") {
				r.problem(at+".path", fmt.Sprintf("'%s' must begin with '/'", match.Value))
				continue
			}
			r.ingressPath(attachments, fmt.Sprintf("%d.%d", i, j), match, &p.Backend, at+".backend")
		}
	}
	if o.Spec.DefaultBackend != nil {
		if attachments := r.ingressHost(l, "", "spec.defaultBackend"); len(attachments) > 0 {
			r.ingressPath(attachments, "default", routing.PathMatch{Value: "/"}, o.Spec.DefaultBackend,
				"spec.defaultBackend")
		}
	}
	c.statuses.ingress(o, l.shown)
}

// ingressHost returns where a host of an Ingress takes requests from; none if the host is another namespace's.
func (r *reading) ingressHost(l *ingressListeners, host, path string) []routing.Attachment {
	if !r.mayHave(l, host, path) {
		return nil
	}
	var all []routing.Attachment
	plain, found := l.plain[host]
	if !found {
		plain = r.ingressListener(l, host, r.options.IngressPort, nil, path)
		l.plain[host] = plain
	}
	if plain >= 0 {
		all = append(all, routing.Attachment{Listener: plain, Host: host})
	}
	for _, wide := range []string{host, wildcardOf(host), ""} {
		if secure, found := l.secure[wide]; found && secure >= 0 && l.owners[wide] == r.object.GetNamespace() {
			all = append(all, routing.Attachment{Listener: secure, Host: host})
			break
		}
	}
	return all
}

// wildcardOf is the host with "*." for all hosts beside this one.
func wildcardOf(host string) string {
	if _, parent, found := strings.Cut(host, "."); found {
		return "*." + parent
	}
	return host
}

// mayHave reports whether a host belongs to the namespace of an Ingress, which takes it if it is free.
func (r *reading) mayHave(l *ingressListeners, host, path string) bool {
	if problem := r.hostProblem(host); problem != "" {
		r.problem(path, problem)
		return false
	}
	owner, found := l.owners[host]
	if !found {
		l.owners[host] = r.object.GetNamespace()
		return true
	}
	if owner == r.object.GetNamespace() {
		return true
	}
	what := "all other hosts belong"
	if host != "" {
		what = "the host '" + host + "' belongs"
	}
	r.problem(path, fmt.Sprintf("%s to an older Ingress of the namespace '%s'", what, owner))
	return false
}

// ingressListener opens a listener for a host; -1 if the port has one for the host, or another protocol, by a Gateway.
func (r *reading) ingressListener(l *ingressListeners, host string, port int32, t *routing.ListenerTLS,
	path string) int {
	protocol := gatewayv1.HTTPProtocolType
	if t != nil {
		protocol = gatewayv1.HTTPSProtocolType
	}
	if len(r.options.Pool) == 0 {
		probe := &listener{gateway: &gateway{}, spec: gatewayv1.Listener{Port: port, Protocol: protocol}, host: host}
		for _, h := range r.held {
			if f := conflictOf(probe, h); f.is() {
				r.problem(path, f.message)
				return -1
			}
		}
	}
	r.out.Table.Listeners = append(r.out.Table.Listeners, routing.Listener{
		Gateway: kindIngress, Section: host + ":" + strconv.Itoa(int(port)), Port: port, Addresses: l.addresses,
		Host: host, TLS: t,
	})
	return len(r.out.Table.Listeners) - 1
}

// ingressTLS opens the listeners for the hosts of a certificate.
func (r *reading) ingressTLS(l *ingressListeners, spec *networkingv1.IngressTLS, i int) {
	path := fmt.Sprintf("spec.tls[%d]", i)
	if spec.SecretName == "" {
		r.problem(path+".secretName", "must name a Secret")
		return
	}
	certificate, f := r.secret(types.NamespacedName{Namespace: r.object.GetNamespace(), Name: spec.SecretName},
		"Invalid")
	if f.is() {
		r.problem(path+".secretName", f.message)
		return
	}
	hosts := spec.Hosts
	if len(hosts) == 0 {
		hosts = []string{""}
	}
	for j, host := range hosts {
		host, at := strings.ToLower(host), fmt.Sprintf("%s.hosts[%d]", path, j)
		if !r.mayHave(l, host, at) {
			continue
		}
		if _, found := l.secure[host]; !found {
			l.secure[host] = r.ingressListener(l, host, r.options.IngressTLSPort,
				&routing.ListenerTLS{Certificates: []routing.Certificate{*certificate}}, at)
		}
	}
}

// ingressPath puts a path of an Ingress into the table.
func (r *reading) ingressPath(attachments []routing.Attachment, rule string, match routing.PathMatch,
	backend *networkingv1.IngressBackend, path string) {
	if backend.Service == nil {
		r.problem(path, "must name a Service: other resources are not supported")
		return
	}
	name := types.NamespacedName{Namespace: r.object.GetNamespace(), Name: backend.Service.Name}
	port := backend.Service.Port.Number
	if s := r.services[name]; backend.Service.Port.Name != "" && s != nil && s.Service != nil {
		for _, p := range s.Spec.Ports {
			if p.Name == backend.Service.Port.Name {
				port = p.Port
			}
		}
	}
	t := r.target(&gatewayv1.BackendObjectReference{Name: gatewayv1.ObjectName(name.Name), Port: &port}, path, false)
	r.out.Table.Routes = append(r.out.Table.Routes, routing.Route{
		Kind: kindIngress, Namespace: r.object.GetNamespace(), Name: r.object.GetName(), Rule: rule,
		Attachments: attachments, Matches: []routing.Match{{Path: match}},
		Backends: []routing.WeightedBackend{{Backend: r.backend(t, nil), Weight: 1}},
	})
}
