package upstream

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-gateway/gateway/internal/circuit"
	"github.com/admission-gateway/gateway/internal/upstream/balance"
)

// nowhere is a link that only counts how often it is closed.
type nowhere struct {
	link
	closed atomic.Int32
}

func (n *nowhere) Close() error {
	n.closed.Add(1)
	return nil
}

// closed returns how often the connection was closed.
func (cn *connection) closed() int32 { return cn.link.(*nowhere).closed.Load() }

// newTestPool is the pool of a client for endpoints that are never connected to.
func newTestPool(t *testing.T, config Config, endpoints ...string) *pool {
	t.Helper()
	for _, e := range endpoints {
		config.Endpoints = append(config.Endpoints, "http://"+e)
	}
	c, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.pool
}

// connect makes a connection with so many slots, if there is leave to.
func (g *grant) connect(p *pool, slots int) *connection {
	if g.conn == nil {
		g.conn = &connection{link: &nowhere{}, endpoint: g.endpoint, slots: slots, generation: p.generation()}
		p.made(g.conn)
	}
	return g.conn
}

// grab is get, with a connection of one slot made if there is leave to.
func grab(p *pool, try *attempt) (*connection, error) {
	g, err := p.get(try, nil)
	if err != nil {
		return nil, err
	}
	return g.connect(p, 1), nil
}

func (p *pool) acquire(t *testing.T) *connection {
	t.Helper()
	cn, err := grab(p, &attempt{now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return cn
}

// check compares what the pool counts with the slots that are in use, and the connections that are being made.
func (p *pool) check(t *testing.T, inUse []grant) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	open, idle, busy, perEndpoint, taken := 0, 0, map[*endpoint]int{}, map[*endpoint]int{}, map[*connection]int{}
	count := func(e *endpoint) {
		open++
		perEndpoint[e]++
	}
	for _, g := range inUse {
		busy[g.endpoint]++
		if g.conn == nil || taken[g.conn] == 0 {
			count(g.endpoint)
		}
		if g.conn != nil {
			taken[g.conn]++
		}
	}
	for cn, n := range taken {
		isPast := p.slots.isPast(cn)
		if cn.taken != n || n > cn.slots && !p.slots.mayShare || cn.closed() != 0 ||
			slices.Contains(cn.endpoint.Conns.free, cn) != (n < cn.slots && !isPast) {
			t.Fatalf("of %d slots %d are in use, %d are counted; it was closed %d times, and is past: %v", cn.slots, n, cn.taken, cn.closed(), isPast)
		}
	}
	for _, e := range p.set.All() {
		c := &e.Conns
		for i, cn := range c.free {
			if isIdle := taken[cn] == 0; isIdle != (i < c.idle) || isIdle &&
				(cn.taken != 0 || i > 0 && cn.freed.Before(c.free[i-1].freed)) {
				t.Fatalf("connection %d of %s, of which %d are idle, has %d slots in use", i, e.Addr, c.idle, taken[cn])
			}
			if i < c.idle {
				count(e)
				idle++
			}
		}
		if c.open != perEndpoint[e] || e.Busy != busy[e] || e.IsRemoved() {
			t.Fatalf("%s has %d connections of %d, and %d slots in use of %d", e.Addr, c.open, perEndpoint[e], e.Busy,
				busy[e])
		}
		if most := p.config.Limits.ConnsPerEndpoint; most > 0 && c.open > most {
			t.Fatalf("%s has %d connections", e.Addr, c.open)
		}
	}
	if p.slots.open != open || p.slots.idle != idle || p.slots.open > p.config.Limits.Conns {
		t.Fatalf("the pool counts %d connections, %d idle; there are %d and %d", p.slots.open, p.slots.idle, open, idle)
	}
	p.slots.waiting = p.queue.length - 1
	if p.queue.first != nil && p.set.Choose(&failedEndpoints{}) != nil {
		t.Fatal("a request waits although there is room")
	}
}

// Whatever happens to requests and endpoints, in any order, and however many round trips a connection makes at a time:
// the counts stay right, the bounds hold, who came first is served first, and all are served.
func TestPoolUnderRandomUse(t *testing.T) {
	for seed := range uint64(60) {
		slots := max(1, int(seed)-29) // the first half has one
		synctest.Test(t, func(t *testing.T) { randomUse(t, rand.New(rand.NewPCG(seed, 1)), slots) })
	}
}

// randomUse uses a pool of connections that have up to so many slots.
func randomUse(t *testing.T, r *rand.Rand, slots int) {
	p := newTestPool(t, Config{
		Limits:   Limits{Conns: 1 + r.IntN(8), ConnsPerEndpoint: r.IntN(4), Wait: time.Hour},
		Timeouts: Timeouts{Idle: 10 * time.Second},
		Ejection: balance.Ejection{Failures: 1 + r.IntN(3), Base: 5 * time.Second, Max: time.Minute, Percent: 50},
	}, "10.0.0.1", "10.0.0.2", "10.0.0.3")
	p.slots.mayShare = slots > 1 && slots%2 == 0
	// change takes a connection that is made out of use, or changes its slots, as its other end may at any time.
	change := func() {
		var cn *connection
		e := p.set.All()[r.IntN(len(p.set.All()))]
		switch {
		case e.Conns.idle > 0 && r.IntN(2) == 0:
			cn = e.Conns.free[r.IntN(e.Conns.idle)]
		case len(e.Conns.free) > e.Conns.idle:
			cn = e.Conns.free[e.Conns.idle]
		default:
			return
		}
		if r.IntN(3) == 0 {
			p.spend(cn)
			p.spend(cn) // the second time it is no news
		} else {
			p.resize(cn, 1+r.IntN(slots))
		}
	}
	type served struct {
		number int
		grant  grant
	}
	grants := make(chan served, 1000)
	var inUse []grant
	asked, waiting := 0, []int(nil)
	checkServed := func() {
		synctest.Wait()
		for len(grants) > 0 {
			s := <-grants
			if i := slices.Index(waiting, s.number); i < 0 {
				t.Fatalf("request %d was served twice", s.number)
			} else {
				waiting = slices.Delete(waiting, i, i+1)
			}
			inUse = append(inUse, s.grant)
		}
		p.check(t, inUse)
	}
	// use goes on with one of the requests that were served: it makes its connection, or fails to, or is over.
	use := func(isLast bool) {
		i := r.IntN(len(inUse))
		g := &inUse[i]
		v := []balance.Outcome{balance.Answered, balance.Answered, balance.Unavailable, balance.Failed,
			balance.Inconclusive}[r.IntN(5)]
		if isLast {
			v = balance.Answered
		}
		switch cn := g.conn; {
		case cn == nil && r.IntN(8) > 0:
			g.connect(p, 1+r.IntN(slots))
			return
		case cn == nil:
			p.lost(*g, nil, v, time.Now())
		default:
			p.put(cn, isLast || r.IntN(4) > 0, v, time.Now())
		}
		inUse = slices.Delete(inUse, i, i+1)
	}
	dynamic := &origin{Origin: balance.Origin{Position: 9, Authority: "name:80"}}
	for range 300 {
		switch op := r.IntN(20); {
		case op < 8:
			number := asked
			asked++
			waiting = append(waiting, number)
			go func() {
				g, err := p.get(&attempt{now: time.Now()}, nil)
				if err != nil {
					t.Errorf("request %d: %v", number, err)
				}
				grants <- served{number, g}
			}()
		case op < 16:
			if len(inUse) > 0 {
				// Of several that wait the first one is served first.
				first := slices.Clone(waiting)
				use(false)
				checkServed()
				if n := len(first) - len(waiting); n > 0 && !slices.Equal(waiting, first[n:]) {
					t.Fatalf("of %v waiting %v are left", first, waiting)
				}
			}
		case op < 18:
			time.Sleep(time.Duration(r.IntN(20)) * time.Second)
		case op == 18 && p.slots.mayShare && r.IntN(4) > 0:
			change()
		case op == 18 && r.IntN(4) == 0:
			p.renew()
		default:
			var addrs []string
			for i := range 3 {
				if r.IntN(2) == 0 {
					addrs = append(addrs, fmt.Sprintf("10.0.1.%d:80", i))
				}
			}
			p.replace(dynamic, addrs, time.Now())
		}
		checkServed()
	}
	for len(inUse) > 0 || len(waiting) > 0 {
		if len(inUse) > 0 {
			use(true)
		}
		checkServed()
		if len(inUse) == 0 && len(waiting) > 0 {
			t.Fatalf("%v wait for ever", waiting)
		}
	}
	time.Sleep(11 * time.Second)
	synctest.Wait()
	if p.slots.open != 0 || p.isSweeping {
		t.Errorf("%d connections are open after the idle timeout", p.slots.open)
	}
}

// Round trips share a connection as long as it has slots, and another one is made only then.
func TestSlots(t *testing.T) {
	const slots = 4
	p := newTestPool(t, Config{Limits: Limits{Conns: 2, Wait: time.Second}}, "10.0.0.1")
	ask := func() *connection {
		g, err := p.get(&attempt{now: time.Now()}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return g.connect(p, slots)
	}
	var held []*connection
	for i := range 2 * slots {
		held = append(held, ask())
		if want := i/slots + 1; p.slots.open != want {
			t.Fatalf("%d round trips use %d connections, want %d", i+1, p.slots.open, want)
		}
	}
	p.put(held[0], true, balance.Answered, time.Now())
	if cn := ask(); cn != held[0] {
		t.Error("a slot that became free was not granted")
	}
	// A connection that is spent makes the round trips that it has begun, and no others.
	first, second := held[:slots], held[slots:]
	p.put(first[0], false, balance.Failed, time.Now())
	p.put(second[0], true, balance.Answered, time.Now())
	if cn := ask(); cn != second[0] || first[0].closed() != 0 {
		t.Errorf("the connection that is spent was granted, or closed %d times", first[0].closed())
	}
	for _, cn := range first[1:] {
		p.put(cn, true, balance.Answered, time.Now())
	}
	if first[0].closed() != 1 || p.slots.open != 1 {
		t.Errorf("the connection that is spent was closed %d times; %d are open", first[0].closed(), p.slots.open)
	}
	// A connection of an earlier generation, too.
	p.put(second[0], true, balance.Answered, time.Now())
	p.renew()
	if cn := ask(); cn == second[0] {
		t.Error("a connection of an earlier generation was granted")
	}
}

// While a connection is made that many may share, no second one is. If it cannot be made, all who wait for it learn
// that.
func TestSharedConnectionIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPool(t, Config{Limits: Limits{Conns: 9, Wait: time.Second},
			Timeouts: Timeouts{Connect: 5 * time.Second}}, "10.0.0.1")
		p.slots.mayShare = true
		results := make(chan error, 100)
		ask := func(n int) (first grant) {
			first, err := p.get(&attempt{now: time.Now()}, nil)
			if err != nil || first.conn != nil {
				t.Fatalf("the first is given %v, %v", first.conn, err)
			}
			for range n {
				go func() {
					g, err := p.get(&attempt{now: time.Now()}, nil)
					if err == nil && g.conn == nil {
						err = errors.New("it makes a connection of its own")
					}
					results <- err
				}()
			}
			synctest.Wait()
			time.Sleep(4 * time.Second) // longer than a request waits that does not share
			synctest.Wait()
			return first
		}
		first := ask(9)
		if len(results) > 0 {
			t.Errorf("one does not wait: %v", <-results)
		}
		first.connect(p, 100)
		for range 9 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		p.spend(first.conn)
		for range 10 {
			p.put(first.conn, true, balance.Answered, time.Now())
		}
		first = ask(9)
		p.lost(first, &dialError{errors.New("refused")}, balance.Failed, time.Now())
		for range 9 {
			var failed *dialError
			if err := <-results; !errors.As(err, &failed) {
				t.Errorf("got %v", err)
			}
		}
		// Once it is known that connections are not shared, each request makes one.
		first = ask(0)
		first.connect(p, 1)
		for range 3 {
			if g, err := p.get(&attempt{now: time.Now()}, nil); err != nil || g.conn != nil {
				t.Errorf("given %v, %v", g.conn, err)
			}
		}
	})
}

// Of a burst of requests the first makes a connection, which shows how many share one. The others are made at the same
// time then, and no more than are needed. A request waits as long as they may take.
func TestBurstMakesConnectionsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const requests, slots, connect = 1000, 100, 5 * time.Second
		p := newTestPool(t, Config{Limits: Limits{Conns: 50, Wait: time.Second}, Timeouts: Timeouts{Connect: connect}},
			"10.0.0.1")
		p.slots.mayShare = true
		var made, making, most atomic.Int32
		var all sync.WaitGroup
		for range requests {
			all.Go(func() {
				g, err := p.get(&attempt{now: time.Now()}, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if g.conn == nil {
					most.Store(max(most.Load(), making.Add(1)))
					time.Sleep(connect - time.Millisecond)
					making.Add(-1)
					made.Add(1)
					g.connect(p, slots)
				}
			})
		}
		all.Wait()
		if n := made.Load(); n < requests/slots || n > requests/slots+1 || most.Load() < requests/slots-1 {
			t.Errorf("%d connections were made, %d at a time", n, most.Load())
		}
		// A connection for one request alone is none that others wait for.
		p.slots.isClosed = true // so that no slot of those is free
		own, err := p.get(&attempt{now: time.Now(), isOwn: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if p.mayBecomeShared() || p.slots.promised != 0 {
			t.Errorf("%d round trips are promised", p.slots.promised)
		}
		p.lost(own, nil, balance.Inconclusive, time.Now())
		if p.slots.promised != 0 {
			t.Errorf("%d round trips are promised", p.slots.promised)
		}
	})
}

// A turn at the pool costs no memory.
func TestPoolAllocatesNothing(t *testing.T) {
	for _, endpoints := range [][]string{{"10.0.0.1"}, {"10.0.0.1", "10.0.0.2", "10.0.0.3"}} {
		p := newTestPool(t, Config{Ejection: balance.Ejection{Failures: 5}, Breaker: circuit.Policy{Failures: 5}},
			endpoints...)
		var inUse []*connection
		for range 50 {
			inUse = append(inUse, p.acquire(t))
		}
		now := time.Now()
		for _, cn := range inUse {
			p.put(cn, true, balance.Answered, now)
		}
		if n := testing.AllocsPerRun(1000, func() {
			try := attempt{now: now}
			g, err := p.get(&try, nil)
			if err != nil {
				t.Fatal(err)
			}
			p.put(g.conn, true, balance.Answered, now)
		}); n != 0 {
			t.Errorf("with %d endpoints: %v allocations", len(endpoints), n)
		}
	}
}

// If no more connections may be made an idle one makes room for one to the endpoint that was
// chosen.
func TestIdleConnectionMakesRoom(t *testing.T) {
	p := newTestPool(t, Config{Limits: Limits{Conns: 2}}, "10.0.0.1")
	first, second := p.acquire(t), p.acquire(t)
	p.put(first, true, balance.Answered, time.Now())
	p.put(second, true, balance.Answered, time.Now())
	other := &origin{Origin: balance.Origin{Position: 1, Authority: "name:80"}}
	p.replace(other, []string{"10.0.0.2:80"}, time.Now())
	p.set.Check(p.set.All()[0], errors.New("it is not well"), time.Now())
	third := p.acquire(t)
	if third.endpoint.Addr != "10.0.0.2:80" || first.closed() != 1 || second.closed() != 0 || p.slots.open != 2 {
		t.Errorf("%s was chosen, the pool has %d connections", third.endpoint.Addr, p.slots.open)
	}
}

func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPool(t, Config{Limits: Limits{Conns: 1, Wait: time.Second, Pending: 2}}, "10.0.0.1")
		cn := p.acquire(t)
		type outcome struct {
			err  error
			took time.Duration
		}
		ask := func(deadline time.Duration) <-chan outcome {
			c := make(chan outcome, 1)
			try := &attempt{now: time.Now()}
			if deadline > 0 {
				try.deadline = try.now.Add(deadline)
			}
			go func() {
				_, err := grab(p, try)
				c <- outcome{err, time.Since(try.now)}
			}()
			synctest.Wait()
			return c
		}
		patient, hurried := ask(0), ask(300*time.Millisecond)
		if o := <-ask(0); o != (outcome{errQueueFull, 0}) {
			t.Errorf("beyond the bound of the queue: %v", o)
		}
		if o := <-hurried; o != (outcome{errDeadline, 300 * time.Millisecond}) {
			t.Errorf("with a deadline: %v", o)
		}
		if o := <-patient; o != (outcome{errNoRoom, time.Second}) {
			t.Errorf("without one: %v", o)
		}
		late := ask(0)
		p.put(cn, true, balance.Answered, time.Now())
		if o := <-late; o != (outcome{nil, 0}) {
			t.Errorf("when a connection becomes free: %v", o)
		}
		if p.queue.length != 0 || p.queue.first != nil || p.queue.last != nil {
			t.Error("somebody is left in the queue")
		}
	})
}

// Idle connections are closed after the idle timeout, and not before it.
func TestIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPool(t, Config{Timeouts: Timeouts{Idle: 30 * time.Second}}, "10.0.0.1", "10.0.0.2")
		var all []*connection
		for range 4 {
			all = append(all, p.acquire(t))
		}
		for _, cn := range all {
			p.put(cn, true, balance.Answered, time.Now())
			time.Sleep(time.Second)
		}
		time.Sleep(25*time.Second + time.Second/2)
		for closed := range 5 {
			synctest.Wait()
			for i, cn := range all {
				want := int32(0)
				if i < closed {
					want = 1
				}
				if n := cn.closed(); n != want {
					t.Errorf("connection %d was closed %d times when %d were due", i, n, closed)
				}
			}
			time.Sleep(time.Second)
		}
	})
}

// A client that is closed keeps no connection, and serves on.
func TestClosedPool(t *testing.T) {
	p := newTestPool(t, Config{Limits: Limits{Conns: 1}}, "10.0.0.1")
	cn := p.acquire(t)
	p.close()
	p.put(cn, true, balance.Answered, time.Now())
	if again := p.acquire(t); again == cn || cn.closed() != 1 || p.slots.open != 1 {
		t.Errorf("the connection stayed in use; %d are open", p.slots.open)
	}
}

// If no endpoint is known yet requests wait, and fail when it is known that there is none.
func TestNoEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(&Config{Limits: Limits{Conns: 1, Pending: 1, Wait: time.Second}, Retries: &balance.RetryBudget{}})
		var dial *dialError
		if _, err := grab(p, &attempt{now: time.Now()}); !errors.As(err, &dial) || dial.error != errUnresolved {
			t.Errorf("got %v", err)
		}
		// Of two names the second one may still be known.
		failed := errors.New("no such host")
		p.lookup.unknown = 2
		go func() {
			p.lookupFailed(&origin{}, errors.New("the first"), true)
			time.Sleep(time.Millisecond)
			p.lookupFailed(&origin{}, failed, true)
		}()
		synctest.Wait()
		for range 2 {
			if _, err := grab(p, &attempt{now: time.Now()}); !errors.As(err, &dial) || dial.error != failed {
				t.Errorf("got %v", err)
			}
		}
	})
}
