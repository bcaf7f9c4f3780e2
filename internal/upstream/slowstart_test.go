package upstream

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/upstream/balance"
)

// A server that comes back from an ejection gets its share bit by bit. The slow start takes an hour, of which the test
// lasts a moment; requests say when they begin.
func TestSlowStart(t *testing.T) {
	var asked [2]atomic.Int64
	var isDown atomic.Bool
	config := Config{
		SlowStart: time.Hour, Retries: &balance.RetryBudget{},
		Ejection: balance.Ejection{Failures: 1, Answers: true, Base: time.Hour, Max: time.Hour, Percent: 50},
	}
	for i := range asked {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked[i].Add(1)
			if i == 0 && isDown.Load() {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			_, _ = io.WriteString(w, "ok")
		}))
		t.Cleanup(server.Close)
		config.Endpoints = append(config.Endpoints, server.URL)
	}
	client, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	start := time.Now()
	// share returns the percentage of the requests that the first server gets.
	share := func(after time.Duration) float64 {
		const requests = 2000
		before := asked[0].Load()
		for range requests {
			req := request("GET", "/", "")
			req.Start = start.Add(after)
			var resp message.Response
			if err := client.Do(req, &resp); err != nil {
				t.Fatal(err)
			}
		}
		return 100 * float64(asked[0].Load()-before) / requests
	}
	// Five times the standard deviation of 2000 draws is at most 5.6 percent.
	if got := share(0); got < 44 || got > 56 {
		t.Errorf("at the start of the process a server of two gets %.1f %%", got)
	}
	isDown.Store(true)
	for client.State().Ejections == 0 {
		share(0)
	}
	isDown.Store(false)
	if got := share(30 * time.Minute); got != 0 {
		t.Errorf("a server that is ejected gets %.1f %%", got)
	}
	for _, c := range []struct {
		after     time.Duration
		low, high float64
	}{
		// The ejection lasts until an hour and a moment after the start.
		{61 * time.Minute, 5.5, 13},
		{91 * time.Minute, 30, 41},
		{122 * time.Minute, 44, 56},
		{24 * time.Hour, 44, 56},
	} {
		if got := share(c.after); got < c.low || got > c.high {
			t.Errorf("%v after the start the server that is back gets %.1f %%, not %v to %v", c.after, got, c.low,
				c.high)
		}
	}
}

// The first addresses of names do not start slowly, whichever name is looked up first. Those that are found later do,
// and so do the first ones of a name whose first lookup failed. A lookup that finds the same lets a slow start go on.
func TestSlowStartOfAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resolver := &names{answers: map[string]string{"a.example.com": "10.0.0.1 10.0.0.2",
			"b.example.com": "!not yet"}}
		client, err := New(Config{
			Endpoints: []string{"http://a.example.com", "http://b.example.com"}, SlowStart: 100 * time.Second,
			Resolver: resolver, ResolvePeriod: 8 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		// shares counts how often each address is chosen among two thousand times.
		shares := func() map[string]int {
			counts := make(map[string]int)
			for range 2000 {
				try := attempt{now: time.Now()}
				cn, err := grab(client.pool, &try)
				if err != nil {
					t.Fatal(err)
				}
				counts[cn.endpoint.Addr]++
				client.pool.put(cn, true, balance.Answered, time.Now())
			}
			return counts
		}
		expect := func(when string, want map[string]int) {
			t.Helper()
			got := shares()
			for address, n := range want {
				if d := got[address] - n; d < -112 || d > 112 { // five times the standard deviation, at most
					t.Errorf("%s the addresses are chosen so often: %v, not %v", when, got, want)
					return
				}
			}
		}
		synctest.Wait()
		expect("at the start", map[string]int{"10.0.0.1:80": 1000, "10.0.0.2:80": 1000})
		time.Sleep(time.Minute)
		resolver.say("b.example.com", "10.0.0.3")
		for len(client.State().Endpoints) < 3 {
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		expect("when b is resolved", map[string]int{"10.0.0.1:80": 952, "10.0.0.2:80": 952, "10.0.0.3:80": 95})
		time.Sleep(50 * time.Second)
		expect("after half the slow start of b",
			map[string]int{"10.0.0.1:80": 784, "10.0.0.2:80": 784, "10.0.0.3:80": 431})
		time.Sleep(50 * time.Second)
		expect("after the slow start of b", map[string]int{"10.0.0.1:80": 667, "10.0.0.2:80": 667, "10.0.0.3:80": 667})
		resolver.say("a.example.com", "10.0.0.1 10.0.0.4")
		for client.State().Endpoints[1].Address != "10.0.0.4:80" {
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		expect("when a has another address", map[string]int{"10.0.0.1:80": 952, "10.0.0.3:80": 952, "10.0.0.4:80": 95})
	})
}
