package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/upstream"
	"github.com/admission-gateway/gateway/internal/wire"
)

var (
	nameAcceptEncoding = []byte("Accept-Encoding")
	valueIdentity      = []byte("identity")

	// aboutBytes are what a client may ask of the bytes of an answer that are not the backend's bytes any more.
	aboutBytes = wire.Fields(wire.FieldAcceptEncoding, wire.FieldRange, wire.FieldIfRange)

	// exactBytes are the headers of an answer that speak of the very bytes of its body.
	exactBytes = [...]string{"Content-MD5", "Digest", "Content-Digest", "Repr-Digest", "Accept-Ranges"}
)

// fillsAnswer tells whether a plain backend's answer to a read is completed: objects whose schema has defaults get those
// that they lack (DEF-3), and objects and lists of Kubernetes' form their kind and apiVersion (RES-8) and, as far as the
// backend tells it, their resourceVersion (RW-1).
func (x *exchange) fillsAnswer() bool {
	if x.res == nil || !x.upstream.plain || !x.isRead() || x.info.Subresource != "" && !x.emulatesStatus() {
		return false
	}
	return x.res.Envelope == resource.Kubernetes || x.defaulting() != nil
}

// defaulting is the schema of the object where it has defaults, else nil.
func (x *exchange) defaulting() *schema.Schema {
	if s := x.schema(); s != nil && (s.Root().HasDefaults() || len(s.Derived()) > 0) {
		return s
	}
	return nil
}

// fillOld completes the stored object as a client that reads it would see it.
func (x *exchange) fillOld() error {
	s := x.defaulting()
	if s == nil || !x.upstream.plain {
		return nil
	}
	return fillStored(x.old, s, x.filledLimit())
}

// fillStored sets the defaults of an object that was stored without them. A default that has no value stays unset: only
// to store the object so is wrong.
func fillStored(d *document.Document, s *schema.Schema, most int) error {
	if !defaults.ApplyWithin(d, s, most) {
		return tooLargeFilled(most)
	}
	if len(s.Derived()) == 0 {
		return nil
	}
	f := cel.NewFrame(context.Background())
	defer f.Release()
	switch _, err := defaults.Derive(f, d, s, most); {
	case errors.Is(err, defaults.ErrTooLong):
		return tooLargeFilled(most)
	case err != nil:
		return status.Internal("the defaults of a stored object cannot be computed within the budget that expressions have")
	}
	return nil
}

// filledLimit bounds what the defaults make of an object that was stored without them.
func (x *exchange) filledLimit() int { return int(min(2*x.gateway.bodyLimit, math.MaxInt32)) }

func tooLargeFilled(most int) error {
	return status.BadGateway(fmt.Sprintf("the stored object with the defaults of what it leaves unset must be at most %d bytes", most))
}

// fillAnswer completes the answer to a read: a small one here, one that is streamed on its way.
func (x *exchange) fillAnswer() error {
	if !x.fillsAnswer() {
		return nil
	}
	if x.verbatim.Status != 0 {
		return x.fillVerbatim()
	}
	r := &x.ctx.Response
	if completes, err := toBeFilled(r.StatusCode(), r.Header.ContentType(), r.Header.ContentEncoding()); !completes {
		return err
	}
	if err := x.checkListVersion(); err != nil {
		return err
	}
	switch {
	case x.isHead():
		r.Header.Del(fasthttp.HeaderContentLength)
	case r.IsBodyStream():
		x.filling = newFilling(x)
	default:
		if filled, err := x.fillWhole(r.Body()); !filled {
			return err
		}
		x.edited = r.SwapBody(x.edited)
	}
	for _, name := range exactBytes {
		r.Header.Del(name)
	}
	return nil
}

// fillVerbatim completes an answer that is still in the backend's bytes; most need nothing, and stay so.
func (x *exchange) fillVerbatim() error {
	a, head := &x.verbatim, &x.answerHead
	a.ReadHead(head)
	if completes, err := toBeFilled(a.Status, head.Value(wire.FieldContentType), head.Value(wire.FieldContentEncoding)); !completes {
		return err
	}
	if err := x.checkListVersion(); err != nil {
		return err
	}
	if !x.isHead() {
		if filled, err := x.fillWhole(a.Body()); !filled {
			return err
		}
	}
	for _, name := range exactBytes {
		head.Drop(name)
	}
	if x.isHead() {
		head.Drop(fasthttp.HeaderContentLength)
		a.RewriteHead(head)
		return nil
	}
	a.Rewrite(head, x.edited)
	return nil
}

// toBeFilled tells whether an answer has objects in it.
func toBeFilled(code int, contentType, encoding []byte) (bool, error) {
	switch {
	case code != fasthttp.StatusOK && code != fasthttp.StatusNonAuthoritativeInfo, !carriesJSON(contentType):
		return false, nil
	case len(encoding) > 0 && !bytes.EqualFold(encoding, valueIdentity):
		return false, status.BadGateway("the backend's answer must not be encoded, because the gateway completes it, and asked for that")
	}
	return true, nil
}

// fillWhole completes a body that is there, into x.edited. It tells whether there was anything to complete.
func (x *exchange) fillWhole(body []byte) (bool, error) {
	e := newFilling(x)
	defer e.release()
	if e.item && !e.events {
		d, err := document.Parse(body, x.gateway.storedLimits)
		if err != nil {
			return false, e.failed(err)
		}
		defer d.Release()
		if d.Root().Kind() != document.Object {
			return false, nil
		}
		if err := e.EditItem(d); err != nil || !d.Edited() {
			return false, err
		}
		x.edited = d.AppendTo(x.edited[:0])
		return true, nil
	}
	out, _, err := e.appendTo(x.edited[:0], body, math.MaxInt)
	if err == nil {
		out, err = e.close(out)
	}
	if err != nil {
		return false, e.failed(err)
	}
	x.edited = out
	return !bytes.Equal(out, body), nil
}

// carriesJSON tells whether a Content-Type is that of JSON, or of a format made of it (RFC 6839).
func carriesJSON(contentType []byte) bool {
	media, _, _ := bytes.Cut(contentType, []byte(";"))
	media = bytes.ToLower(bytes.TrimSpace(media))
	switch string(media) {
	case jsonType, "application/x-ndjson", "application/ndjson", "application/jsonl":
		return true
	}
	return bytes.HasSuffix(media, []byte("+json"))
}

// filling is how one answer is completed.
type filling struct {
	stream document.Stream
	schema *schema.Schema // nil where there are no defaults
	res    *resource.Resource
	typed  bool // objects get kind and apiVersion
	events bool // the answer is a sequence of events
	item   bool // of one object
	most   int  // bytes of an object with its defaults

	versioned bool   // objects get their version
	etag      []byte // of the one object
	version   []byte // of the object at hand

	list   *listPass   // the list that is made of the items; nil where it is the backend's
	chosen *transition // which events pass; nil where all do

	path    [1]string
	members [2]document.StreamMember
	text    []byte // of the members

	gateway  *Gateway
	upstream *backend
	memory   []byte // of the budget for bodies; nil where none was taken
	class    int
}

var fillings = sync.Pool{New: func() any { return new(filling) }}

// newFilling prepares for the answer to the request.
func newFilling(x *exchange) *filling {
	e := fillings.Get().(*filling)
	e.schema, e.res, e.typed = x.defaulting(), x.res, x.res.Envelope == resource.Kubernetes
	e.events, e.item = x.info.Options.Watch, x.info.Verb == resource.VerbGet
	e.most, e.gateway, e.upstream = x.filledLimit(), x.gateway, x.upstream
	if e.versioned = e.typed && x.res.Emulated&resource.ResourceVersions != 0 && x.isRead(); e.versioned {
		switch {
		case e.item && !e.events:
			e.etag = x.backendETag()
		case x.res.Fields.Version == nil:
			// An ETag is that of the list; of the items only their content tells versions apart.
			e.versioned = x.res.Versions == resource.NoVersions
		}
	}
	o := document.StreamOptions{Place: document.Single, Limits: x.gateway.storedLimits}
	switch {
	case e.events:
		if x.listing != nil {
			e.chosen = newTransition(x.listing)
		}
		o.Place, o.ItemsOnly = document.Sequence, e.chosen != nil
		o.Limits.Bytes += eventEnvelope
		o.Limits.Depth++
	case e.item:
	case x.listing != nil:
		o.Place, o.Wrap, o.ItemsOnly = document.List, true, true
		e.path[0] = "items"
		o.Path, e.list = e.path[:], x.listing
	case e.typed:
		o.Place, o.Wrap = document.List, true
		e.path[0] = "items"
		o.Path, o.Members = e.path[:], e.listMembers()
	default:
		o.Place, o.Path = document.List, x.res.Fields.Items
	}
	e.stream.Reset(o, e)
	return e
}

// eventEnvelope is what an event may have around its object, in bytes.
const eventEnvelope = 4 << 10

// listMembers are what a list of Kubernetes' form says of itself.
func (e *filling) listMembers() []document.StreamMember {
	e.text = document.AppendString(e.text[:0], e.res.ListKind)
	n := len(e.text)
	e.text = document.AppendString(e.text, e.res.APIVersion())
	e.members = [...]document.StreamMember{{Name: "kind", Value: e.text[:n:n]}, {Name: "apiVersion", Value: e.text[n:]}}
	return e.members[:]
}

// appendTo leads a part of the answer through the stream, into the list that is made of it.
func (e *filling) appendTo(dst, src []byte, most int) ([]byte, int, error) {
	if e.list == nil || e.list.begun {
		return e.stream.Append(dst, src, most)
	}
	start := len(dst)
	head := e.list.appendHead(dst)
	out, used, err := e.stream.Append(head, src, most)
	if len(out) == len(head) {
		// Nothing of the list leaves before there is an item: what is wrong can still be answered with a Status.
		return out[:start], used, err
	}
	e.list.begun = true
	return out, used, err
}

// close ends the answer.
func (e *filling) close(dst []byte) ([]byte, error) {
	if e.list == nil {
		return e.stream.Close(dst)
	}
	var err error
	if dst, err = e.stream.Close(dst); err != nil {
		return dst, err
	}
	if !e.stream.Listed() {
		return dst, status.BadGateway("the backend's answer must be a list, or an object with the list `items`")
	}
	if !e.list.begun {
		dst = e.list.appendHead(dst)
	}
	return e.list.appendFoot(dst)
}

// release gives the memory back.
func (e *filling) release() {
	e.rest()
	*e = filling{stream: e.stream, text: keep(e.text), version: keep(e.version)}
	e.stream.Reset(document.StreamOptions{}, nil)
	fillings.Put(e)
}

// rest gives back the memory of a large object, at a time when none is held in part.
func (e *filling) rest() {
	if e.memory != nil {
		e.gateway.budget.give(e.memory, e.class)
		e.memory = nil
	}
}

// ItemMemory makes memory of the budget for bodies in flight hold a large object.
func (e *filling) ItemMemory(held []byte, least int) ([]byte, error) {
	if least > len(e.memory) {
		class := max(bits.Len(uint(least-1)), smallestSpill)
		memory := e.gateway.budget.take(class)
		if memory == nil {
			return nil, status.ServiceUnavailable("the gateway holds as many bodies as it may", 1)
		}
		copy(memory, held)
		e.rest()
		e.memory, e.class = memory, class
	} else {
		copy(e.memory, held)
	}
	return e.memory, nil
}

// EditItem completes one object, or the object of one event, and leaves out what was not asked for.
func (e *filling) EditItem(d *document.Document) error {
	if err := e.complete(d); err != nil {
		return err
	}
	switch {
	case e.list != nil:
		return e.list.take(d.Root())
	case e.chosen != nil:
		return e.chosen.take(d)
	}
	return nil
}

// complete gives one object, or the object of one event, what it lacks.
func (e *filling) complete(d *document.Document) error {
	object := d.Root()
	if e.events {
		inner, isEvent := eventObject(object)
		switch {
		case isEvent && !inner.Valid():
			return nil
		case isEvent:
			object = inner
		case !e.item:
			return nil
		}
	}
	if e.versioned {
		if e.version = versionOf(e.version[:0], e.res, object, e.etag); len(e.version) > 0 {
			defer setVersion(d, object, e.version)
		}
	}
	if e.typed {
		setMissing(d, object, "kind", e.res.Kind)
		setMissing(d, object, "apiVersion", e.res.APIVersion())
	}
	switch {
	case e.schema == nil:
	case object == d.Root():
		return fillStored(d, e.schema, e.most)
	case len(e.schema.Derived()) > 0:
		// Expressions see a document's root as the object.
		own := object.Clone()
		defer own.Release()
		if err := fillStored(own, e.schema, e.most); err != nil {
			return err
		}
		if own.Edited() {
			d.Replace(object, own.AppendTo(nil))
		}
	case !defaults.ApplyAt(object, e.schema, e.most):
		return tooLargeFilled(e.most)
	}
	return nil
}

// eventObject is the object that an event is about. It is invalid for events that are about none: bookmarks and errors.
func eventObject(event document.Node) (object document.Node, isEvent bool) {
	kind, found := event.Get("type")
	if !found || kind.Kind() != document.String {
		return document.Node{}, false
	}
	object, found = event.Get("object")
	if !found || object.Kind() != document.Object || !kind.Is("ADDED") && !kind.Is("MODIFIED") && !kind.Is("DELETED") {
		object = document.Node{}
	}
	return object, found
}

// setMissing sets a string that is missing; the empty string and null are the same as none.
func setMissing(d *document.Document, object document.Node, key, value string) {
	if at, found := object.Get(key); !found || at.Kind() == document.Null || at.Is("") {
		d.SetString(object, key, value)
	}
}

// failed is the Status of an answer that cannot be completed; a fault of the backend is counted and logged.
func (e *filling) failed(err error) error {
	var bad *document.Error
	if !errors.As(err, &bad) {
		return err
	}
	e.gateway.upstreamFailed(e.upstream.name, &upstream.Error{Kind: upstream.Malformed, Cause: bad})
	if bad.Code == document.TooLarge {
		return status.BadGateway("an object in the backend's answer is too large to be completed: " + bad.Error())
	}
	return status.BadGateway("the backend's answer must be JSON that can be read in one way only: " + bad.Error())
}
