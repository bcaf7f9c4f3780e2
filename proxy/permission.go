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

// permission finds out whether the client is authorized to make the request.
type permission struct {
	scope   *scope
	request *storage.Request
	write   *storage.Write // the attempt at hand
	who     *who
	upgrade *upgrade
	trail   *trail
	reviews *access.Reviews
	// refusal is the answer if the client is not authorized, or if that must be known and is not.
	// It is nil before that.
	refusal error
	// isGiven is set once it is known that the client may.
	isGiven bool
}

// begin prepares for a request.
func (p *permission) begin(h *handler) {
	*p = permission{scope: h.scope, request: h.request, write: h.write, who: &h.who, upgrade: &h.upgrade, trail: h.trail, reviews: h.gateway.states.Reviews()}
}

// orForbidden returns the refusal of a request or, if the client is not authorized anyway, the
// refusal of the API server. If that cannot be determined the client gets the first, unless it
// depends on what the gateway's own account has read.
func (p *permission) orForbidden(refusal error) error {
	var told *status.Error
	isTold := errors.As(refusal, &told)
	knowsStored := p.request.KnowsStored()
	switch {
	case p.refusal != nil:
		return p.forbid(p.refusal)
	case storage.IsDone(p.request.PreviewStatus()):
		p.isGiven = true // the server has let the client try it
		return refusal
	case !p.scope.backend.kind.authorizes():
		return refusal
	case knowsStored:
	case !isTold || told.ErrStatus.Code > http.StatusInternalServerError:
		return refusal
	case p.scope.hasBody && p.scope.isOpaque(p.request):
		return refusal // which says nothing of any file
	}
	may, unknown := p.review(p.reviews.Try)
	var failed *upstream.Error
	switch {
	case may != nil:
		return p.forbid(may)
	case unknown == nil:
		p.isGiven = true
	case !knowsStored:
	case errors.As(refusal, &failed) && failed.Kind != upstream.TooLarge: // which says nothing of the stored object
		p.withholdWarnings() // but they may
	default:
		return p.forbid(p.withhold(unknown))
	}
	return refusal
}

// withhold returns the answer if the permission is unknown, in place of one that would reveal
// something of the stored object.
func (p *permission) withhold(why error) *status.Error {
	var refused *access.Refusal
	switch i := &p.request.Info; {
	case !errors.As(why, &refused) || refused.Code != http.StatusForbidden:
		return status.ServiceUnavailable("the backend does not say now whether the client may do what it asks for, on which the answer depends", 1)
	case p.asker().self == nil:
		rule := status.AccessRule{Group: "authorization.k8s.io", Resource: "subjectaccessreviews", Verb: "create"}
		return status.AccountMayNot(i.GroupResource(), i.Name, &rule, p.scope.backend.name, "")
	default:
		return status.Forbidden(i.GroupResource(), i.Name,
			"the backend does not let the client ask by a SelfSubjectAccessReview whether it may do what it asks for, on which the answer depends")
	}
}

// maySee reports whether the client may learn what the gateway's own account reads for its request.
func (p *permission) maySee() bool { return p.isGiven || p.scope.backend.storage.Account == nil }

// forbid makes the API server's refusal the answer, without the findings of policies. It does so
// too for a client for which nothing was read that a policy needed, whatever the policy made of
// that.
func (p *permission) forbid(refusal error) error {
	p.refusal = refusal
	p.request.Warnings = p.request.Warnings[:0]
	return refusal
}

// orAsked returns the refusal that a client gets in the place of the API server's own, if the
// gateway's own account has read the stored object for its request: otherwise the source of the
// refusal would reveal what policies decided by that object. It returns nil if the client is
// authorized, so that the server's own admission has refused the request.
func (p *permission) orAsked() error {
	if !p.request.KnowsStored() || p.isGiven || storage.IsDone(p.request.PreviewStatus()) || !p.scope.backend.kind.authorizes() {
		return nil
	}
	switch may, unknown := p.review(p.reviews.Try); {
	case may != nil:
		return p.forbid(may)
	case unknown != nil:
		return p.forbid(p.withhold(unknown))
	}
	p.isGiven = true
	return nil
}

// isHeard reports whether an answer of the API server means that the client is authorized. An overloaded server
// answers 429 before it authorizes, and a request that fails may not have got that far.
func (p *permission) isHeard(code int) bool {
	return p.isGiven || storage.IsDone(p.request.PreviewStatus()) || code != http.StatusTooManyRequests && code < http.StatusInternalServerError
}

// withholdWarnings drops the warnings of policies after a 403 of the API server, because the client is not authorized.
// The server's admission may have refused the write with the same code; the warnings are lost then.
func (p *permission) withholdWarnings() {
	if p.scope.backend.kind.authorizes() {
		p.request.Warnings = p.request.Warnings[:0]
	}
}

// MayRead implements state.Gate: nothing is read for a request that the API server is remembered to refuse.
func (p *permission) MayRead() error {
	if p.refusal == nil {
		if !p.scope.backend.kind.authorizes() || !p.reviews.Refuses() {
			return nil
		}
		p.refusal, _ = p.review(func(_ context.Context, q *access.Question) (access.Answer, error) {
			if a, ok := p.reviews.Remember(q); ok {
				return a, nil
			}
			return access.Answer{}, errNotRemembered
		})
	}
	if p.refusal == nil {
		return nil
	}
	return p.forbid(p.refusal)
}

var errNotRemembered = errors.New("the answer is not remembered")

// review asks whether the client is authorized. It returns the refusal if it is not, an error if that is not known, and
// nil and nil if it is.
func (p *permission) review(ask func(context.Context, *access.Question) (access.Answer, error)) (may, unknown error) {
	ctx := p.trail.context(p.request.Client)
	if by := p.request.Deadline(); !by.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, by)
		defer cancel()
	}
	w := p.asker()
	if w == nil {
		return nil, errNobodyAsks
	}
	all := p.accesses()
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

// accesses returns the steps that the API server authorizes of the request, in its order: what the URL
// and the method say, and the creation to which a PUT comes.
func (p *permission) accesses() []authorizer.AttributesRecord {
	at, err := url.ParseRequestURI(string(p.request.Head.Target))
	if err != nil {
		return nil
	}
	info, err := access.InfoOf(string(p.request.Head.Method), at)
	if err != nil {
		return nil
	}
	about := authorizer.AttributesRecord{
		Verb: info.Verb, Namespace: info.Namespace, APIGroup: info.APIGroup, APIVersion: info.APIVersion, Resource: info.Resource,
		Subresource: info.Subresource, Name: info.Name, ResourceRequest: info.IsResourceRequest, Path: info.Path,
	}
	if s, err := fields.ParseSelector(info.FieldSelector); err == nil {
		about.FieldSelectorRequirements = s.Requirements()
	}
	if s, err := labels.Parse(info.LabelSelector); err == nil {
		about.LabelSelectorRequirements, _ = s.Requirements()
	}
	all := []authorizer.AttributesRecord{about}
	if w := p.write; w.Existing.IsAbsent && w.Info.Verb == resource.VerbUpdate {
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

// asker returns how to ask for the client's permission; nil if that is impossible. A user that the
// gateway names to the backend is known. Else the backend believes the client's own credentials,
// and without any takes the client for an anonymous one.
func (p *permission) asker() *asker {
	w := &asker{reviews: p.reviews, upstream: p.scope.backend, user: p.who.user, post: state.PostReview(p.scope.backend)}
	switch p.scope.backend.credentials {
	case config.FrontProxyCredentials, config.ImpersonateCredentials:
	default:
		if w.self = p.shown(); w.self != nil {
			w.post = p.postAsClient()
			return w
		}
		w.user = identity.Anonymous()
	}
	if p.scope.backend.account.Anonymous() {
		return nil
	}
	return w
}

func (w *asker) question(about authorizer.Attributes) (*access.Question, error) {
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

// shown are the lines by which the client proves its identity to the backend; nil without any.
func (p *permission) shown() (all []byte) {
	if token, err := p.who.authorization(p.request.Head, p.upgrade.protocol, p.scope.backend.credentials); err == nil && token != nil {
		all = append(append(all, token...), '\n')
	}
	for _, l := range p.request.Head.Headers() {
		if !l.Dropped && (l.Field == message.FieldXRemote || l.Field == message.FieldImpersonate) {
			all = append(append(append(append(all, l.Name...), ':'), l.Value...), '\n')
		}
	}
	return all
}

// postAsClient posts reviews as the client would, with its credentials, over the connections of clients.
func (p *permission) postAsClient() access.Post {
	var token []byte
	if !p.request.Head.Has(message.FieldAuthorization) {
		// A token among the protocols of a WebSocket counts if there is one.
		token, _ = p.who.authorization(p.request.Head, p.upgrade.protocol, p.scope.backend.credentials)
	}
	if s := p.trail.spans; s != nil { // the question has a place of its own in the trace
		defer func(lines []byte) { p.request.From.Trace = lines }(p.request.From.Trace)
		p.request.From.Trace = s.Names()
	}
	head := p.request.OwnPostHead(token)
	lines := head[slices.Index(head, '\n')+1 : len(head)-len("\r\n")]
	b := p.scope.backend
	return func(ctx context.Context, target string, body []byte) (int, []byte, error) {
		span := tracing.Ask(ctx, http.MethodPost)
		head := append([]byte("POST "+target+" HTTP/1.1\r\n"), lines...)
		head = append(strconv.AppendInt(append(head, "Content-Length: "...), int64(len(body)), 10), "\r\n"...)
		head = append(span.AppendLine(head), "\r\n"...)
		deadline, _ := ctx.Deadline()
		answer := new(message.Response)
		err := b.client.Do(&upstream.Request{Head: head, Body: body, Whole: access.MaxAnswer, Deadline: deadline}, answer)
		spans.Asked(span, &b.storage, target, answer.Status(), err)
		return answer.Status(), answer.Body(), err
	}
}
