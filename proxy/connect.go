package proxy

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/upstream"
	"github.com/admission-gateway/gateway/internal/wire"
)

// connectSteps are the way of a request that leads to somewhere else than to a stored object, such as into a pod.
var connectSteps = []step{
	(*exchange).readOpaque,     // 5 what another server is sent is not for the gateway to read
	(*exchange).admitConnect,   // 12
	(*exchange).forwardConnect, // 13
	(*exchange).answerConnect,  // 14
}

// connects tells whether the request leads to somewhere else, or asks to go on in another protocol where that is allowed.
func (x *exchange) connects() bool { return x.info.Connect || x.protocol != nil }

// resolveConnect finds out whether the request connects, and which protocol it may go on in.
func (x *exchange) resolveConnect() {
	h, list := &x.conn.head, x.upstream.upgrades
	if h.Upgrade != nil {
		x.conn.linger = true // the client may be sending in the other protocol already
	}
	allowed := list.allows(&x.info)
	if allowed && !x.info.Connect && x.info.IsResource {
		// What no policy file says is an object is not taken for one here.
		x.info.Connect = string(h.Method) == fasthttp.MethodGet || string(h.Method) == fasthttp.MethodPost && !h.HasBody()
		allowed = x.info.Connect
	}
	if allowed && isTunnelled(h.Upgrade) {
		x.protocol = h.Upgrade
	}
}

// readOpaque reads the body of a request to another server, whole and within bounds, whatever it is.
func (x *exchange) readOpaque() error {
	h := &x.conn.head
	switch {
	case !h.HasBody():
	case x.protocol != nil:
		return status.BadRequest("a request that asks for an upgrade may not have a body")
	case x.info.Subresource != "proxy":
		return status.BadRequest("a request to '%s/%s' may not have a body", x.info.GroupResource(), x.info.Subresource)
	}
	body, err := x.conn.readBody(x.gateway.bodyLimit, x.gateway.budget)
	x.body = body
	return err
}

// admitConnect runs the policies on CONNECT. The object that they see are the options in the query, as in Kubernetes.
func (x *exchange) admitConnect() error {
	if !x.info.Connect || !x.set.Admission().Concerns(&x.info, admission.Connect) {
		return nil
	}
	options, err := x.info.ConnectOptions()
	if err != nil {
		return err
	}
	if options != nil {
		text, err := json.Marshal(options)
		if err != nil {
			return err
		}
		if x.doc, err = document.Parse(text, x.gateway.storedLimits); err != nil {
			return notJSON(err)
		}
	}
	x.describeAs(admission.Connect)
	x.set.Admission().Validate(context.Background(), &x.attributes, &x.report)
	return x.verdict()
}

// forwardConnect sends the request on, with the upgrade that it asks for where that is allowed. Every other hop-by-hop line
// of the client ends here, as always.
func (x *exchange) forwardConnect() error {
	h := &x.conn.head
	f := x.forwarding()
	switch x.info.Verb {
	case resource.VerbCreate, resource.VerbUpdate, resource.VerbPatch:
		f.Length = int64(len(x.body))
	default:
		if len(x.body) > 0 {
			f.Length = int64(len(x.body))
		}
	}
	f.Extra = x.extra[:0]
	if x.protocol != nil {
		f.Extra = append(f.Extra, wire.Header{Name: nameConnection, Value: nameUpgrade}, wire.Header{Name: nameUpgrade, Value: x.protocol})
	}
	x.head = h.AppendForward(x.head[:0], f)
	x.call = upstream.Request{
		Head: x.head, Body: x.body, HeadOnly: x.isHead(), Upgrade: x.protocol, Verbatim: &x.verbatim,
		// To look into a container is not to read an object.
		Idempotent: x.protocol == nil && x.info.Verb == resource.VerbGet && x.info.Subresource == "proxy",
	}
	return x.upstream.client.Do(&x.call, &x.ctx.Response)
}

// withholdTokens takes the client's token out of the protocols that it asks for: browsers, which cannot set a header of their
// own on a WebSocket, send it there to kube-apiserver.
func withholdTokens(h *wire.Head) {
	lines := h.Headers()
	for i := range lines {
		l := &lines[i]
		if !equalFold(l.Name, webSocketProtocols) || !bytes.Contains(l.Value, tokenProtocol) {
			continue
		}
		var kept [][]byte
		for one := range bytes.SplitSeq(l.Value, []byte(",")) {
			if one = bytes.TrimSpace(one); !bytes.HasPrefix(one, tokenProtocol) {
				kept = append(kept, one)
			}
		}
		l.Value, l.Dropped = bytes.Join(kept, []byte(", ")), len(kept) == 0
	}
}

// tokenProtocol is what a protocol begins with that is a token.
var tokenProtocol = []byte("base64url.bearer.authorization.k8s.io.")

var (
	nameConnection = []byte(fasthttp.HeaderConnection)
	nameUpgrade    = []byte(fasthttp.HeaderUpgrade)
)

// answerConnect passes the answer on as it is: an error of another server is not one of the API.
func (x *exchange) answerConnect() error {
	switch {
	case x.call.Tunnel != nil:
		x.tunnel = x.call.Tunnel
		x.ctx.Response.SetStatusCode(fasthttp.StatusSwitchingProtocols)
	case x.info.Subresource != "proxy":
		return x.answer()
	case x.verbatim.Status == 0:
		x.warn(&x.ctx.Response)
	default:
		x.warnVerbatim()
	}
	return nil
}
