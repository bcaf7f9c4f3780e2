package audit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/linewriter"
)

// Mode says what happens to a request whose events cannot be recorded.
type Mode uint8

const (
	// Batch serves the request and counts the events that are lost.
	Batch Mode = iota
	// Blocking refuses the request before anything of it reached the backend, and writes an event
	// again until the sink has it.
	Blocking
)

// reserved is how much a request reserves for its events in Blocking mode, in bytes. With its objects left
// out an event is smaller.
const reserved = 16 << 10

// ErrFull is the error of a request for whose events there is no room, or no sink that works.
var ErrFull = errors.New("the audit log takes no more events")

// errUnfinished is the error of a write that did not end in time.
var errUnfinished = errors.New("a write did not end in time")

// A Sink keeps events for good.
type Sink interface {
	// Write keeps whole lines. It returns how many bytes of them it has for good; the rest
	// has to be written again.
	Write(ctx context.Context, lines []byte) (int, error)
	// Name is the sink's name in metrics and messages.
	Name() string
	// Close releases the sink. Nothing is written after it.
	Close() error
}

// Options say how a Log keeps events.
type Options struct {
	Mode Mode
	// QueueBytes bounds what waits for each sink.
	QueueBytes int
	// Backoff is how long the log waits after a failed write, at first; each further failure doubles
	// it, up to MaxBackoff.
	Backoff, MaxBackoff time.Duration
	// Attempts is how often Batch mode tries to write the same events; the mode Blocking never gives up.
	Attempts int
	// Dropped is called with how many events were lost, and why; nil for no call. It must not wait.
	Dropped func(sink string, events int, why error)
	// Failed is called with the error of each write that failed; nil for no call. It must not wait.
	Failed func(sink string, why error)
}

// A Log hands lines to its sinks in the background. It is safe for concurrent use.
type Log struct {
	queues []*queue
	mode   Mode
}

// Waiting is a sink, and how long events may wait for others, so that one write takes several. 0 writes
// at once. With MaxWait the time is chosen at random between the two. A queue that is half full does
// not wait.
type Waiting struct {
	Sink
	Wait, MaxWait time.Duration
}

// A Reservation is the room that a request has for its events in every queue. The zero value has none.
type Reservation struct{ left int }

// New starts a log. [Log.Close] ends it.
func New(o Options, sinks ...Waiting) *Log {
	l := &Log{mode: o.Mode}
	for _, s := range sinks {
		q := &queue{options: o, sink: s, filled: make(chan struct{}, 1), crowded: make(chan struct{}, 1),
			closing: make(chan struct{}), over: make(chan struct{})}
		q.full.queue = q
		l.queues = append(l.queues, q)
		go q.run()
	}
	return l
}

// Reserve makes sure that the events of one request can be recorded. [Log.Release] must follow. Only
// a log in Blocking mode refuses, with ErrFull.
func (l *Log) Reserve() (Reservation, error) {
	if l.mode != Blocking {
		return Reservation{}, nil
	}
	for i, q := range l.queues {
		if !q.reserve() {
			for _, taken := range l.queues[:i] {
				taken.release(reserved)
			}
			return Reservation{}, ErrFull
		}
	}
	return Reservation{reserved}, nil
}

// Release gives back what is left of a reservation.
func (l *Log) Release(r *Reservation) {
	if r.left == 0 {
		return
	}
	for _, q := range l.queues {
		q.release(r.left)
	}
	r.left = 0
}

// Missed are the sinks that had no room for a line. The zero value has none.
type Missed struct {
	queues   uint64 // a bit for each
	reserved int    // what the line had of the reservation in each of them
}

// IsAny reports whether a sink missed the line.
func (m Missed) IsAny() bool { return m.queues != 0 }

// Add records an event, which is one line, and returns which sinks will not have it: each has a queue
// and a fate of its own. It keeps no reference to the line. A line within the reservation always has
// room. [Log.AddShorter] or [Log.Lose] must follow for those that missed it.
func (l *Log) Add(line []byte, r *Reservation) Missed {
	m := Missed{reserved: min(len(line), r.left)}
	r.left -= m.reserved
	for i, q := range l.queues {
		if !q.add(line, m.reserved) {
			m.queues |= 1 << i
		}
	}
	return m
}

// AddShorter records a shorter form of an event for the sinks that had no room for it, and returns
// which of them still have none.
func (l *Log) AddShorter(line []byte, m Missed) Missed {
	still := Missed{reserved: m.reserved}
	for i, q := range l.queues {
		if m.queues&(1<<i) != 0 && !q.add(line, m.reserved) {
			still.queues |= 1 << i
		}
	}
	return still
}

// Lose counts an event for the sinks that will not have it.
func (l *Log) Lose(m Missed) {
	for i, q := range l.queues {
		if m.queues&(1<<i) != 0 {
			q.release(m.reserved)
			q.full.note()
			q.drop(1, &q.full)
		}
	}
}

// Offer records an event, which is one line, for each sink that has room for it. The event is lost for
// the others, and counted. It keeps no reference to the line.
func (l *Log) Offer(line []byte) { l.Lose(l.Add(line, &Reservation{})) }

// Reopen has the sinks that are files open them again before the next write.
func (l *Log) Reopen() {
	for _, q := range l.queues {
		if f, isFile := q.sink.Sink.(interface{ Reopen() }); isFile {
			f.Reopen()
		}
	}
}

// A State says how a sink fares.
type State struct {
	Sink string
	// Failure is why it does not take what is written; nil if it does.
	Failure error
}

// States returns how the sinks fare now.
func (l *Log) States() []State {
	all := make([]State, len(l.queues))
	for i, q := range l.queues {
		all[i] = State{q.sink.Name(), q.fate.Failure()}
	}
	return all
}

// Refuses reports whether the log refuses requests while a sink does not work.
func (l *Log) Refuses() bool { return l.mode == Blocking }

// lastWrite is how long a write may take that has lost its context.
const lastWrite = time.Second

// Close writes what is waiting, for as long as the context lasts, and closes the sinks. A write that does not end, such
// as one to standard output that nothing reads, is left alone: what it and those after it were to write is lost.
func (l *Log) Close(ctx context.Context) error {
	for _, q := range l.queues {
		q.close(ctx)
	}
	late, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		if sleep(late, lastWrite) {
			cancel()
		}
	})
	defer stop()
	var all []error
	for _, q := range l.queues {
		select {
		case <-q.over:
			all = append(all, q.sink.Close())
		case <-late.Done():
			all = append(all, q.abandon())
		}
	}
	return errors.Join(all...)
}

// A queue has what waits for one sink.
type queue struct {
	options Options
	sink    Waiting
	filled  chan struct{} // has a value if something waits
	crowded chan struct{} // has a value if much waits
	closing chan struct{}
	over    chan struct{}   // is closed when nothing is written any more
	until   context.Context // of what is written while the log closes

	failing atomic.Bool // whether the last write failed
	full    fullError
	fate    linewriter.Fate

	mu       sync.Mutex
	waiting  []byte
	writing  []byte // what is being written, and is not kept yet
	reserved int    // bytes
	closed   bool
	// isAbandoned says that what is being written was counted as lost.
	isAbandoned bool
}

// A fullError is the error of an event for which a queue has no room. When it is read it names the cause of the last
// loss, which may be over by then.
type fullError struct {
	queue *queue
	cause atomic.Pointer[error]
}

// errSlow is the cause of a full queue of a sink that does not fail.
var errSlow = errors.New("its sink takes them more slowly than they come")

// note keeps why the queue is full now.
func (e *fullError) note() {
	why := cmp.Or(e.queue.fate.Failure(), errSlow)
	e.cause.Store(&why)
}

func (e *fullError) Error() string {
	why := cmp.Or(e.queue.fate.Failure(), errSlow)
	if last := e.cause.Load(); last != nil {
		why = *last
	}
	return ErrFull.Error() + ": " + why.Error()
}

func (e *fullError) Unwrap() error { return ErrFull }

func (q *queue) used() int { return len(q.waiting) + len(q.writing) + q.reserved }

func (q *queue) reserve() bool {
	if q.failing.Load() {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.used()+reserved > q.options.QueueBytes {
		return false
	}
	q.reserved += reserved
	return true
}

func (q *queue) release(n int) {
	q.mu.Lock()
	q.reserved -= n
	q.mu.Unlock()
}

// add takes a line, and with it what is reserved for it, if there is room.
func (q *queue) add(line []byte, reserved int) bool {
	q.mu.Lock()
	if q.closed || len(line) > reserved && q.used()-reserved+len(line) > q.options.QueueBytes {
		q.mu.Unlock()
		return false
	}
	q.reserved -= reserved
	q.waiting = append(q.waiting, line...)
	isCrowded := len(q.waiting) > q.options.QueueBytes/2
	q.mu.Unlock()
	signal(q.filled)
	if isCrowded {
		signal(q.crowded)
	}
	return true
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is known already
	}
}

func (q *queue) drop(events int, why error) {
	if q.options.Dropped != nil && events > 0 {
		q.options.Dropped(q.sink.Name(), events, why)
	}
}

func (q *queue) close(ctx context.Context) {
	q.mu.Lock()
	q.closed, q.until = true, ctx
	q.mu.Unlock()
	close(q.closing)
}

// run writes what waits until the log is closed and nothing is left.
func (q *queue) run() {
	defer close(q.over)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // a write that goes on when the log closes gets the time that closing has
		<-q.closing
		select {
		case <-q.until.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	var spare []byte
	for {
		select {
		case <-q.filled:
		case <-q.closing:
		}
		q.gather()
		lines, last := q.take(spare)
		if len(lines) > 0 {
			q.write(ctx, lines)
		}
		if last {
			return
		}
		spare = lines[:0]
		if cap(spare) > q.options.QueueBytes/4 {
			spare = nil
		}
	}
}

// gather waits for further events, so that one write takes several.
func (q *queue) gather() {
	wait := q.sink.Wait
	if more := q.sink.MaxWait - wait; more > 0 {
		wait += rand.N(more)
	}
	if wait <= 0 {
		return
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-q.crowded:
	case <-q.closing:
	}
}

// take takes all that waits; spare is memory for what comes next.
func (q *queue) take(spare []byte) (lines []byte, last bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-q.crowded: // what was crowded is taken
	default:
	}
	lines, last = q.waiting, q.closed
	q.waiting, q.writing = spare, lines
	return lines, last
}

// write hands lines to the sink, again if it fails.
func (q *queue) write(ctx context.Context, lines []byte) {
	wait := q.options.Backoff
	for n := 1; ; n++ {
		q.fate.Begin()
		kept, err := q.sink.Write(ctx, lines)
		lines = lines[kept:]
		q.mu.Lock()
		q.writing = lines
		q.mu.Unlock()
		if len(lines) == 0 {
			q.fate.End(nil)
		} else {
			q.fate.End(err)
			if q.options.Failed != nil {
				q.options.Failed(q.sink.Name(), err)
			}
		}
		q.failing.Store(len(lines) > 0)
		if len(lines) == 0 {
			break // even if an error came with the last of them
		}
		isLast := q.options.Mode == Batch && n >= q.options.Attempts
		if isLast || !sleep(ctx, wait) {
			q.lose(err)
			break
		}
		wait = min(2*wait, q.options.MaxBackoff)
	}
	q.mu.Lock()
	q.writing = nil
	q.mu.Unlock()
}

// lose counts what is being written as lost.
func (q *queue) lose(why error) {
	q.mu.Lock()
	events := bytes.Count(q.writing, []byte{'\n'})
	if q.isAbandoned {
		events = 0
	}
	q.mu.Unlock()
	q.drop(events, why)
}

// abandon leaves a write alone that does not end, and counts what it and those after it were to write as lost.
func (q *queue) abandon() error {
	why := cmp.Or(q.fate.Failure(), errUnfinished)
	q.mu.Lock()
	events := bytes.Count(q.writing, []byte{'\n'}) + bytes.Count(q.waiting, []byte{'\n'})
	q.isAbandoned = true
	q.mu.Unlock()
	q.drop(events, why)
	return fmt.Errorf("%s: %w", q.sink.Name(), why)
}

// sleep waits, and reports whether the context lasted.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
