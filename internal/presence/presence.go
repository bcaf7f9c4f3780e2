// Package presence says whether the client of a request still waits for its answer, and ends the waits of a request
// whose client has left.
//
// The server knows when a client leaves: it resets a stream or a connection, or closes it. The goroutine that serves
// the request is in one wait at a time: for a connection to a backend, an answer, a lock, its turn. It registers how to
// end that wait. Nothing is allocated for a request that does not wait, and nothing is asked of the system.
package presence

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// ErrLeft is the error of a wait that ended because the client has left.
var ErrLeft = errors.New("the client closed the connection, or reset the stream, before the answer")

// A Client is the client of one request. The zero Client waits for its answer, and a nil one never leaves.
type Client struct {
	left    atomic.Bool
	mu      sync.Mutex // is held while waits are ended
	waiting [most]Waiter
	depth   int
	done    chan struct{} // is closed when the client leaves; nil until somebody asks for it
}

var _ context.Context = (*Client)(nil)

// most is how many waits may be within each other: a request that streams its answer may wait for its turn to do heavy
// work.
const most = 2

// A Waiter is a wait that can be ended.
type Waiter interface {
	// Abandon ends the wait. It is called from another goroutine, at most once for each Await, and never after Over.
	Abandon()
}

// HasLeft reports whether the client has left. Any goroutine may ask.
func (c *Client) HasLeft() bool { return c != nil && c.left.Load() }

// Await registers a wait that the request's goroutine begins. It returns false, and registers nothing, if the client
// has left. Over ends what a successful Await began, and must not be called after one that failed.
func (c *Client) Await(w Waiter) bool {
	if c == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left.Load() {
		return false
	}
	c.waiting[c.depth] = w
	c.depth++
	return true
}

// Over says that the wait that began last is over. An Abandon in progress has returned by then.
func (c *Client) Over() {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.depth--
	c.waiting[c.depth] = nil
	c.mu.Unlock()
}

// Leave notes that the client has left, and has the waits in progress ended. It waits for nothing.
func (c *Client) Leave() {
	if c.left.Swap(true) {
		return
	}
	c.mu.Lock()
	if c.done != nil {
		close(c.done)
	}
	if c.depth == 0 {
		c.mu.Unlock()
		return
	}
	go func() { // the caller may hold locks that a wait needs
		defer c.mu.Unlock()
		for _, w := range c.waiting[:c.depth] {
			w.Abandon()
		}
	}()
}

// IsWaiting calls f while the request's goroutine is in a wait, and keeps it there until f returns. It reports whether
// it is in one.
func (c *Client) IsWaiting(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.depth == 0 {
		return false
	}
	f()
	return true
}

// Done implements context.Context: a Client is the context of the work for its request. Work that goes on after the
// request must not ask it.
func (c *Client) Done() <-chan struct{} {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		if c.done = make(chan struct{}); c.left.Load() {
			close(c.done)
		}
	}
	return c.done
}

// Err implements context.Context.
func (c *Client) Err() error {
	if c.HasLeft() {
		return context.Canceled
	}
	return nil
}

// Deadline implements context.Context.
func (c *Client) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Value implements context.Context.
func (c *Client) Value(any) any { return nil }

// Within returns the context of the work for the request, with the values of another one.
func (c *Client) Within(values context.Context) context.Context { return &within{c, values} }

type within struct {
	*Client
	values context.Context
}

// Value implements context.Context.
func (w *within) Value(key any) any { return w.values.Value(key) }

// A Signal is a wait in a select statement.
type Signal struct {
	client *Client // nil if the client had left before
	left   chan struct{}
}

// Signal begins a wait. Done has to be called at its end.
func (c *Client) Signal() *Signal {
	if c == nil {
		return nil
	}
	s := &Signal{client: c, left: make(chan struct{})}
	if !c.Await(s) {
		s.client = nil
		close(s.left)
	}
	return s
}

// Abandon implements Waiter.
func (s *Signal) Abandon() { close(s.left) }

// Left returns a channel that is closed when the client leaves.
func (s *Signal) Left() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.left
}

// Done ends the wait.
func (s *Signal) Done() {
	if s != nil {
		s.client.Over()
	}
}

// Sleep waits for a time. It returns ErrLeft if the client leaves before.
func (c *Client) Sleep(d time.Duration) error {
	s := c.Signal()
	defer s.Done()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.Left():
		return ErrLeft
	}
}

// Context returns a context that is cancelled, with the cause ErrLeft, when the client leaves. Done has to be called at
// the end of the wait.
func (c *Client) Context(parent context.Context) (ctx context.Context, done func()) {
	if c == nil {
		return parent, func() {}
	}
	ctx, cancel := context.WithCancelCause(parent)
	if !c.Await(canceller(cancel)) {
		cancel(ErrLeft)
		return ctx, func() {}
	}
	return ctx, func() {
		c.Over()
		cancel(nil)
	}
}

// A canceller cancels a context.
type canceller context.CancelCauseFunc

// Abandon implements Waiter.
func (f canceller) Abandon() { f(ErrLeft) }
