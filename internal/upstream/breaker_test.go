package upstream

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/status"
)

// The whole life of a circuit, in virtual time: what is asked when, and what comes of it.
func TestCircuit(t *testing.T) {
	var told []string
	p := newTestPool(t, Config{
		Breaker:  Breaker{Failures: 3, Open: 5 * time.Second, Most: 15 * time.Second},
		OnChange: func(c Change) { told = append(told, c.Event.String()) },
	}, "10.0.0.1", "10.0.0.2")
	start := time.Unix(1_700_000_000, 0)
	for i, c := range []struct {
		at      int // seconds
		v       verdict
		refused int // the wait in seconds, plus one
		state   CircuitState
		events  string
	}{
		{at: 0, v: bad},
		{at: 0, v: bad},
		{at: 0, v: faulty}, // an answer
		{at: 0, v: bad},
		{at: 0, v: bad},
		{at: 1, v: noVerdict},
		{at: 1, v: bad, state: Open, events: "CircuitOpened"},
		{at: 1, refused: 6, state: Open},
		{at: 5, refused: 2, state: Open},
		{at: 6, v: noVerdict, state: HalfOpen, events: "CircuitProbed"}, // Busy: shows nothing
		{at: 6, v: bad, state: Open, events: "CircuitOpened"},
		{at: 15, refused: 2, state: Open}, // twice as long
		{at: 16, v: bad, state: Open, events: "CircuitProbed CircuitOpened"},
		{at: 30, refused: 2, state: Open}, // the most
		{at: 31, v: good, events: "CircuitProbed CircuitClosed"},
		{at: 31, v: bad},
		{at: 31, v: bad},
		{at: 31, v: bad, state: Open, events: "CircuitOpened"},
		{at: 35, refused: 2, state: Open}, // short again
	} {
		told = nil
		try := attempt{now: start.Add(time.Duration(c.at) * time.Second)}
		cn, err := grab(p, &try)
		var open *openError
		if errors.As(err, &open) != (c.refused > 0) || open != nil && open.wait != time.Duration(c.refused-1)*time.Second {
			t.Fatalf("%d: got %v", i, err)
		}
		if err == nil {
			p.put(cn, false, c.v, try.now)
			if try.probe != 0 {
				p.endProbe(try.probe)
			}
		}
		if p.circuit.state != c.state || strings.Join(told, " ") != c.events {
			t.Errorf("%d: the circuit is %v and told %v", i, p.circuit.state, told)
		}
	}
}

// While one request finds out whether the backend answers the others are
// refused; an old request that is answered closes the circuit too.
func TestOneProbe(t *testing.T) {
	p := newTestPool(t, Config{Breaker: Breaker{Failures: 1, Open: time.Second, Most: time.Second}}, "10.0.0.1")
	now := time.Now()
	old, err := grab(p, &attempt{now: now})
	if err != nil {
		t.Fatal(err)
	}
	failing, err := grab(p, &attempt{now: now})
	if err != nil {
		t.Fatal(err)
	}
	p.put(failing, false, bad, now)
	probe := attempt{now: now.Add(time.Second)}
	if _, err := grab(p, &probe); err != nil || probe.probe == 0 {
		t.Fatalf("the probe: %v", err)
	}
	var open *openError
	if _, err := grab(p, &attempt{now: probe.now}); !errors.As(err, &open) || open.wait != 0 {
		t.Errorf("a request beside the probe: %v", err)
	}
	p.put(old, true, good, probe.now)
	if _, err := grab(p, &attempt{now: probe.now}); err != nil {
		t.Errorf("after an answer: %v", err)
	}
	p.endProbe(probe.probe)
}

// ERR-4: a backend that does not answer is 503 at once, and says for how long.
func TestCircuitOpenIsAnswered(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + ln.Addr().String()
	_ = ln.Close()
	client, err := New(Config{Endpoints: []string{dead}, Breaker: Breaker{Failures: 2, Open: time.Hour, Most: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var resp fasthttp.Response
	for i, want := range []string{"Unreachable", "Unreachable", "CircuitOpen"} {
		err := client.Do(request("GET", "/", ""), &resp)
		if kindOf(err) != want {
			t.Fatalf("request %d: %v", i, err)
		}
		if s := status.From(err).ErrStatus; want == "CircuitOpen" && (s.Code != 503 || s.Details.RetryAfterSeconds != 3600 ||
			s.Message != "the backend failed to answer 2 times in a row: it is asked again after 3600 seconds") {
			t.Errorf("got %+v", s)
		}
	}

	// When the time is over one request is sent, and its answer closes the circuit.
	alive := newScripted(t, okReply, okReply)
	client.pool.mu.Lock()
	client.pool.all[0].addr = alive.Addr().String()
	client.pool.circuit.until = time.Now()
	client.pool.mu.Unlock()
	for range 2 {
		if err := client.Do(request("GET", "/", ""), &resp); err != nil {
			t.Error(err)
		}
	}
	if s := client.State(); s.Circuit != Closed {
		t.Errorf("the circuit is %v", s.Circuit)
	}
}

// What a client does to itself opens no circuit and ejects no endpoint.
func TestImpatientClientsAreNotBelieved(t *testing.T) {
	s := newScripted(t, "", "", "", "", "")
	client := newTestClient(t, s, Config{
		Endpoints: []string{"http://" + s.Addr().String() + "/"},
		Breaker:   Breaker{Failures: 1, Open: time.Hour, Most: time.Hour}, Ejection: Ejection{Failures: 1, Base: time.Hour, Most: time.Hour, Percent: 100},
	})
	for range 5 {
		req := request("GET", "/", "")
		req.Deadline = time.Now().Add(5 * time.Millisecond)
		var resp fasthttp.Response
		if err := client.Do(req, &resp); kindOf(err) != "TooSlow" {
			t.Errorf("got %v", err)
		}
	}
	if s := client.State(); s.Circuit != Closed || s.Ejections != 0 {
		t.Errorf("the state is %+v", s)
	}
}
