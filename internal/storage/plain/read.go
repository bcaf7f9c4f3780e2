package plain

import (
	"bytes"
	"math"
	"net/http"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

// objectReads reads objects and lists of them.
type objectReads struct{ a *access }

// Read implements storage.Reader. Objects whose schema has defaults get the ones that they lack, and objects
// and lists of Kubernetes' form their kind, apiVersion and version. What needs nothing passes as it comes.
func (s objectReads) Read(r *storage.Request) error {
	var l *listPass
	edits := s.a.completer.editsAnswer(r)
	if s.a.conditions.tagsRead(r) {
		return s.a.completer.readTagged(r, nil, edits)
	}
	m := storage.Message{IsSafe: true, IsEdited: edits}
	if r.IsHead() && edits && r.Info.IsObject() {
		m.Method = methodGet // only the object shows how long it is once it is completed
	}
	if keeps(s.a.Resource, resource.Selectors) && r.Info.Verb.Selects() {
		var err error
		if l, err = readListOptions(s.a.Resource, &r.Info); err != nil {
			return err
		}
		m.Target = listTarget(&r.Exchanges, &r.Info)
	}
	if err := r.Send(s.a.Backend, &m); err != nil || !m.IsEdited {
		return err
	}
	dropUnread(r)
	return s.a.completer.completeRead(r, l, r.Response.ETag())
}

// dropUnread ends the answer to a HEAD for which the backend was asked by GET, if its body has not come whole.
func dropUnread(r *storage.Request) {
	if a := &r.Response; r.IsHead() && a.IsStream() {
		a.Close()
		a.ForgetBody(false)
	}
}

// readTagged reads an object whose ETag the gateway makes, and compares what the client names itself. The ETag of a
// HEAD is one of the object too, so that the backend is asked for it.
func (c *completer) readTagged(r *storage.Request, target []byte, edits bool) error {
	m := storage.Message{Target: target, IsSafe: true, IsEdited: true,
		Precondition: storage.Precondition{IsCompared: true}}
	if r.IsHead() {
		m.Method = methodGet
	}
	if err := r.Send(c.Backend, &m); err != nil {
		return err
	}
	var own []byte
	if edits { // the version of the object is made of it
		own = bytes.Clone(r.Response.ETag())
	}
	isComplete, err := c.tagRead(r)
	dropUnread(r)
	if isComplete || err != nil || !edits {
		return err
	}
	return c.completeRead(r, nil, own)
}

// editsAnswer reports whether there may be anything to complete in the answer to a read.
func (c *completer) editsAnswer(r *storage.Request) bool {
	switch {
	case !isRegistered(c.Resource):
		return false
	case c.Resource.Envelope == resource.Kubernetes:
		return true
	}
	return c.defaulting(r.Info.Verb) != nil && asksForAll(r.Head)
}

// completeRead completes the answer to a read: a small one here, one that is streamed on its way. The ETag is the
// backend's.
func (c *completer) completeRead(r *storage.Request, l *listPass, etag []byte) error {
	a := &r.Response
	switch code := a.Status(); {
	case code != http.StatusOK && code != http.StatusNonAuthoritativeInfo, !showsObjects(c.Resource, a.ContentType()):
		return nil
	}
	wasEncoded := len(a.ContentEncoding()) > 0
	if err := storage.StreamPlain(&r.Exchanges); err != nil {
		return err
	}
	isHead := r.IsHead() && (wasEncoded || len(a.Body()) == 0) // how long it is decoded stays unsaid
	if wasEncoded || isHead || a.IsStream() {
		a.Revise()
	}
	if l != nil && r.Info.Verb == resource.VerbList {
		l.setVersion(etag)
		if err := l.checkVersion(); err != nil {
			return err
		}
	}
	switch {
	case isHead:
		a.ForgetBody(true)
	case a.IsStream():
		a.ForgetBody(false)
		// the head is made for sending before the body comes
		r.Editor = c.newReadDefaulter(&r.Info, r.Memory, l, bytes.Clone(etag))
	default:
		return c.completeWhole(r, l, etag)
	}
	return nil
}

// completeWhole completes a body that is there.
func (c *completer) completeWhole(r *storage.Request, l *listPass, etag []byte) error {
	if one := c.completionOf(&r.Info, r.Memory, etag); one.isOne() {
		return one.completeOne(r)
	}
	body := r.Response.Body()
	d := c.newReadDefaulter(&r.Info, r.Memory, l, etag)
	defer d.Release()
	out, _, err := d.Append(r.Response.EditBuffer(), body, math.MaxInt)
	if err == nil {
		out, err = d.Close(out)
	}
	if err != nil {
		return d.Failed(err)
	}
	if !bytes.Equal(out, body) {
		r.Response.AnswerEditedBytes(out)
		r.Response.Revise()
	}
	return nil
}

// completeOne completes a body that is one object. An object that lacks no default passes as it came.
func (d *completion) completeOne(r *storage.Request) error {
	limits := d.completer.Limits.Stored
	limits.Outline = d.outline()
	object, err := r.Parse(r.Response.Body(), limits)
	if err != nil {
		return d.Failed(err)
	}
	defer object.Release()
	if object.Root().Kind() != document.Object {
		return nil
	}
	err = d.editItem(object)
	d.budget.Rest() // what comes next waits for the client
	if err != nil || !object.Edited() {
		return err
	}
	if err := r.Response.AnswerEdited(object); err != nil {
		return err
	}
	r.Response.Revise()
	return nil
}

// showsObjects reports whether an answer of a media type shows objects as they are. An ordinary API may have media
// types of JSON that show a part of them.
func showsObjects(r *resource.Resource, contentType []byte) bool {
	if r.Envelope == resource.Bare {
		return isPlainJSON(contentType)
	}
	return carriesJSON(contentType)
}

// asksForAll reports whether nothing in the head of a read can ask an ordinary API to leave out members: neither a
// parameter of the query, nor another media type of JSON, nor a preference.
func asksForAll(head *message.Head) bool {
	if bytes.IndexByte(head.Target, '?') >= 0 {
		return false
	}
	for _, l := range head.Headers() {
		switch {
		case l.Dropped:
		case l.Field == message.FieldAccept && storage.AcceptsOtherJSON(l.Value),
			strings.EqualFold(str(l.Name), "Prefer"):
			return false
		}
	}
	return true
}

// isPlainJSON reports whether a media type is JSON, with no parameter but the charset.
func isPlainJSON(contentType []byte) bool {
	media, parameter, _ := bytes.Cut(contentType, []byte(";"))
	name, _, _ := bytes.Cut(bytes.TrimSpace(parameter), []byte("="))
	return bytes.EqualFold(bytes.TrimSpace(media), typeJSON) &&
		(len(name) == 0 || bytes.EqualFold(name, []byte("charset"))) &&
		bytes.IndexByte(parameter, ';') < 0
}

// carriesJSON reports whether a Content-Type says JSON, or a format based on it (RFC 6839).
func carriesJSON(contentType []byte) bool {
	if string(contentType) == storage.JSON {
		return true
	}
	media, _, _ := bytes.Cut(contentType, []byte(";"))
	media = bytes.ToLower(bytes.TrimSpace(media))
	switch string(media) {
	case storage.JSON, "application/x-ndjson", "application/ndjson", "application/jsonl":
		return true
	}
	return bytes.HasSuffix(media, []byte("+json"))
}
