package proxy

import (
	"context"
	"time"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/wire"
)

// limit holds the request against the rate limits that concern it, reads included (ERR-3): first whether one more may be
// served at all, then whether the client has come too often. A request that is refused takes nothing from any limit.
func (x *exchange) limit() error {
	rules := x.set.Limits()
	if rules.Len(&x.info) == 0 {
		return nil
	}
	r := ratelimit.Request{
		Info: &x.info, ClientAddress: x.client, Username: x.user.Name, Groups: x.user.Groups,
		Headers: (*headers)(&x.conn.head), Frame: x.limitFrame,
	}
	rules.Charge(&x.charges, &r)
	limiter := x.gateway.limiter
	if full := limiter.Enter(&x.charges); full != nil {
		if d := limiter.Peek(&x.charges, time.Now()); !d.Allowed() {
			return x.tooMany(d) // who has come too often need not wait to be told
		}
		if err := x.queue(full); err != nil {
			return err
		}
	}
	// The time is that of the decision: to tell who asks may have taken long.
	if d := limiter.Decide(&x.charges, time.Now()); !d.Allowed() {
		limiter.Leave(&x.charges)
		return x.tooMany(d)
	}
	for i := range x.charges.All() {
		if c := &x.charges.All()[i]; c.Exceeds() {
			x.gateway.metrics.RateLimitWarned(c.Rule.Name)
			x.warnings = append(x.warnings, c.Warning())
			x.lasting = len(x.warnings)
		}
	}
	return nil
}

// tooMany is the answer to a client that has come too often.
func (x *exchange) tooMany(d ratelimit.Decision) error {
	x.retryAfter = d.RetryAfter
	if d.Unavailable {
		return status.ServiceUnavailable(d.Message(), d.RetryAfter)
	}
	x.gateway.metrics.RateLimited(d.Charge.Rule.Name)
	return status.TooManyRequests(d.Message(), d.RetryAfter)
}

// tellLimits shows in the answer how much of the limits over time is left, in the headers of the IETF's draft
// (draft-ietf-httpapi-ratelimit-headers).
func (x *exchange) tellLimits() {
	const policyName, stateName = "RateLimit-Policy: ", "RateLimit: "
	line := append(x.limitLines[:0], policyName...)
	line = x.charges.AppendPolicy(line)
	if len(line) == len(policyName) {
		return
	}
	policy := len(line)
	line = append(append(line, "\r\n"...), stateName...)
	state := len(line)
	line = x.charges.AppendState(line, x.retryAfter)
	x.limitLines = append(line, "\r\n"...)
	if x.verbatim.Status != 0 {
		x.verbatim.AddLine(str(x.limitLines))
		return
	}
	h := &x.ctx.Response.Header
	h.DisableNormalizing() // of 'RateLimit' to 'Ratelimit'
	h.AddBytesV("RateLimit-Policy", line[len(policyName):policy])
	h.AddBytesV("RateLimit", line[state:])
}

// limitFrame binds the request for the expressions of rate limits, once.
func (x *exchange) limitFrame() *cel.Frame {
	f := x.frame()
	if x.limited.Headers != nil {
		return f
	}
	address := x.conn.peerIP
	if x.client != x.conn.peer {
		address = x.client.String()
	}
	x.limited = cel.Request{
		Verb: x.info.Verb, Path: x.info.Path, Group: x.info.Group, Version: x.info.Version, Resource: x.info.Resource,
		Subresource: x.info.Subresource, Namespace: x.info.Namespace, Name: x.info.Name,
		User:          cel.User{Name: x.user.Name, UID: x.user.UID, Groups: x.user.Groups, Extra: x.user.Extra},
		ClientAddress: address, Headers: (*headers)(&x.conn.head), Query: x.info.Query, BodyBytes: x.announced(),
	}
	f.Vars().SetLimited(&x.limited)
	return f
}

// announced is how long the body is, or may become where the client does not say it beforehand.
func (x *exchange) announced() int64 {
	if x.conn.head.Chunked {
		return x.gateway.bodyLimit
	}
	return max(x.conn.head.ContentLength, 0)
}

// frame is what CEL is evaluated in, taken on first use; evaluations end when the client's own deadline passes.
func (x *exchange) frame() *cel.Frame {
	if x.attributes.Frame == nil {
		x.attributes.Frame = cel.NewFrame(context.Background())
		x.attributes.Frame.SetDeadline(x.deadline())
	}
	return x.attributes.Frame
}

// headers shows the client's header lines to expressions; dropped ones do not count.
type headers wire.Head

// Get implements cel.Headers.
func (h *headers) Get(name string) (string, bool) {
	value, found := "", false
	for _, l := range (*wire.Head)(h).Headers() {
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
	lines := (*wire.Head)(h).Headers()
	for i, l := range lines {
		name := lowerCase(l.Name)
		if l.Dropped || named(lines[:i], name) {
			continue
		}
		if value, _ := h.Get(name); !f(name, value) {
			return
		}
	}
}

func named(lines []wire.Header, name string) bool {
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
