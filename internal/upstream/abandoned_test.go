package upstream

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/presence"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// serveHTTP1 serves HTTP/1.1 by net/http without TLS.
func serveHTTP1(t testing.TB, h http.Handler) Config {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return Config{Endpoints: []string{s.URL}}
}

// An abandonedCase is a request whose client leaves.
type abandonedCase struct {
	path, body string
	upload     message.Upload
	whole      int64
	runsOn     bool
	// isSent is set if the request may have reached the backend when the client leaves.
	isSent bool
	// hasLeft is set if the client leaves before.
	hasLeft bool
	want    string // the kind of the failure; "" is an answer
}

// TestAbandoned: a round trip ends when its client leaves, whatever it waits for, and the backend learns of it. The
// slot of the connection is free again, no failure is noted of the backend, and the next request is answered. An
// exchange that runs on is not cancelled, but nothing is sent for a client that has left.
func TestAbandoned(t *testing.T) {
	for protocol, serve := range map[string]func(testing.TB, http.Handler) Config{
		"HTTP/1.1": serveHTTP1, "HTTP/2": servePlain, "HTTP/2 over TLS": serveTLS,
	} {
		for name, test := range map[string]abandonedCase{
			"head":              {path: "/silent", isSent: true, want: "Abandoned"},
			"head after a body": {path: "/silent", body: "{}", isSent: true, want: "Abandoned"},
			"head after a large body": {
				path: "/silent", body: strings.Repeat("x", 100<<10), isSent: true, want: "Abandoned",
			},
			"the body is not taken": {path: "/full", body: strings.Repeat("x", 32<<20), isSent: true,
				want: "Abandoned"},
			"upload": {
				path: "/silent", upload: &stuckUpload{text: make([]byte, 50), interrupted: make(chan struct{})},
				isSent: true, want: "Abandoned",
			},
			"head after an upload": {path: "/silent", upload: &textUpload{parts: []string{"abc"}, length: 3},
				isSent: true, want: "Abandoned"},
			"body":                 {path: "/part", whole: 1 << 20, isSent: true, want: "Abandoned"},
			"body of known length": {path: "/known", whole: 1 << 20, isSent: true, want: "Abandoned"},
			"before":               {path: "/silent", hasLeft: true, want: "Abandoned"},
			"runs on":              {path: "/late", body: "{}", runsOn: true},
			"runs on, before":      {path: "/late", body: "{}", runsOn: true, hasLeft: true, want: "Abandoned"},
		} {
			t.Run(protocol+"/"+name, func(t *testing.T) {
				t.Parallel()
				testAbandoned(t, serve, &test)
			})
		}
	}
}

func testAbandoned(t *testing.T, serve func(testing.TB, http.Handler) Config, test *abandonedCase) {
	began, ended, release := make(chan struct{}, 10), make(chan struct{}, 10), make(chan struct{})
	config := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			return
		case "/full":
			_, _ = io.ReadFull(r.Body, make([]byte, 1000))
		case "/known":
			w.Header().Set("Content-Length", "100000")
			fallthrough
		case "/part":
			_, _ = w.Write([]byte(`{"a":`))
			w.(http.Flusher).Flush()
		case "/late":
			_, _ = io.ReadAll(r.Body)
			began <- struct{}{}
			<-release
			return
		default:
			if test.upload != nil {
				_, _ = io.ReadFull(r.Body, make([]byte, 3))
				began <- struct{}{}
			}
			// net/http looks for the end of the connection behind the body alone.
			if _, err := io.ReadAll(r.Body); err != nil {
				ended <- struct{}{}
				return
			}
		}
		if test.upload == nil {
			began <- struct{}{}
		}
		if r.URL.Path == "/full" {
			<-release // what is not read hides the end
			ended <- struct{}{}
			return
		}
		<-r.Context().Done()
		ended <- struct{}{}
	}))
	var failures atomic.Int32
	config.OnError = func(*Error) { failures.Add(1) }
	client := newClient(t, config)
	var who presence.Client
	req := request("POST", test.path, test.body)
	if u := test.upload; u != nil {
		req.Head = []byte("POST " + test.path + " HTTP/1.1\r\nHost: b\r\nContent-Length: " +
			map[int64]string{3: "3", 100: "100"}[u.Length()] + "\r\n\r\n")
	}
	req.Upload, req.Whole, req.Client, req.RunsOn = test.upload, test.whole, &who, test.runsOn
	if test.hasLeft {
		who.Leave()
	}
	var resp message.Response
	done := make(chan error)
	go func() { done <- client.Do(req, &resp) }()
	if !test.hasLeft {
		<-began
		time.Sleep(5 * time.Millisecond) // for the part of an answer to arrive
		who.Leave()
	}
	if test.runsOn && !test.hasLeft {
		select {
		case err := <-done:
			t.Fatalf("the exchange ended with %v", err)
		case <-time.After(20 * time.Millisecond):
		}
		close(release)
	}
	err := <-done
	if !test.runsOn || test.hasLeft {
		close(release) // no earlier: an answer could be first
	}
	failure, _ := errors.AsType[*Error](err)
	if got := kindOf(err); got != test.want || failure != nil && failure.Sent != test.isSent {
		t.Errorf("the failure is %q, %+v", got, failure)
	}
	if test.want != "" && test.isSent {
		<-ended
	}
	if len(began) > 0 || failures.Load() > 0 {
		t.Errorf("%d requests began, %d failures of the backend are noted", len(began), failures.Load())
	}
	resp.Close()
	if err := client.Do(request("GET", "/", ""), &resp); err != nil {
		t.Errorf("the next request: %v", err)
	}
	testutil.Eventually(t, "all connections to be idle", func() bool {
		open, idle := client.Conns()
		return open == idle && open <= 1
	})
}

// TestAbandonedQueue: a request that waits for a connection, or for one to be made, is over when its client leaves, and
// takes nothing from those behind it.
func TestAbandonedQueue(t *testing.T) {
	t.Run("queue", func(t *testing.T) {
		release := make(chan struct{})
		config := serveHTTP1(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
		config.Limits = Limits{Conns: 1, Pending: 100, Wait: time.Minute}
		config.Timeouts.Answer = time.Minute
		client := newClient(t, config)
		first := make(chan error)
		go func() { first <- client.Do(request("GET", "/", ""), new(message.Response)) }()
		testutil.Eventually(t, "the connection to be in use",
			func() bool { open, idle := client.Conns(); return open == 1 && idle == 0 })
		const waiting = 50
		ended := make(chan error)
		clients := make([]presence.Client, waiting)
		for i := range clients {
			go func() {
				req := request("GET", "/", "")
				req.Client = &clients[i]
				ended <- client.Do(req, new(message.Response))
			}()
		}
		queued := func() int {
			client.pool.mu.Lock()
			defer client.pool.mu.Unlock()
			return client.pool.queue.length
		}
		testutil.Eventually(t, "all to wait", func() bool { return queued() == waiting })
		for i := range clients[1:] {
			clients[i].Leave()
			if err := <-ended; kindOf(err) != "Abandoned" {
				t.Errorf("got %v", err)
			}
		}
		if n := queued(); n != 1 {
			t.Errorf("%d wait", n)
		}
		close(release)
		if err := errors.Join(<-first, <-ended); err != nil {
			t.Error(err)
		}
	})
	for name, config := range map[string]Config{
		"TLS":    {Endpoints: []string{"https://"}},
		"HTTP/2": {Endpoints: []string{"http://"}, Protocol: HTTP2},
	} {
		t.Run("handshake of "+name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = ln.Close() }()
			accepted := make(chan net.Conn, 1)
			go func() {
				if nc, err := ln.Accept(); err == nil {
					accepted <- nc // and says nothing
				}
			}()
			config.Endpoints[0] += ln.Addr().String()
			config.Timeouts.Connect = time.Minute
			client := newClient(t, config)
			var who presence.Client
			req := request("GET", "/", "")
			req.Client = &who
			done := make(chan error)
			go func() { done <- client.Do(req, new(message.Response)) }()
			nc := <-accepted
			who.Leave()
			if err := <-done; kindOf(err) != "Abandoned" {
				t.Errorf("got %v", err)
			}
			_, _ = io.ReadAll(nc)
			if open, _ := client.Conns(); open != 0 {
				t.Errorf("%d connections are open", open)
			}
		})
	}
}

// TestAbandonedLate: a client that leaves at any moment of its round trips costs the others nothing.
func TestAbandonedLate(t *testing.T) {
	for name, serve := range map[string]func(testing.TB, http.Handler) Config{"HTTP/1.1": serveHTTP1,
		"HTTP/2": servePlain} {
		t.Run(name, func(t *testing.T) {
			client := newClient(t,
				serve(t,
					http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })))
			for i := range 300 {
				var who presence.Client
				req := request("GET", "/", "")
				req.Client, req.Whole = &who, 1000
				left := make(chan struct{})
				go func() {
					time.Sleep(time.Duration(i) * time.Microsecond)
					who.Leave()
					close(left)
				}()
				var resp message.Response
				if err := client.Do(req, &resp); err != nil && kindOf(err) != "Abandoned" {
					t.Fatalf("abandoned: %v", err)
				}
				<-left
				if err := client.Do(request("POST", "/", "{}"), &resp); err != nil || string(resp.Body()) != "ok" {
					t.Fatalf("the next: %v, %q", err, resp.Body())
				}
			}
		})
	}
}
