package otlp

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// overdue is how long a sending may take before it counts as one that fails.
const overdue = time.Second

// A Delivery says how the sending of a signal goes. It is safe for concurrent use. Nil is the one of a signal that is
// not sent.
type Delivery struct {
	lost atomic.Uint64

	mu    sync.Mutex
	cause error     // of the last sending; nil if it did not fail
	began time.Time // when the sending that is under way began; zero if none is
}

// Send sends by a function so many things at once. They are lost if it fails.
func (d *Delivery) Send(things int, send func() error) error {
	d.mu.Lock()
	d.began = time.Now()
	d.mu.Unlock()
	err := send()
	d.mu.Lock()
	d.began, d.cause = time.Time{}, err
	d.mu.Unlock()
	if err != nil {
		d.Lose(things)
	}
	return err
}

// Lose counts things that will never be sent.
func (d *Delivery) Lose(things int) { d.lost.Add(uint64(things)) }

// Lost returns how many things were lost so far.
func (d *Delivery) Lost() uint64 {
	if d == nil {
		return 0
	}
	return d.lost.Load()
}

// Failure returns why nothing arrives now; nil if all is well.
func (d *Delivery) Failure() error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cause != nil || d.began.IsZero() {
		return d.cause
	}
	if takes := time.Since(d.began); takes >= overdue {
		return fmt.Errorf("the collector has not answered for %d seconds", int(takes.Seconds()))
	}
	return nil
}
