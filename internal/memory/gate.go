package memory

import (
	"slices"
	"sync"
	"time"

	"github.com/admission-gateway/gateway/internal/presence"
)

// A gate lets few requests do heavy work at a time. The others wait in the order in which they came, not too many of
// them and not too long.
type gate struct {
	workers int
	mu      sync.Mutex
	working int
	queue   []chan struct{} // of requests that wait; closed when it is their turn
}

const (
	// maxWaiting is how many requests may wait for each that works.
	maxWaiting = 16
	// Patience is how long a request waits at most. A client that waits longer has most often given up.
	Patience = 10 * time.Second
)

// enter waits for a place.
func (g *gate) enter(until time.Time, client *presence.Client) Refusal {
	turn, refusal := g.line()
	if turn == nil {
		return refusal
	}
	wait := client.Signal()
	defer wait.Done()
	end := time.Now().Add(Patience)
	refusal = Busy
	if !until.IsZero() && until.Before(end) {
		end, refusal = until, Over
	}
	last := time.NewTimer(time.Until(end))
	defer last.Stop()
	select {
	case <-turn:
		return None
	case <-last.C:
		return g.giveUp(turn, refusal)
	case <-wait.Left():
		return g.giveUp(turn, Over)
	}
}

// line takes a place, or else one in the line, which is nil if there is no need to wait, or no room
// to.
func (g *gate) line() (turn chan struct{}, refusal Refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.working < g.workers:
		g.working++
		return nil, None
	case len(g.queue) >= maxWaiting*g.workers:
		return nil, Busy
	}
	turn = make(chan struct{})
	g.queue = append(g.queue, turn)
	return turn, None
}

// giveUp leaves the line, unless it is the waiter's turn just now.
func (g *gate) giveUp(turn chan struct{}, refusal Refusal) Refusal {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.queue, turn)
	if i < 0 {
		return None
	}
	g.queue = slices.Delete(g.queue, i, i+1)
	return refusal
}

// leave gives the place to the request that has waited longest.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		g.working--
		return
	}
	close(g.queue[0])
	g.queue = slices.Delete(g.queue, 0, 1)
}

// count is how many work and how many wait.
func (g *gate) count() (working, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.working, len(g.queue)
}

// Work is called before heavy work, and again from time to time while it goes on. It waits until
// the request is one of the few that may, and reports whether it is; if it is not, Refusal says
// why. It does not wait once the request has its place.
func (a *Reservation) Work() bool {
	switch {
	case a == nil || a.budget == nil:
		return true
	case a.working:
		return a.wanted()
	}
	a.heavy = true
	refusal := a.budget.gate.enter(a.until, a.client)
	if refusal == None {
		a.working = true
		return true
	}
	if !a.done {
		a.refusal = refusal
	}
	return false
}

// wanted reports whether a client still waits for what a request works on.
func (a *Reservation) wanted() bool {
	if a.done || !a.client.HasLeft() {
		return true
	}
	a.refusal = Over
	return false
}

// Rest leaves the place to others, while the request waits for something else.
func (a *Reservation) Rest() {
	if a.working {
		a.working = false
		a.budget.gate.leave()
	}
}

// Resume is Work for a request that did heavy work before it rested; any other goes on as it is.
func (a *Reservation) Resume() bool {
	if !a.heavy || a.working || a.done {
		return true
	}
	return a.Work()
}
