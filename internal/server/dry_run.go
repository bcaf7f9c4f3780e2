package server

import (
	"bytes"
	"io"
	"net"

	"github.com/admission-gateway/gateway/internal/message"
)

// DryRun copies a request for a dry run, which is judged and never answered. The copy has its own head, and a body that
// was read. It must not outlive the original, and its user must call Close.
func (m *Memory) DryRun(r *Request, body []byte) *Request {
	to := &Request{Head: r.Head.Copy(), Client: r.Client, Exchange: &dryRun{body: body}, peer: r.peer}
	to.Memory.Open(m.Budget, to.Client)
	to.body.open(m, &to.Memory)
	return to
}

// Close gives back the memory that the request of a dry run took.
func (r *Request) Close() { r.close() }

// A dryRun is the exchange of a request whose answer no client awaits. It implements Exchange.
type dryRun struct{ body []byte }

var _ Exchange = (*dryRun)(nil)

// ReadBody implements Exchange.
func (x *dryRun) ReadBody(limit int64) ([]byte, error) {
	if int64(len(x.body)) > limit {
		return nil, tooLargeBody(limit)
	}
	return x.body, nil
}

// HasArrived implements Exchange.
func (x *dryRun) HasArrived() bool { return true }

// Upload implements Exchange.
func (x *dryRun) Upload(bool) message.Upload { return &dryRunUpload{bytes.NewReader(x.body)} }

// BodyBytes implements Exchange.
func (x *dryRun) BodyBytes() int64 { return int64(len(x.body)) }

// Send implements Exchange.
func (x *dryRun) Send(*message.Response) {}

// SendStream implements Exchange.
func (x *dryRun) SendStream(*message.Response, Flow, Editor, *ReadAhead) (int64, error) {
	return 0, nil
}

// SendTunnel implements Exchange.
func (x *dryRun) SendTunnel(_, _ []byte, _ net.Conn, closeBackend func()) bool {
	closeBackend()
	return true
}

// Break implements Exchange.
func (x *dryRun) Break(error) bool { return false }

// Answered implements Exchange.
func (x *dryRun) Answered() bool { return false }

// GoOn implements Exchange.
func (x *dryRun) GoOn(rest func()) { rest() }

// Linger implements Exchange.
func (x *dryRun) Linger() {}

// Detach implements Exchange.
func (x *dryRun) Detach() {}

// IsDetached implements Exchange.
func (x *dryRun) IsDetached() bool { return true }

// dryRunUpload is a body that is read from memory.
type dryRunUpload struct{ io.Reader }

// Length implements message.Upload.
func (u *dryRunUpload) Length() int64 { return u.Reader.(*bytes.Reader).Size() }

// Interrupt implements message.Upload.
func (u *dryRunUpload) Interrupt() {}

// Trailers implements message.Upload.
func (u *dryRunUpload) Trailers() []message.Header { return nil }
