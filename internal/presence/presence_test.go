package presence

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// counted counts how often it is abandoned.
type counted struct{ times atomic.Int32 }

func (w *counted) Abandon() { w.times.Add(1) }

// TestWaits: a wait is ended once if the client leaves while it goes on, a wait that is over is left alone, and none
// begins after the client has left.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Client
		var before, during, after counted
		if c.HasLeft() || !c.Await(&before) {
			t.Fatal("a client has left at once")
		}
		c.Over()
		if !c.Await(&during) {
			t.Fatal("a second wait does not begin")
		}
		c.Leave()
		c.Leave()
		synctest.Wait()
		c.Over()
		if !c.HasLeft() || c.Await(&after) {
			t.Error("a wait begins for a client that has left")
		}
		if before.times.Load() != 0 || during.times.Load() != 1 || after.times.Load() != 0 {
			t.Errorf("abandoned %d, %d and %d times", before.times.Load(), during.times.Load(), after.times.Load())
		}
	})
}

// TestIsContext: a client is the context of the work for its request, whenever it leaves.
func TestIsContext(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		for _, isAskedBefore := range []bool{false, true} {
			var c Client
			ctx := c.Within(context.WithValue(context.Background(), key{}, "a"))
			child, cancel := context.WithCancel(ctx)
			if isAskedBefore {
				<-time.After(time.Second)
				select {
				case <-ctx.Done():
					t.Error("the client has not left")
				default:
				}
			}
			if ctx.Err() != nil || child.Err() != nil || ctx.Value(key{}) != "a" || c.Value(key{}) != nil {
				t.Errorf("before: %v, %v, %v", ctx.Err(), child.Err(), ctx.Value(key{}))
			}
			c.Leave()
			<-child.Done()
			<-c.Done()
			if ctx.Err() != context.Canceled {
				t.Errorf("afterwards: %v", ctx.Err())
			}
			cancel()
		}
		var none *Client
		if none.Done() != nil || none.Err() != nil {
			t.Error("no client leaves")
		}
	})
}

// TestWithin: a wait within another one is ended with it, and may be over before.
func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, isOver := range []bool{false, true} {
			var c Client
			var outer, inner counted
			c.Await(&outer)
			c.Await(&inner)
			want := int32(1)
			if isOver {
				c.Over()
				want = 0
			}
			c.Leave()
			synctest.Wait()
			if outer.times.Load() != 1 || inner.times.Load() != want {
				t.Errorf("over %v: abandoned %d and %d times", isOver, outer.times.Load(), inner.times.Load())
			}
		}
	})
}

// TestNil: a request without a client is never abandoned.
func TestNil(t *testing.T) {
	var c *Client
	if c.HasLeft() || !c.Await(&counted{}) || c.Sleep(time.Nanosecond) != nil {
		t.Error("no client has left")
	}
	s := c.Signal()
	if s.Left() != nil {
		t.Error("no client can leave")
	}
	s.Done()
	ctx, done := c.Context(t.Context())
	if ctx != t.Context() {
		t.Error("another context")
	}
	done()
	c.Over()
}

// TestHelpers: each kind of wait ends when the client leaves during it, and does not begin afterwards.
func TestHelpers(t *testing.T) {
	for name, wait := range map[string]func(*Client) error{
		"sleep": func(c *Client) error { return c.Sleep(time.Hour) },
		"signal": func(c *Client) error {
			s := c.Signal()
			defer s.Done()
			select {
			case <-s.Left():
				return ErrLeft
			case <-time.After(time.Hour):
				return nil
			}
		},
		"context": func(c *Client) error {
			ctx, done := c.Context(context.Background())
			defer done()
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(time.Hour):
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c Client
				began := time.Now()
				time.AfterFunc(time.Second, c.Leave)
				if err := wait(&c); !errors.Is(err, ErrLeft) || time.Since(began) != time.Second {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				if err := wait(&c); !errors.Is(err, ErrLeft) || time.Since(began) != time.Second {
					t.Errorf("a second wait: %v after %v", err, time.Since(began))
				}
				if err := wait(new(Client)); err != nil {
					t.Errorf("a client that stays: %v", err)
				}
			})
		})
	}
}

// TestIsWaiting: the wait goes on until the call has returned.
func TestIsWaiting(t *testing.T) {
	var c Client
	if c.IsWaiting(func() { t.Error("called") }) {
		t.Error("a wait before there is one")
	}
	c.Await(&counted{})
	isOver := false
	var group sync.WaitGroup
	if !c.IsWaiting(func() {
		group.Go(func() { c.Over(); isOver = true })
		time.Sleep(10 * time.Millisecond)
		if isOver {
			t.Error("the wait ended meanwhile")
		}
	}) {
		t.Error("no wait")
	}
	group.Wait()
}

// TestTogether: waits, and a client that leaves at any moment, end in the same way each time.
func TestTogether(t *testing.T) {
	for range 2000 {
		var c Client
		var abandoned counted
		var group sync.WaitGroup
		group.Go(c.Leave)
		begun := 0
		for range 3 {
			if c.Await(&abandoned) {
				begun++
				c.Over()
			}
		}
		group.Wait()
		if n := int(abandoned.times.Load()); n > 1 || n > begun {
			t.Fatalf("%d abandoned of %d", n, begun)
		}
	}
}
