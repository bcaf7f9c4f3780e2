package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/listeners"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// startSeveral serves listeners, each of their addresses on a port of its own, and answers with the name of the
// listener that takes a request.
func startSeveral(t *testing.T, all ...*listeners.Listener) (s *Server, addrs map[string]string) {
	t.Helper()
	set, errs := listeners.New(all)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	s = New(Options{Listeners: set}, func(r *Request) {
		peer := r.Peer()
		l, taking := s.settings.Load().Listeners.Take(peer.At, peer.Made, peer.HasName, r.Head.Host)
		if taking != listeners.Taken {
			reply(r, map[listeners.Taking]int{listeners.Misdirected: 421, listeners.Unknown: 404}[taking])
			return
		}
		var m message.Response
		m.StartBody(200, "text/plain", []byte(l.Name))
		r.Send(&m)
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
	})
	addrs = map[string]string{}
	for _, a := range set.Addresses() {
		addrs[a] = serveOn(t, s, a)
	}
	return s, addrs
}

func serveOn(t *testing.T, s *Server, address string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := s.ServeOn(address, ln); err != nil {
			t.Errorf("ServeOn %s: %v", address, err)
		}
	}()
	return ln.Addr().String()
}

// coalescing is a client of HTTP/2 that uses one connection for all hosts, as browsers do for hosts of one certificate.
func coalescing(t *testing.T, addr string, config *tls.Config) http.RoundTripper {
	t.Helper()
	config.NextProtos, config.InsecureSkipVerify = []string{"h2"}, true
	nc, err := tls.Dial("tcp", addr, config)
	if err != nil {
		t.Fatal(err)
	}
	dialed := make(chan net.Conn, 1)
	dialed <- nc
	close(dialed)
	client := &http.Transport{ForceAttemptHTTP2: true, DialTLSContext: func(context.Context, string, string) (net.Conn,
		error) {
		if nc, ok := <-dialed; ok {
			return nc, nil
		}
		return nil, errors.New("the one connection is over")
	}}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// ask sends a request for a host, and returns the code, and the name of the listener.
func ask(t *testing.T, with http.RoundTripper, host string) string {
	t.Helper()
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://the-connection/", nil)
	r.Host = host
	answer, err := with.RoundTrip(r)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	body, _ := io.ReadAll(answer.Body)
	return strings.TrimSpace(fmt.Sprint(answer.StatusCode, " ", string(body)))
}

// TestCoalescing: on a connection of HTTP/2 each request is judged by its own Host. One for a listener that asks for
// certificates comes by a connection of that listener, or not at all; a ticket of another listener does not help.
func TestCoalescing(t *testing.T) {
	open, safe := h1test.NewTLS(t, credentials.ServerFiles{HasHTTP2: true}),
		h1test.NewTLS(t, credentials.ServerFiles{HasHTTP2: true, ClientAuth: tls.RequireAndVerifyClientCert})
	_, addrs := startSeveral(t,
		&listeners.Listener{Name: "open", Routes: 1, Addresses: []string{":443"}, TLS: open.Server,
			Hosts: []string{"open.example", "*.open.example"}},
		&listeners.Listener{Name: "safe", Routes: 2, Addresses: []string{":443"}, TLS: safe.Server,
			Hosts: []string{"safe.example"}, Clients: "Require"},
	)
	tickets := tls.NewLRUClientSessionCache(8)
	conn := coalescing(t, addrs[":443"], &tls.Config{ServerName: "open.example", ClientSessionCache: tickets})
	for host, want := range map[string]string{
		"open.example": "200 open", "a.b.open.example": "200 open", "safe.example": "421", "SAFE.example.:443": "421",
		"other.example": "404",
	} {
		if got := ask(t, conn, host); got != want {
			t.Errorf("%s: got %s, want %s", host, got, want)
		}
	}
	if got := ask(t, conn, "open.example"); got != "200 open" {
		t.Errorf("then: %s", got)
	}
	// The session of the open listener, under the name of the other.
	session, found := tickets.Get("open.example")
	if !found {
		t.Fatal("no ticket came")
	}
	again, err := tls.Dial("tcp", addrs[":443"], &tls.Config{ServerName: "open.example", InsecureSkipVerify: true,
		ClientSessionCache: tickets, NextProtos: []string{"h2"}})
	if err != nil || !again.ConnectionState().DidResume {
		t.Errorf("the listener's own session is not resumed: %v", err)
	}
	_ = again.Close()
	tickets.Put("safe.example", session)
	nc, err := tls.Dial("tcp", addrs[":443"], &tls.Config{ServerName: "safe.example", InsecureSkipVerify: true,
		ClientSessionCache: tickets, NextProtos: []string{"h2"}})
	if err == nil {
		_ = nc.SetDeadline(time.Now().Add(testutil.Patience))
		_, err = nc.Read(make([]byte, 1))
		_ = nc.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("without a certificate: %v", err)
	}
	shown := safe.Clients.Client(t, "alice", nil).TLS(t)
	conn = coalescing(t, addrs[":443"], &tls.Config{ServerName: "safe.example", Certificates: []tls.Certificate{shown}})
	for host, want := range map[string]string{"safe.example": "200 safe", "open.example": "421"} {
		if got := ask(t, conn, host); got != want {
			t.Errorf("%s: got %s, want %s", host, got, want)
		}
	}
	if _, err := tls.Dial("tcp", addrs[":443"],
		&tls.Config{ServerName: "other.example", InsecureSkipVerify: true}); err == nil ||
		!strings.Contains(err.Error(), "unrecognized name") {
		t.Errorf("a name that no listener takes: %v", err)
	}
}

// TestListenersChange: addresses come and go while the server runs, and with them the connections that were made for
// them, after the requests in progress.
func TestListenersChange(t *testing.T) {
	first, second := h1test.NewTLS(t, credentials.ServerFiles{HasHTTP2: true}),
		h1test.NewTLS(t, credentials.ServerFiles{HasHTTP2: true})
	one := func(name, address string, with *h1test.TLS, clients string, hosts ...string) *listeners.Listener {
		return &listeners.Listener{Name: name, Routes: 1, Addresses: []string{address}, TLS: with.Server,
			Clients: clients, Hosts: hosts}
	}
	kept, changed, gone := one("kept", ":1", first, ""), one("changed", ":1", first, "", "changed.example"),
		one("gone", ":2", first, "")
	s, addrs := startSeveral(t, kept, changed, gone)
	on := map[string]http.RoundTripper{}
	for name, at := range map[string]string{"kept.example": ":1", "changed.example": ":1", "gone.example": ":2"} {
		on[name] = coalescing(t, addrs[at], &tls.Config{ServerName: name})
		if got := ask(t, on[name], name); !strings.HasPrefix(got, "200 ") {
			t.Fatalf("%s: %s", name, got)
		}
	}
	classic, classicReader := h1test.Dial(t, h1test.SecureScheme+addrs[":2"])
	h1test.Send(t, classic, h1test.GetHead+"\r\n")
	h1test.ReadAnswer(t, classicReader, false)

	set, errs := listeners.New([]*listeners.Listener{one("kept", ":1", second, ""),
		one("changed", ":1", second, "Request", "changed.example"), one("new", ":3", second, "")})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	o := *s.settings.Load()
	o.Listeners = set
	s.Configure(o.Options)
	s.Leave(":2")
	addrs[":3"] = serveOn(t, s, ":3")

	if got := ask(t, on["kept.example"], "kept.example"); got != "200 kept" {
		t.Errorf("the listener that stays: %s", got)
	}
	testutil.Eventually(t, "connections to end", func() bool { return s.Open() == 1 })
	if rest, err := io.ReadAll(classicReader); len(rest) > 0 || err != nil {
		t.Errorf("the idle connection of a listener that is gone: %q, %v", rest, err)
	}
	if nc, err := net.Dial("tcp", addrs[":2"]); err == nil {
		_ = nc.Close()
		t.Error("the address that is left takes connections")
	}
	for name, at := range map[string]string{"new.example": ":3", "changed.example": ":1"} {
		want := "200 " + strings.TrimSuffix(name, ".example")
		if got := ask(t, coalescing(t, addrs[at], &tls.Config{ServerName: name}), name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// TestRetiredWhileBusy: the request in progress on a listener that goes is answered, and the answer says that it is the
// last.
func TestRetiredWhileBusy(t *testing.T) {
	set, _ := listeners.New([]*listeners.Listener{{Name: "a", Addresses: []string{":1"}}})
	next, _ := listeners.New([]*listeners.Listener{{Name: "a", Addresses: []string{":2"}}})
	begun, goOn := make(chan bool), make(chan bool)
	s := New(Options{Listeners: set}, func(r *Request) {
		begun <- true
		<-goOn
		reply(r, http.StatusOK)
	})
	addr := serveOn(t, s, ":1")
	nc, br := h1test.Dial(t, addr)
	h1test.Send(t, nc, h1test.GetHead+"\r\n")
	<-begun
	o := *s.settings.Load()
	o.Listeners = next
	s.Configure(o.Options)
	s.Leave(":1")
	goOn <- true
	if got, closes := h1test.ReadAnswer(t, br, false); got.StatusCode != 200 || !closes {
		t.Errorf("answered %d, closes %v", got.StatusCode, closes)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestLeaveBeforeServe: an address that is left before it is served is not served.
func TestLeaveBeforeServe(t *testing.T) {
	s := New(Options{}, nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve := s.Attach("", ln)
	s.Leave("")
	if err := serve(); err != nil {
		t.Errorf("serve: %v", err)
	}
	if nc, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		_ = nc.Close()
		t.Error("the address takes connections")
	}
}
