package proxy

import (
	"time"

	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/status"
)

// queue waits until the request may be served, under the limit on requests in flight that has no room for it and under all
// others: not longer than its queue and the client's own deadline allow, and not where the client has gone.
func (x *exchange) queue(full *ratelimit.Charge) error {
	if x.gateway.server.Draining() {
		return status.ServiceUnavailable("the gateway is about to stop, and lets no more requests wait", ratelimit.ShutdownRetryAfter)
	}
	if full.Rule.InFlight.QueueLength == 0 {
		return x.crowded(full)
	}
	until := time.Now().Add(full.Rule.InFlight.QueueTimeout)
	if d := x.deadline(); !d.IsZero() && d.Before(until) {
		until = d
	}
	x.gateway.metrics.WaitStarted()
	defer x.gateway.metrics.WaitEnded()
	gone := make(chan struct{})
	stop := x.conn.onClientClose(func() { close(gone) })
	full = x.gateway.limiter.Wait(&x.charges, full, until, gone)
	stop()
	if full != nil {
		return x.crowded(full)
	}
	return nil
}

// crowded is the answer to a request that cannot be served because too many others are.
func (x *exchange) crowded(full *ratelimit.Charge) error {
	x.retryAfter = x.gateway.limiter.Dropped(full, time.Now())
	x.gateway.metrics.RateLimited(full.Rule.Name)
	return status.TooManyRequests(full.CrowdedMessage(x.retryAfter), x.retryAfter)
}

// land ends the time in which the request counts as being served. It may be called again.
func (x *exchange) land() { x.gateway.limiter.Leave(&x.charges) }

// landIfLasting does so before an answer that may go on for hours, as Kubernetes does: a watch is served once it has begun.
func (x *exchange) landIfLasting() {
	if !x.charges.Flying() {
		return
	}
	follow, _ := x.info.Param("follow")
	if x.tunnel != nil || x.endless() || x.info.Subresource == "log" && (follow == "true" || follow == "1") {
		x.land()
	}
}
