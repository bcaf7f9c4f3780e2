// Package state keeps what policies ask of backends beyond the request itself:
// collections that are listed and then watched, polled, or read when they are
// needed; single objects such as parameters and namespaces; and answers to
// whether a user may do something.
//
// A [Manager] owns it all and outlives the policy sets that ask. What it hands out is immutable and
// shared: it must not be edited or released. Everything it keeps is bounded, by number and by
// bytes; a collection that is too large is not known at all rather than known in part.
//
// The errors of this package are for clients: they say what is not known and why,
// and never hold anything that was read.
package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/admission-gateway/gateway/internal/access"
	"github.com/admission-gateway/gateway/internal/discovery"
)

// A Backend is an upstream as this package reads it, with the gateway's own
// credentials. It is safe for concurrent use.
type Backend interface {
	// API returns the kind of backend that it is.
	API() API
	// Discovery returns what knows which kinds a Kubernetes API server serves; nil if the backend
	// is not one.
	Discovery() *discovery.Client
	// Send sends a request and returns the whole answer, whatever its code. Its
	// errors are for clients.
	Send(ctx context.Context, r Request) (Response, error)
	// Open sends a GET and returns the answer's code and body as they come. within bounds the time
	// until the head of the answer is there; 0 means the backend's own bound. The body ends when ctx
	// does, and must be closed.
	Open(ctx context.Context, target string, within time.Duration) (code int, body io.ReadCloser, err error)
}

// Backends are the upstreams of the gateway.
type Backends interface {
	// Backend returns the upstream with the name; with none that to which requests for the path go.
	// It is nil if there is none.
	Backend(name, path string) Backend
}

// A Request is one request to a backend.
type Request struct {
	// Method is GET or POST; Target is path and query.
	Method, Target string
	// Body is JSON; empty for GET.
	Body []byte
	// Accept is the media types of the answer; empty is JSON.
	Accept string
	// Known is the ETag of the answer that is known already; empty for none.
	Known string
	// Limit is how large the answer's body may be, in bytes; a larger one is an
	// error.
	Limit int64
}

// A Response is the answer to a Request. Its body belongs to the caller.
type Response struct {
	Code int
	Body []byte
	// ETag names the answer; empty if the backend gives it no name.
	ETag string
}

var (
	errNoNamespace = errors.New("the request is in no namespace")
	errNotJSON     = errors.New("the backend's answer cannot be read")
	errOver        = errors.New("the backend did not answer before the request was over")
	errBusy        = errors.New("too much is being read at the moment")
	errTooMany     = errors.New("there is more of it than the gateway may keep")
)

// absentError is the answer of a backend that does not have a collection.
type absentError struct{ error }

func isAbsent(err error) bool { return errors.As(err, new(absentError)) }

// errAnswer is an answer that says nothing of what was asked for.
func errAnswer(code int, target string) error {
	if text := http.StatusText(code); text != "" {
		return fmt.Errorf("the backend answered %d %s%s", code, text, access.Lacking(code, http.MethodGet, target))
	}
	return fmt.Errorf("the backend answered %d", code)
}
