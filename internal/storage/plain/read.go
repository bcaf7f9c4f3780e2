package plain

import (
	"bytes"
	"math"
	"net/http"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

// objectReads reads objects and lists of them.
type objectReads struct{ c *collection }

// Read implements storage.Reader. Objects whose schema has defaults get the ones that they lack, and objects
// and lists of Kubernetes' form their kind, apiVersion and version. What needs nothing passes as it comes.
func (s objectReads) Read(r *storage.Request) error {
	var l *listPass
	m := storage.Message{IsSafe: true, IsEdited: s.c.editsAnswer(r.Info.Verb)}
	if s.c.keeps(resource.Selectors) && r.Info.Verb.Selects() {
		var err error
		if l, err = s.c.readListOptions(&r.Info); err != nil {
			return err
		}
		m.Target = listTarget(&r.Exchanges, &r.Info)
	}
	if err := r.Send(s.c.Backend, &m); err != nil || !m.IsEdited {
		return err
	}
	return s.c.completeRead(r, l)
}

// editsAnswer reports whether there may be anything to complete in the answer to a read.
func (c *collection) editsAnswer(verb resource.Verb) bool {
	return c.isRegistered() && (c.Resource.Envelope == resource.Kubernetes || c.defaulting(verb) != nil)
}

// completeRead completes the answer to a read: a small one here, one that is streamed on its way.
func (c *collection) completeRead(r *storage.Request, l *listPass) error {
	a := &r.Response
	switch code := a.Status(); {
	case code != http.StatusOK && code != http.StatusNonAuthoritativeInfo, !carriesJSON(a.ContentType()):
		return nil
	}
	wasEncoded := len(a.ContentEncoding()) > 0
	if err := storage.StreamPlain(&r.Exchanges); err != nil {
		return err
	}
	if wasEncoded || r.IsHead() || a.IsStream() {
		a.Revise()
	}
	etag := a.ETag()
	if l != nil && r.Info.Verb == resource.VerbList {
		l.setVersion(etag)
		if err := l.checkVersion(); err != nil {
			return err
		}
	}
	switch {
	case r.IsHead():
		a.ForgetBody(true)
	case a.IsStream():
		a.ForgetBody(false)
		r.Editor = c.newReadDefaulter(&r.Info, r.Memory, l, bytes.Clone(etag)) // the head is made for sending before the body comes
	default:
		return c.completeWhole(r, l, etag)
	}
	return nil
}

// completeWhole completes a body that is there.
func (c *collection) completeWhole(r *storage.Request, l *listPass, etag []byte) error {
	d := c.newReadDefaulter(&r.Info, r.Memory, l, etag)
	defer d.Release()
	body := r.Response.Body()
	if d.isItem && !d.hasEvents {
		object, err := r.Parse(body, c.Limits.Stored)
		if err != nil {
			return d.Failed(err)
		}
		defer object.Release()
		if object.Root().Kind() != document.Object {
			return nil
		}
		if err := d.EditItem(object); err != nil || !object.Edited() {
			return err
		}
		if err := r.Response.AnswerEdited(object); err != nil {
			return err
		}
		r.Response.Revise()
		return nil
	}
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

// carriesJSON reports whether a Content-Type says JSON, or a format based on it (RFC 6839).
func carriesJSON(contentType []byte) bool {
	media, _, _ := bytes.Cut(contentType, []byte(";"))
	media = bytes.ToLower(bytes.TrimSpace(media))
	switch string(media) {
	case storage.JSON, "application/x-ndjson", "application/ndjson", "application/jsonl":
		return true
	}
	return bytes.HasSuffix(media, []byte("+json"))
}
