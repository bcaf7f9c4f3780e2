package storage

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/discovery"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/http1"
	"github.com/admission-gateway/gateway/internal/http1/upstream"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// Limits bound what is read and made for one request.
type Limits struct {
	// Refused returns the answer to a request that cannot have the memory that it takes, or not its turn.
	Refused func(memory.Refusal) error

	Sent   document.Limits // of a document that a client sends
	Stored document.Limits // of a document that a backend gives: what was sent, and what was added to it
	Body   int64           // bytes of a body
	// Upload is the largest body that no file describes, in bytes; 0 is no bound.
	Upload int64
	// Timeouts bound the requests to the backend; a zero one is the backend's own.
	Timeouts upstream.RequestTimeouts
}

// Completed returns how many bytes the defaults may make of an object that was stored without them.
func (l *Limits) Completed() int { return int(min(2*l.Body, 1<<31-1)) }

// List returns the limits of a list that is read whole.
func (l *Limits) List() document.Limits {
	limits := l.Sent
	limits.Bytes *= 2
	limits.Nodes *= 2
	return limits
}

// A Backend is the server of a storage.
type Backend struct {
	Name   string
	Client *upstream.Client
	// URL is the scheme, host and port of its first server.
	URL string
	// Patience is how long an answer may take, up to the end of its head.
	Patience time.Duration
	// Failed is told of an answer that cannot be used although its HTTP is good.
	Failed func(*upstream.Error)
	// Account is the gateway's own; nil if it has none by which it may read for clients.
	Account *Account
}

// A Request has a storage's view of a client's request: what it is about, and what it takes to ask the
// backend on the client's behalf. It belongs to one goroutine. Strings and bytes of the client's head
// live as long as the request.
type Request struct {
	Info     resource.Info
	Resource *resource.Resource // nil if no policy file describes it
	// Served is what the API server says of the resource; nil if it is not asked, or does not serve it.
	Served *discovery.Resource
	Head   *http1.Head // as the client sent it
	// From says in every request that is made for the client where it came from and who asks.
	From     http1.Forward
	Started  time.Time
	Body     []byte // of a write, in the client's own bytes or as the JSON made of them
	Patch    PatchType
	Response Response
	Warnings []string
	// Memory counts the request's part of the memory for all of them.
	Memory *memory.Reservation
	Limits *Limits
	// Editor completes the body of Response on its way; nil if there is nothing to do.
	Editor Editor

	// Exchanges are the requests to the backend so far.
	Exchanges Exchanges

	stored  http1.Response // the answer that the stored object is read from
	preview preview
	forward http1.Forward
	call    upstream.Request
	extra   [3]http1.Header
	buffers buffers
	lock    ObjectLock // held while no other writer may come between

	knowsStored bool // the gateway's own account has read what the write depends on
}

// A preview is the answer to a dry run, if there was one.
type preview struct {
	answer  http1.Response
	isKnown bool
}

// Exchanges are the requests to a backend that a client's request takes.
type Exchanges struct {
	// Took is how long the backend was asked in all, up to the heads of its answers.
	Took time.Duration
	// Tracer is told of each of them; nil if the request is not traced.
	Tracer Tracer
	// Watcher is told of the answers that clients may get; nil if nobody asks.
	Watcher Watcher
	// Sink takes what the client asks for in the backend's place; nil if it is sent.
	Sink Sink
}

// A Sink takes messages that are not sent, because the request is only explained. What the gateway
// itself asks for on the way, reads and dry runs, is sent.
type Sink interface {
	// Take is called with a message whose target and method are known. It must not keep the bytes.
	Take(m *Message)
}

// ErrNotSent says that the request is only explained, and that what it asks for was not sent.
var ErrNotSent = errors.New("the request is explained and goes no further")

// divert gives a message to the sink.
func divert(r *Request, m Message) error {
	if m.Method == nil {
		m.Method = r.Head.Method
	}
	if m.Target == nil {
		m.Target = r.Head.Target
	}
	if m.ContentType == nil {
		m.ContentType = r.Head.Value(http1.FieldContentType)
	}
	r.Exchanges.Sink.Take(&m)
	return ErrNotSent
}

// A Watcher looks at the backend's answers to what a client asks for, before anything is made of them. It may put another
// stream in the place of an answer's.
type Watcher interface {
	// Answered is called with the method of the request to the backend.
	Answered(method []byte, answer *http1.Response)
}

// A Tracer follows the exchanges with a backend, which come one after the other.
type Tracer interface {
	// Begin is called before the head of a request to the backend is made. It returns the header lines
	// by which the backend learns of the trace.
	Begin(method, target []byte) []byte
	// End is called with the code of the answer, or why there is none.
	End(b *Backend, code int, err error)
	// Locked is called with the time at which a lock of several gateways was asked for, and why it was not given.
	Locked(began time.Time, err error)
	// Unlocked is called with the time at which it was given back.
	Unlocked(began time.Time)
}

// buffers are memory that one request leaves to the next.
type buffers struct{ head, target, edited, version, etag []byte }

// An Editor changes the body of an answer while it streams to the client.
type Editor interface {
	// HasEvents reports whether the body is a sequence of events. Each leaves when it is complete.
	HasEvents() bool
	// IsHolding reports whether a part of an object is held until the rest comes.
	IsHolding() bool
	// Rest gives back memory of a large object, at a time when none is held.
	Rest()
	// Append edits the start of src, appends what comes of it to dst up to a length of about limit, and
	// returns how many bytes of src it used.
	Append(dst, src []byte, limit int) ([]byte, int, error)
	// Close ends the body.
	Close(dst []byte) ([]byte, error)
	// Failed returns the Status of a body that cannot be edited.
	Failed(err error) error
	// Release gives all memory back.
	Release()
}

// keptBytes is the size up to which a buffer is kept for the next request.
const keptBytes = 64 << 10

// Kept empties a buffer for the next request, or drops one that is too large to be kept.
func Kept(b []byte) []byte {
	if cap(b) > keptBytes {
		return nil
	}
	return b[:0]
}

// Reset forgets the request and keeps memory for the next.
func (r *Request) Reset() {
	if r.Editor != nil {
		r.Editor.Release()
	}
	r.ForgetQuestions()
	r.preview.isKnown, r.knowsStored = false, false
	r.Response.Reset(keptBytes)
	clear(r.Warnings)
	b := &r.buffers
	b.head, b.target, b.edited, b.version, b.etag = Kept(b.head), Kept(b.target), Kept(b.edited), Kept(b.version), Kept(b.etag)
	r.Served, r.Limits, r.Started = nil, nil, time.Time{}
	r.Info, r.Resource, r.Head, r.From, r.Body, r.Patch, r.Editor, r.Memory = resource.Info{}, nil, nil, http1.Forward{}, nil, NoPatch, nil, nil
	r.Exchanges = Exchanges{}
	r.Warnings, r.forward, r.call, r.extra = r.Warnings[:0], http1.Forward{}, upstream.Request{}, [3]http1.Header{}
}

// IsHead reports whether the answer has no body.
func (r *Request) IsHead() bool { return string(r.Head.Method) == http.MethodHead }

// IsRead reports whether the request changes nothing, so that it may be sent again.
func (r *Request) IsRead() bool { return r.Info.Verb.Reads() }

// Deadline returns when the client's own ?timeout= passes; zero for none, and for a watch, which ends by
// itself (ERR-4).
func (r *Request) Deadline() time.Time {
	if r.Info.Options.Timeout <= 0 || r.Info.Options.Watch {
		return time.Time{}
	}
	return r.Started.Add(r.Info.Options.Timeout)
}

// Warn adds a warning.
func (r *Request) Warn(text string) { r.Warnings = append(r.Warnings, text) }

// GroupKind returns the kind that messages name; the plural stands in for it if no policy file describes
// the resource.
func (r *Request) GroupKind() schema.GroupKind {
	if r.Resource != nil {
		return r.Resource.GroupKind()
	}
	return schema.GroupKind{Group: r.Info.Group, Kind: r.Info.Resource}
}

// Via is the name of the gateway in Via and User-Agent headers.
const Via = "admission-gateway"

var (
	// preconditions are the client's own.
	preconditions = http1.Fields(http1.FieldIfMatch, http1.FieldIfNoneMatch, http1.FieldIfModifiedSince, http1.FieldIfUnmodifiedSince)
	// aboutBody is everything in the client's head that is about the body it sent or expects.
	aboutBody = preconditions | http1.Fields(http1.FieldContentType, http1.FieldContentEncoding, http1.FieldAccept,
		http1.FieldAcceptEncoding, http1.FieldRange, http1.FieldIfRange, http1.FieldDigest)
	// aboutBytes are the client's wishes about the very bytes of an answer.
	aboutBytes = http1.Fields(http1.FieldAcceptEncoding, http1.FieldRange, http1.FieldIfRange)
)

var (
	methodGet = []byte(http.MethodGet)

	nameAccept         = []byte("Accept")
	nameAuthorization  = []byte("Authorization")
	nameAcceptEncoding = []byte("Accept-Encoding")
	nameContentType    = []byte("Content-Type")
	nameConnection     = []byte("Connection")
	nameUpgrade        = []byte("Upgrade")
	nameIfMatch        = []byte("If-Match")
	nameIfNoneMatch    = []byte("If-None-Match")
	valueJSON          = []byte(JSON)
	valueIdentity      = []byte("identity")
	valueAny           = []byte("*")
)

// A Message is one request to the backend that is made of the client's.
type Message struct {
	// Method and Target replace the client's if they are not nil.
	Method, Target []byte
	// Body is nil if the request has none.
	Body []byte
	// Upload is the body if it is sent while it comes; nil if it is Body.
	Upload http1.Upload
	// ContentType replaces the client's; nil leaves it.
	ContentType []byte
	// Precondition has to hold at the backend; the client's own preconditions stand if it is none.
	Precondition Precondition
	// IsEdited asks for an answer that is neither encoded nor a part: its bytes are going to be changed.
	IsEdited bool
	// Whole asks for the answer in one piece of at most so many bytes; 0 lets large ones stream.
	Whole int64
	// IsSafe says that the request changes nothing, so that it may be sent again.
	IsSafe bool
}

// A Precondition names the version that a backend has to find stored, or it refuses the write.
type Precondition struct {
	ETag     []byte // the version that has to be stored
	IsAbsent bool   // nothing may be stored
}

// Send sends a message and takes the answer into Response.
func (r *Request) Send(b *Backend, m *Message) error {
	if r.Exchanges.Sink != nil {
		return divert(r, *m)
	}
	f := r.forwarding(m)
	f.Extra = r.extra[:0]
	switch {
	case m.Precondition.ETag != nil:
		f.Skip |= preconditions
		f.Extra = append(f.Extra, http1.Header{Name: nameIfMatch, Value: m.Precondition.ETag})
	case m.Precondition.IsAbsent:
		f.Skip |= preconditions
		f.Extra = append(f.Extra, http1.Header{Name: nameIfNoneMatch, Value: valueAny})
	}
	if m.ContentType != nil {
		f.Skip |= http1.Fields(http1.FieldContentType)
		if len(m.ContentType) > 0 {
			f.Extra = append(f.Extra, http1.Header{Name: nameContentType, Value: m.ContentType})
		}
	}
	if m.IsEdited {
		f.Skip |= aboutBytes
		f.Extra = append(f.Extra, http1.Header{Name: nameAcceptEncoding, Value: valueIdentity})
	}
	makeHead(r, f)
	r.call = upstream.Request{
		Head: r.buffers.head, Body: m.Body, HeadOnly: r.IsHead(), Idempotent: m.IsSafe, Whole: m.Whole,
		Deadline: r.Deadline(),
	}
	if !m.IsSafe {
		if err := r.commit(m); err != nil {
			return err
		}
	}
	r.Response.edition = asItComes
	if m.IsEdited {
		r.Response.edition = plain
	}
	r.Memory.Rest()
	if err := r.do(b, b.Client, &r.Response.Response); err != nil {
		return err
	}
	if w := r.Exchanges.Watcher; w != nil {
		method := m.Method
		if method == nil {
			method = r.Head.Method
		}
		w.Answered(method, &r.Response.Response)
	}
	return nil
}

// Connect sends a request that may go on in another protocol, which the backend agrees to by a tunnel
// instead of an answer. Every other hop-by-hop line of the client ends here, as always.
func (r *Request) Connect(b *Backend, m *Message, protocol []byte) (*upstream.Tunnel, error) {
	if r.Exchanges.Sink != nil {
		return nil, divert(r, *m)
	}
	f := r.forwarding(m)
	f.Extra = r.extra[:0]
	if protocol != nil {
		f.Extra = append(f.Extra, http1.Header{Name: nameConnection, Value: nameUpgrade}, http1.Header{Name: nameUpgrade, Value: protocol})
	}
	makeHead(r, f)
	r.call = upstream.Request{
		Head: r.buffers.head, Body: m.Body, Upload: m.Upload, HeadOnly: r.IsHead(), Upgrade: protocol, Idempotent: m.IsSafe,
	}
	r.Memory.Rest()
	err := r.do(b, b.Client, &r.Response.Response)
	return r.call.Tunnel, err
}

// do makes the call by one of the clients of the backend.
func (r *Request) do(b *Backend, by *upstream.Client, answer *http1.Response) error {
	if r.Limits != nil {
		r.call.Timeouts = r.Limits.Timeouts
	}
	began := time.Now()
	err := by.Do(&r.call, answer)
	r.Exchanges.Took += time.Since(began)
	if r.Exchanges.Tracer != nil {
		r.Exchanges.Tracer.End(b, answer.Status(), err)
	}
	return err
}

// makeHead makes the head of a request to the backend.
func makeHead(r *Request, f *http1.Forward) {
	if r.Exchanges.Tracer != nil {
		method, target := f.Method, f.Target
		if method == nil {
			method = r.Head.Method
		}
		if target == nil {
			target = r.Head.Target
		}
		f.Trace = r.Exchanges.Tracer.Begin(method, target)
	}
	r.buffers.head = r.Head.AppendForward(r.buffers.head[:0], f)
}

// forwarding returns what a request to the backend is made of beside the client's header lines.
func (r *Request) forwarding(m *Message) *http1.Forward {
	f := &r.forward
	*f = r.From
	f.Via, f.Length, f.Method, f.Target = Via, -1, m.Method, m.Target
	switch {
	case m.Upload != nil && m.Upload.Length() < 0:
		f.IsChunked = true
	case m.Upload != nil:
		f.Length = m.Upload.Length()
	case m.Body != nil:
		f.Length = int64(len(m.Body))
	}
	if r.Head.Has(http1.FieldDigest) && !sendsOwn(r, m) {
		f.Skip |= http1.Fields(http1.FieldDigest) // nobody can tell who made the new bytes (RFC 9530)
	}
	return f
}

// sendsOwn reports whether the body of a message is the request's own, byte for byte.
func sendsOwn(r *Request, m *Message) bool {
	switch {
	case m.Upload != nil:
		return true
	case len(m.Body) == 0 && r.Head.HasBody():
		return false
	}
	return bytes.Equal(m.Body, r.Body)
}

// read asks the backend for something that the gateway itself has to know, whole and as JSON.
func (r *Request) read(b *Backend, target []byte, whole int64) (*http1.Response, error) {
	f := r.forwarding(&Message{Method: methodGet, Target: target})
	f.Skip |= aboutBody
	if whole == 0 {
		f.Extra = append(r.extra[:0], http1.Header{Name: nameAcceptEncoding, Value: valueIdentity})
	}
	makeHead(r, f)
	return r.readBy(b, b.Client, whole)
}

// ReadOwn reads what is stored at a target by the gateway's own account, or as the client if there is none. The rule is what
// the backend needs to let the account read it. An explanation shows what was read, so that it is read as the client too. The
// answer is valid until the next such read.
func (r *Request) ReadOwn(b *Backend, target []byte, rule status.AccessRule, l *Limits) (*http1.Response, error) {
	a := b.Account
	if a == nil {
		return r.ReadStored(b, target, l)
	}
	if r.IsExplained() {
		answer, err := r.ReadStored(b, target, l)
		if err == nil && (answer.Status() == http.StatusForbidden || answer.Status() == http.StatusUnauthorized) {
			return nil, ErrUnseen
		}
		return answer, err
	}
	lines := r.From.Trace
	if r.Exchanges.Tracer != nil {
		lines = r.Exchanges.Tracer.Begin(methodGet, target)
	}
	head, err := a.AppendHead(r.buffers.head[:0], target)
	if err != nil {
		if r.Exchanges.Tracer != nil {
			r.Exchanges.Tracer.End(b, 0, err)
		}
		return nil, noAccount()
	}
	r.buffers.head = append(r.appendNames(append(head, lines...)), "\r\n"...)
	answer, err := r.readBy(b, a.Client, 2*l.Body)
	if err != nil {
		var failed *upstream.Error
		r.knowsStored = r.knowsStored || errors.As(err, &failed) && failed.Kind == upstream.TooLarge
		return nil, err
	}
	a.Answered(answer.Status())
	switch answer.Status() {
	case http.StatusUnauthorized:
		return nil, noAccount()
	case http.StatusForbidden:
		reason := status.MessageOf(answer.Body())
		a.Lacks(rule, reason)
		return nil, status.AccountMayNot(r.Info.GroupResource(), r.Info.Name, &rule, b.Name, reason)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
	default:
		r.knowsStored = true
	}
	return answer, nil
}

// named are the fields of a client's head by which logs and traces name the request.
var named = [...]struct {
	field http1.Field
	name  string
}{{http1.FieldXRequestID, "X-Request-Id: "}, {http1.FieldTraceparent, "traceparent: "}, {http1.FieldTracestate, "tracestate: "}}

// appendNames appends the lines by which the client itself names its request, but for those that are not the backend's to see.
func (r *Request) appendNames(head []byte) []byte {
	for i := range named {
		one := &named[i]
		if value := r.Head.Value(one.field); len(value) > 0 && !r.From.Stripped.Has(one.field) {
			head = append(append(append(head, one.name...), value...), "\r\n"...)
		}
	}
	return head
}

// IsExplained reports whether nothing of the request is sent on but the gateway's own questions.
func (r *Request) IsExplained() bool { return r.Exchanges.Sink != nil }

// KnowsStored reports whether the gateway's own account has read for the request what the client may not be allowed to read.
func (r *Request) KnowsStored() bool { return r.knowsStored }

// readBy sends the head of a read that the gateway itself has made.
func (r *Request) readBy(b *Backend, by *upstream.Client, whole int64) (*http1.Response, error) {
	r.call = upstream.Request{Head: r.buffers.head, Idempotent: true, Whole: whole, Memory: r.Memory, Deadline: r.Deadline()}
	if err := r.ask(b, by, &r.stored); err != nil {
		return nil, err
	}
	if whole > 0 && !ReadPlain(r, &r.stored, whole) {
		return nil, status.BadGateway("the backend's answer to a read of the stored object must be encoded in a way that the gateway knows, or not at all")
	}
	return &r.stored, nil
}

// ask sends a question of the gateway's own. Other requests may work meanwhile.
func (r *Request) ask(b *Backend, by *upstream.Client, answer *http1.Response) error {
	if r.Memory.Refusal() != memory.None {
		return r.Exhausted()
	}
	r.forget(answer)
	r.Memory.Rest()
	if err := r.do(b, by, answer); err != nil {
		return err
	}
	if !r.Memory.Resume() {
		return r.Exhausted()
	}
	return nil
}

// forget empties the answer to a question.
func (r *Request) forget(answer *http1.Response) {
	if n := len(answer.Body()); n > upstream.SmallBody {
		r.Memory.Shrink(n)
	}
	answer.Reset(keptBytes)
}

// ForgetQuestions gives back the answers to the gateway's own questions.
func (r *Request) ForgetQuestions() {
	r.forget(&r.stored)
	r.forget(&r.preview.answer)
}

// commit is called before a write is sent. Nothing is sent of a request that was refused memory or its turn, whatever a
// step, or a policy within it, made of that. From then on the request has to be answered, so that memory for the answer
// is asked for here, as far as its size is known.
func (r *Request) commit(m *Message) error {
	if r.Memory.Refusal() != memory.None || m.Whole > 0 && !r.Memory.Grow(len(m.Body)) {
		return r.Exhausted()
	}
	if r.IsLocked() && !r.lock.IsValid() {
		return status.ServiceUnavailable("the write is not sent: the lock of its object was lost, and another gateway may be writing it", 1)
	}
	r.Memory.Commit()
	return nil
}

// Exhausted returns the answer to a request that cannot have the memory that it takes, or not its turn.
func (r *Request) Exhausted() error { return r.Limits.Refused(r.Memory.Refusal()) }

// HeavyText is from what length in bytes on texts are heavy to parse and to work with. One such text may have as many
// values as take a hundred times a usual object's time.
const HeavyText = 256 << 10

// Parse is the one way to parse the texts of a request: what that takes is asked for, and large texts wait for their turn.
func (r *Request) Parse(text []byte, limits document.Limits) (*document.Document, error) {
	if len(text) >= HeavyText && !r.Memory.Work() {
		return nil, r.Exhausted()
	}
	limits.Memory = r.Memory
	d, err := document.Parse(text, limits)
	if err != nil && r.Memory.Refusal() != memory.None {
		return nil, r.Exhausted()
	}
	return d, err
}

// ParseStored parses an object of the backend that a write depends on.
func (r *Request) ParseStored(body []byte) (*document.Document, error) {
	d, err := r.Parse(body, r.Limits.Stored)
	if err != nil {
		return nil, UnreadableStored()
	}
	if d.Root().Kind() != document.Object {
		d.Release()
		return nil, UnreadableStored()
	}
	return d, nil
}

// ReadStored reads what is stored at a target whole. The answer is valid until the next such read.
func (r *Request) ReadStored(b *Backend, target []byte, l *Limits) (*http1.Response, error) {
	return r.read(b, target, 2*l.Body)
}

// StoredBody returns the text of the stored object as it was read last.
func (r *Request) StoredBody() []byte { return r.stored.Body() }

// ReadStream reads a list that may be too large to be held. Its body has to be closed.
func (r *Request) ReadStream(b *Backend, target []byte) (*http1.Response, error) {
	return r.read(b, target, 0)
}

// DryRun asks the backend what the request would come to with a body, which is of the client's media type
// unless another one is given. The answer is valid until the next dry run.
func (r *Request) DryRun(b *Backend, body, contentType []byte, l *Limits) (*http1.Response, error) {
	return r.dryRun(b, r.dryRunTarget(), body, contentType, l)
}

// DryRunOf asks for the dry run of another target than the client's, and a JSON body that says that it is one.
func (r *Request) DryRunOf(b *Backend, target, body []byte, l *Limits) (*http1.Response, error) {
	return r.dryRun(b, target, body, valueJSON, l)
}

func (r *Request) dryRun(b *Backend, target, body, contentType []byte, l *Limits) (*http1.Response, error) {
	f := r.forwarding(&Message{Target: target, Body: body})
	f.Skip |= http1.Fields(http1.FieldAccept, http1.FieldAcceptEncoding)
	f.Extra = append(r.extra[:0], http1.Header{Name: nameAccept, Value: valueJSON}, http1.Header{Name: nameAcceptEncoding, Value: valueIdentity})
	if contentType != nil {
		f.Skip |= http1.Fields(http1.FieldContentType)
		f.Extra = append(f.Extra, http1.Header{Name: nameContentType, Value: contentType})
	}
	makeHead(r, f)
	r.call = upstream.Request{Head: r.buffers.head, Body: body, Idempotent: true, Whole: 2 * l.Body, Memory: r.Memory, Deadline: r.Deadline()}
	r.preview.isKnown = true
	return &r.preview.answer, r.ask(b, b.Client, &r.preview.answer)
}

// OwnHead returns the head of a GET that is made for the client and may outlive its request.
func (r *Request) OwnHead(target []byte) []byte {
	f := r.forwarding(&Message{Method: methodGet, Target: target})
	f.Skip |= aboutBody
	f.Extra = append(r.extra[:0], http1.Header{Name: nameAccept, Value: valueJSON}, http1.Header{Name: nameAcceptEncoding, Value: valueIdentity})
	return r.Head.AppendForward(nil, f)
}

// OwnPostHead returns the head of a POST of JSON that is made with the client's credentials and may outlive its request,
// without the length of a body. The authorization is the client's if it is not in its head.
func (r *Request) OwnPostHead(authorization []byte) []byte {
	f := r.forwarding(&Message{})
	f.Skip |= aboutBody | http1.Fields(http1.FieldAccept, http1.FieldAcceptEncoding)
	f.Extra = append(r.extra[:0], http1.Header{Name: nameAccept, Value: valueJSON}, http1.Header{Name: nameContentType, Value: valueJSON})
	if authorization != nil {
		f.Extra = append(f.Extra, http1.Header{Name: nameAuthorization, Value: authorization})
	}
	return r.Head.AppendForward(nil, f)
}

// PreviewStatus returns the status code of the answer to the last dry run; 0 if there was none.
func (r *Request) PreviewStatus() int {
	if !r.preview.isKnown {
		return 0
	}
	return r.preview.answer.Status()
}

// dryRunTarget returns the client's own target, as a dry run.
func (r *Request) dryRunTarget() []byte {
	target := append(r.buffers.target[:0], r.Head.Target...)
	switch {
	case r.Info.Options.DryRun:
	case strings.IndexByte(str(target), '?') < 0:
		target = append(target, "?dryRun=All"...)
	default:
		target = append(target, "&dryRun=All"...)
	}
	r.buffers.target = target
	return target
}

// SendPart sends one of several requests that a client's request becomes, and reads the answer whole.
func (r *Request) SendPart(b *Backend, target, body []byte, answer *http1.Response, l *Limits) error {
	if r.Exchanges.Sink != nil {
		return divert(r, Message{Target: target, Body: body, ContentType: valueJSON})
	}
	f := r.forwarding(&Message{Target: target, Body: body})
	f.Skip |= aboutBody
	f.Extra = append(r.extra[:0], http1.Header{Name: nameContentType, Value: valueJSON})
	makeHead(r, f)
	r.call = upstream.Request{Head: r.buffers.head, Body: body, Whole: l.Body, Deadline: r.Deadline()}
	r.Memory.Rest()
	return r.do(b, b.Client, answer)
}

// ItemTarget returns the target of the object itself, without subresource and query.
func (r *Request) ItemTarget(i *resource.Info) []byte {
	path := i.Path
	end := len(path)
	if i.Subresource != "" {
		end -= len(i.Subresource) + 1
	}
	if i.Subresource != "" && i.APIPrefix != "" {
		// A subresource such as proxy has a path of its own below it.
		segments := 4
		if i.APIPrefix == "apis" {
			segments++
		}
		if i.Namespace != "" && i.Resource != "namespaces" {
			segments += 2
		}
		end = 0
		for ; segments > 0; segments-- {
			end += 1 + strings.IndexByte(path[end+1:]+"/", '/')
		}
	}
	r.buffers.target = append(r.buffers.target[:0], path[:end]...)
	return r.buffers.target
}

// PathTarget returns the client's path as a target.
func (r *Request) PathTarget(i *resource.Info) []byte {
	r.buffers.target = append(r.buffers.target[:0], i.Path...)
	return r.buffers.target
}

// Target makes a target in the request's own memory.
func (r *Request) Target(build func(dst []byte) []byte) []byte {
	r.buffers.target = build(r.buffers.target[:0])
	return r.buffers.target
}

// KeepLock makes the request the holder of a lock.
func (r *Request) KeepLock(lock ObjectLock) { r.lock = lock }

// IsLocked reports whether the request holds a lock.
func (r *Request) IsLocked() bool { return r.lock.shard != nil }

// Unlock lets the next write in. It must come before the answer goes out.
func (r *Request) Unlock() {
	if r.lock.shard == nil {
		return
	}
	began := time.Now()
	r.lock.Release()
	if r.Exchanges.Tracer != nil && r.lock.shared != nil {
		r.Exchanges.Tracer.Unlocked(began)
	}
	r.lock = ObjectLock{}
}

// Conflict returns the answer to a write of another version than the stored one.
func (r *Request) Conflict(i *resource.Info) error {
	return status.Conflict(i.GroupResource(), i.Name, status.ModifiedMessage)
}

// Unplaced returns the Status of an object in which something stands where a field has to; nil for nil.
func (r *Request) Unplaced(i *resource.Info, misplaced *field.Error) error {
	if misplaced == nil {
		return nil
	}
	return r.Invalid(i.Name, field.ErrorList{misplaced}, 0)
}

// Invalid returns the Status of an object with failures. A name that an ordinary API has yet to give is left out. No field
// stands for the whole of an ordinary object.
func (r *Request) Invalid(name string, failures field.ErrorList, more int) *status.Error {
	if r.Resource != nil && r.Resource.Envelope == resource.Bare {
		failures = ofWhole(failures)
	}
	if name == "" && r.Resource != nil && r.Resource.Envelope == resource.Bare {
		return status.InvalidNameless(r.GroupKind(), failures, more)
	}
	return status.Invalid(r.GroupKind(), name, failures, more)
}

// ofWhole names no field in failures of the whole object.
func ofWhole(failures field.ErrorList) field.ErrorList {
	var whole *field.Path
	isWhole := func(f *field.Error) bool { return f.Field == whole.String() }
	if !slices.ContainsFunc(failures, isWhole) {
		return failures
	}
	failures = slices.Clone(failures)
	for i, f := range failures {
		if isWhole(f) {
			one := *f
			if one.Field = ""; one.BadValue == nil {
				one.BadValue = field.OmitValueType{}
			}
			failures[i] = &one
		}
	}
	return failures
}

// BackendError returns the Status of an error that the backend answered with.
func (r *Request) BackendError(i *resource.Info, m *http1.Response) error {
	var body []byte
	if len(m.Header(headerContentEncoding)) == 0 {
		body = m.Body()
	}
	if m.Status() < 400 {
		return status.BadGateway("the backend answered a read of the stored object with a code that the gateway cannot use")
	}
	return &BackendError{refusal: status.FromBackend(status.BackendAnswer{
		Code:        m.Status(),
		ContentType: string(m.Header(headerContentType)),
		RetryAfter:  string(m.Header(headerRetryAfter)),
		Body:        body,
		Resource:    i.GroupResource(),
		Name:        i.Name,
		Verb:        i.Verb.String(),
	}), kept: keptHeaders(m)}
}

// IsDone reports whether a backend says of a write that it was done, or will be.
func IsDone(code int) bool { return code >= 200 && code < 300 }

// str is the string of bytes that live as long as the request.
func str(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Previewed returns the body of the answer to the last dry run.
func (r *Request) Previewed() []byte { return r.preview.answer.Body() }

// PreviewWarnings adds what the backend warned of in the dry run. A client whose object is denied is told
// so; any other client is warned by the backend itself.
func (r *Request) PreviewWarnings() {
	r.Warnings = append(r.Warnings, warningsOf(&r.preview.answer)...)
}

// LostWarnings adds what the backend warned of in the dry run and does not say again of what was sent in its place: a
// field that the server does not know, say, is in the client's patch alone.
func (r *Request) LostWarnings() {
	said := warningsOf(&r.Response.Response)
	for _, text := range warningsOf(&r.preview.answer) {
		if !slices.Contains(said, text) {
			r.Warn(text)
		}
	}
}

// warningsOf returns the texts of an answer's Warning headers.
func warningsOf(m *http1.Response) []string {
	parsed, _ := utilnet.ParseWarningHeaders(m.Headers(headerWarning))
	texts := make([]string, len(parsed))
	for i, w := range parsed {
		texts[i] = w.Text
	}
	return texts
}
