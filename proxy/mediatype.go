package proxy

import (
	"bytes"
	"errors"
	"strings"

	"github.com/admission-gateway/gateway/internal/cbor"
	"github.com/admission-gateway/gateway/internal/compress"
	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/protobuf"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/server"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// language says what a body is written in.
type language uint8

const (
	inJSON language = iota
	inYAML
	inProtobuf
	inCBOR
	inBeyond // protobuf in which there is something that the gateway does not know
	inForm   // of fields, or of parts
	inBytes  // which are not read
	inUnread // whatever it is: no rule matches it
)

// A bodyReader reads the body of a request, and converts bodies in other languages to JSON.
type bodyReader struct {
	gateway  *Gateway
	incoming *server.Request
	storage  storage.Storage
	request  *storage.Request
	language language
	// isUntyped is set if the body came without a type, and is JSON.
	isUntyped bool
	isJSON    bool // what the client sent has been made JSON, if it was not
	// parsed is the object in the body, if that was parsed already; decode takes it.
	parsed *document.Document
	// mayPass is set if nothing in force reads the body.
	mayPass bool
	message *protobuf.Message // of a body in protobuf
	beyond  *protobuf.Beyond  // why the gateway cannot read it
	json    []byte            // the JSON of a body that is sent as it came unless it is edited

	operation *contract.Operation // what the API's document says of the request; nil if it says nothing
	declared  *contract.Body      // what it declares for the media type of the body, or nil
	boundary  string              // between the parts of a form
	// nullRemoves says that the client calls its patch a merge patch, in which null removes a member.
	nullRemoves bool
}

// begin prepares for a request.
func (b *bodyReader) begin(h *handler) {
	*b = bodyReader{gateway: h.gateway, incoming: h.incoming, storage: h.scope.storage, request: h.request, operation: h.scope.operation}
}

// checkMediaType lets only types pass that the gateway reads itself or that the API's document declares, in an encoding that
// the gateway reads.
func (b *bodyReader) checkMediaType(declared *contract.Operation) error {
	head, i := &b.incoming.Head, &b.request.Info
	value, types := head.Value(message.FieldContentType), b.storage.MediaTypes()
	sent := message.ParseContentType(value)
	switch {
	case i.Documented != nil:
		return b.checkDeclared(value, declared, declared.Accepted())
	case i.Verb == resource.VerbPatch:
		return b.checkPatchType(value, declared)
	case len(value) == 0 && i.IsResource && types.Untyped == storage.JSON:
		b.isUntyped = true
		return nil
	case declared != nil && len(declared.Bodies) > 0 && !(sent.Is(storage.YAML) && storage.Has(types.Objects, storage.YAML)):
		return b.checkDeclared(value, declared, declared.Accepted())
	}
	objects := types.Objects
	if !i.IsResource {
		objects = storage.JSON
	}
	switch {
	case sent.Is(storage.JSON):
	case storage.Has(objects, storage.YAML) && sent.Is(storage.YAML):
		b.language = inYAML
	case storage.Has(objects, storage.Protobuf) && sent.Is(storage.Protobuf) && !sent.Charset:
		if i.HasBody() && (b.request.Resource != nil || !mayBeKubernetes(i.Group)) && !b.gateway.protobuf.Knows(i.GroupVersionResource().GroupVersion()) {
			return status.UnsupportedMediaType(withoutProtobuf) // custom resources have none
		}
		b.language = inProtobuf
	case types.CBOR && sent.Is(storage.CBOR) && !sent.Charset:
		b.language = inCBOR
	default:
		return status.UnsupportedMediaType(objects)
	}
	return nil
}

// mayBeKubernetes reports whether a group may be one of Kubernetes itself, of this version or a later one.
func mayBeKubernetes(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// checkDeclared lets only types pass that the API's document declares. The accepted ones are named otherwise.
func (b *bodyReader) checkDeclared(value []byte, o *contract.Operation, accepted string) error {
	media, ok := message.ParseMediaType(value)
	declared := o.BodyOf(media.Name)
	switch {
	case !ok || declared == nil:
		return status.UnsupportedMediaType(accepted)
	case declared.As == contract.AsBytes:
		b.language = inBytes
		return nil
	case declared.As == contract.AsParts:
		b.boundary = media.Boundary
	case !message.ParseContentType(value).Is(media.Name):
		return status.UnsupportedMediaType(accepted)
	}
	if b.declared = declared; declared.Form != nil {
		b.language = inForm
	}
	return nil
}

// checkEncoding lets only encodings pass that the gateway reads.
func (b *bodyReader) checkEncoding() (isEncoded bool, err error) {
	encoding := b.incoming.Head.Value(message.FieldContentEncoding)
	if len(encoding) == 0 || bytes.EqualFold(encoding, []byte("identity")) || b.language == inBytes {
		return false, nil
	}
	if accepted := b.storage.MediaTypes().Encodings; accepted == "" || !compress.IsReadable(encoding) {
		return false, status.UnsupportedEncoding(string(encoding), accepted)
	}
	return true, nil
}

// decompress makes of an encoded body what it stands for. That is admitted, and sent on: no server can read it in another way
// than the gateway did.
func (b *bodyReader) decompress() error {
	encoding, limit := b.incoming.Head.Value(message.FieldContentEncoding), b.request.Limits.Body
	err := b.replace(int64(compress.Memory(encoding)), func() ([]byte, error) {
		taken := 0
		defer func() { b.request.Memory.Shrink(taken) }()
		text, err := compress.Decode(b.request.Body, encoding, limit, func(bytes int) bool {
			taken += bytes
			return b.request.Memory.Grow(bytes)
		})
		switch err {
		case nil:
			return text, nil
		case compress.ErrMemory:
			return nil, b.request.Exhausted()
		case compress.ErrTooLarge:
			return nil, status.RequestEntityTooLarge("the body must be at most %d bytes when it is decoded", limit)
		}
		return nil, status.BadRequest("the body must be encoded as its Content-Encoding says: it %s", err.Error())
	})
	b.incoming.Head.Drop(aboutCoding)
	return err
}

// aboutCoding are the headers of a body that its encoding decides about.
var aboutCoding = message.Fields(message.FieldContentEncoding)

// aboutBytes are the headers that speak of the very bytes of a body (RFC 9530).
var aboutBytes = message.Fields(message.FieldDigest)

// withoutProtobuf are the types of kinds that have no protobuf.
const withoutProtobuf = storage.JSON + ", " + storage.YAML

// checkPatchType reads the language of a patch.
func (b *bodyReader) checkPatchType(value []byte, declared *contract.Operation) error {
	sent := message.ParseContentType(value)
	for name := range strings.SplitSeq(b.storage.MediaTypes().Patches, ", ") {
		if sent.Is(name) {
			b.request.Patch = patchTypeOf(name)
			b.declared, b.nullRemoves = declared.PatchBody(name), name == storage.MergePatchType
			return nil
		}
	}
	if b.storage.MediaTypes().CBOR && sent.Is(storage.ApplyPatchCBORType) && !sent.Charset {
		b.request.Patch, b.language = storage.ApplyPatch, inCBOR
		return nil
	}
	accepted := b.acceptedPatches(declared)
	if !b.takesForms(declared) {
		return status.UnsupportedMediaType(accepted)
	}
	b.request.Patch = storage.FormPatch
	return b.checkDeclared(value, declared, accepted)
}

// takesForms reports whether the API's document declares forms for the patch, and the backend gets it as it is: of no
// other form could be said what becomes of its files.
func (b *bodyReader) takesForms(declared *contract.Operation) bool {
	r := b.request.Resource
	return declared != nil && declared.Forms() != "" && b.request.Info.Verb == resource.VerbPatch && b.request.Info.Subresource == "" &&
		r != nil && r.Envelope == resource.Bare && r.Backend.Patch == resource.PatchValidated
}

// acceptedPatches returns the media types of patches as answers show them.
func (b *bodyReader) acceptedPatches(declared *contract.Operation) string {
	accepted := b.storage.MediaTypes().ShownPatches()
	if b.takesForms(declared) {
		accepted += ", " + declared.Forms()
	}
	return accepted
}

// patchTypeOf returns the language of a patch: of any type that a resource names itself it is the merge patch.
func patchTypeOf(name string) storage.PatchType {
	switch name {
	case storage.JSONPatchType:
		return storage.JSONPatch
	case storage.StrategicMergePatchType:
		return storage.StrategicMergePatch
	case storage.ApplyPatchType:
		return storage.ApplyPatch
	}
	return storage.MergePatch
}

// transcode makes JSON of a body that is written in another language. The JSON is admitted, and sent on: no server can read
// it in another way than the gateway did.
func (b *bodyReader) transcode() error {
	if b.isJSON {
		return nil
	}
	memory, read, err := b.reader()
	if read == nil || err != nil {
		return err
	}
	b.isJSON = true
	if b.language != inCBOR {
		return b.replace(memory, read)
	}
	if b.json, err = b.make(memory, read); err == nil && !b.request.Memory.Grow(len(b.json)) {
		err = b.request.Exhausted()
	}
	return err
}

// reader returns what makes JSON of the body, and how much memory that takes. It is nil if the body is JSON.
func (b *bodyReader) reader() (memory int64, read func() ([]byte, error), err error) {
	switch {
	case b.language == inCBOR:
		memory, read, err = b.readerOfCBOR()
	case b.language == inProtobuf:
		memory, read = b.message.Memory, b.message.JSON
	case b.language == inYAML || b.request.Patch == storage.ApplyPatch:
		memory, read = b.readerOfYAML()
	}
	return memory, read, err
}

// yamlMemory is roughly how many times its own size YAML takes in memory while it is read.
const yamlMemory = 40

// readerOfYAML returns what makes JSON of YAML, which an object in braces is already.
func (b *bodyReader) readerOfYAML() (memory int64, read func() ([]byte, error)) {
	body := b.request.Body
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return 0, nil
	}
	return yamlMemory * int64(len(body)), func() ([]byte, error) {
		text, err := manifest.ReadBody(body)
		switch {
		case errors.Is(err, manifest.ErrLarge):
			return nil, status.RequestEntityTooLarge("the body %s", err.Error())
		case err != nil:
			return nil, status.BadRequest("the body must be YAML that can be read in one way only: %s", err.Error())
		}
		return text, nil
	}
}

// readerOfCBOR returns what makes JSON of CBOR.
func (b *bodyReader) readerOfCBOR() (memory int64, read func() ([]byte, error), err error) {
	limits := b.request.Limits.Sent
	m, err := cbor.Read(b.request.Body, cbor.Limits{Bytes: limits.Bytes, Depth: limits.Depth})
	if err != nil {
		return 0, nil, err
	}
	return m.Memory, m.JSON, nil
}

// replace replaces the body by what is made of it. What that takes counts as bodies in flight do.
func (b *bodyReader) replace(memory int64, read func() ([]byte, error)) error {
	text, err := b.make(memory, read)
	if err != nil {
		return err
	}
	b.incoming.Head.Drop(aboutBytes)
	b.request.Body, err = b.incoming.ReplaceBody(text)
	return err
}

// make makes a text, within the memory and the turn that the request may have for that.
func (b *bodyReader) make(memory int64, read func() ([]byte, error)) ([]byte, error) {
	share := b.request.Memory
	if !share.Grow(int(memory)) {
		return nil, b.request.Exhausted()
	}
	defer share.Shrink(int(memory))
	if memory >= storage.HeavyText && !share.Work() {
		return nil, b.request.Exhausted()
	}
	text, err := read()
	if limit := b.request.Limits.Body; err == nil && int64(len(text)) > limit {
		return nil, status.RequestEntityTooLarge("the object in the body must be at most %d bytes as JSON", limit)
	}
	return text, err
}

// negotiate refuses a request whose client takes no answer that the gateway can give.
func (h *handler) negotiate() error {
	answers := h.scope.storage.MediaTypes().Answers
	if answers == "" || !h.incoming.Head.Has(message.FieldAccept) {
		return nil
	}
	if h.incoming.Head.Accepts(true, "*/*", "application/*", storage.JSON, storage.YAML) {
		return nil
	}
	return status.NotAcceptable("only the following media types are accepted: " + answers)
}

// read reads the body whole, after its type is known to be one that the gateway reads (RES-7).
func (b *bodyReader) read(declared *contract.Operation) error {
	if b.mayPass && !isDeletion(&b.request.Info) {
		b.language = inUnread
	}
	if b.language == inUnread || !b.incoming.Head.HasBody() {
		return b.readOpaque()
	}
	err := b.checkMediaType(declared)
	isEncoded := false
	if err == nil {
		isEncoded, err = b.checkEncoding()
	}
	switch {
	case err != nil && b.mayPass:
		b.language = inUnread
		return b.readOpaque()
	case err != nil:
		return err
	}
	if err = b.readOpaque(); err == nil && isEncoded {
		err = b.decompress()
	}
	if err == nil && b.language == inProtobuf && len(b.request.Body) > 0 {
		err = b.checkProtobuf()
	}
	return err
}

// isDeletion reports whether a body is the options of a deletion. They are read if they can be, for they may ask for a dry run.
func isDeletion(i *resource.Info) bool {
	return i.Verb == resource.VerbDelete || i.Verb == resource.VerbDeleteCollection
}

// checkProtobuf finds out whether the gateway knows everything in a body in protobuf.
func (b *bodyReader) checkProtobuf() (err error) {
	limits := b.request.Limits.Sent
	b.message, err = b.gateway.protobuf.Read(b.request.Body, protobuf.Limits{Bytes: limits.Bytes, Depth: limits.Depth, Accepted: withoutProtobuf})
	switch {
	case err == nil:
	case b.mayPass:
		b.language = inUnread
	case b.request.Info.HasBody() && errors.As(err, &b.beyond):
		b.language = inBeyond
	default:
		return err
	}
	return nil
}

// look reads a body that passes as it came, for those who like to know what is in it; nil if it cannot be read.
func (b *bodyReader) look() *document.Document {
	b.language = inJSON
	if b.checkMediaType(nil) != nil || b.language == inProtobuf && b.checkProtobuf() != nil || b.language >= inBeyond {
		b.language = inUnread
		return nil
	}
	memory, read, err := b.reader()
	text := b.request.Body
	if err == nil && read != nil {
		text, err = b.make(memory, read)
		b.json = text
	}
	b.language = inUnread
	if err != nil || !b.request.Memory.Grow(len(b.json)) {
		return nil
	}
	d, err := b.request.Parse(text, b.request.Limits.Sent)
	if err != nil {
		return nil
	}
	return d
}

// readOpaque reads the body whole and within bounds, whatever it is.
func (b *bodyReader) readOpaque() (err error) {
	b.request.Body, err = b.incoming.ReadBody(b.request.Limits.Body)
	return err
}

// decode is the one reading of the body. What follows works on its tape; unedited values leave byte
// for byte as they came.
func (b *bodyReader) decode(w *storage.Write) error {
	switch {
	case b.parsed != nil:
		w.Object, w.Source, b.parsed = b.parsed, b.request.Body, nil
		return nil
	case b.language == inUnread:
		w.Source = b.request.Body
		return nil
	case len(b.request.Body) == 0 && !b.mayBeEmpty():
		return status.BadRequest("the body must not be empty")
	case len(b.request.Body) == 0:
		return nil
	}
	d, err := b.parse()
	if err != nil && b.mayPass && b.request.Memory.Refusal() == memory.None {
		b.language, w.Source = inUnread, b.request.Body
		return nil
	}
	if err != nil {
		return err
	}
	w.Object, w.Source = d, b.request.Body
	switch {
	case b.language == inCBOR:
		w.EditedType = valueJSON
	case b.language != inJSON || b.isUntyped:
		w.ContentType = valueJSON
	}
	return nil
}

// parse reads the body, in whatever language it is.
func (b *bodyReader) parse() (*document.Document, error) {
	if err := b.transcode(); err != nil {
		return nil, err
	}
	d, err := b.request.Parse(b.text(), b.request.Limits.Sent)
	if err != nil {
		return nil, notJSON(err)
	}
	return d, nil
}

// text returns the body as JSON, once it was made so.
func (b *bodyReader) text() []byte {
	if b.json != nil {
		return b.json
	}
	return b.request.Body
}

// mayBeEmpty reports whether the request needs no body.
func (b *bodyReader) mayBeEmpty() bool {
	i, r, o := &b.request.Info, b.request.Resource, b.operation
	if !i.HasBody() {
		return o == nil || len(o.Bodies) == 0 || o.MayBeEmpty
	}
	if o != nil && o.MayBeEmpty && (i.Verb == resource.VerbCreate || r.Envelope == resource.Bare) {
		return true
	}
	return r != nil && r.Writes.EmptyBodies && (i.Verb == resource.VerbCreate || r.Operation != nil)
}

var (
	valueJSON       = []byte(storage.JSON)
	valueApplyPatch = []byte(storage.ApplyPatchType)
)

// notJSON returns the Status of a body that the strict parser refused.
func notJSON(err error) error {
	var at *document.Error
	switch {
	case errors.As(err, &at) && at.Code == document.TooLarge:
		return status.RequestEntityTooLarge("%s", at.Error())
	case errors.As(err, &at):
		return status.BadRequest("the body must be JSON that can be read in one way only: %s", at.Error())
	}
	return err
}

// decodePatch reads the body as a patch.
func (b *bodyReader) decodePatch(w *storage.Write) error {
	if err := b.decode(w); err != nil {
		return err
	}
	w.Patch, w.Object, w.Source, w.ContentType = w.Object, nil, nil, nil
	if w.EditedType != nil {
		w.EditedType = valueApplyPatch
	}
	return nil
}
