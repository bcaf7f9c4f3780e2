package server

import (
	"bytes"
	"io"
	"net"

	"github.com/admission-gateway/gateway/internal/message"
)

// Rehearse makes of a request one that is judged and never answered: with a head of its own, and a body that was read. It lasts
// no longer than the other one. Close has to be called at its end.
func (m *Memory) Rehearse(r *Request, body []byte) *Request {
	to := &Request{Head: r.Head.Copy(), Client: r.Client, Exchange: &rehearsal{body: body}, peer: r.peer}
	to.Memory.Open(m.Budget, to.Client)
	to.body.open(m, &to.Memory)
	return to
}

// Close gives back the memory that a rehearsed request took.
func (r *Request) Close() { r.close() }

// A rehearsal is the exchange of a request for which no client waits. It implements Exchange.
type rehearsal struct{ body []byte }

var _ Exchange = (*rehearsal)(nil)

// ReadBody implements Exchange.
func (x *rehearsal) ReadBody(limit int64) ([]byte, error) {
	if int64(len(x.body)) > limit {
		return nil, tooLargeBody(limit)
	}
	return x.body, nil
}

// HasArrived implements Exchange.
func (x *rehearsal) HasArrived() bool { return true }

// Upload implements Exchange.
func (x *rehearsal) Upload(bool) message.Upload { return &rehearsedUpload{bytes.NewReader(x.body)} }

// BodyBytes implements Exchange.
func (x *rehearsal) BodyBytes() int64 { return int64(len(x.body)) }

// Send implements Exchange.
func (x *rehearsal) Send(*message.Response) {}

// SendStream implements Exchange.
func (x *rehearsal) SendStream(*message.Response, Flow, Editor, *Ahead) (int64, error) { return 0, nil }

// SendTunnel implements Exchange.
func (x *rehearsal) SendTunnel(_, _ []byte, _ net.Conn, closeBackend func()) bool {
	closeBackend()
	return true
}

// Break implements Exchange.
func (x *rehearsal) Break(error) bool { return false }

// Answered implements Exchange.
func (x *rehearsal) Answered() bool { return false }

// GoOn implements Exchange.
func (x *rehearsal) GoOn(rest func()) { rest() }

// Linger implements Exchange.
func (x *rehearsal) Linger() {}

// Detach implements Exchange.
func (x *rehearsal) Detach() {}

// IsDetached implements Exchange.
func (x *rehearsal) IsDetached() bool { return true }

// rehearsedUpload is a body that is read from memory.
type rehearsedUpload struct{ io.Reader }

// Length implements message.Upload.
func (u *rehearsedUpload) Length() int64 { return u.Reader.(*bytes.Reader).Size() }

// Interrupt implements message.Upload.
func (u *rehearsedUpload) Interrupt() {}

// Trailers implements message.Upload.
func (u *rehearsedUpload) Trailers() []message.Header { return nil }
