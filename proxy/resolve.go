package proxy

import (
	"strings"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// checkWire refuses what the connection could not read in one way only.
func (x *exchange) checkWire() error {
	if x.conn.refusal != nil {
		return x.conn.refusal
	}
	return nil
}

// resolve finds the backend, the resource and the verb.
func (x *exchange) resolve() error {
	if err := x.resolveTarget(); err != nil || !x.lasts() {
		return err
	}
	// A request that is served for hours does not hold the connection's buffer for its own few bytes.
	x.conn.detach()
	return x.resolveTarget()
}

func (x *exchange) resolveTarget() error {
	x.warnings = x.warnings[:0]
	info, res, err := x.set.Registry().Resolve(str(x.conn.head.Method), x.conn.head.Target)
	x.info, x.res = info, res
	if err != nil {
		return err
	}
	if res != nil && res.RefusesPatch && info.Verb == resource.VerbPatch {
		return status.MethodNotAllowed(info.GroupResource(), resource.VerbPatch)
	}
	if deprecated := x.set.Deprecation(res); deprecated != "" {
		x.warnings = append(x.warnings, deprecated)
		x.lasting = len(x.warnings)
	}
	x.upstream = x.gateway.routes.find(x.conn.head.Host, info.Path)
	if x.upstream == nil {
		return status.NoSuchPath("no route leads from host '%s' and path '%s' to a backend", x.conn.head.Host, info.Path)
	}
	x.resolveConnect()
	return nil
}

// lasts tells whether the answer may be a stream that nothing ends: a watch, a log that is followed, another protocol.
func (x *exchange) lasts() bool {
	return x.info.Options.Watch || x.protocol != nil || x.info.Subresource == "log" && strings.Contains(x.info.Query, "follow=") || !x.info.IsResource && strings.Contains(x.info.Query, "watch=")
}

// isRead tells whether the request changes nothing, so that it may be repeated.
func (x *exchange) isRead() bool {
	switch x.info.Verb {
	case resource.VerbGet, resource.VerbList, resource.VerbWatch, "head":
		return true
	}
	return false
}

// readBody reads the body whole, after its type is known to be one that the gateway reads (RES-7).
func (x *exchange) readBody() error {
	h := &x.conn.head
	if h.HasBody() {
		if err := x.checkMediaType(); err != nil {
			return err
		}
	}
	body, err := x.conn.readBody(x.gateway.bodyLimit, x.gateway.budget)
	x.body = body
	return err
}
