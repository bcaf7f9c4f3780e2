package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// reading opens a connection from an address of this machine that takes next to nothing, and sends a request on it.
func reading(t *testing.T, from, address, request string) net.Conn {
	t.Helper()
	small := func(_, _ string, c syscall.RawConn) (err error) {
		_ = c.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF,
				4<<10)
		})
		return err
	}
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Control: small}
	nc, err := d.Dial("tcp", address)
	if err != nil {
		t.Skipf("this machine has no address %s: %v", from, err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	if _, err := io.WriteString(nc, request); err != nil {
		t.Fatal(err)
	}
	return nc
}

// smallBuffers are the sockets of a listener that buffer little for slow clients.
type smallBuffers struct{ net.Listener }

func (l smallBuffers) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(4 << 10)
	}
	return c, err
}

// TestSlowReadersLeaveRoom: two hundred clients of one tenant that read nothing keep no client of
// another tenant out, whether their answers are in memory, streams of known length, in chunks, or
// edited on their way. What waits is held within the tenant's share of the memory.
func TestSlowReadersLeaveRoom(t *testing.T) {
	const size = 256 << 10
	readers := testutil.Amount(200, 50)
	order := fmt.Sprintf(`{"id":"o1","note":%q}`, strings.Repeat("x", size))
	for _, test := range []struct{ name, request, body string }{
		{"stream", "GET /other/length HTTP/1.1\r\nHost: gw\r\n\r\n", order},
		{"chunks", "GET /other/chunks HTTP/1.1\r\nHost: gw\r\n\r\n", order},
		{"object", "GET /v2/orders/o1 HTTP/1.1\r\nHost: gw\r\n\r\n", order},
		{"list", "GET /v2/orders HTTP/1.1\r\nHost: gw\r\n\r\n", "[" + order + "]"},
		{"in memory", "POST /v2/orders HTTP/1.1\r\nHost: gw\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"id\":\"o1\"}", order},
	} {
		t.Run(test.name, func(t *testing.T) {
			served := make(chan struct{}, readers)
			backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if r.URL.Path == "/small" {
					_, _ = io.WriteString(w, "{}")
					return
				}
				if r.URL.Path != "/other/chunks" {
					w.Header().Set("Content-Length", fmt.Sprint(len(test.body)))
				}
				_, _ = io.WriteString(w, test.body)
				served <- struct{}{}
			}))
			defer backend.Close()
			dir := t.TempDir()
			testutil.WriteFile(t, filepath.Join(dir, "limit.yaml"), "apiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: crowd}\n"+
				"spec: {key: Global, maxInFlightTotal: 16}\n")
			g := gatewayFor(t, dir, backend.Listener.Addr().String(), []string{"policies=orders", "memory=536870912"})
			address := serveBuffered(t, g)
			for i := range readers {
				reading(t, "127.0.0.2", address, test.request)
				select {
				case <-served:
				case <-time.After(testutil.Patience):
					t.Fatalf("beside %d readers no other is served", i)
				}
				// The place is free as soon as the gateway has read what the backend sent, which no client can see.
				if i < 16 {
					continue
				}
				var code int
				for deadline := time.Now().Add(testutil.Patience); code != 200 && time.Now().Before(deadline); {
					nc := reading(t, "127.0.0.3", address, "GET /small HTTP/1.1\r\nHost: gw\r\n\r\n")
					answer, err := http.ReadResponse(bufio.NewReader(nc), nil)
					if err != nil {
						t.Fatal(err)
					}
					code = answer.StatusCode
					_ = nc.Close()
				}
				if code != 200 {
					t.Fatalf("beside %d readers another tenant is answered %d", i+1, code)
				}
			}
			if share := g.memory.Limit() / 4; g.memory.InUse() == 0 || g.memory.InUse() > share {
				t.Errorf("%d bytes are held, want at most %d", g.memory.InUse(), share)
			}
		})
	}
}

// serveBuffered serves with small buffers until the test ends, which does not wait for who reads slowly.
func serveBuffered(t *testing.T, g *Gateway) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- g.Serve(smallBuffers{ln}) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		_ = g.Shutdown(ctx)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// TestSlowReaderIsCounted: a client that does not take its answer is cut, and the metric counts it.
func TestSlowReaderIsCounted(t *testing.T) {
	t.Parallel()
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", 16<<20))
	}))
	defer backend.Close()
	g := gatewayFor(t, t.TempDir(), backend.Listener.Addr().String(), []string{"drain=65536"})
	nc := reading(t, "127.0.0.1", serveBuffered(t, g), "GET /other HTTP/1.1\r\nHost: gw\r\n\r\n")
	testutil.Becomes(t, true, func() bool {
		metrics := httptest.NewRecorder()
		g.metrics.Handler().ServeHTTP(metrics, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return strings.Contains(metrics.Body.String(), "gateway_slow_readers_cut_total 1\n")
	})
	if answer, err := http.ReadResponse(bufio.NewReader(nc), nil); err == nil {
		if n, err := io.Copy(io.Discard, answer.Body); err == nil {
			t.Errorf("the client got a complete body of %d bytes", n)
		}
	}
}
