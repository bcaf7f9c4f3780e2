package h2conn

import "time"

// keptPending is how much memory for what is pending an idle connection keeps.
const keptPending = 16 << 10

// outbox is what is to be written. The connection's lock guards it.
type outbox struct {
	pending   []byte
	other     []byte // memory for the next pending
	appended  uint64 // bytes so far
	begun     uint64 // of them, those that may have left
	isWriting bool
	by        time.Time // the deadline of writes
}

// Write appends frames. It never fails.
func (o *outbox) Write(p []byte) (int, error) {
	o.pending = append(o.pending, p...)
	o.appended += uint64(len(p))
	return len(p), nil
}

// take returns what is pending, for writing.
func (o *outbox) take() []byte {
	p := o.pending
	o.pending, o.other = o.other[:0], nil
	o.begun = o.appended
	return p
}

// give takes the memory of what was written back.
func (o *outbox) give(p []byte) {
	if cap(p) <= keptPending || len(o.pending) > 0 && cap(p) <= maxPending*2 {
		o.other = p[:0]
	}
}
