package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// A Request has what a plan looks at.
type Request struct {
	// At is when it arrived.
	At time.Time
	// Namespace is the one that it is about; empty for none.
	Namespace string
	// Selects reports whether a selector selects the namespace, and true if that cannot be found
	// out; nil if no selector does. It is called only if labels decide.
	Selects func(labels.Selector) bool
	// Subject always has the same verdict: an object by all of its names, or a client.
	Subject []string
}

// Enforces reports whether the policy is enforced for the request. The answer is the same in all
// gateways with the same policies whose clocks agree.
func (p *Plan) Enforces(r *Request) bool {
	if !p.until.IsZero() && r.At.Before(p.until) {
		return false
	}
	if p.percent < 100 && p.bucketOf(r.Subject) >= p.percent {
		return false
	}
	return !p.isLocal || p.isIn(r)
}

// SelectsNamespaces reports whether labels of namespaces may decide.
func (p *Plan) SelectsNamespaces() bool { return p.isLocal && p.selector != nil }

func (p *Plan) isIn(r *Request) bool {
	if r.Namespace == "" {
		return false
	}
	return slices.Contains(p.namespaces, r.Namespace) ||
		p.selector != nil && r.Selects != nil && r.Selects(p.selector)
}

// bucketOf returns in which of a hundred buckets a subject is. A policy with a greater share enforces
// for all subjects for which it did with a smaller one.
func (p *Plan) bucketOf(subject []string) uint64 {
	// FNV-1a, whose low bits Murmur's last step mixes.
	const offset, prime = 14695981039346656037, 1099511628211
	hash := uint64(offset)
	add := func(text string) {
		for i := range len(text) {
			hash = (hash ^ uint64(text[i])) * prime
		}
		hash = (hash ^ 0xff) * prime // no UTF-8 has this byte: it ends each text
	}
	add(p.policy)
	for _, text := range subject {
		add(text)
	}
	hash = (hash ^ hash>>33) * 0xff51afd7ed558ccd
	hash = (hash ^ hash>>33) * 0xc4ceb9fe1a85ec53
	return (hash ^ hash>>33) % 100
}

// IsByLabels reports whether labels of namespaces decide.
func (p *Plan) IsByLabels() bool { return p.selector != nil }

// Policy is the kind and the name of the policy.
func (p *Plan) Policy() string { return p.policy }

// Until is the time before which nothing is enforced; zero for none.
func (p *Plan) Until() time.Time { return p.until }

// In says in words how far the policy is in force at a time: "from 2027-01-31T09:00:00Z on, for 10 %
// of objects, in the namespace 'team-a'". It is empty if the plan does not hold it back any more.
func (p *Plan) In(at time.Time) string {
	var words []string
	if at.Before(p.until) {
		words = append(words, "from "+p.until.Format(time.RFC3339)+" on")
	}
	if p.percent < 100 {
		words = append(words, fmt.Sprintf("for %d %%", p.percent))
	}
	if p.isLocal {
		words = append(words, p.place())
	}
	return strings.Join(words, ", ")
}

func (p *Plan) place() string {
	var places []string
	switch {
	case len(p.namespaces) == 1:
		places = append(places, "in the namespace '"+p.namespaces[0]+"'")
	case len(p.namespaces) > 1:
		places = append(places, "in the namespaces '"+strings.Join(p.namespaces, "', '")+"'")
	}
	if p.selector != nil {
		places = append(places, fmt.Sprintf("in namespaces with the labels %q", p.selector.String()))
	}
	if len(places) == 0 {
		return "in no namespace"
	}
	return strings.Join(places, " and ")
}
