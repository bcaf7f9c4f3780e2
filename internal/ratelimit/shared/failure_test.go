package shared

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/admission-gateway/gateway/internal/ratelimit/redistest"
)

// journal is a log that may be read while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "address" || a.Key == "error" {
			return slog.Attr{}
		}
		return a
	}}))
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

const (
	lineDown = "level=ERROR msg=\"shared limits: Redis is unavailable\"\n"
	lineUp   = "level=INFO msg=\"shared limits: Redis is available again\"\n"
)

// until asks for tokens until that succeeds, or fails, as wanted. Each decision returns, whatever Redis does: if one
// did not, the test would not end.
func until(t *testing.T, s *Store, works bool) {
	t.Helper()
	for i := 0; ; i++ {
		_, err := s.Take([]Demand{demand(fmt.Sprintf("%s-%v-%d", t.Name(), works, i), perHour(10))})
		if err != nil && !errors.Is(err, ErrUnavailable) {
			t.Fatalf("the error is %v", err)
		}
		if (err == nil) == works {
			return
		}
	}
}

// during has clients ask all the time that do runs.
func during(s *Store, do func()) {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				_, _ = s.Take([]Demand{demand(fmt.Sprint(i, n), perHour(10)),
					demand("all", Limit{Interval: time.Microsecond, Depth: time.Millisecond, Lease: 10})})
			}
		})
	}
	do()
	close(stop)
	wg.Wait()
}

// TestRedisStops: Redis is killed and started again, stopped and continued, and paused by command, under load.
// Decisions go on without it, and with it when it is back; the log has one line for each change.
func TestRedisStops(t *testing.T) {
	for name, fault := range map[string]func(*redistest.Server, *redis.Client) (back func()){
		"killed": func(s *redistest.Server, _ *redis.Client) func() {
			s.Kill()
			return s.Run
		},
		"stopped": func(s *redistest.Server, _ *redis.Client) func() {
			s.Pause()
			return s.Resume
		},
		"paused": func(_ *redistest.Server, c *redis.Client) func() {
			// It ends by itself: while all commands wait, so does the one that ends it.
			if err := c.Do(context.Background(), "client", "pause", 700, "all").Err(); err != nil {
				panic(err)
			}
			return func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			var log journal
			s, r := open(t, server.Address, func(o *Options) {
				o.Timeout, o.Log = 100*time.Millisecond, log.logger()
			})
			until(t, s, true)
			during(s, func() {
				back := fault(server, client(t, server))
				for !strings.Contains(log.String(), lineDown) {
					until(t, s, false)
				}
				back()
				for !strings.HasSuffix(log.String(), lineUp) {
					until(t, s, true)
				}
			})
			// A machine that is too slow for the load may lose Redis more than once.
			if rest := strings.ReplaceAll(log.String(), lineDown+lineUp, ""); rest != "" {
				t.Errorf("the log must say by turns that Redis is unavailable and available:\n%s", &log.text)
			}
			if u := r.unavailable; u[0] != 1 || u[len(u)-1] != 0 {
				t.Errorf("unavailable servers: %v", u)
			}
		})
	}
}

// TestBreaker: a request that waits for a Redis that does not answer waits for the deadline; after
// some of them only a trial does.
func TestBreaker(t *testing.T) {
	server := redistest.Start(t)
	s, r := open(t, server.Address, func(o *Options) { o.Timeout = 50 * time.Millisecond })
	until(t, s, true)
	r.drain()
	server.Pause()
	for i := 0; ; i++ {
		if _, err := s.Take([]Demand{demand(fmt.Sprint(i), perHour(1))}); err == nil {
			t.Fatal("a server that is stopped has decided")
		}
		got := r.drain()
		if i < failuresInRow && got[0] != OutcomeTimeout {
			t.Errorf("decision %d: %s, want that it waits", i, got[0])
		}
		if got[0] == OutcomeOpen {
			break
		}
	}
	server.Resume()
	until(t, s, true)
}

// TestAbandoned: what was decided elsewhere because it waited too long is not charged when the server is back.
func TestAbandoned(t *testing.T) {
	server := redistest.Start(t)
	s, _ := open(t, server.Address, func(o *Options) { o.Timeout, o.Connections = 50*time.Millisecond, 1 })
	until(t, s, true)
	server.Pause()
	// The first is on its way, the others wait behind it.
	for range failuresInRow {
		if _, err := s.Take([]Demand{demand("alice", perHour(10))}); err == nil {
			t.Fatal("a server that is stopped has decided")
		}
	}
	server.Resume()
	until(t, s, true)
	d := mustTake(t, s, true, demand("alice", perHour(10)))[0]
	if d.Ahead > 2*time.Hour {
		t.Errorf("%v was charged, want the one that was on its way and this one", d.Ahead)
	}
}

// TestLeaseGivenBack: what a gateway does not use of a lease others have again, soon, and when it ends.
func TestLeaseGivenBack(t *testing.T) {
	server := redistest.Start(t)
	l := perHour(10)
	l.Lease = 8
	b, _ := open(t, server.Address, nil)
	a, _ := open(t, server.Address, nil)
	mustTake(t, a, true, demand("expires", l))
	mustTake(t, b, false, Demand{Key: KeyOf(1, []byte("expires")), Limit: perHour(10), Cost: 5})
	for {
		if passes, err := b.Take(
			[]Demand{{Key: KeyOf(1, []byte("expires")), Limit: perHour(10), Cost: 8}}); err != nil {
			t.Fatal(err)
		} else if passes {
			break // 1 used, 8 of 10 free, less what has passed
		}
	}
	c, err := Open(Options{Mode: Single, Addresses: []string{server.Address}, Prefix: "gateway:", Timeout: patient,
		ConnectTimeout: patient, Connections: 1})
	if err != nil {
		t.Fatal(err)
	}
	mustTake(t, c, true, demand("closed", l))
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	mustTake(t, b, true, Demand{Key: KeyOf(1, []byte("closed")), Limit: perHour(10), Cost: 8})
}

// TestLease: a batch is taken at once, and used without asking; a request that another limit refuses puts its token
// back.
func TestLease(t *testing.T) {
	s, r := open(t, redistest.Start(t).Address, nil)
	l := perHour(10)
	l.Lease = 4
	for range 4 {
		mustTake(t, s, true, demand("alice", l))
	}
	if got, want := fmt.Sprint(r.drain()), "[Admitted Leased Leased Leased]"; got != want {
		t.Errorf("outcomes are %s, want %s", got, want)
	}
	mustTake(t, s, true, demand("alice", l)) // the second batch
	mustTake(t, s, true, demand("none", perHour(1)))
	for range 10 {
		mustTake(t, s, false, demand("alice", l), demand("none", perHour(1)))
	}
	r.drain()
	for range 5 {
		mustTake(t, s, true, demand("alice", l)) // three of that batch, and the two that are left
	}
	mustTake(t, s, false, demand("alice", l))
	if got, want := fmt.Sprint(r.drain()), "[Leased Leased Leased Admitted Leased Known]"; got != want {
		t.Errorf("outcomes are %s, want %s", got, want)
	}
}

// TestLeaseOnce: however many requests come at once for a key, one of them asks, and the others wait for what it gets.
func TestLeaseOnce(t *testing.T) {
	server := redistest.Start(t)
	s, r := open(t, server.Address, nil)
	l := perHour(100)
	l.Lease = 100
	together := func(n int) (passed, failed int) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				passes, err := s.Take([]Demand{demand("hot", l)})
				mu.Lock()
				defer mu.Unlock()
				if passes {
					passed++
				}
				if err != nil {
					failed++
				}
			})
		}
		wg.Wait()
		return passed, failed
	}
	if passed, _ := together(100); passed != 100 {
		t.Errorf("%d of 100 passed", passed)
	}
	if n := strings.Count(fmt.Sprint(r.drain()), OutcomeAdmitted); n != 1 {
		t.Errorf("Redis was asked %d times, want once", n)
	}
	// If it gets nothing, no request waits longer than for the deadline.
	s.options.Timeout = 50 * time.Millisecond
	server.Pause()
	s.known.sweep(s.clock()+int64(leaseFor), s.giveBack)
	l.Depth *= 2
	if _, failed := together(20); failed != 20 {
		t.Errorf("%d of 20 failed", failed)
	}
	server.Resume()
}
