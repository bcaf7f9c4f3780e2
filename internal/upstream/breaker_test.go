package upstream

import (
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/circuit"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/internal/upstream/balance"
)

// ERR-4: a backend that does not answer is 503 at once, and says for how long.
func TestCircuitOpenIsAnswered(t *testing.T) {
	dead := "http://" + testutil.FreeAddress(t)
	client, err := New(Config{Endpoints: []string{dead},
		Breaker: circuit.Policy{Failures: 2, Open: time.Hour, MaxOpen: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var resp message.Response
	for i, want := range []string{"Unreachable", "Unreachable", "CircuitOpen"} {
		err := client.Do(request("GET", "/", ""), &resp)
		if kindOf(err) != want {
			t.Fatalf("request %d: %v", i, err)
		}
		if s := status.From(err).ErrStatus; want == "CircuitOpen" &&
			(s.Code != 503 || s.Details.RetryAfterSeconds != 3600 ||
				s.Message != "the backend failed to answer 2 times in a row: it is asked again after 3600 seconds") {
			t.Errorf("got %+v", s)
		}
	}
}

// When the time is over one request is sent, and its answer closes the circuit.
func TestAnswerClosesCircuit(t *testing.T) {
	dead := "http://" + testutil.FreeAddress(t)
	client, err := New(Config{Endpoints: []string{dead}, Breaker: circuit.Policy{Failures: 1, Open: 1, MaxOpen: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var resp message.Response
	if err := client.Do(request("GET", "/", ""), &resp); kindOf(err) != "Unreachable" ||
		client.State().Circuit != circuit.Open {
		t.Fatalf("got %v; the circuit is %v", err, client.State().Circuit)
	}
	alive := newScripted(t, okReply, okReply)
	client.pool.mu.Lock()
	client.pool.set.All()[0].Addr = alive.Addr().String()
	client.pool.mu.Unlock()
	for range 2 {
		if err := client.Do(request("GET", "/", ""), &resp); err != nil {
			t.Error(err)
		}
	}
	if s := client.State(); s.Circuit != circuit.Closed {
		t.Errorf("the circuit is %v", s.Circuit)
	}
}

// What a client does to itself opens no circuit and ejects no endpoint.
func TestImpatientClientsAreNotBelieved(t *testing.T) {
	s := newScripted(t, "", "", "", "", "")
	client := newTestClient(t, s, Config{
		Endpoints: []string{"http://" + s.Addr().String() + "/"},
		Breaker:   circuit.Policy{Failures: 1, Open: time.Hour, MaxOpen: time.Hour},
		Ejection:  balance.Ejection{Failures: 1, Base: time.Hour, Max: time.Hour, Percent: 100},
	})
	for range 5 {
		req := request("GET", "/", "")
		req.Deadline = time.Now().Add(5 * time.Millisecond)
		var resp message.Response
		if err := client.Do(req, &resp); kindOf(err) != "TooSlow" {
			t.Errorf("got %v", err)
		}
	}
	if s := client.State(); s.Circuit != circuit.Closed || s.Ejections != 0 {
		t.Errorf("the state is %+v", s)
	}
}
