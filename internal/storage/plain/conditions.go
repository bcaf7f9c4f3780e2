package plain

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

// An ETag that the gateway makes is the hash of what the backend answers to a GET of the object, by the client's
// credentials and without a query: the gateway compares what the client has read. Who may write the object chooses its
// bytes, so that the hash has to resist collisions: 192 bits of SHA-256.
const (
	madeStart = `"gw-`
	madeBytes = 24
)

// appendMade appends the ETag of what the backend answers.
func appendMade(dst, body []byte) []byte {
	sum := sha256.Sum256(body)
	return append(base64.RawURLEncoding.AppendEncode(append(dst, madeStart...), sum[:madeBytes]), '"')
}

// isMade reports whether an ETag looks like one that a gateway has made.
func isMade(etag []byte) bool {
	return bytes.HasPrefix(etag, []byte(madeStart)) && len(etag) == len(madeStart)+madeBytes*4/3+1
}

// namesMade reports whether If-Match names an ETag that a gateway has made.
func namesMade(head *message.Head) bool {
	return anyOf(head, message.FieldIfMatch, func(list []byte) bool { return eachETag(list, isMade) })
}

// comparesFor reports whether the gateway compares the preconditions of requests for an object. A subresource that
// the backend keeps has ETags of its own.
func (c conditions) comparesFor(i *resource.Info) bool {
	return c.compares && i.IsObject() && (i.Subresource == "" || isPartOf(c.Resource, i))
}

// isPartOf reports whether the gateway makes the subresource of the object itself.
func isPartOf(r *resource.Resource, i *resource.Info) bool {
	switch i.Subresource {
	case "status":
		return keepsStatus(r)
	case scaleSubresource:
		return emulates(r, resource.ScaleSubresource)
	}
	return false
}

// comparesWrite reports whether the gateway compares the preconditions of this write: a backend that is proved to
// compare an ETag of its own in requests of the method does so itself.
func (c conditions) comparesWrite(i *resource.Info, head *message.Head) bool {
	if !c.comparesFor(i) || !hasPreconditions(head) {
		return false
	}
	leaves := !head.Has(message.FieldIfNoneMatch) && !head.Has(message.FieldIfUnmodifiedSince) && !namesMade(head) &&
		!neverMatches(head)
	return !leaves || i.Verb == resource.VerbDelete || !c.isProved(str(head.Method))
}

// isProved reports whether the backend is known to refuse a write of another version in requests of a method.
func (c conditions) isProved(method string) bool {
	k := c.Comparison
	return c.Resource.Backend.Preconditions == resource.AutoPreconditions && k.givesStrong() &&
		k.of(method).get() == Compared
}

// makesETags reports whether objects have ETags that the gateway makes, as far as that is known.
func (c conditions) makesETags() bool {
	if c.Comparison.isVarying() {
		return false
	}
	return c.Resource.Backend.Preconditions == resource.GatewayPreconditions || !c.Comparison.givesStrong()
}

// tagsRead reports whether the answer to a read gets an ETag that the gateway makes.
func (c conditions) tagsRead(r *storage.Request) bool {
	return c.comparesFor(&r.Info) && r.Info.Subresource != scaleSubresource && bytes.IndexByte(r.Head.Target,
		'?') < 0 && c.makesETags()
}

// validatorsOf returns the validators of an object that was read, with the ETag that the gateway makes of it.
func (c conditions) validatorsOf(i *resource.Info, answer *message.Response) validators {
	v := validators{own: answer.Header("ETag"), modified: answer.Header("Last-Modified")}
	if c.comparesFor(i) && c.makesETag(v.own) {
		v.made = appendMade(nil, answer.Body())
	}
	return v
}

// makesETag reports whether the gateway makes an ETag in the place of the backend's.
func (c conditions) makesETag(own []byte) bool {
	if c.Comparison.isVarying() {
		return false
	}
	return c.Resource.Backend.Preconditions == resource.GatewayPreconditions || len(strong(own)) == 0
}

// tagRead gives the answer to a read its ETag, and compares what the client names. It reports whether the answer is
// complete.
func (c conditions) tagRead(r *storage.Request) (isComplete bool, err error) {
	a := &r.Response
	if !storage.IsDone(a.Status()) {
		return false, nil
	}
	var v validators
	if readsConditionally(r.Head) {
		v.own, v.modified = bytes.Clone(a.ETag()), bytes.Clone(a.Header("Last-Modified"))
	}
	if a.Status() == http.StatusOK && isOneObject(&a.Response) {
		own := a.ETag()
		if len(strong(own)) > 0 {
			c.Comparison.noteStrong()
		}
		if c.makesETag(own) {
			isWhole, err := storage.ReadWhole(&r.Exchanges, c.Limits.Body)
			if err != nil {
				return false, err
			}
			if isWhole {
				var room [64]byte
				line := appendMade(append(room[:0], "ETag: "...), a.Body())
				a.Remove("ETag")
				a.AddLines(str(append(line, "\r\n"...)))
				v.made = line[len("ETag: "):]
			}
		}
	}
	if !readsConditionally(r.Head) {
		return false, nil
	}
	switch o := compare(r.Head, &v, true); o {
	case holds:
		return false, nil
	case unmodified:
		a.BecomeNotModified()
		return true, nil
	default:
		a.Discard()
		return true, refusedBy(&r.Subject, r.Head, &v, o)
	}
}

// isOneObject reports whether an answer shows an object in the one way in which it is read before a write: in JSON,
// and not in one of several forms of JSON.
func isOneObject(a *message.Response) bool {
	media, _, _ := bytes.Cut(a.Header("Content-Type"), []byte(";"))
	switch media = bytes.TrimSpace(media); {
	case bytes.EqualFold(media, []byte(storage.JSON)):
		return true
	case len(media) < len("+json") || !bytes.EqualFold(media[len(media)-len("+json"):], []byte("+json")):
		return false // a sequence of objects
	}
	for _, vary := range a.Headers("Vary") {
		for name := range bytes.SplitSeq([]byte(vary), []byte(",")) {
			if bytes.EqualFold(bytes.TrimSpace(name), []byte("Accept")) {
				return false
			}
		}
	}
	return true
}

// compareRead compares the preconditions of a write with the object that was read for it.
func (c conditions) compareRead(w *storage.Write, answer *message.Response) error {
	v := c.validatorsOf(&w.Info, answer)
	head := w.Exchanges.Head
	o := compare(head, &v, false)
	if o == holds {
		w.Existing.IsCompared = c.comparesFor(&w.Info)
		return nil
	}
	if o == unmatched && v.made != nil && namesMade(head) {
		c.findVarying(w, &v)
	}
	return refusedBy(&w.Subject, head, &v, o)
}

// findVarying finds out whether reads of one object differ each time, as with a time in the answer. Such an object
// can have no ETag, for no write would ever match it. The lock of the object keeps other writers away meanwhile;
// against those that write past the gateway, two more reads have to differ.
func (c conditions) findVarying(w *storage.Write, v *validators) {
	if !c.Comparison.asksVarying() {
		return
	}
	if w.Existing.Object != nil { // whose bytes the next read takes
		w.Existing.Object.Release()
		w.Existing.Object = nil
	}
	last := v.made
	for range 2 {
		answer, err := w.Exchanges.ReadStored(c.Backend, w.Exchanges.ItemTarget(&w.Info), c.Limits)
		if err != nil || answer.Status() != http.StatusOK {
			c.Comparison.noteVarying(unknown)
			return
		}
		next := appendMade(nil, answer.Body())
		if bytes.Equal(next, last) {
			c.Comparison.noteVarying(Compared)
			return
		}
		last = next
	}
	c.Comparison.noteVarying(Varying)
	*v = validators{}
}

// writeCompared makes a write once its preconditions hold, if the gateway compares them.
func (c conditions) writeCompared(w *storage.Write, write func(*storage.Write) error) error {
	if err := c.compareUnread(w); err != nil {
		return err
	}
	if err := write(w); err != nil {
		return err
	}
	c.tagWritten(w)
	return nil
}

// compareUnread compares the preconditions of a write for which nothing was read.
func (c conditions) compareUnread(w *storage.Write) error {
	if w.Existing.IsCompared || !c.comparesWrite(&w.Info, w.Exchanges.Head) {
		return nil
	}
	return c.compareStored(w)
}

// compareStored reads the object and compares the preconditions of a write with it.
func (c conditions) compareStored(w *storage.Write) error {
	e := &w.Existing
	answer, err := w.Exchanges.ReadStored(c.Backend, w.Exchanges.ItemTarget(&w.Info), c.Limits)
	if err != nil {
		return err
	}
	switch code := answer.Status(); {
	case code == http.StatusNotFound && storage.NamesObject(&w.Info, c.Resource):
		return c.compareAbsent(w)
	case code != http.StatusOK:
		return c.unread(w, answer)
	}
	if err := c.compareRead(w, answer); err != nil {
		return err
	}
	if e.ETag = append(e.ETag[:0], answer.Header("ETag")...); len(strong(e.ETag)) > 0 {
		c.Comparison.noteStrong()
		e.Pin = storage.PinnedByETag
	}
	return nil
}

// compareAbsent compares the preconditions of a PUT that creates the object.
func (c conditions) compareAbsent(w *storage.Write) error {
	v := validators{isAbsent: true}
	if o := compare(w.Exchanges.Head, &v, false); o != holds {
		return refusedBy(&w.Subject, w.Exchanges.Head, &v, o)
	}
	w.Existing.IsCompared = hasPreconditions(w.Exchanges.Head) && c.comparesFor(&w.Info)
	if c.Resource.Backend.Concurrency == resource.Optimistic && c.Resource.Backend.Versions == resource.ETagVersions {
		w.Existing.Pin = storage.PinnedToNothing
	}
	return nil
}

// tagWritten gives the answer to a write the ETag of what is stored now, which is read for that under the lock of the
// object. Only a client that names versions asks for one, and only an object that it has sent, or that the answer
// shows, is one that it knows: others may write past the gateway.
func (c conditions) tagWritten(w *storage.Write) {
	r := &w.Exchanges.Response
	switch code := r.Status(); {
	case !c.comparesFor(&w.Info), !w.Info.HasBody(), w.Exchanges.Sink != nil:
		return
	case code != http.StatusOK && code != http.StatusCreated && code != http.StatusNoContent:
		return
	}
	if c.Resource.Backend.Preconditions == resource.GatewayPreconditions && len(strong(r.ETag())) > 0 {
		r.Remove("ETag") // which the next write could not name
	}
	isDryRun := w.Info.Options.DryRun && emulates(c.Resource, resource.DryRun)
	if !w.Existing.IsCompared || isDryRun || w.Object == nil || len(strong(r.ETag())) > 0 ||
		!c.makesETag(w.Existing.ETag) {
		return
	}
	want := w.Object.AppendTo(nil)
	if w.Existing.Object != nil { // whose bytes the next read takes
		w.Existing.Object.Release()
		w.Existing.Object = nil
	}
	answer, err := w.Exchanges.ReadStored(c.Backend, w.Exchanges.ItemTarget(&w.Info), c.Limits)
	if err != nil || answer.Status() != http.StatusOK || !isOneObject(answer) {
		return // the write is done, and its answer stands
	}
	v := c.validatorsOf(&w.Info, answer)
	body := answer.Body()
	if v.made == nil {
		return
	}
	if d, err := parseShown(c.Resource, w, body); err == nil && isPlaced(c.Resource) {
		body = d.AppendTo(nil)
		d.Release()
	}
	if v.made != nil && (!r.IsStream() && bytes.Equal(body, r.Body()) || c.isSame(w, body, want)) {
		r.Set("ETag", string(v.made))
	}
}

// isSame reports whether two texts are of the same JSON.
func (c conditions) isSame(w *storage.Write, one, other []byte) bool {
	if bytes.Equal(one, other) {
		return true
	}
	a, err := w.Exchanges.Parse(one, c.Limits.Stored)
	if err != nil {
		return false
	}
	defer a.Release()
	b, err := w.Exchanges.Parse(other, c.Limits.Stored)
	if err != nil {
		return false
	}
	defer b.Release()
	return document.EqualNodes(a.Root(), b.Root())
}
