package ratelimit

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/resource"
)

// Key is what requests are counted by.
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

// Mode is what becomes of requests beyond a limit.
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
	// Verbs, APIGroups, Resources and Namespaces choose requests; an empty list or "*" chooses all. A resource is
	// "orders", or "orders/status" for a subresource.
	Verbs, APIGroups, Resources, Namespaces []string
	// Conditions must all be true. One that cannot be evaluated counts as true: a limit fails closed.
	Conditions []*cel.Program
	Exemptions Exemptions

	Key Key
	// HeaderName is the header of the key Header, KeyProgram the expression of the key Expression; where that cannot
	// be evaluated the request is counted with all others of which it cannot.
	HeaderName string
	KeyProgram *cel.Program

	// Mode is Enforce where it is empty.
	Mode Mode
	// Requests may come in each Period, Burst of them at once; 0 requests is no such limit.
	Requests int
	Period   time.Duration
	Burst    int
	// Cost, if there is one, says how many requests a request counts as.
	Cost *cel.Program
	// InFlight bounds the requests that are served at the same time.
	InFlight InFlight
	// Sharing says how the requests of all gateways are counted together; nil counts those of this process.
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

// bounds tells whether there is a bound.
func (f *InFlight) bounds() bool { return f.PerKey > 0 || f.Total > 0 }

// compiled is a rule with what is derived from it.
type compiled struct {
	Rule
	pace pace
	// id tells apart the buckets of different rules, and of a rule before and after its terms were changed.
	id uint64
	// flightID does so for the requests in flight, whose number outlives a change of the bound.
	flightID uint64
	// resourcesOnly: a rule that names groups, resources or namespaces is not about paths that are no resource.
	resourcesOnly bool
	// policy and quoted are the rule in the headers RateLimit-Policy and RateLimit.
	policy, quoted string
}

func compile(r *Rule) *compiled {
	c := &compiled{Rule: *r, pace: paceOf(r.Requests, r.Period, r.Burst)}
	c.resourcesOnly = !open(r.APIGroups) || !open(r.Resources) || !open(r.Namespaces)
	h := fnv.New64a()
	expression := ""
	if r.KeyProgram != nil {
		expression = r.KeyProgram.Source()
	}
	_, _ = fmt.Fprintf(h, "%q %q %q %q", r.Name, r.Key, r.HeaderName, expression)
	c.flightID = h.Sum64()
	_, _ = fmt.Fprintf(h, " %d %d %d", r.Requests, r.Period, r.Burst)
	c.id = h.Sum64()
	c.quoted = quoted(r.Name)
	c.policy = fmt.Sprintf("%s;q=%d;w=%d", c.quoted, r.Requests, r.Period/time.Second)
	return c
}

// concerns tells whether the rule counts a request.
func (c *compiled) concerns(r *Request) bool {
	i := r.Info
	if !i.IsResource && c.resourcesOnly {
		return false
	}
	if !chooses(c.Verbs, i.Verb) || !chooses(c.APIGroups, i.Group) || !c.choosesResource(i) || !chooses(c.Namespaces, i.Namespace) {
		return false
	}
	if c.Exemptions.include(r) {
		return false
	}
	for _, condition := range c.Conditions {
		f := r.Frame()
		if holds, err := condition.EvalBool(f, f.Vars()); err == nil && !holds {
			return false
		}
	}
	return true
}

// include tells whether a request is exempt.
func (e *Exemptions) include(r *Request) bool {
	for _, p := range e.Addresses {
		if p.Contains(r.ClientAddress.Unmap()) {
			return true
		}
	}
	if r.Info.Namespace != "" && slices.Contains(e.Namespaces, r.Info.Namespace) || slices.Contains(e.Usernames, r.Username) {
		return true
	}
	return len(e.Groups) > 0 && slices.ContainsFunc(r.Groups, func(g string) bool { return slices.Contains(e.Groups, g) })
}

func open(list []string) bool { return len(list) == 0 || slices.Contains(list, "*") }

func chooses(list []string, value string) bool { return slices.Contains(list, value) || open(list) }

func (c *compiled) choosesResource(i *resource.Info) bool {
	if open(c.Resources) {
		return true
	}
	for _, name := range c.Resources {
		main, sub, _ := strings.Cut(name, "/")
		if main == i.Resource && sub == i.Subresource {
			return true
		}
	}
	return false
}

// Rules are the limits of one policy set, found by what they name. They are immutable and safe for concurrent use.
type Rules struct {
	// byResource has the rules that name resources, byGroup those of the others that name groups, and others the rest, so
	// that a request is held only against rules that may concern it.
	byResource, byGroup map[string][]*compiled
	others              []*compiled
}

// NewRules compiles limits.
func NewRules(rules []*Rule) *Rules {
	all := &Rules{byResource: map[string][]*compiled{}, byGroup: map[string][]*compiled{}}
	for _, r := range rules {
		c := compile(r)
		switch {
		case !open(r.Resources):
			for _, name := range r.Resources {
				main, _, _ := strings.Cut(name, "/")
				all.byResource[main] = add(all.byResource[main], c)
			}
		case !open(r.APIGroups):
			for _, group := range r.APIGroups {
				all.byGroup[group] = add(all.byGroup[group], c)
			}
		default:
			all.others = append(all.others, c)
		}
	}
	return all
}

func add(list []*compiled, c *compiled) []*compiled {
	if slices.Contains(list, c) {
		return list
	}
	return append(list, c)
}

// candidates are the rules that could concern a request.
func (r *Rules) candidates(i *resource.Info) (lists [3][]*compiled) {
	lists[0] = r.others
	if len(r.byResource) > 0 {
		lists[1] = r.byResource[i.Resource]
	}
	if len(r.byGroup) > 0 {
		lists[2] = r.byGroup[i.Group]
	}
	return lists
}

// Len is the number of rules that could concern a request.
func (r *Rules) Len(i *resource.Info) int {
	n := 0
	for _, list := range r.candidates(i) {
		n += len(list)
	}
	return n
}
