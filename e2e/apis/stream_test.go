package apis

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
)

const (
	hugeBody   = 50 << 20
	atATime    = 4
	moreMemory = 64 << 20 // what the gateway's memory may grow by, where its bodies together are atATime*hugeBody
)

// A zeros is a reader of n zero bytes.
func zeros(n int64) io.Reader { return io.LimitReader(zero{}, n) }

type zero struct{}

func (zero) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// peakMemory returns the most memory that the process has had.
func peakMemory(t testing.TB, p *program) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.process.Pid))
	if err != nil {
		t.Skip("the memory of a process can be read on Linux alone")
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	line, _, _ := strings.Cut(rest, "kB")
	n, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return n << 10
}

// TestHugeBodies: bodies of 50 MB pass up and down, four at a time, and the gateway does not grow by them.
func TestHugeBodies(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.Copy(w, zeros(hugeBody))
			return
		}
		n, err := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprintf(w, "%d bytes, %v", n, err)
	}))
	t.Cleanup(backend.Close)
	taken := fmt.Sprintf("200 %d bytes, <nil>", hugeBody)
	for _, c := range []struct {
		name, method, contentType string
		length                    int64
		want                      string
	}{
		{"down", http.MethodGet, "", 0, ""},
		{"up-octets", http.MethodPut, "application/octet-stream", hugeBody, taken},
		{"up-multipart", http.MethodPost, "multipart/form-data; boundary=b", hugeBody, taken},
		{"up-chunked", http.MethodPost, "application/octet-stream", -1, taken},
		{"up-json", http.MethodPost, "application/json", hugeBody, taken},
		{"up-patch", http.MethodPatch, "application/offset+octet-stream", hugeBody, taken},
	} {
		prove(t, c.name, func(t *proof) {
			g := startGateway(t, backend.URL)
			before := peakMemory(t, g)
			var all sync.WaitGroup
			for range atATime {
				all.Go(func() {
					if got := transfer(g.url()+"/files/1", c.method, c.contentType, c.length); c.want != "" &&
						got != c.want {
						t.Errorf("%s, want %s", got, c.want)
					} else if c.want == "" && got != fmt.Sprintf("200 and %d bytes", hugeBody) {
						t.Errorf("%s", got)
					}
				})
			}
			all.Wait()
			if grown := peakMemory(t, g) - before; grown > moreMemory {
				t.Errorf("the gateway grew by %d MiB", grown>>20)
			}
		})
	}
}

// transfer sends a body of zeros, and returns the code with what came back: its text, or of a huge body the length.
func transfer(url, method, contentType string, length int64) string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return err.Error()
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
		request.Body, request.ContentLength = io.NopCloser(zeros(hugeBody)), length
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	var first bytes.Buffer
	n, err := io.Copy(&first, io.LimitReader(response.Body, 4096))
	if err != nil {
		return err.Error()
	}
	more, err := io.Copy(io.Discard, response.Body)
	switch {
	case err != nil:
		return err.Error()
	case more > 0:
		return fmt.Sprintf("%d and %d bytes", response.StatusCode, n+more)
	default:
		return fmt.Sprintf("%d %s", response.StatusCode, first.String())
	}
}

// TestEventStream: each event arrives before the backend sends the next one.
func TestEventStream(t *testing.T) {
	const events = 5
	arrived := make(chan struct{})
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isQuestion(w, r) {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range events {
			_, _ = fmt.Fprintf(w, "id: %d\ndata: {}\n\n", i)
			w.(http.Flusher).Flush()
			select {
			case <-arrived:
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(backend.Close)
	g := startGateway(t, backend.URL)
	for _, target := range []string{"/events", "/api/v1/events", "/apis/events"} {
		prove(t, strings.TrimPrefix(target, "/"), func(t *proof) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			request, _ := http.NewRequestWithContext(ctx, http.MethodGet, g.url()+target, nil)
			request.Header.Set("Accept", "text/event-stream")
			response, err := http.DefaultTransport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			lines := bufio.NewScanner(response.Body)
			for i := range events {
				var event []string
				for lines.Scan() && lines.Text() != "" {
					event = append(event, lines.Text())
				}
				if want := fmt.Sprintf("id: %d|data: {}", i); strings.Join(event, "|") != want {
					t.Fatalf("%d: event %d is %q, want %q", response.StatusCode, i, event, want)
				}
				select {
				case arrived <- struct{}{}:
				case <-ctx.Done():
					t.Fatal("the backend does not go on")
				}
			}
			if lines.Scan() {
				t.Errorf("after the last event: %q", lines.Text())
			}
		})
	}
}

// TestWebSocket: a client's upgrade reaches the backend, with no setting that names its path.
func TestWebSocket(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isQuestion(w, r) {
			return
		}
		if r.URL.Path == "/refused" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		upgrader := ws.HTTPUpgrader{Protocol: func(name string) bool { return name == "chat" }}
		connection, _, _, err := upgrader.Upgrade(r, w)
		if err != nil {
			return
		}
		defer func() { _ = connection.Close() }()
		for {
			message, kind, err := wsutil.ReadClientData(connection)
			if err != nil || wsutil.WriteServerMessage(connection, kind, append([]byte("echo:"), message...)) != nil {
				return
			}
		}
	}))
	t.Cleanup(backend.Close)
	g := startGateway(t, backend.URL)
	for _, target := range []string{"/socket", "/api/v1/socket", "/socket/1;v=2?a=b"} {
		prove(t, "echo"+strings.NewReplacer("/", "-", ";", "-", "?", "-").Replace(target),
			func(t *proof) { proveEcho(t, g.address, target) })
	}
	prove(t, "refused", func(t *proof) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		var asks string
		_, _, _, err := ws.Dialer{OnStatusError: func(_ int, _ []byte, answer io.Reader) {
			if refusal, err := http.ReadResponse(bufio.NewReader(answer), nil); err == nil {
				asks = refusal.Header.Get("WWW-Authenticate")
			}
		}}.Dial(ctx, "ws://"+g.address+"/refused")
		var code ws.StatusError
		if !errors.As(err, &code) || code != http.StatusUnauthorized || asks != "Bearer" {
			t.Errorf("%v, which asks for %q", err, asks)
		}
	})
}

func proveEcho(t *proof, address, target string) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	connection, early, handshake, err := ws.Dialer{Protocols: []string{"chat"}}.Dial(ctx, "ws://"+address+target)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	if early != nil || handshake.Protocol != "chat" {
		t.Errorf("the handshake agreed on %q", handshake.Protocol)
	}
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
	defer stop()
	for _, message := range []string{"hello", strings.Repeat("x", 1<<20), ""} {
		if err := wsutil.WriteClientText(connection, []byte(message)); err != nil {
			t.Fatal(err)
		}
		got, err := wsutil.ReadServerText(connection)
		if err != nil || string(got) != "echo:"+message {
			t.Fatalf("%d bytes came back of %d, %v", len(got), len(message), err)
		}
	}
}
