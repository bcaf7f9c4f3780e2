package plain

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Comparison says whether a backend compares the versions that writes of a resource are pinned to, as far as
// that is known. Many APIs make their ETag in middleware and never look at If-Match.
type Comparison struct {
	etags      finding     // Weak or None, as soon as one object was read that no write can be pinned to
	put, patch finding     // by method: a backend may look at If-Match in one of them alone
	strong     atomic.Bool // an object with a strong ETag was read
	reads      finding     // Varying, or Compared once two reads of one object were the same
	answers    finding     // Compared once an object was read as the answer to the write before had shown it, or NotCompared
	asks       bool
	found      func(method string, f Finding)
}

// A Finding says how a backend treats versions.
type Finding uint32

const (
	unknown Finding = iota
	asking          // a probe is on its way
	// Compared: the backend refuses a write that names another version than the stored one.
	Compared
	// Unclear: it refuses a write with an ETag that is not its own, but not as one of another
	// version. So it reads If-Match, but whether it compares two ETags of its own is unknown. Or no
	// probe was answered in a way that shows anything.
	Unclear
	// NotCompared: it carries such a write out.
	NotCompared
	// Weak: its ETags are weak, and none: it gives none. No write can be pinned then.
	Weak
	None
	// Varying: reads of an object differ without a write between them, so that no ETag can be made of them.
	Varying
)

// String returns the name that operators see.
func (f Finding) String() string {
	return [...]string{"Unknown", "Unknown", "Compared", "Unclear", "NotCompared", "Weak", "None", "Varying"}[f]
}

// maxProbes bounds how many probes of a resource and method may end without a finding.
const maxProbes = 8

// finding is what was found out about one thing.
type finding struct {
	known  atomic.Uint32 // a Finding
	probes atomic.Uint32 // that ended without one
	told   atomic.Uint32 // the Finding that was logged last
	found  atomic.Int64  // when it was known, in seconds since 1970
}

func (f *finding) get() Finding { return Finding(f.known.Load()) }

func (f *finding) set(found Finding) {
	f.found.Store(time.Now().Unix())
	f.known.Store(uint32(found))
}

// at returns when the finding was made.
func (f *finding) at() time.Time { return time.Unix(f.found.Load(), 0).UTC() }

// forget lets the finding be found again. A probe on its way notes what it finds all the same.
func (f *finding) forget() {
	f.probes.Store(0)
	if known := f.known.Load(); known > uint32(asking) {
		f.known.CompareAndSwap(known, uint32(unknown))
	}
}

// of returns what is known of requests of a method.
func (c *Comparison) of(method string) *finding {
	if method == http.MethodPatch {
		return &c.patch
	}
	return &c.put
}

// worst returns the worst of what was found out.
func (c *Comparison) worst() *finding {
	switch {
	case c.isVarying():
		return &c.reads
	case c.etags.get() > asking:
		return &c.etags
	case c.patch.get() > c.put.get():
		return &c.patch
	}
	return &c.put
}

// Known returns the worst of what was found out.
func (c *Comparison) Known() Finding { return c.worst().get() }

// noteETags remembers that no write can be pinned to an object that was read: Weak or None.
func (c *Comparison) noteETags(f Finding) {
	if c == nil || c.etags.get() >= f {
		return
	}
	c.etags.set(f)
	c.tell("", &c.etags, f)
}

// noteStrong remembers that an object with a strong ETag was read.
func (c *Comparison) noteStrong() {
	if c != nil && !c.strong.Load() {
		c.strong.Store(true)
	}
}

// givesStrong reports whether the objects that were read have strong ETags.
func (c *Comparison) givesStrong() bool {
	return c != nil && c.strong.Load() && c.etags.get() <= asking
}

// isVarying reports whether reads of an object are known to differ each time.
func (c *Comparison) isVarying() bool { return c != nil && c.reads.get() == Varying }

// asksVarying reports whether a request may find that out, which one at a time may.
func (c *Comparison) asksVarying() bool {
	return c != nil && c.reads.known.CompareAndSwap(uint32(unknown), uint32(asking))
}

// noteVarying remembers what was found.
func (c *Comparison) noteVarying(found Finding) {
	if c.reads.set(found); found == Varying {
		c.tell("", &c.reads, found)
	}
}

// ask reports whether a write may find out whether the backend compares, which one at a time may.
func (c *Comparison) ask(method string) bool {
	return c != nil && c.asks && c.of(method).known.CompareAndSwap(uint32(unknown), uint32(asking))
}

// note remembers what a probe found. One that found nothing may be repeated, but not without end.
func (c *Comparison) note(method string, found Finding) {
	f := c.of(method)
	if found == unknown && f.probes.Add(1) >= maxProbes {
		found = Unclear
	}
	f.set(found)
	c.tell(method, f, found)
}

// tell logs a finding once.
func (c *Comparison) tell(method string, f *finding, found Finding) {
	if found > asking && Finding(f.told.Swap(uint32(found))) != found && c.found != nil {
		c.found(method, found)
	}
}

// Comparisons have what is known of a backend, by resource. They outlive sets of policies.
type Comparisons struct {
	// Asks says that a write of each resource finds out whether versions are compared.
	Asks bool
	// Found is called when something was found out about a resource: about requests of a method,
	// or, without one, about the ETags of its objects.
	Found func(r schema.GroupResource, method string, f Finding)

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
		one = &Comparison{asks: c.Asks, found: func(method string, f Finding) { c.Found(r, method, f) }}
		c.of[r] = one
	}
	return one
}

// Forget lets everything be found out again: another server may answer from now on.
func (c *Comparisons) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.of {
		for _, f := range [...]*finding{&one.etags, &one.put, &one.patch, &one.reads, &one.answers} {
			f.forget()
		}
		one.strong.Store(false)
	}
}

// Keep forgets the resources that no file describes any more.
func (c *Comparisons) Keep(isDescribed func(schema.GroupResource) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.of, func(r schema.GroupResource, _ *Comparison) bool { return !isDescribed(r) })
}

// A Known has what was found out about a resource, and when.
type Known struct {
	Resource, ETags string
	Since           time.Time
}

// IsVarying reports whether reads of an object differ without a write between them.
func (k Known) IsVarying() bool { return k.ETags == Varying.String() }

// All returns what was found out, by the names of the resources.
func (c *Comparisons) All() []Known {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Known
	for r, one := range c.of {
		if f := one.worst(); f.get() > asking {
			all = append(all, Known{r.String(), f.get().String(), f.at()})
		}
	}
	slices.SortFunc(all, func(a, b Known) int { return strings.Compare(a.Resource, b.Resource) })
	return all
}
