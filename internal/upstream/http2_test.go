package upstream

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// serveTLS serves by net/http, which agrees to HTTP/2 by ALPN.
func serveTLS(t testing.TB, h http.Handler) Config {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 100}
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return Config{
		Endpoints: []string{s.URL}, Protocol: Auto,
		TLS: func() *tls.Config {
			return &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12,
				NextProtos: []string{"http/1.1"}}
		},
	}
}

// servePlain serves HTTP/2 by net/http without TLS.
func servePlain(t testing.TB, h http.Handler) Config {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 100}
	s.Start()
	t.Cleanup(s.Close)
	return Config{Endpoints: []string{s.URL}, Protocol: HTTP2}
}

func newClient(t testing.TB, c Config) *Client {
	t.Helper()
	client, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// overHTTP2 runs a test with a client of each server of HTTP/2.
func overHTTP2(t *testing.T, h http.HandlerFunc, test func(t *testing.T, c *Client)) {
	t.Helper()
	checked := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("the request comes by %s", r.Proto)
		}
		h(w, r)
	})
	t.Run("TLS", func(t *testing.T) { test(t, newClient(t, serveTLS(t, checked))) })
	t.Run("plain", func(t *testing.T) { test(t, newClient(t, servePlain(t, checked))) })
}

// bodyOf reads the whole body of an answer.
func bodyOf(t *testing.T, resp *message.Response) string {
	t.Helper()
	if !resp.IsStream() {
		return string(resp.Body())
	}
	body, err := io.ReadAll(resp.Stream())
	if err != nil {
		t.Errorf("the body ends with %v", err)
	}
	return string(body)
}

func TestHTTP2RoundTrips(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 1<<16)
	handler := func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		switch r.URL.Path {
		case "/small":
			w.Header().Add("X-B", "1")
			w.Header().Add("X-B", "2")
			_, _ = io.WriteString(w, r.Method+" "+r.Host+" "+r.Header.Get("Cookie")+" "+r.Header.Get("X-A"))
		case "/none":
			w.WriteHeader(204)
		case "/same":
			w.Header().Set("ETag", `"1"`)
			w.WriteHeader(304)
		case "/missing":
			w.WriteHeader(404)
			_, _ = io.WriteString(w, "no")
		case "/known":
			w.Header().Set("Content-Length", strconv.Itoa(len(big)))
			_, _ = io.WriteString(w, big)
		case "/unknown":
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, big)
		case "/length":
			b, err := io.ReadAll(r.Body)
			_, _ = fmt.Fprintf(w, "%d %v", len(b), err)
		case "/hints":
			w.Header().Set("Link", "a")
			w.WriteHeader(103)
			_, _ = io.WriteString(w, "ok")
		case "/trailers":
			w.Header().Set("Trailer", "Grpc-Status")
			_, _ = io.WriteString(w, "ok")
			w.Header().Set("Grpc-Status", "0")
		}
	}
	overHTTP2(t, handler, func(t *testing.T, client *Client) {
		for _, c := range []struct {
			method, target, body string
			whole                int64
			status               int
			want                 string
		}{
			{method: "GET", target: "/small", status: 200, want: "GET b a=1; b=2 x"},
			{method: "PATCH", target: "/small", body: "x", status: 200, want: "PATCH b a=1; b=2 x"},
			{method: "HEAD", target: "/small", status: 200},
			{method: "HEAD", target: "/known", status: 200},
			{method: "DELETE", target: "/none", status: 204},
			{method: "GET", target: "/same", status: 304},
			{method: "GET", target: "/missing", status: 404, want: "no"},
			{method: "GET", target: "/known", status: 200, want: big},
			{method: "GET", target: "/known", whole: 2 << 20, status: 200, want: big},
			{method: "GET", target: "/unknown", status: 200, want: big},
			{method: "GET", target: "/unknown", whole: 2 << 20, status: 200, want: big},
			{method: "POST", target: "/length", body: big, status: 200, want: strconv.Itoa(len(big)) + " <nil>"},
			{method: "GET", target: "/hints", status: 200, want: "ok"},
			{method: "GET", target: "/trailers", status: 200, want: "ok"},
		} {
			for range 2 { // the second time with memory that was used
				req := request(c.method, c.target, c.body)
				req.Head = bytes.Replace(req.Head, []byte("Host: b\r\n"),
					[]byte("Host: b\r\nX-A: x\r\nCookie: a=1; b=2\r\nConnection: close\r\n"), 1)
				req.Whole = c.whole
				var resp message.Response
				if err := client.Do(req, &resp); err != nil {
					t.Fatalf("%s %s: %v: %v", c.method, c.target, err, errors.Unwrap(err))
				}
				stream := resp.Stream()
				if body := bodyOf(t, &resp); resp.Status() != c.status || body != c.want {
					t.Errorf("%s %s: %d with %d bytes: %.60q", c.method, c.target, resp.Status(), len(body), body)
				}
				if c.target == "/trailers" && stream != nil {
					trailers := stream.Trailers()
					if len(trailers) != 1 || string(trailers[0].Name) != "grpc-status" ||
						string(trailers[0].Value) != "0" {
						t.Errorf("the trailers are %v", trailers)
					}
				} else if c.target == "/trailers" {
					t.Error("the trailers are lost")
				}
				if c.target == "/small" && fmt.Sprint(resp.Headers("X-B")) != "[1 2]" {
					t.Errorf("the head is %q", resp.Head())
				}
				resp.Close()
			}
		}
		if open, idle := client.Conns(); open != 1 || idle != 1 || client.Dialled() != 1 {
			t.Errorf("%d connections are open, %d idle, of %d", open, idle, client.Dialled())
		}
	})
}

// Streams share connections, as few as the backend allows.
func TestHTTP2StreamsShareConnections(t *testing.T) {
	const n = 350
	begun, ended := make(chan struct{}, n), make(chan struct{})
	handler := func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		begun <- struct{}{}
		<-ended
		_, _ = io.WriteString(w, "event")
	}
	overHTTP2(t, handler, func(t *testing.T, client *Client) {
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				var resp message.Response
				if err := client.Do(request("GET", "/watch", ""), &resp); err != nil {
					t.Error(err, errors.Unwrap(err))
					return
				}
				defer resp.Close()
				if body := bodyOf(t, &resp); body != "event" {
					t.Errorf("the body is %q", body)
				}
			})
		}
		for range n {
			<-begun
		}
		if s := client.State(); s.Open > n/100+2 || s.Idle != 0 || s.Endpoints[0].InFlight != n {
			t.Errorf("%d streams are on %d connections, %d of them idle", s.Endpoints[0].InFlight, s.Open, s.Idle)
		}
		for range n {
			ended <- struct{}{}
		}
		all.Wait()
		if open, idle := client.Conns(); open != idle {
			t.Errorf("%d connections are open, %d idle", open, idle)
		}
	})
}

// mute is a listener that accepts one connection and never answers on it, the one of that number.
type mute struct {
	net.Listener
	number, accepted atomic.Int32
}

func (m *mute) Accept() (net.Conn, error) {
	for {
		c, err := m.Listener.Accept()
		if err != nil || m.accepted.Add(1) != m.number.Load() {
			return c, err
		}
	}
}

// A request for which no further connection could be made goes by one that others share, or by the next.
func TestHTTP2ConnectionIsNotMade(t *testing.T) {
	s := httptest.NewUnstartedServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 10}
	m := &mute{Listener: s.Listener}
	m.number.Store(2)
	s.Listener = m
	s.Start()
	t.Cleanup(s.Close)
	client := newClient(t, Config{Endpoints: []string{s.URL}, Protocol: HTTP2,
		Timeouts: Timeouts{Connect: 500 * time.Millisecond}})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			var resp message.Response
			if err := client.Do(request("POST", "/", "a"), &resp); err != nil {
				t.Error(err, errors.Unwrap(err))
			}
			resp.Close()
		})
	}
	all.Wait()
	if m.accepted.Load() < 3 {
		t.Errorf("%d connections were made: none of them failed", m.accepted.Load())
	}
	// The first connection of a server that does not answer is the failure of all.
	m.number.Store(m.accepted.Load() + 1)
	client.Renew()
	var resp message.Response
	var failure *Error
	if err := client.Do(request("POST", "/", "a"), &resp); !errors.As(err, &failure) || failure.Kind != Unreachable {
		t.Errorf("got %v", err)
	}
}

// A stream that is not read does not hold up the others, and holds no more than its window.
func TestHTTP2SlowReader(t *testing.T) {
	var sent atomic.Int64
	handler := func(w http.ResponseWriter, r *http.Request) {
		part := make([]byte, 8<<10)
		for r.URL.Path == "/slow" {
			n, err := w.Write(part)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
		_, _ = w.Write(bytes.Repeat(part, 100))
	}
	overHTTP2(t, handler, func(t *testing.T, client *Client) {
		sent.Store(0)
		slow := make([]message.Response, 80) // together more than the window of the connection
		for i := range slow {
			if err := client.Do(request("GET", "/slow", ""), &slow[i]); err != nil {
				t.Fatal(err)
			}
			defer slow[i].Close()
		}
		for range 20 {
			var resp message.Response
			if err := client.Do(request("GET", "/fast", ""), &resp); err != nil {
				t.Fatal(err)
			}
			if body := bodyOf(t, &resp); len(body) != 800<<10 {
				t.Errorf("%d bytes came", len(body))
			}
		}
		// The server's writer has a buffer beside the window.
		if n, most := sent.Load(), int64(len(slow)*(64+32+16)<<10); n > most {
			t.Errorf("the server could send %d bytes, %d are allowed", n, most)
		}
		if client.Dialled() != 1 {
			t.Errorf("%d connections were made", client.Dialled())
		}
		for i := range slow {
			if _, err := io.ReadFull(slow[i].Stream(), make([]byte, 200<<10)); err != nil {
				t.Error(err)
			}
		}
	})
}

// textUpload is an upload of text in parts, with trailers behind it.
type textUpload struct {
	parts    []string
	length   int64
	trailers []message.Header
}

func (u *textUpload) Length() int64              { return u.length }
func (u *textUpload) Trailers() []message.Header { return u.trailers }
func (u *textUpload) Interrupt()                 {}
func (u *textUpload) Read(p []byte) (int, error) {
	if len(u.parts) == 0 {
		return 0, io.EOF
	}
	n := copy(p, u.parts[0])
	if u.parts[0] = u.parts[0][n:]; u.parts[0] == "" {
		u.parts = u.parts[1:]
	}
	return n, nil
}

func TestHTTP2Uploads(t *testing.T) {
	handler := func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%d %d %v %v", r.ContentLength, len(b), err, r.Trailer)
	}
	part := strings.Repeat("x", 100_000)
	parts := slices.Repeat([]string{part}, 20)
	overHTTP2(t, handler, func(t *testing.T, client *Client) {
		for _, c := range []struct {
			head   string
			upload textUpload
			want   string
		}{
			{"Transfer-Encoding: chunked\r\n", textUpload{parts: parts, length: -1}, "-1 2000000 <nil> map[]"},
			{"Content-Length: 2000000\r\n", textUpload{parts: parts, length: 2_000_000}, "2000000 2000000 <nil> map[]"},
			{"Content-Length: 0\r\n", textUpload{}, "0 0 <nil> map[]"},
			{"Transfer-Encoding: chunked\r\n", textUpload{length: -1}, "-1 0 <nil> map[]"},
			{
				"Transfer-Encoding: chunked\r\nTE: trailers\r\nTrailer: X-Sum\r\n",
				textUpload{parts: []string{"a"}, length: -1,
					trailers: []message.Header{{Name: []byte("X-Sum"), Value: []byte("1")}}},
				"-1 1 <nil> map[X-Sum:[1]]",
			},
		} {
			u := c.upload
			u.parts = slices.Clone(u.parts)
			req := &Request{Head: []byte("PUT /file HTTP/1.1\r\nHost: b\r\n" + c.head + "\r\n"), Upload: &u}
			var resp message.Response
			if err := client.Do(req, &resp); err != nil {
				t.Fatal(err, errors.Unwrap(err))
			}
			if body := bodyOf(t, &resp); body != c.want {
				t.Errorf("%q: the server got %q, want %q", c.head, body, c.want)
			}
		}
		if client.Dialled() != 1 {
			t.Errorf("%d connections were made", client.Dialled())
		}
	})
}

// An upgrade gets a connection of HTTP/1.1 of its own.
func TestHTTP2UpgradesApart(t *testing.T) {
	config := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 {
			_, _ = io.WriteString(w, "ok")
			return
		}
		nc, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(nc, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := rw.ReadString('\n')
		_, _ = io.WriteString(nc, line)
		_ = nc.Close()
	}))
	client := newClient(t, config)
	for round := range 2 {
		var resp message.Response
		if err := client.Do(request("GET", "/plain", ""), &resp); err != nil || string(resp.Body()) != "ok" {
			t.Fatalf("%v, %q", err, resp.Body())
		}
		req := &Request{Head: []byte("GET /echo HTTP/1.1\r\nHost: b\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"),
			Upgrade: []byte("echo")}
		if err := client.Do(req, &resp); err != nil || req.Tunnel == nil {
			t.Fatalf("%v, %v: %v", req.Tunnel, err, errors.Unwrap(err))
		}
		if open, idle := client.Conns(); open != 2 || idle != 1 {
			t.Errorf("round %d: %d connections are open, %d idle", round, open, idle)
		}
		_, _ = io.WriteString(req.Tunnel.Conn, "hello\n")
		got, err := io.ReadAll(req.Tunnel.Conn)
		if string(got) != "hello\n" {
			t.Errorf("the tunnel carries %q, %v", got, err)
		}
		req.Tunnel.Close()
	}
	if client.Dialled() != 3 {
		t.Errorf("%d connections were made", client.Dialled())
	}
}

// A backend that does not agree to HTTP/2 is asked by HTTP/1.1 if that is allowed.
func TestHTTP2NotAgreed(t *testing.T) {
	s := httptest.NewTLSServer(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	defer s.Close()
	plain := httptest.NewServer(s.Config.Handler)
	defer plain.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	settings := func() *tls.Config {
		return &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12}
	}
	for _, c := range []struct {
		endpoint string
		protocol Protocol
		want     string
	}{
		{s.URL, Auto, "HTTP/1.1"}, {s.URL, HTTP2, "Unreachable"}, {plain.URL, Auto, "HTTP/1.1"},
		{plain.URL, HTTP2, "Unreachable"},
	} {
		client := newClient(t, Config{Endpoints: []string{c.endpoint}, Protocol: c.protocol, TLS: settings})
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				var resp message.Response
				err := client.Do(request("GET", "/", ""), &resp)
				if got := kindOf(err) + string(resp.Body()); got != c.want {
					t.Errorf("%s by %d: %s, %v", c.endpoint, c.protocol, got, errors.Unwrap(err))
				}
			})
		}
		all.Wait()
	}
}

// nghttpd, which is another make of HTTP/2, is asked for files and gets uploads.
func TestHTTP2AnotherServer(t *testing.T) {
	program, err := exec.LookPath("nghttpd")
	if err != nil {
		t.Skip("nghttpd is not installed: apt-get install nghttp2-server")
	}
	dir := t.TempDir()
	big := strings.Repeat("0123456789abcdef", 1<<17)
	if err := os.WriteFile(filepath.Join(dir, "big"), []byte(big), 0o600); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	_ = ln.Close()
	command := exec.Command(program, "--address=127.0.0.1", "--no-tls", "--htdocs="+dir, "--echo-upload",
		"--trailer=x-sum: 1", port)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}()
	client := newClient(t, Config{Endpoints: []string{"http://127.0.0.1:" + port}, Protocol: HTTP2})
	testutil.Eventually(t, "nghttpd to answer", func() bool { return ask(client, "GET", "/none") != "Unreachable" })
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			req := request("GET", "/big", "")
			if i%2 == 0 {
				req = request("POST", "/echo", big)
			}
			var resp message.Response
			if err := client.Do(req, &resp); err != nil {
				t.Error(err, errors.Unwrap(err))
				return
			}
			defer resp.Close()
			stream := resp.Stream()
			if body := bodyOf(t, &resp); resp.Status() != 200 || body != big {
				t.Errorf("%d with %d bytes", resp.Status(), len(body))
			}
			if trailers := stream.Trailers(); len(trailers) != 1 || string(trailers[0].Value) != "1" {
				t.Errorf("the trailers are %v", trailers)
			}
		})
	}
	all.Wait()
	if open, idle := client.Conns(); open != idle || client.Dialled() > 10 {
		t.Errorf("%d connections are open, %d idle, of %d", open, idle, client.Dialled())
	}
}

// A round trip that is given up leaves the connection to the others.
func TestHTTP2Cancel(t *testing.T) {
	gone := make(chan struct{}, 10)
	handler := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/late":
			<-r.Context().Done()
			gone <- struct{}{}
		case "/watch":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			gone <- struct{}{}
		}
	}
	overHTTP2(t, handler, func(t *testing.T, client *Client) {
		var resp message.Response
		if err := client.Do(request("GET", "/first", ""), &resp); err != nil {
			t.Fatal(err)
		}
		late := request("GET", "/late", "")
		late.Deadline = time.Now().Add(20 * time.Millisecond)
		if err := client.Do(late, &resp); kindOf(err) != "TooSlow" {
			t.Errorf("got %v", err)
		}
		<-gone
		if err := client.Do(request("GET", "/watch", ""), &resp); err != nil {
			t.Fatal(err)
		}
		stream := resp.Stream()
		go stream.Interrupt()
		if err := stream.Wait(); err != ErrInterrupted {
			t.Errorf("got %v", err)
		}
		if _, err := stream.Read(make([]byte, 1)); err != ErrInterrupted {
			t.Errorf("got %v", err)
		}
		resp.Close()
		<-gone
		if open, idle := client.Conns(); open != 1 || idle != 1 || client.Dialled() != 1 {
			t.Errorf("%d connections are open, %d idle, of %d", open, idle, client.Dialled())
		}
	})
}
