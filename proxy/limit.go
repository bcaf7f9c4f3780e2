package proxy

import (
	"net/netip"
	"time"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cors"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/readings"
	"github.com/admission-gateway/gateway/internal/server"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// limits are the rate limits that match one request.
type limits struct {
	limiting
	request cel.Request // what expressions see; zero before one is asked
	charges ratelimit.Charges
	lines   []byte // of the answer's head, which show what is left of the limits
}

// limiting is what limits know of one request, and forget with it.
type limiting struct {
	gateway   *Gateway
	scope     *scope // nil until it is known
	incoming  *server.Request
	who       *who
	handled   *storage.Request
	trail     *trail
	admission *admitter

	retryAfter int     // seconds, if a rate limit refuses
	refusedBy  string  // the rate limit that refuses
	headers    headers // what expressions see of the request's head
}

// begin prepares for a request.
func (l *limits) begin(h *handler) {
	l.gateway, l.scope, l.incoming, l.who, l.handled, l.trail, l.admission = h.gateway, h.scope, h.incoming, &h.who, h.request, h.trail, h.admission
}

// reset forgets the request.
func (l *limits) reset() {
	if l.request.Headers != nil {
		l.request = cel.Request{}
	}
	l.charges.Reset()
	l.limiting, l.lines = limiting{}, storage.Kept(l.lines)
}

// timeOf returns the time by which rollouts and exceptions are judged.
func (g *Gateway) timeOf(r *storage.Request) time.Time {
	if g.clock != nil {
		return g.clock()
	}
	return r.Started
}

// enforceLimits refuses the request if a rate limit does.
func (h *handler) enforceLimits() error { return h.limits.enforce() }

// enforce counts the request by the rate limits that apply to it, reads included (ERR-3): first whether one more may be
// served at all, then whether the client exceeds a limit. A request that is refused takes nothing from any limit.
func (l *limits) enforce() error {
	r := ratelimit.Request{
		Info: &l.handled.Info, At: l.gateway.timeOf(l.handled), Place: &l.scope.route.place, ClientAddress: l.who.client, Username: l.who.user.Name, Groups: l.who.user.Groups,
		Headers: l.headersRead(), Repeated: l.headers.takeRepeated, Frame: l.frame,
	}
	l.scope.limits.Charge(&l.charges, &r)
	if i := &l.handled.Info; i.IsUndescribed && l.scope.limits.Evaluates() && !readings.IsPlain(i.Path) {
		if err := l.countedAlike(r); err != nil {
			return err
		}
	}
	if r := l.charges.Repeated(); r.Header != "" {
		return status.BadRequest("the request has the header '%s' more than once, and the rate limit '%s' reads it", r.Header, r.Rule)
	}
	limiter := l.gateway.limiter
	if full := limiter.Enter(&l.charges); full != nil {
		if d := limiter.Peek(&l.charges, time.Now()); !d.Allowed() {
			return l.tooMany(d) // a client over its limit need not wait for the refusal
		}
		if err := l.queue(full); err != nil {
			return err
		}
	}
	// The time of the decision counts: to find out who asks may have taken long.
	d := l.decide(time.Now())
	if !d.Allowed() {
		limiter.Leave(&l.charges)
		return l.tooMany(d)
	}
	for i := range l.charges.All() {
		c := &l.charges.All()[i]
		if c.Tried {
			l.gateway.countOf(c.Rule.Rollout).Add(c.Exceeds())
		}
		if !c.Exceeds() {
			l.gateway.metrics.LimitDecided(c.Rule.Name, "Admit")
			continue
		}
		l.gateway.metrics.LimitDecided(c.Rule.Name, "Warn")
		l.gateway.metrics.RateLimitWarned(c.Rule.Name)
		l.handled.Warnings = append(l.handled.Warnings, c.Warning())
	}
	return nil
}

// countedAlike refuses a request whose path servers may read as one that would be counted in another way: a client could
// choose by the spelling of the path which limits count it, and where.
func (l *limits) countedAlike(r ratelimit.Request) error {
	var rule, other string
	r.Repeated = nil
	if !readings.Any(l.handled.Info.Path, func(reading string) bool {
		f := cel.NewFrame(l.admission.context())
		defer f.Release()
		f.SetDeadline(l.handled.Deadline())
		f.SetMemory(l.handled.Memory)
		r.Frame = func() *cel.Frame {
			asRead := l.limited()
			asRead.Path = reading
			f.Vars().SetLimited(&asRead)
			f.Vars().SetHTTP(&readAs{(*storage.HTTP)(l.handled), reading})
			return f
		}
		var charges ratelimit.Charges
		l.scope.limits.Charge(&charges, &r)
		rule, other = l.charges.Differing(&charges), reading
		return rule != ""
	}) {
		return nil
	}
	if rule == "" {
		return status.BadRequest("the request path '%s' is refused: it can be read in too many ways", l.handled.Info.Path)
	}
	return status.BadRequest("the request path '%s' is refused: the path could be read as '%s', which the rate limit '%s' counts in another way. "+
		"Spell it as all servers read it", l.handled.Info.Path, other, rule)
}

// readAs is a request with the path that a server may read.
type readAs struct {
	*storage.HTTP
	path string
}

// Path implements cel.HTTP.
func (r *readAs) Path() string { return r.path }

// decide holds the request against the limits over time. Redis may keep some of them.
func (l *limits) decide(now time.Time) ratelimit.Decision {
	d := l.gateway.limiter.Decide(&l.charges, now)
	if s := l.trail.spans; s != nil {
		if sent, err := l.charges.WereSent(); sent {
			s.Limited(now, err)
		}
	}
	return d
}

// queue waits until the request may be served, under the limit on requests in flight that has no
// room for it and under all others: not longer than its queue and the client's own deadline allow,
// and not after the client has gone.
func (l *limits) queue(full *ratelimit.Charge) error {
	if l.gateway.server.Draining() {
		return status.ServiceUnavailable("the gateway is about to stop, and lets no more requests wait", ratelimit.ShutdownRetryAfter)
	}
	if full.Rule.InFlight.QueueLength == 0 {
		return l.crowded(full)
	}
	until := time.Now().Add(full.Rule.InFlight.QueueTimeout)
	if d := l.handled.Deadline(); !d.IsZero() && d.Before(until) {
		until = d
	}
	l.gateway.metrics.WaitStarted()
	defer l.gateway.metrics.WaitEnded()
	wait := l.incoming.Client.Signal()
	full = l.gateway.limiter.Wait(&l.charges, full, until, wait.Left())
	wait.Done()
	if full != nil {
		return l.crowded(full)
	}
	return nil
}

// crowded is the answer to a request that cannot be served because too many others are.
func (l *limits) crowded(full *ratelimit.Charge) error {
	l.retryAfter = l.gateway.limiter.Dropped(full, time.Now())
	l.refusedBy = full.Rule.Name
	l.gateway.metrics.LimitDecided(l.refusedBy, "Refuse")
	l.gateway.metrics.RateLimited(l.refusedBy)
	return status.TooManyRequests(full.CrowdedMessage(l.retryAfter), l.retryAfter)
}

// leave ends the time in which the request counts as being served. It may be called again.
func (l *limits) leave() { l.gateway.limiter.Leave(&l.charges) }

// leaveEarly ends that time before an answer is sent that is in memory: the backend is done with it, and how long the client
// takes must not keep others from it. An answer that waits for a client is counted to its share of the memory. A client
// whose share is used up keeps the place of its request until it has taken the answer. release is called then.
func (l *limits) leaveEarly(size int) (release func()) {
	if !l.charges.Flying() {
		return func() {}
	}
	if size <= sentAtOnce {
		l.leave()
		return func() {}
	}
	share := l.share()
	if !share.Count(size) {
		return func() {}
	}
	l.leave()
	return func() { share.Uncount(size) }
}

// share is the client's share of the memory for answers that it takes slowly: a user's, or an address's.
func (l *limits) share() memory.Share {
	client := "user " + l.who.user.Name
	if l.who.user.Name == l.gateway.anonymous.Name {
		client = "address " + networkOf(l.who.client).String()
	}
	return l.gateway.memory.ShareOf(client)
}

// networkOf is an address without what its holder chooses: a holder of an IPv6 address has a /64 of
// them.
func networkOf(a netip.Addr) netip.Addr {
	if a = a.Unmap(); a.Is6() {
		if network, err := a.Prefix(64); err == nil {
			return network.Addr()
		}
	}
	return a
}

// tooMany is the answer to a client that has come too often.
func (l *limits) tooMany(d ratelimit.Decision) error {
	l.retryAfter, l.refusedBy = d.RetryAfter, d.Charge.Rule.Name
	l.gateway.metrics.LimitDecided(l.refusedBy, "Refuse")
	if d.Unavailable {
		return status.ServiceUnavailable(d.Message(), d.RetryAfter)
	}
	l.gateway.metrics.RateLimited(l.refusedBy)
	return status.TooManyRequests(d.Message(), d.RetryAfter)
}

// show shows in the answer how much of the limits over time is left, in the headers of the IETF's draft
// (draft-ietf-httpapi-ratelimit-headers).
func (l *limits) show() {
	const policyName, stateName = "RateLimit-Policy: ", "RateLimit: "
	lines := append(l.lines[:0], policyName...)
	lines = l.charges.AppendPolicy(lines)
	if len(lines) == len(policyName) {
		return
	}
	lines = append(append(lines, "\r\n"...), stateName...)
	lines = l.charges.AppendState(lines, l.retryAfter)
	l.lines = append(lines, "\r\n"...)
	l.handled.Response.AddLines(str(l.lines))
	cors.Expose(&l.handled.Response.Response, "RateLimit, RateLimit-Policy")
}

// frame binds the request for the expressions of rate limits, once.
func (l *limits) frame() *cel.Frame {
	f := l.admission.frame()
	if l.request.Headers != nil {
		return f
	}
	l.request = l.limited()
	f.Vars().SetLimited(&l.request)
	f.Vars().SetHTTP((*storage.HTTP)(l.handled))
	return f
}

// limited is what expressions see of the request.
func (l *limits) limited() cel.Request {
	address := l.incoming.Peer().IP
	if l.who.client != l.incoming.Peer().Addr {
		address = l.who.client.String()
	}
	return cel.Request{
		Verb: l.handled.Info.VerbName(), Path: l.handled.Info.Path, Group: l.handled.Info.Group, Version: l.handled.Info.Version, Resource: l.handled.Info.Resource,
		Subresource: l.handled.Info.Subresource, Namespace: l.handled.Info.Namespace, Name: l.handled.Info.Name,
		User:          cel.User{Name: l.who.user.Name, UID: l.who.user.UID, Groups: l.who.user.Groups, Extra: l.who.user.Extra},
		ClientAddress: address, Headers: l.headersRead(), Query: l.handled.Info.Query, BodyBytes: l.announced(),
	}
}

// announced is how long the body is, or may become if the client does not declare it beforehand.
func (l *limits) announced() int64 {
	if length := l.incoming.Head.ContentLength; length >= 0 {
		return length
	}
	return l.handled.Limits.Body
}

// headersRead returns the headers that rate limits see.
func (l *limits) headersRead() *headers {
	l.headers.head = &l.incoming.Head
	return &l.headers
}

// headers shows the client's header lines to rate limits; dropped ones do not count.
type headers struct {
	head *message.Head
	// repeated is a header that was looked up, and has more lines than it may mean.
	repeated string
}

// takeRepeated returns such a header once.
func (h *headers) takeRepeated() string {
	name := h.repeated
	h.repeated = ""
	return name
}

// Get implements cel.Headers.
func (h *headers) Get(name string) (string, bool) {
	value, found := h.joined(name)
	if found && h.head.Repeats(name) {
		h.repeated = name
	}
	return value, found
}

// joined returns the value of a header. Several lines are joined as a list is.
func (h *headers) joined(name string) (string, bool) {
	value, found := "", false
	for _, l := range h.head.Headers() {
		switch {
		case l.Dropped || !equalFold(l.Name, name):
		case found:
			value += ", " + string(l.Value)
		default:
			value, found = str(l.Value), true
		}
	}
	return value, found
}

// Each implements cel.Headers.
func (h *headers) Each(f func(name, value string) bool) {
	lines := h.head.Headers()
	for i, l := range lines {
		name := lowerCase(l.Name)
		if l.Dropped || named(lines[:i], name) {
			continue
		}
		if value, _ := h.joined(name); !f(name, value) {
			return
		}
	}
}

func named(lines []message.Header, name string) bool {
	for _, l := range lines {
		if !l.Dropped && equalFold(l.Name, name) {
			return true
		}
	}
	return false
}

func lowerCase(b []byte) string {
	lower := make([]byte, len(b))
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		lower[i] = c
	}
	return string(lower)
}

// sentAtOnce is up to which size an answer fits what a socket takes without waiting. The place of
// its request is free before it is sent: a client that has read it may send the next request at
// once.
const sentAtOnce = 32 << 10
