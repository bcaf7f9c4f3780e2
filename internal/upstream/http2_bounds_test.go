package upstream

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// purse is a budget of so many bytes.
type purse struct{ left atomic.Int64 }

func (p *purse) Take(n int) bool {
	if p.left.Add(-int64(n)) < 0 {
		p.left.Add(int64(n))
		return false
	}
	return true
}

func (p *purse) Give(n int) { p.left.Add(int64(n)) }

// What streams hold beyond their first 16 KiB is granted by the budget. A stream that would hold more ends, and gives
// back what it held; the others go on.
func TestHTTP2MemoryIsGranted(t *testing.T) {
	const granted = 5 * 16 << 10
	begun := make(chan struct{}) // the client has the head
	config := newFar(t, func(f *far, _ int) {
		for id := f.request(); id != 0; id = f.request() {
			if id == 1 {
				f.ok(id) // so that the connection is known
				continue
			}
			f.head(id, false, ":status", "200")
			<-begun
			for range 4 {
				_ = f.WriteData(id, false, make([]byte, 16<<10-1))
			}
		}
	})
	budget := &purse{}
	budget.left.Store(granted)
	config.Budget = budget
	var reported atomic.Int64
	config.OnError = func(*Error) { reported.Add(1) }
	client := newClient(t, config)
	if got := ask(client, "GET", "/first"); got != "ok" {
		t.Fatal(got)
	}
	var one, two, three message.Response
	hold := func(resp *message.Response, most int) {
		t.Helper()
		if err := client.Do(request("GET", "/held", ""), resp); err != nil {
			t.Fatal(err)
		}
		body, ok := resp.Stream().(*Body)
		if !ok {
			t.Fatal("the answer is no stream of the backend's")
		}
		begun <- struct{}{}
		testutil.Becomes(t, most, func() int { return body.from.buffered() })
	}
	// The first holds four pieces, three of them of the budget. There are two more, so that the second ends.
	hold(&one, 4*(16<<10-1))
	hold(&two, 3*16<<10+1) // an end counts for one
	held, err := io.ReadAll(two.Stream())
	if kind := kindOf(err); kind != "NoMemory" || len(held) != 3*16<<10 || reported.Load() != 0 {
		t.Errorf("the stream ends with %s behind %d bytes, and %d failures of the backend are reported", kind, len(held), reported.Load())
	}
	two.Close()
	if left := budget.left.Load(); left != granted-3*16<<10 {
		t.Errorf("%d bytes are left", left)
	}
	if _, err := io.ReadFull(one.Stream(), make([]byte, 4*(16<<10-1))); err != nil {
		t.Errorf("the other stream ends with %v", err)
	}
	one.Close()
	if left := budget.left.Load(); left != granted {
		t.Errorf("%d bytes were not given back", granted-left)
	}
	if err := client.Do(request("GET", "/held", ""), &three); err != nil || client.Dialled() != 1 {
		t.Errorf("%v, %d connections", err, client.Dialled())
	}
	close(begun)
	three.Close()
}

// The window of a stream grows while its reader is faster than the backend, and not while it is slower.
func TestHTTP2WindowsGrow(t *testing.T) {
	const size = 8 << 20
	for _, isSlow := range []bool{false, true} {
		taken := make(chan int, 1) // bytes that the fast reader has taken
		window := 64 << 10         // what the backend may still send
		measured := make(chan bool)
		client := newClient(t, newFar(t, func(f *far, _ int) {
			id := f.request()
			f.head(id, false, ":status", "200", "content-length", fmt.Sprint(size))
			for sent := 0; sent < size; {
				for window == 0 {
					update, ok := next[*http2.WindowUpdateFrame](f)
					if !ok {
						return
					}
					if update.StreamID == id {
						window += int(update.Increment)
					}
				}
				n := min(window, 16<<10, size-sent)
				_ = f.WriteData(id, false, make([]byte, n))
				window, sent = window-n, sent+n
				for got := 0; !isSlow && got < n; {
					got += <-taken
				}
			}
			_ = f.WritePing(false, [8]byte{})
			for {
				switch frame, err := f.ReadFrame(); u := frame.(type) {
				case nil:
					t.Error(err)
					return
				case *http2.WindowUpdateFrame:
					if u.StreamID == id {
						window += int(u.Increment)
					}
				case *http2.PingFrame:
					_ = f.WriteData(id, true, nil)
					close(measured)
					f.serveOK()
					return
				}
			}
		}))
		var resp message.Response
		if err := client.Do(request("GET", "/", ""), &resp); err != nil {
			t.Fatal(err)
		}
		body, ok := resp.Stream().(*Body)
		if !ok {
			t.Fatal("the answer is no stream of the backend's")
		}
		part := make([]byte, 48<<10)
		for left := size; left > 0; {
			if isSlow {
				// It takes bytes only once the backend has used the window up, and leaves some.
				testutil.Eventually(t, "the window to be full",
					func() bool { return body.from.buffered() >= min(64<<10, left) })
			}
			n, err := body.Read(part[:min(len(part), left)])
			if err != nil {
				t.Fatal(err)
			}
			if left -= n; !isSlow {
				taken <- n
			}
		}
		// The slow one has taken everything once, at the end.
		if <-measured; isSlow && window > 128<<10 || !isSlow && window < 1<<19 || window > 1<<20 {
			t.Errorf("slow %v: the window is %d at the end", isSlow, window)
		}
		if n, err := body.Read(part); n != 0 || err != io.EOF {
			t.Errorf("%d, %v", n, err)
		}
		resp.Close()
	}
}

// An idle connection ends with a GOAWAY to the backend.
func TestHTTP2LeavesWithAWord(t *testing.T) {
	words := make(chan string, 1)
	config := newFar(t, func(f *far, _ int) {
		f.ok(f.request())
		frame, ok := next[*http2.GoAwayFrame](f)
		if !ok {
			words <- "none"
			return
		}
		words <- fmt.Sprint(frame.LastStreamID, " ", frame.ErrCode)
	})
	config.Timeouts.Idle = time.Millisecond
	client := newClient(t, config)
	if got := ask(client, "GET", "/"); got != "ok" {
		t.Fatal(got)
	}
	if got := <-words; got != "0 NO_ERROR" {
		t.Errorf("the backend hears %s", got)
	}
}

// newFarTLS is newFar with TLS. A client that agrees to HTTP/1.1 is answered with its request line and body.
func newFarTLS(t testing.TB, settings *tls.Config, serve func(f *far, number int)) Config {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	t.Cleanup(s.Close)
	settings.Certificates = s.TLS.Certificates
	ln, err := tls.Listen("tcp", "127.0.0.1:0", settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	acceptAll(ln, func(nc net.Conn, number int) {
		secure, ok := nc.(*tls.Conn)
		if !ok || secure.Handshake() != nil {
			return
		}
		if secure.ConnectionState().NegotiatedProtocol == http2.NextProtoTLS {
			if f := meet(nc); f != nil {
				serve(f, number)
			}
			return
		}
		for in := bufio.NewReader(nc); ; {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			body, _ := io.ReadAll(r.Body)
			text := r.Proto + " " + r.Method + " " + string(body)
			_, _ = fmt.Fprintf(nc, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
		}
	})
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return Config{
		Endpoints: []string{"https://" + ln.Addr().String()}, Protocol: Auto,
		TLS: func() *tls.Config {
			return &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12}
		},
	}
}

// A backend that wants a request by HTTP/1.1 gets it so, if the protocol may be chosen, and if nothing of the body is
// lost.
func TestHTTP2NeedsHTTP1(t *testing.T) {
	answers := map[string]func(f *far, number int){
		"resets the stream": func(f *far, _ int) {
			for id := f.request(); id != 0; id = f.request() {
				_ = f.WriteRSTStream(id, http2.ErrCodeHTTP11Required)
			}
		},
		"leaves": func(f *far, _ int) {
			f.request()
			_ = f.WriteGoAway(0, http2.ErrCodeHTTP11Required, []byte("no"))
			_, _ = io.Copy(io.Discard, f)
		},
		"leaves at once": func(f *far, _ int) {
			_ = f.WriteGoAway(0, http2.ErrCodeHTTP11Required, nil)
			_, _ = io.Copy(io.Discard, f)
		},
	}
	for name, serve := range answers {
		t.Run(name, func(t *testing.T) {
			for _, protocol := range []Protocol{Auto, HTTP2} {
				config := newFarTLS(t, &tls.Config{NextProtos: []string{"h2", "http/1.1"}}, serve)
				config.Protocol = protocol
				client := newClient(t, config)
				for _, req := range []*Request{
					request("GET", "/", ""), request("POST", "/", "body"),
					{Head: []byte("PUT / HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\r\n"),
						Upload: &textUpload{length: -1, parts: []string{"part"}}},
				} {
					isUpload := req.Upload != nil
					method, _, _ := strings.Cut(string(req.Head), " ")
					var resp message.Response
					err := client.Do(req, &resp)
					var failure *Error
					switch {
					case protocol == Auto && !isUpload:
						if want := "HTTP/1.1 " + method + " " + string(req.Body); err != nil ||
							string(resp.Body()) != want {
							t.Errorf("%s: %v, %q, want %q", method, err, resp.Body(), want)
						}
					case isUpload && err == nil: // nothing of it was read yet
						if want := "HTTP/1.1 PUT part"; string(resp.Body()) != want {
							t.Errorf("%q, want %q", resp.Body(), want)
						}
					case !errors.As(err, &failure) || failure.Kind.Code() != 502 ||
						failure.Error() != "the backend takes the request by HTTP/1.1 alone":
						t.Errorf("%s by %d: %v: %v", method, protocol, err, errors.Unwrap(err))
					}
					resp.Close()
				}
			}
		})
	}
}

// HTTP/2 goes by no cipher suite of TLS 1.2 that it forbids, and HTTP/1.1 still does.
func TestHTTP2WeakCiphers(t *testing.T) {
	for _, c := range []struct {
		suite  uint16
		protos []string
		want   string
	}{
		{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, []string{"h2", "http/1.1"}, "Unreachable"},
		{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, []string{"http/1.1"}, "HTTP/1.1 GET "},
		{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, []string{"h2", "http/1.1"}, "ok"},
		{tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, []string{"h2", "http/1.1"}, "ok"},
	} {
		client := newClient(t,
			newFarTLS(t, &tls.Config{NextProtos: c.protos, MaxVersion: tls.VersionTLS12,
				CipherSuites: []uint16{c.suite}}, func(f *far, _ int) { f.serveOK() }))
		if got := ask(client, "GET", "/"); got != c.want {
			t.Errorf("%s with %q: %s, want %s", tls.CipherSuiteName(c.suite), c.protos, got, c.want)
		}
	}
}

// Health checks go by HTTP/2 to a backend that speaks it, with and without TLS.
func TestHTTP2HealthChecks(t *testing.T) {
	asked := make(chan string, 1)
	answer := func(fields ...string) func(f *far, _ int) {
		return func(f *far, _ int) {
			h, ok := next[*http2.HeadersFrame](f)
			if !ok {
				return
			}
			asked <- fmt.Sprint(h.StreamEnded(), " ",
				bytes.Contains(h.HeaderBlockFragment(), []byte("/healthz?verbose")))
			f.head(h.StreamID, true, fields...)
			_, _ = io.Copy(io.Discard, f)
		}
	}
	for _, c := range []struct {
		name   string
		serve  func(f *far, number int)
		status int
		want   string
	}{
		{name: "well", serve: answer(":status", "204")},
		{name: "hints", serve: func(f *far, _ int) {
			id := f.request()
			asked <- "true true"
			f.head(id, false, ":status", "103")
			f.ok(id)
		}},
		{name: "ill", serve: answer(":status", "500"), want: "the answer has the status 500"},
		{name: "another status", serve: answer(":status", "200"), status: 204,
			want: "the answer has the status 200, not 204"},
		{name: "malformed", serve: answer("server", "x"), want: "':status'"},
		{name: "leaves", serve: func(f *far, _ int) {
			f.request()
			asked <- "true true"
			_ = f.WriteGoAway(0, http2.ErrCodeNo, nil)
			_, _ = io.Copy(io.Discard, f)
		}, want: "the server ended the connection by NO_ERROR"},
		{name: "resets", serve: func(f *far, _ int) {
			_ = f.WriteRSTStream(f.request(), http2.ErrCodeInternal)
			asked <- "true true"
			_, _ = io.Copy(io.Discard, f)
		}, want: "INTERNAL_ERROR"},
		{name: "ends", serve: func(f *far, _ int) { f.request(); asked <- "true true" }, want: "EOF"},
		{name: "silent", serve: func(f *far, _ int) {
			f.request()
			asked <- "true true"
			_,
				_ = io.Copy(io.Discard, f)
		}, want: "i/o timeout"},
	} {
		for where, config := range map[string]Config{"plain": newFar(t, c.serve),
			"TLS": newFarTLS(t, &tls.Config{NextProtos: []string{"h2"}}, c.serve)} {
			client := newClient(t, config)
			timeout := time.Minute
			if c.name == "silent" {
				timeout = 100 * time.Millisecond
			}
			client.checker.config.HealthCheck = &HealthCheck{Path: "/healthz?verbose", Timeout: timeout,
				Status: c.status}
			err := client.checker.check(client.pool.set.All()[0])
			if got := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(got, c.want) {
				t.Errorf("%s, %s: got %v, want %q", c.name, where, err, c.want)
			}
			if got := <-asked; got != "true true" {
				t.Errorf("%s, %s: the backend is asked %s", c.name, where, got)
			}
			if open, _ := client.Conns(); open != 0 || client.Dialled() != 0 {
				t.Errorf("%s, %s: a check counts as a connection of requests", c.name, where)
			}
		}
	}
}
