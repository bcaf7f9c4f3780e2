package proxy

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/admission-gateway/gateway/internal/access"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/telemetry/tracing"
	"github.com/admission-gateway/gateway/internal/upstream"
	"github.com/admission-gateway/gateway/proxy/spans"
)

// A Kubernetes API server authorizes a request before it looks at the object, so that a client that
// may not write must not see the verdicts of policies and schemas. The server authorizes a write when
// it gets there. A write that the gateway refuses does not get there, so the gateway asks the server
// before it sends the refusal.

// permission is what is known of whether the client is authorized to make the request.
type permission struct {
	// refusal is the answer if the client is not authorized, or if that must be known and is not.
	// It is nil before that.
	refusal error
	// isGiven is set once it is known that the client may.
	isGiven bool
}

// orForbidden returns the refusal of a request or, if the client is not authorized anyway, the
// refusal of the API server. If that cannot be determined the client gets the first, unless it
// depends on what the gateway's own account has read.
func orForbidden(r *request, refusal error) error {
	var told *status.Error
	isTold := errors.As(refusal, &told)
	knowsStored := r.KnowsStored()
	switch {
	case r.permission.refusal != nil:
		return forbid(r, r.permission.refusal)
	case storage.IsDone(r.PreviewStatus()):
		r.permission.isGiven = true // the server has let the client try it
		return refusal
	case !r.scope.backend.kind.authorizes():
		return refusal
	case knowsStored:
	case !isTold || told.ErrStatus.Code > http.StatusInternalServerError:
		return refusal
	case r.scope.hasBody && r.scope.isOpaque(r.Request):
		return refusal // which says nothing of any file
	}
	may, unknown := reviewAccess(r, r.gateway.states.Reviews().Try)
	var failed *upstream.Error
	switch {
	case may != nil:
		return forbid(r, may)
	case unknown == nil:
		r.permission.isGiven = true
	case !knowsStored:
	case errors.As(refusal, &failed) && failed.Kind != upstream.TooLarge: // which says nothing of the stored object
		withholdWarnings(r) // but they may
	default:
		return forbid(r, withheld(r, unknown))
	}
	return refusal
}

// withheld returns the answer if the permission is unknown, in place of one that would reveal
// something of the stored object.
func withheld(r *request, why error) *status.Error {
	var refused *access.Refusal
	switch i := &r.Info; {
	case !errors.As(why, &refused) || refused.Code != http.StatusForbidden:
		return status.ServiceUnavailable("the backend does not say now whether the client may do what it asks for, on which the answer depends", 1)
	case askerOf(r).self == nil:
		rule := status.AccessRule{Group: "authorization.k8s.io", Resource: "subjectaccessreviews", Verb: "create"}
		return status.AccountMayNot(i.GroupResource(), i.Name, &rule, r.scope.backend.name, "")
	default:
		return status.Forbidden(i.GroupResource(), i.Name,
			"the backend does not let the client ask by a SelfSubjectAccessReview whether it may do what it asks for, on which the answer depends")
	}
}

// maySee reports whether the client may learn what the gateway's own account reads for its request.
func maySee(r *request) bool { return r.permission.isGiven || r.scope.backend.storage.Account == nil }

// forbid makes the API server's refusal the answer, without the findings of policies. It does so
// too for a client for which nothing was read that a policy needed, whatever the policy made of
// that.
func forbid(r *request, refusal error) error {
	r.permission.refusal = refusal
	r.Warnings = r.Warnings[:0]
	return refusal
}

// orAsked returns the refusal that a client gets in the place of the API server's own, if the
// gateway's own account has read the stored object for its request: otherwise the source of the
// refusal would reveal what policies decided by that object. It returns nil if the client is
// authorized, so that the server's own admission has refused the request.
func orAsked(r *request) error {
	if !r.KnowsStored() || r.permission.isGiven || storage.IsDone(r.PreviewStatus()) ||
		!r.scope.backend.kind.authorizes() {
		return nil
	}
	switch may, unknown := reviewAccess(r, r.gateway.states.Reviews().Try); {
	case may != nil:
		return forbid(r, may)
	case unknown != nil:
		return forbid(r, withheld(r, unknown))
	}
	r.permission.isGiven = true
	return nil
}

// isHeard reports whether an answer of the API server means that the client is authorized. An overloaded server
// answers 429 before it authorizes, and a request that fails may not have got that far.
func isHeard(r *request, code int) bool {
	return r.permission.isGiven || storage.IsDone(r.PreviewStatus()) || code != http.StatusTooManyRequests &&
		code < http.StatusInternalServerError
}

// withholdWarnings drops the warnings of policies after a 403 of the API server, because the client is not authorized.
// The server's admission may have refused the write with the same code; the warnings are lost then.
func withholdWarnings(r *request) {
	if r.scope.backend.kind.authorizes() {
		r.Warnings = r.Warnings[:0]
	}
}

// gate keeps from being read what a policy asks for, if the API server is remembered to refuse the request. It
// implements state.Gate.
type gate request

// MayRead implements state.Gate.
func (g *gate) MayRead() error {
	r := (*request)(g)
	if r.permission.refusal == nil {
		if !r.scope.backend.kind.authorizes() || !r.gateway.states.Reviews().Refuses() {
			return nil
		}
		r.permission.refusal, _ = reviewAccess(r,
			func(_ context.Context, q *access.ReviewRequest) (access.ReviewResponse, error) {
				if a, ok := r.gateway.states.Reviews().Remember(q); ok {
					return a, nil
				}
				return access.ReviewResponse{}, errNotRemembered
			})
	}
	if r.permission.refusal == nil {
		return nil
	}
	return forbid(r, r.permission.refusal)
}

var errNotRemembered = errors.New("the answer is not remembered")

// reviewAccess asks whether the client is authorized. It returns the refusal if it is not, an error if that is not
// known, and nil and nil if it is.
func reviewAccess(r *request, ask func(context.Context, *access.ReviewRequest) (access.ReviewResponse, error)) (may,
	unknown error) {
	ctx := r.telemetry.context(r.Client)
	if by := r.Deadline(); !by.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, by)
		defer cancel()
	}
	w := askerOf(r)
	if w == nil {
		return nil, errNobodyAsks
	}
	all := accessesOf(r)
	if len(all) == 0 {
		return nil, errNobodyAsks
	}
	for _, about := range all {
		about.User = &user.DefaultInfo{Name: w.user.Name, UID: w.user.UID, Groups: w.user.Groups, Extra: w.user.Extra}
		q, err := w.question(&about)
		if err != nil {
			return nil, err
		}
		answer, err := ask(ctx, q)
		var refused *access.Refusal
		switch {
		case errors.As(err, &refused) && refused.Code == http.StatusUnauthorized && w.self != nil:
			return status.Unauthorized("Unauthorized"), nil // the client's credentials are not at hand
		case err != nil:
			return nil, err
		case answer.Verdict == authorizer.DecisionAllow:
			continue
		}
		return status.MayNot(w.name(ctx), &about, answer.Reason), nil
	}
	return nil, nil
}

var errNobodyAsks = errors.New("nobody can ask what the client may do")

// accessesOf returns the steps that the API server authorizes of the request, in its order: what the URL
// and the method say, and the creation to which a PUT comes.
func accessesOf(r *request) []authorizer.AttributesRecord {
	at, err := url.ParseRequestURI(string(r.Head.Target))
	if err != nil {
		return nil
	}
	info, err := access.InfoOf(string(r.Head.Method), at)
	if err != nil {
		return nil
	}
	about := authorizer.AttributesRecord{
		Verb: info.Verb, Namespace: info.Namespace, APIGroup: info.APIGroup, APIVersion: info.APIVersion,
		Resource:    info.Resource,
		Subresource: info.Subresource, Name: info.Name, ResourceRequest: info.IsResourceRequest, Path: info.Path,
	}
	if s, err := fields.ParseSelector(info.FieldSelector); err == nil {
		about.FieldSelectorRequirements = s.Requirements()
	}
	if s, err := labels.Parse(info.LabelSelector); err == nil {
		about.LabelSelectorRequirements, _ = s.Requirements()
	}
	all := []authorizer.AttributesRecord{about}
	if w := r.attempt.Write; w.Existing.IsAbsent && w.Info.Verb == resource.VerbUpdate {
		about.Verb = "create"
		all = append(all, about)
	}
	return all
}

// An asker asks about one client.
type asker struct {
	reviews  *access.Reviews
	upstream *backend
	// user is who the client is to the backend, as far as the gateway knows.
	user identity.User
	// self are the credentials with which the client's own permission is asked for; nil if the
	// gateway's own account asks.
	self []byte
	post access.Post
}

// askerOf returns how to ask for the client's permission; nil if that is impossible. A user that the
// gateway names to the backend is known. Else the backend believes the client's own credentials,
// and without any takes the client for an anonymous one.
func askerOf(r *request) *asker {
	w := &asker{reviews: r.gateway.states.Reviews(), upstream: r.scope.backend, user: r.who.user,
		post: state.PostReview(r.scope.backend)}
	switch r.scope.backend.credentials {
	case config.FrontProxyCredentials, config.ImpersonateCredentials:
	default:
		if w.self = shownCredentials(r); w.self != nil {
			w.post = postAsClient(r)
			return w
		}
		w.user = identity.Anonymous()
	}
	if r.scope.backend.account.Anonymous() {
		return nil
	}
	return w
}

func (w *asker) question(about authorizer.Attributes) (*access.ReviewRequest, error) {
	if w.self != nil {
		return w.reviews.Self(w.upstream, w.self, w.post, about)
	}
	return w.reviews.Subject(w.upstream, w.post, about)
}

// name returns the client's name at the backend; empty if the backend does not say.
func (w *asker) name(ctx context.Context) string {
	if w.self == nil {
		return w.user.Name
	}
	q, err := w.reviews.Who(w.upstream, w.self, w.post)
	if err != nil {
		return ""
	}
	answer, err := w.reviews.Try(ctx, q)
	if err != nil && !w.user.IsAnonymous() {
		return w.user.Name
	}
	return answer.User
}

// shownCredentials are the lines by which the client proves its identity to the backend; nil without any.
func shownCredentials(r *request) (all []byte) {
	if token, err := r.who.authorization(r.Head, r.upgrade.protocol, r.scope.backend.credentials); err == nil &&
		token != nil {
		all = append(append(all, token...), '\n')
	}
	for _, l := range r.Head.Headers() {
		if !l.Dropped && (l.Field == message.FieldXRemote || l.Field == message.FieldImpersonate) {
			all = append(append(append(append(all, l.Name...), ':'), l.Value...), '\n')
		}
	}
	return all
}

// postAsClient posts reviews as the client would, with its credentials, over the connections of clients.
func postAsClient(r *request) access.Post {
	var token []byte
	if !r.Head.Has(message.FieldAuthorization) {
		// A token among the protocols of a WebSocket counts if there is one.
		token, _ = r.who.authorization(r.Head, r.upgrade.protocol, r.scope.backend.credentials)
	}
	if s := r.telemetry.spans; s != nil { // the question has a place of its own in the trace
		defer func(lines []byte) { r.From.Trace = lines }(r.From.Trace)
		r.From.Trace = s.Names()
	}
	head := r.OwnPostHead(token)
	lines := head[slices.Index(head, '\n')+1 : len(head)-len("\r\n")]
	b := r.scope.backend
	return func(ctx context.Context, target string, body []byte) (int, []byte, error) {
		span := tracing.StartClientSpan(ctx, http.MethodPost)
		head := append([]byte("POST "+target+" HTTP/1.1\r\n"), lines...)
		head = append(strconv.AppendInt(append(head, "Content-Length: "...), int64(len(body)), 10), "\r\n"...)
		head = append(span.AppendLine(head), "\r\n"...)
		deadline, _ := ctx.Deadline()
		answer := new(message.Response)
		err := b.client.Do(&upstream.Request{Head: head, Body: body, Whole: access.MaxAnswer, Deadline: deadline},
			answer)
		spans.Asked(span, &b.storage, target, answer.Status(), err)
		return answer.Status(), answer.Body(), err
	}
}
