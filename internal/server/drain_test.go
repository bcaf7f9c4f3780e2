package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/listeners"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/internal/upstream"
)

type drained struct {
	ended int
	err   error
}

func startDrain(s *Server, requests, lasting context.Context) <-chan drained {
	done := make(chan drained, 1)
	go func() {
		n, err := s.Drain(requests, lasting)
		done <- drained{n, err}
	}()
	return done
}

func never() context.Context { return context.Background() }

func gone() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// TestDrainServes: while a request is in progress that began before, others are served, each as the last of its
// connection.
func TestDrainServes(t *testing.T) {
	began, finish := make(chan struct{}), make(chan struct{})
	s, addr := startServer(t, Options{}, func(r *Request) {
		if string(r.Head.Target) == "/slow" {
			close(began)
			<-finish
		}
		reply(r, 200)
	})
	idle, idleReader := h1test.Dial(t, addr)
	h1test.Send(t, idle, h1test.GetHead+"\r\n")
	h1test.ReadAnswer(t, idleReader, false)
	slow, slowReader := h1test.Dial(t, addr)
	h1test.Send(t, slow, "GET /slow HTTP/1.1\r\nHost: gw\r\n\r\n")
	<-began
	done := startDrain(s, never(), gone())
	testutil.Eventually(t, "draining", s.Draining)
	for i := range 3 {
		nc, br := h1test.Dial(t, addr)
		h1test.Send(t, nc, h1test.GetHead+"\r\n")
		if got, closes := h1test.ReadAnswer(t, br, false); got.StatusCode != 200 || !closes {
			t.Errorf("request %d is answered %d, close %v", i, got.StatusCode, closes)
		}
	}
	h1test.Send(t, idle, h1test.GetHead+"\r\n")
	if got, closes := h1test.ReadAnswer(t, idleReader, false); got.StatusCode != 200 || !closes {
		t.Errorf("a request on an older connection is answered %d, close %v", got.StatusCode, closes)
	}
	select {
	case got := <-done:
		t.Errorf("it did not wait: %+v", got)
	default:
	}
	close(finish)
	if got, _ := h1test.ReadAnswer(t, slowReader, false); got.StatusCode != 200 {
		t.Errorf("the request in progress: %d", got.StatusCode)
	}
	if got := <-done; got != (drained{}) {
		t.Errorf("drained with %+v", got)
	}
	if err := s.Shutdown(never()); err != nil {
		t.Error(err)
	}
}

// TestDrainCuts: what is not done in time is cut, and a connection that does nothing is not waited for.
func TestDrainCuts(t *testing.T) {
	began, finish := make(chan struct{}), make(chan struct{})
	defer close(finish)
	s, addr := startServer(t, Options{}, func(*Request) {
		close(began)
		<-finish
	})
	_, idle := h1test.Dial(t, addr)
	nc, br := h1test.Dial(t, addr)
	h1test.Send(t, nc, h1test.GetHead+"\r\n")
	<-began
	if got := <-startDrain(s, gone(), gone()); !errors.Is(got.err, context.Canceled) || got.ended != 0 {
		t.Errorf("drained with %+v", got)
	}
	if rest, err := io.ReadAll(br); len(rest) > 0 || err != nil && !h1test.IsReset(err) {
		t.Errorf("the client got %q, %v", rest, err)
	}
	_ = s.Shutdown(gone())
	if rest, err := io.ReadAll(idle); len(rest) > 0 || err != nil {
		t.Errorf("the idle connection ends with %q, %v", rest, err)
	}
}

// tunnelServer serves tunnels to ends of its own, which never send and never close by themselves.
func tunnelServer(t *testing.T) (s *Server, address string, far <-chan net.Conn) {
	t.Helper()
	ends := make(chan net.Conn, 8)
	s, address = startServer(t, Options{}, func(r *Request) {
		near, far := net.Pipe()
		ends <- far
		r.SendTunnel([]byte("HTTP/1.1 101 Switching Protocols\r\n\r\n"), nil, near, func() { _ = near.Close() })
	})
	return s, address, ends
}

func openTunnel(t *testing.T, address string, ends <-chan net.Conn) (client net.Conn, far net.Conn) {
	t.Helper()
	nc, br := h1test.Dial(t, address)
	h1test.Send(t, nc, h1test.GetHead+"\r\n")
	h1test.Expect(t, br, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
	return nc, <-ends
}

func mustEnd(t *testing.T, who string, r io.Reader) {
	t.Helper()
	if rest, err := io.ReadAll(r); len(rest) > 0 || err != nil && !h1test.IsReset(err) {
		t.Errorf("%s reads %q, %v", who, rest, err)
	}
}

// TestDrainTunnels: a tunnel goes on until its own limit, and no longer, whether its ends take bytes or not. That it is
// ended is no error.
func TestDrainTunnels(t *testing.T) {
	s, address, ends := tunnelServer(t)
	client, far := openTunnel(t, address, ends)
	stuck, _ := openTunnel(t, address, ends) // its other end takes nothing
	go func() { _, _ = stuck.Write(make([]byte, 16<<20)) }()
	limit, end := context.WithCancel(context.Background())
	done := startDrain(s, gone(), limit)
	testutil.Eventually(t, "draining", s.Draining)
	h1test.Send(t, client, "still here")
	h1test.Expect(t, far, "still here")
	late, lateFar := openTunnel(t, address, ends) // a restart refuses no client
	end()
	mustEnd(t, "the client", client)
	mustEnd(t, "the backend", far)
	mustEnd(t, "a late client", late)
	mustEnd(t, "its backend", lateFar)
	if got := <-done; got != (drained{ended: 3}) {
		t.Errorf("drained with %+v", got)
	}
	testutil.Eventually(t, "no connection", func() bool { return s.Open() == 0 })
}

// TestShutdownTunnels: a shutdown does not wait for tunnels at all.
func TestShutdownTunnels(t *testing.T) {
	s, address, ends := tunnelServer(t)
	client, far := openTunnel(t, address, ends)
	if err := s.Shutdown(never()); err != nil {
		t.Error(err)
	}
	mustEnd(t, "the client", client)
	mustEnd(t, "the backend", far)
}

// TestDrainStreams: a stream of events goes on while others are waited for, and ends with the shutdown. What would last
// ends with its limit, and not as a complete answer.
func TestDrainStreams(t *testing.T) {
	for flow, name := range map[Flow]string{Events: "events", Lasting: "a log"} {
		t.Run(name, func(t *testing.T) {
			url, conns := h1test.Driven(t)
			r := newRelay(t, upstream.Config{Endpoints: []string{url}})
			r.flow, r.ended = flow, make(chan error, 1)
			s, addr := r.start(t, Options{})
			nc, br := h1test.Dial(t, addr)
			h1test.Send(t, nc, h1test.GetHead+"\r\n")
			backend, _ := h1test.Accept(t, conns)
			h1test.Send(t, backend, h1test.ChunkedHead+"5\r\nhello\r\n")
			resp, err := http.ReadResponse(br, nil)
			if err != nil {
				t.Fatal(err)
			}
			h1test.Expect(t, resp.Body, "hello")
			got := <-startDrain(s, never(), gone())
			if flow == Events {
				h1test.Send(t, backend, "5\r\nworld\r\n")
				h1test.Expect(t, resp.Body, "world")
				if err := s.Shutdown(never()); err != nil || got != (drained{}) {
					t.Errorf("drained with %+v; the shutdown: %v", got, err)
				}
				if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != nil {
					t.Errorf("then the client reads %q, %v", rest, err)
				}
				return
			}
			if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != io.ErrUnexpectedEOF {
				t.Errorf("then the client reads %q, %v", rest, err)
			}
			if got.err != nil {
				t.Errorf("drained with %+v", got)
			}
			if err := s.Shutdown(never()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDrainUnderLoad: requests that follow each other without an end hold no shutdown up, and none of them is cut.
func TestDrainUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := make(chan struct{})
		s := New(Options{}, func(r *Request) {
			began <- struct{}{}
			time.Sleep(2 * time.Second)
			reply(r, 200)
		})
		var listener sync.Mutex
		isClosed := false
		begin := func() net.Conn {
			listener.Lock()
			defer listener.Unlock()
			if isClosed {
				return nil
			}
			client, ours := net.Pipe()
			go s.newConn(ours, listeners.Any(nil).Socket("")).serve()
			h1test.Send(t, client, h1test.GetHead+"\r\n")
			<-began
			return client
		}
		var clients sync.WaitGroup
		for range 3 {
			time.Sleep(700 * time.Millisecond)
			clients.Go(func() {
				for client := begin(); client != nil; client = begin() {
					if got, err := io.ReadAll(client); !strings.HasPrefix(string(got), "HTTP/1.1 200 ") || err != nil {
						t.Errorf("answered %q, %v", got, err)
					}
				}
			})
		}
		time.Sleep(time.Second)
		start := time.Now()
		limit, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		s.BeginDrain()
		time.Sleep(2 * time.Second) // each answer says goodbye from now on
		if n, err := s.Drain(limit, gone()); n != 0 || err != nil {
			t.Errorf("drained with %d, %v", n, err)
		}
		listener.Lock()
		isClosed = true
		listener.Unlock()
		if err := s.Shutdown(limit); err != nil {
			t.Errorf("the shutdown: %v", err)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("it took %v, in the time of the test", took)
		}
		clients.Wait()
	})
}
