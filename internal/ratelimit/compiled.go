package ratelimit

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/admission-gateway/gateway/internal/resource"
)

// compiled is a rule with what is derived from it.
type compiled struct {
	limit Rule
	pace  pace
	verbs resource.VerbSet
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
	c := &compiled{limit: *r, pace: paceOf(r.Requests, r.Period, r.Burst), verbs: resource.NewVerbSet(r.Verbs...)}
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

// concerns reports whether the rule counts a request.
func (c *compiled) concerns(r *Request) bool {
	i := r.Info
	if !i.IsResource && c.resourcesOnly {
		return false
	}
	if !c.limit.Scope.IsOpen() && (r.Place == nil || !c.limit.Scope.Covers(r.Place)) {
		return false
	}
	if !c.verbs.Has(i.Verb) || !chooses(c.limit.APIGroups, i.Group) || !c.choosesResource(i) || !chooses(c.limit.Namespaces, i.Namespace) {
		return false
	}
	if c.limit.Exemptions.include(r) {
		return false
	}
	for _, condition := range c.limit.Conditions {
		f := r.Frame()
		if ok, err := condition.EvalBool(f, f.Vars()); err == nil && !ok {
			return false
		}
	}
	return true
}

// include reports whether a request is exempt.
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
	if open(c.limit.Resources) {
		return true
	}
	for _, name := range c.limit.Resources {
		main, sub, _ := strings.Cut(name, "/")
		if main == i.Resource && sub == i.Subresource {
			return true
		}
	}
	return false
}

// quoted is a string of a structured field (RFC 9651), which has visible ASCII characters alone.
func quoted(name string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range name {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r > '~':
			b.WriteByte('?')
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
