package ratelimit

import (
	"bytes"
	"net/netip"

	"github.com/admission-gateway/gateway/internal/index"
	"github.com/admission-gateway/gateway/internal/ratelimit/shared"
	"github.com/admission-gateway/gateway/internal/rollout"
)

// Charges are the claims of all rules on one request: what it would take from which buckets. A
// store decides about all of them at once. The zero value is empty; a Charges is used by one
// goroutine, and again.
type Charges struct {
	list           []Charge
	keys           []byte
	boundsInFlight bool // one of the rules bounds requests in flight

	repeated Repeated

	sharing bool // one of the rules is shared
	demands []shared.Demand
	failure error // of the store that gateways share
}

// Repeated is a header that a request has more than once, and the rule that reads it: it is not
// known which line the backend takes for its value, so a client could choose its key.
type Repeated struct{ Header, Rule string }

// Repeated returns such a header of the request; the zero value if there is none. Rules that only
// warn refuse nothing.
func (c *Charges) Repeated() Repeated { return c.repeated }

// Charge is the claim of one rule on one request.
type Charge struct {
	Rule *Rule
	// Key is the key by which the rule counts the request, the same in every process; it is valid until Reset.
	Key []byte
	// Cost is how many requests it counts as: at least 1, and at most as many as can ever pass at once.
	Cost int64

	// Tried is set if the rule's rollout does not enforce it for the request: it only warns.
	Tried bool

	// What the store that decided found, in nanoseconds. Wait is how long the request has to wait until it fits, 0 if
	// it fits now. Debt is how far the theoretical arrival time of the bucket is ahead of now, after the decision.
	Wait, Debt int64
	// Slot says whether the request has its place in flight, and who took it if not.
	Slot SlotState

	rule      *compiled
	at        bucket
	where     bucketSlot
	after     int64 // the arrival time if it is taken
	by        decider
	ruleSlots *ruleSlots // under which it is served, or waits; nil if neither
	keySlots  *keySlots
}

// A SlotState says whether a request has a slot in flight, or who takes all that a rule allows.
type SlotState uint8

const (
	// SlotFree means that there is a slot for the request.
	SlotFree SlotState = iota
	// KeySlotsTaken means that all are taken by requests of the same key.
	KeySlotsTaken
	// AllSlotsTaken means that all are taken by requests of all keys together.
	AllSlotsTaken
)

// decider says who decides about a charge.
type decider uint8

const (
	byProcess decider = iota // the buckets of this process
	byStore                  // the store that gateways share
	decided                  // it is decided already
	byNobody                 // the store cannot be asked
)

// Paced reports whether the rule counts requests over time; one that only bounds those in flight does not.
func (c *Charge) Paced() bool { return c.Rule.Requests > 0 }

// here reports whether the buckets of this process decide.
func (c *Charge) here() bool { return c.Paced() && c.by == byProcess }

// releaseSlot takes its slot, or its place in a queue, from the charge.
func (c *Charge) releaseSlot() (r *ruleSlots, k *keySlots) {
	r, k = c.ruleSlots, c.keySlots
	c.ruleSlots, c.keySlots = nil, nil
	return r, k
}

// Exceeds reports whether the charge does not fit into a limit that only warns.
func (c *Charge) Exceeds() bool { return (c.Wait > 0 || c.Slot != SlotFree) && c.warns() }

// warns reports whether the rule refuses nothing.
func (c *Charge) warns() bool { return c.Tried || c.Rule.Mode == Warn }

// Reset forgets the charges and keeps their memory.
func (c *Charges) Reset() {
	clear(c.list)
	c.list, c.keys, c.boundsInFlight = c.list[:0], c.keys[:0], false
	c.demands, c.sharing, c.failure, c.repeated = c.demands[:0], false, nil, Repeated{}
	if cap(c.keys) > maxKeptKeys {
		c.keys = nil
	}
}

// maxKeptKeys is how much memory for keys is kept for the next request, in bytes.
const maxKeptKeys = 4 << 10

// Differing returns the name of a rule that other charges of the same rules have with another key or cost, or that only
// one of them has; "" if there is none.
func (c *Charges) Differing(other *Charges) string {
	for i := range max(len(c.list), len(other.list)) {
		switch {
		case i >= len(other.list):
			return c.list[i].Rule.Name
		case i >= len(c.list):
			return other.list[i].Rule.Name
		}
		if a, b := &c.list[i], &other.list[i]; a.rule != b.rule || a.Cost != b.Cost || !bytes.Equal(a.Key, b.Key) {
			return a.Rule.Name
		}
	}
	return ""
}

// All are the charges. What is in them is valid until Reset.
func (c *Charges) All() []Charge { return c.list }

// WereSent reports whether the store that gateways share was asked about the charges. The error is why it gave no
// answer.
func (c *Charges) WereSent() (bool, error) {
	for i := range c.demands {
		if c.demands[i].WasSent() {
			return true, c.failure
		}
	}
	return false, nil
}

// BoundsInFlight reports whether one of the rules bounds requests in flight.
func (c *Charges) BoundsInFlight() bool { return c.boundsInFlight }

// Charge adds the charges of a request by the rules.
func (r *Rules) Charge(c *Charges, q *Request) {
	var to listBuffer
	r.charge(c, search(r.find(to[:0], q.Info, q.Route), q.Info), q)
}

// charge adds the charges of a request by some of the rules.
func (r *Rules) charge(c *Charges, found index.Search, q *Request) {
	for p := found.Next(); p >= 0; p = found.Next() {
		rule := r.list[p]
		if rule.matchAll(q) == counted {
			c.add(rule, q)
		}
		if q.Repeated == nil {
			continue
		}
		if name := q.Repeated(); name != "" && rule.limit.Mode != Warn && !rule.isTried(q, rule.appendKey(nil, q)) {
			c.repeated = Repeated{name, rule.limit.Name}
		}
	}
}

func (c *Charges) add(rule *compiled, q *Request) {
	from := len(c.keys)
	c.boundsInFlight = c.boundsInFlight || rule.limit.InFlight.bounds()
	c.sharing = c.sharing || rule.limit.Sharing != nil
	c.keys = rule.appendKey(c.keys, q)
	by := byProcess
	if rule.limit.Sharing != nil {
		by = byStore
	}
	key := c.keys[from:len(c.keys):len(c.keys)]
	c.list = append(c.list, Charge{Rule: &rule.limit, Key: key, Cost: rule.cost(q), Tried: rule.isTried(q, key),
		rule: rule, by: by})
}

// isTried reports whether the rule's rollout does not enforce it for a request. Requests of one key are
// treated alike.
func (c *compiled) isTried(q *Request, key []byte) bool {
	plan := c.limit.Rollout
	if plan == nil {
		return false
	}
	return !plan.Enforces(&rollout.Request{At: q.At, Namespace: q.Info.Namespace, Subject: []string{string(key)}})
}

// cost is how many requests a request counts as. If an author's expression fails, or says more than
// can ever pass, the request counts as the most that can: as the seats of a request are cut to
// those there are in Kubernetes. A request never counts as less than one, so that none is free.
func (c *compiled) cost(q *Request) int64 {
	if c.limit.Cost == nil {
		return 1
	}
	f := q.Frame()
	cost, err := c.limit.Cost.EvalInt(f, f.Vars())
	if err != nil {
		return c.pace.most
	}
	return min(max(cost, 1), c.pace.most)
}

// appendKey appends what the rule counts a request by.
func (c *compiled) appendKey(key []byte, q *Request) []byte {
	switch c.limit.Key {
	case User:
		if q.Username == anonymous {
			// They are many: one of them must not use up what all others may.
			return appendAddress(append(key, "anonymous "...), q.ClientAddress)
		}
		return append(append(key, "user "...), q.Username...)
	case ClientAddress:
		return appendAddress(key, q.ClientAddress)
	case Header:
		value, _ := q.Headers.Get(c.limit.HeaderName)
		return append(key, value...)
	case Namespace:
		return append(key, q.Info.Namespace...)
	case Resource:
		return append(append(append(key, q.Info.Group...), '/'), q.Info.Resource...)
	case Expression:
		f := q.Frame()
		if value, err := c.limit.KeyProgram.EvalString(f, f.Vars()); err == nil {
			return append(key, value...)
		}
	}
	return key
}

// appendAddress appends an address: a client with one IPv6 address has a /64 of them.
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
