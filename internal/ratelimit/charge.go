package ratelimit

import (
	"net/netip"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/ratelimit/shared"
	"github.com/admission-gateway/gateway/internal/resource"
)

// Request is what rules can know of a request.
type Request struct {
	Info          *resource.Info
	ClientAddress netip.Addr
	// Username and Groups are who asks; nobody in particular is "system:anonymous".
	Username string
	Groups   []string
	Headers  cel.Headers
	// Frame returns what CEL is evaluated in, with the request bound; it is called only if a rule needs it.
	Frame func() *cel.Frame
}

// anonymous is the name of those who did not say who they are, as in Kubernetes.
const anonymous = "system:anonymous"

// Charges are what the rules that concern one request make of it: what it would take from which buckets. A store
// decides about all of them at once. The zero value is empty; a Charges is used by one goroutine, and again.
type Charges struct {
	list   []Charge
	keys   []byte
	flying bool // one of the rules bounds requests in flight

	sharing bool // one of the rules is shared
	demands []shared.Demand
}

// Charge is what one rule makes of one request.
type Charge struct {
	Rule *Rule
	// Key is what the rule counts the request by, the same in every process; it is valid until Reset.
	Key []byte
	// Cost is how many requests it counts as: at least 1, and at most as many as can ever pass at once.
	Cost int64

	// What the store that decided found, in nanoseconds. Wait is how long the request has to wait until it fits, 0 if it
	// fits now. Debt is how far the theoretical arrival time of the bucket is ahead of now, after the decision.
	Wait, Debt int64
	// Crowded tells whether as many requests were served already as the rule allows, of the same key or, where CrowdedInAll
	// is set, of all keys.
	Crowded, CrowdedInAll bool

	rule  *compiled
	at    bucket
	where found
	after int64 // the arrival time if it is taken
	// elsewhere: it is not decided here now. unknown: it is not decided at all.
	elsewhere, unknown bool

	flight *flight // under which it is served, or waits; nil where neither
	lane   *lane
}

// Paced tells whether the rule counts requests over time; one that only bounds those in flight does not.
func (c *Charge) Paced() bool { return c.Rule.Requests > 0 }

// here tells whether the buckets of this process decide.
func (c *Charge) here() bool { return c.Paced() && !c.elsewhere }

// Exceeds tells whether the charge does not fit into a limit that only warns.
func (c *Charge) Exceeds() bool { return (c.Wait > 0 || c.Crowded) && c.Rule.Mode == Warn }

// Reset forgets the charges and keeps their memory.
func (c *Charges) Reset() {
	clear(c.list)
	c.list, c.keys, c.flying = c.list[:0], c.keys[:0], false
	c.demands, c.sharing = c.demands[:0], false
	if cap(c.keys) > maxKeptKeys {
		c.keys = nil
	}
}

// maxKeptKeys is how much memory for keys is kept for the next request, in bytes.
const maxKeptKeys = 4 << 10

// All are the charges. What is in them is valid until Reset.
func (c *Charges) All() []Charge { return c.list }

// Flying tells whether one of the rules bounds requests in flight.
func (c *Charges) Flying() bool { return c.flying }

// Charge adds what the rules make of a request.
func (r *Rules) Charge(c *Charges, q *Request) {
	for _, list := range r.candidates(q.Info) {
		for _, rule := range list {
			if rule.concerns(q) {
				c.add(rule, q)
			}
		}
	}
}

func (c *Charges) add(rule *compiled, q *Request) {
	from := len(c.keys)
	c.flying = c.flying || rule.InFlight.bounds()
	c.sharing = c.sharing || rule.Sharing != nil
	c.keys = rule.appendKey(c.keys, q)
	c.list = append(c.list, Charge{Rule: &rule.Rule, Key: c.keys[from:len(c.keys):len(c.keys)], Cost: rule.cost(q), rule: rule, elsewhere: rule.Sharing != nil})
}

// cost is how many requests a request counts as. What an author's expression cannot tell, or says is beyond what can ever
// pass, counts as the most that can: as the seats of a request are cut to those there are in Kubernetes. Less than one
// request is none that a client could send for free.
func (c *compiled) cost(q *Request) int64 {
	if c.Cost == nil {
		return 1
	}
	f := q.Frame()
	cost, err := c.Cost.EvalInt(f, f.Vars())
	if err != nil {
		return c.pace.most
	}
	return min(max(cost, 1), c.pace.most)
}

// appendKey appends what the rule counts a request by.
func (c *compiled) appendKey(key []byte, q *Request) []byte {
	switch c.Key {
	case User:
		if q.Username == anonymous {
			// They are many: one of them must not use up what all others may.
			return appendAddress(append(key, "anonymous "...), q.ClientAddress)
		}
		return append(append(key, "user "...), q.Username...)
	case ClientAddress:
		return appendAddress(key, q.ClientAddress)
	case Header:
		value, _ := q.Headers.Get(c.HeaderName)
		return append(key, value...)
	case Namespace:
		return append(key, q.Info.Namespace...)
	case Resource:
		return append(append(append(key, q.Info.Group...), '/'), q.Info.Resource...)
	case Expression:
		f := q.Frame()
		if value, err := c.KeyProgram.EvalString(f, f.Vars()); err == nil {
			return append(key, value...)
		}
	}
	return key
}

// appendAddress appends an address: whoever has an IPv6 address has a /64 of them.
func appendAddress(key []byte, a netip.Addr) []byte {
	a = a.Unmap()
	switch {
	case a.Is4():
		b := a.As4()
		return append(key, b[:]...)
	case a.Is6():
		b := a.As16()
		return append(key, b[:8]...)
	}
	return key
}
