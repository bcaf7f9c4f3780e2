package circuit

import (
	"errors"
	"testing"
	"time"
)

// outcome is the result of a call.
type outcome uint8

const (
	nothing outcome = iota // it shows nothing
	success
	failure
)

// The whole life of a circuit: what is asked when, and what comes of it.
func TestBreaker(t *testing.T) {
	b := New(Policy{Failures: 3, Open: 5 * time.Second, MaxOpen: 15 * time.Second})
	start := time.Unix(1_700_000_000, 0)
	for i, c := range []struct {
		at      int // seconds
		outcome outcome
		refused int // the wait in seconds, plus one
		state   State
	}{
		{at: 0, outcome: failure},
		{at: 0, outcome: failure},
		{at: 0, outcome: success},
		{at: 0, outcome: failure},
		{at: 0, outcome: failure},
		{at: 1, outcome: nothing},
		{at: 1, outcome: failure, state: Open},
		{at: 1, refused: 6, state: Open},
		{at: 5, refused: 2, state: Open},
		{at: 6, outcome: nothing, state: HalfOpen},
		{at: 6, outcome: failure, state: Open},
		{at: 15, refused: 2, state: Open}, // twice as long
		{at: 16, outcome: failure, state: Open},
		{at: 30, refused: 2, state: Open}, // the longest time
		{at: 31, outcome: success},
		{at: 31, outcome: failure},
		{at: 31, outcome: failure},
		{at: 31, outcome: failure, state: Open},
		{at: 35, refused: 2, state: Open}, // short again
	} {
		now := start.Add(time.Duration(c.at) * time.Second)
		probe, err := b.Admit(now)
		var open *OpenError
		if errors.As(err, &open) != (c.refused > 0) || open != nil &&
			open.Wait != time.Duration(c.refused-1)*time.Second {
			t.Fatalf("%d: got %v", i, err)
		}
		if b.IsOpen(now) != (c.refused > 0) {
			t.Errorf("%d: open is %v", i, b.IsOpen(now))
		}
		if err == nil {
			switch c.outcome {
			case success:
				b.Succeeded(now)
			case failure:
				b.Failed(now)
			}
			if probe != 0 {
				b.EndProbe(probe)
			}
		}
		if b.State() != c.state {
			t.Errorf("%d: the circuit is %v", i, b.State())
		}
	}
}

// While one request finds out whether the server answers the others are refused; an old request that is answered closes
// the circuit too.
func TestOneProbe(t *testing.T) {
	b := New(Policy{Failures: 1, Open: time.Second, MaxOpen: time.Second})
	now := time.Unix(1_700_000_000, 0)
	b.Failed(now)
	now = now.Add(time.Second)
	probe, err := b.Admit(now)
	if err != nil || probe == 0 {
		t.Fatalf("the probe: %d, %v", probe, err)
	}
	var open *OpenError
	if _, err := b.Admit(now); !errors.As(err, &open) || open.Wait != 0 {
		t.Errorf("a request beside the probe: %v", err)
	}
	b.Succeeded(now)
	if _, err := b.Admit(now); err != nil {
		t.Errorf("after an answer: %v", err)
	}
	b.EndProbe(probe)
}

// A probe that ended late does not end the one that came after it.
func TestLateProbe(t *testing.T) {
	b := New(Policy{Failures: 1, Open: time.Second, MaxOpen: time.Second})
	now := time.Unix(1_700_000_000, 0)
	b.Failed(now)
	first, _ := b.Admit(now.Add(time.Second))
	b.Failed(now.Add(time.Second))
	second, err := b.Admit(now.Add(2 * time.Second))
	if err != nil || first == second {
		t.Fatalf("the probes are %d and %d, %v", first, second, err)
	}
	b.EndProbe(first)
	if _, err := b.Admit(now.Add(2 * time.Second)); err == nil {
		t.Error("there are two probes at a time")
	}
}

// Half of the calls within the window open the circuit, if there are enough of them.
func TestShareOfCalls(t *testing.T) {
	for _, c := range []struct {
		name     string
		outcomes string // s, f; each a tenth of a second after the other; '-' is a pause of a second
		opens    bool
	}{
		{"half of enough", "sfsfsfsfsf", true},
		{"too few calls", "fsfsfsfs", false},
		{"fewer than half", "ssfssfssfssfssfssf", false},
		{"half, but of old calls", "ffff----------sssssf", false},
		{"half across slots", "ffff---sssss-f", true},
	} {
		b := New(Policy{Calls: 10, Window: 10 * time.Second, Open: time.Second, MaxOpen: time.Second})
		now := time.Unix(1_700_000_000, 0)
		for _, o := range c.outcomes {
			switch o {
			case 's':
				b.Succeeded(now)
			case 'f':
				b.Failed(now)
			case '-':
				now = now.Add(900 * time.Millisecond)
			}
			now = now.Add(100 * time.Millisecond)
		}
		if opens := b.State() == Open; opens != c.opens {
			t.Errorf("%s: open is %v", c.name, opens)
		}
	}
}

// The zero policy opens nothing.
func TestNoPolicy(t *testing.T) {
	b := New(Policy{})
	for range 100 {
		b.Failed(time.Unix(1_700_000_000, 0))
	}
	if b.State() != Closed {
		t.Errorf("the circuit is %v", b.State())
	}
}
