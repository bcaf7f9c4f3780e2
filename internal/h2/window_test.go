package h2

import (
	"math"
	"testing"
	"time"
)

func TestSendWindow(t *testing.T) {
	w := NewSendWindow(InitialWindow)
	if n := w.Take(70_000); n != InitialWindow {
		t.Errorf("took %d", n)
	}
	if w.Add(-1000); w.Available() != 0 || w.Take(1) != 0 {
		t.Error("a negative window gave something")
	}
	if w.Add(1500); w.Take(700) != 500 {
		t.Error("the window does not count what is negative")
	}
	w.Give(200)
	if w.Available() != 200 {
		t.Errorf("%d available", w.Available())
	}
	if ok := w.Add(math.MaxInt32 - 200); !ok {
		t.Error("the largest window is refused")
	}
	if ok := w.Add(1); ok {
		t.Error("a window beyond 2^31-1 is accepted")
	}
}

func TestReceiveWindow(t *testing.T) {
	w := NewReceiveWindow(100)
	if !w.Receive(100) || w.Receive(1) {
		t.Error("the window is not what it bounds")
	}
	w = NewReceiveWindow(100)
	w.Receive(60)
	if u := w.Consume(49); u != 0 {
		t.Errorf("an update of %d below half of the window", u)
	}
	if u := w.Consume(11); u != 60 {
		t.Errorf("an update of %d, want 60", u)
	}
	if !w.Receive(100) || w.Receive(1) {
		t.Error("the update is not counted")
	}
	w = NewReceiveWindow(100)
	if u := w.Grow(250); u != 150 || w.Grow(200) != 0 || !w.Receive(250) {
		t.Errorf("grew by %d", u)
	}
}

func TestGuard(t *testing.T) {
	at := time.Unix(1000, 0)
	now := func() time.Time { return at }
	g := NewFloodGuard(10, 5, at)
	for i := range 10 {
		if !g.Spend(1, now) {
			t.Fatalf("frame %d is refused", i)
		}
	}
	if g.Spend(1, now) {
		t.Error("more than the credit")
	}
	if at = at.Add(time.Second); !g.Spend(5, now) || g.Spend(1, now) {
		t.Error("a second does not give back 5")
	}
	g.Earn(100)
	if !g.Spend(10, now) || g.Spend(1, now) {
		t.Error("credit beyond the most")
	}
}
