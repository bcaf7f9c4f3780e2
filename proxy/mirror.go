package proxy

import (
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// A mirror is a backend that gets copies of requests. Nothing waits for its answers.
type mirror struct {
	to     service
	shares *shares // whose first share is copied; nil if every request is
}

// maxCopies is how many copies of requests may be on their way at a time.
const maxCopies = 1024

// What became of a copy.
const (
	copySent    = "Sent"
	copyFailed  = "Failed"
	copyDropped = "Dropped"
)

// copies count what is on its way to mirrors.
type copies struct{ underway atomic.Int64 }

// begin reports whether a copy may be made.
func (c *copies) begin() bool {
	if c.underway.Add(1) > maxCopies {
		c.end()
		return false
	}
	return true
}

func (c *copies) end() { c.underway.Add(-1) }

// mirrorRequest has what the backend gets copied for the mirrors of the route.
func mirrorRequest(r *request) error {
	r.Copier = (*copier)(r)
	return nil
}

// copier copies a request. It implements storage.Copier.
type copier request

// Copy implements storage.Copier: it copies the first message that a request becomes.
func (c *copier) Copy(m *storage.Message) {
	c.Copier = nil
	for i := range c.route.mirrors {
		one := &c.route.mirrors[i]
		if one.shares != nil && one.shares.next() != 0 {
			continue
		}
		if !copyToMirror((*request)(c), one, m) {
			c.gateway.metrics.RequestMirrored(one.to.backend.name, copyDropped)
		}
	}
}

// copyToMirror sends a copy of a message, and reports false if there is none: the body is not in memory, or takes more
// of that than there is, or too many copies are on their way.
func copyToMirror(r *request, to *mirror, m *storage.Message) bool {
	g, b := r.gateway, to.to.backend
	if to.to.obstacle != nil || m.Upload != nil || !g.copies.begin() {
		return false
	}
	size := len(m.Body) + len(m.Target) + copiedHead
	if !g.memory.Budget.Take(size) {
		g.copies.end()
		return false
	}
	copied := &upstream.Request{Head: headOfCopy(r, m), Body: slices.Clone(m.Body),
		HeadOnly: string(m.Method) == http.MethodHead}
	go func() {
		var answer message.Response
		err := b.client.Do(copied, &answer)
		answer.Close()
		g.memory.Budget.Give(size)
		g.copies.end()
		outcome := copySent
		if err != nil {
			outcome = copyFailed
		}
		g.metrics.RequestMirrored(b.name, outcome)
	}()
	return true
}

// copiedHead is the usual size of the head of a copy.
const copiedHead = 1 << 10

// headOfCopy makes the head of a copy. It has nothing that only the backend of the route is to learn: neither its
// edits, nor the credentials by which the gateway names the user to it.
func headOfCopy(r *request, m *storage.Message) []byte {
	f := r.From
	f.Edits, f.Lines = r.scope.editing.copies, nil
	f.Method, f.Target, f.Via, f.Length = m.Method, m.Target, storage.Via, -1
	f.Skip |= message.Fields(message.FieldDigest)
	if m.ContentType != nil {
		f.Skip |= message.Fields(message.FieldContentType)
		f.Extra = []message.Header{{Name: []byte("Content-Type"), Value: m.ContentType}}
	}
	if m.Body != nil {
		f.Length = int64(len(m.Body))
	}
	return r.incoming.Head.AppendForward(make([]byte, 0, copiedHead), &f)
}

// keepsBody reports whether a body is read whole before it is sent on, for it may be sent again or to mirrors.
func keepsBody(r *request) bool {
	if r.route.mirrors == nil && r.Limits.Retry == nil {
		return false
	}
	n := r.incoming.Head.ContentLength
	return n >= 0 && n <= r.Limits.Body
}
