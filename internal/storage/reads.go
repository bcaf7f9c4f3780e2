package storage

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// ReadStored reads what is stored at a target whole. The answer is valid until the next such read.
func (e *Exchanges) ReadStored(b *Backend, target []byte, l *Limits) (*message.Response, error) {
	return e.read(b, target, 2*l.Body)
}

// StoredBody returns the text of the stored object as it was read last.
func (e *Exchanges) StoredBody() []byte { return e.memory().stored.Body() }

// readAfterWriteWithin bounds the read that finds out whether a write was carried out. Its client has waited for long.
const readAfterWriteWithin = 5 * time.Second

// ReadAfterWrite reads what is stored at a target, after a write whose outcome is unknown. Unlike ReadStored it
// leaves alone what was read before the write.
func (e *Exchanges) ReadAfterWrite(b *Backend, target []byte, l *Limits) (*message.Response, error) {
	by := time.Now().Add(readAfterWriteWithin)
	if deadline := e.Deadline(); !deadline.IsZero() && deadline.Before(by) {
		by = deadline
	}
	answer := new(message.Response)
	e.askAsClient(target, 2*l.Body)
	e.try.call.Deadline = by
	if err := e.ask(b, b.Client, answer); err != nil {
		return nil, err
	}
	if !ReadPlain(e, answer, 2*l.Body) {
		return nil, UnreadableStored()
	}
	return answer, nil
}

// ReadStream reads a list that may be too large to be held. Its body has to be closed.
func (e *Exchanges) ReadStream(b *Backend, target []byte) (*message.Response, error) {
	return e.read(b, target, 0)
}

// ParseStored parses an object of the backend that a write depends on.
func (e *Exchanges) ParseStored(body []byte) (*document.Document, error) {
	d, err := e.Parse(body, e.Limits.Stored)
	if err != nil {
		return nil, UnreadableStored()
	}
	if d.Root().Kind() != document.Object {
		d.Release()
		return nil, UnreadableStored()
	}
	return d, nil
}

// read asks the backend for something that the gateway itself has to know, whole and as JSON.
func (e *Exchanges) read(b *Backend, target []byte, whole int64) (*message.Response, error) {
	e.askAsClient(target, whole)
	return e.answerStored(b, b.Client, whole)
}

// askAsClient makes the call of a read with the client's credentials.
func (e *Exchanges) askAsClient(target []byte, whole int64) {
	f := e.forwarding(&Message{Method: methodGet, Target: target})
	f.Skip |= aboutBody
	if whole == 0 {
		f.Extra = append(e.try.extra[:0], message.Header{Name: nameAcceptEncoding, Value: valueIdentity})
	}
	makeHead(e, f)
	e.callToRead(whole)
}

// callToRead makes the call of a read whose head is made.
func (e *Exchanges) callToRead(whole int64) {
	e.try.call = upstream.Request{Head: e.memory().head, Idempotent: true, Whole: whole, Memory: e.Memory,
		Deadline: e.Deadline()}
}

// ReadOwn reads what is stored at a target by the gateway's own account, or as the client if there is none. The rule
// is what the backend needs to let the account read it for the subject. An explanation shows what was read, so that
// it is read as the client too. The answer is valid until the next such read.
func (e *Exchanges) ReadOwn(b *Backend, target []byte, rule status.AccessRule, of *Subject,
	l *Limits) (*message.Response, error) {
	a := b.Account
	if a == nil {
		return e.ReadStored(b, target, l)
	}
	if e.IsExplained() {
		answer, err := e.ReadStored(b, target, l)
		if err == nil && (answer.Status() == http.StatusForbidden || answer.Status() == http.StatusUnauthorized) {
			return nil, ErrUnseen
		}
		return answer, err
	}
	lines := e.From.Trace
	if e.Tracer != nil {
		lines = e.Tracer.Begin(methodGet, target)
	}
	head, err := a.AppendHead(e.memory().head[:0], target)
	if err != nil {
		if e.Tracer != nil {
			e.Tracer.End(b, 0, err)
		}
		return nil, noAccount()
	}
	e.memory().head = append(e.appendNames(append(head, lines...)), "\r\n"...)
	e.callToRead(2 * l.Body)
	answer, err := e.answerStored(b, a.Client, 2*l.Body)
	if err != nil {
		var failed *upstream.Error
		e.knowsStored = e.knowsStored || errors.As(err, &failed) && failed.Kind == upstream.TooLarge
		return nil, err
	}
	a.Answered(answer.Status())
	switch answer.Status() {
	case http.StatusUnauthorized:
		return nil, noAccount()
	case http.StatusForbidden:
		reason := status.MessageOf(answer.Body())
		a.Lacks(rule, reason)
		return nil, status.AccountMayNot(of.Info.GroupResource(), of.Info.Name, &rule, b.Name, reason)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
	default:
		e.knowsStored = true
	}
	return answer, nil
}

// named are the fields of a client's head by which logs and traces name the request.
var named = [...]struct {
	field message.Field
	name  string
}{{message.FieldXRequestID, "X-Request-Id: "}, {message.FieldTraceparent, "traceparent: "},
	{message.FieldTracestate, "tracestate: "}}

// appendNames appends the lines by which the client itself names its request, but for those that are not the
// backend's to see.
func (e *Exchanges) appendNames(head []byte) []byte {
	for i := range named {
		one := &named[i]
		if value := e.Head.Value(one.field); len(value) > 0 && !e.From.Stripped.Has(one.field) {
			head = append(append(append(head, one.name...), value...), "\r\n"...)
		}
	}
	return head
}

// IsExplained reports whether nothing of the request is sent on but the gateway's own questions.
func (e *Exchanges) IsExplained() bool { return e.Sink != nil }

// KnowsStored reports whether the gateway's own account has read for the request what the client may not be allowed
// to read.
func (e *Exchanges) KnowsStored() bool { return e.knowsStored }

// answerStored makes the call of a read of what is stored.
func (e *Exchanges) answerStored(b *Backend, by *upstream.Client, whole int64) (*message.Response, error) {
	if err := e.ask(b, by, &e.memory().stored); err != nil {
		return nil, err
	}
	if whole > 0 && !ReadPlain(e, &e.memory().stored, whole) {
		return nil, status.BadGateway("the backend's answer to a read of the stored object must be encoded in a way that the gateway knows, or not at all")
	}
	return &e.memory().stored, nil
}

// ask sends a question of the gateway's own. Other requests may work meanwhile.
func (e *Exchanges) ask(b *Backend, by *upstream.Client, answer *message.Response) error {
	if !e.Memory.MaySend() {
		return e.Exhausted()
	}
	e.forget(answer)
	e.try.nature = Safe
	e.Memory.Rest()
	if err := e.do(b, by, answer); err != nil {
		return err
	}
	if !e.Memory.Resume() {
		return e.Exhausted()
	}
	return nil
}

// DryRun asks the backend for the result that the request would have with a body, which is of the
// client's media type unless another one is given. The answer is valid until the next dry run.
func (e *Exchanges) DryRun(b *Backend, body, contentType []byte, l *Limits) (*message.Response, error) {
	return e.dryRun(b, e.dryRunTarget(), body, contentType, l)
}

// DryRunOf asks for the dry run of another target than the client's, and a JSON body that says that it is one.
func (e *Exchanges) DryRunOf(b *Backend, target, body []byte, l *Limits) (*message.Response, error) {
	return e.dryRun(b, target, body, valueJSON, l)
}

func (e *Exchanges) dryRun(b *Backend, target, body, contentType []byte, l *Limits) (*message.Response, error) {
	f := e.forwarding(&Message{Target: target, Body: body})
	f.Skip |= message.Fields(message.FieldAccept, message.FieldAcceptEncoding)
	f.Extra = append(e.try.extra[:0], message.Header{Name: nameAccept, Value: valueJSON},
		message.Header{Name: nameAcceptEncoding, Value: valueIdentity})
	if contentType != nil {
		f.Skip |= message.Fields(message.FieldContentType)
		f.Extra = append(f.Extra, message.Header{Name: nameContentType, Value: contentType})
	}
	makeHead(e, f)
	e.try.call = upstream.Request{Head: e.memory().head, Body: body, Idempotent: true, Whole: 2 * l.Body,
		Memory: e.Memory, Deadline: e.Deadline()}
	e.isPreviewed = true
	return &e.memory().preview, e.ask(b, b.Client, &e.memory().preview)
}

// dryRunTarget returns the client's own target, as a dry run.
func (e *Exchanges) dryRunTarget() []byte {
	target := append(e.memory().target[:0], e.Head.Target...)
	switch {
	case e.isDryRun:
	case strings.IndexByte(str(target), '?') < 0:
		target = append(target, "?dryRun=All"...)
	default:
		target = append(target, "&dryRun=All"...)
	}
	e.memory().target = target
	return target
}

// PreviewStatus returns the status code of the answer to the last dry run; 0 if there was none.
func (e *Exchanges) PreviewStatus() int {
	if !e.isPreviewed {
		return 0
	}
	return e.memory().preview.Status()
}

// Previewed returns the body of the answer to the last dry run.
func (e *Exchanges) Previewed() []byte { return e.memory().preview.Body() }

// PreviewWarnings adds what the backend warned of in the dry run. A client whose object is denied
// gets the warning with the denial; any other client is warned by the backend itself.
func (e *Exchanges) PreviewWarnings() {
	e.Warnings = append(e.Warnings, warningsOf(&e.memory().preview)...)
}

// LostWarnings adds what the backend warned of in the dry run and does not say again of what was sent in its place: a
// field that the server does not know, say, is in the client's patch alone.
func (e *Exchanges) LostWarnings() {
	said := warningsOf(&e.Response.Response)
	for _, text := range warningsOf(&e.memory().preview) {
		if !slices.Contains(said, text) {
			e.Warn(text)
		}
	}
}

// warningsOf returns the texts of an answer's Warning headers.
func warningsOf(m *message.Response) []string {
	parsed, _ := utilnet.ParseWarningHeaders(m.Headers(headerWarning))
	texts := make([]string, len(parsed))
	for i, w := range parsed {
		texts[i] = w.Text
	}
	return texts
}

// OwnHead returns the head of a GET that is made for the client and may outlive its request.
func (e *Exchanges) OwnHead(target []byte) []byte {
	f := e.forwarding(&Message{Method: methodGet, Target: target})
	f.Skip |= aboutBody
	f.Extra = append(e.try.extra[:0], message.Header{Name: nameAccept, Value: valueJSON},
		message.Header{Name: nameAcceptEncoding, Value: valueIdentity})
	return e.Head.AppendForward(nil, f)
}

// OwnPostHead returns the head of a POST of JSON that is made with the client's credentials and may outlive its
// request, without the length of a body. The authorization is the client's if it is not in its head.
func (e *Exchanges) OwnPostHead(authorization []byte) []byte {
	f := e.forwarding(&Message{})
	f.Skip |= aboutBody | message.Fields(message.FieldAccept, message.FieldAcceptEncoding)
	f.Extra = append(e.try.extra[:0], message.Header{Name: nameAccept, Value: valueJSON},
		message.Header{Name: nameContentType, Value: valueJSON})
	if authorization != nil {
		f.Extra = append(f.Extra, message.Header{Name: nameAuthorization, Value: authorization})
	}
	return e.Head.AppendForward(nil, f)
}
