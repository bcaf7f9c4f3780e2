package server

import (
	"crypto/tls"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/h2/h2test"
	"github.com/admission-gateway/gateway/internal/listeners"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// reset makes the end of a connection a reset.
func reset(nc net.Conn) {
	if over, ok := nc.(*tls.Conn); ok {
		nc = over.NetConn()
	}
	_ = nc.(*net.TCPConn).SetLinger(0)
	_ = nc.Close()
}

// halfClosed returns listeners that serve clients which have closed their end.
func halfClosed(t *testing.T, l *listeners.Listener) *listeners.Set {
	t.Helper()
	l.Addresses, l.ServesHalf = []string{""}, true
	s, err := listeners.New([]*listeners.Listener{l})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWaitEndsWithClient: whatever a request waits for, the wait ends when its client leaves, in each way in which a
// client can, and goes on if it does not.
func TestWaitEndsWithClient(t *testing.T) {
	secure := h1test.NewTLS(t, credentials.ServerFiles{}).Server
	const get = h1test.GetHead + "\r\n"
	for name, test := range map[string]struct {
		servesHalf, isSecure bool
		send                 string // by HTTP/1.1
		leave                func(net.Conn)
		stays                bool
	}{
		"FIN":                 {send: get, leave: func(nc net.Conn) { _ = nc.(*net.TCPConn).CloseWrite() }},
		"close":               {send: get, leave: func(nc net.Conn) { _ = nc.Close() }},
		"FIN behind requests": {send: get + get + get, leave: func(nc net.Conn) { _ = nc.(*net.TCPConn).CloseWrite() }},
		"RST":                 {send: get, leave: reset},
		"RST behind requests": {send: get + get, leave: reset},
		"FIN that is served": {servesHalf: true, send: get,
			leave: func(nc net.Conn) { _ = nc.(*net.TCPConn).CloseWrite() }, stays: true},
		"RST where a FIN is served": {servesHalf: true, send: get, leave: reset},
		"TLS: close":                {isSecure: true, send: get, leave: func(nc net.Conn) { _ = nc.Close() }},
		"TLS: FIN alone": {isSecure: true, send: get,
			leave: func(nc net.Conn) { _ = nc.(*tls.Conn).NetConn().(*net.TCPConn).CloseWrite() }},
		"TLS: close_notify alone": {isSecure: true, send: get,
			leave: func(nc net.Conn) { _ = nc.(*tls.Conn).CloseWrite() }},
		"TLS: close_notify that is served": {
			servesHalf: true, isSecure: true, send: get, leave: func(nc net.Conn) { _ = nc.(*tls.Conn).CloseWrite() },
			stays: true,
		},
		"TLS: RST":       {isSecure: true, send: get, leave: reset},
		"pipelined":      {send: get + get, leave: func(net.Conn) {}, stays: true},
		"TLS: pipelined": {isSecure: true, send: get + get, leave: func(net.Conn) {}, stays: true},
		"TLS: later requests": {isSecure: true, send: get, leave: func(nc net.Conn) { _, _ = nc.Write([]byte(get)) },
			stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var o Options
			if test.isSecure {
				o.Listeners = listeners.Any(secure)
			}
			if test.servesHalf && test.isSecure {
				o.Listeners = halfClosed(t, &listeners.Listener{TLS: secure})
			} else if test.servesHalf {
				o.Listeners = halfClosed(t, &listeners.Listener{})
			}
			began, left, goOn := make(chan struct{}, 9), make(chan struct{}, 9), make(chan struct{})
			s, addr := startServer(t, o, func(r *Request) {
				wait := r.Client.Signal()
				defer wait.Done()
				began <- struct{}{}
				select {
				case <-wait.Left():
					left <- struct{}{}
				case <-goOn:
				}
				echo(r)
			})
			if !test.isSecure {
				addr = strings.TrimPrefix(addr, h1test.SecureScheme)
			}
			nc, br := h1test.Dial(t, addr)
			h1test.Send(t, nc, test.send)
			<-began
			test.leave(nc)
			if !test.stays {
				<-left
				testutil.Eventually(t, "the connection to end", func() bool { return s.Open() == 0 })
				return
			}
			select {
			case <-left:
				t.Error("the wait ended")
			case <-time.After(10 * defaultLook):
			}
			close(goOn)
			for range strings.Count(test.send, "GET ") {
				if a, _ := h1test.ReadAnswer(t, br, false); a.StatusCode != 200 {
					t.Errorf("answered %d", a.StatusCode)
				}
			}
		})
	}
	for name, leave := range map[string]func(*h2test.Client){
		"RST_STREAM":      func(c *h2test.Client) { _ = c.WriteRSTStream(1, http2.ErrCodeCancel) },
		"HTTP/2: close":   func(c *h2test.Client) { _ = c.Conn.Close() },
		"HTTP/2: reset":   func(c *h2test.Client) { reset(c.Conn) },
		"HTTP/2: GOAWAY":  func(c *h2test.Client) { _ = c.WriteGoAway(0, http2.ErrCodeNo, nil); _ = c.Conn.Close() },
		"HTTP/2: a fault": func(c *h2test.Client) { _ = c.WriteWindowUpdate(1, 1<<31-1) },
	} {
		t.Run(name, func(t *testing.T) {
			began, left := make(chan struct{}), make(chan struct{})
			_, addr := startServer(t, Options{}, func(r *Request) {
				wait := r.Client.Signal()
				defer wait.Done()
				close(began)
				<-wait.Left()
				close(left)
			})
			c := h2test.Dial(t, addr)
			c.Head(t, 1, true, h2test.Get("/")...)
			<-began
			leave(c)
			<-left
		})
	}
}

// TestClientStays: requests that are answered quickly and slowly, on one connection, are each the request of a client
// that waits.
func TestClientStays(t *testing.T) {
	var served, alone atomic.Int32
	_, addr := startServer(t, Options{}, func(r *Request) {
		if served.Add(1)%3 == 0 && r.Client.Sleep(4*defaultLook) != nil {
			alone.Add(1)
		}
		echo(r)
	})
	nc, br := h1test.Dial(t, addr)
	const requests = 12
	for range requests {
		h1test.Send(t, nc, h1test.GetHead+"\r\n")
		if a, _ := h1test.ReadAnswer(t, br, false); a.StatusCode != 200 {
			t.Fatalf("answered %d", a.StatusCode)
		}
	}
	if served.Load() != requests || alone.Load() != 0 {
		t.Errorf("%d served, %d abandoned", served.Load(), alone.Load())
	}
}

// TestDisconnectPollerRests: the poller ends when no request is served, begins again with the next one, and keeps no
// connection that has ended, is parked, or has become one of HTTP/2.
func TestDisconnectPollerRests(t *testing.T) {
	s, addr := startChanged(t, Options{}, echo, func(s *Server) {
		s.disconnects.every = time.Millisecond
		s.parkAfter = 30 * time.Millisecond
	})
	count := func() int {
		s.disconnects.mu.Lock()
		defer s.disconnects.mu.Unlock()
		return len(s.disconnects.conns)
	}
	nc, br := h1test.Dial(t, addr)
	for range 3 {
		h1test.Send(t, nc, h1test.GetHead+"\r\n")
		if a, _ := h1test.ReadAnswer(t, br, false); a.StatusCode != 200 {
			t.Fatalf("answered %d", a.StatusCode)
		}
		testutil.Eventually(t, "the poller to rest", func() bool { return !s.disconnects.isRunning.Load() })
		testutil.Eventually(t, "the connection to be parked", func() bool { return count() == 0 })
	}
	second, secondReader := h1test.Dial(t, addr)
	h1test.Send(t, second, h1test.GetHead+"\r\n")
	h1test.ReadAnswer(t, secondReader, false)
	_ = second.Close()
	c := h2test.Dial(t, addr)
	c.Head(t, 1, true, h2test.Get("/")...)
	c.Read(t, 1)
	testutil.Eventually(t, "no connection to be watched", func() bool { return count() == 0 })
}
