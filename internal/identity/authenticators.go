package identity

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"

	"github.com/admission-gateway/gateway/internal/status"
)

// Options say whose credentials count.
type Options struct {
	// Methods are tried in their order; the first that knows the credentials decides.
	Methods []Method
	// AllowAnonymous lets requests without credentials pass as system:anonymous.
	AllowAnonymous bool
	Tokens         TokenOptions
	// Refused is called with the reason why credentials were refused, which clients do not see; it
	// may be nil.
	Refused func(method, cause string)
	// Transport makes the way to issuers of the one without it; nil leaves it.
	Transport func(http.RoundTripper) http.RoundTripper
}

// Method is a way to authenticate: one of its members is set.
type Method struct {
	// ClientCertificate is by certificates that the listener's authorities have signed.
	ClientCertificate bool
	JWT               *apiserver.JWTAuthenticator
	TokenReview       *ReviewOptions
	RequestHeader     *HeaderOptions
}

// TokenOptions say how long and how many verified bearer tokens are remembered, and how many invalid ones are verified.
// Zero values mean the defaults.
type TokenOptions struct {
	// Entries is how many valid tokens are remembered, and how many invalid ones.
	Entries int
	// TTL is how long a JWT is taken for valid, but never after it expires; ReviewTTL how long a token that a server
	// was asked about.
	TTL, ReviewTTL time.Duration
	// FailureTTL is how long a token is taken for invalid.
	FailureTTL time.Duration
	// Failures is about how many different invalid tokens a server is asked for a client address in a minute, Burst how
	// many at once.
	Failures, Burst int
}

// The defaults of TokenOptions.
const (
	DefaultEntries    = 8192
	DefaultTTL        = time.Minute
	DefaultReviewTTL  = 10 * time.Second
	DefaultFailureTTL = 5 * time.Second
	DefaultFailures   = 60
	DefaultBurst      = 20
)

// Authenticators identify the user of a request. They are safe for concurrent use.
type Authenticators struct {
	methods   []method
	tokens    *tokens // nil if no method uses tokens
	anonymous *Principal
	stop      context.CancelFunc
	refused   func(method, cause string)
}

// method is one way to authenticate.
type method struct {
	name   string
	token  verifier // of bearer tokens
	other  presenter
	review bool // the token is remembered for ReviewTTL
}

// presenter authenticates by something else than a bearer token. Neither a principal nor an error
// is no opinion.
type presenter interface {
	present(r *Request) (*Principal, error)
}

// Request holds the credentials of a request, and its origin.
type Request struct {
	// Now is the time of the request.
	Now time.Time
	// Authorization is the value of that header; nil without one.
	Authorization []byte
	// Peer is the other end of the connection, Client the address of the client: both are the same without a proxy.
	Peer, Client netip.Addr
	// Connection holds the identity that the client's connection has proved; nil without TLS.
	Connection *Connection
	// Remote has the lines X-Remote-*, of any peer.
	Remote Headers
	// Context has the trace of the request; nil if there is none.
	Context context.Context
	// RemoteNamed: the header Connection names one of these lines, which Remote then lacks.
	RemoteNamed bool
}

// Headers are the header lines of a request that describe a user.
type Headers interface {
	// Each calls yield with each line that is not hop by hop; of its name with what follows the prefix X-Remote- or
	// Impersonate-, in any case.
	Each(yield func(name, value []byte))
}

// New returns authenticators, which go on to look up keys until Close.
func New(o Options) (*Authenticators, error) {
	ctx, cancel := context.WithCancel(context.Background())
	a := &Authenticators{stop: cancel, refused: o.Refused}
	if a.refused == nil {
		a.refused = func(string, string) {}
	}
	if o.AllowAnonymous {
		a.anonymous = NewPrincipal(Anonymous())
	}
	// which takes its time and memory, and all issuers share
	compiler := sync.OnceValue(authenticationcel.NewDefaultCompiler)
	for i := range o.Methods {
		m, err := newMethod(ctx, &o.Methods[i], compiler, o.Transport)
		if err != nil {
			cancel()
			return nil, fmt.Errorf("authenticator %d: %w", i, err)
		}
		a.methods = append(a.methods, m)
	}
	for i := range a.methods {
		if a.methods[i].token == nil {
			continue
		}
		var err error
		if a.tokens, err = newTokens(o.Tokens, a.methods); err != nil {
			cancel()
			return nil, err
		}
		break
	}
	return a, nil
}

func newMethod(ctx context.Context, m *Method, compiler func() authenticationcel.Compiler,
	over func(http.RoundTripper) http.RoundTripper) (method, error) {
	switch {
	case m.ClientCertificate:
		return method{name: "clientCertificate", other: certificates{}}, nil
	case m.JWT != nil:
		j, err := newJWT(ctx, m.JWT, compiler(), over)
		return method{name: "jwt", token: j}, err
	case m.TokenReview != nil:
		return method{name: "tokenReview", token: newReviewer(m.TokenReview), review: true}, nil
	case m.RequestHeader != nil:
		return method{name: "requestHeader", other: &remote{*m.RequestHeader}}, nil
	}
	return method{}, errors.New("must be of a kind")
}

// Close ends what goes on in the background.
func (a *Authenticators) Close() { a.stop() }

// Identify returns the user of a request. An error is a *Refusal, or the error of an authenticator
// that cannot answer now (503) or will not (429), or that reads the request in two ways (400): a
// request with credentials that are not valid never passes as anonymous.
func (a *Authenticators) Identify(r *Request) (*Principal, error) {
	var found tokenResult
	var failure error
	var refusal refusalCause
	token, bearer := bearerOf(r.Authorization)
	looked := false
	for i := range a.methods {
		m := &a.methods[i]
		if m.other != nil {
			p, err := m.other.present(r)
			if p != nil {
				return p, nil
			}
			var ambiguous *status.Error
			if errors.As(err, &ambiguous) {
				return nil, err
			}
			if err != nil {
				refusal = refusalCause{m.name, err}
			}
			continue
		}
		if !bearer {
			continue
		}
		if !looked {
			looked = true
			found, failure = a.tokens.find(a, token, r)
		}
		if found.principal != nil && int(found.by) == i {
			return found.principal, nil
		}
	}
	switch {
	case failure != nil:
		return nil, failure
	case looked:
		return nil, &Refusal{"bearer", "the bearer token is not valid"}
	case refusal.err != nil:
		a.refused(refusal.method, refusal.err.Error())
		return nil, &Refusal{refusal.method, "the client certificate is not valid"}
	case a.anonymous != nil:
		return a.anonymous, nil
	}
	return nil, &Refusal{"none", "the request has no credentials, and anonymous requests are not allowed"}
}

// Refusal is the error of a request whose credentials are not valid, or that has none where there have to be some
// (401).
type Refusal struct {
	by      string
	message string
}

func (r *Refusal) Error() string { return r.message }

// Status is the answer.
func (r *Refusal) Status() *status.Error { return status.Unauthorized(r.message) }

// Challenge is the value of WWW-Authenticate in the answer.
func (r *Refusal) Challenge() string {
	if r.by == "bearer" {
		return `Bearer realm="admission-gateway", error="invalid_token"`
	}
	return `Bearer realm="admission-gateway"`
}
