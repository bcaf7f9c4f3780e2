package server

import (
	"context"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/listeners"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// zeros is a body that never holds all of itself in memory.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// refusing is a server that refuses whatever comes with the code that the path names, unread.
func refusing(t *testing.T, o Options) (*Server, string) {
	t.Helper()
	return startServer(t, o, func(r *Request) {
		code, _ := strconv.Atoi(strings.TrimPrefix(string(r.Head.Target), "/"))
		reply(r, code)
	})
}

// TestSendsAllFirst lets clients read their answer that look for it only when they have sent
// everything.
func TestSendsAllFirst(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		var o Options
		if secure {
			o.Listeners = listeners.Any(h1test.NewTLS(t, credentials.ServerFiles{}).Server)
		}
		_, addr := refusing(t, o)
		for _, code := range []int{400, 401, 403, 404, 413, 415, 422, 429, 503} {
			nc, br := h1test.Dial(t, addr)
			h1test.Send(t, nc, "POST /"+strconv.Itoa(code)+" HTTP/1.1\r\nHost: gw\r\nContent-Length: "+
				strconv.Itoa(8<<20)+"\r\n\r\n")
			if n, err := io.Copy(nc, io.LimitReader(zeros{}, 8<<20)); err != nil {
				t.Fatalf("%d, TLS %v: sending ended after %d bytes: %v", code, secure, n, err)
			}
			if got, closes := h1test.ReadAnswer(t, br, false); got.StatusCode != code || !closes {
				t.Errorf("answered %d, close %v; want %d", got.StatusCode, closes, code)
			}
			if rest, err := io.ReadAll(br); len(rest) > 0 || err != nil {
				t.Errorf("%d, TLS %v: then came %q, %v", code, secure, rest, err)
			}
		}
	}
}

// refusedSender sends a body without end to a server that has refused it, and returns how much left
// before it broke.
func refusedSender(t *testing.T, addr string, pause time.Duration) (sent *atomic.Int64, ended chan struct{}) {
	t.Helper()
	nc, br := h1test.Dial(t, addr)
	h1test.Send(t, nc, "POST /413 HTTP/1.1\r\nHost: gw\r\nContent-Length: 999999999999\r\n\r\n")
	if got, _ := h1test.ReadAnswer(t, br, false); got.StatusCode != 413 {
		t.Fatalf("answered %d", got.StatusCode)
	}
	sent, ended = new(atomic.Int64), make(chan struct{})
	go func() {
		defer close(ended)
		part := make([]byte, 64<<10)
		if pause > 0 {
			part = part[:1]
		}
		for {
			n, err := nc.Write(part)
			if sent.Add(int64(n)); err != nil {
				return
			}
			time.Sleep(pause)
		}
	}()
	return sent, ended
}

// TestLingerBounds ends the connections of clients that go on sending: after so many bytes, after
// so long, and when they pause; and those beyond the number that may linger at once.
func TestLingerBounds(t *testing.T) {
	const inTransit = 16 << 20 // what the buffers of two sockets may hold
	generous := lingerLimits{Time: time.Minute, Silence: time.Minute, Bytes: 1 << 40, Conns: 100, Pace: 1 << 40}
	for _, c := range []struct {
		name  string
		limit func(*lingerLimits)
		pause time.Duration
		most  int64 // bytes that leave the client
	}{
		{"bytes", func(l *lingerLimits) { l.Bytes = 1 << 20 }, 0, 1<<20 + inTransit},
		{"time", func(l *lingerLimits) { l.Time = 200 * time.Millisecond }, time.Millisecond, inTransit},
		{"silence", func(l *lingerLimits) { l.Silence = 50 * time.Millisecond }, 500 * time.Millisecond, 100},
		{"number", func(l *lingerLimits) { l.Conns = 0 }, 0, inTransit},
		{"pace and time", func(l *lingerLimits) { l.Pace, l.Time = 1<<20, 500*time.Millisecond }, 0, 2<<20 + inTransit},
	} {
		for _, secure := range []bool{false, true} {
			t.Run(c.name+" TLS "+strconv.FormatBool(secure), func(t *testing.T) {
				var o Options
				if secure {
					o.Listeners = listeners.Any(h1test.NewTLS(t, credentials.ServerFiles{}).Server)
				}
				s, addr := refusing(t, o)
				s.lingering.lingerLimits = generous
				c.limit(&s.lingering.lingerLimits)
				sent, ended := refusedSender(t, addr, c.pause)
				select {
				case <-ended:
				case <-time.After(20 * time.Second):
					t.Fatalf("the client still sends, after %d bytes", sent.Load())
				}
				if n := sent.Load(); n > c.most {
					t.Errorf("%d bytes left the client, want at most %d", n, c.most)
				}
				testutil.Eventually(t, "the connection to be given up",
					func() bool { return s.Open() == 0 && s.lingering.conns.Load() == 0 })
			})
		}
	}
}

// TestLingerPace checks that all clients together keep the pace, counted in the bytes they send.
func TestLingerPace(t *testing.T) {
	l := lingering{lingerLimits: lingerLimits{Pace: 1000}}
	start := time.Now()
	for _, step := range []struct {
		at, asked, want, back int
	}{
		{0, 600, 600, 0}, {0, 600, 400, 0}, {0, 1, 0, 0},
		{999, 1, 0, 0},
		{1000, 700, 700, 690}, // but only 10 are read
		{1001, 2000, 990, 0}, {1500, 5, 0, 0},
		{5000, 5, 5, 0},
	} {
		got := l.share(step.asked, start.Add(time.Duration(step.at)*time.Millisecond))
		if got != step.want {
			t.Errorf("after %d ms %d bytes are %d, want %d", step.at, step.asked, got, step.want)
		}
		l.giveBack(step.back)
	}
}

// TestShutdownCutsLingering does not wait for clients that go on sending what was refused.
func TestShutdownCutsLingering(t *testing.T) {
	s, addr := refusing(t, Options{})
	var ends []chan struct{}
	for range 5 {
		_, ended := refusedSender(t, addr, 10*time.Millisecond)
		ends = append(ends, ended)
	}
	testutil.Eventually(t, "all to linger", func() bool { return s.lingering.conns.Load() == 5 })
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("the shutdown: %v", err)
	}
	for _, ended := range ends {
		<-ended
	}
}
