package proxy

import (
	"strings"

	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/server"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage/plain"
	"github.com/admission-gateway/gateway/policies/matching"
)

// resolve finds the backend, the resource and the verb.
func resolve(r *request) error {
	if err := resolveTarget(r); err != nil || r.upgrade.protocol == nil && !isLongRunning(&r.Info) {
		return err
	}
	// A request that is served for hours does not hold the connection's buffer for its own few bytes.
	r.incoming.Detach()
	return resolveTarget(r)
}

func resolveTarget(r *request) error {
	r.Warnings = r.Warnings[:0]
	head := &r.incoming.Head
	nameRequest(r, head)
	choice, err := r.gateway.routes.look(listenerOf(r), head)
	if err != nil {
		r.route = nil
		return err
	}
	r.route = choice.pick(r.route)
	r.Limits = &r.route.limits
	from, peer := &r.From, r.incoming.Peer()
	*from = message.Forward{} // and filled in place, for it is large
	from.Peer, from.Proto, from.Trace, from.Stripped = peer.IP, peer.Proto, r.telemetry.lines, r.telemetry.stripped
	if rules := r.route.rules; rules != nil {
		if err := rewriteRequest(r, rules); err != nil {
			return err
		}
	}
	scopes := r.gateway.scopesOf(r.set)
	resolver := scopes.resolver(r.route)
	info, res, err := resolver.Resolve(str(head.Method), head.Target)
	info.Place = &r.route.place
	r.SetSubject(&info, res)
	if deprecated := r.set.Deprecation(res); deprecated != "" {
		r.Warnings = append(r.Warnings, deprecated)
	}
	if err == nil {
		err = checkHead(r, resolver)
	}
	if err != nil {
		if !shadowUnreadable(r, res, err) {
			return err
		}
		info, res = r.Info, nil
		if err := dropForeign(r.incoming); err != nil {
			return err
		}
	}
	if head.Upgrade != nil {
		r.incoming.Linger() // the client may be sending in the other protocol already
	}
	if info.Subresource != "" || !info.IsResource {
		resolveConnect(r)
	}
	r.scope = scopes.find(r.gateway, r.route, res, &r.Info, r.Info.Connect || r.upgrade.protocol != nil)
	from.Edits = r.scope.editing.request
	r.permission, r.body = permission{}, body{}
	if r.scope.isJudged {
		beginFindings(r)
	}
	return nil
}

// A Forecast says what becomes of a request, as far as its method and target determine it. It is
// for operators.
type Forecast struct {
	// Place and PathPrefix are of the route by which the request comes.
	Place      resource.RouteRef
	PathPrefix string
	// Info says which resource is meant. IsDescribed says that a policy file describes it.
	Info        resource.Info
	IsDescribed bool
	// Stages are the steps of the operation's requests, in their order.
	Stages []string
	// Proof says who compares preconditions now; nil if that does not depend on what the backend was seen to do.
	Proof *plain.Proof
	// Refusal is why no policy is asked about the request; nil if they are.
	Refusal       error
	Applicability matching.Forecast
}

// Forecast returns the forecast of a request line, a method and a path or a URL.
func (g *Gateway) Forecast(request string) (f Forecast) {
	head, err := parseLine(request)
	if err != nil {
		return Forecast{Refusal: err}
	}
	choice, err := g.routes.lookAnywhere(&head)
	if err != nil {
		f.Refusal = err
		return f
	}
	one := choice.routes[0]
	f.Place, f.PathPrefix = one.place, one.spans[0].from
	if one.rules != nil {
		if head.Target, f.Refusal = one.rules.AppendTarget(nil, head.Target); f.Refusal != nil {
			return f
		}
	}
	set := g.policies()
	var about *resource.Resource
	f.Info, about, f.Refusal = g.scopesOf(set).resolver(one).Resolve(string(head.Method), head.Target)
	f.Info.Place = &one.place
	f.IsDescribed = about != nil || f.Info.Documented != nil
	if f.Refusal != nil {
		return f
	}
	if f.Info.Subresource != "" && one.backend.upgrades.allows(&f.Info) {
		f.Info.Connect = true
	}
	s := g.scopesOf(set).find(g, one, about, &f.Info, f.Info.Connect)
	switch {
	case s.held != nil:
		f.Refusal = heldError(s.held)
	case s.isClosed && s.shadowed == nil:
		f.Refusal = status.MethodNotAllowed(about.GroupResource(), string(head.Method))
	case f.Info.IsUndescribed:
		f.Refusal = one.admit(&head, &f.Info)
	}
	if f.Refusal != nil {
		return f
	}
	f.Stages = names(s.stages)
	if p, ok := g.proofOf(one.backend, about, str(head.Method)); ok {
		f.Proof = &p
	}
	f.Applicability = matching.Of(set, &f.Info, about, &one.place)
	return f
}

// parseLine reads a request line without a version. The host of a URL becomes the Host.
func parseLine(request string) (head message.Head, err error) {
	if strings.ContainsAny(request, "\r\n") {
		return head, status.BadRequest("the request must be a method and a path, in one line")
	}
	host := ""
	_, target, _ := strings.Cut(request, " ")
	if authority, _, isURL := CutURL(target); isURL {
		host = "Host: " + authority + "\r\n"
	}
	if err := head.Parse([]byte(request+" HTTP/1.0\r\n"+host+"\r\n"),
		&message.Options{TargetBytes: maxForecast}); err != nil {
		return head, err
	}
	return head, nil
}

// CutURL cuts a URL into its host and port and the target of its requests. A target that is none stays as it is.
func CutURL(text string) (authority, target string, isURL bool) {
	scheme, rest, found := strings.Cut(text, "://")
	if !found || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return "", text, false
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		return rest, "/", true
	}
	authority, target = rest[:end], rest[end:]
	if target, _, _ = strings.Cut(target, "#"); !strings.HasPrefix(target, "/") {
		target = "/" + target
	}
	return authority, target, true
}

// maxForecast is how long the target of a request may be that is only asked about.
const maxForecast = 4 << 10

// isLongRunning reports whether the answer may be a stream that nothing ends: a watch, a log that is followed, another
// protocol.
func isLongRunning(i *resource.Info) bool {
	return i.Options.Watch || i.Subresource == "log" && strings.Contains(i.Query, "follow=") ||
		!i.IsResource && strings.Contains(i.Query, "watch=")
}

// checkHead refuses what a head may not have if files describe the path, or any path of the backend: another
// reader could take the request for one about another path, or of another method. If nothing is described of
// a backend, it gets all headers as they came.
func checkHead(r *request, resolver resource.Resolver) error {
	if !resolver.IsDescribed() {
		return nil
	}
	if err := dropForeign(r.incoming); err != nil {
		return err
	}
	if r.Info.IsUndescribed {
		return nil
	}
	var declared message.HeaderNames
	if o := declaring(r); o != nil {
		declared = o
	}
	err := r.incoming.Head.CheckNames(declared)
	if err == nil && !takesBody(r) {
		err = r.incoming.Head.CheckNoBody()
	}
	if err != nil {
		r.incoming.Linger() // who sends such a head may mean another request than the one that was read
		return err
	}
	return nil
}

// declaring returns what a document says of the operation, if a header's name needs it: it may have a '_' then.
func declaring(r *request) *contract.Operation {
	if !r.incoming.Head.HasUnderscore() {
		return nil
	}
	return r.route.backend.kind.operation(r.set, r.Resource, &r.Info)
}

// takesBody reports whether a document says that requests of the operation have bodies, whatever their method.
func takesBody(r *request) bool {
	i := &r.Info
	if i.Documented == nil {
		return false
	}
	o := r.set.Operation(nil, i)
	return o != nil && len(o.Bodies) > 0
}

// dropForeign refuses headers that name another path, and drops headers in which a client that is not
// trusted says what its address is.
func dropForeign(r *server.Request) error {
	head := &r.Head
	if head.Has(message.FieldTargetOverride) {
		for _, l := range head.Headers() {
			if l.Field == message.FieldTargetOverride && !l.Dropped {
				return status.BadRequest("the request has the header '%s': a request must not name its path outside the request line", l.Name)
			}
		}
	}
	if !r.Peer().IsTrusted {
		head.Drop(message.Fields(message.FieldClientAddress))
	}
	return nil
}
