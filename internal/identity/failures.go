package identity

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/admission-gateway/gateway/internal/status"
)

// failures limits how many invalid tokens a server is asked about for a client address, so that who makes them up
// cannot make the gateway flood it. What is remembered already costs nothing and does not count.
type failures struct {
	interval, tolerance int64 // in nanoseconds: what a failure takes, and how much may be taken at once
	start               time.Time

	mu sync.Mutex
	// taken has by address the time, in nanoseconds since start, up to which its allowance is taken.
	taken *simplelru.LRU[netip.Prefix, int64]
	// overflow is the latest such time of the addresses that were forgotten. All that are not known share it: a client
	// with many addresses does not get a new allowance by having itself forgotten.
	overflow int64
	now      int64 // of the call that holds the lock
}

// maxAddresses is how many addresses are counted separately.
const maxAddresses = 1 << 14

func newFailures(perMinute, burst int) *failures {
	interval := int64(time.Minute) / int64(max(perMinute, 1))
	f := &failures{interval: interval, tolerance: interval * int64(max(burst, 1)-1), start: time.Now()}
	f.taken, _ = simplelru.NewLRU(maxAddresses, func(_ netip.Prefix, until int64) {
		if until > f.now {
			f.overflow = max(f.overflow, until)
		}
	})
	return f
}

// blockOf returns the addresses that count as one client: an IPv4 address, or a /64 of IPv6, which one client has all
// of.
func blockOf(a netip.Addr) netip.Prefix {
	bits := a.BitLen()
	if a.Is6() && !a.Is4In6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // fails only for the zero Addr, which stands for itself
	return p
}

// allow returns an error if the address has to wait.
func (f *failures) allow(a netip.Addr, now time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	wait := f.until(blockOf(a)) - f.tolerance - int64(now.Sub(f.start))
	if wait <= 0 {
		return nil
	}
	seconds, unit := int((wait+int64(time.Second)-1)/int64(time.Second)), "seconds"
	if seconds == 1 {
		unit = "second"
	}
	return status.TooManyRequests(fmt.Sprintf("the client's address sent too many bearer tokens that are not valid: try again after %d %s", seconds, unit), seconds)
}

// add counts a token that was not valid.
func (f *failures) add(a netip.Addr, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = int64(now.Sub(f.start))
	block := blockOf(a)
	until := max(f.until(block), f.now) + f.interval
	if !f.taken.Contains(block) && f.overflow > f.now {
		f.overflow = max(f.overflow, until)
	}
	f.taken.Add(block, until)
}

func (f *failures) until(block netip.Prefix) int64 {
	if t, found := f.taken.Get(block); found {
		return t
	}
	return f.overflow
}
