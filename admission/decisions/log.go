package decisions

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/audit"
	"github.com/admission-gateway/gateway/internal/quote"
)

// A Reason says in a word why events are lost.
type Reason string

// The reasons.
const (
	QueueFull  Reason = "QueueFull"  // too much waits already
	TooLarge   Reason = "TooLarge"   // an event is too large even without its input
	MaskFailed Reason = "MaskFailed" // it is unknown which parts of the event may be shown
	Unwritable Reason = "Unwritable" // a value has no form in JSON
	Refused    Reason = "Refused"    // the service does not take the event, whenever it is sent
	Unsent     Reason = "Unsent"     // the gateway ended before the sink took it
)

// before is the name, in metrics, of the stage before all sinks.
const before = "queue"

// Options configure a Log.
type Options struct {
	// Labels are on every event.
	Labels map[string]string
	// NewID appends a new id of an event.
	NewID func(dst []byte) []byte
	// Filter masks events; nil shows them as they are.
	Filter Filter
	// QueueBytes bounds what waits for the filter, and for each sink.
	QueueBytes int
	// MaxEventBytes bounds an event. A larger one is logged without its input.
	MaxEventBytes int
	// Backoff is how long a sink is left alone after an error, at first, and MaxBackoff at most.
	Backoff, MaxBackoff time.Duration
	// Dropped is called with the number of events that a sink will never have, and why.
	Dropped func(sink string, events int, why Reason)
	// Failed is called with the error of each write that failed; nil for no call. It must not wait.
	Failed func(sink string, why error)
}

// A Log is a decision log. It is safe for concurrent use.
type Log struct {
	options  Options
	labels   []byte // as JSON
	requests atomic.Uint64
	unmasked *audit.Log // nil if there is no filter
	sinks    *audit.Log
	buffers  sync.Pool
}

// New starts a log that hands events to sinks until Close.
func New(o Options, sinks ...audit.Waiting) *Log {
	l := &Log{options: o, labels: appendLabels(nil, o.Labels)}
	l.buffers.New = func() any { return new([]byte) }
	queue := audit.Options{
		Mode: audit.Batch, QueueBytes: o.QueueBytes, Backoff: o.Backoff, MaxBackoff: o.MaxBackoff,
		Attempts: math.MaxInt,
		Dropped:  func(sink string, events int, why error) { o.Dropped(sink, events, reasonOf(why)) },
		Failed:   o.Failed,
	}
	l.sinks = audit.New(queue, sinks...)
	if o.Filter != nil {
		l.unmasked = audit.New(queue, audit.Waiting{Sink: &masking{filter: o.Filter, to: l.sinks, dropped: o.Dropped}})
	}
	return l
}

func reasonOf(why error) Reason {
	if errors.Is(why, audit.ErrFull) {
		return QueueFull
	}
	return Unsent
}

// Close hands on what waits, for as long as the context lasts.
func (l *Log) Close(ctx context.Context) error {
	var err error
	if l.unmasked != nil {
		err = l.unmasked.Close(ctx)
	}
	return errors.Join(err, l.sinks.Close(ctx))
}

// Reopen has the files opened again before the next write.
func (l *Log) Reopen() { l.sinks.Reopen() }

// States returns how the sinks fare now.
func (l *Log) States() []audit.State { return l.sinks.States() }

// NextRequest returns the number of a request whose decisions are logged.
func (l *Log) NextRequest() uint64 { return l.requests.Add(1) }

// A Request says for which request an evaluation was.
type Request struct {
	// Number is its number; ID is its id, and Client who sent it.
	Number     uint64
	ID, Client string
	// Trace and Span are its place in a trace; empty if it has none.
	Trace, Span string
	// Configuration and Policies name what decides over the request.
	Configuration, Policies string
}

// largeBuffer is how much memory is kept for the next event.
const largeBuffer = 256 << 10

// Add logs an evaluation. It never blocks, and keeps no reference to its arguments.
func (l *Log) Add(e *admission.Evaluation, r *Request) {
	buffer := l.buffers.Get().(*[]byte)
	line, err := l.append((*buffer)[:0], e, r, false)
	if err == nil && len(line) > l.options.MaxEventBytes {
		line, err = l.append(line[:0], e, r, true)
	}
	switch {
	case err != nil:
		l.options.Dropped(before, 1, Unwritable)
	case len(line) > l.options.MaxEventBytes:
		l.options.Dropped(before, 1, TooLarge)
	default:
		to := l.sinks
		if l.unmasked != nil {
			to = l.unmasked
		}
		to.Offer(line)
	}
	if cap(line) <= largeBuffer {
		*buffer = line
		l.buffers.Put(buffer)
	}
}

func appendLabels(dst []byte, labels map[string]string) []byte {
	names := make([]string, 0, len(labels))
	for name := range labels {
		names = append(names, name)
	}
	slices.SortFunc(names, strings.Compare)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(quote.AppendJSON(dst, name), ':')
		dst = quote.AppendJSON(dst, labels[name])
	}
	return append(dst, '}')
}
