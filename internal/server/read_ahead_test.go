package server

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestPace: a client may be late by its credit, and gets it back while it is faster. A part has its own longest time.
func TestPace(t *testing.T) {
	const most = 30 * time.Second
	p := pace{rate: 1000, credit: most}
	for i, step := range []struct {
		n      int
		allows time.Duration
		took   time.Duration
		credit time.Duration
	}{
		{1000, most, 0, most},                                       // at once
		{1000, most, 11 * time.Second, 20 * time.Second},            // 10 s late
		{2000, 22 * time.Second, 20 * time.Second, 2 * time.Second}, // and 18 more
		// what the system takes is no waiting
		{500, 2500 * time.Millisecond, 500 * time.Microsecond, 2500 * time.Millisecond},
		{5000, 7500 * time.Millisecond, 2500 * time.Millisecond, 5 * time.Second},
		{100_000, most, time.Second, most},
		{1, most, 31 * time.Second, -999 * time.Millisecond},
		{1, time.Millisecond, 0, -998 * time.Millisecond},
	} {
		if got := p.allows(step.n, most); got != step.allows {
			t.Errorf("%d: %v are allowed, want %v", i, got, step.allows)
		}
		if p.took(step.n, step.took, most); p.credit != step.credit {
			t.Errorf("%d: the credit is %v, want %v", i, p.credit, step.credit)
		}
	}
	if p := (pace{credit: most}); p.allows(1, most) != most {
		t.Error("without a rate there is one")
	}
}

// textStream is a body of n bytes that are there at once. With a hold it waits for that before its end.
type textStream struct {
	left   int
	length int64
	hold   chan struct{}
	broken atomic.Bool
}

func (s *textStream) Length() int64              { return s.length }
func (s *textStream) Ready() bool                { return s.left > 0 }
func (s *textStream) Wait() error                { return nil }
func (s *textStream) Trailers() []message.Header { return nil }
func (s *textStream) Close() error               { return nil }
func (s *textStream) Interrupt()                 { s.broken.Store(true) }

func (s *textStream) ReadReady(p []byte) (int, error) { return s.Read(p) }

func (s *textStream) Read(p []byte) (int, error) {
	if s.broken.Load() {
		return 0, message.ErrInterrupted
	}
	n := min(len(p), s.left)
	for i := range p[:n] {
		p[i] = 'x'
	}
	if s.left -= n; s.left > 0 {
		return n, nil
	}
	if s.hold != nil {
		<-s.hold
	}
	return n, io.EOF
}

// readAheadServer starts a server whose answers are streams of n bytes that are read ahead, by length or in chunks.
func readAheadServer(t *testing.T, o Options, n int, share memory.Share, read chan<- struct{}) (address string) {
	t.Helper()
	_, address = startServer(t, o, func(r *Request) {
		s := &textStream{left: n, length: int64(n)}
		if strings.HasSuffix(string(r.Head.Target), "chunked") {
			s.length = -1
		}
		var m message.Response
		lines := "HTTP/1.1 200 OK\r\nContent-Length: " + strconv.Itoa(n) + "\r\n\r\n"
		if s.length < 0 {
			lines = "HTTP/1.1 200 OK\r\n\r\n"
		}
		m.Receive(200, []byte(lines))
		m.SetStream(s)
		_, _ = r.SendStream(&m, Whole, nil, &ReadAhead{Share: share, Done: func() { read <- struct{}{} }})
	})
	return address
}

// TestReadAhead: a body is read to its end as far as the share goes, while the client has taken nothing; the client
// gets all of it.
func TestReadAhead(t *testing.T) {
	const n = 24 << 20 // more than sockets hold
	for _, path := range []string{"/length", "/chunked"} {
		budget := memory.NewBudget(256<<20, 1)
		read := make(chan struct{}, 1)
		address := readAheadServer(t, Options{}, n, budget.ShareOf("a"), read)
		nc, br := h1test.Dial(t, address)
		h1test.Send(t, nc, "GET "+path+" HTTP/1.1\r\nHost: gw\r\n\r\n")
		<-read
		if budget.InUse() == 0 {
			t.Errorf("%s: nothing is counted of what waits", path)
		}
		got, _ := h1test.ReadAnswer(t, br, false)
		if len(got.Content) != n || strings.Trim(string(got.Content), "x") != "" {
			t.Errorf("%s: %d bytes came, want %d", path, len(got.Content), n)
		}
		testutil.Becomes(t, 0, func() int64 { return budget.InUse() })
	}
}

// TestReadAheadWithoutMemory: without a share the body is read as the client takes it, with one buffer.
func TestReadAheadWithoutMemory(t *testing.T) {
	const n = 24 << 20
	budget := memory.NewBudget(1<<20, 1)
	read := make(chan struct{}, 1)
	address := readAheadServer(t, Options{}, n, budget.ShareOf("a"), read)
	nc, br := h1test.Dial(t, address)
	h1test.Send(t, nc, "GET /length HTTP/1.1\r\nHost: gw\r\n\r\n")
	if got, _ := h1test.ReadAnswer(t, br, false); len(got.Content) != n {
		t.Errorf("%d bytes came, want %d", len(got.Content), n)
	}
	<-read
	if limit := memory.LargeShare(1<<20) / 4; budget.Peak() > limit {
		t.Errorf("%d bytes were taken, want at most %d", budget.Peak(), limit)
	}
	testutil.Becomes(t, 0, func() int64 { return budget.InUse() })
}

// TestReadAheadOfNobody: a client that leaves ends the reading, and what waits is given back.
func TestReadAheadOfNobody(t *testing.T) {
	budget := memory.NewBudget(16<<20, 1)
	read := make(chan struct{}, 1)
	address := readAheadServer(t, Options{}, 1<<30, budget.ShareOf("a"), read)
	nc, _ := h1test.Dial(t, address)
	h1test.Send(t, nc, "GET /length HTTP/1.1\r\nHost: gw\r\n\r\n")
	testutil.Becomes(t, true, func() bool { return budget.InUse() > 0 })
	if err := nc.Close(); err != nil {
		t.Fatal(err)
	}
	<-read
	testutil.Becomes(t, 0, func() int64 { return budget.InUse() })
}

// TestSlowReaderIsCut: a client that takes each part in time, and all of it too slowly, is cut and counted; one that
// takes what there is as it comes is not, however long the backend is silent.
func TestSlowReaderIsCut(t *testing.T) {
	for _, isAhead := range []bool{false, true} {
		t.Run(fmt.Sprint("ahead ", isAhead), func(t *testing.T) {
			t.Parallel()
			var cut atomic.Int32
			share := memory.Share{}
			if isAhead {
				share = memory.NewBudget(8<<20, 1).ShareOf("a")
			}
			done := make(chan error, 1)
			_, address := startServer(t, Options{MinReadRate: 64 << 20, WriteTimeout: 2 * time.Second,
				TooSlow: func() { cut.Add(1) }}, func(r *Request) {
				var m message.Response
				m.Receive(200, []byte("HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n"))
				m.SetStream(&textStream{left: 1 << 30, length: 1 << 30})
				var ahead *ReadAhead
				if isAhead {
					ahead = &ReadAhead{Share: share, Done: func() {}}
				}
				_, err := r.SendStream(&m, Whole, nil, ahead)
				done <- err
			})
			nc, br := h1test.Dial(t, address)
			if over, ok := nc.(*net.TCPConn); ok {
				_ = over.SetReadBuffer(64 << 10) // else the sockets take much before a writer waits
			}
			h1test.Send(t, nc, "GET / HTTP/1.1\r\nHost: gw\r\n\r\n")
			buf := make([]byte, 32<<10)
			var failed error
			for failed == nil {
				time.Sleep(10 * time.Millisecond) // at most 3 MiB in a second
				_, failed = br.Read(buf)
			}
			if err := <-done; err == nil {
				t.Error("all was sent")
			}
			if cut.Load() != 1 {
				t.Errorf("%d are counted", cut.Load())
			}
		})
	}
}

// eventStream is a body of events that come when they are let.
type eventStream struct {
	textStream
	events <-chan string
}

func (s *eventStream) ReadReady([]byte) (int, error) { return 0, nil }

func (s *eventStream) Read(p []byte) (int, error) {
	event, ok := <-s.events
	if !ok {
		return 0, io.EOF
	}
	return copy(p, event), nil
}

// TestQuietStreamIsNotCut: the silence of a backend is not the client's, however long it lasts and however little
// comes.
func TestQuietStreamIsNotCut(t *testing.T) {
	var cut atomic.Int32
	events := make(chan string)
	_, address := startServer(t, Options{MinReadRate: 1 << 20, WriteTimeout: 20 * time.Millisecond,
		TooSlow: func() { cut.Add(1) }}, func(r *Request) {
		var m message.Response
		m.Receive(200, []byte("HTTP/1.1 200 OK\r\n\r\n"))
		m.SetStream(&eventStream{textStream{length: -1}, events})
		_, _ = r.SendStream(&m, Events, nil, nil)
	})
	nc, br := h1test.Dial(t, address)
	h1test.Send(t, nc, "GET / HTTP/1.1\r\nHost: gw\r\n\r\n")
	go func() {
		defer close(events)
		for range 4 {
			time.Sleep(100 * time.Millisecond) // far beyond what a client may be late
			events <- "{}"
		}
	}()
	if got, _ := h1test.ReadAnswer(t, br, false); string(got.Content) != "{}{}{}{}" || cut.Load() != 0 {
		t.Errorf("%q came, %d were cut", got.Content, cut.Load())
	}
}
