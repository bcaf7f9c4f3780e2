package audit

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
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-gateway/gateway/internal/outbound"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// unproved is an account without credentials.
type unproved struct{}

func (unproved) Authorize(*http.Request) error { return nil }
func (unproved) Refused() bool                 { return false }

// TestSinksHaveTheirOwnFate: a webhook that hangs loses its own events, and none of the file's.
func TestSinksHaveTheirOwnFate(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer server.Close()
	defer close(hang)
	path := filepath.Join(t.TempDir(), "audit.log")
	log, err := OpenFile(FileOptions{Path: path, MaxSize: megabyte})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	lost := map[string]int{}
	l := New(Options{
		Mode: Batch, QueueBytes: 64 << 10, Backoff: time.Millisecond, MaxBackoff: time.Millisecond, Attempts: 1,
		Dropped: func(sink string, n int, why error) {
			mu.Lock()
			defer mu.Unlock()
			lost[sink] += n
			if !errors.Is(why, ErrFull) && !errors.Is(why, context.Canceled) {
				t.Errorf("%s: %v", sink, why)
			}
		},
	}, Waiting{Sink: log},
		Waiting{Sink: NewWebhook(WebhookOptions{URL: server.URL, Account: unproved{}, MaxEvents: 400,
			Timeout: time.Minute, Network: outbound.Options{Direct: true}})})
	const events = 3000
	for i := range events {
		l.Lose(l.Add(line(i, 200), &Reservation{}))
		if i%100 == 0 {
			time.Sleep(5 * time.Millisecond) // as requests come: the file's queue is written meanwhile
		}
	}
	for l.queues[0].isBusy() {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := l.Close(ctx); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := bytes.Count(text, []byte("\n")); got != events || lost["log"] != 0 || lost["webhook"] != events {
		t.Errorf("the file has %d events, lost are %v", got, lost)
	}
}

func (q *queue) isBusy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used() > 0
}

// TestFullSaysWhy: an event that has no room is lost for the reason for which its sink takes nothing.
func TestFullSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		o := options(Blocking, new(atomic.Int64))
		o.Failed = func(sink string, why error) { said = append(said, sink+": "+why.Error()) }
		sink := &recorded{broken: 2}
		l := New(o, Waiting{Sink: sink})
		if got := l.States(); got[0] != (State{Sink: "memory"}) {
			t.Errorf("at first: %v", got)
		}
		// The sink keeps one line of what it fails to write, so that one write has to have all of them.
		l.Add(slices.Concat(line(0, 1), line(1, 1), line(2, 1)), &Reservation{})
		synctest.Wait()
		if got := l.States()[0].Failure; got == nil || got.Error() != "the disk is full" ||
			l.queues[0].full.Error() != "the audit log takes no more events: the disk is full" {
			t.Errorf("while it fails: %v, %v", got, &l.queues[0].full)
		}
		time.Sleep(time.Minute)
		if got := l.States()[0].Failure; got != nil ||
			fmt.Sprint(said) != "[memory: the disk is full memory: the disk is full]" {
			t.Errorf("afterwards: %v, %q", got, said)
		}
		sink.gate = make(chan struct{})
		l.Add(line(4, 1), &Reservation{})
		time.Sleep(11 * time.Second)
		if got := l.States()[0].Failure; got == nil || got.Error() != "a write has taken 11 seconds so far" {
			t.Errorf("a write that hangs: %v", got)
		}
		close(sink.gate)
		_ = l.Close(t.Context())
	})
}

// TestOthersRotate: a file that others rename, remove or truncate is followed, with every line in one of the files.
func TestOthersRotate(t *testing.T) {
	for name, rotate := range map[string]func(path string, s Sink) error{
		"renamed": func(path string, _ Sink) error { return os.Rename(path, path+".1") },
		"renamed and created": func(path string, _ Sink) error {
			return errors.Join(os.Rename(path, path+".1"), os.WriteFile(path, nil, 0o600))
		},
		"copied and truncated": func(path string, _ Sink) error {
			text, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path+".1", text, 0o600), os.Truncate(path, 0))
		},
		"asked by a signal": func(_ string, s Sink) error { s.(*file).Reopen(); return nil },
		"renamed before a signal": func(path string, s Sink) error {
			err := os.Rename(path, path+".1")
			s.(*file).Reopen()
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.log")
			s, err := OpenFile(FileOptions{Path: path, MaxSize: megabyte})
			if err != nil {
				t.Fatal(err)
			}
			write := func(lines string) {
				t.Helper()
				time.Sleep(2 * time.Millisecond) // our own rotations name files by it
				if n, err := s.Write(t.Context(), []byte(lines)); n != len(lines) || err != nil {
					t.Fatal(n, err)
				}
			}
			write("a\nb\n")
			write(strings.Repeat("x", megabyte-2) + "\n") // a rotation of our own: the new file has this line
			write("c\n")
			if err := rotate(path, s); err != nil {
				t.Fatal(err)
			}
			write("d\n")
			write("e\n")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			all, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
			if err != nil {
				t.Fatal(err)
			}
			var whole string
			for _, one := range all {
				text, err := os.ReadFile(one)
				if err != nil {
					t.Fatal(err)
				}
				if bytes.IndexByte(text, 0) >= 0 {
					t.Errorf("%s has holes", one)
				}
				whole += string(text)
			}
			for _, want := range []string{"a\n", "b\n", "c\n", "d\n", "e\n"} {
				if n := strings.Count(whole, want); n != 1 {
					t.Errorf("%q is there %d times", want, n)
				}
			}
			if text, err := os.ReadFile(path); err != nil || !bytes.HasSuffix(text, []byte("d\ne\n")) {
				t.Errorf("the file does not end with the last lines: %v", err)
			}
		})
	}
}

// TestFullDevice: the system's own error is the sink's.
func TestFullDevice(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skipf("there is no full device: %v", err)
	}
	link := filepath.Join(t.TempDir(), "audit.log")
	if err := os.Symlink("/dev/full", link); err != nil {
		t.Fatal(err)
	}
	s, err := OpenFile(FileOptions{Path: link, MaxSize: megabyte})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.Write(t.Context(), []byte("a\n")); n != 0 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%d, %v", n, err)
	}
}

// TestFullDisk: on a disk that is full nothing is lost but what does not fit, and writing goes on when there is room.
func TestFullDisk(t *testing.T) {
	dir := testutil.SmallDisk(t, 64<<10)
	filler := testutil.FillDisk(t, dir)
	if err := os.Truncate(filler, 60<<10); err != nil { // room for a part of a line
		t.Fatal(err)
	}
	path := filepath.Join(dir, "audit.log")
	s, err := OpenFile(FileOptions{Path: path, MaxSize: megabyte})
	if err != nil {
		t.Fatal(err)
	}
	var failed atomic.Int64
	l := New(Options{
		Mode: Blocking, QueueBytes: 1 << 20, Backoff: time.Millisecond, MaxBackoff: time.Millisecond,
		Failed: func(_ string, why error) {
			if !errors.Is(why, syscall.ENOSPC) {
				t.Errorf("the error is %v", why)
			}
			failed.Add(1)
		},
	}, Waiting{Sink: s})
	const events = 100
	for i := range events {
		l.Add(line(i, 200), &Reservation{})
	}
	for failed.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if state := l.States()[0]; !errors.Is(state.Failure, syscall.ENOSPC) {
		t.Errorf("the state is %v", state)
	}
	if _, err := l.Reserve(); !errors.Is(err, ErrFull) {
		t.Errorf("a request is served: %v", err)
	}
	testutil.Eventually(t, "on the full disk the file ends with a whole line, but while a write fails", func() bool {
		text, err := os.ReadFile(path)
		return err == nil && bytes.HasSuffix(text, []byte("x\n"))
	})
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var want []byte
	for i := range events {
		want = append(want, line(i, 200)...)
	}
	if !bytes.Equal(text, want) {
		t.Errorf("the file has %d bytes, want each event once, in %d", len(text), len(want))
	}
}

// TestPartAtStart: a part of a line that a process left is ended, and no event is appended to it.
func TestPartAtStart(t *testing.T) {
	path := testutil.WriteFile(t, filepath.Join(t.TempDir(), "audit.log"), "a\npart")
	s, err := OpenFile(FileOptions{Path: path, MaxSize: megabyte})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.Write(t.Context(), []byte("b\n")); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "a\npart\nb\n" {
		t.Errorf("the file has %q: %v", text, err)
	}
}

// TestPipeIsNotRotated: a pipe stays a pipe, however much is written to it, and one without a reader keeps no gateway
// from starting.
func TestPipeIsNotRotated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skipf("there are no pipes here: %v", err)
	}
	s, err := OpenFile(FileOptions{Path: path, MaxSize: megabyte})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.Write(t.Context(), []byte("a\n")); n != 0 || !errors.Is(err, syscall.ENXIO) {
		t.Errorf("without a reader: %d, %v", n, err)
	}
	got := make(chan int64)
	go func() {
		defer close(got)
		pipe, err := os.Open(path) // which waits for a writer
		if err != nil {
			t.Error(err)
			return
		}
		n, _ := io.Copy(io.Discard, pipe)
		got <- n
	}()
	lines := bytes.Repeat(line(1, 997), 3*megabyte/1000)
	n, err := 0, error(syscall.ENXIO)
	for errors.Is(err, syscall.ENXIO) {
		n, err = s.Write(t.Context(), lines)
	}
	if n != len(lines) || err != nil {
		t.Errorf("%d of %d: %v", n, len(lines), err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if n := <-got; n != int64(len(lines)) {
		t.Errorf("the reader has %d bytes of %d", n, len(lines))
	}
	if all, err := filepath.Glob(path + "*"); err != nil || len(all) != 1 {
		t.Errorf("there are %v: %v", all, err)
	}
}

// TestStuckReader: a log ends in time although nothing takes what it writes, and counts that as lost.
func TestStuckReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Int64
		stuck := &deaf{make(chan struct{})}
		l := New(options(Blocking, &lost), Waiting{Sink: stuck})
		l.Offer(line(1, 1))
		synctest.Wait()
		l.Offer(line(2, 1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Close(ctx); !errors.Is(err, errUnfinished) || lost.Load() != 2 {
			t.Errorf("closing ends with %v, lost are %d", err, lost.Load())
		}
		close(stuck.free)
		synctest.Wait()
		if lost.Load() != 2 {
			t.Errorf("a write that ended too late is counted too: %d", lost.Load())
		}
	})
}

// deaf is a sink that takes nothing, and does not heed the context.
type deaf struct{ free chan struct{} }

func (d *deaf) Name() string { return "deaf" }
func (d *deaf) Close() error { return nil }
func (d *deaf) Write(context.Context, []byte) (int, error) {
	<-d.free
	return 0, errors.New("nothing reads")
}

// TestClosedPipe: a reader that goes away is the sink's error, and the next reader gets whole lines.
func TestClosedPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skipf("there are no pipes here: %v", err)
	}
	read := func() *os.File {
		t.Helper()
		pipe, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		return pipe
	}
	first := read()
	s, err := OpenFile(FileOptions{Path: path, MaxSize: megabyte})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.Write(t.Context(), []byte("a\n")); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if got, err := bufio.NewReader(first).ReadString('\n'); got != "a\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Write(t.Context(), []byte("b\n")); n != 0 || !errors.Is(err, syscall.EPIPE) {
		t.Fatal(n, err)
	}
	second := read()
	if n, err := s.Write(t.Context(), []byte("b\n")); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if got, err := bufio.NewReader(second).ReadString('\n'); got != "b\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
