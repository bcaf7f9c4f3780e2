package proxy

import (
	"net/http"
	"slices"

	"github.com/admission-gateway/gateway/internal/audit"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/server"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/upstream"
	"github.com/admission-gateway/gateway/proxy/spans"
)

// A detachedAnswer may go on for hours, after its request has done all there was to do: a watch, a log that is
// followed, another protocol. It has what it takes to go on, so that other requests use its memory, and the
// connection's buffer, meanwhile.
type detachedAnswer struct {
	gateway  *Gateway
	scope    *scope
	incoming *server.Request
	answer   *message.Response
	record   telemetry.Record
	events   *audit.Recording
	spans    *spans.Spans // nil if the request is not traced

	flow   server.Flow
	editor storage.Editor // nil if nothing is completed

	tunnel   *upstream.Tunnel // nil if it is an answer in HTTP
	protocol []byte
	warnings []string
}

// detach makes the answer independent of the request.
func detach(r *request) *detachedAnswer {
	d := &detachedAnswer{
		gateway: r.gateway, scope: r.scope, incoming: r.incoming, record: detachedRecord(r),
		events: r.telemetry.events.Detach(), spans: r.telemetry.spans,
		editor: r.Editor, tunnel: r.upgrade.tunnel, protocol: r.upgrade.protocol,
	}
	if r.upgrade.tunnel == nil {
		d.flow = flowOf(&r.incoming.Head, r.Request)
		d.answer = r.Response.Detach()
		if recorded, ok := d.answer.Stream().(*recordedStream); ok {
			recorded.events = d.events // the memory of r is another request's by now
		}
	} else {
		d.warnings = slices.Clone(r.Warnings)
	}
	r.telemetry.answers.Detach()
	r.Editor, r.isDetached = nil, true
	return d
}

// send sends the answer to its end.
func (d *detachedAnswer) send() {
	defer d.finish()
	d.events.Started(d.record.Outcome.Code)
	if d.tunnel == nil {
		// How a stream ends shows on the connection; the answer's code is sent already.
		d.record.Usage.Sent, _ = d.incoming.SendStream(d.answer, d.flow, d.editor, nil)
		return
	}
	d.gateway.metrics.UpgradeStarted()
	defer d.gateway.metrics.UpgradeEnded()
	defer d.tunnel.Close()
	head, early := d.takeTunnelHead()
	if !d.incoming.SendTunnel(head, early, d.tunnel.Conn, d.tunnel.Close) {
		d.record.Outcome.Code = http.StatusBadGateway
	}
}

// takeTunnelHead returns the head of the answer that agrees to the other protocol, and what the backend has sent in
// that protocol already. The tunnel, which may last for hours, keeps neither.
func (d *detachedAnswer) takeTunnelHead() (head, early []byte) {
	t := d.tunnel
	head = append(append(append(t.Head, "Connection: Upgrade\r\nUpgrade: "...), d.protocol...), "\r\n"...)
	for _, w := range status.WarningHeaders(d.warnings) {
		head = append(append(append(head, "Warning: "...), w...), "\r\n"...)
	}
	head, early = append(head, "\r\n"...), t.Early
	t.Head, t.Early = nil, nil
	return head, early
}

// finish counts the request, also after a panic.
func (d *detachedAnswer) finish() {
	if d.editor != nil {
		d.editor.Release()
	}
	d.events.End(d.record.Outcome.Code, false, nil)
	d.gateway.observe(&d.record, d.scope, d.spans)
}
