package h2

import "time"

// A FloodGuard bounds frames by which a peer has work done that leads to nothing: settings, pings,
// priorities, empty data, windows, streams that it resets. Work that leads to something earns credit
// for them, and so does time. It belongs to one goroutine.
type FloodGuard struct {
	credit, most int
	perSecond    int
	last         time.Time
}

// NewFloodGuard returns a guard with so much credit, which is also the most that a peer has at a time. Each
// second it gets back so much.
func NewFloodGuard(credit, perSecond int, now time.Time) FloodGuard {
	return FloodGuard{credit: credit, most: credit, perSecond: perSecond, last: now}
}

// Spend takes n of the credit. It reports whether there was so much.
func (g *FloodGuard) Spend(n int, now func() time.Time) bool {
	if !g.Has(n, now) {
		return false
	}
	g.credit -= n
	return true
}

// Has reports whether there is credit of n.
func (g *FloodGuard) Has(n int, now func() time.Time) bool {
	if g.credit >= n {
		return true
	}
	at := now()
	g.Earn(int(min(at.Sub(g.last).Seconds(), 3600) * float64(g.perSecond)))
	g.last = at
	return g.credit >= n
}

// IsFull reports whether the peer has all the credit again, so that nothing is to be known of it.
func (g *FloodGuard) IsFull(now time.Time) bool {
	return g.credit+int(min(now.Sub(g.last).Seconds(), 3600)*float64(g.perSecond)) >= g.most
}

// Earn adds to the credit.
func (g *FloodGuard) Earn(n int) { g.credit = min(g.credit+n, g.most) }
