package storage

import (
	"bytes"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/presence"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// Exchanges make the requests to a backend that a client's request takes. They have what of the client's
// request goes into them, its head and body, and the answer that goes back. Strings and bytes of the head
// live as long as the request.
type Exchanges struct {
	Started time.Time     // when the client's request was read
	Head    *message.Head // as the client sent it
	// From adds the client's address and user to every request that is made for it.
	From message.Forward
	// Client is who waits for the answer; nil if nobody can leave.
	Client   *presence.Client
	Body     []byte // of a write, in the client's own bytes or as the JSON made of them
	Response Response
	Warnings []string
	// Memory counts the request's part of the memory for all of them.
	Memory *memory.Reservation
	Limits *Limits

	// Took is how long the backend was asked in all, up to the heads of its answers.
	Took time.Duration
	// Tracer is called for each of them; nil if the request is not traced.
	Tracer Tracer
	// Watcher is called with the answers that clients may get; nil if not needed.
	Watcher Watcher
	// Sink takes what the client asks for in the backend's place; nil if it is sent.
	Sink Sink
	// Copier is called with what the client asks for when it is sent; nil if not needed.
	Copier Copier

	deadline    time.Time // when the client's own ?timeout= passes; zero for none
	bound       time.Time // when the time passes that the route gives; zero for none
	callBy      time.Time // when the deadline of a call of gRPC passes; zero for none
	isDryRun    bool      // the client's target asks for a dry run
	knowsStored bool      // the gateway's own account has read what the write depends on
	isPreviewed bool      // there was a dry run
	isUnknown   bool      // the client has left, and the write may have been carried out

	try  try        // the exchange that is made now
	lock ObjectLock // held while no other writer may come between
	// unended is closed when the exchange of a late write has ended; nil if there is none.
	unended <-chan struct{}
	kept    *kept // nil before the first exchange
}

// A try is one exchange with a backend, which may take several attempts.
type try struct {
	forward message.Forward   // of which its head is made
	extra   [3]message.Header // lines of it
	call    upstream.Request
	method  []byte // of it
	nature  Nature // of what the client asks for by it
}

// kept is memory that one request leaves to the next.
type kept struct {
	stored  message.Response // the answer that the stored object is read from
	preview message.Response // the answer to a dry run

	head, target, edited []byte

	before *LastStored // that the object of this request was read from
	spare  *LastStored // for what the next write leaves
}

// memory returns memory that may have been left by another request.
func (e *Exchanges) memory() *kept {
	if e.kept == nil {
		e.kept = new(kept)
	}
	return e.kept
}

// forget empties the memory for the next request.
func (k *kept) forget() {
	k.head, k.target = Kept(k.head), Kept(k.target)
	if keptBytes < cap(k.edited) && cap(k.edited) <= sharedBytes {
		large := k.edited // a variable outside would be allocated for each request
		largeBuffers.Put(&large)
	}
	k.edited = Kept(k.edited)
	if k.before != nil {
		k.before, k.spare = nil, k.before
	}
}

// room makes edited large enough for n bytes, and empties it. A large one may have been another
// request's: if each large object took new memory, most of what it costs would be its collection.
func (k *kept) room(n int) {
	if k.edited = k.edited[:0]; n <= cap(k.edited) || n <= keptBytes {
		return
	}
	if large, ok := largeBuffers.Get().(*[]byte); ok && n <= cap(*large) {
		k.edited = (*large)[:0]
		return
	}
	k.edited = make([]byte, 0, n+n/8) // for the next one, which may be a little larger
}

// sharedBytes is the size up to which any request may use a buffer, until the garbage collector takes it.
const sharedBytes = 4 << 20

// largeBuffers are of more than keptBytes.
var largeBuffers sync.Pool // of *[]byte

// A Sink takes messages that are not sent, because the request is only explained. What the gateway
// itself asks for on the way, reads and dry runs, is sent.
type Sink interface {
	// Take is called with a message that has its target and method. It must not keep the bytes.
	Take(m *Message)
}

// A Copier copies requests for other backends.
type Copier interface {
	// Copy is called with a message that has its target and method. It must not keep the bytes.
	Copy(m *Message)
}

// copyFor gives a message to the copier.
func copyFor(e *Exchanges, m *Message) {
	if e.Copier == nil {
		return
	}
	whole := *m
	whole.complete(e)
	e.Copier.Copy(&whole)
}

// complete sets what a message has of the client's request.
func (m *Message) complete(e *Exchanges) {
	if m.Method == nil {
		m.Method = e.Head.Method
	}
	if m.Target == nil {
		m.Target = e.Head.Target
	}
	if m.ContentType == nil {
		m.ContentType = e.Head.Value(message.FieldContentType)
	}
}

// ErrNotSent reports that the request is only explained, and was not sent.
var ErrNotSent = errors.New("the request is explained and goes no further")

// divert gives a message to the sink.
func divert(e *Exchanges, m Message) error {
	m.complete(e)
	e.Sink.Take(&m)
	return ErrNotSent
}

// A Watcher sees the backend's answers to a client's request, before they are edited. It may put
// another stream in the place of an answer's.
type Watcher interface {
	// Answered is called with the method of the request to the backend.
	Answered(method []byte, answer *message.Response)
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

// A Message is one request to the backend that is made of the client's.
type Message struct {
	// Method and Target replace the client's if they are not nil.
	Method, Target []byte
	// Body is nil if the request has none.
	Body []byte
	// Upload is the body if it is sent while it comes; nil if it is Body.
	Upload message.Upload
	// ContentType replaces the client's; nil leaves it.
	ContentType []byte
	// Precondition has to hold at the backend; if it is zero, the client's own preconditions stay.
	Precondition Precondition
	// IsEdited asks for an answer that is neither encoded nor a part: its bytes are going to be changed.
	IsEdited bool
	// Whole asks for the answer in one piece of at most so many bytes; 0 lets large ones stream.
	Whole int64
	// IsSafe says that the request changes nothing, so that it may be sent again.
	IsSafe bool
	// MustEnd says that the lock of the object is kept until the backend can no longer carry the request out: it
	// compares no version, so that a late write would undo the ones that came since.
	MustEnd bool
	// IsWatch says that the answer is a watch of an API server.
	IsWatch bool
}

// A Precondition names the version that a backend has to find stored, or it refuses the write.
type Precondition struct {
	ETag     []byte // the version that has to be stored
	IsAbsent bool   // nothing may be stored
	// IsCompared says that the client's own preconditions were compared, so that the backend does not get them.
	IsCompared bool
}

// IsHead reports whether the answer has no body.
func (e *Exchanges) IsHead() bool { return string(e.Head.Method) == http.MethodHead }

// IsDryRun reports whether the client's target asks for a dry run, whatever the options in a body say.
func (e *Exchanges) IsDryRun() bool { return e.isDryRun }

// Deadline returns when the client's own ?timeout= passes; zero for none, and for a watch, which ends by
// itself (ERR-4).
func (e *Exchanges) Deadline() time.Time { return e.deadline }

// Warn adds a warning.
func (e *Exchanges) Warn(text string) { e.Warnings = append(e.Warnings, text) }

// Via is the name of the gateway in Via and User-Agent headers.
const Via = "admission-gateway"

var (
	// preconditions are the client's own.
	preconditions = message.Fields(message.FieldIfMatch, message.FieldIfNoneMatch, message.FieldIfModifiedSince,
		message.FieldIfUnmodifiedSince)
	// aboutBody are the fields of the client's head that describe the body it sent or expects.
	aboutBody = preconditions | message.Fields(message.FieldContentType, message.FieldContentEncoding,
		message.FieldAccept,
		message.FieldAcceptEncoding, message.FieldRange, message.FieldIfRange, message.FieldDigest)
	// aboutBytes are the client's wishes about the very bytes of an answer.
	aboutBytes = message.Fields(message.FieldAcceptEncoding, message.FieldRange, message.FieldIfRange)
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

// Send sends a message and takes the answer into Response.
func (e *Exchanges) Send(b *Backend, m *Message) error {
	if e.Sink != nil {
		return divert(e, *m)
	}
	f := e.forwarding(m)
	f.Extra = e.try.extra[:0]
	switch {
	case m.Precondition.ETag != nil:
		f.Skip |= preconditions
		f.Extra = append(f.Extra, message.Header{Name: nameIfMatch, Value: m.Precondition.ETag})
	case m.Precondition.IsAbsent:
		f.Skip |= preconditions
		f.Extra = append(f.Extra, message.Header{Name: nameIfNoneMatch, Value: valueAny})
	case m.Precondition.IsCompared:
		f.Skip |= preconditions
	}
	if m.ContentType != nil {
		f.Skip |= message.Fields(message.FieldContentType)
		if len(m.ContentType) > 0 {
			f.Extra = append(f.Extra, message.Header{Name: nameContentType, Value: m.ContentType})
		}
	}
	if m.IsEdited {
		f.Skip |= aboutBytes
		f.Extra = append(f.Extra, message.Header{Name: nameAcceptEncoding, Value: valueIdentity})
	}
	makeHead(e, f)
	e.try.call = upstream.Request{
		Head: e.memory().head, Body: m.Body, HeadOnly: e.IsHead() && m.Method == nil, Idempotent: m.IsSafe,
		Whole:    m.Whole,
		Deadline: e.Deadline(), RunsOn: m.MustEnd, Outlives: e.outlives(m), IsWatch: m.IsWatch,
	}
	e.try.nature = Safe
	if !m.IsSafe {
		e.try.nature = Once
		if err := e.commit(m); err != nil {
			return err
		}
	}
	copyFor(e, m)
	e.Response.edition = asItComes
	if m.IsEdited {
		e.Response.edition = plain
	}
	e.Memory.Rest()
	if err := e.do(b, b.Client, &e.Response.Response); err != nil {
		if m.MustEnd {
			e.noteLate(err)
		}
		return err
	}
	if w := e.Watcher; w != nil {
		method := m.Method
		if method == nil {
			method = e.Head.Method
		}
		w.Answered(method, &e.Response.Response)
	}
	return nil
}

// Connect sends a request that may go on in another protocol, which the backend agrees to by a tunnel
// instead of an answer. Every other hop-by-hop line of the client ends here, as always.
func (e *Exchanges) Connect(b *Backend, m *Message, protocol []byte) (*upstream.Tunnel, error) {
	if e.Sink != nil {
		return nil, divert(e, *m)
	}
	f := e.forwarding(m)
	f.Extra = e.try.extra[:0]
	if protocol != nil {
		f.Extra = append(f.Extra, message.Header{Name: nameConnection, Value: nameUpgrade},
			message.Header{Name: nameUpgrade, Value: protocol})
	}
	if !e.Memory.MaySend() {
		return nil, e.Exhausted() // what policies have judged may not be whole
	}
	f.SendsTrailers = m.Upload != nil && b.Client.MaySendTrailers()
	makeHead(e, f)
	e.try.call = upstream.Request{
		Head: e.memory().head, Body: m.Body, Upload: m.Upload, HeadOnly: e.IsHead(), Upgrade: protocol,
		Idempotent: m.IsSafe,
		IsCall:     e.IsLastingCall(), Outlives: m.Upload == nil && protocol == nil && e.outlives(m),
	}
	e.callBy = e.deadlineOfCall()
	if protocol == nil {
		copyFor(e, m)
	}
	if e.try.nature = Safe; !m.IsSafe {
		e.try.nature = natureOf(e.try.method, e.Head)
	}
	e.Memory.Rest()
	err := e.do(b, b.Client, &e.Response.Response)
	if u, is := errors.AsType[*UnknownOutcome](err); is && u.Err != nil { // which no read resolves
		err = e.withoutAdvice(u.Err)
	} else if is {
		err = u.Unresolved()
	}
	return e.try.call.Tunnel, err
}

// outlives reports whether a message that was sent is carried out to its end when the client leaves.
func (e *Exchanges) outlives(m *Message) bool {
	return !m.IsSafe && e.Limits != nil && e.Limits.ContinuesWrites
}

// IsUnknown reports whether the client has left while the backend was carrying out a write, of which nothing more is
// known.
func (e *Exchanges) IsUnknown() bool { return e.isUnknown }

// noteAbandoned notes how the call ended if it was abandoned.
func (e *Exchanges) noteAbandoned(err error) {
	failure, is := errors.AsType[*upstream.Error](err)
	if !is || failure.Kind != upstream.Abandoned || !failure.Sent || e.try.call.Idempotent {
		return
	}
	switch str(e.try.method) {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		e.isUnknown = true
	}
}

// SendPart sends one of several requests that a client's request becomes, and reads the answer whole.
func (e *Exchanges) SendPart(b *Backend, target, body []byte, answer *message.Response, l *Limits) error {
	if e.Sink != nil {
		return divert(e, Message{Target: target, Body: body, ContentType: valueJSON})
	}
	if !e.Memory.MaySend() {
		return e.Exhausted() // what policies have judged, or the body, may not be whole
	}
	f := e.forwarding(&Message{Target: target, Body: body})
	f.Skip |= aboutBody
	f.Extra = append(e.try.extra[:0], message.Header{Name: nameContentType, Value: valueJSON})
	makeHead(e, f)
	e.try.call = upstream.Request{Head: e.memory().head, Body: body, Whole: l.Body, Deadline: e.Deadline(),
		Outlives: e.outlives(&Message{})}
	e.try.nature = Once
	e.Memory.Rest()
	return e.do(b, b.Client, answer)
}

// makeHead makes the head of a request to the backend.
func makeHead(e *Exchanges, f *message.Forward) {
	if e.try.method = f.Method; e.try.method == nil {
		e.try.method = e.Head.Method
	}
	if e.Tracer != nil {
		target := f.Target
		if target == nil {
			target = e.Head.Target
		}
		f.Trace = e.Tracer.Begin(e.try.method, target)
	}
	e.memory().head = e.Head.AppendForward(e.memory().head[:0], f)
}

// forwarding returns what a request to the backend is made of beside the client's header lines.
func (e *Exchanges) forwarding(m *Message) *message.Forward {
	f := &e.try.forward
	*f = e.From
	f.Via, f.Length, f.Method, f.Target = Via, -1, m.Method, m.Target
	switch {
	case m.Upload != nil && m.Upload.Length() < 0:
		f.IsChunked = true
	case m.Upload != nil:
		f.Length = m.Upload.Length()
	case m.Body != nil:
		f.Length = int64(len(m.Body))
	}
	if e.Head.Has(message.FieldDigest) && !sendsOwn(e, m) {
		f.Skip |= message.Fields(message.FieldDigest) // a digest cannot say who made the new bytes (RFC 9530)
	}
	return f
}

// sendsOwn reports whether the body of a message is the request's own, byte for byte.
func sendsOwn(e *Exchanges, m *Message) bool {
	switch {
	case m.Upload != nil:
		return true
	case len(m.Body) == 0 && e.Head.HasBody():
		return false
	}
	return bytes.Equal(m.Body, e.Body)
}

// commit is called before a write is sent. Nothing is sent of a request that was refused memory or its turn, whatever a
// step, or a policy within it, made of that. From then on the request has to be answered, so that memory for the answer
// is asked for here, as far as its size is known.
func (e *Exchanges) commit(m *Message) error {
	if e.Client.HasLeft() {
		return presence.ErrLeft
	}
	if !e.Memory.MaySend() || m.Whole > 0 && !e.Memory.Grow(len(m.Body)) {
		return e.Exhausted()
	}
	if e.IsLocked() && !e.lock.IsValid() {
		return status.ServiceUnavailable("the write is not sent: the lock of its object was lost, and another gateway may be writing it", 1)
	}
	e.Memory.Commit()
	return nil
}

// Exhausted returns the answer to a request that cannot have the memory that it takes, or not its turn.
func (e *Exchanges) Exhausted() error { return e.Limits.Refused(e.Memory.Refusal()) }

// HeavyText is from what length in bytes on texts are heavy to parse and to work with. One such text may have as many
// values as take a hundred times a usual object's time.
const HeavyText = 256 << 10

// Parse is the one way to parse the texts of a request: what that takes is asked for, and large texts wait for their
// turn.
func (e *Exchanges) Parse(text []byte, limits document.Limits) (*document.Document, error) {
	if len(text) >= HeavyText && !e.Memory.Work() {
		return nil, e.Exhausted()
	}
	limits.Memory = e.Memory
	d, err := document.Parse(text, limits)
	if err != nil && e.Memory.Refusal() != memory.None {
		return nil, e.Exhausted()
	}
	return d, err
}

// ItemTarget returns the target of the object itself, without subresource and query.
func (e *Exchanges) ItemTarget(i *resource.Info) []byte {
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
		if i.HasNamespaceSegments() {
			segments += 2
		}
		end = 0
		for ; segments > 0; segments-- {
			end += 1 + strings.IndexByte(path[end+1:]+"/", '/')
		}
	}
	e.memory().target = append(e.memory().target[:0], path[:end]...)
	return e.memory().target
}

// PathTarget returns the client's path as a target.
func (e *Exchanges) PathTarget(i *resource.Info) []byte {
	e.memory().target = append(e.memory().target[:0], i.Path...)
	return e.memory().target
}

// Target makes a target in the request's own memory.
func (e *Exchanges) Target(build func(dst []byte) []byte) []byte {
	e.memory().target = build(e.memory().target[:0])
	return e.memory().target
}

// KeepLock makes the request the holder of a lock.
func (e *Exchanges) KeepLock(lock ObjectLock) { e.lock = lock }

// HoldsLock reports whether the request holds a lock, and no other gateway can have it.
func (e *Exchanges) HoldsLock() bool { return e.IsLocked() && e.lock.IsValid() }

// IsLocked reports whether the request holds a lock.
func (e *Exchanges) IsLocked() bool { return e.lock.shard != nil }

// Unlock lets the next write in, or, after a write that may still be carried out, lets it in when that has ended. It
// must come before the answer goes out.
func (e *Exchanges) Unlock() {
	if e.lock.shard == nil {
		return
	}
	lock, unended := e.lock, e.unended
	e.lock, e.unended = ObjectLock{}, nil
	if unended != nil && lock.keepUntil(unended) {
		return
	}
	began := time.Now()
	isPassedOn := lock.Release()
	if e.Tracer != nil && lock.shared != nil {
		e.Tracer.Unlocked(began)
	}
	if isPassedOn {
		runtime.Gosched() // the next write leaves first: the backend works while this one is answered
	}
}

// noteLate notes that a write, which failed, may still be carried out.
func (e *Exchanges) noteLate(err error) {
	failure, is := errors.AsType[*upstream.Error](err)
	if !is || failure.Kind != upstream.TooSlow || !failure.Sent || !e.IsLocked() {
		return
	}
	if e.unended = failure.Ended; e.unended == nil {
		e.unended = unwatched
	}
}

// unwatched stands for the end of an exchange that is not watched.
var unwatched = make(<-chan struct{})

// IsDone reports whether a backend says that a write was done, or will be.
func IsDone(code int) bool { return code >= 200 && code < 300 }

// str is the string of bytes that live as long as the request.
func str(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// forget empties the answer to a question.
func (e *Exchanges) forget(answer *message.Response) {
	if n := len(answer.Body()); n > upstream.SmallBody {
		e.Memory.Shrink(n)
	}
	answer.Reset(keptBytes)
}

// ForgetQuestions gives back the answers to the gateway's own questions.
func (e *Exchanges) ForgetQuestions() {
	if k := e.kept; k != nil {
		e.forget(&k.stored)
		e.forget(&k.preview)
	}
}
