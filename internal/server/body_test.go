package server

import (
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// Bodies of every size arrive as they were sent, whatever pieces they come in,
// and the memory for them is given back.
func TestBodies(t *testing.T) {
	backend := h1test.NewRecorder(t)
	r := newRelay(t, upstream.Config{Endpoints: []string{backend.URL()}})
	_, addr := r.start(t, Options{})
	nc, br := h1test.Dial(t, addr)
	head := len(h1test.PostHead)
	for _, size := range []int{0, 1, 100, readBuffer - head - 100, readBuffer - head, readBuffer - 1, readBuffer,
		readBuffer + 1, 20_000, 65_535, 65_536, 65_537, 300_000, 3 << 20} {
		body := strings.Repeat("0123456789abcdefghijk", size/21+1)[:size]
		for _, chunk := range []int{0, 7, 4096, 100_000} {
			if chunk == 7 && size > 100_000 {
				continue
			}
			for _, piece := range []int{1 << 30, 3000} {
				name := fmt.Sprintf("%d bytes in chunks of %d, pieces of %d", size, chunk, piece)
				message := h1test.PostHead + "Content-Length: " + strconv.Itoa(size) + "\r\n\r\n" + body
				if chunk > 0 {
					message = h1test.PostHead + "Transfer-Encoding: chunked\r\n\r\n" + h1test.Chunks(body, chunk)
				}
				// The deadline of the connection is for one exchange, and here are a hundred.
				if err := nc.SetDeadline(time.Now().Add(testutil.Patience)); err != nil {
					t.Fatal(err)
				}
				for rest := message; rest != ""; {
					n := min(piece, len(rest))
					h1test.Send(t, nc, rest[:n])
					rest = rest[n:]
				}
				if got, closes := h1test.ReadAnswer(t, br, false); got.StatusCode != 200 || closes {
					t.Fatalf("%s: answered %d %s", name, got.StatusCode, got.Content)
				}
				_, got, _ := strings.Cut(backend.Take(), "\r\n\r\n")
				if got != body {
					t.Fatalf("%s: %d bytes arrived, or others", name, len(got))
				}
			}
		}
	}
	if n := r.memory.InUse(); n != 0 {
		t.Errorf("%d bytes of the budget are in use", n)
	}
}

func TestBodyLimit(t *testing.T) {
	backend := h1test.NewRecorder(t)
	r := newRelay(t, upstream.Config{Endpoints: []string{backend.URL()}})
	r.limit = 100_000
	_, addr := r.start(t, Options{})
	body := strings.Repeat("a", 100_001)
	for name, message := range map[string]string{
		"length":      "Content-Length: 100001\r\n\r\n" + body,
		"one chunk":   "Transfer-Encoding: chunked\r\n\r\n" + h1test.Chunks(body, len(body)),
		"many chunks": "Transfer-Encoding: chunked\r\n\r\n" + h1test.Chunks(body, 1000),
	} {
		nc, br := h1test.Dial(t, addr)
		h1test.Send(t, nc, h1test.PostHead+message)
		got, closes := h1test.ReadAnswer(t, br, false)
		if got.StatusCode != 413 || !closes {
			t.Errorf("%s: answered %d, close %v", name, got.StatusCode, closes)
		}
		if _, err := io.ReadAll(br); err != nil {
			t.Errorf("%s: the connection ends with %v", name, err)
		}
	}
	if got := backend.Take(); got != "" {
		t.Errorf("the backend got %.100q", got)
	}
	if n := r.memory.InUse(); n != 0 {
		t.Errorf("%d bytes of the budget are in use", n)
	}
}

// Connections that announce large bodies and hardly send any cost a constant
// each and nothing of the budget.
func TestAnnouncedBodies(t *testing.T) {
	const conns = 200
	backend := h1test.NewRecorder(t)
	r := newRelay(t, upstream.Config{Endpoints: []string{backend.URL()}})
	s, addr := r.start(t, Options{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range conns {
		nc, _ := h1test.Dial(t, addr)
		framing := "Content-Length: 3000000\r\n\r\n{"
		if i%2 == 0 {
			framing = "Transfer-Encoding: chunked\r\n\r\n200000\r\n{"
		}
		h1test.Send(t, nc, h1test.PostHead+framing)
	}
	testutil.Eventually(t, "all to send a body", func() bool { return s.Active() == conns })
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n := r.memory.InUse(); n != 0 {
		t.Errorf("%d bytes of the budget are in use", n)
	}
	// Both ends of the connections are in this process.
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > conns*64<<10 {
		t.Errorf("the heap grew by %d bytes for each connection", grown/conns)
	}
	if got := backend.Take(); got != "" {
		t.Errorf("the backend got %.100q", got)
	}
}

// TestArrivingBodies: a body takes no more memory than eight times what has arrived of it, whatever is announced.
func TestArrivingBodies(t *testing.T) {
	backend := h1test.NewRecorder(t)
	r := newRelay(t, upstream.Config{Endpoints: []string{backend.URL()}})
	_, addr := r.start(t, Options{})
	const length = 3_000_000
	nc, br := h1test.Dial(t, addr)
	h1test.Send(t, nc, h1test.PostHead+"Content-Length: "+strconv.Itoa(length)+"\r\n\r\n")
	sent := 0
	for _, until := range []int{20_000, 100_000, 140_000, 600_000} {
		before := r.memory.InUse()
		h1test.Send(t, nc, strings.Repeat("a", until-sent))
		sent = until
		testutil.Eventually(t, "the body to take memory",
			func() bool { return r.memory.InUse() > before || before >= int64(until) })
		if n := r.memory.InUse(); n > 8*int64(until) {
			t.Errorf("%d bytes of the budget are in use for %d", n, until)
		}
	}
	h1test.Send(t, nc, strings.Repeat("a", length-sent))
	if got, _ := h1test.ReadAnswer(t, br, false); got.StatusCode != 200 {
		t.Errorf("answered %d %s", got.StatusCode, got.Content)
	}
}

func TestBodyBudget(t *testing.T) {
	backend := h1test.NewRecorder(t)
	r := newRelay(t, upstream.Config{Endpoints: []string{backend.URL()}})
	r.memory = memoryOf(320 << 10) // three requests in flight, and their small bodies, fit
	_, addr := r.start(t, Options{})
	holder, answers := h1test.Dial(t, addr)
	h1test.Send(t, holder, h1test.PostHead+"Content-Length: 40000\r\n\r\n"+strings.Repeat("a", 30_000))
	testutil.Eventually(t, "the body to take memory", func() bool { return r.memory.InUse() > 0 })
	nc, br := h1test.Dial(t, addr)
	h1test.Send(t, nc, h1test.PostHead+"Content-Length: 200000\r\n\r\n"+strings.Repeat("b", 200_000))
	if got, closes := h1test.ReadAnswer(t, br, false); got.StatusCode != 503 || !closes ||
		!strings.Contains(string(got.Content), `"retryAfterSeconds":1`) {
		t.Errorf("over the budget: %d %s", got.StatusCode, got.Content)
	}
	// Small bodies need nothing of it.
	nc, br = h1test.Dial(t, addr)
	h1test.Send(t, nc, h1test.PostHead+"Content-Length: 7\r\n\r\n"+h1test.Body7)
	if got, _ := h1test.ReadAnswer(t, br, false); got.StatusCode != 200 {
		t.Errorf("a small body: %d %s", got.StatusCode, got.Content)
	}
	h1test.Send(t, holder, strings.Repeat("a", 10_000))
	if got, _ := h1test.ReadAnswer(t, answers, false); got.StatusCode != 200 {
		t.Errorf("the body that holds the budget: %d %s", got.StatusCode, got.Content)
	}
}

// 100 (Continue) comes when the body is wanted, and only to clients that wait.
func TestExpectContinue(t *testing.T) {
	backend := h1test.NewRecorder(t)
	r := newRelay(t, upstream.Config{Endpoints: []string{backend.URL()}})
	_, addr := r.start(t, Options{})
	for _, framing := range []string{"Content-Length: 7\r\n", "Transfer-Encoding: chunked\r\n"} {
		nc, br := h1test.Dial(t, addr)
		h1test.Send(t, nc, h1test.PostHead+framing+"Expect: 100-continue\r\n\r\n")
		want := "HTTP/1.1 100 Continue\r\n\r\n"
		got := make([]byte, len(want))
		if _, err := io.ReadFull(br, got); err != nil || string(got) != want {
			t.Fatalf("got %q, %v", got, err)
		}
		if got := backend.Take(); got != "" {
			t.Errorf("the backend got %q before the body", got)
		}
		if framing[0] == 'C' {
			h1test.Send(t, nc, h1test.Body7)
		} else {
			h1test.Send(t, nc, h1test.Chunks(h1test.Body7, 3))
		}
		if got, closes := h1test.ReadAnswer(t, br, false); got.StatusCode != 200 || closes {
			t.Errorf("answered %d", got.StatusCode)
		}
		if got := backend.Take(); !strings.HasSuffix(got, "Content-Length: 7\r\n\r\n"+h1test.Body7) ||
			strings.Contains(got, "Expect") {
			t.Errorf("the backend got %q", got)
		}
	}
	nc, br := h1test.Dial(t, addr)
	h1test.Send(t, nc, strings.Replace(h1test.PostHead, "1.1", "1.0", 1)+
		"Content-Length: 7\r\nExpect: 100-continue\r\n\r\n"+h1test.Body7[:3])
	h1test.Send(t, nc, h1test.Body7[3:])
	if got, _ := h1test.ReadAnswer(t, br, false); got.StatusCode != 200 {
		t.Errorf("HTTP/1.0: answered %d", got.StatusCode)
	}
}

// TestTrailersAreDropped: trailers of an upload are read, and go no further: the connection serves the next request.
func TestTrailersAreDropped(t *testing.T) {
	type read struct {
		body     string
		trailers []message.Header
		err      error
	}
	uploads := make(chan read, 1)
	_, addr := startServer(t, Options{}, func(r *Request) {
		if r.Head.HasBody() {
			u := r.Upload(false)
			body, err := io.ReadAll(u)
			uploads <- read{string(body), u.Trailers(), err}
		}
		if r.Head.Has(message.FieldXRemote) {
			t.Error("a trailer became a field of the request")
		}
		reply(r, 200)
	})
	nc, br := h1test.Dial(t, addr)
	h1test.Send(t, nc, h1test.PostHead+"Transfer-Encoding: chunked\r\nTrailer: X-Remote-User\r\n\r\n7\r\n"+h1test.Body7+
		"\r\n0\r\nX-Remote-User: root\r\n\r\n")
	if got := <-uploads; got.err != nil || got.body != h1test.Body7 || got.trailers != nil {
		t.Errorf("got %+v", got)
	}
	for range 2 {
		if got, closes := h1test.ReadAnswer(t, br, false); got.StatusCode != 200 || closes {
			t.Errorf("answered %d", got.StatusCode)
		}
		h1test.Send(t, nc, h1test.GetHead+"\r\n")
	}
}
