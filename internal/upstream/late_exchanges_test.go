package upstream

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestLate: an exchange that runs on and whose answer is too slow is watched, whatever the protocol, until the backend
// answers or ends the connection. Up to then it keeps its slot, and no other exchange is ended by it.
func TestLate(t *testing.T) {
	for protocol, serve := range map[string]func(testing.TB, http.Handler) Config{
		"HTTP/1.1": serveHTTP1, "HTTP/2": servePlain, "HTTP/2 over TLS": serveTLS,
	} {
		for _, end := range []string{"answers", "breaks off"} {
			t.Run(protocol+", "+end, func(t *testing.T) {
				release := make(chan struct{})
				config := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method != http.MethodPut {
						return
					}
					<-release
					if end == "breaks off" {
						panic(http.ErrAbortHandler)
					}
				}))
				config.Timeouts.Answer = 200 * time.Millisecond
				c := newClient(t, config)
				var answer message.Response
				put := request("PUT", "/", "{}")
				put.RunsOn = true
				failure, is := errors.AsType[*Error](c.Do(put, &answer))
				if !is || failure.Kind != TooSlow || !failure.Sent || failure.Ended == nil {
					t.Fatalf("the failure is %+v", failure)
				}
				select {
				case <-failure.Ended:
					t.Error("the exchange has ended before the backend")
				default:
				}
				if err := c.Do(request("GET", "/", ""), &answer); err != nil {
					t.Errorf("another exchange fails: %v", err)
				}
				close(release)
				select {
				case <-failure.Ended:
				case <-time.After(testutil.Patience):
					t.Fatal("the exchange does not end")
				}
				if err := c.Do(request("GET", "/", ""), &answer); err != nil {
					t.Errorf("an exchange after it fails: %v", err)
				}
				testutil.Becomes(t, int32(0), c.transport.late.count.Load)
			})
		}
	}
}

// TestLateIsBounded: no more than so many exchanges are watched, and others end as ever. What has nothing to carry out
// any more is over.
func TestLateIsBounded(t *testing.T) {
	release := make(chan struct{})
	config := serveHTTP1(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/part" {
			w.Header().Set("Content-Length", "10")
			_ = http.NewResponseController(w).Flush()
		}
		<-release
	}))
	t.Cleanup(func() { close(release) })
	config.Timeouts.Answer, config.Timeouts.Body = 100*time.Millisecond, 100*time.Millisecond
	c := newClient(t, config)
	do := func(path string, runsOn bool) *Error {
		put := request("PUT", path, "{}")
		put.RunsOn, put.Whole = runsOn, 100
		var answer message.Response
		failure, _ := errors.AsType[*Error](c.Do(put, &answer))
		if failure == nil || failure.Kind != TooSlow {
			t.Fatalf("the failure is %+v", failure)
		}
		return failure
	}
	if failure := do("/part", true); failure.Ended == nil {
		t.Error("an exchange whose answer has begun is watched")
	} else {
		<-failure.Ended
	}
	if do("/", false).Ended != nil {
		t.Error("an exchange is watched although it does not run on")
	}
	c.transport.late.count.Store(maxLate)
	if do("/", true).Ended != nil {
		t.Errorf("more than %d exchanges are watched", maxLate)
	}
	if n := c.transport.unended.Load(); n != 1 {
		t.Errorf("%d writes are counted whose end is not seen", n)
	}
	lateTimeout = 10 * time.Millisecond
	t.Cleanup(func() { lateTimeout = LateTimeout })
	c.transport.late.count.Store(maxLate - 1)
	if do("/", true).Ended == nil {
		t.Error("the last place is not given")
	}
	testutil.Becomes(t, uint64(2), c.transport.unended.Load)
}
