package telemetry

import (
	"net/netip"
	"time"
)

// A Record says what happened to one request. It is made once, when the request is over, for
// everything that reports it: the access log, metrics and the trace. Its strings are the request's
// own memory: who keeps one for longer clones it.
type Record struct {
	// ID identifies the request in the logs of the client, the gateway and the backend.
	ID       string
	Trace    Trace
	Client   netip.Addr
	User     string
	Request  ClientRequest
	Resource ResourceRef
	Routing  Routing
	InForce  InForce
	Outcome  Outcome
	Usage    Usage
}

// A Trace names the span of a request in a trace. The zero value means none.
type Trace struct {
	ID      [16]byte
	Span    [8]byte
	Sampled bool
}

// ClientRequest has what the client sent, without its query, which may have credentials. It is empty for a
// head that cannot be read in one way only.
type ClientRequest struct {
	Method, Host, Path, UserAgent string
	// Scheme is http or https, by the connection or by what a trusted proxy says.
	Scheme string
	// Version is the version of HTTP, as OpenTelemetry's conventions write it: 1.0, 1.1, 2, or one that is not served.
	// It is there also if the head cannot be read, unless the version is in what cannot be.
	Version string
}

// ResourceRef names the resource of a request. For a path that is no resource, Verb is the method in lower case.
type ResourceRef struct {
	Verb, Group, Resource, Subresource, Namespace, Name string
	// Template is the path as a template of the files that describe it, which live longer than the request; or empty.
	Template string
	// IsDescribed is set if a policy file describes the resource. A client can invent any number of
	// resources, but not one of these.
	IsDescribed bool
}

// InForce names what decided over a request: the beginnings of the hashes of the configuration and of the policy files,
// as the status shows them.
type InForce struct{ Configuration, Policies string }

// hashLength is how much of a hash names it.
const hashLength = 12

// ShortHash returns the beginning of a hash that names it.
func ShortHash(hash string) string { return hash[:min(len(hash), hashLength)] }

// A Routing says which way a request took: by a route, of the configuration or of an object such as an HTTPRoute, to an
// upstream. Rule is the rule of such an object, and Listener the listener of a Gateway; they are empty for a route of
// the configuration.
type Routing struct{ Route, Upstream, Rule, Listener string }

// labels are those of the way in metrics. Rule and Listener are left out if they are empty.
func (w *Routing) labels() []string {
	all := []string{"route", w.Route, "upstream", w.Upstream}
	if w.Rule != "" {
		all = append(all, "rule", w.Rule)
	}
	if w.Listener != "" {
		all = append(all, "listener", w.Listener)
	}
	return all
}

// An Outcome is the answer to a request, and the reason for it.
type Outcome struct {
	// Code is the HTTP status code sent; 0 if the client went away before an answer.
	Code int
	// Reason is the reason of the Status by which the gateway refused the request; empty if the answer
	// is the backend's.
	Reason string
	// Decision says who refused it.
	Decision
	// NotEnforced says who did not.
	NotEnforced
}

// NotEnforced has the decisions of policies that refused nothing: the names of the policies that would
// have refused the request once they are enforced, and of the exceptions by which policies were not
// asked, each in a list with commas.
type NotEnforced struct{ WouldDeny, Exceptions string }

// A Decision names what refused a request: the policy, its binding if it has one, and the first field
// that is wrong.
type Decision struct{ Policy, Binding, Field string }

// Usage says how much a request took.
type Usage struct {
	Started time.Time
	// Took is the time from the request's first byte to the answer's last, Backend the part of it in
	// which a backend was asked.
	Took, Backend time.Duration
	// Received and Sent are the bytes of the bodies of the request and of its answer.
	Received, Sent int64
}

// refusedBy returns what decided over a request that was refused, or got no answer; "" for any other.
func (r *Record) refusedBy(hash string) string {
	if !r.Outcome.IsRefusedOrFailed() {
		return ""
	}
	return hash
}

// IsRefusedOrFailed reports whether the request was refused, or got no answer.
func (o *Outcome) IsRefusedOrFailed() bool { return o.Code >= 400 || o.Code == 0 }
