package proxy

import (
	"fmt"
	"net"
	"net/http"
	"reflect"
	"strings"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/cors"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/routing"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/storage/plain"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/proxy/rewrite"
	"github.com/admission-gateway/gateway/proxy/routes"
)

// A compiler makes routes of the rules of a routing.Table.
type compiler struct {
	gateway  *Gateway
	options  *Options
	into     *routeTable
	services []service // the backends of the table, by their index

	routes  []*route
	entries []routes.Entry[*choice]
}

// A service is a backend of a table, and the refusal of requests to it if there is one.
type service struct {
	backend  *backend
	spec     *config.UpstreamSpec
	obstacle *obstacle
}

// An obstacle is the answer to all requests of a route that cannot be followed.
type obstacle struct {
	status *status.Error
	cause  string // for operators
}

// mistaken is the obstacle of a route whose author has to mend it.
func mistaken(cause string) *obstacle {
	return &obstacle{status.Coded(http.StatusInternalServerError, "the route of the request cannot be followed"), cause}
}

// addServices makes the backends of the table, or takes them over from a Gateway before.
func (c *compiler) addServices(before *Gateway) {
	all := c.options.Routing.Backends
	c.services, c.into.services = make([]service, len(all)), make(map[string]*backend, len(all))
	for i := range all {
		c.services[i] = c.service(&all[i], before)
		if b := c.services[i].backend; b.origin != nil {
			b.lease.hold()
			c.into.backends, c.into.services[b.name] = append(c.into.backends, b), b
		}
	}
}

// service makes a backend of the table.
func (c *compiler) service(of *routing.Backend, before *Gateway) service {
	switch {
	case of.Fault != "":
		return service{backend: deadEnd(of.Name), obstacle: mistaken(of.Fault)}
	case of.Upstream != "":
		b := c.into.upstreams[of.Upstream]
		if b == nil {
			return service{backend: deadEnd(of.Name),
				obstacle: mistaken("the configuration has no upstream '" + of.Upstream + "'")}
		}
		return service{backend: b, spec: b.settings}
	case len(of.Servers) == 0:
		return service{backend: deadEnd(of.Name), obstacle: &obstacle{
			status.ServiceUnavailable("the backend has no server that is ready", 1), "the backend '" + of.Name +
				"' has no server that is ready",
		}}
	}
	if b := before.keepsService(of); b != nil {
		return service{backend: b, spec: b.settings}
	}
	b, err := c.gateway.newService(of, c.options.AsksVersions)
	if err != nil {
		return service{backend: deadEnd(of.Name), obstacle: mistaken(err.Error())}
	}
	return service{backend: b, spec: b.settings}
}

// keepsService returns the backend that a Gateway before has for the same servers, asked in the same way; nil if it has
// none.
func (g *Gateway) keepsService(of *routing.Backend) *backend {
	if g == nil {
		return nil
	}
	if b := g.routes.services[of.Name]; b != nil && reflect.DeepEqual(b.origin, of) {
		return b
	}
	return nil
}

// newService makes a backend of a table: an ordinary API.
func (s *common) newService(of *routing.Backend, asksVersions bool) (*backend, error) {
	scheme := "http://"
	var t *credentials.Peer
	if of.TLS != nil {
		scheme = "https://"
		t = &credentials.Peer{ServerName: of.TLS.ServerName, CAs: of.TLS.CAs, Names: of.TLS.Names}
		if own := of.TLS.Client; own != nil {
			t.Chain, t.Key = own.Chain, own.Key
		}
	}
	endpoints := make([]string, len(of.Servers))
	for i, server := range of.Servers {
		endpoints[i] = scheme + server
	}
	u := config.PlainUpstream(of.Name, endpoints)
	switch {
	case of.IsHTTP2 && of.TLS != nil:
		u.Protocol = config.AutoProtocol
	case of.IsHTTP2:
		u.Protocol = config.HTTP2Protocol
	}
	b, err := s.newBackend(u, t, nil, asksVersions)
	if err != nil {
		return nil, err
	}
	b.origin = of
	return b, nil
}

// deadEnd is a backend that no request reaches.
func deadEnd(name string) *backend {
	b := &backend{name: name, kind: plainKind{}, upgrades: newUpgrades(nil), comparisons: &plain.Comparisons{}}
	b.storage.Name = name
	return b
}

// addRoute adds a rule of the table: for each place that it is attached to, routes to its backends.
func (c *compiler) addRoute(rule *routing.Route) {
	matches := rule.Matches
	if len(matches) == 0 {
		matches = []routing.Match{{}}
	}
	for _, a := range rule.Attachments {
		one := c.choice(rule, matches, a)
		for i := range matches {
			c.entries = append(c.entries, routes.Entry[*choice]{Listener: a.Listener + 1, Host: a.Host,
				Match: &matches[i], Route: one})
		}
	}
}

// choice makes the routes of a rule in a place.
func (c *compiler) choice(rule *routing.Route, matches []routing.Match, a routing.Attachment) *choice {
	one, weights := &choice{}, []int32(nil)
	for i := range rule.Backends {
		if w := &rule.Backends[i]; w.Weight > 0 {
			one.routes, weights = append(one.routes, c.route(rule, matches, a, c.services[w.Backend], w.Filters)),
				append(weights, w.Weight)
		}
	}
	switch len(one.routes) {
	case 0:
		nothing := service{backend: deadEnd(""), obstacle: mistaken("the rule has no backend with a weight")}
		one.routes = []*route{c.route(rule, matches, a, nothing, nil)}
	case 1:
	default:
		one.shares = newShares(weights)
	}
	c.routes = append(c.routes, one.routes...)
	return one
}

// route makes the route of a rule to one of its backends.
func (c *compiler) route(rule *routing.Route, matches []routing.Match, a routing.Attachment, to service,
	own []routing.Filter) *route {
	listener := &c.options.Routing.Listeners[a.Listener]
	name := rule.Kind + "/" + rule.Namespace + "/" + rule.Name
	r := &route{
		host: a.Host, backend: to.backend, obstacle: to.obstacle, undescribed: config.PassUndescribed,
		place: resource.RouteRef{
			Host: a.Host, Upstream: to.backend.name, Route: name, Rule: rule.Rule, Gateway: listener.Gateway,
			Listener: listener.Section,
		},
		way: telemetry.Routing{Route: name, Upstream: to.backend.name, Rule: rule.Rule, Listener: listener.Name()},
		limits: c.gateway.limitsOn(c.options.Config, to.backend.settings,
			&config.Route{GRPC: rule.Kind == "GRPCRoute"}),
	}
	if u := to.spec; u != nil {
		on := &config.Route{}
		r.undescribed, r.errorFormat, r.errorTemplate = u.UndescribedOn(on), u.ErrorFormatOn(on), u.ErrorTemplateOn(on)
	}
	r.limits.Timeout, r.limits.AttemptTimeout = rule.Timeout, rule.AttemptTimeout
	if again := rule.Retry; again != nil {
		r.limits.Retry = &storage.Retry{Codes: again.Codes, Attempts: again.Attempts, Backoff: again.Backoff}
	}
	f := filters{route: r, listener: listener, services: c.services}
	f.read(rule.Filters)
	f.read(own)
	if r.mirrors != nil {
		common := filters{route: &route{}, services: c.services} // which mirrors get too
		common.read(rule.Filters)
		r.mirrorEdits = common.request
	}
	f.apply(matches, to.spec)
	return r
}

// filters are the compiled filters of a rule and of one of its backends.
type filters struct {
	route    *route
	listener *routing.Listener
	services []service
	rewrite  routing.Rewrite
	request  *message.Edits
	answer   *message.Edits
	redirect *routing.Redirect
	refused  *obstacle
}

// read reads filters, in their order. A filter that cannot be carried out refuses all requests.
func (f *filters) read(all []routing.Filter) {
	for i := range all {
		switch one := &all[i]; {
		case one.Request != nil:
			f.edit(&f.request, one.Request)
		case one.Answer != nil:
			f.edit(&f.answer, one.Answer)
		case one.Redirect != nil:
			f.redirect = one.Redirect
		case one.Rewrite != nil:
			if one.Rewrite.Host != "" {
				f.rewrite.Host = one.Rewrite.Host
			}
			if one.Rewrite.Path != nil {
				f.rewrite.Path = one.Rewrite.Path
			}
		case one.Mirror != nil:
			f.route.mirrors = append(f.route.mirrors, newMirror(one.Mirror, f.services))
		case one.CORS != nil:
			f.route.cors = newListedCORS(one.CORS)
		default:
			f.refuse(one.Unknown)
		}
	}
}

// newMirror returns what gets copies of requests.
func newMirror(of *routing.Mirror, services []service) mirror {
	m := mirror{to: services[of.Backend]}
	switch others := of.Denominator - of.Numerator; {
	case of.Denominator <= 0 || others <= 0:
	case of.Numerator <= 0:
		m.shares = &shares{until: []uint64{0, 1}} // none
	default:
		m.shares = newShares([]int32{of.Numerator, others})
	}
	return m
}

// refuse refuses all requests.
func (f *filters) refuse(cause string) {
	if cause == "" {
		cause = "a filter is not known"
	}
	f.refused = mistaken(cause)
}

// edit adds edits of header lines.
func (f *filters) edit(into **message.Edits, e *routing.HeaderEdits) {
	if *into == nil {
		*into = &message.Edits{}
	}
	for _, one := range [...][]routing.Header{e.Set, e.Add} {
		for _, h := range one {
			if err := message.CheckEdit(h.Name, h.Value); err != nil {
				f.refuse(err.Error())
				return
			}
		}
	}
	for _, h := range e.Set {
		(*into).Set(h.Name, h.Value)
	}
	for _, h := range e.Add {
		(*into).Add(h.Name, h.Value)
	}
	for _, name := range e.Remove {
		if err := message.CheckEdit(name, ""); err != nil {
			f.refuse(err.Error())
			return
		}
		(*into).Remove(name)
	}
}

// newListedCORS returns the policy of a filter of Gateway API.
func newListedCORS(c *routing.CORS) *cors.Policy {
	return cors.NewPolicy(cors.Options{
		Origins: c.Origins, Methods: c.Methods, Headers: c.Headers, Exposed: c.Exposed,
		HasCredentials: c.HasCredentials,
		MaxAgeSeconds:  int(c.MaxAge.Seconds()), IsListed: true,
	})
}

// apply has the route do what the filters say.
func (f *filters) apply(matches []routing.Match, spec *config.UpstreamSpec) {
	r := f.route
	var base string
	var authorities []string
	if spec != nil {
		base, authorities = spec.BasePath(), spec.Authorities()
	}
	for i := range matches {
		r.spans = append(r.spans, f.span(&matches[i].Path, base))
	}
	r.edits, r.answerEdits = f.request, f.answer
	isOfOnePrefix := len(matches) == 1 && matches[0].Path.Kind == routing.PathPrefix
	for _, path := range []*routing.PathEdit{f.rewrite.Path, f.redirectPath()} {
		if path != nil && path.IsPrefix && !isOfOnePrefix {
			f.refuse("a prefix is replaced in a rule that does not have one match, of a prefix")
		}
	}
	switch {
	case f.refused != nil:
		r.obstacle = f.refused
		return
	case f.redirect != nil:
		r.obstacle, r.redirect = nil, f.newRedirect(matches)
		return
	}
	first := r.spans[0]
	switch path := f.rewrite.Path; {
	case path != nil && !path.IsPrefix:
		r.rules = rewrite.NewWhole(base+path.Value, f.rewrite.Host, authorities...)
	case path != nil:
		r.rules = rewrite.New(first.from, first.to, f.rewrite.Host, authorities...)
	case base != "":
		r.rules = rewrite.New("", base, f.rewrite.Host, authorities...)
	default:
		r.rules = rewrite.New("", "", f.rewrite.Host, authorities...)
	}
}

// span returns the paths that requests of a match have, and what the backend gets in their place.
func (f *filters) span(m *routing.PathMatch, base string) span {
	from := strings.TrimSuffix(m.Value, "/")
	if m.Kind == routing.PathExpression {
		from = ""
	}
	switch path := f.rewrite.Path; {
	case path == nil:
		return span{from, base + from}
	case path.IsPrefix:
		return span{from, base + strings.TrimSuffix(path.Value, "/")}
	default:
		return span{from, base + path.Value}
	}
}

// redirectPath returns the path of the redirect; nil if there is none.
func (f *filters) redirectPath() *routing.PathEdit {
	if f.redirect == nil {
		return nil
	}
	return f.redirect.Path
}

// newRedirect returns what answers the requests of a rule.
func (f *filters) newRedirect(matches []routing.Match) *redirect {
	one := f.redirect
	r := &redirect{scheme: one.Scheme, host: one.Host, code: one.Code, port: one.Port}
	if r.port == 0 && one.Scheme == "" {
		r.port = f.listener.Port
	}
	if r.code == 0 {
		r.code = http.StatusFound
	}
	if path := one.Path; path != nil {
		if r.path = rewrite.NewWhole(path.Value, ""); path.IsPrefix {
			r.path = rewrite.New(strings.TrimSuffix(matches[0].Path.Value, "/"), strings.TrimSuffix(path.Value, "/"),
				"")
		}
	}
	return r
}

// A redirect answers requests with another URL. An empty field leaves what the request has.
type redirect struct {
	scheme, host string
	port         int32 // 0 is that of the scheme
	path         *rewrite.Rules
	code         int
}

// appendLocation appends the URL for a request that came by a scheme.
func (r *redirect) appendLocation(dst []byte, head *message.Head, scheme string) ([]byte, error) {
	if r.scheme != "" {
		scheme = r.scheme
	}
	host := r.host
	if host == "" {
		if host = str(head.Host); host == "" {
			return dst, status.BadRequest("the request must have the header 'Host', by which it is redirected")
		}
		if bare, _, err := net.SplitHostPort(host); err == nil {
			host = bare
			if strings.Contains(bare, ":") {
				host = "[" + bare + "]"
			}
		}
	}
	dst = append(append(append(dst, scheme...), "://"...), host...)
	if r.port != 0 && r.port != ownPort(scheme) {
		dst = fmt.Appendf(dst, ":%d", r.port)
	}
	if r.path == nil {
		return append(dst, head.Target...), nil
	}
	return r.path.AppendTarget(dst, head.Target)
}

// ownPort is the port that is not written after a scheme.
func ownPort(scheme string) int32 {
	if scheme == "https" {
		return 443
	}
	return 80
}
