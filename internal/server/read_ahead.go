package server

import (
	"sync"

	"github.com/admission-gateway/gateway/internal/memory"
)

// readAhead sends an answer that is read from its backend faster than the client takes it, so that the request is over
// for all but the client. One goroutine gives it parts, another one sends them.
//
// What waits is held in buffers of the client's share of the memory. Without a further one it is read at the pace of
// the client, as it would be without read-ahead.
type readAhead struct {
	out       sender
	pool      *buffers
	share     memory.Share
	interrupt func() // ends the reading of a body that has no reader
	done      chan struct{}

	mu      sync.Mutex
	changed sync.Cond
	waiting []queuedBuffer
	buffers int   // that are held, the one that is being sent included
	ended   bool  // no part follows
	isWhole bool  // the last part was given, and its end was not sent yet
	err     error // of sending
	lost    int64 // bytes that were not sent
}

// A queuedBuffer holds a part of an answer until it is sent.
type queuedBuffer struct {
	memory *[copyBuffer]byte
	n      int
	// isTaken says that the buffer is of the client's share. One is not.
	isTaken bool
}

func newReadAhead(out sender, pool *buffers, share memory.Share, interrupt func()) *readAhead {
	a := &readAhead{out: out, pool: pool, share: share, interrupt: interrupt, done: make(chan struct{})}
	a.changed.L = &a.mu
	go a.run()
	return a
}

// send takes a part. It waits only if there is no memory for it.
func (a *readAhead) send(p []byte, isLast bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(p) > 0 {
		for a.err == nil && !a.hasRoom() && !a.add() {
			a.changed.Wait()
		}
		if a.err != nil {
			a.lost += int64(len(p))
			return a.err
		}
		last := &a.waiting[len(a.waiting)-1]
		n := copy(last.memory[last.n:], p)
		last.n, p = last.n+n, p[n:]
		a.changed.Broadcast()
	}
	a.isWhole = isLast
	return nil
}

// hasRoom reports whether there is room in the last buffer that waits.
func (a *readAhead) hasRoom() bool {
	n := len(a.waiting)
	return n > 0 && a.waiting[n-1].n < copyBuffer
}

// add adds a buffer, if there may be another one. An answer that waits for nothing else has one.
func (a *readAhead) add() bool {
	isTaken := a.buffers > 0
	if isTaken && !a.share.Take(copyBuffer) {
		return false
	}
	a.buffers++
	a.waiting = append(a.waiting, queuedBuffer{memory: a.pool.copy(), isTaken: isTaken})
	return true
}

// finish waits until all is sent, and returns how many bytes were not.
func (a *readAhead) finish() (lost int64, err error) {
	a.mu.Lock()
	a.ended = true
	a.changed.Broadcast()
	a.mu.Unlock()
	<-a.done
	return a.lost, a.err
}

// run sends what waits.
func (a *readAhead) run() {
	defer close(a.done)
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		for len(a.waiting) == 0 && !a.ended {
			a.changed.Wait()
		}
		var one queuedBuffer // none: what is left to send is the end
		if len(a.waiting) > 0 {
			one, a.waiting = a.waiting[0], a.waiting[1:]
		} else if !a.isWhole {
			return
		}
		if a.err != nil {
			a.lost += int64(one.n)
			a.isWhole = false
		} else if err := a.sendOut(&one, a.isWhole && len(a.waiting) == 0); err != nil {
			a.lost += int64(one.n)
			a.err = err
			a.interrupt()
		}
		a.giveBack(&one)
	}
}

// sendOut sends a part, while others come.
func (a *readAhead) sendOut(p *queuedBuffer, isLast bool) error {
	if isLast {
		a.isWhole = false
	}
	a.mu.Unlock()
	defer a.mu.Lock()
	if p.memory == nil {
		return a.out.sendPart(nil, isLast)
	}
	return a.out.sendPart(p.memory[:p.n], isLast)
}

func (a *readAhead) giveBack(p *queuedBuffer) {
	if p.memory == nil {
		return
	}
	a.pool.putCopy(p.memory)
	if a.buffers--; p.isTaken {
		a.share.Give(copyBuffer)
	}
	a.changed.Broadcast()
}
