package ratelimit

import (
	"net/netip"
	"time"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/resource"
)

// Request holds the facts about a request that rules can use.
type Request struct {
	Info          *resource.Info
	At            time.Time          // when it arrived, which decides rollouts
	Route         *resource.RouteRef // the route of the request; nil if no scope names it
	ClientAddress netip.Addr
	// Username and Groups are the user; an unknown one is "system:anonymous".
	Username string
	Groups   []string
	Headers  cel.Headers
	// Repeated returns the name of a header that a rule has looked up since the last call although
	// the request has it more than once, if it is no list; "" if there is none. It may be nil.
	Repeated func() string
	// Frame returns what CEL is evaluated in, with the request bound; it is called only if a rule needs it.
	Frame func() *cel.Frame
}

// anonymous is the name of those who did not say who they are, as in Kubernetes.
const anonymous = "system:anonymous"
