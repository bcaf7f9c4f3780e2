package audit

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-gateway/gateway/internal/outbound"
)

// recorded is a sink that keeps lines in memory. It fails as often as broken says, after a part of the lines.
type recorded struct {
	mu     sync.Mutex
	broken int
	lines  []string
	gate   chan struct{} // a write waits for it; nil for none
	closed bool
}

func (r *recorded) Name() string { return "memory" }

func (r *recorded) Write(ctx context.Context, lines []byte) (int, error) {
	if r.gate != nil {
		select {
		case <-r.gate:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := strings.SplitAfter(string(lines), "\n")
	all = all[:len(all)-1]
	if r.broken > 0 {
		r.broken--
		r.lines = append(r.lines, all[0])
		return len(all[0]), errors.New("the disk is full")
	}
	r.lines = append(r.lines, all...)
	return len(lines), nil
}

func (r *recorded) kept() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines)
}

func (r *recorded) Close() error { r.closed = true; return nil }

func line(n, size int) []byte {
	return fmt.Appendf(nil, "%d %s\n", n, strings.Repeat("x", size))
}

func options(m Mode, lost *atomic.Int64) Options {
	return Options{
		Mode: m, QueueBytes: 64 << 10, Backoff: time.Second, MaxBackoff: 4 * time.Second, Attempts: 3,
		Dropped: func(_ string, n int, _ error) { lost.Add(int64(n)) },
	}
}

// Whatever the sink does, Blocking loses and doubles nothing, and keeps the order.
func TestBlockingLosesNothing(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			var lost atomic.Int64
			random := rand.New(rand.NewPCG(seed, 1))
			sink := &recorded{}
			l := New(options(Blocking, &lost), Waiting{Sink: sink, Wait: time.Millisecond})
			accepted, refused := 0, 0
			for range 300 {
				if random.IntN(20) == 0 {
					sink.mu.Lock()
					sink.broken = random.IntN(6)
					sink.mu.Unlock()
				}
				if random.IntN(3) == 0 {
					time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
				}
				r, err := l.Reserve()
				if err != nil {
					refused++
					continue
				}
				for range 1 + random.IntN(2) {
					if l.Add(line(accepted, random.IntN(reserved/2-20)), &r).IsAny() {
						t.Fatal("a line within its reservation has no room")
					}
					accepted++
				}
				l.Release(&r)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := l.Close(ctx); err != nil {
				t.Fatal(err)
			}
			if len(sink.lines) != accepted || lost.Load() != 0 || !sink.closed {
				t.Fatalf("%d of %d lines, %d lost", len(sink.lines), accepted, lost.Load())
			}
			for i, got := range sink.lines {
				if n, _, _ := strings.Cut(got, " "); n != fmt.Sprint(i) {
					t.Fatalf("line %d is %.20q", i, got)
				}
			}
		})
	}
}

// A sink that fails makes Blocking refuse, until a write succeeds.
func TestBlockingRefusesWhileTheSinkFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Int64
		sink := &recorded{broken: 2}
		l := New(options(Blocking, &lost), Waiting{Sink: sink, Wait: time.Millisecond})
		r, err := l.Reserve()
		if err != nil || l.Add(line(0, 1), &r).IsAny() || l.Add(line(1, 1), &r).IsAny() ||
			l.Add(line(2, 1), &r).IsAny() {
			t.Fatal("no room", err)
		}
		l.Release(&r)
		time.Sleep(500 * time.Millisecond)
		if _, err := l.Reserve(); !errors.Is(err, ErrFull) {
			t.Errorf("%v", err)
		}
		time.Sleep(time.Minute)
		if _, err := l.Reserve(); err != nil {
			t.Errorf("the sink works again: %v", err)
		}
		_ = l.Close(t.Context())
		if got := strings.Join(sink.lines, ""); got != "0 x\n1 x\n2 x\n" {
			t.Errorf("%q", got)
		}
	})
}

// What is reserved, what waits and what is being written take room.
func TestRoomIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Int64
		sink := &recorded{gate: make(chan struct{})}
		l := New(options(Blocking, &lost), Waiting{Sink: sink, Wait: time.Millisecond})
		var taken []Reservation
		for {
			r, err := l.Reserve()
			if err != nil {
				break
			}
			taken = append(taken, r)
		}
		if len(taken) != 4 {
			t.Errorf("%d reservations of 16 KiB in 64 KiB", len(taken))
		}
		missed := l.Add(line(0, 17<<10), &taken[0])
		if !missed.IsAny() {
			t.Error("a line beyond what is left found room")
		}
		if l.AddShorter(line(0, reserved-5), missed).IsAny() {
			t.Error("a shorter line within the reservation found no room")
		}
		for i := range taken[1:] {
			if l.Add(line(i, reserved-5), &taken[i+1]).IsAny() {
				t.Error("a reserved line found no room")
			}
			l.Release(&taken[i+1])
		}
		time.Sleep(time.Second) // they are being written
		if _, err := l.Reserve(); err == nil {
			t.Error("what is being written holds its room")
		}
		close(sink.gate)
		time.Sleep(time.Second)
		if _, err := l.Reserve(); err != nil {
			t.Error(err)
		}
		_ = l.Close(t.Context())
	})
}

func TestBatchCountsWhatItLoses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Int64
		sink := &recorded{broken: 3}
		l := New(options(Batch, &lost), Waiting{Sink: sink, Wait: time.Millisecond})
		r, _ := l.Reserve()
		for i := range 10 {
			l.Add(line(i, 10), &r)
		}
		time.Sleep(time.Minute)
		if len(sink.kept()) != 3 || lost.Load() != 7 {
			t.Errorf("%d lines, %d lost", len(sink.kept()), lost.Load())
		}
		for {
			if missed := l.Add(line(1, 10<<10), &r); missed.IsAny() {
				l.Lose(missed)
				break
			}
		}
		if lost.Load() != 8 {
			t.Errorf("%d lost", lost.Load())
		}
		_ = l.Close(t.Context())
	})
}

// Closing does not wait for a sink beyond its time.
func TestCloseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Int64
		l := New(options(Blocking, &lost), Waiting{Sink: &recorded{gate: make(chan struct{})}, Wait: time.Millisecond})
		r, _ := l.Reserve()
		l.Add(line(0, 1), &r)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begun := time.Now()
		_ = l.Close(ctx)
		if took := time.Since(begun); took != 5*time.Second || lost.Load() != 1 {
			t.Errorf("took %v, lost %d", took, lost.Load())
		}
	})
}

func TestFileRotatesBetweenLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	f, err := OpenFile(FileOptions{Path: path, MaxSize: megabyte})
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for i := range 3000 {
		all = append(all, line(i, 1000)...)
	}
	if n, err := f.Write(t.Context(), all); n != len(all) || err != nil {
		t.Fatal(n, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "audit*"))
	lines := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil || len(text) > megabyte || text[len(text)-1] != '\n' {
			t.Errorf("%s has %d bytes: %v", name, len(text), err)
		}
		lines += bytes.Count(text, []byte{'\n'})
	}
	if len(files) < 3 || lines != 3000 {
		t.Errorf("%d lines in %d files", lines, len(files))
	}
}

func TestFileThatCannotBeWritten(t *testing.T) {
	if _, err := OpenFile(FileOptions{Path: filepath.Join(t.TempDir(), "no", "file")}); err == nil {
		t.Error("no error")
	}
}

func TestWebhookPostsBatches(t *testing.T) {
	var batches []string
	fail := true
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var list struct {
			Kind, APIVersion string
			Items            []struct{ AuditID string }
		}
		if err := json.NewDecoder(q.Body).Decode(&list); err != nil || list.Kind != "EventList" ||
			list.APIVersion != "audit.k8s.io/v1" {
			t.Errorf("%+v %v", list, err)
		}
		if len(batches) == 1 && fail {
			fail = false
			w.WriteHeader(500)
			return
		}
		var ids []string
		for _, i := range list.Items {
			ids = append(ids, i.AuditID)
		}
		batches = append(batches, q.URL.Path+" "+q.Header.Get("Authorization")+" "+strings.Join(ids, ","))
	}))
	defer server.Close()
	known := server.Client().Transport.(*http.Transport).TLSClientConfig
	w := NewWebhook(WebhookOptions{
		URL: server.URL + "/audit", Account: &account{}, MaxEvents: 2, Timeout: time.Minute,
		Network: outbound.Options{TLS: func() *tls.Config { return known }},
	})
	var lines []byte
	for i := range 5 {
		lines = fmt.Appendf(lines, `{"auditID":"%d"}`+"\n", i)
	}
	n, err := w.Write(t.Context(), lines)
	if err == nil {
		t.Fatal("no error")
	}
	if n, err = w.Write(t.Context(), lines[n:]); err != nil {
		t.Fatal(n, err)
	}
	want := "/audit Bearer t 0,1\n/audit Bearer t 2,3\n/audit Bearer t 4"
	if got := strings.Join(batches, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// account shows a token.
type account struct{ refused int }

func (a *account) Authorize(r *http.Request) error {
	r.Header.Set("Authorization", "Bearer t")
	return nil
}

func (a *account) Refused() bool { a.refused++; return true }

// Events are not delivered to a webhook that redirects: what is at the other address has not been
// named as a place for them, and a POST would become a GET without events.
func TestWebhookRefuses(t *testing.T) {
	for _, code := range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusUnauthorized} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if q.URL.Path == "/audit" {
				w.Header().Set("Location", "/login")
				w.WriteHeader(code)
			}
		}))
		defer server.Close()
		a := &account{}
		w := NewWebhook(WebhookOptions{URL: server.URL + "/audit", Account: a, MaxEvents: 2, Timeout: time.Minute})
		n, err := w.Write(t.Context(), []byte(`{"auditID":"0"}`+"\n"))
		if n != 0 || err == nil || err.Error() != fmt.Sprintf("the webhook answered %d", code) {
			t.Errorf("%d: %d bytes are delivered, %v", code, n, err)
		}
		if (a.refused == 1) != (code == http.StatusUnauthorized) {
			t.Errorf("%d: the account is refused %d times", code, a.refused)
		}
	}
}

// Events wait for others between two times, and not at all if the queue is half full. What has no room in
// one queue is in the others.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Int64
		slow, fast := &recorded{}, &recorded{}
		o := options(Batch, &lost)
		o.QueueBytes = 4 * len(line(0, 1))
		l := New(o, Waiting{Sink: slow, Wait: time.Hour, MaxWait: 2 * time.Hour}, Waiting{Sink: fast})
		begun := time.Now()
		l.Offer(line(0, 1))
		time.Sleep(time.Hour - 1)
		synctest.Wait()
		if n := slow.count(); n != 0 || fast.count() != 1 {
			t.Errorf("%d are written too early", n)
		}
		time.Sleep(time.Hour + 1)
		synctest.Wait()
		if n := slow.count(); n != 1 {
			t.Errorf("%d are written after %v", n, time.Since(begun))
		}
		for i := range 3 {
			l.Offer(line(i, 1))
			synctest.Wait()
		}
		if n := slow.count(); n != 4 || lost.Load() != 0 {
			t.Errorf("%d of a crowded queue are written, %d are lost", n, lost.Load())
		}
		_ = l.Close(t.Context())
	})
}

func (r *recorded) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.lines)
}

// TestLossNamesItsCause: the cause of a loss names what the sink failed for, also when it is read after the sink works
// again, and says of a sink that does not fail that it is slow.
func TestLossNamesItsCause(t *testing.T) {
	for name, want := range map[string]string{
		"fails": "the audit log takes no more events: the disk is full",
		"slow":  "the audit log takes no more events: its sink takes them more slowly than they come",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := &recorded{broken: 3}
				if name == "slow" {
					sink = &recorded{gate: make(chan struct{})}
				}
				var causes []error
				var lost atomic.Int64
				o := options(Batch, &lost)
				o.Dropped = func(_ string, _ int, why error) { causes = append(causes, why) }
				l := New(o, Waiting{Sink: sink, Wait: time.Millisecond})
				for i := range 2 { // of which a failing sink keeps one
					l.Lose(l.Add(line(i, 1), &Reservation{}))
				}
				time.Sleep(10 * time.Millisecond) // the first write is under way, or has failed
				for i := range 100 {
					l.Lose(l.Add(line(i, 1000), &Reservation{}))
				}
				if sink.gate != nil {
					close(sink.gate)
				}
				time.Sleep(time.Minute)
				if len(causes) == 0 || causes[0].Error() != want || !errors.Is(causes[0], ErrFull) {
					t.Errorf("the causes are %v, want %q", causes, want)
				}
				_ = l.Close(t.Context())
			})
		})
	}
}
