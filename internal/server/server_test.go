package server

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

	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/internal/upstream"
)

func TestDeadlines(t *testing.T) {
	const short = 100 * time.Millisecond
	for _, c := range []struct {
		name    string
		options Options
		send    string
		trickle string // sent again and again until the connection ends
		code    int    // of the answer; 0 for none
	}{
		{"no request", Options{IdleTimeout: short}, "", "", 0},
		{"idle after a request", Options{IdleTimeout: 10 * short}, h1test.GetHead + "\r\n", "", 0},
		{"half a head", Options{HeadTimeout: short}, "GET /v2/orders HT", "", 408},
		{"head that trickles in", Options{HeadTimeout: short}, h1test.GetHead, "X-A: 1\r\n", 408},
		{"half a body", Options{BodyTimeout: short}, h1test.PostHead + "Content-Length: 9\r\n\r\n{", "", 408},
		{"body that trickles in", Options{BodyTimeout: short}, h1test.PostHead + "Content-Length: 999999\r\n\r\n{", " ",
			408},
		{"half a chunk", Options{BodyTimeout: short}, h1test.PostHead + "Transfer-Encoding: chunked\r\n\r\n7\r\n{", "",
			408},
		{"chunks that trickle in", Options{BodyTimeout: short}, h1test.PostHead + "Transfer-Encoding: chunked\r\n\r\n",
			"1\r\n \r\n", 408},
		{"chunk size that trickles in", Options{BodyTimeout: short}, h1test.PostHead +
			"Transfer-Encoding: chunked\r\n\r\n1;", "a", 408},
	} {
		t.Run(c.name, func(t *testing.T) {
			backend := h1test.NewRecorder(t)
			r := newRelay(t, upstream.Config{Endpoints: []string{backend.URL()}})
			options := c.options
			_, addr := r.start(t, options)
			nc, br := h1test.Dial(t, addr)
			for {
				_, err := io.WriteString(nc, c.send)
				if err == nil {
					break
				}
				// On a busy machine the deadline was over before the handshake was. A longer one proves as much.
				if options.HeadTimeout *= 4; options.HeadTimeout == 0 || options.HeadTimeout > testutil.Patience {
					t.Fatal(err)
				}
				_, addr = r.start(t, options)
				nc, br = h1test.Dial(t, addr)
			}
			served := strings.HasSuffix(c.send, "\r\n\r\n") && c.send[0] == 'G'
			if served {
				h1test.ReadAnswer(t, br, false)
				backend.Take()
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
				if got, closes := h1test.ReadAnswer(t, br, false); got.StatusCode != c.code || !closes {
					t.Errorf("answered %d, close %v", got.StatusCode, closes)
				}
			}
			if rest, err := io.ReadAll(br); len(rest) > 0 || err != nil && !h1test.IsReset(err) {
				t.Errorf("then came %q, %v", rest, err)
			}
			if got := backend.Take(); got != "" {
				t.Errorf("the backend got %q", got)
			}
		})
	}
}

// Trusted peers' headers about the client are kept, and underscores are treated as set.
func TestSettings(t *testing.T) {
	identity := "X-Remote-User: a\r\nImpersonate-User: b\r\nX-Forwarded-For: 1.1.1.1\r\nX-Forwarded-Proto: https\r\n"
	for _, c := range []struct {
		name    string
		options Options
		send    string
		want    string
	}{
		{
			"trusted peer", Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, identity,
			"X-Remote-User: a\r\nImpersonate-User: b\r\nX-Forwarded-Proto: https\r\nX-Forwarded-For: 1.1.1.1, 127.0.0.1\r\nX-Forwarded-Host: gw\r\nVia: 1.1 admission-gateway\r\n\r\n",
		},
		{
			"trusted peer, headers that Connection names",
			Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
			"Connection: x-a\r\nX-A: 1\r\n" + identity,
			"X-Remote-User: a\r\nImpersonate-User: b\r\nX-Forwarded-Proto: https\r\nX-Forwarded-For: 1.1.1.1, 127.0.0.1\r\nX-Forwarded-Host: gw\r\nVia: 1.1 admission-gateway\r\n\r\n",
		},
		{"underscores dropped", Options{Underscores: message.DropUnderscores}, "X_Remote_User: a\r\nA: b\r\n",
			"A: b\r\n" + h1test.OurLines + "\r\n"},
		{"underscores passed", Options{Underscores: message.PassUnderscores}, "a_b: a\r\nA: b\r\n",
			"a_b: a\r\nA: b\r\n" + h1test.OurLines + "\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			backend := h1test.NewRecorder(t)
			r := newRelay(t, upstream.Config{Endpoints: []string{backend.URL()}})
			_, addr := r.start(t, c.options)
			nc, br := h1test.Dial(t, addr)
			h1test.Send(t, nc, h1test.GetHead+c.send+"\r\n")
			if got, _ := h1test.ReadAnswer(t, br, false); got.StatusCode != 200 {
				t.Fatalf("answered %d %s", got.StatusCode, got.Content)
			}
			if got := backend.Take(); got != h1test.GetHead+c.want {
				t.Errorf("the backend got\n%q\nwant\n%q", got, h1test.GetHead+c.want)
			}
		})
	}
}

// A body that the handler does not want ends the connection, unless it is
// there already and is skipped; the client can read the answer in any case.
func TestUnreadBody(t *testing.T) {
	_, addr := startServer(t, Options{}, func(r *Request) { reply(r, 429) })
	nc, br := h1test.Dial(t, addr)
	h1test.Send(t, nc, h1test.PostHead+"Content-Length: 7\r\n\r\n"+h1test.Body7+h1test.GetHead+"\r\n")
	for range 2 {
		if got, closes := h1test.ReadAnswer(t, br, false); got.StatusCode != 429 || closes ||
			got.Header.Get("Date") == "" {
			t.Errorf("answered %d, close %v, %v", got.StatusCode, closes, got.Header)
		}
	}
	for _, c := range []struct{ framing, body string }{
		{"Content-Length: 7\r\nExpect: 100-continue\r\n", ""},
		{"Content-Length: 99999999\r\n", strings.Repeat("a", 200_000)},
		{"Transfer-Encoding: chunked\r\n", "7\r\n" + h1test.Body7 + "\r\n0\r\n\r\n" + h1test.GetHead + "\r\n"},
	} {
		nc, br := h1test.Dial(t, addr)
		h1test.Send(t, nc, h1test.PostHead+c.framing+"\r\n"+c.body)
		if got, closes := h1test.ReadAnswer(t, br, false); got.StatusCode != 429 || !closes {
			t.Errorf("answered %d, close %v", got.StatusCode, closes)
		}
		if rest, err := io.ReadAll(br); len(rest) > 0 || err != nil {
			t.Errorf("then came %q, %v", rest, err)
		}
	}
}

func TestPanic(t *testing.T) {
	var log bytes.Buffer
	o := Options{
		Log:      slog.New(slog.NewTextHandler(&log, nil)),
		Panicked: func(m *message.Response) { m.StartBody(500, "text/plain", []byte("panic")) },
	}
	_, addr := startServer(t, o, func(*Request) { panic("secret") })
	nc, br := h1test.Dial(t, addr)
	h1test.Send(t, nc, h1test.GetHead+"\r\n")
	if got, closes := h1test.ReadAnswer(t, br, false); got.StatusCode != 500 || !closes ||
		strings.Contains(string(got.Content), "secret") {
		t.Errorf("answered %d, close %v, %s", got.StatusCode, closes, got.Content)
	}
	if !strings.Contains(log.String(), "secret") || !strings.Contains(log.String(), "TestPanic") {
		t.Errorf("the log says %s", log.String())
	}
}

// While it drains the server serves, and each answer ends its connection. A
// shutdown closes what is idle and waits for what is not.
func TestDrain(t *testing.T) {
	began, finish := make(chan struct{}), make(chan struct{})
	backend := h1test.NewRecorder(t)
	backend.Reply = func(_ int, head, _ string) (string, bool) {
		if strings.HasPrefix(head, "GET /slow") {
			close(began)
			<-finish
		}
		return h1test.SmallReply, true
	}
	r := newRelay(t, upstream.Config{Endpoints: []string{backend.URL()}})
	s, addr := r.start(t, Options{})

	idle, idleReader := h1test.Dial(t, addr)
	h1test.Send(t, idle, h1test.GetHead+"\r\n")
	h1test.ReadAnswer(t, idleReader, false)
	_, fresh := h1test.Dial(t, addr)
	slow, slowReader := h1test.Dial(t, addr)
	h1test.Send(t, slow, "GET /slow HTTP/1.1\r\nHost: gw\r\n\r\n")
	<-began
	if s.Draining() {
		t.Error("the server drains unasked")
	}
	s.BeginDrain()
	if !s.Draining() {
		t.Error("the server does not drain")
	}
	nc, br := h1test.Dial(t, addr)
	h1test.Send(t, nc, h1test.GetHead+"\r\n")
	if got, closes := h1test.ReadAnswer(t, br, false); got.StatusCode != 200 || !closes {
		t.Errorf("while draining: %d, close %v", got.StatusCode, closes)
	}

	done := make(chan error)
	go func() { done <- s.Shutdown(context.Background()) }()
	for _, r := range []io.Reader{idleReader, fresh} {
		rest, err := io.ReadAll(r)
		// The server may end a fresh connection before it has read the end of the client's handshake, which resets it.
		isReset := r == fresh && errors.Is(err, syscall.ECONNRESET)
		if len(rest) > 0 || err != nil && !isReset {
			t.Errorf("an idle connection ends with %q, %v", rest, err)
		}
	}
	select {
	case err := <-done:
		t.Errorf("the shutdown did not wait: %v", err)
	default:
	}
	close(finish)
	if got, closes := h1test.ReadAnswer(t, slowReader, false); got.StatusCode != 200 || !closes {
		t.Errorf("the request in progress: %d, close %v", got.StatusCode, closes)
	}
	if err := <-done; err != nil {
		t.Errorf("the shutdown: %v", err)
	}
	if n := s.Open(); n != 0 {
		t.Errorf("%d connections are open", n)
	}
}

// What is not done in time is cut.
func TestShutdownCuts(t *testing.T) {
	began, finish := make(chan struct{}), make(chan struct{})
	s, addr := startServer(t, Options{}, func(*Request) {
		close(began)
		<-finish
	})
	nc, br := h1test.Dial(t, addr)
	h1test.Send(t, nc, h1test.GetHead+"\r\n")
	<-began
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the shutdown: %v", err)
	}
	if rest, err := io.ReadAll(br); len(rest) > 0 || err != nil && !h1test.IsReset(err) {
		t.Errorf("the client got %q, %v", rest, err)
	}
	close(finish)
}

// Connections over the limit get a Status, and the limit is no ratchet.
func TestTooManyConnections(t *testing.T) {
	s, addr := startServer(t, Options{MaxConns: 1}, func(r *Request) { reply(r, 200) })
	nc, br := h1test.Dial(t, addr)
	h1test.Send(t, nc, h1test.GetHead+"\r\n")
	h1test.ReadAnswer(t, br, false)
	_, over := h1test.Dial(t, addr)
	got, closes := h1test.ReadAnswer(t, over, false)
	if got.StatusCode != 503 || !closes || got.Header.Get("Retry-After") != "1" ||
		!bytes.Contains(got.Content, []byte(`"retryAfterSeconds":1`)) {
		t.Errorf("answered %d %v %s", got.StatusCode, got.Header, got.Content)
	}
	_ = nc.Close()
	testutil.Eventually(t, "the connection to be gone", func() bool { return s.Open() == 0 })
	nc, br = h1test.Dial(t, addr)
	h1test.Send(t, nc, h1test.GetHead+"\r\n")
	if got, _ := h1test.ReadAnswer(t, br, false); got.StatusCode != 200 {
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
	s := New(Options{}, nil)
	_, _ = h1test.Dial(t, inner.Addr().String())
	l := &listener{server: s}
	l.Listener.Listener = &failing{inner,
		[]error{&net.OpError{Op: "accept", Err: syscall.EMFILE}, syscall.ECONNABORTED}}
	nc, _, err := l.accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = nc.Close()
	if err := inner.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// TestShutdownBeforeServe: a server that is shut down before it serves does not begin to.
func TestShutdownBeforeServe(t *testing.T) {
	s := New(Options{}, nil)
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(ln); err != nil {
		t.Errorf("serve: %v", err)
	}
}

// TestMemoryIsGivenBackAfterAPanic: a request that panics leaves nothing behind.
func TestMemoryIsGivenBackAfterAPanic(t *testing.T) {
	m := memoryOf(1 << 30)
	_, address := startServer(t, Options{Memory: m}, func(r *Request) {
		if !r.Memory.Grow(1<<20) || !r.Memory.Work() {
			t.Error("refused")
		}
		panic("what nobody expects")
	})
	nc, br := h1test.Dial(t, address)
	h1test.Send(t, nc, "GET / HTTP/1.1\r\nHost: gw\r\n\r\n")
	if got, _ := h1test.ReadAnswer(t, br, false); got.StatusCode != 500 {
		t.Errorf("answered %d", got.StatusCode)
	}
	testutil.Eventually(t, "all is given back", func() bool {
		working, _ := m.Working()
		return m.InUse() == 0 && working == 0
	})
}
