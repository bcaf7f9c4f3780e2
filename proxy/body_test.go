package proxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/upstream"
)

// dial connects to the gateway. The deadline is a guard against hanging.
func dial(t testing.TB, addr string) (net.Conn, *bufio.Reader) {
	t.Helper()
	addr, secure := strings.CutPrefix(addr, secureScheme)
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if secure {
		nc = tls.Client(nc, &tls.Config{InsecureSkipVerify: true})
	}
	t.Cleanup(func() { _ = nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return nc, bufio.NewReader(nc)
}

func send(t testing.TB, w io.Writer, s string) {
	t.Helper()
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
}

const postHead = "POST /v2/orders HTTP/1.1\r\nHost: gw\r\nContent-Type: application/json\r\n"

// Bodies of every size arrive as they were sent, whatever pieces they come in,
// and the memory for them is given back.
func TestBodies(t *testing.T) {
	backend := newRecorder(t)
	r := newRelay(t, upstream.Config{Endpoints: []string{backend.url()}})
	_, addr := startServer(t, serverOptions{}, r.handle)
	nc, br := dial(t, addr)
	head := len(postHead)
	for _, size := range []int{0, 1, 100, readBuffer - head - 100, readBuffer - head, readBuffer - 1, readBuffer, readBuffer + 1, 20_000, 65_535, 65_536, 65_537, 300_000, 3 << 20} {
		body := strings.Repeat("0123456789abcdefghijk", size/21+1)[:size]
		for _, chunk := range []int{0, 7, 4096, 100_000} {
			if chunk == 7 && size > 100_000 {
				continue
			}
			for _, piece := range []int{1 << 30, 3000} {
				name := fmt.Sprintf("%d bytes in chunks of %d, pieces of %d", size, chunk, piece)
				message := postHead + "Content-Length: " + strconv.Itoa(size) + "\r\n\r\n" + body
				if chunk > 0 {
					message = postHead + "Transfer-Encoding: chunked\r\n\r\n" + chunks(body, chunk)
				}
				for rest := message; rest != ""; {
					n := min(piece, len(rest))
					send(t, nc, rest[:n])
					rest = rest[n:]
				}
				if got, closes := readAnswer(t, br, false); got.StatusCode != 200 || closes {
					t.Fatalf("%s: answered %d %s", name, got.StatusCode, got.body)
				}
				_, got, _ := strings.Cut(backend.take(), "\r\n\r\n")
				if got != body {
					t.Fatalf("%s: %d bytes arrived, or others", name, len(got))
				}
			}
		}
	}
	if n := r.budget.inUse(); n != 0 {
		t.Errorf("%d bytes of the budget are in use", n)
	}
}

func chunks(body string, size int) string {
	var b strings.Builder
	for body != "" {
		n := min(size, len(body))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	return b.String() + "0\r\n\r\n"
}

func TestBodyLimit(t *testing.T) {
	backend := newRecorder(t)
	r := newRelay(t, upstream.Config{Endpoints: []string{backend.url()}})
	r.limit = 100_000
	_, addr := startServer(t, serverOptions{}, r.handle)
	body := strings.Repeat("a", 100_001)
	for name, message := range map[string]string{
		"length":      "Content-Length: 100001\r\n\r\n" + body,
		"one chunk":   "Transfer-Encoding: chunked\r\n\r\n" + chunks(body, len(body)),
		"many chunks": "Transfer-Encoding: chunked\r\n\r\n" + chunks(body, 1000),
	} {
		nc, br := dial(t, addr)
		send(t, nc, postHead+message)
		got, closes := readAnswer(t, br, false)
		if got.StatusCode != 413 || !closes {
			t.Errorf("%s: answered %d, close %v", name, got.StatusCode, closes)
		}
		if _, err := io.ReadAll(br); err != nil {
			t.Errorf("%s: the connection ends with %v", name, err)
		}
	}
	if got := backend.take(); got != "" {
		t.Errorf("the backend got %.100q", got)
	}
	if n := r.budget.inUse(); n != 0 {
		t.Errorf("%d bytes of the budget are in use", n)
	}
}

// Connections that announce large bodies and hardly send any cost a constant
// each and nothing of the budget.
func TestAnnouncedBodies(t *testing.T) {
	const conns = 200
	backend := newRecorder(t)
	r := newRelay(t, upstream.Config{Endpoints: []string{backend.url()}})
	s, addr := startServer(t, serverOptions{}, r.handle)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range conns {
		nc, _ := dial(t, addr)
		framing := "Content-Length: 3000000\r\n\r\n{"
		if i%2 == 0 {
			framing = "Transfer-Encoding: chunked\r\n\r\n200000\r\n{"
		}
		send(t, nc, postHead+framing)
	}
	reading := func() (n int) {
		s.each(func(c *conn) {
			if c.state.Load() == connActive {
				n++
			}
		})
		return n
	}
	for reading() < conns {
		time.Sleep(time.Millisecond)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n := r.budget.inUse(); n != 0 {
		t.Errorf("%d bytes of the budget are in use", n)
	}
	// Both ends of the connections are in this process.
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > conns*64<<10 {
		t.Errorf("the heap grew by %d bytes for each connection", grown/conns)
	}
	if got := backend.take(); got != "" {
		t.Errorf("the backend got %.100q", got)
	}
}

func TestBodyBudget(t *testing.T) {
	backend := newRecorder(t)
	r := newRelay(t, upstream.Config{Endpoints: []string{backend.url()}})
	r.budget = newBodyBudget(64 << 10)
	_, addr := startServer(t, serverOptions{}, r.handle)
	holder, held := dial(t, addr)
	send(t, holder, postHead+"Content-Length: 40000\r\n\r\n"+strings.Repeat("a", 30_000))
	for r.budget.inUse() == 0 {
		time.Sleep(time.Millisecond)
	}
	nc, br := dial(t, addr)
	send(t, nc, postHead+"Content-Length: 40000\r\n\r\n"+strings.Repeat("b", 40_000))
	if got, closes := readAnswer(t, br, false); got.StatusCode != 503 || !closes || !strings.Contains(string(got.body), `"retryAfterSeconds":1`) {
		t.Errorf("over the budget: %d %s", got.StatusCode, got.body)
	}
	// Small bodies need nothing of it.
	nc, br = dial(t, addr)
	send(t, nc, postHead+"Content-Length: 7\r\n\r\n"+body7)
	if got, _ := readAnswer(t, br, false); got.StatusCode != 200 {
		t.Errorf("a small body: %d %s", got.StatusCode, got.body)
	}
	send(t, holder, strings.Repeat("a", 10_000))
	if got, _ := readAnswer(t, held, false); got.StatusCode != 200 {
		t.Errorf("the body that holds the budget: %d %s", got.StatusCode, got.body)
	}
}

// 100 (Continue) comes when the body is wanted, and only to clients that wait.
func TestExpectContinue(t *testing.T) {
	backend := newRecorder(t)
	r := newRelay(t, upstream.Config{Endpoints: []string{backend.url()}})
	_, addr := startServer(t, serverOptions{}, r.handle)
	for _, framing := range []string{"Content-Length: 7\r\n", "Transfer-Encoding: chunked\r\n"} {
		nc, br := dial(t, addr)
		send(t, nc, postHead+framing+"Expect: 100-continue\r\n\r\n")
		want := "HTTP/1.1 100 Continue\r\n\r\n"
		got := make([]byte, len(want))
		if _, err := io.ReadFull(br, got); err != nil || string(got) != want {
			t.Fatalf("got %q, %v", got, err)
		}
		if got := backend.take(); got != "" {
			t.Errorf("the backend got %q before the body", got)
		}
		if framing[0] == 'C' {
			send(t, nc, body7)
		} else {
			send(t, nc, chunks(body7, 3))
		}
		if got, closes := readAnswer(t, br, false); got.StatusCode != 200 || closes {
			t.Errorf("answered %d", got.StatusCode)
		}
		if got := backend.take(); !strings.HasSuffix(got, "Content-Length: 7\r\n\r\n"+body7) || strings.Contains(got, "Expect") {
			t.Errorf("the backend got %q", got)
		}
	}
	nc, br := dial(t, addr)
	send(t, nc, strings.Replace(postHead, "1.1", "1.0", 1)+"Content-Length: 7\r\nExpect: 100-continue\r\n\r\n"+body7[:3])
	send(t, nc, body7[3:])
	if got, _ := readAnswer(t, br, false); got.StatusCode != 200 {
		t.Errorf("HTTP/1.0: answered %d", got.StatusCode)
	}
}
