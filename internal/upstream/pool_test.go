package upstream

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// nowhere is a connection that only counts how often it is closed.
type nowhere struct {
	net.Conn
	closed atomic.Int32
}

func (n *nowhere) Close() error {
	n.closed.Add(1)
	return nil
}

// newTestPool is the pool of a client for endpoints that nobody connects to.
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

// grab is get, with a connection made where there is leave to.
func grab(p *pool, try *attempt) (*conn, error) {
	g, err := p.get(try)
	if err == nil && g.conn == nil {
		g.conn = &conn{Conn: &nowhere{}, endpoint: g.endpoint}
	}
	return g.conn, err
}

func (p *pool) hold(t *testing.T) *conn {
	t.Helper()
	cn, err := grab(p, &attempt{now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return cn
}

// check compares the counts of the pool with what they count.
func (p *pool) check(t *testing.T, held map[*conn]bool) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	open, idle, busy := 0, 0, make(map[*endpoint]int)
	for cn := range held {
		busy[cn.endpoint]++
		open++
	}
	for _, e := range p.all {
		open += len(e.idle)
		idle += len(e.idle)
		if e.open != len(e.idle)+e.busy || e.busy != busy[e] || e.removed {
			t.Fatalf("%s has %d connections, %d idle and %d busy of %d held", e.addr, e.open, len(e.idle), e.busy, busy[e])
		}
		if most := p.config.MaxConnsPerEndpoint; most > 0 && e.open > most {
			t.Fatalf("%s has %d connections", e.addr, e.open)
		}
	}
	if p.open != open || p.idle != idle || p.open > p.config.MaxConns {
		t.Fatalf("the pool counts %d connections, %d idle; there are %d and %d", p.open, p.idle, open, idle)
	}
	if p.queue.first != nil && p.choose(&tried{}) != nil {
		t.Fatal("a request waits although there is room")
	}
}

// Whatever happens to requests and endpoints, in any order: the counts stay
// right, the bounds hold, who came first is served first, and all are served.
func TestPoolUnderRandomUse(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) { randomUse(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func randomUse(t *testing.T, r *rand.Rand) {
	p := newTestPool(t, Config{
		MaxConns: 1 + r.IntN(8), MaxConnsPerEndpoint: r.IntN(4), MaxWait: time.Hour, IdleTimeout: 10 * time.Second,
		Ejection: Ejection{Failures: 1 + r.IntN(3), Base: 5 * time.Second, Most: time.Minute, Percent: 50},
	}, "10.0.0.1", "10.0.0.2", "10.0.0.3")
	type served struct {
		number int
		conn   *conn
	}
	grants := make(chan served, 1000)
	held := make(map[*conn]bool)
	asked, waiting := 0, []int(nil)
	settle := func() {
		synctest.Wait()
		for len(grants) > 0 {
			s := <-grants
			if i := slices.Index(waiting, s.number); i < 0 {
				t.Fatalf("request %d was served twice", s.number)
			} else {
				waiting = slices.Delete(waiting, i, i+1)
			}
			held[s.conn] = true
		}
		p.check(t, held)
	}
	one := func() *conn {
		for cn := range held {
			return cn
		}
		return nil
	}
	dynamic := &origin{position: 9, authority: "name:80"}
	for range 300 {
		switch op := r.IntN(10); {
		case op < 4:
			number := asked
			asked++
			waiting = append(waiting, number)
			go func() {
				cn, err := grab(p, &attempt{now: time.Now()})
				if err != nil {
					t.Errorf("request %d: %v", number, err)
				}
				grants <- served{number, cn}
			}()
		case op < 8:
			if cn := one(); cn != nil {
				// Of several that wait the first one is served first.
				first := append([]int(nil), waiting...)
				delete(held, cn)
				v := []verdict{good, good, faulty, bad, noVerdict}[r.IntN(5)]
				if r.IntN(8) == 0 {
					p.unmade(cn.endpoint, v, time.Now())
				} else {
					p.put(cn, r.IntN(4) > 0, v, time.Now())
				}
				settle()
				if n := len(first) - len(waiting); n > 0 && !slices.Equal(waiting, first[n:]) {
					t.Fatalf("of %v waiting %v are left", first, waiting)
				}
			}
		case op == 8:
			time.Sleep(time.Duration(r.IntN(20)) * time.Second)
		default:
			var addrs []string
			for i := range 3 {
				if r.IntN(2) == 0 {
					addrs = append(addrs, fmt.Sprintf("10.0.1.%d:80", i))
				}
			}
			p.set(dynamic, addrs, time.Now())
		}
		settle()
	}
	for len(held) > 0 || len(waiting) > 0 {
		if cn := one(); cn != nil {
			delete(held, cn)
			p.put(cn, true, good, time.Now())
		}
		settle()
		if len(held) == 0 && len(waiting) > 0 {
			t.Fatalf("%v wait for ever", waiting)
		}
	}
	time.Sleep(11 * time.Second)
	synctest.Wait()
	if p.open != 0 || p.sweeping {
		t.Errorf("%d connections are open after the idle timeout", p.open)
	}
}

// The choice sends less to an endpoint that is slow, and as much to one as to
// another of those that are not.
func TestChoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPool(t, Config{}, "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4")
		counts := make(map[*endpoint]*atomic.Int64)
		for _, e := range p.all {
			counts[e] = new(atomic.Int64)
		}
		slow := p.all[0]
		done := make(chan bool)
		const clients, requests = 40, 500
		for range clients {
			go func() {
				for range requests {
					cn := p.hold(t)
					counts[cn.endpoint].Add(1)
					took := 10 * time.Millisecond
					if cn.endpoint == slow {
						took *= 10
					}
					time.Sleep(took)
					p.put(cn, true, good, time.Now())
				}
				done <- true
			}()
		}
		for range clients {
			<-done
		}
		for i, e := range p.all {
			share := float64(counts[e].Load()) / (clients * requests)
			if low, high := 0.25, 0.38; i == 0 && share > 0.12 || i > 0 && (share < low || share > high) {
				t.Errorf("%s got %.3f of the requests", e.addr, share)
			}
		}
	})
}

// Two of two are compared, so the busier one is never chosen.
func TestChoiceOfTwo(t *testing.T) {
	p := newTestPool(t, Config{}, "10.0.0.1", "10.0.0.2")
	for range 100 {
		p.hold(t)
		if one, other := p.all[0].busy, p.all[1].busy; one-other > 1 || other-one > 1 {
			t.Fatalf("one endpoint has %d exchanges, the other one %d", one, other)
		}
	}
}

// A turn at the pool costs no memory.
func TestPoolAllocatesNothing(t *testing.T) {
	for _, endpoints := range [][]string{{"10.0.0.1"}, {"10.0.0.1", "10.0.0.2", "10.0.0.3"}} {
		p := newTestPool(t, Config{Ejection: Ejection{Failures: 5}, Breaker: Breaker{Failures: 5}}, endpoints...)
		var held []*conn
		for range 50 {
			held = append(held, p.hold(t))
		}
		now := time.Now()
		for _, cn := range held {
			p.put(cn, true, good, now)
		}
		if n := testing.AllocsPerRun(1000, func() {
			try := attempt{now: now}
			g, err := p.get(&try)
			if err != nil {
				t.Fatal(err)
			}
			p.put(g.conn, true, good, now)
		}); n != 0 {
			t.Errorf("with %d endpoints: %v allocations", len(endpoints), n)
		}
	}
}

// Where no more connections may be made an idle one makes room for one to the
// endpoint that was chosen.
func TestIdleConnectionMakesRoom(t *testing.T) {
	p := newTestPool(t, Config{MaxConns: 2}, "10.0.0.1")
	first, second := p.hold(t), p.hold(t)
	p.put(first, true, good, time.Now())
	p.put(second, true, good, time.Now())
	other := &origin{position: 1, authority: "name:80"}
	p.set(other, []string{"10.0.0.2:80"}, time.Now())
	p.all[0].unhealthy = true
	p.rebuild(time.Now())
	third := p.hold(t)
	if third.endpoint.addr != "10.0.0.2:80" || first.Conn.(*nowhere).closed.Load() != 1 || second.Conn.(*nowhere).closed.Load() != 0 || p.open != 2 {
		t.Errorf("%s was chosen, the pool has %d connections", third.endpoint.addr, p.open)
	}
}

func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPool(t, Config{MaxConns: 1, MaxWait: time.Second, MaxPending: 2}, "10.0.0.1")
		cn := p.hold(t)
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
		p.put(cn, true, good, time.Now())
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
		p := newTestPool(t, Config{IdleTimeout: 30 * time.Second}, "10.0.0.1", "10.0.0.2")
		var all []*conn
		for range 4 {
			all = append(all, p.hold(t))
		}
		for _, cn := range all {
			p.put(cn, true, good, time.Now())
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
				if n := cn.Conn.(*nowhere).closed.Load(); n != want {
					t.Errorf("connection %d was closed %d times when %d were due", i, n, closed)
				}
			}
			time.Sleep(time.Second)
		}
	})
}

// A client that is closed keeps no connection, and serves on.
func TestClosedPool(t *testing.T) {
	p := newTestPool(t, Config{MaxConns: 1}, "10.0.0.1")
	cn := p.hold(t)
	p.close()
	p.put(cn, true, good, time.Now())
	if again := p.hold(t); again == cn || cn.Conn.(*nowhere).closed.Load() != 1 || p.open != 1 {
		t.Errorf("the connection stayed in use; %d are open", p.open)
	}
}

// Where no endpoint is known yet requests wait, and fail when it is known that
// there is none.
func TestNoEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(&Config{MaxConns: 1, MaxPending: 1, MaxWait: time.Second, Retries: &RetryBudget{}})
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
