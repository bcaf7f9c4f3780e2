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
func noteGrants(r *request) {
	if answer := &r.Response; r.incoming.Head.Has(message.FieldOrigin) && r.route != nil && r.route.cors == nil &&
		answer.Status() > 0 && !answer.IsOwn() {
		r.route.backend.grants.Note(&r.incoming.Head, placeOf(r), &answer.Response, r.Started)
	}
}

// shareAnswer lets scripts of other origins read the answer as far as the route says so, or else the backend of its
// own answers. An answer of the backend says so itself.
func shareAnswer(r *request) {
	head, answer := &r.incoming.Head, &r.Response
	switch {
	case r.route == nil || r.upgrade.tunnel != nil:
	case r.route.cors != nil:
		r.route.cors.Apply(head, &answer.Response)
	case answer.IsOwn() && head.Has(message.FieldOrigin):
		r.route.backend.grants.Share(head, placeOf(r), &answer.Response,
			func(q *cors.Preflight) (*message.Response, error) { return askPreflight(r, q) })
	}
}

// shareKnown does so for an answer to a request about which the backend cannot be asked: a head that was refused, or
// a request in which the gateway failed. What is known of the path counts.
func shareKnown(r *request, answer *message.Response) {
	head, route := &r.incoming.Head, r.route
	if !head.Has(message.FieldOrigin) {
		return
	}
	if route == nil {
		choice := r.gateway.routes.find(listenerOf(r), head)
		if choice == nil {
			return
		}
		route = choice.routes[0]
		if r.Resource == nil && len(head.Target) > 0 {
			resolver := r.gateway.scopesOf(r.set).resolver(route)
			info, described, _ := resolver.Resolve(str(head.Method), head.Target)
			r.SetSubject(&info, described)
		}
	}
	if route.cors != nil {
		route.cors.Apply(head, answer)
		return
	}
	route.backend.grants.ShareKnown(head, placeOf(r), answer)
}

// askTimeout bounds how long an answer of the gateway waits for the backend's word about it.
const askTimeout = time.Second

// askPreflight asks the backend what a browser would ask it before the request.
func askPreflight(r *request, q *cors.Preflight) (*message.Response, error) {
	q.Target, q.Host = str(r.incoming.Head.Target), r.From.Host
	span := tracing.StartClientSpan(r.telemetry.spans.Context(), http.MethodOptions)
	head := q.AppendHead(nil)
	head = append(span.AppendLine(head[:len(head)-len("\r\n")]), "\r\n"...)
	answer := new(message.Response)
	err := r.route.backend.client.Do(&upstream.Request{
		Head: head, Idempotent: true,
		Whole: maxPreflight, Deadline: time.Now().Add(askTimeout), Client: r.incoming.Client,
	}, answer)
	spans.Asked(span, &r.route.backend.storage, q.Target, answer.Status(), err)
	return answer, err
}

// takeForAnonymous lets a preflight to a plain API pass by a client that is not known, and reports whether it is one:
// browsers send preflights without credentials. Limits take it for anonymous.
func takeForAnonymous(r *request) bool {
	head := &r.incoming.Head
	if r.route.backend.grants == nil || head.Has(message.FieldAuthorization) || !cors.IsPreflight(head) {
		return false
	}
	r.who.user, r.who.challenge = r.gateway.anonymous, ""
	return true
}

// answerPreflight answers a preflight by what the route says of CORS.
func answerPreflight(r *request) error {
	if r.route.cors.Answers(&r.incoming.Head, &r.Response.Response) {
		return errServed
	}
	return nil
}

// relayPreflight answers a preflight of a client that is not known by what the backend says of CORS. The backend
// gets what a browser asks and nothing else of the request.
func relayPreflight(r *request) error {
	if r.who.refusal == nil {
		return nil
	}
	answer, err := cors.Relay(&r.incoming.Head,
		func(q *cors.Preflight) (*message.Response, error) { return askPreflight(r, q) })
	if err != nil {
		return err
	}
	cors.CopyGrant(&r.Response.Response, answer)
	return errServed
}

// maxPreflight is how long the body of an answer to a preflight may be, which is seldom there and not read.
const maxPreflight = 64 << 10

// answerFailure answers a request in which the gateway failed with a 500 that shows nothing of that. If that fails
// too, the server answers.
func answerFailure(r *request) {
	defer func() { _ = recover() }()
	r.incoming.Linger()
	var answer storage.Response
	if r.incoming.Refusal != nil {
		r.telemetry.nameNew() // no more of its head is used
	}
	e := status.From(errPanic)
	code, contentType, body := formOf(r, e)
	writeRefusal(&answer, e, code, contentType, body)
	showNames(r, &answer)
	shareKnown(r, &answer.Response)
	r.incoming.Send(&answer.Response)
}

// placeOf returns where in the API a request is, for what is remembered about places: what a file describes is one for
// all objects, and any other path counts by its first segments.
func placeOf(r *request) string {
	i := &r.Info
	described := r.Resource
	if described == nil {
		return firstSegments(str(pathOf(r.incoming.Head.Target)))
	}
	place := described.GroupResource().String() + "/" + i.Subresource
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
func (plainKind) options(r *request) error { return passThrough(r) }

// options answers which methods there are (RES-4).
func (kubernetesKind) options(r *request) error {
	answer := &r.Response
	answer.Start(http.StatusNoContent)
	answer.Add("Allow", methodsOf(r, ""))
	return nil
}

// grants remembers what the API lets scripts read.
func (plainKind) grants() *cors.Grants { return cors.NewGrants() }

// grants is nil: an API server is not asked by browsers.
func (kubernetesKind) grants() *cors.Grants { return nil }
