package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/upstream"
	"github.com/admission-gateway/gateway/internal/wire"
)

const getHead = "GET /v2/orders HTTP/1.1\r\nHost: gw\r\n"

func TestDeadlines(t *testing.T) {
	const short = 100 * time.Millisecond
	for _, c := range []struct {
		name    string
		options serverOptions
		send    string
		trickle string // sent again and again until the connection ends
		code    int    // of the answer; 0 for none
	}{
		{"no request", serverOptions{IdleTimeout: short}, "", "", 0},
		{"idle after a request", serverOptions{IdleTimeout: 10 * short}, getHead + "\r\n", "", 0},
		{"half a head", serverOptions{HeadTimeout: short}, "GET /v2/orders HT", "", 408},
		{"head that trickles in", serverOptions{HeadTimeout: short}, getHead, "X-A: 1\r\n", 408},
		{"half a body", serverOptions{BodyTimeout: short}, postHead + "Content-Length: 9\r\n\r\n{", "", 408},
		{"body that trickles in", serverOptions{BodyTimeout: short}, postHead + "Content-Length: 999999\r\n\r\n{", " ", 408},
		{"half a chunk", serverOptions{BodyTimeout: short}, postHead + "Transfer-Encoding: chunked\r\n\r\n7\r\n{", "", 408},
		{"chunks that trickle in", serverOptions{BodyTimeout: short}, postHead + "Transfer-Encoding: chunked\r\n\r\n", "1\r\n \r\n", 408},
		{"chunk size that trickles in", serverOptions{BodyTimeout: short}, postHead + "Transfer-Encoding: chunked\r\n\r\n1;", "a", 408},
	} {
		t.Run(c.name, func(t *testing.T) {
			backend := newRecorder(t)
			r := newRelay(t, upstream.Config{Endpoints: []string{backend.url()}})
			_, addr := startServer(t, c.options, r.handle)
			nc, br := dial(t, addr)
			send(t, nc, c.send)
			served := strings.HasSuffix(c.send, "\r\n\r\n") && c.send[0] == 'G'
			if served {
				readAnswer(t, br, false)
				backend.take()
			}
			if c.trickle != "" {
				go func() {
					for {
						if _, err := io.WriteString(nc, c.trickle); err != nil {
							return
						}
						time.Sleep(short / 10)
					}
				}()
			}
			if c.code != 0 {
				if got, closes := readAnswer(t, br, false); got.StatusCode != c.code || !closes {
					t.Errorf("answered %d, close %v", got.StatusCode, closes)
				}
			}
			if rest, err := io.ReadAll(br); len(rest) > 0 || err != nil && !isReset(err) {
				t.Errorf("then came %q, %v", rest, err)
			}
			if got := backend.take(); got != "" {
				t.Errorf("the backend got %q", got)
			}
		})
	}
}

// What peers that are trusted say of the client is kept, and underscores are
// treated as set.
func TestSettings(t *testing.T) {
	identity := "X-Remote-User: a\r\nImpersonate-User: b\r\nX-Forwarded-For: 1.1.1.1\r\nX-Forwarded-Proto: https\r\n"
	for _, c := range []struct {
		name    string
		options serverOptions
		send    string
		want    string
	}{
		{
			"trusted peer", serverOptions{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, identity,
			"X-Remote-User: a\r\nImpersonate-User: b\r\nX-Forwarded-Proto: https\r\nX-Forwarded-For: 1.1.1.1, 127.0.0.1\r\nX-Forwarded-Host: gw\r\nVia: 1.1 admission-gateway\r\n\r\n",
		},
		{
			"trusted peer, headers that Connection names", serverOptions{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
			"Connection: X-Forwarded-For\r\nConnection: x-remote-user\r\n" + identity,
			"Impersonate-User: b\r\nX-Forwarded-Proto: https\r\nX-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Host: gw\r\nVia: 1.1 admission-gateway\r\n\r\n",
		},
		{"underscores dropped", serverOptions{Underscores: wire.DropUnderscores}, "X_Remote_User: a\r\nA: b\r\n", "A: b\r\n" + ourLines + "\r\n"},
		{"underscores passed", serverOptions{Underscores: wire.PassUnderscores}, "a_b: a\r\nA: b\r\n", "a_b: a\r\nA: b\r\n" + ourLines + "\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			backend := newRecorder(t)
			r := newRelay(t, upstream.Config{Endpoints: []string{backend.url()}})
			_, addr := startServer(t, c.options, r.handle)
			nc, br := dial(t, addr)
			send(t, nc, getHead+c.send+"\r\n")
			if got, _ := readAnswer(t, br, false); got.StatusCode != 200 {
				t.Fatalf("answered %d %s", got.StatusCode, got.body)
			}
			if got := backend.take(); got != getHead+c.want {
				t.Errorf("the backend got\n%q\nwant\n%q", got, getHead+c.want)
			}
		})
	}
}

// A body that the handler does not want ends the connection, unless it is
// there already and is skipped; the client can read the answer in any case.
func TestUnreadBody(t *testing.T) {
	_, addr := startServer(t, serverOptions{}, func(ctx *fasthttp.RequestCtx, c *conn) {
		c.ownAnswer(ctx)
		ctx.Response.SetStatusCode(429)
	})
	nc, br := dial(t, addr)
	send(t, nc, postHead+"Content-Length: 7\r\n\r\n"+body7+getHead+"\r\n")
	for range 2 {
		if got, closes := readAnswer(t, br, false); got.StatusCode != 429 || closes || got.Header.Get("Date") == "" {
			t.Errorf("answered %d, close %v, %v", got.StatusCode, closes, got.Header)
		}
	}
	for _, c := range []struct{ framing, body string }{
		{"Content-Length: 7\r\nExpect: 100-continue\r\n", ""},
		{"Content-Length: 99999999\r\n", strings.Repeat("a", 200_000)},
		{"Transfer-Encoding: chunked\r\n", "7\r\n" + body7 + "\r\n0\r\n\r\n" + getHead + "\r\n"},
	} {
		nc, br := dial(t, addr)
		send(t, nc, postHead+c.framing+"\r\n"+c.body)
		if got, closes := readAnswer(t, br, false); got.StatusCode != 429 || !closes {
			t.Errorf("answered %d, close %v", got.StatusCode, closes)
		}
		if rest, err := io.ReadAll(br); len(rest) > 0 || err != nil {
			t.Errorf("then came %q, %v", rest, err)
		}
	}
}

func TestPanic(t *testing.T) {
	var log bytes.Buffer
	o := serverOptions{
		Log: slog.New(slog.NewTextHandler(&log, nil)),
		Panicked: func(ctx *fasthttp.RequestCtx, _ *conn, err *status.Error) {
			ctx.Response.SetStatusCode(int(err.ErrStatus.Code))
			ctx.Response.SetBody(status.AppendJSON(nil, &err.ErrStatus))
		},
	}
	_, addr := startServer(t, o, func(*fasthttp.RequestCtx, *conn) { panic("secret") })
	nc, br := dial(t, addr)
	send(t, nc, getHead+"\r\n")
	if got, closes := readAnswer(t, br, false); got.StatusCode != 500 || !closes || strings.Contains(string(got.body), "secret") {
		t.Errorf("answered %d, close %v, %s", got.StatusCode, closes, got.body)
	}
	if !strings.Contains(log.String(), "secret") || !strings.Contains(log.String(), "TestPanic") {
		t.Errorf("the log says %s", log.String())
	}
}

// While it drains the server serves, and each answer ends its connection. A
// shutdown closes what is idle and waits for what is not.
func TestDrain(t *testing.T) {
	began, finish := make(chan struct{}), make(chan struct{})
	backend := newRecorder(t)
	backend.reply = func(_ int, head, _ string) (string, bool) {
		if strings.HasPrefix(head, "GET /slow") {
			close(began)
			<-finish
		}
		return smallReply, true
	}
	r := newRelay(t, upstream.Config{Endpoints: []string{backend.url()}})
	s, addr := startServer(t, serverOptions{}, r.handle)

	idle, idleReader := dial(t, addr)
	send(t, idle, getHead+"\r\n")
	readAnswer(t, idleReader, false)
	_, fresh := dial(t, addr)
	slow, slowReader := dial(t, addr)
	send(t, slow, "GET /slow HTTP/1.1\r\nHost: gw\r\n\r\n")
	<-began
	if s.Draining() {
		t.Error("the server drains unasked")
	}
	s.Drain()
	if !s.Draining() {
		t.Error("the server does not drain")
	}
	nc, br := dial(t, addr)
	send(t, nc, getHead+"\r\n")
	if got, closes := readAnswer(t, br, false); got.StatusCode != 200 || !closes {
		t.Errorf("while draining: %d, close %v", got.StatusCode, closes)
	}

	done := make(chan error)
	go func() { done <- s.Shutdown(context.Background()) }()
	for _, r := range []io.Reader{idleReader, fresh} {
		if rest, err := io.ReadAll(r); len(rest) > 0 || err != nil {
			t.Errorf("an idle connection ends with %q, %v", rest, err)
		}
	}
	select {
	case err := <-done:
		t.Errorf("the shutdown did not wait: %v", err)
	default:
	}
	close(finish)
	if got, closes := readAnswer(t, slowReader, false); got.StatusCode != 200 || !closes {
		t.Errorf("the request in progress: %d, close %v", got.StatusCode, closes)
	}
	if err := <-done; err != nil {
		t.Errorf("the shutdown: %v", err)
	}
	if n := s.open(); n != 0 {
		t.Errorf("%d connections are open", n)
	}
}

// What is not done in time is cut.
func TestShutdownCuts(t *testing.T) {
	began, finish := make(chan struct{}), make(chan struct{})
	s, addr := startServer(t, serverOptions{}, func(*fasthttp.RequestCtx, *conn) {
		close(began)
		<-finish
	})
	nc, br := dial(t, addr)
	send(t, nc, getHead+"\r\n")
	<-began
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the shutdown: %v", err)
	}
	if rest, err := io.ReadAll(br); len(rest) > 0 || err != nil && !isReset(err) {
		t.Errorf("the client got %q, %v", rest, err)
	}
	close(finish)
}

// Connections over the limit get a Status, and the limit is no ratchet.
func TestTooManyConnections(t *testing.T) {
	s, addr := startServer(t, serverOptions{MaxConns: 1}, func(ctx *fasthttp.RequestCtx, c *conn) { c.ownAnswer(ctx) })
	nc, br := dial(t, addr)
	send(t, nc, getHead+"\r\n")
	readAnswer(t, br, false)
	_, over := dial(t, addr)
	got, closes := readAnswer(t, over, false)
	if got.StatusCode != 503 || !closes || got.Header.Get("Retry-After") != "1" || !bytes.Contains(got.body, []byte(`"retryAfterSeconds":1`)) {
		t.Errorf("answered %d %v %s", got.StatusCode, got.Header, got.body)
	}
	_ = nc.Close()
	for s.open() > 0 {
		time.Sleep(time.Millisecond)
	}
	nc, br = dial(t, addr)
	send(t, nc, getHead+"\r\n")
	if got, _ := readAnswer(t, br, false); got.StatusCode != 200 {
		t.Errorf("then answered %d", got.StatusCode)
	}
}

// failing is a listener whose first calls of Accept fail.
type failing struct {
	net.Listener
	errs []error
}

func (l *failing) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, err
	}
	return l.Listener.Accept()
}

// To run out of file descriptors does not end the listener.
func TestAcceptFails(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(serverOptions{}, nil)
	_, _ = dial(t, inner.Addr().String())
	l := &listener{&failing{inner, []error{&net.OpError{Op: "accept", Err: syscall.EMFILE}, syscall.ECONNABORTED}}, s}
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = nc.Close()
	if err := inner.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
