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
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// limits are what is known of the rate limits that match one request.
type limits struct {
	limiting
	request cel.Request // what expressions see; zero before one is asked
	charges ratelimit.Charges
	lines   []byte // of the answer's head, which show what is left of the limits
}

// limiting is what limits forget with the request.
type limiting struct {
	retryAfter int     // seconds, if a rate limit refuses
	refusedBy  string  // the rate limit that refuses
	headers    headers // what expressions see of the request's head
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

// enforceLimits counts the request by the rate limits that apply to it, reads included (ERR-3): first whether one more
// may be served at all, then whether the client exceeds a limit. A request that is refused takes nothing from any
// limit.
func enforceLimits(r *request) error {
	asked := ratelimit.Request{
		Info: &r.Info, At: r.gateway.timeOf(r.Request), Route: &r.scope.route.place, ClientAddress: r.who.client,
		Username: r.who.user.Name, Groups: r.who.user.Groups,
		Headers: headersRead(r), Repeated: r.limits.headers.takeRepeated,
		Frame: func() *cel.Frame { return frameOfLimits(r) },
	}
	r.scope.limits.Charge(&r.limits.charges, &asked)
	if i := &r.Info; i.IsUndescribed && r.scope.limits.Evaluates() && !readings.IsPlain(i.Path) {
		if err := countedAlike(r, asked); err != nil {
			return err
		}
	}
	if repeated := r.limits.charges.Repeated(); repeated.Header != "" {
		return status.BadRequest("the request has the header '%s' more than once, and the rate limit '%s' reads it", repeated.Header, repeated.Rule)
	}
	limiter := r.gateway.limiter
	if full := limiter.Enter(&r.limits.charges); full != nil {
		if d := limiter.Peek(&r.limits.charges, time.Now()); !d.Allowed() {
			return refuseOverLimit(r, d) // a client over its limit need not wait for the refusal
		}
		if err := queue(r, full); err != nil {
			return err
		}
	}
	// The time of the decision counts: to find out who asks may have taken long.
	d := decideLimits(r, time.Now())
	if !d.Allowed() {
		limiter.Leave(&r.limits.charges)
		return refuseOverLimit(r, d)
	}
	for i := range r.limits.charges.All() {
		c := &r.limits.charges.All()[i]
		if c.Tried {
			r.gateway.countOf(c.Rule.Rollout).Add(c.Exceeds())
		}
		if !c.Exceeds() {
			r.gateway.metrics.LimitDecided(c.Rule.Name, "Admit")
			continue
		}
		r.gateway.metrics.LimitDecided(c.Rule.Name, "Warn")
		r.gateway.metrics.RateLimitWarned(c.Rule.Name)
		r.Warnings = append(r.Warnings, c.Warning())
	}
	return nil
}

// countedAlike refuses a request whose path servers may read as one that would be counted in another way: a client
// could choose by the spelling of the path which limits count it, and where.
func countedAlike(r *request, asked ratelimit.Request) error {
	var rule, other string
	asked.Repeated = nil
	if !readings.Any(r.Info.Path, func(reading string) bool {
		f := cel.NewFrame(r.context())
		defer f.Release()
		f.SetDeadline(r.Deadline())
		f.SetMemory(r.Memory)
		asked.Frame = func() *cel.Frame {
			asRead := limitedRequest(r)
			asRead.Path = reading
			f.Vars().SetLimited(&asRead)
			f.Vars().SetHTTP(&readAs{(*storage.HTTP)(r.Request), reading})
			return f
		}
		var charges ratelimit.Charges
		r.scope.limits.Charge(&charges, &asked)
		rule, other = r.limits.charges.Differing(&charges), reading
		return rule != ""
	}) {
		return nil
	}
	if rule == "" {
		return status.BadRequest("the request path '%s' is refused: it can be read in too many ways", r.Info.Path)
	}
	return status.BadRequest("the request path '%s' is refused: the path could be read as '%s', which the rate limit '%s' counts in another way. "+
		"Spell it as all servers read it", r.Info.Path, other, rule)
}

// readAs is a request with the path that a server may read.
type readAs struct {
	*storage.HTTP
	path string
}

// Path implements cel.HTTP.
func (r *readAs) Path() string { return r.path }

// decideLimits holds the request against the limits over time. Redis may keep some of them.
func decideLimits(r *request, now time.Time) ratelimit.Decision {
	d := r.gateway.limiter.Decide(&r.limits.charges, now)
	if s := r.telemetry.spans; s != nil {
		if sent, err := r.limits.charges.WereSent(); sent {
			s.Limited(now, err)
		}
	}
	return d
}

// queue waits until the request may be served, under the limit on requests in flight that has no
// room for it and under all others: not longer than its queue and the client's own deadline allow,
// and not after the client has gone.
func queue(r *request, full *ratelimit.Charge) error {
	if r.gateway.server.Draining() {
		return status.ServiceUnavailable("the gateway is about to stop, and lets no more requests wait",
			ratelimit.ShutdownRetryAfter)
	}
	if full.Rule.InFlight.QueueLength == 0 {
		return refuseInFlight(r, full)
	}
	until := time.Now().Add(full.Rule.InFlight.QueueTimeout)
	if d := r.Deadline(); !d.IsZero() && d.Before(until) {
		until = d
	}
	r.gateway.metrics.WaitStarted()
	defer r.gateway.metrics.WaitEnded()
	wait := r.incoming.Client.Signal()
	full = r.gateway.limiter.Wait(&r.limits.charges, full, until, wait.Left())
	wait.Done()
	if full != nil {
		return refuseInFlight(r, full)
	}
	return nil
}

// refuseInFlight is the answer to a request that cannot be served because too many others are.
func refuseInFlight(r *request, full *ratelimit.Charge) error {
	r.limits.retryAfter = r.gateway.limiter.Dropped(full, time.Now())
	r.limits.refusedBy = full.Rule.Name
	r.gateway.metrics.LimitDecided(r.limits.refusedBy, "Refuse")
	r.gateway.metrics.RateLimited(r.limits.refusedBy)
	return status.TooManyRequests(full.InFlightMessage(r.limits.retryAfter), r.limits.retryAfter)
}

// leaveFlight ends the time in which the request counts as being served. It may be called again.
func leaveFlight(r *request) { r.gateway.limiter.Leave(&r.limits.charges) }

// leaveFlightEarly ends that time before an answer is sent that is in memory: the backend is done with it, and how long
// the client takes must not keep others from it. An answer that waits for a client is counted to its share of the
// memory. A client whose share is used up keeps the place of its request until it has taken the answer. release is
// called then.
func leaveFlightEarly(r *request, size int) (release func()) {
	if !r.limits.charges.BoundsInFlight() {
		return func() {}
	}
	if size <= sentAtOnce {
		leaveFlight(r)
		return func() {}
	}
	share := shareOf(r)
	if !share.Count(size) {
		return func() {}
	}
	leaveFlight(r)
	return func() { share.Uncount(size) }
}

// shareOf is the client's share of the memory for answers that it takes slowly: a user's, or an address's.
func shareOf(r *request) memory.Share {
	client := "user " + r.who.user.Name
	if r.who.user.Name == r.gateway.anonymous.Name {
		client = "address " + networkOf(r.who.client).String()
	}
	return r.gateway.memory.ShareOf(client)
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

// refuseOverLimit is the answer to a client that has come too often.
func refuseOverLimit(r *request, d ratelimit.Decision) error {
	r.limits.retryAfter, r.limits.refusedBy = d.RetryAfter, d.Charge.Rule.Name
	r.gateway.metrics.LimitDecided(r.limits.refusedBy, "Refuse")
	if d.Unavailable {
		return status.ServiceUnavailable(d.Message(), d.RetryAfter)
	}
	r.gateway.metrics.RateLimited(r.limits.refusedBy)
	return status.TooManyRequests(d.Message(), d.RetryAfter)
}

// showLimits shows in the answer how much of the limits over time is left, in the headers of the IETF's draft
// (draft-ietf-httpapi-ratelimit-headers).
func showLimits(r *request) {
	const policyName, stateName = "RateLimit-Policy: ", "RateLimit: "
	lines := append(r.limits.lines[:0], policyName...)
	lines = r.limits.charges.AppendPolicy(lines)
	if len(lines) == len(policyName) {
		return
	}
	lines = append(append(lines, "\r\n"...), stateName...)
	lines = r.limits.charges.AppendState(lines, r.limits.retryAfter)
	r.limits.lines = append(lines, "\r\n"...)
	r.Response.AddLines(str(r.limits.lines))
	cors.Expose(&r.Response.Response, "RateLimit, RateLimit-Policy")
}

// frameOfLimits binds the request for the expressions of rate limits, once.
func frameOfLimits(r *request) *cel.Frame {
	f := r.frame()
	if r.limits.request.Headers != nil {
		return f
	}
	r.limits.request = limitedRequest(r)
	f.Vars().SetLimited(&r.limits.request)
	f.Vars().SetHTTP((*storage.HTTP)(r.Request))
	return f
}

// limitedRequest is what expressions see of the request.
func limitedRequest(r *request) cel.Request {
	address := r.incoming.Peer().IP
	if r.who.client != r.incoming.Peer().Addr {
		address = r.who.client.String()
	}
	return cel.Request{
		Verb: r.Info.VerbName(), Path: r.Info.Path, Group: r.Info.Group, Version: r.Info.Version,
		Resource:    r.Info.Resource,
		Subresource: r.Info.Subresource, Namespace: r.Info.Namespace, Name: r.Info.Name,
		User:          cel.User{Name: r.who.user.Name, UID: r.who.user.UID, Groups: r.who.user.Groups, Extra: r.who.user.Extra},
		ClientAddress: address, Headers: headersRead(r), Query: r.Info.Query, BodyBytes: announcedBody(r),
	}
}

// announcedBody is how long the body is, or may become if the client does not declare it beforehand.
func announcedBody(r *request) int64 {
	if length := r.incoming.Head.ContentLength; length >= 0 {
		return length
	}
	return r.Limits.Body
}

// headersRead returns the headers that rate limits see.
func headersRead(r *request) *headers {
	r.limits.headers.head = &r.incoming.Head
	return &r.limits.headers
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
