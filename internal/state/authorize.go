package state

import (
	"context"
	"crypto/sha256"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/admission-gateway/gateway/internal/access"
)

// An Authorizer asks a Kubernetes API server whether a user may do something, by
// SubjectAccessReviews. It is for one request, whose goroutine alone may use it,
// and asks each question at most once. Before any other backend it denies
// everything.
type Authorizer struct {
	// Backend is asked; nil if there is none.
	Backend Backend
	// Reviews asks it, and remembers the answers for all requests.
	Reviews *access.Reviews
	// Gate is asked first, if there is one: its error ends the question.
	Gate Gate
	// Deadline is the request's; the zero time if there is none.
	Deadline time.Time
	// Context has the trace of the request; nil if there is none.
	Context context.Context

	known map[[sha256.Size]byte]decision
}

// A Gate keeps a request from reading what policies refer to.
type Gate interface {
	// MayRead returns an error if nothing may be read for the request.
	MayRead() error
}

type decision struct {
	answer access.ReviewResponse
	err    error
}

const notAsked = "the backend is no Kubernetes API server, which alone knows what users may do"

// Authorize implements authorizer.UnconditionalAuthorizer. The context does not belong to the
// request, and is not used.
func (a *Authorizer) Authorize(_ context.Context, about authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.Backend == nil || a.Backend.API().reviews(a.Reviews) == nil {
		return authorizer.DecisionDeny, notAsked, nil
	}
	if a.Gate != nil {
		if err := a.Gate.MayRead(); err != nil {
			return authorizer.DecisionNoOpinion, "", err
		}
	}
	question, err := a.Reviews.Subject(a.Backend, PostReview(a.Backend), about)
	if err != nil {
		return authorizer.DecisionNoOpinion, "", err
	}
	d, asked := a.known[question.ID()]
	if !asked {
		d = a.ask(question)
		if a.known == nil {
			a.known = map[[sha256.Size]byte]decision{}
		}
		a.known[question.ID()] = d
	}
	return d.answer.Verdict, d.answer.Reason, d.err
}

func (a *Authorizer) ask(q *access.ReviewRequest) (d decision) {
	ctx := a.Context
	if ctx == nil {
		ctx = context.Background()
	}
	if !a.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, a.Deadline)
		defer cancel()
	}
	d.answer, d.err = a.Reviews.Ask(ctx, q)
	return d
}

// PostReview asks a backend by the gateway's own account.
func PostReview(b Backend) access.Post {
	return func(ctx context.Context, target string, body []byte) (int, []byte, error) {
		answer, err := b.Send(ctx, Request{Method: http.MethodPost, Target: target, Body: body,
			Limit: access.MaxAnswer})
		return answer.Code, answer.Body, err
	}
}
