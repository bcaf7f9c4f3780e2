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
	// IsListed is for a policy of Gateway API: a preflight is answered with all methods and headers, and with no
	// exposed header of the gateway's own; origins are patterns of the API, and "*" may be one that requests have
	// credentials of.
	IsListed bool
}

// A Policy answers the preflights of a route, and says in each of its answers which origin may read
// it. What the backend says of that is left out. The nil Policy does nothing.
type Policy struct {
	options Options
	origins []origin.Pattern
	exposed string
	maxAge  string
	all     *grant // if every origin may read, and is granted so by one word
	// isOpen says that every origin may read, but is named in the answer, for requests have credentials.
	isOpen bool
}

// NewPolicy returns the policy of a route. What is no pattern of origins grants nothing.
func NewPolicy(o Options) *Policy {
	p := &Policy{options: o, maxAge: strconv.Itoa(o.MaxAgeSeconds)}
	p.exposed = strings.Join(slices.DeleteFunc(slices.Clone(o.Exposed), func(name string) bool {
		return name == everyone && o.HasCredentials // which browsers take for a name then
	}), ", ")
	parse := origin.ParsePattern
	if o.IsListed {
		parse = origin.ParseWidePattern
	}
	for _, one := range o.Origins {
		switch pattern, ok := parse(one); {
		case ok:
			p.origins = append(p.origins, pattern)
		case one == everyone && !o.HasCredentials:
			p.all = newGrant(everyone, false, p.exposed)
		case one == everyone:
			p.isOpen = o.IsListed
		}
	}
	return p
}

// grantFor returns what the origin of a request may read; nil is nothing.
func (p *Policy) grantFor(head *message.Head) *grant {
	text := originOf(head)
	switch {
	case text == "":
		return nil
	case p.all != nil:
		return p.all
	}
	from, ok := origin.Parse(text)
	if !ok || !p.isOpen && !slices.ContainsFunc(p.origins, func(one origin.Pattern) bool { return one.Matches(from) }) {
		return nil
	}
	if p.options.IsListed && IsPreflight(head) {
		return newExactGrant(text, p.options.HasCredentials, p.exposed, p.exposed)
	}
	return newGrant(text, p.options.HasCredentials, p.exposed)
}

// Answers answers a preflight; it reports whether the request is one.
func (p *Policy) Answers(head *message.Head, r *message.Response) bool {
	if p == nil || !IsPreflight(head) {
		return false
	}
	r.Start(http.StatusNoContent)
	if p.grantFor(head) == nil {
		return true
	}
	method, _ := head.Lookup(requestMethod)
	asked, _ := head.Lookup(requestHeaders)
	if methods := p.methodsFor(string(method)); methods != "" {
		r.Add(allowMethods, methods)
	}
	if names := p.allowed(string(asked)); names != "" {
		r.Add(allowHeaders, names)
	}
	r.Add(maxAge, p.maxAge)
	r.AddLines("Vary: " + requestMethod + ", " + requestHeaders + "\r\n")
	return true
}

// methodsFor returns the methods that the answer to a question about one names.
func (p *Policy) methodsFor(method string) string {
	all := p.options.Methods
	if slices.Contains(all, everyone) || !p.options.IsListed && slices.Contains(all, method) {
		return method
	}
	return strings.Join(all, ", ")
}

// allowed returns the headers of a list that scripts may send; all that they may if the policy is listed.
func (p *Policy) allowed(list string) string {
	if p.options.IsListed && !slices.Contains(p.options.Headers, everyone) {
		return strings.Join(p.options.Headers, ", ")
	}
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
	if g := p.grantFor(head); g != nil {
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
