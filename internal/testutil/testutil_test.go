package testutil

import (
	"fmt"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// recorder is a test that notes how it fails.
type recorder struct {
	testing.TB
	failure string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, a ...any) {
	r.failure = fmt.Sprintf(format, a...)
	runtime.Goexit()
}

func TestWaiting(t *testing.T) {
	for _, c := range []struct {
		name  string
		after time.Duration // when it happens
		wait  func(t testing.TB, since func() time.Duration, after time.Duration)
		takes time.Duration
		want  string
	}{
		{"at once", 0, eventually, 0, ""},
		{"in time", time.Second, eventually, time.Second, ""},
		{"too late", time.Hour, eventually, Patience + interval, "not yet: done, after 1m0s"},
		{"equal at once", 0, becomes, 0, ""},
		{"equal in time", 2 * time.Second, becomes, 2 * time.Second, ""},
		{"never equal", time.Hour, becomes, Patience + interval, "is false, want true, after 1m0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				since := func() time.Duration { return time.Since(began) }
				r, done := &recorder{}, make(chan struct{})
				go func() {
					defer close(done)
					c.wait(r, since, c.after)
				}()
				<-done
				if r.failure != c.want || since() != c.takes {
					t.Errorf("%q after %v, want %q after %v", r.failure, since(), c.want, c.takes)
				}
			})
		})
	}
}

func eventually(t testing.TB, since func() time.Duration, after time.Duration) {
	Eventually(t, "done", func() bool { return since() >= after })
}

func becomes(t testing.TB, since func() time.Duration, after time.Duration) {
	Becomes(t, true, func() bool { return since() >= after })
}

func TestFreeAddress(t *testing.T) {
	given := map[string]bool{}
	for range 100 {
		address := FreeAddress(t)
		if given[address] {
			t.Fatalf("%s is given twice", address)
		}
		given[address] = true
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
	}
}

// TestSampled: all cases run, and a part of them with -short.
func TestSampled(t *testing.T) {
	want, rounds := "[0 1 2 3 4 5 6]", 60
	if testing.Short() {
		want, rounds = "[0 3 6]", 15
	}
	if got := fmt.Sprint(Sampled(3, []int{0, 1, 2, 3, 4, 5, 6})); got != want {
		t.Errorf("%s are sampled, want %s", got, want)
	}
	if got := Amount(60, 15); got != rounds {
		t.Errorf("%d rounds, want %d", got, rounds)
	}
}
