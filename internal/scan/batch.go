package scan

import (
	"context"

	"github.com/admission-gateway/gateway/internal/document"
)

const (
	// batchBytes and batchItems are how large a batch is, unless one item is larger.
	batchBytes = 256 << 10
	batchItems = 512
	// keptBytes is the memory of a batch that is kept for the next one.
	keptBytes = 1 << 20
)

// An item is one thing to be judged, as its source has it.
type item struct {
	start, end int // in the text of the batch
	// about says which resource the object is of; nil if the object itself says it.
	about *subject
	// shape says how the text is to be read.
	shape shape
	// line is its first line in its source, and place names the source; 0 and "" if it has none.
	line  int64
	place string
}

// A shape makes a trial of the text of an item.
type shape interface {
	// read sets the trial, or returns why there is none.
	read(w *worker, text []byte, i *item) (skipped string)
}

// isCounted is the answer of a shape for a text that it has counted itself.
const isCounted = "\x00"

// A batch is items that one worker judges, and their results.
type batch struct {
	text  []byte
	items []item
	end   position // behind the last item
	part  float64  // of all sources that was read

	done     chan struct{}
	tally    *Tally
	findings []Finding
}

func newBatch() *batch {
	b := &batch{tally: newTally()}
	b.reset()
	return b
}

func (b *batch) reset() {
	if b.text = b.text[:0]; cap(b.text) > keptBytes {
		b.text = nil
	}
	clear(b.items)
	clear(b.findings)
	b.items, b.findings = b.items[:0], b.findings[:0]
	b.tally.reset()
	b.done = make(chan struct{})
}

// A pipeline carries batches from the reader to the workers, and on in order.
type pipeline struct{ work, order, free chan *batch }

// A source has items.
type source interface {
	// name identifies the source.
	name() string
	// read hands on the items behind a position.
	read(ctx context.Context, from position, to *emitter) error
}

// An emitter hands on the items of sources.
type emitter struct {
	ctx      context.Context
	pipeline *pipeline
	notes    *notes
	open     *batch
	at       position
	skip     int64 // items that were judged before
	part     float64
	limits   document.Limits // of objects
}

// expired begins a page at a new token, because the one before is no longer good.
func (e *emitter) expired(token, last string) {
	e.skip = 0
	e.at.Continue, e.at.Last, e.at.Done = token, last, 0
}

// readAll reads a source to its end.
func (e *emitter) readAll(s source, from position) error {
	e.at, e.skip = from, from.Done
	e.at.Done = 0
	if err := s.read(e.ctx, from, e); err != nil {
		return err
	}
	return e.flush()
}

// page begins a page of the source, which is read by a token. Items that were judged before are only skipped on the
// page where the scan goes on.
func (e *emitter) page(token, last string) error {
	if err := e.flush(); err != nil {
		return err
	}
	if token != e.at.Continue {
		e.skip = 0
		e.at.Continue, e.at.Last, e.at.Done = token, last, 0
	}
	return nil
}

// item hands on an item whose text is made of parts.
func (e *emitter) item(i item, parts ...[]byte) error {
	e.at.Done++
	if e.skip > 0 {
		e.skip--
		return e.ctx.Err()
	}
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	if b := e.open; b != nil && (len(b.items) == batchItems || len(b.text) > 0 && len(b.text)+size > batchBytes) {
		at := e.at
		e.at.Done--
		if err := e.flush(); err != nil {
			return err
		}
		e.at = at
	}
	if e.open == nil {
		select {
		case e.open = <-e.pipeline.free:
		case <-e.ctx.Done():
			return e.ctx.Err()
		}
	}
	b := e.open
	i.start = len(b.text)
	for _, p := range parts {
		b.text = append(b.text, p...)
	}
	i.end = len(b.text)
	b.items = append(b.items, i)
	return nil
}

// flush hands on the batch at hand. The positions of batches never say more than what was handed on.
func (e *emitter) flush() error {
	b := e.open
	if b == nil {
		return e.ctx.Err()
	}
	e.open = nil
	b.end, b.part = e.at, e.part
	e.pipeline.order <- b // has room for all batches, as work has
	e.pipeline.work <- b
	return e.ctx.Err()
}
