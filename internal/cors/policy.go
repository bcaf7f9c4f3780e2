package cors

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/admission-gateway/gateway/internal/cors/origin"
	"github.com/admission-gateway/gateway/internal/message"
)

// Options say which origins may read the answers of a route, and what they may ask for. "*" allows
// for all.
type Options struct {
	// Origins are origins such as "https://shop.example.com"; "https://*.example.com" is every host below.
	Origins []string
	Methods []string
	Headers []string
	Exposed []string
	// HasCredentials lets requests have credentials: cookies, certificates, and Authorization by the browser.
	HasCredentials bool
	MaxAgeSeconds  int
}

// A Policy answers the preflights of a route, and says in each of its answers which origin may read
// it. What the backend says of that is left out. The nil Policy does nothing.
type Policy struct {
	options Options
	origins []origin.Pattern
	exposed string
	maxAge  string
	all     *grant // if every origin may read
}

// NewPolicy returns the policy of a route. What is no pattern of origins grants nothing.
func NewPolicy(o Options) *Policy {
	p := &Policy{options: o, exposed: strings.Join(o.Exposed, ", "), maxAge: strconv.Itoa(o.MaxAgeSeconds)}
	for _, one := range o.Origins {
		switch pattern, ok := origin.ParsePattern(one); {
		case ok:
			p.origins = append(p.origins, pattern)
		case one == everyone && !o.HasCredentials:
			p.all = newGrant(everyone, false, p.exposed)
		}
	}
	return p
}

// grantFor returns what an origin may read; nil is nothing.
func (p *Policy) grantFor(text string) *grant {
	switch {
	case text == "":
		return nil
	case p.all != nil:
		return p.all
	}
	if from, ok := origin.Parse(text); ok && slices.ContainsFunc(p.origins, func(one origin.Pattern) bool { return one.Matches(from) }) {
		return newGrant(text, p.options.HasCredentials, p.exposed)
	}
	return nil
}

// Answers answers a preflight; it reports whether the request is one.
func (p *Policy) Answers(head *message.Head, r *message.Response) bool {
	if p == nil || !IsPreflight(head) {
		return false
	}
	r.Start(http.StatusNoContent)
	if p.grantFor(originOf(head)) == nil {
		return true
	}
	method, _ := head.Lookup(requestMethod)
	asked, _ := head.Lookup(requestHeaders)
	if p.allowsMethod(string(method)) {
		r.Add(allowMethods, string(method))
	} else {
		r.Add(allowMethods, strings.Join(p.options.Methods, ", "))
	}
	if names := p.allowed(string(asked)); names != "" {
		r.Add(allowHeaders, names)
	}
	r.Add(maxAge, p.maxAge)
	r.AddLines("Vary: " + requestMethod + ", " + requestHeaders + "\r\n")
	return true
}

func (p *Policy) allowsMethod(method string) bool {
	return slices.Contains(p.options.Methods, everyone) || slices.Contains(p.options.Methods, method)
}

// allowed returns the headers of a list that scripts may send.
func (p *Policy) allowed(list string) string {
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		isAllowed := func(one string) bool { return one == everyone || strings.EqualFold(one, name) }
		if name != "" && slices.ContainsFunc(p.options.Headers, isAllowed) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// Apply puts into an answer, whosever it is, what the policy says in the place of what the backend said.
func (p *Policy) Apply(head *message.Head, r *message.Response) {
	if !r.IsOwn() {
		r.Remove(allowOrigin, allowCredentials, allowMethods, allowHeaders, exposeHeaders, maxAge)
	}
	if g := p.grantFor(originOf(head)); g != nil {
		g.addTo(r)
	} else if p.all == nil {
		addVary(r)
	}
}

// maxOrigin bounds the length of an origin in bytes: a scheme, the longest host name and a port.
const maxOrigin = 300

// originOf returns the origin of the page that a request came from; "" if it does not say one.
func originOf(head *message.Head) string {
	if !head.Has(message.FieldOrigin) {
		return ""
	}
	origin := ""
	for _, l := range head.Headers() {
		if l.Field != message.FieldOrigin || l.Dropped {
			continue
		}
		if origin != "" || len(l.Value) > maxOrigin {
			return "" // it is not known which one it is
		}
		origin = string(l.Value)
	}
	if origin == everyone {
		return "" // no page has that origin, and an answer must not repeat it
	}
	return origin
}
