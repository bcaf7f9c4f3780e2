package ratelimit

import (
	"net/netip"
	"time"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/rollout"
)

// Key says by which property requests are counted.
type Key string

// The keys.
const (
	// Global counts all requests together.
	Global Key = "Global"
	// User counts by the name of the user; those who did not say who they are by ClientAddress.
	User Key = "User"
	// ClientAddress counts by the client's IP address, IPv6 by /64.
	ClientAddress Key = "ClientAddress"
	// Header counts by the value of a header; requests without it are counted together.
	Header Key = "Header"
	// Namespace counts by the namespace of the request.
	Namespace Key = "Namespace"
	// Resource counts by group and resource.
	Resource Key = "Resource"
	// Expression counts by the value of a CEL expression.
	Expression Key = "Expression"
)

// Mode says how requests beyond a limit are treated.
type Mode string

// The modes.
const (
	// Enforce refuses them.
	Enforce Mode = "Enforce"
	// Warn lets them pass with a warning, and counts what would have been refused.
	Warn Mode = "Warn"
)

// Rule is one limit. It must not change once it is in [Rules].
type Rule struct {
	// Name is the policy's; it is in messages and headers.
	Name string
	// Scope says for which routes the rule counts requests.
	Scope resource.Scope
	// Verbs, APIGroups, Resources and Namespaces choose requests; an empty list or "*" chooses all. A resource is
	// "orders", or "orders/status" for a subresource.
	Verbs, APIGroups, Resources, Namespaces []string
	// Conditions must all be true. One that cannot be evaluated counts as true: a limit fails closed.
	Conditions []*cel.Program
	Exemptions Exemptions

	Key Key
	// HeaderName is the header of the key Header, KeyProgram the expression of the key Expression;
	// if that cannot be evaluated the request is counted with all others for which it cannot.
	HeaderName string
	KeyProgram *cel.Program

	// Mode is Enforce if it is empty.
	Mode Mode
	// Rollout says how far the rule is enforced; beyond that it only warns. nil: everywhere.
	Rollout *rollout.Plan
	// Requests may come in each Period, Burst of them at once; 0 requests is no such limit.
	Requests int
	Period   time.Duration
	Burst    int
	// Cost, if there is one, says how many requests a request counts as.
	Cost *cel.Program
	// InFlight bounds the requests that are served at the same time.
	InFlight InFlight
	// Sharing says how the requests of all gateways are counted together; nil counts the requests of this process.
	Sharing *Sharing
	// Quiet leaves the limit out of the RateLimit headers.
	Quiet bool
}

// Exemptions are requests that a rule is not about, any of them.
type Exemptions struct {
	Usernames, Groups, Namespaces []string
	Addresses                     []netip.Prefix // of clients
}

// InFlight bounds the requests of a rule that are served at the same time; 0 is no bound.
type InFlight struct {
	// PerKey and Total are how many may be served: for each key, and for all keys together.
	PerKey, Total int
	// QueueLength is how many requests of each key may wait for their turn, each at most QueueTimeout.
	QueueLength  int
	QueueTimeout time.Duration
}

// bounds reports whether there is a bound.
func (f *InFlight) bounds() bool { return f.PerKey > 0 || f.Total > 0 }

// Sharing says how a rule counts the requests of all gateways together.
type Sharing struct {
	// WhenUnavailable says how requests are treated while that is not possible.
	WhenUnavailable Fallback
	// Lease is how many requests a gateway may take at a time, at most Burst; 0 asks for each.
	Lease int
}

// Fallback says how requests are treated whose shared limit cannot be counted.
type Fallback string

// The fallbacks.
const (
	// LocalLimit applies the limit in each gateway separately.
	LocalLimit Fallback = "LocalLimit"
	// Allow lets them pass.
	Allow Fallback = "Allow"
	// Deny refuses them.
	Deny Fallback = "Deny"
)
