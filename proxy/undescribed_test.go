package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// ordinary is an API that answers as its paths say.
func ordinary(aborted chan<- error) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/sum", func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.New()
		n, err := io.Copy(sum, r.Body)
		if err != nil {
			aborted <- err
			return
		}
		_, _ = fmt.Fprintf(w, "%s %d of %d as %q: %x", r.Method, n, r.ContentLength, r.Header.Get("Content-Type"),
			sum.Sum(nil))
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		buf := make([]byte, 1<<10)
		for {
			n, err := r.Body.Read(buf)
			_, _ = w.Write(buf[:n])
			_ = http.NewResponseController(w).Flush()
			if err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/refuse", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="api"`)
		http.Error(w, "not you", http.StatusUnauthorized)
	})
	return mux
}

// pattern is a body whose bytes depend on their offset.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i % 251)
	}
	return b
}

// TestUploads: a body of any size and type passes while it comes, also by TLS, and the connection serves the
// next request.
func TestUploads(t *testing.T) {
	backend := httptest.NewServer(ordinary(nil))
	defer backend.Close()
	g := gatewayFor(t, t.TempDir(), strings.TrimPrefix(backend.URL, "http://"), nil)
	address := startGateway(t, g)
	connections := map[string]bool{}
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network,
		_ string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			connections[c.LocalAddr().String()] = true
		}
		return c, err
	}}}
	defer client.CloseIdleConnections()
	for _, size := range []int{0, 1, 10, 16 << 10, 100 << 10, 5 << 20} {
		for _, length := range []int64{int64(size), -1} {
			if size == 0 && length < 0 {
				continue // the client decides by itself what it sends
			}
			for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "GET", "PURGE"} {
				r, _ := http.NewRequest(method, "http://api/sum", io.MultiReader(bytes.NewReader(pattern(size))))
				if r.ContentLength = length; size == 0 && length == 0 {
					r.Body = http.NoBody
				}
				r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
				resp, err := client.Do(r)
				if err != nil {
					t.Fatalf("%s of %d bytes: %v", method, size, err)
				}
				got, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				whole := pattern(size)
				want := fmt.Sprintf("%s %d of %d as %q: %x", method, size, length, "multipart/form-data; boundary=x",
					sha256.Sum256(whole))
				if err != nil || string(got) != want {
					t.Errorf("%s of %d bytes, length %d: %d %s, %v, want %s", method, size, length, resp.StatusCode,
						got, err, want)
				}
			}
		}
	}
	if len(connections) != 1 {
		t.Errorf("%d connections were made, want 1", len(connections))
	}
	if n := g.BodyBytesInFlight(); n != 0 {
		t.Errorf("%d bytes of the budget are taken", n)
	}
}

// TestUploadBesideAnswer: a backend may answer while the body still comes.
func TestUploadBesideAnswer(t *testing.T) {
	backend := httptest.NewServer(ordinary(nil))
	defer backend.Close()
	nc, br := dial(t, startGateway(t, gatewayFor(t, t.TempDir(), strings.TrimPrefix(backend.URL, "http://"), nil)))
	send(t, nc, "POST /echo HTTP/1.1\r\nHost: gw\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatal(err)
	}
	body := bufio.NewReader(resp.Body)
	expect(t, body, "first")
	send(t, nc, "6\r\nsecond\r\n")
	expect(t, body, "second")
	send(t, nc, "0\r\n\r\n")
	if rest, err := io.ReadAll(body); len(rest) > 0 || err != nil {
		t.Errorf("then came %q, %v", rest, err)
	}
}

// TestUploadRefused: the answer of a backend that does not want the body comes as it is, to a client that is
// still sending.
func TestUploadRefused(t *testing.T) {
	backend := httptest.NewServer(ordinary(nil))
	defer backend.Close()
	address := startGateway(t, gatewayFor(t, t.TempDir(), strings.TrimPrefix(backend.URL, "http://"), nil))
	for range 5 {
		r, _ := http.NewRequest("POST", "http://"+address+"/refuse", bytes.NewReader(pattern(8<<20)))
		r.ContentLength = 8 << 20
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != 401 || string(got) != "not you\n" ||
			resp.Header.Get("WWW-Authenticate") != `Basic realm="api"` {
			t.Errorf("answered %d %q %v", resp.StatusCode, got, resp.Header)
		}
	}
}

// TestUploadBreaksOff: what a client did not send to its end, no backend takes for the whole.
func TestUploadBreaksOff(t *testing.T) {
	aborted := make(chan error, 1)
	backend := httptest.NewServer(ordinary(aborted))
	defer backend.Close()
	g := gatewayFor(t, t.TempDir(), strings.TrimPrefix(backend.URL, "http://"), nil)
	address := startGateway(t, g)
	for name, request := range map[string]string{
		"length":  "POST /sum HTTP/1.1\r\nHost: gw\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 50000),
		"chunked": "POST /sum HTTP/1.1\r\nHost: gw\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"flawed":  "POST /sum HTTP/1.1\r\nHost: gw\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n",
	} {
		nc, br := dial(t, address)
		send(t, nc, request)
		if name == "flawed" {
			if got, closes := readAnswer(t, br, false); got.StatusCode != 400 || !closes ||
				!bytes.Contains(got.Content, []byte(`"reason":"BadRequest"`)) {
				t.Errorf("%s: answered %d %s", name, got.StatusCode, got.Content)
			}
		}
		_ = nc.Close()
		if err := <-aborted; err == nil {
			t.Errorf("%s: the backend has seen a whole body", name)
		}
	}
	testutil.Eventually(t, "all connections to be gone", func() bool { return g.server.Open() == 0 })
}
