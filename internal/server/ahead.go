package server

import (
	"sync"

	"github.com/admission-gateway/gateway/internal/memory"
)

// ahead sends an answer that is read from its backend faster than the client takes it, so that the request is over for
// all but the client. One goroutine gives it parts, another one sends them.
//
// What waits is held in buffers of the client's share of the memory. Without a further one it is read at the pace of the
// client, as it would be without read-ahead.
type ahead struct {
	conn      *conn
	share     memory.Share
	interrupt func() // ends the reading of a body that has no reader
	done      chan struct{}

	mu      sync.Mutex
	changed sync.Cond
	waiting []waitingPart
	buffers int   // that are held, the one that is being sent included
	ended   bool  // no part follows
	err     error // of sending
	lost    int64 // bytes that were not sent
}

// A waitingPart is a part of an answer that is to be sent.
type waitingPart struct {
	memory *[copyBuffer]byte
	n      int
	// isTaken says that the buffer is of the client's share. One is not.
	isTaken bool
}

func newAhead(c *conn, share memory.Share, interrupt func()) *ahead {
	a := &ahead{conn: c, share: share, interrupt: interrupt, done: make(chan struct{})}
	a.changed.L = &a.mu
	go a.run()
	return a
}

// send takes a part. It waits only if there is no memory for it.
func (a *ahead) send(p []byte) error {
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
	return nil
}

// hasRoom reports whether there is room in the last buffer that waits.
func (a *ahead) hasRoom() bool {
	n := len(a.waiting)
	return n > 0 && a.waiting[n-1].n < copyBuffer
}

// add adds a buffer, if there may be another one. An answer that waits for nothing else has one.
func (a *ahead) add() bool {
	isTaken := a.buffers > 0
	if isTaken && !a.share.Take(copyBuffer) {
		return false
	}
	a.buffers++
	a.waiting = append(a.waiting, waitingPart{memory: a.conn.server.buffers.copy(), isTaken: isTaken})
	return true
}

// finish waits until all is sent, and returns how many bytes were not.
func (a *ahead) finish() (lost int64, err error) {
	a.mu.Lock()
	a.ended = true
	a.changed.Broadcast()
	a.mu.Unlock()
	<-a.done
	return a.lost, a.err
}

// run sends what waits.
func (a *ahead) run() {
	defer close(a.done)
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		for len(a.waiting) == 0 && !a.ended {
			a.changed.Wait()
		}
		if len(a.waiting) == 0 {
			return
		}
		one := a.waiting[0]
		if a.waiting = a.waiting[1:]; a.err != nil {
			a.lost += int64(one.n)
		} else if err := a.sendOut(&one); err != nil {
			a.lost += int64(one.n)
			a.err = err
			a.interrupt()
		}
		a.giveBack(&one)
	}
}

// sendOut sends a part, while others come.
func (a *ahead) sendOut(p *waitingPart) error {
	a.mu.Unlock()
	defer a.mu.Lock()
	return a.conn.sendPart(p.memory[:p.n])
}

func (a *ahead) giveBack(p *waitingPart) {
	a.conn.server.buffers.putCopy(p.memory)
	if a.buffers--; p.isTaken {
		a.share.Give(copyBuffer)
	}
	a.changed.Broadcast()
}
