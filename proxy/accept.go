package proxy

import (
	"bytes"
	"strconv"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/wire"
)

// negotiate refuses a request whose client takes no answer that the gateway can give about an object of Kubernetes' form on
// a plain backend: JSON. As a server may, it gives JSON to clients that ask for YAML, which it is.
func (x *exchange) negotiate() error {
	if x.res == nil || x.res.Envelope != resource.Kubernetes || !x.upstream.plain || !x.conn.head.Has(wire.FieldAccept) {
		return nil
	}
	for _, l := range x.conn.head.Headers() {
		if l.Field == wire.FieldAccept && !l.Dropped && acceptsJSON(l.Value) {
			return nil
		}
	}
	return status.NotAcceptable("only the following media types are accepted: " + jsonType)
}

// acceptsJSON tells whether the value of an Accept header allows for JSON; none, or an empty one, allows for everything.
func acceptsJSON(accept []byte) bool {
	if len(bytes.TrimSpace(accept)) == 0 {
		return true
	}
	for one := range bytes.SplitSeq(accept, []byte(",")) {
		media, parameters, _ := bytes.Cut(one, []byte(";"))
		switch string(bytes.ToLower(bytes.TrimSpace(media))) {
		case "*/*", "application/*", jsonType, "application/yaml":
			if !isExcluded(parameters) {
				return true
			}
		}
	}
	return false
}

// isExcluded tells whether parameters of a media type have a weight of zero.
func isExcluded(parameters []byte) bool {
	for one := range bytes.SplitSeq(parameters, []byte(";")) {
		key, value, _ := bytes.Cut(one, []byte("="))
		if bytes.EqualFold(bytes.TrimSpace(key), []byte("q")) {
			weight, err := strconv.ParseFloat(string(bytes.TrimSpace(value)), 64)
			return err == nil && weight == 0
		}
	}
	return false
}
