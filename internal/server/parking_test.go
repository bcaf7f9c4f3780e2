package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/listeners"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// startParking starts a server that parks connections soon.
func startParking(t *testing.T, isSecure bool, o Options) (s *Server, addr string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a set of sockets to wait for")
	}
	o.Listeners = listeners.Any(nil)
	if isSecure {
		o.Listeners = listeners.Any(h1test.NewTLS(t, credentials.ServerFiles{}).Server)
	}
	s, addr = startChanged(t, o, func(r *Request) { reply(r, 200) },
		func(s *Server) { s.parkAfter = 10 * time.Millisecond })
	if !isSecure {
		addr = strings.TrimPrefix(addr, h1test.SecureScheme)
	}
	return s, addr
}

func dialOnly(t *testing.T, addr string) net.Conn {
	t.Helper()
	nc, _ := h1test.Dial(t, addr)
	return nc
}

// request sends a request and reads the answer.
func request(t *testing.T, nc net.Conn) {
	t.Helper()
	if _, err := io.WriteString(nc, h1test.GetHead+"\r\n"); err != nil {
		t.Fatal(err)
	}
	expect(t, nc)
}

func expect(t *testing.T, nc net.Conn) {
	t.Helper()
	answer, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != 200 {
		t.Errorf("the answer is %d", answer.StatusCode)
	}
}

// allParked waits until there are so many connections, and none has a goroutine.
func allParked(t *testing.T, s *Server, open int) {
	t.Helper()
	testutil.Eventually(t, "all connections to be parked", func() bool {
		stacks := make([]byte, 16<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		return s.Open() == open && !strings.Contains(string(stacks), "server.(*conn).serve")
	})
}

// TestParked: a silent connection has no goroutine, is served again when the client sends a request, ends when the
// client leaves, and ends with the server.
func TestParked(t *testing.T) {
	for name, isSecure := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			s, addr := startParking(t, isSecure, Options{})
			const n = 40
			var clients []net.Conn
			for i := range n {
				clients = append(clients, dialOnly(t, addr))
				if isSecure || i%2 == 0 { // others have not sent anything when they are parked
					request(t, clients[i])
				}
			}
			for range 3 {
				allParked(t, s, n)
				if s.Active() != 0 {
					t.Errorf("%d requests are in progress", s.Active())
				}
				for _, c := range clients {
					request(t, c)
				}
			}
			allParked(t, s, n)
			for _, c := range clients[:n/2] {
				_ = c.Close()
			}
			testutil.Eventually(t, "connections to end whose clients have left", func() bool { return s.Open() == n/2 })
			ctx, cancel := context.WithTimeout(t.Context(), testutil.Patience)
			defer cancel()
			if err := s.Shutdown(ctx); err != nil || s.Open() != 0 {
				t.Errorf("the shutdown: %v; %d connections are left", err, s.Open())
			}
			for _, c := range clients[n/2:] {
				if _, err := c.Read(make([]byte, 1)); err == nil {
					t.Error("a connection goes on after the shutdown")
				}
			}
		})
	}
}

// TestParkedTooLong: a connection that is silent for too long ends while it is parked, also if the client sends parts
// of a record that never becomes whole.
func TestParkedTooLong(t *testing.T) {
	t.Run("silent", func(t *testing.T) {
		s, addr := startParking(t, false, Options{IdleTimeout: 200 * time.Millisecond})
		request(t, dialOnly(t, addr))
		testutil.Eventually(t, "the silent connection to end", func() bool { return s.Open() == 0 })
	})
	t.Run("trickling", func(t *testing.T) {
		s, addr := startParking(t, true, Options{IdleTimeout: 300 * time.Millisecond})
		client := dialOnly(t, addr).(*tls.Conn)
		request(t, client)
		under, over := client.NetConn(), make(chan struct{})
		go func() {
			defer close(over)
			head := []byte{23, 3, 3, 1, 0} // a record of 256 bytes
			for i := 0; ; i++ {
				if i == len(head) {
					head = append(head, 0)
				}
				if _, err := under.Write(head[i : i+1]); err != nil || i == 250 {
					return
				}
				time.Sleep(30 * time.Millisecond)
			}
		}()
		testutil.Eventually(t, "the trickling connection to end", func() bool { return s.Open() == 0 })
		<-over
	})
}

// TestParkedAmidRecord: a request whose record of TLS comes in two parts, with a long silence in between, is served.
func TestParkedAmidRecord(t *testing.T) {
	s, addr := startParking(t, true, Options{})
	nc, err := net.Dial("tcp", strings.TrimPrefix(addr, h1test.SecureScheme))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	_ = nc.SetDeadline(time.Now().Add(testutil.Patience))
	halves := &halving{Conn: nc}
	client := tls.Client(halves, &tls.Config{InsecureSkipVerify: true})
	request(t, client)
	allParked(t, s, 1)
	for _, at := range []int{1, 5, 20} {
		halves.at, halves.between = at, func() { allParked(t, s, 1) }
		request(t, client)
	}
}

// A halving connection sends what is written in two parts.
type halving struct {
	net.Conn
	at      int // the length of the first one
	between func()
}

func (h *halving) Write(p []byte) (int, error) {
	if h.between == nil {
		return h.Conn.Write(p)
	}
	n, err := h.Conn.Write(p[:h.at])
	if err != nil {
		return n, err
	}
	h.between()
	m, err := h.Conn.Write(p[h.at:])
	return n + m, err
}

// TestShutdownWhileParking: however a shutdown meets connections that are about to be parked or come back, none is
// left.
func TestShutdownWhileParking(t *testing.T) {
	for range testutil.Amount(60, 15) {
		s, addr := startParking(t, false, Options{})
		for range 8 {
			go func(c net.Conn) {
				for i := range 50 {
					if _, err := io.WriteString(c, h1test.GetHead+"\r\n"); err != nil {
						return
					}
					if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
						return
					}
					time.Sleep(time.Duration(8+i%5) * time.Millisecond)
				}
			}(dialOnly(t, addr))
		}
		time.Sleep(30 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), testutil.Patience)
		if err := s.Shutdown(ctx); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
}

// TestParkedMemory: a parked connection takes little more than the client's end of it in this process: the heap and the
// stacks of both.
func TestParkedMemory(t *testing.T) {
	const n, most = 500, 4 << 10
	s, addr := startParking(t, false, Options{})
	open := func(n int) {
		for range n {
			request(t, dialOnly(t, addr))
		}
	}
	open(1) // what is made once
	allParked(t, s, 1)
	before := heapAndStacks()
	open(n)
	allParked(t, s, n+1)
	each := (heapAndStacks() - before) / n
	t.Logf("both ends of a connection take %d bytes", each)
	if each > most && !testutil.Race {
		t.Errorf("both ends of a connection take %d bytes, more than %d", each, most)
	}
}

// TestGivingBack: what the stacks of many connections took is given back to the system once they are parked.
func TestGivingBack(t *testing.T) {
	s, addr := startParking(t, false, Options{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range giveBackFor {
		request(t, dialOnly(t, addr))
	}
	allParked(t, s, giveBackFor)
	testutil.Eventually(t, "memory to be given back", func() bool {
		runtime.ReadMemStats(&after)
		return s.givingBack.isUnderWay.Load() && s.givingBack.parked.Load() < giveBackFor &&
			after.NumForcedGC > before.NumForcedGC
	})
}

// heapAndStacks returns the size of the heap and of the stacks of all goroutines.
func heapAndStacks() int64 {
	for range 3 { // pools release their items at the second collection
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
