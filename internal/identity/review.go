package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/internal/status"
)

// ReviewOptions say whom to ask about tokens.
type ReviewOptions struct {
	// Post sends the body to a Kubernetes API server's tokenreviews on the gateway's own account.
	Post func(ctx context.Context, body []byte) (code int, answer []byte, err error)
	// Audiences are the audiences that a token may be for. Without any, a token must be for the
	// server itself.
	Audiences []string
}

// maxReviews is how many questions may be under way at once.
const maxReviews = 32

// reviewer asks a Kubernetes API server whose a token is.
type reviewer struct {
	o    ReviewOptions
	busy chan struct{}
}

func newReviewer(o *ReviewOptions) *reviewer { return &reviewer{*o, make(chan struct{}, maxReviews)} }

// verify implements verifier. Tokens that were valid before do not wait.
func (r *reviewer) verify(ctx context.Context, token string, by *bearer) (*User, time.Time, error) {
	if err := by.mayAsk(); err != nil {
		return nil, time.Time{}, err
	}
	if !by.known {
		select {
		case r.busy <- struct{}{}:
		case <-ctx.Done():
			return nil, time.Time{}, status.ServiceUnavailable("the gateway has too many bearer tokens to ask about", 1)
		}
		defer func() { <-r.busy }()
		// Meanwhile other tokens of the address may have turned out not to be valid.
		if err := by.mayAsk(); err != nil {
			return nil, time.Time{}, err
		}
	}
	user, err := r.ask(ctx, token)
	return user, time.Time{}, err
}

// ask reads the answer as Kubernetes' own webhook for tokens does.
func (r *reviewer) ask(ctx context.Context, token string) (*User, error) {
	question, err := json.Marshal(&authenticationv1.TokenReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"},
		Spec:     authenticationv1.TokenReviewSpec{Token: token, Audiences: r.o.Audiences},
	})
	if err != nil {
		return nil, err
	}
	code, body, err := r.o.Post(ctx, question)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errUnavailable, err)
	case code != http.StatusOK && code != http.StatusCreated:
		return nil, fmt.Errorf("%w: the server answered a TokenReview with code %d", errUnavailable, code)
	}
	var review authenticationv1.TokenReview
	if err := json.Unmarshal(body, &review); err != nil || review.Kind != "TokenReview" {
		return nil, fmt.Errorf("%w: the server answered a TokenReview with something else", errUnavailable)
	}
	s := &review.Status
	switch {
	case !s.Authenticated && s.Error != "":
		return nil, errors.New(s.Error)
	case !s.Authenticated:
		return nil, nil
	case s.User.Username == "":
		return nil, errors.New("the token belongs to a user without a name")
	case len(r.o.Audiences) > 0 &&
		!slices.ContainsFunc(s.Audiences, func(a string) bool { return slices.Contains(r.o.Audiences, a) }):
		// A server that knows no audiences leaves them out, which is no proof.
		return nil, errors.New("the token is for another audience")
	}
	u := &User{Name: s.User.Username, UID: s.User.UID, Groups: s.User.Groups}
	for key, values := range s.User.Extra {
		if u.Extra == nil {
			u.Extra = make(map[string][]string, len(s.User.Extra))
		}
		u.Extra[key] = values
	}
	return u, nil
}
