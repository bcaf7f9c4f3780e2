package ratelimit

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
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

// Rule is one limit. It must not change once it is in [Rules].
type Rule struct {
	// Name is the policy's; it is in the message.
	Name string
	// Verbs, APIGroups, Resources and Namespaces choose requests; an empty list or "*" chooses all. A resource is
	// "orders", or "orders/status" for a subresource.
	Verbs, APIGroups, Resources, Namespaces []string
	// Conditions must all be true. One that cannot be evaluated counts as true: a limit fails closed.
	Conditions []*cel.Program

	Key Key
	// HeaderName is the header of the key Header, KeyProgram the expression of the key Expression; where that cannot
	// be evaluated the request is counted with all others of which it cannot.
	HeaderName string
	KeyProgram *cel.Program

	// Requests may come in each Period, Burst of them at once.
	Requests int
	Period   time.Duration
	Burst    int
}

// Request is what rules can know of a request.
type Request struct {
	Info          *resource.Info
	ClientAddress netip.Addr
	Headers       cel.Headers
	// Frame returns what CEL is evaluated in, with the request bound; it is called only if a rule needs it.
	Frame func() *cel.Frame
}

// compiled is a rule with what is derived from it.
type compiled struct {
	Rule
	pace pace
	// id tells apart the buckets of different rules, and of a rule before and after its terms were changed.
	id uint64
}

func compile(r *Rule) *compiled {
	c := &compiled{Rule: *r, pace: paceOf(r.Requests, r.Period, r.Burst)}
	h := fnv.New64a()
	expression := ""
	if r.KeyProgram != nil {
		expression = r.KeyProgram.Source()
	}
	_, _ = fmt.Fprintf(h, "%q %q %q %q %d %d %d", r.Name, r.Key, r.HeaderName, expression, r.Requests, r.Period, r.Burst)
	c.id = h.Sum64()
	return c
}

// concerns tells whether the rule counts a request.
func (c *compiled) concerns(r *Request) bool {
	i := r.Info
	if !chooses(c.Verbs, i.Verb) || !chooses(c.APIGroups, i.Group) || !c.choosesResource(i) || !chooses(c.Namespaces, i.Namespace) {
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

func chooses(list []string, value string) bool {
	return len(list) == 0 || slices.Contains(list, value) || slices.Contains(list, "*")
}

func (c *compiled) choosesResource(i *resource.Info) bool {
	if len(c.Resources) == 0 {
		return true
	}
	for _, name := range c.Resources {
		switch {
		case name == "*":
			return true
		case i.Subresource == "" && name == i.Resource:
			return true
		case i.Subresource != "" && len(name) == len(i.Resource)+1+len(i.Subresource) &&
			name[:len(i.Resource)] == i.Resource && name[len(i.Resource)] == '/' && name[len(i.Resource)+1:] == i.Subresource:
			return true
		}
	}
	return false
}

// Rules are the limits of one policy set, found by resource. They are immutable and safe for concurrent use.
type Rules struct {
	// byResource has the rules that name their groups and resources, others the rest.
	byResource map[target][]*compiled
	others     []*compiled
}

type target struct{ group, resource string }

// NewRules compiles limits.
func NewRules(rules []*Rule) *Rules {
	all := &Rules{byResource: map[target][]*compiled{}}
	for _, r := range rules {
		c := compile(r)
		if open(r.APIGroups) || open(r.Resources) {
			all.others = append(all.others, c)
			continue
		}
		for _, group := range r.APIGroups {
			for _, name := range r.Resources {
				t := target{group, mainResource(name)}
				if !slices.Contains(all.byResource[t], c) {
					all.byResource[t] = append(all.byResource[t], c)
				}
			}
		}
	}
	return all
}

// Len is the number of rules that could concern the resource.
func (r *Rules) Len(i *resource.Info) int {
	return len(r.others) + len(r.byResource[target{i.Group, i.Resource}])
}

func open(list []string) bool { return len(list) == 0 || slices.Contains(list, "*") }

func mainResource(name string) string {
	for i := range name {
		if name[i] == '/' {
			return name[:i]
		}
	}
	return name
}
