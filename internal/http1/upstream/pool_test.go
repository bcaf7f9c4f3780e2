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

	"github.com/admission-gateway/gateway/internal/circuit"
	"github.com/admission-gateway/gateway/internal/http1/balance"
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

func (p *pool) acquire(t *testing.T) *conn {
	t.Helper()
	cn, err := grab(p, &attempt{now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return cn
}

// check compares the counts of the pool with what they count.
func (p *pool) check(t *testing.T, inUse map[*conn]bool) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	open, idle, busy := 0, 0, make(map[*endpoint]int)
	for cn := range inUse {
		busy[cn.endpoint]++
		open++
	}
	for _, e := range p.set.All() {
		open += len(e.Conns.idle)
		idle += len(e.Conns.idle)
		if e.Conns.open != len(e.Conns.idle)+e.Busy || e.Busy != busy[e] || e.IsRemoved() {
			t.Fatalf("%s has %d connections, %d idle and %d busy of %d inUse", e.Addr, e.Conns.open, len(e.Conns.idle), e.Busy, busy[e])
		}
		if most := p.config.Limits.ConnsPerEndpoint; most > 0 && e.Conns.open > most {
			t.Fatalf("%s has %d connections", e.Addr, e.Conns.open)
		}
	}
	if p.stock.open != open || p.stock.idle != idle || p.stock.open > p.config.Limits.Conns {
		t.Fatalf("the pool counts %d connections, %d idle; there are %d and %d", p.stock.open, p.stock.idle, open, idle)
	}
	if p.queue.first != nil && p.set.Choose(&tried{}) != nil {
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
		Limits: Limits{Conns: 1 + r.IntN(8), ConnsPerEndpoint: r.IntN(4), Wait: time.Hour}, Timeouts: Timeouts{Idle: 10 * time.Second},
		Ejection: balance.Ejection{Failures: 1 + r.IntN(3), Base: 5 * time.Second, Max: time.Minute, Percent: 50},
	}, "10.0.0.1", "10.0.0.2", "10.0.0.3")
	type served struct {
		number int
		conn   *conn
	}
	grants := make(chan served, 1000)
	inUse := make(map[*conn]bool)
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
			inUse[s.conn] = true
		}
		p.check(t, inUse)
	}
	one := func() *conn {
		for cn := range inUse {
			return cn
		}
		return nil
	}
	dynamic := &origin{Origin: balance.Origin{Position: 9, Authority: "name:80"}}
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
				delete(inUse, cn)
				v := []balance.Outcome{balance.Answered, balance.Answered, balance.Unavailable, balance.Failed, balance.Inconclusive}[r.IntN(5)]
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
			p.replace(dynamic, addrs, time.Now())
		}
		settle()
	}
	for len(inUse) > 0 || len(waiting) > 0 {
		if cn := one(); cn != nil {
			delete(inUse, cn)
			p.put(cn, true, balance.Answered, time.Now())
		}
		settle()
		if len(inUse) == 0 && len(waiting) > 0 {
			t.Fatalf("%v wait for ever", waiting)
		}
	}
	time.Sleep(11 * time.Second)
	synctest.Wait()
	if p.stock.open != 0 || p.isSweeping {
		t.Errorf("%d connections are open after the idle timeout", p.stock.open)
	}
}

// A turn at the pool costs no memory.
func TestPoolAllocatesNothing(t *testing.T) {
	for _, endpoints := range [][]string{{"10.0.0.1"}, {"10.0.0.1", "10.0.0.2", "10.0.0.3"}} {
		p := newTestPool(t, Config{Ejection: balance.Ejection{Failures: 5}, Breaker: circuit.Policy{Failures: 5}}, endpoints...)
		var inUse []*conn
		for range 50 {
			inUse = append(inUse, p.acquire(t))
		}
		now := time.Now()
		for _, cn := range inUse {
			p.put(cn, true, balance.Answered, now)
		}
		if n := testing.AllocsPerRun(1000, func() {
			try := attempt{now: now}
			g, err := p.get(&try)
			if err != nil {
				t.Fatal(err)
			}
			p.put(g.conn, true, balance.Answered, now)
		}); n != 0 {
			t.Errorf("with %d endpoints: %v allocations", len(endpoints), n)
		}
	}
}

// Where no more connections may be made an idle one makes room for one to the
// endpoint that was chosen.
func TestIdleConnectionMakesRoom(t *testing.T) {
	p := newTestPool(t, Config{Limits: Limits{Conns: 2}}, "10.0.0.1")
	first, second := p.acquire(t), p.acquire(t)
	p.put(first, true, balance.Answered, time.Now())
	p.put(second, true, balance.Answered, time.Now())
	other := &origin{Origin: balance.Origin{Position: 1, Authority: "name:80"}}
	p.replace(other, []string{"10.0.0.2:80"}, time.Now())
	p.set.Check(p.set.All()[0], errors.New("it is not well"), time.Now())
	third := p.acquire(t)
	if third.endpoint.Addr != "10.0.0.2:80" || first.Conn.(*nowhere).closed.Load() != 1 || second.Conn.(*nowhere).closed.Load() != 0 || p.stock.open != 2 {
		t.Errorf("%s was chosen, the pool has %d connections", third.endpoint.Addr, p.stock.open)
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
		var all []*conn
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
	p := newTestPool(t, Config{Limits: Limits{Conns: 1}}, "10.0.0.1")
	cn := p.acquire(t)
	p.close()
	p.put(cn, true, balance.Answered, time.Now())
	if again := p.acquire(t); again == cn || cn.Conn.(*nowhere).closed.Load() != 1 || p.stock.open != 1 {
		t.Errorf("the connection stayed in use; %d are open", p.stock.open)
	}
}

// Where no endpoint is known yet requests wait, and fail when it is known that
// there is none.
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
