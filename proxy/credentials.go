package proxy

import (
	"bytes"
	"encoding/base64"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/status"
)

// clientsCredentials are the fields by which a client says who it is, or whom it asks to act as. If
// the gateway itself names the user to the backend, all of them are removed.
var clientsCredentials = message.Fields(message.FieldAuthorization, message.FieldXRemote, message.FieldImpersonate)

// tell makes the header lines that identify the user to the backend, for every request that is made
// of this one: the write, and what is read or tried first.
func (w *who) tell(r *request, p *identity.Principal) (err error) {
	impersonates := r.incoming.Head.Has(message.FieldImpersonate)
	w.lines = append(w.lines[:0], r.From.Lines...)
	switch r.route.backend.credentials {
	case config.FrontProxyCredentials:
		w.lines, err = p.AppendRemote(w.lines)
	case config.ImpersonateCredentials:
		if w.lines, err = r.route.backend.authorize(w.lines); err != nil {
			return status.ServiceUnavailable("the gateway has no account now by which to ask the backend", 1)
		}
		w.lines, err = p.AppendImpersonate(w.lines)
	default:
		if impersonates { // which only trusted proxies may
			// The backend knows whether they may; to policies the user is who it will be to the backend.
			if w.user, err = identity.Impersonated((*impersonationLines)(&r.incoming.Head)); err != nil {
				return err
			}
			if w.user.Name == "" {
				return status.BadRequest("the request has a header 'Impersonate-…', but no user in 'Impersonate-User', or an empty one among them")
			}
		}
		return nil
	}
	switch {
	case err != nil:
		return status.Forbidden(r.Info.GroupResource(), r.Info.Name, err.Error())
	case impersonates:
		return errMayNotImpersonate
	}
	r.From.Lines = w.lines
	r.From.Stripped |= clientsCredentials
	if r.incoming.Head.Upgrade != nil {
		withholdTokens(&r.incoming.Head)
	}
	return nil
}

// authorization returns by what the client says who it is: the header, or the token that a browser,
// which cannot set a header on a WebSocket, has among the protocols that it asks for. kube-apiserver
// reads it there, so that policies must know of it.
func (w *who) authorization(head *message.Head, protocol []byte, to config.Credentials) ([]byte, error) {
	given := head.Value(message.FieldAuthorization)
	if !bytes.EqualFold(protocol, []byte("websocket")) {
		return given, nil
	}
	var token []byte
	for _, l := range head.Headers() {
		if l.Dropped || !equalFold(l.Name, webSocketProtocols) || !bytes.Contains(l.Value, tokenProtocol) {
			continue
		}
		for one := range bytes.SplitSeq(l.Value, []byte(",")) {
			encoded, found := bytes.CutPrefix(bytes.TrimSpace(one), tokenProtocol)
			switch {
			case !found:
				continue
			case token != nil:
				return nil, status.BadRequest("the header 'Sec-WebSocket-Protocol' may not have more than one token")
			}
			decoded, err := base64.RawURLEncoding.AppendDecode([]byte("Bearer "), encoded)
			if err != nil {
				return nil, status.BadRequest("the token in the header 'Sec-WebSocket-Protocol' must be in base64 for URLs, without padding")
			}
			token = decoded
		}
	}
	switch {
	case token == nil:
		return given, nil
	case given == nil:
		return token, nil
	case to == config.FrontProxyCredentials, to == config.ImpersonateCredentials:
		return given, nil // the token is withheld
	}
	// Which of the two the backend believes is not known here.
	return nil, status.BadRequest("a request with the header 'Authorization' may not have a token in 'Sec-WebSocket-Protocol'")
}

const webSocketProtocols = "Sec-WebSocket-Protocol"

// withholdTokens takes the client's token out of the protocols that it asks for: browsers, which cannot set a header of
// their own on a WebSocket, send it there to kube-apiserver.
func withholdTokens(h *message.Head) {
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

// tokenProtocol is the start of a protocol that is a token.
var tokenProtocol = []byte("base64url.bearer.authorization.k8s.io.")

// remoteLines are the lines X-Remote-* of a head, of peers too that are no trusted proxies:
// identity decides which of them count.
type remoteLines message.Head

// Each implements identity.Headers.
func (h *remoteLines) Each(yield func(name, value []byte)) {
	eachAfter((*message.Head)(h), message.FieldXRemote, len("X-Remote-"), yield)
}

func eachAfter(h *message.Head, f message.Field, prefix int, yield func(name, value []byte)) {
	for _, l := range h.Headers() {
		if l.Field == f {
			yield(l.Name[prefix:], l.Value)
		}
	}
}

// impersonationLines are the lines Impersonate-* of a head.
type impersonationLines message.Head

// Each implements identity.Headers.
func (h *impersonationLines) Each(yield func(name, value []byte)) {
	eachAfter((*message.Head)(h), message.FieldImpersonate, len("Impersonate-"), yield)
}

// errMayNotImpersonate is the error of a request that asks to act as another user, which the
// backend would not learn of.
var errMayNotImpersonate = status.BadRequest("the request has a header 'Impersonate-…': the backend is told who asks by the gateway, which lets nobody act as somebody else")
