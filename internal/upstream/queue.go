package upstream

import (
	"github.com/admission-gateway/gateway/internal/upstream/balance"
)

// failedEndpoints are the endpoints at which a request has failed.
type failedEndpoints = balance.FailedEndpoints[connections]

// grant is a slot of a connection, or leave to make a connection to the endpoint, which is used for one of its slots
// then.
type grant struct {
	conn     *connection // nil if one has to be made
	endpoint *endpoint
	isOwn    bool // the one to be made is for HTTP/1.1 alone, and for this request
	isShared bool // other slots of the connection are in use
}

// queue is the requests that wait for a connection, the first come first.
type queue struct {
	first, last *waiter
	length      int
}

// waiter is a request in the queue. Once woken is closed it is out of it, and
// has either a grant or an error.
type waiter struct {
	previous, next *waiter
	queued         bool
	tried          failedEndpoints
	isOwn          bool // it needs a connection of its own
	woken          chan struct{}
	grant          grant
	err            error
}

func (q *queue) push(w *waiter) {
	w.previous, w.queued = q.last, true
	if q.last == nil {
		q.first = w
	} else {
		q.last.next = w
	}
	q.last = w
	q.length++
}

// remove takes a waiter out of the queue, and reports whether it was in it.
func (q *queue) remove(w *waiter) bool {
	if !w.queued {
		return false
	}
	if w.previous == nil {
		q.first = w.next
	} else {
		w.previous.next = w.next
	}
	if w.next == nil {
		q.last = w.previous
	} else {
		w.next.previous = w.previous
	}
	w.previous, w.next, w.queued = nil, nil, false
	q.length--
	return true
}

// wake takes a waiter out of the queue and lets it go on.
func (q *queue) wake(w *waiter) {
	q.remove(w)
	close(w.woken)
}
