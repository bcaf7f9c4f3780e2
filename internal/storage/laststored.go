package storage

import (
	"bytes"
	"time"

	"github.com/admission-gateway/gateway/internal/message"
)

// A LastStored is the object as a write has stored it. The write that waits for the lock of the
// object may go on from there, in place of a read. Whether the backend's answer shows what is
// stored is for the storage to know.
type LastStored struct {
	// Body and ETag are those of the answer to the write.
	Body, ETag []byte
	// Unread counts the writes since the object was read.
	Unread int

	read []byte    // the backend's name, and the head of the read that the write stands for
	sent time.Time // the write was sent no earlier
}

// maxLastStored is the size up to which an object is left for the next write: no more than requests
// keep anyway, so that it need not be counted.
const maxLastStored = 16 << 10

// asNames are the fields by which logs and traces name a request. No answer depends on them.
var asNames = message.Fields(message.FieldXRequestID, message.FieldTraceparent, message.FieldTracestate)

// unlessPast returns what was stored while the request that waits was under way; nil if that was
// before: somebody may have written since, and have been answered before the request came.
func (l *LastStored) unlessPast(asked time.Time) *LastStored {
	if l == nil || !asked.Before(l.sent) {
		return nil
	}
	return l
}

// appendRead appends what a read of a target depends on: the backend, and all that it gets of the
// request. What one client reads may be hidden from another one.
func appendRead(dst []byte, e *Exchanges, b *Backend, target []byte) []byte {
	f := e.forwarding(&Message{Method: methodGet, Target: target})
	f.Skip |= aboutBody | asNames
	f.Trace = nil
	return e.Head.AppendForward(append(append(dst, b.Name...), ' '), f)
}

// LastStored returns the object as the write before has stored it, if a read of the target by this
// request were the same request as one by that write; else nil. It is returned once, and valid as
// long as the request.
func (e *Exchanges) LastStored(b *Backend, target []byte) *LastStored {
	l := e.lock.before
	if e.lock.before = nil; l == nil || e.Sink != nil {
		return nil
	}
	k := e.memory()
	if k.head = appendRead(k.head[:0], e, b, target); !bytes.Equal(k.head, l.read) {
		return nil
	}
	k.before = l
	return l
}

// IsAwaited reports whether another write of this gateway waits for the lock that the request
// holds.
func (e *Exchanges) IsAwaited() bool {
	return e.lock.shard != nil && e.lock.shared == nil && e.lock.isAwaited()
}

// Leave leaves the object as it was stored by this request for the write that waits. The answer to
// the write is still Response, which has the whole body. The write was sent no earlier than at the
// given time, and was one of so many since the object was read.
func (e *Exchanges) Leave(b *Backend, target []byte, sent time.Time, unread int) {
	body := e.Response.Body()
	if len(body) > maxLastStored {
		return
	}
	k := e.memory()
	l := k.spare
	if k.spare = nil; l == nil {
		l = new(LastStored)
	}
	l.Body, l.ETag = append(l.Body[:0], body...), append(l.ETag[:0], e.Response.ETag()...)
	l.sent, l.Unread = sent, unread
	l.read = appendRead(l.read[:0], e, b, target)
	e.lock.after = l
}
