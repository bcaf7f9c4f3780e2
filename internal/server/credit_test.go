package server

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/h2/h2test"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// heldServer serves requests that last until release is closed, with so much memory.
func heldServer(t *testing.T, o Options,
	limit int64) (addr string, budget *memory.Budget, running *atomic.Int64, release func()) {
	t.Helper()
	budget = memory.NewBudget(limit, 1)
	o.Memory = NewMemory(budget, func() error { return errClientLeft })
	running = new(atomic.Int64)
	hold := make(chan struct{})
	_, addr = startServer(t, o, func(r *Request) {
		if string(r.Head.Target) == "/hold" {
			running.Add(1)
			defer running.Add(-1)
			<-hold
		}
		echo(r)
	})
	release = sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release)
	return addr, budget, running, release
}

// TestRequestsBeyondMemory: streams and requests in flight take no more than the memory for requests. What is beyond is
// refused so that it may be sent again, does not run, and is counted; all is given back.
func TestRequestsBeyondMemory(t *testing.T) {
	const limit = 2 << 20
	var mu sync.Mutex
	refused := map[Overload]int{}
	addr, budget, running, release := heldServer(t, Options{Overloaded: func(what Overload) {
		mu.Lock()
		defer mu.Unlock()
		refused[what]++
	}}, limit)
	c := h2test.Dial(t, addr)
	const streams = 100
	for i := range uint32(streams) {
		c.Head(t, 2*i+1, true, h2test.Get("/hold")...)
	}
	got := 0
	for got < streams-limit/requestBytes {
		e, err := c.Next()
		h2test.Must(t, err)
		if e.Kind != http2.FrameRSTStream || e.Code != http2.ErrCodeRefusedStream {
			t.Fatalf("got %v", e)
		}
		got++
	}
	testutil.Eventually(t, "the others run", func() bool { return running.Load() >= limit/requestBytes/2 })
	if n := running.Load(); n > limit/requestBytes || budget.InFlight() > limit {
		t.Errorf("%d requests run, and take %d bytes", n, budget.InFlight())
	}
	// Each of these has a connection. One more is turned away, or its request is.
	var conns []net.Conn
	answered := ""
	for range 20 {
		nc, br := h1test.Dial(t, addr)
		conns = append(conns, nc)
		h1test.Send(t, nc, "GET /hold HTTP/1.1\r\nHost: gw\r\n\r\n")
		_ = nc.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		all, _ := io.ReadAll(br)
		if answered = string(all); answered != "" {
			break
		}
	}
	if !strings.HasPrefix(answered, "HTTP/1.1 503 ") || !strings.Contains(answered, "Retry-After: 1\r\n") ||
		!strings.Contains(answered, whyFull) {
		t.Errorf("beyond the memory HTTP/1.1 gets %q", answered)
	}
	mu.Lock()
	if n := refused[RefusedStream]; n < got || refused[RefusedRequest]+refused[RefusedConnection] == 0 {
		t.Errorf("counted are %v, of %d streams", refused, got)
	}
	mu.Unlock()
	release()
	for _, nc := range conns {
		_ = nc.Close()
	}
	testutil.Eventually(t, "they are over", func() bool { return running.Load() == 0 })
	last := uint32(2*streams + 1)
	c.Head(t, last, true, h2test.Get("/")...)
	if a := c.Read(t, last)[last]; a.Status() != "200" {
		t.Errorf("then a request is answered %+v", a)
	}
	_ = c.Conn.Close()
	testutil.Eventually(t, "all is given back", func() bool { return budget.InFlight() == 0 })
}

// TestShares: a client from another address is served while one holds all that it may, over any protocol and behind a
// trusted proxy. One alone holds more than three quarters.
func TestShares(t *testing.T) {
	const limit = 4 << 20
	clientOf := func(head *message.Head, _ netip.Addr) netip.Addr {
		return netip.MustParseAddr(string(head.Value(message.FieldXForwardedFor)))
	}
	proxies := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	for name, o := range map[string]Options{"by address": {},
		"behind a proxy": {TrustedProxies: proxies, ClientOf: clientOf}} {
		t.Run(name, func(t *testing.T) {
			addr, budget, running, _ := heldServer(t, o, limit)
			c := h2test.New(t, dialFrom(t, "127.0.0.2", addr))
			const most = 110 // streams, which would need more than all
			for id := range uint32(most) {
				c.Head(t, 2*id+1, true, append(h2test.Get("/hold"), "x-forwarded-for: 192.0.2.1")...)
			}
			c.Head(t, 2*most+1, true, append(h2test.Get("/"), "x-forwarded-for: 192.0.2.1")...)
			if a := c.Read(t, 2*most+1)[2*most+1]; a.Reset != http2.ErrCodeRefusedStream {
				t.Errorf("the first client is not limited: %+v", a)
			}
			if n := budget.InFlight(); n < limit/4*3 {
				t.Errorf("one client may hold %d of %d bytes", n, limit)
			}
			before := running.Load()
			other := h2test.New(t, dialFrom(t, "127.0.0.3", addr))
			other.Head(t, 1, true, append(h2test.Get("/"), "x-forwarded-for: 192.0.2.2")...)
			if a := other.Read(t, 1)[1]; a.Status() != "200" {
				t.Errorf("by HTTP/2 another client is answered %+v beside %d requests", a, before)
			}
			nc := dialFrom(t, "127.0.0.3", addr)
			_ = nc.SetDeadline(time.Now().Add(h2test.Patience))
			h1test.Send(t, nc, "GET / HTTP/1.1\r\nHost: gw\r\nX-Forwarded-For: 192.0.2.2\r\nConnection: close\r\n\r\n")
			if answer, err := io.ReadAll(nc); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200 ") {
				t.Errorf("by HTTP/1.1 another client gets %q, %v", answer, err)
			}
		})
	}
}

// dialFrom connects from an address of this machine.
func dialFrom(t *testing.T, from, addr string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	nc, err := d.Dial("tcp", addr)
	if err != nil {
		t.Skipf("this machine has no address %s: %v", from, err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	return nc
}

// TestResetsAcrossConnections: a client that reconnects has no new credit for resets, and one from another address has
// its own.
func TestResetsAcrossConnections(t *testing.T) {
	var floods atomic.Int64
	_, addr := startServer(t, Options{HTTP2: HTTP2{Flooded: func() { floods.Add(1) }}}, echo)
	f := &h2test.Flood{Address: addr, From: "127.0.0.2", Path: "/", Streams: 150} // fewer than a connection may reset
	probe := dialFrom(t, f.From, addr)
	_ = probe.Close()
	for range 4 * clientResets / f.Streams {
		f.Reset(t.Context(), 1)
	}
	testutil.Eventually(t, "connections end for resets on others", func() bool { return floods.Load() > 0 })
	c := h2test.New(t, dialFrom(t, "127.0.0.3", addr))
	for id := uint32(1); id < 101; id += 2 {
		c.Head(t, id, true, h2test.Get("/")...)
		h2test.Must(t, c.WriteRSTStream(id, http2.ErrCodeCancel))
	}
	c.Head(t, 101, true, h2test.Get("/")...)
	if a := c.Read(t, 101)[101]; a.Status() != "200" {
		t.Errorf("from another address a request is answered %+v", a)
	}
}

// TestResetsBehindProxy: behind a trusted proxy the resets of one client have its own streams refused, and no other's.
func TestResetsBehindProxy(t *testing.T) {
	s, addr := startServer(t, Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		ClientOf: func(head *message.Head, _ netip.Addr) netip.Addr {
			return netip.MustParseAddr(string(head.Value(message.FieldXForwardedFor)))
		}}, echo)
	bad := s.accounts.open(netip.MustParseAddr("192.0.2.1"))
	defer bad.close()
	for s.accounts.spendReset(bad) { // as its streams on many connections do
	}
	c := h2test.Dial(t, addr)
	c.Head(t, 1, true, append(h2test.Get("/"), "x-forwarded-for: 192.0.2.1")...)
	c.Head(t, 3, true, append(h2test.Get("/"), "x-forwarded-for: 192.0.2.2")...)
	got := c.Read(t, 1, 3)
	if got[1].Reset != http2.ErrCodeEnhanceYourCalm && got[1].Status() != "200" || got[3].Status() != "200" {
		// time gives credit back
		t.Errorf("answered %+v and %+v", got[1], got[3])
	}
}

// TestAccountsAreBounded: however many addresses reset streams, the table of them stays small, and it is empty if none
// did.
func TestAccountsAreBounded(t *testing.T) {
	var all clientAccounts
	size := func() (n int) {
		for i := range all.shards {
			n += len(all.shards[i].all)
		}
		return n
	}
	for i := range 3 * accountShards * keptAccounts {
		a := all.open(netip.MustParseAddr(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)))
		if i%2 == 0 {
			all.spendReset(a)
		}
		a.close()
	}
	if n := size(); n == 0 || n > accountShards*keptAccounts {
		t.Errorf("%d accounts are kept", n)
	}
	all = clientAccounts{}
	first, second := all.open(netip.MustParseAddr("2001:db8::1")), all.open(netip.MustParseAddr("2001:db8::ffff:1"))
	if first != second || size() != 1 {
		t.Error("one network has two accounts")
	}
	first.close()
	second.close()
	if n := size(); n != 0 {
		t.Errorf("%d accounts of clients are kept of which nothing is to be known", n)
	}
}
