package server

import (
	"net"

	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/presence"
	"github.com/admission-gateway/gateway/internal/status"
)

// A Request is one request of a client, for as long as the handler serves it: what it says, and the
// exchange by which its body is read and it is answered. A request without an exchange has no
// client: no method of Exchange may be called on it.
type Request struct {
	Head message.Head
	// Refusal is the answer to a head that cannot be read in one way only; nil if the head is good. Of a head
	// that is refused Head has at most its target, Host and Origin.
	Refusal *status.Error
	// Memory is the request's share of the memory for all requests.
	Memory memory.Reservation
	// Client says whether the client still waits for the answer.
	Client *presence.Client
	Exchange

	peer *Peer
	body bodyBuffer // the body, if it was read whole
}

// Peer returns the other end of the connection.
func (r *Request) Peer() *Peer { return r.peer }

// ReplaceBody keeps other bytes in the place of the body that was read, up to the same moment.
func (r *Request) ReplaceBody(bytes []byte) ([]byte, error) {
	r.body.release()
	err := r.body.append(bytes, len(bytes))
	return r.body.bytes, err
}

// ReleaseBody forgets the body that was read.
func (r *Request) ReleaseBody() { r.body.release() }

// open readies a request, which is new but for the memory of its head, for an exchange with a peer.
func (r *Request) open(m *Memory, peer *Peer, x Exchange, client *presence.Client) {
	r.Head.Reset()
	r.Exchange, r.peer, r.Client = x, peer, client
	r.Memory.Open(m.Budget, client)
	r.body.open(m, &r.Memory)
}

// close gives back the memory that the request took.
func (r *Request) close() {
	r.body.release()
	r.Memory.Close()
}

// An Exchange carries one request of a client and its answer, in whatever protocol the client
// speaks. One goroutine uses it, unless a method says otherwise. Exactly one answer is sent, by
// Send, SendStream or SendTunnel, unless Break ends the exchange.
type Exchange interface {
	// ReadBody reads the body whole, if it is at most so long. The bytes are valid until the handler
	// returns. Memory is taken as bytes arrive, never for bytes that a client merely announces. The
	// error is a *status.Error; after one nothing more is read of the request.
	ReadBody(limit int64) ([]byte, error)
	// HasArrived reports whether the whole body has come already, so that ReadBody neither waits nor takes memory.
	HasArrived() bool
	// Upload returns the body as one that is read while it is sent on. It is read instead of
	// ReadBody, to its end or not at all. If mayPause is set, a client of HTTP/2 may send nothing for any time.
	Upload(mayPause bool) message.Upload
	// BodyBytes returns how much of the body was read, without its framing.
	BodyBytes() int64

	// Send sends an answer whose body is in memory.
	Send(m *message.Response)
	// SendStream sends an answer whose body is a stream, and returns how many bytes of body went
	// out. Bytes leave as soon as they have arrived. An answer that breaks off has no mark of a
	// complete body. The flow says what a shutdown does with it. The editor, if there is one, changes
	// the body; if it fails before anything was sent, the request is not answered. With ahead the
	// body is read from the backend before the client takes it.
	SendStream(m *message.Response, flow Flow, e Editor, ahead *ReadAhead) (int64, error)
	// SendTunnel sends the head of an answer, the empty line included, after which the exchange goes on in another
	// protocol, and carries bytes both ways until it ends. What each end has sent already goes first: early is what the
	// backend sent behind its head. It reports whether the tunnel was opened; if not, the client was answered 502.
	SendTunnel(head, early []byte, backend net.Conn, closeBackend func()) bool
	// Break ends the exchange without an answer if the error is that a backend ended its stream, and the client learns
	// more from such an end than from an answer: the client of a call of gRPC knows by it whether its deadline has
	// passed. It reports whether it did.
	Break(err error) bool
	// Answered reports whether the answer, or its first part, went out.
	Answered() bool

	// GoOn has the rest of an answer sent that may go on for hours, when the handler has returned, which does nothing
	// more with the request.
	GoOn(rest func())

	// Linger lets a client that goes on sending read the answer before its connection ends.
	Linger()
	// Detach moves the head to memory of its own, if it is in memory that other requests can use
	// while this one goes on. The handler has to look at all of it again.
	Detach()
	// IsDetached reports whether Detach was called.
	IsDetached() bool
}

// A Flow says how an answer ends by itself.
type Flow uint8

const (
	// Whole is an answer that ends by itself. A shutdown waits for it.
	Whole Flow = iota
	// Events is a sequence of events. A shutdown ends it after any of them, as a complete answer, and the client comes
	// again.
	Events
	// Lasting goes on until one side ends it, such as a log that is followed. A shutdown breaks it
	// off.
	Lasting
)

// ReadAhead lets an answer be read from the backend before the client takes it.
type ReadAhead struct {
	// Share is the client's share of the memory: what it does not grant is read at the pace of the client.
	Share memory.Share
	// Done is called when the backend has been read to its end, by the goroutine that called SendStream.
	Done func()
}
