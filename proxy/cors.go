package proxy

import (
	"net/http"
	"strings"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/cors"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/telemetry/tracing"
	"github.com/admission-gateway/gateway/internal/upstream"
	"github.com/admission-gateway/gateway/proxy/spans"
)

// newCORS returns the policy of a route; nil if the backend's word counts.
func newCORS(c *config.CORS) *cors.Policy {
	if c == nil {
		return nil
	}
	return cors.NewPolicy(cors.Options{
		Origins: c.AllowOrigins, Methods: c.AllowMethods, Headers: c.AllowHeaders, Exposed: c.ExposeHeaders,
		HasCredentials: c.AllowCredentials, MaxAgeSeconds: int(c.MaxAgeSeconds),
	})
}

// noteGrants remembers what the backend's answer lets the scripts of other origins read.
func noteGrants(h *handler) {
	if r := &h.request.Response; h.incoming.Head.Has(message.FieldOrigin) && h.route != nil && h.route.cors == nil && r.Status() > 0 && !r.IsOwn() {
		h.route.backend.grants.Note(&h.incoming.Head, placeOf(h), &r.Response, h.request.Started)
	}
}

// shareAnswer lets scripts of other origins read the answer as far as the route says so, or else the backend of its
// own answers. An answer of the backend says so itself.
func shareAnswer(h *handler) {
	head, r := &h.incoming.Head, &h.request.Response
	switch {
	case h.route == nil || h.upgrade.tunnel != nil:
	case h.route.cors != nil:
		h.route.cors.Apply(head, &r.Response)
	case r.IsOwn() && head.Has(message.FieldOrigin):
		h.route.backend.grants.Share(head, placeOf(h), &r.Response, func(q *cors.Question) (*message.Response, error) { return askPreflight(h, q) })
	}
}

// shareKnown does so for an answer to a request about which the backend cannot be asked: a head that was refused, or
// a request in which the gateway failed. What is known of the path counts.
func shareKnown(h *handler, r *message.Response) {
	head, route := &h.incoming.Head, h.route
	if !head.Has(message.FieldOrigin) {
		return
	}
	if route == nil {
		choice := h.gateway.routes.find(listenerOf(h), head)
		if choice == nil {
			return
		}
		route = choice.routes[0]
		if h.request.Resource == nil && len(head.Target) > 0 {
			resolver := h.gateway.scopesOf(h.set).resolver(route)
			info, described, _ := resolver.Resolve(str(head.Method), head.Target)
			h.request.SetSubject(&info, described)
		}
	}
	if route.cors != nil {
		route.cors.Apply(head, r)
		return
	}
	route.backend.grants.ShareKnown(head, placeOf(h), r)
}

// askTimeout bounds how long an answer of the gateway waits for the backend's word about it.
const askTimeout = time.Second

// askPreflight asks the backend what a browser would ask it before the request.
func askPreflight(h *handler, q *cors.Question) (*message.Response, error) {
	q.Target, q.Host = str(h.incoming.Head.Target), h.request.From.Host
	span := tracing.Ask(h.trail.spans.Context(), http.MethodOptions)
	head := q.AppendHead(nil)
	head = append(span.AppendLine(head[:len(head)-len("\r\n")]), "\r\n"...)
	answer := new(message.Response)
	err := h.route.backend.client.Do(&upstream.Request{
		Head: head, Idempotent: true,
		Whole: maxPreflight, Deadline: time.Now().Add(askTimeout), Client: h.incoming.Client,
	}, answer)
	spans.Asked(span, &h.route.backend.storage, q.Target, answer.Status(), err)
	return answer, err
}

// takeForAnonymous lets a preflight to a plain API pass by a client that is not known, and reports whether it is one:
// browsers send preflights without credentials. Limits take it for anonymous.
func takeForAnonymous(h *handler) bool {
	head := &h.incoming.Head
	if h.route.backend.grants == nil || head.Has(message.FieldAuthorization) || !cors.IsPreflight(head) {
		return false
	}
	h.who.user, h.who.challenge = h.gateway.anonymous, ""
	return true
}

// answerPreflight answers a preflight by what the route says of CORS.
func (h *handler) answerPreflight() error {
	if h.route.cors.Answers(&h.incoming.Head, &h.request.Response.Response) {
		return errServed
	}
	return nil
}

// relayPreflight answers a preflight of a client that is not known by what the backend says of CORS. The backend
// gets what a browser asks and nothing else of the request.
func (h *handler) relayPreflight() error {
	if h.who.refusal == nil {
		return nil
	}
	answer, err := cors.Relay(&h.incoming.Head, func(q *cors.Question) (*message.Response, error) { return askPreflight(h, q) })
	if err != nil {
		return err
	}
	cors.CopyGrant(&h.request.Response.Response, answer)
	return errServed
}

// maxPreflight is how long the body of an answer to a preflight may be, which is seldom there and not read.
const maxPreflight = 64 << 10

// answerFailure answers a request in which the gateway failed with a 500 that shows nothing of that. If that fails
// too, the server answers.
func answerFailure(h *handler) {
	defer func() { _ = recover() }()
	h.incoming.Linger()
	var r storage.Response
	if h.incoming.Refusal != nil {
		h.trail.nameNew() // no more of its head is used
	}
	e := status.From(errPanic)
	code, contentType, body := formOf(h, e)
	writeRefusal(&r, e, code, contentType, body)
	showNames(h, &r)
	shareKnown(h, &r.Response)
	h.incoming.Send(&r.Response)
}

// placeOf returns where in the API a request is, for what is remembered about places: what a file describes is one for
// all objects, and any other path counts by its first segments.
func placeOf(h *handler) string {
	i := &h.request.Info
	r := h.request.Resource
	if r == nil {
		return firstSegments(str(pathOf(h.incoming.Head.Target)))
	}
	place := r.GroupResource().String() + "/" + i.Subresource
	if i.Name != "" {
		place += "/{name}"
	}
	return place
}

// firstSegments returns the first two segments of a path.
func firstSegments(path string) string {
	end := 0
	for range 2 {
		if end < len(path) {
			end += 1 + strings.IndexByte(path[end+1:]+"/", '/')
		}
	}
	return path[:min(end, len(path))]
}

// options is the way of OPTIONS to a plain API: it alone knows what it answers.
func (plainKind) options(h *handler) error { return h.passThrough() }

// options answers which methods there are (RES-4).
func (kubernetesKind) options(h *handler) error {
	r := &h.request.Response
	r.Start(http.StatusNoContent)
	r.Add("Allow", methodsOf(h, ""))
	return nil
}

// grants remembers what the API lets scripts read.
func (plainKind) grants() *cors.Grants { return cors.NewGrants() }

// grants is nil: an API server is not asked by browsers.
func (kubernetesKind) grants() *cors.Grants { return nil }
