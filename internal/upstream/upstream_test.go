package upstream

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// scripted is a backend that answers the n-th request of all connections with
// script[n], byte for byte. After an answer that ends in the mark cut the
// connection is closed.
type scripted struct {
	net.Listener
	mu     sync.Mutex
	script []string
	heads  []string // of the requests that came whole
	conns  int
	open   []net.Conn
}

const cut = "<cut>"

func newScripted(t *testing.T, script ...string) *scripted {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{Listener: ln, script: script}
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns++
			s.open = append(s.open, nc)
			s.mu.Unlock()
			go s.serve(nc)
		}
	}()
	t.Cleanup(func() {
		_ = ln.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, nc := range s.open {
			_ = nc.Close()
		}
	})
	return s
}

func (s *scripted) serve(nc net.Conn) {
	br := bufio.NewReader(nc)
	for {
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		s.mu.Lock()
		s.heads = append(s.heads, r.Method+" "+r.RequestURI)
		answer := cut
		if len(s.script) > 0 {
			answer, s.script = s.script[0], s.script[1:]
		}
		s.mu.Unlock()
		answer, closes := strings.CutSuffix(answer, cut)
		_, _ = io.WriteString(nc, answer)
		if closes {
			_ = nc.Close()
			return
		}
	}
}

// seen returns the requests that came and the number of connections.
func (s *scripted) seen() (requests []string, conns int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.heads...), s.conns
}

func newTestClient(t *testing.T, s *scripted, c Config) *Client {
	t.Helper()
	c.Endpoints = append(c.Endpoints, "http://"+s.Addr().String())
	client, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func request(method, target, body string) *Request {
	head := method + " " + target + " HTTP/1.1\r\nHost: b\r\n"
	if body != "" {
		head += "Content-Length: " + strconv.Itoa(len(body)) + "\r\n"
	}
	read := method == "GET" || method == "HEAD"
	return &Request{Head: []byte(head + "\r\n"), Body: []byte(body), Idempotent: read, HeadOnly: method == "HEAD"}
}

const okReply = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// kindOf returns the kind of a failure as a string, "" for none.
func kindOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind.String()
	}
	if err != nil {
		return "no *Error: " + err.Error()
	}
	return ""
}

func TestAnswers(t *testing.T) {
	big := strings.Repeat("x", SmallBody+1)
	chunkedHead := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, c := range []struct {
		name   string
		method string // GET if empty
		whole  int64
		answer string
		kind   string // of the failure of Do
		code   int
		body   string
		stream bool
		broken string // kind of the failure of reading the stream
		reused bool   // the connection serves the next request
	}{
		{name: "length", answer: okReply, code: 200, body: "ok", reused: true},
		{name: "no content", answer: "HTTP/1.1 204 No Content\r\n\r\n", code: 204, reused: true},
		{name: "204 with a length", answer: "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", code: 204},
		{name: "304 with a length", answer: "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", code: 304},
		{name: "304", answer: "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n", code: 304, reused: true},
		{name: "HEAD", method: "HEAD", answer: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", code: 200},
		{name: "HEAD, chunked", method: "HEAD", answer: chunkedHead, code: 200},
		{name: "HEAD of nothing", method: "HEAD", answer: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", code: 200,
			reused: true},
		{name: "HEAD, no length", method: "HEAD", answer: "HTTP/1.1 200 OK\r\nETag: \"1\"\r\n\r\n", code: 200,
			reused: true},
		{name: "Connection: close", answer: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
			code: 200, body: "ok"},
		{name: "HTTP/1.0", answer: "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", code: 200, body: "ok"},
		{name: "small chunked body", answer: chunkedHead + "1\r\no\r\n1\r\nk\r\n0\r\nA: b\r\n\r\n", code: 200,
			body: "ok", reused: true},
		{name: "large body", answer: "HTTP/1.1 200 OK\r\nContent-Length: " + strconv.Itoa(len(big)) + "\r\n\r\n" + big,
			code: 200, body: big, stream: true, reused: true},
		{name: "large chunked body", answer: chunkedHead + "10001\r\n" + big + "\r\n0\r\n\r\n", code: 200, body: big,
			stream: true, reused: true},
		{name: "close-delimited", answer: "HTTP/1.1 200 OK\r\n\r\nok" + cut, code: 200, body: "ok", stream: true},
		{name: "large body, whole", whole: 1 << 20, answer: "HTTP/1.1 200 OK\r\nContent-Length: " +
			strconv.Itoa(len(big)) + "\r\n\r\n" + big, code: 200, body: big, reused: true},
		{name: "large chunked body, whole", whole: 1 << 20, answer: chunkedHead + "10001\r\n" + big + "\r\n0\r\n\r\n",
			code: 200, body: big, reused: true},
		{name: "whole, exactly the limit", whole: 2, answer: chunkedHead + "2\r\nok\r\n0\r\n\r\n", code: 200,
			body: "ok", reused: true},
		{name: "close-delimited, whole", whole: 5, answer: "HTTP/1.1 200 OK\r\n\r\nok" + cut, code: 200, body: "ok"},
		{name: "whole, too large", whole: 1, answer: okReply, kind: "TooLarge"},
		{name: "whole, chunked, too large", whole: 1, answer: chunkedHead + "2\r\nok\r\n0\r\n\r\n", kind: "TooLarge"},
		{name: "chunked error", answer: strings.Replace(chunkedHead, "200", "500", 1) + "2\r\nok\r\n0\r\n\r\n",
			code: 500, body: "ok", reused: true},
		{name: "close-delimited error", answer: "HTTP/1.1 500 E\r\n\r\nok" + cut, code: 500, body: "ok"},
		{name: "large chunked error", answer: strings.Replace(chunkedHead, "200", "500", 1) + "10001\r\n" + big +
			"\r\n0\r\n\r\n", code: 500, body: big, stream: true, reused: true},
		{name: "informational answers first",
			answer: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + okReply, code: 200,
			body: "ok", reused: true},
		{name: "informational answers without end", answer: strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 100),
			kind: "Malformed"},
		{name: "101", answer: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n", kind: "Malformed"},
		{name: "two lengths", answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
			kind: "Malformed"},
		{name: "length and chunked",
			answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok", kind: "Malformed"},
		{name: "bare LF", answer: "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", kind: "Malformed"},
		{name: "no HTTP", answer: "SSH-2.0-OpenSSH_9.6\r\n", kind: "Malformed"},
		{name: "head too large", answer: "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", 17<<10) + "\r\n\r\n",
			kind: "Malformed"},
		{name: "bytes behind the body", answer: okReply + "HTTP/1.1 200 OK\r\n", kind: "Malformed"},
		{name: "bytes behind no body", answer: "HTTP/1.1 204 No Content\r\n\r\nok", kind: "Malformed"},
		{name: "body in answer to HEAD", method: "HEAD", answer: okReply, kind: "Malformed"},
		{name: "bytes behind a chunked body", answer: chunkedHead + "2\r\nok\r\n0\r\n\r\nx", kind: "Malformed"},
		{name: "bad chunk size", answer: chunkedHead + "0x2\r\nok\r\n0\r\n\r\n", kind: "Malformed"},
		{name: "bad chunk size later", answer: chunkedHead + "10000\r\n" + big[1:] + "\r\n-1\r\n", code: 200,
			stream: true, broken: "Malformed"},
		{name: "chunk without its end", answer: chunkedHead + "2\r\nokay\r\n0\r\n\r\n", kind: "Malformed"},
		{name: "no answer", method: "POST", answer: cut, kind: "Broken"},
		{name: "half a head", answer: "HTTP/1.1 200 OK\r\nContent-Le" + cut, kind: "Broken"},
		{name: "half a body", answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no" + cut, kind: "Broken"},
		{name: "half a stream", answer: chunkedHead + "ffff\r\n" + big[:100] + cut, code: 200, stream: true,
			broken: "Broken"},
		{name: "half a chunked body, whole", whole: 10, answer: chunkedHead + "2\r\nok\r\n" + cut, kind: "Broken"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScripted(t, c.answer, okReply)
			failures := 0
			client := newTestClient(t, s, Config{OnError: func(*Error) { failures++ }})
			method := c.method
			if method == "" {
				method = "GET"
			}
			req := request(method, "/", "")
			req.Whole = c.whole
			var resp message.Response
			err := client.Do(req, &resp)
			if kindOf(err) != c.kind {
				t.Fatalf("got the failure %q (%v), want %q", kindOf(err), err, c.kind)
			}
			if err == nil {
				checkAnswer(t, &resp, c.code, c.body, c.stream, c.broken)
			}
			if bad := c.kind != "" || c.broken != ""; bad != (failures == 1) {
				t.Errorf("%d failures were reported", failures)
			}
			if err := client.Do(request("GET", "/next", ""), &resp); err != nil || string(resp.Body()) != "ok" {
				t.Fatalf("the next request: %v, %q", err, resp.Body())
			}
			requests, conns := s.seen()
			if len(requests) != 2 || (conns == 1) != c.reused {
				t.Errorf("the backend saw %q on %d connections", requests, conns)
			}
		})
	}
}

func checkAnswer(t *testing.T, resp *message.Response, code int, want string, stream bool, broken string) {
	t.Helper()
	if resp.Status() != code || resp.IsStream() != stream {
		t.Errorf("got %d, streamed %v; want %d, %v", resp.Status(), resp.IsStream(), code, stream)
	}
	body := resp.Body
	if stream {
		b := resp.Stream().(*Body)
		got, err := io.ReadAll(b)
		if kindOf(err) != broken {
			t.Errorf("reading the stream: %v, want %q", err, broken)
		}
		if broken != "" {
			return
		}
		body = func() []byte { return got }
	}
	if got := string(body()); got != want {
		t.Errorf("the body is %.100q of %d bytes, want %.100q of %d", got, len(got), want, len(want))
	}
}

// A write arrives once, whatever happens after it was sent.
func TestWriteIsDeliveredOnce(t *testing.T) {
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		s := newScripted(t, okReply, cut, okReply)
		client := newTestClient(t, s, Config{})
		var resp message.Response
		if err := client.Do(request(method, "/1", "{}"), &resp); err != nil {
			t.Fatal(err)
		}
		// The backend takes it and dies, on a pooled connection.
		err := client.Do(request(method, "/2", "{}"), &resp)
		var e *Error
		if kindOf(err) != "Broken" || !errors.As(err, &e) || !e.Sent {
			t.Errorf("%s: got %v", method, err)
		}
		if requests, _ := s.seen(); len(requests) != 2 {
			t.Errorf("%s: the backend saw %q", method, requests)
		}
		if err := client.Do(request(method, "/3", "{}"), &resp); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// A connection that the backend has closed, or on which it has said something
// unasked, is not used.
func TestStaleConnections(t *testing.T) {
	for _, unasked := range []string{cut, okReply} {
		s := newScripted(t, okReply, okReply)
		client := newTestClient(t, s, Config{})
		var resp message.Response
		if err := client.Do(request("PUT", "/1", "{}"), &resp); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		if unasked == cut {
			_ = s.open[0].Close()
		} else {
			_, _ = io.WriteString(s.open[0], unasked)
		}
		s.mu.Unlock()
		waitStirred(t, client)
		resp.Reset(0)
		if err := client.Do(request("PUT", "/2", "{}"), &resp); err != nil || string(resp.Body()) != "ok" {
			t.Fatalf("%v, %q", err, resp.Body())
		}
		if requests, conns := s.seen(); len(requests) != 2 || conns != 2 {
			t.Errorf("the backend saw %q on %d connections", requests, conns)
		}
	}
}

// waitStirred waits until the idle connection of the client is seen to be stale.
func waitStirred(t *testing.T, client *Client) {
	t.Helper()
	testutil.Eventually(t, "the connection is stale", func() bool {
		client.pool.mu.Lock()
		defer client.pool.mu.Unlock()
		free := client.pool.set.All()[0].Conns.free
		return free[len(free)-1].link.(*conn).unasked() != nil
	})
}

// A read is sent once more if the pooled connection ended without a byte of an answer, and only
// once.
func TestReadIsSentAgain(t *testing.T) {
	s := newScripted(t, okReply, cut, okReply, cut)
	client := newTestClient(t, s, Config{})
	var resp message.Response
	for _, target := range []string{"/1", "/2"} {
		if err := client.Do(request("GET", target, ""), &resp); err != nil {
			t.Fatalf("%s: %v", target, err)
		}
	}
	// The connection is new after the last one was cut, so its end is an answer.
	client.Close()
	if err := client.Do(request("GET", "/3", ""), &resp); kindOf(err) != "Broken" {
		t.Errorf("got %v", err)
	}
	requests, _ := s.seen()
	if got := strings.Join(requests, ", "); got != "GET /1, GET /2, GET /2, GET /3" {
		t.Errorf("the backend saw %s", got)
	}
}

// ERR-4: a backend that is down is 503.
func TestUnreachable(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + ln.Addr().String()
	_ = ln.Close()
	client, err := New(Config{Endpoints: []string{dead}, RetryAfter: 7})
	if err != nil {
		t.Fatal(err)
	}
	var resp message.Response
	err = client.Do(request("PUT", "/", "{}"), &resp)
	s := status.From(err).ErrStatus
	if kindOf(err) != "Unreachable" || s.Code != 503 || s.Details.RetryAfterSeconds != 7 ||
		strings.Contains(s.Message, "127.0.0.1") {
		t.Errorf("got %v, %+v", err, s)
	}
	if open, _ := client.Conns(); open != 0 {
		t.Errorf("%d connections are counted", open)
	}

	// An endpoint that cannot be reached is passed over.
	b := newScripted(t, okReply, okReply)
	client = newTestClient(t, b, Config{Endpoints: []string{dead}})
	for range 2 {
		if err := client.Do(request("PUT", "/", "{}"), &resp); err != nil {
			t.Error(err)
		}
		client.Close()
	}
}

// ERR-4: a backend that is too slow, or a client in a hurry, is 504. The hurry of a client is reported as no failure of
// the backend.
func TestTooSlow(t *testing.T) {
	for name, c := range map[string]struct {
		answer   string
		config   Config
		deadline time.Duration
		reported int
	}{
		"no answer":   {"", Config{Timeouts: Timeouts{Answer: 20 * time.Millisecond}}, 0, 1},
		"half a head": {"HTTP/1.1 200 OK\r\n", Config{Timeouts: Timeouts{Answer: 20 * time.Millisecond}}, 0, 1},
		"half a body": {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok",
			Config{Timeouts: Timeouts{Body: 20 * time.Millisecond}}, 0, 1},
		"a deadline far away":   {"", Config{Timeouts: Timeouts{Answer: 20 * time.Millisecond}}, time.Minute, 1},
		"the client's deadline": {"", Config{}, 20 * time.Millisecond, 0},
		"in the middle of a body": {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", Config{}, 20 * time.Millisecond,
			0},
		"a deadline that passed": {"", Config{}, -time.Millisecond, 0},
	} {
		s := newScripted(t, c.answer, okReply)
		c.config.RetryAfter = 3
		reported := 0
		c.config.OnError = func(*Error) { reported++ }
		client := newTestClient(t, s, c.config)
		req := request("GET", "/", "")
		if c.deadline != 0 {
			req.Deadline = time.Now().Add(c.deadline)
		}
		var resp message.Response
		err := client.Do(req, &resp)
		if st := status.From(err).ErrStatus; kindOf(err) != "TooSlow" || st.Code != 504 ||
			st.Details.RetryAfterSeconds != 3 {
			t.Errorf("%s: got %v", name, err)
		}
		if reported != c.reported {
			t.Errorf("%s: %d failures were reported, want %d", name, reported, c.reported)
		}
	}
}

func TestBusy(t *testing.T) {
	s := newScripted(t, "HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n", okReply)
	reported := 0
	client := newTestClient(t, s, Config{Limits: Limits{Conns: 1, Wait: 10 * time.Millisecond},
		Overloaded: func(time.Time) int { reported++; return 8 }})
	var first, second message.Response
	if err := client.Do(request("GET", "/1", ""), &first); err != nil {
		t.Fatal(err)
	}
	err := client.Do(request("GET", "/2", ""), &second)
	if st := status.From(err).ErrStatus; kindOf(err) != "Busy" || st.Code != 503 || st.Details.RetryAfterSeconds != 8 ||
		reported != 1 {
		t.Errorf("got %v", err)
	}
	first.Close()
	if err := client.Do(request("GET", "/3", ""), &second); err != nil {
		t.Error(err)
	}
}

// Interrupt ends a read that waits for the backend, and takes the connection.
func TestInterrupt(t *testing.T) {
	s := newScripted(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", okReply)
	client := newTestClient(t, s, Config{})
	var resp message.Response
	if err := client.Do(request("GET", "/", ""), &resp); err != nil {
		t.Fatal(err)
	}
	body := resp.Stream().(*Body)
	got := make([]byte, 2)
	if _, err := io.ReadFull(body, got); err != nil || string(got) != "ok" {
		t.Fatalf("%q, %v", got, err)
	}
	go body.Interrupt()
	if _, err := body.Read(got); !errors.Is(err, ErrInterrupted) {
		t.Errorf("got %v", err)
	}
	body.Interrupt()
	if err := body.Close(); err != nil {
		t.Error(err)
	}
	if open, _ := client.Conns(); open != 0 {
		t.Errorf("%d connections are open", open)
	}
}

func TestTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(append([]byte(r.RequestURI+" "), b...))
	}))
	defer server.Close()
	roots := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	client, err := New(Config{Endpoints: []string{server.URL},
		TLS: func() *tls.Config { return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12} }})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var resp message.Response
		if err := client.Do(request("PUT", "/a?", "{}"), &resp); err != nil || string(resp.Body()) != "/a? {}" {
			t.Fatalf("%v, %q", err, resp.Body())
		}
	}
	if n := client.Dialled(); n != 1 {
		t.Errorf("%d connections were made", n)
	}
	client.Close()
	untrusting, err := New(Config{Endpoints: []string{server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	var resp message.Response
	if err := untrusting.Do(request("GET", "/", ""), &resp); kindOf(err) != "Unreachable" {
		t.Errorf("got %v", err)
	}
}

func TestNew(t *testing.T) {
	for endpoints, want := range map[string]string{
		"":                       "an upstream must have at least one endpoint",
		"127.0.0.1:80":           "the endpoint '127.0.0.1:80' must be a URL",
		"ftp://a":                "the endpoint 'ftp://a' must have the scheme 'http' or 'https'",
		"http://a/b":             "the endpoint 'http://a/b' must be a scheme, a host and a port alone",
		"http://u:p@a":           "the endpoint 'http://u:p@a' must be a scheme, a host and a port alone",
		"http://":                "the endpoint 'http://' must be a scheme, a host and a port alone",
		"http://a http://b:1/?c": "the endpoint 'http://b:1/?c' must be a scheme, a host and a port alone",
		"http://a https://b":     "the endpoints of an upstream must all have the same scheme",
	} {
		_, err := New(Config{Endpoints: strings.Fields(endpoints)})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", endpoints, err)
		}
	}
	c, err := New(Config{Endpoints: []string{"http://a", "http://[::1]/", "http://b:1"}})
	if err != nil {
		t.Fatal(err)
	}
	var addrs []string
	for _, e := range c.State().Endpoints {
		addrs = append(addrs, e.Address)
	}
	if got := strings.Join(addrs, " "); got != "a:80 [::1]:80 b:1" {
		t.Errorf("the endpoints are %s", got)
	}
}

// Trailers of HTTP/1.1 are read, and go no further: the connection serves the next request.
func TestTrailersAreDropped(t *testing.T) {
	text := strings.Repeat("a", 100)
	s := newScripted(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-A\r\n\r\n64\r\n"+text+
		"\r\n0\r\nX-A: 1\r\n\r\n", okReply)
	client := newTestClient(t, s, Config{HeadBytes: 64}) // the body does not fit
	var resp message.Response
	if err := client.Do(request("GET", "/1", ""), &resp); err != nil || !resp.IsStream() {
		t.Fatalf("a stream: %v, %v", resp.IsStream(), err)
	}
	stream := resp.Stream()
	got, err := io.ReadAll(stream)
	if err != nil || string(got) != text || stream.Trailers() != nil || resp.Header("X-A") != nil ||
		resp.Header("Trailer") != nil {
		t.Errorf("got %q and %q with the trailers %v, %v", resp.Head(), got, stream.Trailers(), err)
	}
	if err := client.Do(request("GET", "/2", ""), &resp); err != nil || string(resp.Body()) != "ok" {
		t.Errorf("the next answer is %q, %v", resp.Body(), err)
	}
	if _, conns := s.seen(); conns != 1 {
		t.Errorf("the backend saw %d connections", conns)
	}
}
