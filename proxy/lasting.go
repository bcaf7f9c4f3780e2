package proxy

import (
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// lasting is an answer that may go on for hours, after all steps of the request's way: a watch, a log that is followed,
// another protocol. It has what it takes to go on, so that others use the exchange, and the connection's buffer, meanwhile.
type lasting struct {
	gateway *Gateway
	ctx     *fasthttp.RequestCtx
	conn    *conn
	started time.Time
	request telemetry.Request

	endless bool
	filling *filling // nil where nothing is completed

	tunnel   *upstream.Tunnel // nil where it is an answer in HTTP
	protocol []byte
	warnings []string
}

// outlasts tells whether the answer may go on for hours, and needs nothing of the exchange for that.
func (x *exchange) outlasts() bool {
	if x.tunnel != nil {
		return true
	}
	return x.conn.detached && x.ctx.Response.IsBodyStream() && (x.filling == nil || x.filling.events)
}

// leave makes the answer independent of the exchange.
func (x *exchange) leave() *lasting {
	l := &lasting{
		gateway: x.gateway, ctx: x.ctx, conn: x.conn, started: x.started, request: x.answered(),
		filling: x.filling, tunnel: x.tunnel, protocol: x.protocol,
	}
	if x.tunnel == nil {
		l.endless = x.endless()
	} else {
		l.warnings = slices.Clone(x.warnings)
	}
	x.filling, x.left = nil, true
	return l
}

// send sends the answer to its end.
func (l *lasting) send() {
	defer l.finish()
	if l.tunnel == nil {
		// How a stream ends shows on the connection; the answer's code is sent already.
		_, _ = l.conn.sendStream(l.ctx, l.endless, l.filling)
		return
	}
	l.gateway.metrics.UpgradeStarted()
	defer l.gateway.metrics.UpgradeEnded()
	l.conn.sendTunnel(l.tunnel, l.protocol, l.warnings)
}

// finish counts the request, also after a panic.
func (l *lasting) finish() {
	if l.filling != nil {
		l.filling.release()
	}
	l.gateway.measure(l.request, l.started)
}
