package shared

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// ErrTimeout means that Redis did not answer in time.
var ErrTimeout = errors.New("no answer in time")

// ticket lets a request wait for the answers to its calls.
type ticket struct {
	pending   atomic.Int32
	abandoned atomic.Bool
	done      chan struct{}
	timer     *time.Timer
	calls     []call
}

// tickets keeps the tickets that have all their answers. A ticket that was abandoned stays with the
// workers that still have its calls.
var tickets = sync.Pool{New: func() any {
	t := &ticket{done: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	t.timer.Stop()
	return t
}}

func newTicket(calls int) *ticket {
	t := tickets.Get().(*ticket)
	if cap(t.calls) < calls {
		t.calls = make([]call, calls)
	}
	t.calls = t.calls[:calls]
	t.pending.Store(int32(calls))
	return t
}

// finished is called once for each call.
func (t *ticket) finished() {
	if t.pending.Add(-1) == 0 {
		t.done <- struct{}{}
	}
}

// wait returns whether all calls are finished; if they are not in time, the ticket is abandoned.
func (t *ticket) wait(timeout time.Duration) bool {
	t.timer.Reset(timeout)
	select {
	case <-t.done:
		t.timer.Stop()
		return true
	case <-t.timer.C:
	}
	t.abandoned.Store(true)
	return false
}

// release keeps a ticket whose calls are all finished for the next request.
func (t *ticket) release() {
	for i := range t.calls {
		c := &t.calls[i]
		c.script, c.keys, c.lines, c.ticket, c.reply, c.err = nil, nil, nil, nil, nil, nil
		c.ready.Store(false)
	}
	tickets.Put(t)
}
