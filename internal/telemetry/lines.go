package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/linewriter"
)

// maxWaiting is how many bytes of the log may wait for a reader that is slow.
const maxWaiting = 1 << 20

// maxTold is how many bytes more may wait while the log says how many lines were dropped.
const maxTold = 4 << 10

// linesRetry is how long the lines wait after a write that failed.
const linesRetry = time.Second

// Lines is a writer of whole lines whose callers never wait: one goroutine writes them on. If too
// many wait, new ones are dropped and counted. What cannot be written is written again, once a second.
// It is safe for concurrent use.
type Lines struct {
	to     *linewriter.Writer
	tell   func(Trouble) // which may write lines
	fate   linewriter.Fate
	failed atomic.Pointer[func(why error)]

	mu      sync.Mutex
	waiting []byte
	dropped uint64  // lines
	untold  Trouble // which the log does not mention yet
	telling bool    // whether the log is just saying so, for which there is room of its own
	closed  bool
	closing chan struct{}
	isOver  chan struct{}
	wake    chan struct{}
}

// Trouble is what became of lines that could not be written at once.
type Trouble struct {
	Dropped uint64 // lines
	// Failures is how many writes failed, and Cause why the last of them did; nil if the lines were only read too
	// slowly.
	Failures int
	Cause    error
}

// NewLines returns a writer of lines that are written to w in the end. When lines can be written again
// after there was trouble, tell is called with it.
func NewLines(w io.Writer, tell func(Trouble)) *Lines {
	l := &Lines{
		to: linewriter.New(w, false), tell: tell,
		wake: make(chan struct{}, 1), closing: make(chan struct{}), isOver: make(chan struct{}),
	}
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
		l.drop(1)
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

func (l *Lines) drop(lines int) {
	l.dropped += uint64(lines)
	l.untold.Dropped += uint64(lines)
}

// Failure returns why lines cannot be written now; nil if they can.
func (l *Lines) Failure() error { return l.fate.Failure() }

// SetFailed has f called with the error of each write that fails. It must not wait.
func (l *Lines) SetFailed(f func(why error)) { l.failed.Store(&f) }

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
		close(l.closing)
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
	l.writeWaiting(batch) // what trouble there was until now
	l.writeAll(l.waiting) // and meanwhile; nothing is added any more
}

// writeAll writes lines, again if that fails: until the log is closed, and once more then.
func (l *Lines) writeAll(lines []byte) {
	isLast := false
	for len(lines) > 0 {
		l.fate.Begin()
		kept, err := l.to.Write(lines)
		l.fate.End(err)
		if err == nil {
			return
		}
		lines = lines[kept:]
		if failed := l.failed.Load(); failed != nil {
			(*failed)(err)
		}
		l.mu.Lock()
		l.untold.Failures, l.untold.Cause = l.untold.Failures+1, err
		if isLast {
			l.drop(bytes.Count(lines, []byte{'\n'}))
			lines = nil
		}
		isLast = l.closed
		l.mu.Unlock()
		select {
		case <-time.After(linesRetry):
		case <-l.closing:
		}
	}
}

// writeWaiting writes the lines that wait now, and then has the log say what trouble there was until they could be
// written. It returns the memory for the next lines.
func (l *Lines) writeWaiting(batch []byte) []byte {
	l.mu.Lock()
	batch, l.waiting = l.waiting, batch[:0]
	l.mu.Unlock()
	l.writeAll(batch)
	l.mu.Lock()
	untold := l.untold
	isAny := untold != Trouble{}
	l.untold, l.telling = Trouble{}, isAny
	l.mu.Unlock()
	if isAny {
		l.tell(untold)
		l.mu.Lock()
		l.telling = false
		l.mu.Unlock()
	}
	return batch
}
