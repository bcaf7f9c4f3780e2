package telemetry

import (
	"context"
	"fmt"
	"io"
	"sync"
)

// maxWaiting is how many bytes of the log may wait for a reader that is slow.
const maxWaiting = 1 << 20

// maxTold is how many bytes more may wait while the log says how many lines were dropped.
const maxTold = 4 << 10

// Lines is a writer of whole lines whose callers never wait: one goroutine writes them on. If too
// many wait, new ones are dropped and counted. It is safe for concurrent use.
type Lines struct {
	to   io.Writer
	tell func(dropped uint64) // which may write lines

	mu      sync.Mutex
	waiting []byte
	dropped uint64 // lines
	untold  uint64 // dropped lines that the log does not mention yet
	telling bool   // whether the log is just saying so, for which there is room of its own
	closed  bool
	isOver  chan struct{}
	wake    chan struct{}
}

// NewLines returns a writer of lines that are written to w in the end. When there is room again
// after lines were dropped, tell is called with their number.
func NewLines(w io.Writer, tell func(dropped uint64)) *Lines {
	l := &Lines{to: w, tell: tell, wake: make(chan struct{}, 1), isOver: make(chan struct{})}
	go l.run()
	return l
}

// Write takes a line. It reports no error: there is no place left to report it to.
func (l *Lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	room := maxWaiting
	if l.telling {
		room += maxTold
	}
	if l.closed && !l.telling || len(l.waiting)+len(line) > room {
		l.dropped++
		l.untold++
		return len(line), nil
	}
	l.waiting = append(l.waiting, line...)
	if l.closed {
		return len(line), nil // it is written with the last ones
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return len(line), nil
}

// Dropped returns how many lines were dropped so far.
func (l *Lines) Dropped() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped
}

// Close writes what waits, for as long as ctx lasts. Lines that come later are dropped.
func (l *Lines) Close(ctx context.Context) error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.wake)
	}
	l.mu.Unlock()
	select {
	case <-l.isOver:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the log could not be written to its end: %w", ctx.Err())
	}
}

func (l *Lines) run() {
	defer close(l.isOver)
	var batch []byte
	for range l.wake {
		batch = l.writeWaiting(batch)
	}
	batch = l.writeWaiting(batch)
	l.writeWaiting(batch)        // that lines were dropped until now
	_, _ = l.to.Write(l.waiting) // and meanwhile; nothing is added any more
}

// writeWaiting writes the lines that wait now, and then has the log say how many were dropped until there was room
// again. It returns the memory for the next lines.
func (l *Lines) writeWaiting(batch []byte) []byte {
	l.mu.Lock()
	batch, l.waiting = l.waiting, batch[:0]
	l.mu.Unlock()
	if len(batch) > 0 {
		_, _ = l.to.Write(batch)
	}
	l.mu.Lock()
	untold := l.untold
	l.untold, l.telling = 0, untold > 0
	l.mu.Unlock()
	if untold > 0 {
		l.tell(untold)
		l.mu.Lock()
		l.telling = false
		l.mu.Unlock()
	}
	return batch
}
