package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// Each event reaches the client before the backend sends the next, the head
// before the first (RES-5).
func TestEventByEvent(t *testing.T) {
	for _, c := range []struct {
		version, end string
		wrap         func(string) string
	}{
		{"1.1", "0\r\n\r\n", func(s string) string { return strings.TrimSuffix(h1test.Chunks(s, 1<<20), "0\r\n\r\n") }},
		{"1.0", "", func(s string) string { return s }},
	} {
		url, conns := h1test.Driven(t)
		r := newRelay(t, upstream.Config{Endpoints: []string{url}})
		_, addr := r.start(t, Options{})
		nc, br := h1test.Dial(t, addr)
		h1test.Send(t, nc, "GET /v2/orders?watch=true HTTP/"+c.version+"\r\nHost: gw\r\n\r\n")
		backend, backendReader := h1test.Accept(t, conns)
		h1test.Send(t, backend, h1test.ChunkedHead)
		head := ""
		for !strings.HasSuffix(head, "\r\n\r\n") {
			line, err := br.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			head += line
		}
		want := map[string]string{
			"1.1": "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
			"1.0": "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n",
		}[c.version]
		if head != want {
			t.Errorf("HTTP/%s: the head is %q, want %q", c.version, head, want)
		}
		for _, event := range []string{`{"type":"ADDED"}`, "{}", strings.Repeat("x", 10_000)} {
			h1test.Send(t, backend, strings.TrimSuffix(h1test.Chunks(event, 1<<20), "0\r\n\r\n"))
			h1test.Expect(t, br, c.wrap(event))
		}
		// Two chunks and the end at once leave together.
		h1test.Send(t, backend, h1test.Chunks("ab", 1))
		h1test.Expect(t, br, c.wrap("ab")+c.end)
		if c.version == "1.0" {
			if rest, err := io.ReadAll(br); len(rest) > 0 || err != nil {
				t.Errorf("then came %q, %v", rest, err)
			}
			continue
		}
		h1test.Send(t, nc, h1test.GetHead+"\r\n")
		if _, err := http.ReadRequest(backendReader); err != nil {
			t.Fatalf("the connection to the backend is not used again: %v", err)
		}
		h1test.Send(t, backend, h1test.SmallReply)
		if got, _ := h1test.ReadAnswer(t, br, false); got.StatusCode != 200 {
			t.Errorf("the next request: %d", got.StatusCode)
		}
	}
}

// Answers arrive as they were given, in the framing that fits the client
// (ERR-5).
func TestAnswersPassed(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 100_000)
	for _, c := range []struct {
		name, request, answer string
		want                  string // the head that the client gets
		body                  string
		closes                bool
	}{
		{"spelling and order of headers", h1test.GetHead, "HTTP/1.1 203 Fine\r\nx-b: 1\r\nServer: s/1\r\nSet-Cookie: a=b; Path=/\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nX-A: 2\r\nx-a: 3\r\nSet-Cookie: c=d\r\nContent-Length: 2\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\nok",
			"HTTP/1.1 203 Fine\r\nx-b: 1\r\nServer: s/1\r\nSet-Cookie: a=b; Path=/\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nX-A: 2\r\nx-a: 3\r\nSet-Cookie: c=d\r\nContent-Length: 2\r\n\r\n", "ok", false},
		{"HEAD", "HEAD /v2/orders HTTP/1.1\r\nHost: gw\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1600000\r\n\r\n",
			"HTTP/1.1 200 OK\r\nContent-Length: 1600000\r\n\r\n", "", false},
		{"204", h1test.GetHead, "HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n",
			"HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n", "", false},
		{"304", h1test.GetHead, "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\nContent-Length: 5\r\n\r\n",
			"HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\nContent-Length: 5\r\n\r\n", "", false},
		{"redirect", h1test.GetHead, "HTTP/1.1 307 Temporary Redirect\r\nLocation: /v2/other\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 307 Temporary Redirect\r\nLocation: /v2/other\r\nContent-Length: 0\r\n\r\n", "", false},
		{"small chunked", h1test.GetHead, h1test.ChunkedHead + h1test.Chunks("ok", 1),
			"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n", "ok", false},
		{"large", h1test.GetHead, "HTTP/1.1 200 OK\r\nContent-Length: 1600000\r\n\r\n" + big,
			"HTTP/1.1 200 OK\r\nContent-Length: 1600000\r\n\r\n", big, false},
		{"large chunked", h1test.GetHead, h1test.ChunkedHead + h1test.Chunks(big, 12345), "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", big, false},
		{"close-delimited", h1test.GetHead, "HTTP/1.1 200 OK\r\n\r\n" + big,
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", big, false},
		{"close-delimited to HTTP/1.0", "GET / HTTP/1.0\r\nHost: gw\r\nConnection: keep-alive\r\n",
			"HTTP/1.1 200 OK\r\n\r\n" + big, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", big, true},
		{"large to HTTP/1.0", "GET / HTTP/1.0\r\nHost: gw\r\nConnection: keep-alive\r\n",
			"HTTP/1.1 200 OK\r\nContent-Length: 1600000\r\n\r\n" + big,
			"HTTP/1.1 200 OK\r\nContent-Length: 1600000\r\nConnection: keep-alive\r\n\r\n", big, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			backend := h1test.NewRecorder(t)
			backend.Reply = func(n int, head, _ string) (string, bool) {
				if strings.Contains(head, "/next ") {
					return h1test.SmallReply, true
				}
				return c.answer, !strings.HasPrefix(c.name, "close-delimited")
			}
			r := newRelay(t, upstream.Config{Endpoints: []string{backend.URL()}})
			_, addr := r.start(t, Options{})
			nc, br := h1test.Dial(t, addr)
			h1test.Send(t, nc, c.request+"\r\n")
			if strings.Contains(c.want, "chunked") {
				head, err := br.Peek(len(c.want))
				if err != nil || string(head) != c.want {
					t.Fatalf("the head is %q, want %q", head, c.want)
				}
				if got, _ := h1test.ReadAnswer(t, br, false); string(got.Content) != c.body {
					t.Errorf("the body is %.100q of %d bytes", got.Content, len(got.Content))
				}
			} else {
				h1test.Expect(t, br, c.want+c.body)
			}
			if c.closes {
				if rest, err := io.ReadAll(br); len(rest) > 0 || err != nil {
					t.Errorf("then came %.100q, %v", rest, err)
				}
				return
			}
			h1test.Send(t, nc, "GET /next HTTP/1.1\r\nHost: gw\r\n\r\n")
			if got, _ := h1test.ReadAnswer(t, br, false); string(got.Content) != "{}" {
				t.Errorf("the next request: %d %.100q", got.StatusCode, got.Content)
			}
		})
	}
}

// An answer that breaks off cannot be taken for a complete one.
func TestBrokenStream(t *testing.T) {
	for name, c := range map[string]struct{ version, answer string }{
		"chunked":             {"1.1", h1test.ChunkedHead + "5\r\nhello\r\n"},
		"inside a chunk":      {"1.1", h1test.ChunkedHead + "ffff\r\nhello"},
		"known length":        {"1.1", "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nhello"},
		"chunked to HTTP/1.0": {"1.0", h1test.ChunkedHead + "5\r\nhello\r\n"},
		"bad framing":         {"1.1", h1test.ChunkedHead + "ffff\r\n" + strings.Repeat("x", 0xffff) + "\r\nzz\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			url, conns := h1test.Driven(t)
			r := newRelay(t, upstream.Config{Endpoints: []string{url}})
			r.ended = make(chan error, 1)
			_, addr := r.start(t, Options{})
			nc, br := h1test.Dial(t, addr)
			h1test.Send(t, nc, "GET / HTTP/"+c.version+"\r\nHost: gw\r\n\r\n")
			backend, _ := h1test.Accept(t, conns)
			h1test.Send(t, backend, c.answer)
			_ = backend.Close()
			resp, err := http.ReadResponse(br, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.ReadAll(resp.Body)
			if c.version == "1.1" && !errors.Is(err, io.ErrUnexpectedEOF) || c.version == "1.0" &&
				(err == nil || !h1test.IsReset(err)) {
				t.Errorf("the client reads to the end with %v", err)
			}
			var failure *upstream.Error
			if err := <-r.ended; !errors.As(err, &failure) {
				t.Errorf("the stream ended with %v", err)
			}
		})
	}
}

// A client that goes away frees the backend, also while nothing happens.
func TestClientLeaves(t *testing.T) {
	url, conns := h1test.Driven(t)
	r := newRelay(t, upstream.Config{Endpoints: []string{url}})
	r.ended = make(chan error, 1)
	_, addr := r.start(t, Options{})
	for name, leave := range map[string]func(net.Conn){
		"close": func(nc net.Conn) { _ = nc.Close() },
		"reset": func(nc net.Conn) {
			if secure, ok := nc.(*tls.Conn); ok {
				nc = secure.NetConn()
			}
			_ = nc.(*net.TCPConn).SetLinger(0)
			_ = nc.Close()
		},
	} {
		nc, br := h1test.Dial(t, addr)
		h1test.Send(t, nc, h1test.GetHead+"\r\n")
		backend, backendReader := h1test.Accept(t, conns)
		h1test.Send(t, backend, h1test.ChunkedHead+"5\r\nhello\r\n")
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		h1test.Expect(t, resp.Body, "hello")
		leave(nc)
		if _, err := backendReader.ReadByte(); err == nil {
			t.Errorf("%s: the backend still gets something", name)
		} else if ne, ok := err.(net.Error); ok && ne.Timeout() {
			t.Errorf("%s: the connection to the backend stays open", name)
		}
		if err := <-r.ended; !errors.Is(err, errClientLeft) {
			t.Errorf("%s: the stream ended with %v", name, err)
		}
	}
}

// A request that comes while the answer before it is streamed waits its turn.
func TestPipelinedBehindStream(t *testing.T) {
	url, conns := h1test.Driven(t)
	r := newRelay(t, upstream.Config{Endpoints: []string{url}})
	_, addr := r.start(t, Options{})
	nc, br := h1test.Dial(t, addr)
	h1test.Send(t, nc, h1test.GetHead+"\r\n")
	backend, backendReader := h1test.Accept(t, conns)
	h1test.Send(t, backend, h1test.ChunkedHead+"5\r\nhello\r\n")
	if _, err := br.Peek(1); err != nil {
		t.Fatal(err)
	}
	h1test.Send(t, nc, "GET /next HTTP/1.1\r\nHost: gw\r\n\r\n")
	h1test.Send(t, backend, h1test.Chunks(" world", 3))
	if got, _ := h1test.ReadAnswer(t, br, false); string(got.Content) != "hello world" {
		t.Errorf("the stream is %q", got.Content)
	}
	if req, err := http.ReadRequest(backendReader); err != nil || req.RequestURI != "/next" {
		t.Fatalf("the backend got %v, %v", req, err)
	}
	h1test.Send(t, backend, h1test.SmallReply)
	if got, _ := h1test.ReadAnswer(t, br, false); string(got.Content) != "{}" {
		t.Errorf("the next answer is %q", got.Content)
	}
}

// A shutdown ends streams of events as if the backend had, so that clients
// come again; any other stream is cut when the time is over.
func TestShutdownEndsStreams(t *testing.T) {
	for _, endless := range []bool{true, false} {
		url, conns := h1test.Driven(t)
		r := newRelay(t, upstream.Config{Endpoints: []string{url}})
		r.ended = make(chan error, 1)
		if endless {
			r.flow = Events
		}
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
		ctx, cancel := context.WithCancel(context.Background())
		if !endless {
			cancel()
		}
		if err := s.Shutdown(ctx); (err == nil) != endless {
			t.Errorf("endless %v: the shutdown: %v", endless, err)
		}
		cancel()
		if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || (err == nil) != endless {
			t.Errorf("endless %v: the client reads %q, %v", endless, rest, err)
		}
		if err := <-r.ended; (err == nil) != endless {
			t.Errorf("endless %v: the stream ended with %v", endless, err)
		}
	}
}

// A stream of any length needs the memory of a few buffers.
func TestStreamMemory(t *testing.T) {
	const size = 64 << 20
	part := []byte(strings.Repeat("x", 64<<10))
	for name, head := range map[string]string{
		"known length": "HTTP/1.1 200 OK\r\nContent-Length: " + strconv.Itoa(size) + "\r\n\r\n",
		"chunked":      h1test.ChunkedHead,
	} {
		url, conns := h1test.Driven(t)
		r := newRelay(t, upstream.Config{Endpoints: []string{url}})
		_, addr := r.start(t, Options{})
		nc, _ := h1test.Dial(t, addr)
		h1test.Send(t, nc, h1test.GetHead+"Connection: close\r\n\r\n")
		backend, _ := h1test.Accept(t, conns)
		testutil.RecordAllocations(t)
		go func() {
			if _, err := io.WriteString(backend, head); err != nil {
				t.Error(err)
			}
			for range size / len(part) {
				if name == "chunked" {
					if _, err := io.WriteString(backend, "10000\r\n"); err != nil {
						t.Error(err)
					}
				}
				if _, err := backend.Write(part); err != nil {
					t.Error(err)
				}
				if name == "chunked" {
					if _, err := io.WriteString(backend, "\r\n"); err != nil {
						t.Error(err)
					}
				}
			}
			if name == "chunked" {
				if _, err := io.WriteString(backend, "0\r\n\r\n"); err != nil {
					t.Error(err)
				}
			}
		}()
		buf := make([]byte, 64<<10)
		got := 0
		for {
			n, err := nc.Read(buf)
			if half := size / 2; got < half && got+n >= half {
				// The stream soon stands still, for it is not read here, and then only what it
				// holds is left.
				testutil.Eventually(t, name+": at most 1 MiB held",
					func() bool { return testutil.BytesBy(".(*Request).SendStream") <= 1<<20 })
			}
			got += n
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if got < size {
			t.Errorf("%s: %d bytes came", name, got)
		}
	}
}
