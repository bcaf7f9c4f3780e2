package proxy

import (
	"bytes"
	"encoding/base64"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/wire"
)

// authorization is by which the client says who it is: the header, or the token that a browser, which cannot set one on a
// WebSocket, has among the protocols that it asks for. kube-apiserver reads it there, so that policies must know of it.
func (x *exchange) authorization() ([]byte, error) {
	h := &x.conn.head
	given := h.Value(wire.FieldAuthorization)
	if !bytes.EqualFold(x.protocol, []byte("websocket")) {
		return given, nil
	}
	var token []byte
	for _, l := range h.Headers() {
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
	case x.upstream.credentials == config.FrontProxyCredentials, x.upstream.credentials == config.ImpersonateCredentials:
		return given, nil // the token is withheld
	}
	// Which of the two the backend believes is not known here.
	return nil, status.BadRequest("a request with the header 'Authorization' may not have a token in 'Sec-WebSocket-Protocol'")
}

const webSocketProtocols = "Sec-WebSocket-Protocol"
