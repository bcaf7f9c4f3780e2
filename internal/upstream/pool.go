package upstream

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/admission-gateway/gateway/internal/presence"
	"github.com/admission-gateway/gateway/internal/upstream/balance"
)

// pool has the connections to the endpoints of an upstream, and the requests that wait for a slot of one. What it
// grants is a round trip on a link: how many a connection carries at a time is the protocol's affair. It makes each
// decision under one lock, without waiting and without input or output. Connections are closed, and changes reported,
// when the lock is given back.
type pool struct {
	config *Config

	mu     sync.Mutex
	set    *balance.Set[connections]
	slots  slotAllocator
	queue  queue
	lookup lookup

	sweeper    *time.Timer
	isSweeping bool
}

// lookup is the state of the resolving of names.
type lookup struct {
	failed  error // the outcome of the last lookup of any name
	unknown int   // names whose first lookup is not over
}

// The reasons why there is no connection.
var (
	errQueueFull  = errors.New("as many requests as may wait for a connection do")
	errNoRoom     = errors.New("no connection became free in time")
	errDeadline   = errors.New("the request's deadline passed")
	errUnresolved = errors.New("the names of the endpoints are not resolved yet")
)

func newPool(config *Config) *pool {
	p := &pool{config: config, slots: slotAllocator{limits: config.Limits}}
	p.set = balance.New(config.policy(), p.slots.hasRoom)
	p.set.Continue(config.Starts)
	return p
}

// unlock gives the lock back and does what was left for then.
func (p *pool) unlock() {
	if len(p.slots.doomed) == 0 && !p.set.HasChanges() {
		p.mu.Unlock()
		return
	}
	doomed, changes := p.slots.doomed, p.set.TakeChanges()
	p.slots.doomed = nil
	p.mu.Unlock()
	for _, cn := range doomed {
		if idle, is := cn.link.(*conn); is && cn.wasIdle {
			_ = idle.unasked() // which counts what came
		}
		_ = cn.link.Close() // an error shows nothing that matters: the connection is not used again
	}
	if p.config.OnChange != nil {
		for _, change := range changes {
			p.config.OnChange(change)
		}
	}
}

// attempt is the state of a request while it is sent, perhaps several times.
type attempt struct {
	start    time.Time // of the request
	now      time.Time // of this attempt
	deadline time.Time // of all attempts; zero if there is none yet
	tried    failedEndpoints
	endpoint *endpoint // of this attempt, nil before there is one
	admitted bool      // the circuit let it pass, and the retry budget knows of it
	fresh    bool      // this attempt's connection was made for it
	rejoined bool      // it was sent a second time to an endpoint to which no connection could be made for it
	resent   bool      // it was sent a second time, although it may have arrived
	probe    int       // it is to show whether the circuit can be closed: its number
	// it needs a connection of HTTP/1.1 of its own: it may go on in another protocol, or the backend wants it so
	isOwn   bool
	refused int // how often the backend said that it had not processed it
}

// get grants a slot of a connection to one of the endpoints, if possible to one that was not tried. It waits for its
// turn if all are in use.
func (p *pool) get(try *attempt, client *presence.Client) (grant, error) {
	p.mu.Lock()
	if p.set.Refresh(try.now) {
		p.serve()
	}
	if !try.admitted {
		probe, err := p.set.Admit(try.now)
		if err != nil {
			p.unlock()
			return grant{}, err
		}
		try.admitted, try.probe = true, probe
	}
	p.slots.waiting = p.queue.length
	if e := p.set.Choose(&try.tried); e != nil {
		g, err := p.slots.take(e, p.set.All(), try.isOwn)
		p.unlock()
		return g, err
	}
	if err := p.cannotWait(); err != nil {
		p.unlock()
		return grant{}, err
	}
	w := &waiter{tried: try.tried, isOwn: try.isOwn, woken: make(chan struct{})}
	p.queue.push(w)
	p.unlock()
	return p.wait(w, try, client)
}

// cannotWait returns why a request may not wait, or nil if it may.
func (p *pool) cannotWait() error {
	switch {
	case len(p.set.All()) == 0 && p.lookup.failed != nil && p.lookup.unknown == 0:
		return &dialError{p.lookup.failed}
	case p.queue.length >= p.config.Limits.Pending:
		return errQueueFull
	}
	return nil
}

// wait waits until the waiter is served, at most as long as a request may. While connections are made that it may
// share, it has the time of those who make them: of the first, which shows how many share one, and of the others.
func (p *pool) wait(w *waiter, try *attempt, client *presence.Client) (grant, error) {
	waiting := client.Signal()
	defer waiting.Done()
	limit := p.config.Limits.Wait
	most := limit + 2*p.config.Timeouts.Connect
	if !try.deadline.IsZero() {
		most = min(most, try.deadline.Sub(try.now))
		limit = min(limit, most)
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for waited := limit; ; waited += limit {
		hasLeft := false
		select {
		case <-w.woken:
			return w.grant, w.err
		case <-timer.C:
		case <-waiting.Left():
			hasLeft = true
		}
		p.mu.Lock()
		if !hasLeft && w.queued && waited < most && p.mayBecomeShared() {
			p.mu.Unlock()
			limit = min(limit, most-waited)
			timer.Reset(limit)
			continue
		}
		isServed := !p.queue.remove(w) // at this very moment
		isUnknown := len(p.set.All()) == 0
		p.unlock()
		switch {
		case isServed:
			return w.grant, w.err
		case hasLeft:
			return grant{}, presence.ErrLeft
		case !try.deadline.IsZero() && waited >= try.deadline.Sub(try.now):
			return grant{}, errDeadline
		case isUnknown:
			return grant{}, &dialError{errUnresolved}
		}
		return grant{}, errNoRoom
	}
}

// mayBecomeShared reports whether connections are being made that other requests can share.
func (p *pool) mayBecomeShared() bool {
	return p.slots.mayShare && slices.ContainsFunc(p.set.All(), func(e *endpoint) bool { return e.Conns.making > 0 })
}

// put takes a slot of a connection back, to be used again if the connection is good for that, with the outcome of the
// exchange on it.
func (p *pool) put(cn *connection, isReusable bool, o balance.Outcome, now time.Time) {
	p.mu.Lock()
	cn.endpoint.Busy--
	p.set.Observe(cn.endpoint, o, now)
	if p.slots.put(cn, isReusable, now) && !p.isSweeping {
		p.sweepIn(p.config.Timeouts.Idle)
	}
	p.serve()
	p.unlock()
}

// answered notes the outcome of an exchange whose answer's body is still to come.
func (p *pool) answered(cn *connection, o balance.Outcome) {
	p.mu.Lock()
	p.set.Observe(cn.endpoint, o, time.Now())
	p.serve()
	p.unlock()
}

// made adds a connection that was made by the pool's leave, for a request that has one of its slots.
func (p *pool) made(cn *connection) {
	p.mu.Lock()
	cn.taken = 1
	p.slots.made(cn)
	p.serve()
	p.unlock()
}

// lost takes back the permission to make a connection, if none was made. err is the reason, or nil if the attempt was
// given up. Requests that waited to share the connection fail too, if there is no other one.
func (p *pool) lost(g grant, err error, o balance.Outcome, now time.Time) {
	p.mu.Lock()
	g.endpoint.Busy--
	p.slots.unmade(&g)
	p.set.Observe(g.endpoint, o, now)
	if err != nil && p.slots.mayShare && p.slots.open == 0 {
		p.fail(err)
	}
	p.serve()
	p.unlock()
}

// spend grants no further slot of a connection, which is closed when none is in use.
func (p *pool) spend(cn *connection) {
	p.mu.Lock()
	p.slots.spend(cn)
	p.serve()
	p.unlock()
}

// resize gives a connection another number of slots.
func (p *pool) resize(cn *connection, slots int) {
	p.mu.Lock()
	p.slots.resize(cn, slots)
	p.serve()
	p.unlock()
}

// serve grants the available links to the requests that wait longest.
func (p *pool) serve() {
	for w := p.queue.first; w != nil; w = p.queue.first {
		p.slots.waiting = p.queue.length - 1
		e := p.set.Choose(&w.tried)
		if e == nil {
			return
		}
		w.grant, w.err = p.slots.take(e, p.set.All(), w.isOwn)
		p.queue.wake(w)
	}
}

// endProbe is for a probe of the circuit that is over, for it may have shown nothing.
func (p *pool) endProbe(probe int) {
	p.mu.Lock()
	p.set.EndProbe(probe)
	p.unlock()
}

// mayResend takes a retry from the budget, if there is one.
func (p *pool) mayResend(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.set.MayRetry(now)
}

// hasOther reports whether there is an endpoint that was not tried.
func (p *pool) hasOther(tried *failedEndpoints) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.set.HasOther(tried)
}

// mayJoin reports whether there are connections to an endpoint that requests share.
func (p *pool) mayJoin(e *endpoint) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slots.mayShare && e.Conns.expected > 1 && e.Conns.open > e.Conns.making
}

// fail wakes all who wait, without a connection.
func (p *pool) fail(err error) {
	for w := p.queue.first; w != nil; w = p.queue.first {
		w.err = err
		p.queue.wake(w)
	}
}

// sweepIn has the idle connections looked at after some time.
func (p *pool) sweepIn(d time.Duration) {
	p.isSweeping = true
	if p.sweeper == nil {
		p.sweeper = time.AfterFunc(d, func() { p.sweep(time.Now()) })
	} else {
		p.sweeper.Reset(d)
	}
}

// sweep closes the connections that were unused for as long as one is kept.
func (p *pool) sweep(now time.Time) {
	p.mu.Lock()
	p.isSweeping = false
	next := time.Duration(-1)
	for _, e := range p.set.All() {
		if left, any := p.slots.expire(e, p.config.Timeouts.Idle, now); any && (next < 0 || left < next) {
			next = left
		}
	}
	if next >= 0 && !p.slots.isClosed {
		p.sweepIn(next)
	}
	p.serve()
	p.unlock()
}

// checked notes the result of a health check.
func (p *pool) checked(e *endpoint, err error, now time.Time) {
	p.mu.Lock()
	defer p.unlock()
	p.set.Check(e, err, now)
	p.serve()
}

// onRemoval sets the function that ends the health checks of an endpoint. It reports whether the endpoint is still
// there.
func (p *pool) onRemoval(e *endpoint, stop func()) bool {
	p.mu.Lock()
	defer p.unlock()
	e.Conns.stop = stop
	return !e.IsRemoved()
}

// generation returns the generation of connections that are made from now on.
func (p *pool) generation() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slots.generation
}

// renew closes the idle connections now and the others when they come back.
func (p *pool) renew() {
	p.mu.Lock()
	p.slots.generation++
	p.dropIdle()
	p.unlock()
}

// close closes the idle connections now and the others when they come back.
func (p *pool) close() {
	p.mu.Lock()
	p.slots.isClosed = true
	if p.sweeper != nil {
		p.sweeper.Stop()
	}
	p.dropIdle()
	p.unlock()
}

func (p *pool) dropIdle() {
	for _, e := range p.set.All() {
		p.slots.drop(e)
	}
	p.serve()
}
