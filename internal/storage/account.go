package storage

import (
	"errors"
	"net/http"

	"github.com/admission-gateway/gateway/internal/http1"
	"github.com/admission-gateway/gateway/internal/http1/upstream"
	"github.com/admission-gateway/gateway/internal/status"
)

// An Account is the gateway's own at a backend. By it the gateway reads what it has to know to judge a write: a client that may
// write an object need not be allowed to read it. Whether the client may write is for the backend to say.
type Account struct {
	// Client sends the requests of the account.
	Client *upstream.Client
	// AppendHead appends the head of a GET with the header lines that name the request in logs and traces.
	AppendHead func(dst, target, lines []byte) ([]byte, error)
	// Answered is told of the code of each answer.
	Answered func(code int)
	// Lacks is told of a read that the backend did not let the account make, with the backend's reason.
	Lacks func(rule status.AccessRule, reason string)
}

// ErrUnseen says that the request is only explained, and that the client may not see what it depends on.
var ErrUnseen = errors.New("the client may not see what the explanation would have to show")

// ReadOwn reads what is stored at a target by the gateway's own account, or as the client if there is none. The rule is what
// the backend needs to let the account read it. An explanation shows what was read, so that it is read as the client too. The
// answer is valid until the next such read.
func (r *Request) ReadOwn(b *Backend, target []byte, rule status.AccessRule, l *Limits) (*http1.Response, error) {
	a := b.Account
	if a == nil {
		return r.ReadStored(b, target, l)
	}
	if r.IsExplained() {
		answer, err := r.ReadStored(b, target, l)
		if err == nil && (answer.Status() == http.StatusForbidden || answer.Status() == http.StatusUnauthorized) {
			return nil, ErrUnseen
		}
		return answer, err
	}
	lines := r.From.Trace
	if r.Exchanges.Tracer != nil {
		lines = r.Exchanges.Tracer.Begin(methodGet, target)
	}
	head, err := a.AppendHead(r.buffers.head[:0], target, lines)
	if err != nil {
		if r.Exchanges.Tracer != nil {
			r.Exchanges.Tracer.End(b, 0, err)
		}
		return nil, noAccount()
	}
	r.buffers.head = head
	answer, err := r.readBy(b, a.Client, 2*l.Body)
	if err != nil {
		var failed *upstream.Error
		r.knowsStored = r.knowsStored || errors.As(err, &failed) && failed.Kind == upstream.TooLarge
		return nil, err
	}
	a.Answered(answer.Status())
	switch answer.Status() {
	case http.StatusUnauthorized:
		return nil, noAccount()
	case http.StatusForbidden:
		reason := status.MessageOf(answer.Body())
		a.Lacks(rule, reason)
		return nil, status.AccountMayNot(r.Info.GroupResource(), r.Info.Name, &rule, b.Name, reason)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
	default:
		r.knowsStored = true
	}
	return answer, nil
}

// IsExplained reports whether nothing of the request is sent on but the gateway's own questions.
func (r *Request) IsExplained() bool { return r.Exchanges.Sink != nil }

// KnowsStored reports whether the gateway's own account has read for the request what the client may not be allowed to read.
func (r *Request) KnowsStored() bool { return r.knowsStored }

func noAccount() error {
	return status.ServiceUnavailable("the gateway has no account now by which to ask the backend", 1)
}
