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
	// id distinguishes the buckets of different rules, and of a rule before and after its terms
	// were changed.
	id uint64
	// slotsID does so for the requests in flight, whose number outlives a change of the bound.
	slotsID uint64
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
	c.slotsID = h.Sum64()
	_, _ = fmt.Fprintf(h, " %d %d %d", r.Requests, r.Period, r.Burst)
	c.id = h.Sum64()
	c.quoted = quoted(r.Name)
	c.policy = fmt.Sprintf("%s;q=%d;w=%d", c.quoted, r.Requests, r.Period/time.Second)
	return c
}

func open(list []string) bool { return len(list) == 0 || slices.Contains(list, "*") }

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
