// Package cors lets scripts in browsers read the gateway's own answers (Fetch, "CORS protocol"). A
// [Policy] itself says which origins may read. [Grants] remembers what a backend allows, and asks
// if that is not known.
package cors

import (
	"strings"

	"github.com/admission-gateway/gateway/internal/message"
)

// The names of the header lines of CORS, and of the ones that go with them.
const (
	allowOrigin      = "Access-Control-Allow-Origin"
	allowCredentials = "Access-Control-Allow-Credentials"
	allowMethods     = "Access-Control-Allow-Methods"
	allowHeaders     = "Access-Control-Allow-Headers"
	exposeHeaders    = "Access-Control-Expose-Headers"
	maxAge           = "Access-Control-Max-Age"
	requestMethod    = "Access-Control-Request-Method"
	requestHeaders   = "Access-Control-Request-Headers"
	vary             = "Vary"

	varyOrigin = "Vary: Origin\r\n"
)

// everyone is the origin that means all of them.
const everyone = "*"

// exposed are the headers of the gateway's own answers that scripts have use for.
var exposed = [...]string{"Retry-After", "RateLimit", "RateLimit-Policy", "Warning", "ETag", "Location"}

// A grant lets the scripts of an origin read answers. The zero grant allows nothing.
type grant struct {
	origin         string // "" grants nothing
	hasCredentials bool
	exposed        string // headers that the backend exposes
	lines          string // that say so to a browser
}

// newGrant makes a grant of an origin, or of everyone: to everyone without credentials. The gateway's own headers are
// exposed too.
func newGrant(origin string, hasCredentials bool, more string) *grant {
	return newExactGrant(origin, hasCredentials, more, withExposed(more))
}

// newExactGrant makes a grant that exposes a list of headers; more is what the backend exposes of them.
func newExactGrant(origin string, hasCredentials bool, more, list string) *grant {
	g := &grant{origin: origin, hasCredentials: hasCredentials && origin != everyone, exposed: more}
	var b strings.Builder
	b.WriteString(allowOrigin + ": " + origin + "\r\n")
	if g.hasCredentials {
		b.WriteString(allowCredentials + ": true\r\n")
	}
	if list != "" {
		b.WriteString(exposeHeaders + ": " + list + "\r\n")
	}
	g.lines = b.String()
	return g
}

// withExposed adds to a list of header names what the gateway's own answers expose.
func withExposed(list string) string {
	names := []string{}
	add := func(name string) {
		for _, one := range names {
			if strings.EqualFold(one, name) {
				return
			}
		}
		names = append(names, name)
	}
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			add(name)
		}
	}
	for _, name := range exposed {
		add(name)
	}
	return strings.Join(names, ", ")
}

// addTo adds the grant to an answer that has none.
func (g *grant) addTo(r *message.Response) {
	r.AddLines(g.lines)
	if g.origin != everyone {
		addVary(r)
	}
}

// Expose lets a script that may read an answer of the backend read headers too that the gateway added to it.
func Expose(r *message.Response, names string) {
	if !r.IsOwn() && len(r.Header(allowOrigin)) > 0 {
		r.AddLines(exposeHeaders + ": " + names + "\r\n")
	}
}

// addVary says that the answer depends on the origin, unless it says so already.
func addVary(r *message.Response) {
	for _, value := range r.Headers(vary) {
		for name := range strings.SplitSeq(value, ",") {
			if name = strings.TrimSpace(name); name == everyone || strings.EqualFold(name, "Origin") {
				return
			}
		}
	}
	r.AddLines(varyOrigin)
}

// IsPreflight reports whether a request asks, for a browser, whether a script may make another one.
func IsPreflight(head *message.Head) bool {
	if string(head.Method) != "OPTIONS" || !head.Has(message.FieldOrigin) {
		return false
	}
	_, found := head.Lookup(requestMethod)
	return found
}
