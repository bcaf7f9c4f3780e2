package upstream

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// pool has the connections to the endpoints of an upstream, and the requests
// that wait for one. Whatever it decides it decides under one lock, without
// waiting and without input or output; what has to be closed or told is left
// for when the lock is given back.
type pool struct {
	config *Config

	mu         sync.Mutex
	all        []*endpoint // in force, in the order in which they came
	ready      []*endpoint // those of all that are neither ejected nor unhealthy
	readmit    time.Time   // when the first of the ejected is due; zero where none is
	open, idle int         // connections of all endpoints; open counts those being made
	queue      queue
	retries    budget
	circuit    circuit
	random     uint64
	lookup     lookup
	closed     bool
	generation uint64 // of connections; those of earlier ones are not used again
	ejections  uint64 // so far

	sweeper  *time.Timer
	sweeping bool

	doomed []*conn  // to be closed
	news   []Change // to be told
}

// The reasons why there is no connection.
var (
	errQueueFull = errors.New("as many requests as may wait for a connection do")
	errNoRoom    = errors.New("no connection became free in time")
	errDeadline  = errors.New("the request's deadline passed")
)

func newPool(config *Config) *pool {
	return &pool{config: config, random: rand.Uint64() | 1, retries: budget{RetryBudget: *config.Retries}}
}

// unlock gives the lock back and does what was left for then.
func (p *pool) unlock() {
	if len(p.doomed) == 0 && len(p.news) == 0 {
		p.mu.Unlock()
		return
	}
	doomed, news := p.doomed, p.news
	p.doomed, p.news = nil, nil
	p.mu.Unlock()
	for _, cn := range doomed {
		_ = cn.Close() // nobody waits for what it could still say
	}
	if p.config.OnChange != nil {
		for _, change := range news {
			p.config.OnChange(change)
		}
	}
}

// grant is a connection, or leave to make one to the endpoint.
type grant struct {
	conn     *conn
	endpoint *endpoint
}

// get grants a connection to one of the endpoints, if possible to none of
// those that were tried. It waits for its turn where all are in use.
func (p *pool) get(try *attempt) (grant, error) {
	p.mu.Lock()
	if !p.readmit.IsZero() && !try.now.Before(p.readmit) {
		p.rebuild(try.now)
		p.serve()
	}
	if !try.admitted {
		if err := p.circuit.admit(p, try); err != nil {
			p.unlock()
			return grant{}, err
		}
		try.admitted = true
		p.retries.deposit()
	}
	if e := p.choose(&try.tried); e != nil {
		g := p.take(e)
		p.unlock()
		return g, nil
	}
	if err := p.cannotWait(); err != nil {
		p.unlock()
		return grant{}, err
	}
	w := &waiter{tried: try.tried, woken: make(chan struct{})}
	p.queue.push(w)
	p.unlock()
	return p.wait(w, try)
}

// cannotWait tells why a request may not wait, nil where it may.
func (p *pool) cannotWait() error {
	switch {
	case len(p.all) == 0 && p.lookup.failed != nil && p.lookup.unknown == 0:
		return &dialError{p.lookup.failed}
	case p.queue.length >= p.config.MaxPending:
		return errQueueFull
	}
	return nil
}

// wait waits until the waiter is served, at most as long as a request may.
func (p *pool) wait(w *waiter, try *attempt) (grant, error) {
	most, tooLong := p.config.MaxWait, errNoRoom
	if !try.deadline.IsZero() {
		if left := try.deadline.Sub(try.now); left < most {
			most, tooLong = left, errDeadline
		}
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-w.woken:
	case <-timer.C:
		p.mu.Lock()
		served := !p.queue.remove(w)
		unknown := len(p.all) == 0
		p.unlock()
		switch {
		case served: // at this very moment
		case unknown && tooLong == errNoRoom:
			return grant{}, &dialError{errUnresolved}
		default:
			return grant{}, tooLong
		}
	}
	return w.grant, w.err
}

// take grants what the endpoint, which has room, can give.
func (p *pool) take(e *endpoint) grant {
	e.busy++
	if n := len(e.idle); n > 0 {
		// The connection used last is the one least likely to be stale.
		cn := e.idle[n-1]
		e.idle[n-1], e.idle = nil, e.idle[:n-1]
		p.idle--
		return grant{cn, e}
	}
	if p.open >= p.config.MaxConns {
		p.evict()
	}
	e.open++
	p.open++
	return grant{nil, e}
}

// evict closes the oldest idle connection of the endpoint that has most of
// them, so that another endpoint gets its share of the connections.
func (p *pool) evict() {
	var most *endpoint
	for _, e := range p.all {
		if most == nil || len(e.idle) > len(most.idle) {
			most = e
		}
	}
	p.doom(most.idle[0])
	most.idle = slices.Delete(most.idle, 0, 1)
	p.idle--
}

// doom leaves a connection that is not idle to be closed.
func (p *pool) doom(cn *conn) {
	cn.endpoint.open--
	p.open--
	p.doomed = append(p.doomed, cn)
}

// put takes a connection back, to be used again if it is good for that, with
// what the exchange on it showed of the endpoint.
func (p *pool) put(cn *conn, reusable bool, v verdict, now time.Time) {
	p.mu.Lock()
	e := cn.endpoint
	e.busy--
	p.judge(e, v, now)
	if reusable && !e.removed && !p.closed && cn.generation == p.generation {
		cn.freed = now
		e.idle = append(e.idle, cn)
		p.idle++
		if !p.sweeping {
			p.sweepIn(p.config.IdleTimeout)
		}
	} else {
		p.doom(cn)
	}
	p.serve()
	p.unlock()
}

// answered notes what the head of an answer shows whose body is still to come.
func (p *pool) answered(cn *conn, v verdict) {
	p.mu.Lock()
	p.judge(cn.endpoint, v, time.Now())
	p.serve()
	p.unlock()
}

// unmade takes back the leave to make a connection, where none came of it.
func (p *pool) unmade(e *endpoint, v verdict, now time.Time) {
	p.mu.Lock()
	e.busy--
	e.open--
	p.open--
	p.judge(e, v, now)
	p.serve()
	p.unlock()
}

// serve gives those who wait longest what there is.
func (p *pool) serve() {
	for w := p.queue.first; w != nil; w = p.queue.first {
		e := p.choose(&w.tried)
		if e == nil {
			return
		}
		w.grant = p.take(e)
		p.queue.wake(w)
	}
}

// mayResend takes a retry from the budget, if there is one.
func (p *pool) mayResend(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.retries.withdraw(now)
}

// hasOther tells whether there is an endpoint beside those that were tried.
func (p *pool) hasOther(tried *tried) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !tried.all(p.all)
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
	p.sweeping = true
	if p.sweeper == nil {
		p.sweeper = time.AfterFunc(d, func() { p.sweep(time.Now()) })
	} else {
		p.sweeper.Reset(d)
	}
}

// sweep closes the connections that nobody used for as long as one is kept.
func (p *pool) sweep(now time.Time) {
	p.mu.Lock()
	p.sweeping = false
	next := time.Duration(-1)
	for _, e := range p.all {
		n := 0
		for n < len(e.idle) && now.Sub(e.idle[n].freed) >= p.config.IdleTimeout {
			p.doom(e.idle[n])
			n++
		}
		if n > 0 {
			kept := copy(e.idle, e.idle[n:])
			clear(e.idle[kept:])
			e.idle = e.idle[:kept]
			p.idle -= n
		}
		if len(e.idle) > 0 {
			if left := p.config.IdleTimeout - now.Sub(e.idle[0].freed); next < 0 || left < next {
				next = left
			}
		}
	}
	if next >= 0 && !p.closed {
		p.sweepIn(next)
	}
	p.serve()
	p.unlock()
}

// dropIdle closes the idle connections of an endpoint.
func (p *pool) dropIdle(e *endpoint) {
	for _, cn := range e.idle {
		p.doom(cn)
	}
	p.idle -= len(e.idle)
	e.idle = nil
}

// current is the generation of connections that are made from now on.
func (p *pool) current() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.generation
}

// renew closes the idle connections now and the others when they come back.
func (p *pool) renew() {
	p.mu.Lock()
	p.generation++
	for _, e := range p.all {
		p.dropIdle(e)
	}
	p.serve()
	p.unlock()
}

// close closes the idle connections now and the others when they come back.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	for _, e := range p.all {
		p.dropIdle(e)
	}
	if p.sweeper != nil {
		p.sweeper.Stop()
	}
	p.serve()
	p.unlock()
}
