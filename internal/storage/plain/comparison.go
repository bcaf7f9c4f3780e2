package plain

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Comparison says whether a backend compares the versions that writes of a resource are pinned to, as far as
// that is known. Many APIs make their ETag in middleware and never look at If-Match.
type Comparison struct {
	known atomic.Uint32 // a Finding
	asks  bool
	found func(Finding)
}

// A Finding says how a backend treats versions.
type Finding uint32

const (
	unknown Finding = iota
	asking          // a write is on its way whose answer tells
	// Compared: the backend refuses a write that names another version than the stored one.
	Compared
	// NotCompared: it carries such a write out.
	NotCompared
	// Weak: its ETags are weak, and none: it gives none. No write can be pinned then.
	Weak
	None
)

// String returns the name that operators see.
func (f Finding) String() string {
	return [...]string{"Unknown", "Unknown", "Compared", "NotCompared", "Weak", "None"}[f]
}

// Known returns what was found out.
func (c *Comparison) Known() Finding { return Finding(c.known.Load()) }

// note remembers what was found out, and tells it once.
func (c *Comparison) note(f Finding) {
	if c == nil || Finding(c.known.Load()) == f {
		return
	}
	if Finding(c.known.Swap(uint32(f))) != f && f > asking && c.found != nil {
		c.found(f)
	}
}

// ask reports whether a write may find it out, which one at a time may.
func (c *Comparison) ask() bool {
	return c != nil && c.asks && c.known.Load() == uint32(unknown) && c.known.CompareAndSwap(uint32(unknown), uint32(asking))
}

// otherVersion returns an ETag that looks like another one, for backends that read their own as a number: it
// differs in its last character.
func otherVersion(etag []byte) []byte {
	other := slices.Clone(etag)
	for i := len(other) - 1; i >= 0; i-- {
		switch c := other[i]; {
		case c == '9' || c == 'f' || c == 'F' || c == 'z' || c == 'Z':
			other[i]--
			return other
		case c >= '0' && c < '9' || c >= 'a' && c < 'z' || c >= 'A' && c < 'Z':
			other[i]++
			return other
		}
	}
	return []byte(`"0"`)
}

// Comparisons have what is known of a backend, by resource. They outlive sets of policies.
type Comparisons struct {
	// Asks says that the first write of a resource finds out whether versions are compared.
	Asks bool
	// Found is called when something was found out about a resource.
	Found func(r schema.GroupResource, f Finding)

	mu sync.Mutex
	of map[schema.GroupResource]*Comparison
}

// Of returns what is known of a resource.
func (c *Comparisons) Of(r schema.GroupResource) *Comparison {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[schema.GroupResource]*Comparison{}
	}
	one := c.of[r]
	if one == nil {
		one = &Comparison{asks: c.Asks, found: func(f Finding) { c.Found(r, f) }}
		c.of[r] = one
	}
	return one
}

// A Known has what was found out about a resource.
type Known struct{ Resource, ETags string }

// All returns what was found out, by the names of the resources.
func (c *Comparisons) All() []Known {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Known
	for r, one := range c.of {
		if f := one.Known(); f > asking {
			all = append(all, Known{r.String(), f.String()})
		}
	}
	slices.SortFunc(all, func(a, b Known) int { return strings.Compare(a.Resource, b.Resource) })
	return all
}
