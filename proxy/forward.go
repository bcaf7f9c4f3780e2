package proxy

import (
	"errors"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/upstream"
	"github.com/admission-gateway/gateway/internal/wire"
)

// via is how the gateway calls itself in Via headers.
const via = "admission-gateway"

// errRaced tells that the stored object is no longer the one that was admitted against.
var errRaced = errors.New("another writer came between")

// errAnswered tells that the backend's answer to a question of the gateway is the answer to the client.
var errAnswered = errors.New("the answer is the backend's")

var (
	methodGet    = []byte("GET")
	methodPut    = []byte("PUT")
	methodDelete = []byte("DELETE")
	nameIfMatch  = []byte("If-Match")
	nameIfNone   = []byte("If-None-Match")
	valueAny     = []byte("*")
	nameETag     = []byte(fasthttp.HeaderETag)

	nameContentType = []byte("Content-Type")
	nameAccept      = []byte("Accept")
	valueJSON       = []byte(jsonType)
	valueJSONPatch  = []byte("application/json-patch+json")
)

// preconditions are the client's own, aboutBody is everything else of its head that is about the body it sent or expects.
var (
	preconditions = wire.Fields(wire.FieldIfMatch, wire.FieldIfNoneMatch, wire.FieldIfModifiedSince, wire.FieldIfUnmodifiedSince)
	aboutBody     = preconditions | wire.Fields(wire.FieldContentType, wire.FieldContentEncoding, wire.FieldAccept,
		wire.FieldAcceptEncoding, wire.FieldRange, wire.FieldIfRange)
)

// forward sends the request on and takes the answer's head, or the whole of a small one.
// A write leaves exactly once; what was admitted is what is sent.
func (x *exchange) forward() error {
	switch {
	case x.info.Options.DryRun && x.upstream.plain && (x.res == nil || x.emulates(resource.DryRun)):
		if x.settled = x.writesWhole() || x.scaling; x.settled {
			return nil
		}
		return x.answerDryRun()
	case !x.finishing && x.unchanged():
		// What is stored is what is answered, in its own spelling.
		x.doc.Release()
		x.doc, x.old, x.settled = x.old, nil, true
		return nil
	}
	if err := x.storeForm(); err != nil {
		return err
	}
	if err := x.forwardHead(); err != nil {
		return err
	}
	x.call = upstream.Request{
		Head:       x.head,
		Body:       x.sent,
		HeadOnly:   x.isHead(),
		Idempotent: x.isRead(),
		Deadline:   x.deadline(),
		Verbatim:   &x.verbatim,
	}
	if x.writesWhole() || x.scaling {
		x.call.Whole = 2 * x.gateway.bodyLimit
	}
	if err := x.upstream.client.Do(&x.call, &x.ctx.Response); err != nil {
		return err
	}
	return x.refused(x.code())
}

// forwardHead makes the head of the request to the backend, whose body is x.sent.
func (x *exchange) forwardHead() error {
	f := x.forwarding()
	x.sent = x.content()
	removes := x.removes()
	if removes {
		x.sent = nil
	}
	if !removes && (len(x.sent) > 0 || x.info.HasBody()) {
		f.Length = int64(len(x.sent))
	}
	if most := x.gateway.storedLimits.Bytes; x.res != nil && len(x.sent) > most {
		// What the gateway adds, a status that is kept, or what a patch left comes on top of what was sent.
		return status.RequestEntityTooLarge("the object as it would be stored must be at most %d bytes", most)
	}
	switch {
	case removes:
		f.Method, f.Target, f.Skip = methodDelete, x.itemPath(), wire.Fields(wire.FieldContentType)
	case x.info.Verb == resource.VerbPatch && x.rebuilt, x.scaling, x.marking:
		f.Method, f.Target, f.Skip = methodPut, x.itemPath(), wire.Fields(wire.FieldContentType)
	case x.emulatesStatus():
		f.Target = x.itemPath()
	case x.listing != nil:
		f.Target = x.listTarget()
	case x.info.Verb == resource.VerbCreate && x.pin == pinAbsent:
		path, err := x.createdPath()
		if err != nil {
			return err
		}
		f.Method, f.Target = methodPut, path
	}
	f.Extra = x.extra[:0]
	switch x.pin {
	case pinMatch:
		f.Skip |= preconditions
		f.Extra = append(f.Extra, wire.Header{Name: nameIfMatch, Value: x.pinned})
	case pinAbsent:
		// Nothing was stored when the object was admitted, so nothing may be stored when it arrives.
		f.Skip |= preconditions
		f.Extra = append(f.Extra, wire.Header{Name: nameIfNone, Value: valueAny})
	}
	if x.transcoded && !removes {
		f.Skip |= wire.Fields(wire.FieldContentType)
	}
	if !removes && (x.transcoded || x.rebuilt && (f.Method != nil || !x.conn.head.Has(wire.FieldContentType))) {
		f.Extra = append(f.Extra, wire.Header{Name: nameContentType, Value: valueJSON})
	}
	if x.fillsAnswer() || x.writesWhole() || x.scaling {
		f.Skip |= aboutBytes
		f.Extra = append(f.Extra, wire.Header{Name: nameAcceptEncoding, Value: valueIdentity})
	}
	x.head = x.conn.head.AppendForward(x.head[:0], f)
	return nil
}

// refused tells what to do where the backend refused a precondition that the gateway, and not the client, had set, or to
// create what exists.
func (x *exchange) refused(code int) error {
	failed := code == fasthttp.StatusPreconditionFailed
	switch {
	case x.info.Verb == resource.VerbCreate:
		switch {
		case code == fasthttp.StatusConflict && x.generated, failed && x.pin == pinAbsent:
			x.dropAnswer()
			return x.taken()
		}
	case failed && x.pin != pinNone, code == fasthttp.StatusConflict && (x.versioned || x.pin == pinField):
		x.dropAnswer()
		return errRaced
	}
	return nil
}

// pin is what a write depends on.
type pin uint8

const (
	pinNone   pin = iota
	pinMatch      // the version in x.pinned
	pinAbsent     // that nothing is stored
	pinField      // the version in the field of the stored object
)

// forwarding is what every request to the backend says of where it came from, and of who asks.
func (x *exchange) forwarding() *wire.Forward {
	x.forwarded = wire.Forward{Peer: x.conn.peerIP, Proto: x.conn.proto, Via: via, Length: -1, Withheld: x.withheld, Lines: x.told}
	return &x.forwarded
}

// content is the body to send: the client's own bytes where nothing was edited.
func (x *exchange) content() []byte {
	if x.doc == nil || !x.doc.Edited() && !x.rebuilt {
		return x.body
	}
	x.edited = x.doc.AppendTo(x.edited[:0])
	return x.edited
}

// deadline is when the client's own ?timeout= passes; a watch ends by itself (ERR-4).
func (x *exchange) deadline() time.Time {
	if x.info.Options.Timeout <= 0 || x.info.Options.Watch {
		return time.Time{}
	}
	return x.started.Add(x.info.Options.Timeout)
}

// fetchOld reads the stored object where something on the way depends on it, and pins the write that follows
// to the version that was read.
func (x *exchange) fetchOld() error {
	if !x.needsOld() {
		return nil
	}
	return x.readOld()
}

// get reads an object of the backend into oldAnswer.
func (x *exchange) get(path []byte) error {
	f := x.forwarding()
	f.Method, f.Skip, f.Target = methodGet, aboutBody, path
	x.head = x.conn.head.AppendForward(x.head[:0], f)
	x.call = upstream.Request{Head: x.head, Idempotent: true, Whole: 2 * x.gateway.bodyLimit, Deadline: x.deadline()}
	x.readsOld = true
	x.oldAnswer.Reset()
	return x.upstream.client.Do(&x.call, &x.oldAnswer)
}

// readOld reads the stored object.
func (x *exchange) readOld() error {
	if err := x.get(x.oldPath()); err != nil {
		return err
	}
	if x.oldAnswer.StatusCode() == fasthttp.StatusMethodNotAllowed && x.info.Subresource != "" {
		// A subresource that can only be written, such as a namespace's finalize, is a view of the object itself.
		if err := x.get(x.itemPath()); err != nil {
			return err
		}
	}
	switch code := x.oldAnswer.StatusCode(); {
	case code == fasthttp.StatusNotFound:
		return x.noOld()
	case code != fasthttp.StatusOK:
		return x.backendError(&x.oldAnswer)
	}
	if err := x.takeOld(); err != nil {
		return err
	}
	return x.pinTo(x.oldAnswer.Header.Peek(fasthttp.HeaderETag))
}

// oldPath is the target of what a write replaces.
func (x *exchange) oldPath() []byte {
	if x.aboutObject() {
		return x.itemPath()
	}
	x.target = append(x.target[:0], x.info.Path...)
	return x.target
}

// takeOld takes the object that was read as the stored one, as a client that reads it would see it.
func (x *exchange) takeOld() error {
	const unreadable = "the stored object, which this write depends on, must be a JSON object that the gateway can read"
	old, err := document.Parse(x.oldAnswer.Body(), x.gateway.storedLimits)
	if err != nil {
		return status.BadGateway(unreadable)
	}
	x.old = old
	if old.Root().Kind() != document.Object {
		return status.BadGateway(unreadable)
	}
	if !x.aboutObject() {
		return nil
	}
	if x.emulates(resource.ResourceVersions) || x.emulatesScale() {
		x.version = versionOf(x.version[:0], x.res, old.Root(), x.oldAnswer.Header.Peek(fasthttp.HeaderETag))
	}
	if err := x.fillOld(); err != nil {
		return err
	}
	x.filledOld = old.Edited()
	if x.emulatesMetadata(resource.ResourceVersions) && len(x.version) > 0 {
		setVersion(old, old.Root(), x.version)
	}
	return nil
}

// noOld is the way on where nothing is stored under the name.
func (x *exchange) noOld() error {
	if x.info.Verb != resource.VerbUpdate || x.info.Subresource != "" {
		return status.NotFound(x.info.GroupResource(), x.info.Name)
	}
	if !x.namesObject() {
		return status.NotFound(x.info.GroupResource(), x.info.Name)
	}
	if !x.upstream.plain {
		x.pinCreation()
		return nil
	}
	if version, found := x.conn.head.Lookup("If-Match"); found && len(version) > 0 {
		return x.conflict()
	}
	x.creates = true
	if x.res == nil || x.res.Concurrency == resource.Optimistic && x.res.Versions == resource.ETagVersions {
		x.pin = pinAbsent
	}
	return nil
}

// pinTo makes the write conditional on the version that was read.
func (x *exchange) pinTo(etag []byte) error {
	if !x.upstream.plain || x.res != nil && x.res.Versions == resource.NativeVersions {
		// The resourceVersion inside the object is the precondition of a Kubernetes backend.
		return x.pinResourceVersion()
	}
	if !x.permits(etag) {
		return x.conflict()
	}
	bestEffort := x.res != nil && x.res.Concurrency == resource.BestEffort
	switch {
	case x.res != nil && x.res.Versions == resource.FieldVersions && x.info.HasBody():
		if stored, found := find(x.old.Root(), x.res.Fields.Version); found && versionIn(stored) != "" {
			x.pin = pinField
		} else if !bestEffort {
			return status.BadGateway("the stored object has no version in `" + joined(x.res.Fields.Version) + "`, so that the write cannot be pinned to what was judged")
		}
	case x.res != nil && x.res.Versions == resource.NoVersions:
	case len(etag) > 0:
		x.pin, x.pinned = pinMatch, append(x.pinned[:0], etag...)
	case bestEffort:
	default:
		return status.Internal("the backend gave the stored object no ETag, so that the write cannot be pinned to the version that was judged; " +
			"an APIResource may state `concurrency: BestEffort` to do without")
	}
	return nil
}

// pinResourceVersion makes the version that was read the precondition of the write, inside the object, or inside the
// options of a delete, unless the client named one itself.
func (x *exchange) pinResourceVersion() error {
	stored, _ := find(x.old.Root(), resource.FieldPath{"metadata", "resourceVersion"})
	if stored.Kind() != document.String || stored.Str() == "" {
		return status.BadGateway("the stored object has no resourceVersion, so that the write cannot be pinned to the version that was judged")
	}
	parent, member := "metadata", "metadata."
	switch x.info.Verb {
	case resource.VerbPatch:
		x.versioned = true // what results from a patch has the version of what was patched
		return nil
	case resource.VerbDelete:
		parent, member = "preconditions", "preconditions."
		if err := x.writeDeleteOptions(); err != nil {
			return err
		}
	}
	root := x.doc.Root()
	if root.Kind() != document.Object {
		return status.BadRequest("the body must be a JSON object, not %s", article(root.Kind()))
	}
	at, found := root.Get(parent)
	if !found || at.Kind() == document.Null {
		at = x.doc.Set(root, parent, []byte("{}"))
	}
	if at.Kind() != document.Object {
		return status.BadRequest("`%s` must be an object, not %s", parent, article(at.Kind()))
	}
	sent, err := text(at, "resourceVersion", member)
	switch {
	case err != nil:
		return err
	case x.asksForVersion(sent):
		return nil // checkVersion refuses it
	case sent == "":
		x.doc.Set(at, "resourceVersion", stored.Raw())
		x.versioned = true
	case sent != stored.Str():
		return x.conflict()
	}
	x.pinIdentity(at)
	return nil
}

// writeDeleteOptions gives a delete that came without options some that a precondition can be set in.
func (x *exchange) writeDeleteOptions() error {
	if x.doc != nil {
		return nil
	}
	d, err := document.Parse(deleteOptions, x.gateway.documentLimits)
	x.doc, x.rebuilt, x.transcoded = d, true, true
	return err
}

var deleteOptions = []byte(`{"kind":"DeleteOptions","apiVersion":"v1"}`)

// clientPinned tells whether the client itself named the version that it means to change; its write is then never tried again.
func (x *exchange) clientPinned() bool {
	return x.named || x.conn.head.Has(wire.FieldIfMatch) || x.conn.head.Has(wire.FieldIfNoneMatch)
}

func (x *exchange) conflict() error {
	return status.Conflict(x.info.GroupResource(), x.info.Name, status.ModifiedMessage)
}

// itemPath is the target of the object itself, without subresource and query.
func (x *exchange) itemPath() []byte {
	path := x.info.Path
	if x.info.Subresource == "" {
		x.target = append(x.target[:0], path...)
		return x.target
	}
	end := len(path) - len(x.info.Subresource) - 1
	if x.info.APIPrefix != "" {
		// A subresource such as proxy has a path of its own below it.
		segments := 4
		if x.info.APIPrefix == "apis" {
			segments++
		}
		if x.info.Namespace != "" && x.info.Resource != "namespaces" {
			segments += 2
		}
		end = 0
		for ; segments > 0; segments-- {
			end += 1 + strings.IndexByte(path[end+1:]+"/", '/')
		}
	}
	x.target = append(x.target[:0], path[:end]...)
	return x.target
}
