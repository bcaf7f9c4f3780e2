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

// body is what is known of the body of a request.
type body struct {
	language language
	// isUntyped is set if the body came without a type, and is JSON.
	isUntyped bool
	isJSON    bool // what the client sent has been made JSON, if it was not
	// parsed is the object in the body, if that was parsed already; decodeBody takes it.
	parsed *document.Document
	// mayPass is set if nothing in force reads the body.
	mayPass bool
	message *protobuf.Message // of a body in protobuf
	beyond  *protobuf.Beyond  // why the gateway cannot read it
	json    []byte            // the JSON of a body that is sent as it came unless it is edited

	declared *contract.Body // what the API's document declares for the media type of the body, or nil
	boundary string         // between the parts of a form
	// nullRemoves says that the client calls its patch a merge patch, in which null removes a member.
	nullRemoves bool
}

// checkMediaType lets only types pass that the gateway reads itself or that the API's document declares, in an encoding
// that the gateway reads.
func checkMediaType(r *request, declared *contract.Operation) error {
	head, i := &r.incoming.Head, &r.Info
	value, types := head.Value(message.FieldContentType), r.scope.storage.MediaTypes()
	sent := message.ParseContentType(value)
	switch {
	case i.Documented != nil:
		return checkDeclaredType(r, value, declared, declared.Accepted())
	case i.Verb == resource.VerbPatch:
		return checkPatchType(r, value, declared)
	case len(value) == 0 && i.IsResource && types.Untyped == storage.JSON:
		r.body.isUntyped = true
		return nil
	case declared != nil && len(declared.Bodies) > 0 &&
		!(sent.Is(storage.YAML) && storage.Has(types.Objects, storage.YAML)):
		return checkDeclaredType(r, value, declared, declared.Accepted())
	}
	objects := types.Objects
	if !i.IsResource {
		objects = storage.JSON
	}
	switch {
	case sent.Is(storage.JSON):
	case storage.Has(objects, storage.YAML) && sent.Is(storage.YAML):
		r.body.language = inYAML
	case storage.Has(objects, storage.Protobuf) && sent.Is(storage.Protobuf) && !sent.Charset:
		if i.HasBody() && (r.Resource != nil || !mayBeKubernetes(i.Group)) &&
			!r.gateway.protobuf.Knows(i.GroupVersionResource().GroupVersion()) {
			return status.UnsupportedMediaType(withoutProtobuf) // custom resources have none
		}
		r.body.language = inProtobuf
	case types.CBOR && sent.Is(storage.CBOR) && !sent.Charset:
		r.body.language = inCBOR
	default:
		return status.UnsupportedMediaType(objects)
	}
	return nil
}

// mayBeKubernetes reports whether a group may be one of Kubernetes itself, of this version or a later one.
func mayBeKubernetes(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// checkDeclaredType lets only types pass that the API's document declares. The accepted ones are named otherwise.
func checkDeclaredType(r *request, value []byte, o *contract.Operation, accepted string) error {
	media, ok := message.ParseMediaType(value)
	declared := o.BodyOf(media.Name)
	switch {
	case !ok || declared == nil:
		return status.UnsupportedMediaType(accepted)
	case declared.As == contract.AsBytes:
		r.body.language = inBytes
		return nil
	case declared.As == contract.AsParts:
		r.body.boundary = media.Boundary
	case !message.ParseContentType(value).Is(media.Name):
		return status.UnsupportedMediaType(accepted)
	}
	if r.body.declared = declared; declared.Form != nil {
		r.body.language = inForm
	}
	return nil
}

// checkEncoding lets only encodings pass that the gateway reads.
func checkEncoding(r *request) (isEncoded bool, err error) {
	encoding := r.incoming.Head.Value(message.FieldContentEncoding)
	if len(encoding) == 0 || bytes.EqualFold(encoding, []byte("identity")) || r.body.language == inBytes {
		return false, nil
	}
	if accepted := r.scope.storage.MediaTypes().Encodings; accepted == "" || !compress.IsReadable(encoding) {
		return false, status.UnsupportedEncoding(string(encoding), accepted)
	}
	return true, nil
}

// decompressBody makes of an encoded body what it stands for. That is admitted, and sent on: no server can read it in
// another way than the gateway did.
func decompressBody(r *request) error {
	encoding, limit := r.incoming.Head.Value(message.FieldContentEncoding), r.Limits.Body
	err := replaceBody(r, int64(compress.Memory(encoding)), func() ([]byte, error) {
		taken := 0
		defer func() { r.Memory.Shrink(taken) }()
		text, err := compress.Decode(r.Body, encoding, limit, func(bytes int) bool {
			taken += bytes
			return r.Memory.Grow(bytes)
		})
		switch err {
		case nil:
			return text, nil
		case compress.ErrMemory:
			return nil, r.Exhausted()
		case compress.ErrTooLarge:
			return nil, status.RequestEntityTooLarge("the body must be at most %d bytes when it is decoded", limit)
		}
		return nil, status.BadRequest("the body must be encoded as its Content-Encoding says: it %s", err.Error())
	})
	r.incoming.Head.Drop(aboutCoding)
	return err
}

// aboutCoding are the headers of a body that its encoding decides about.
var aboutCoding = message.Fields(message.FieldContentEncoding)

// aboutBytes are the headers that speak of the very bytes of a body (RFC 9530).
var aboutBytes = message.Fields(message.FieldDigest)

// withoutProtobuf are the types of kinds that have no protobuf.
const withoutProtobuf = storage.JSON + ", " + storage.YAML

// checkPatchType reads the language of a patch.
func checkPatchType(r *request, value []byte, declared *contract.Operation) error {
	sent := message.ParseContentType(value)
	for name := range strings.SplitSeq(r.scope.storage.MediaTypes().Patches, ", ") {
		if sent.Is(name) {
			r.Patch = patchTypeOf(name)
			r.body.declared, r.body.nullRemoves = declared.PatchBody(name), name == storage.MergePatchType
			return nil
		}
	}
	if r.scope.storage.MediaTypes().CBOR && sent.Is(storage.ApplyPatchCBORType) && !sent.Charset {
		r.Patch, r.body.language = storage.ApplyPatch, inCBOR
		return nil
	}
	accepted := acceptedPatches(r, declared)
	if !takesForms(r, declared) {
		return status.UnsupportedMediaType(accepted)
	}
	r.Patch = storage.FormPatch
	return checkDeclaredType(r, value, declared, accepted)
}

// takesForms reports whether the API's document declares forms for the patch, and the backend gets it as it is: of no
// other form could be said what becomes of its files.
func takesForms(r *request, declared *contract.Operation) bool {
	described := r.Resource
	return declared != nil && declared.Forms() != "" && r.Info.Verb == resource.VerbPatch && r.Info.Subresource == "" &&
		described != nil && described.Envelope == resource.Bare && described.Backend.Patch == resource.PatchValidated
}

// acceptedPatches returns the media types of patches as answers show them.
func acceptedPatches(r *request, declared *contract.Operation) string {
	accepted := r.scope.storage.MediaTypes().ShownPatches()
	if takesForms(r, declared) {
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

// transcodeBody makes JSON of a body that is written in another language. The JSON is admitted, and sent on: no server
// can read it in another way than the gateway did.
func transcodeBody(r *request) error {
	if r.body.isJSON {
		return nil
	}
	memory, read, err := readerOfBody(r)
	if read == nil || err != nil {
		return err
	}
	r.body.isJSON = true
	if r.body.language != inCBOR {
		return replaceBody(r, memory, read)
	}
	if r.body.json, err = makeJSON(r, memory, read); err == nil && !r.Memory.Grow(len(r.body.json)) {
		err = r.Exhausted()
	}
	return err
}

// readerOfBody returns what makes JSON of the body, and how much memory that takes. It is nil if the body is JSON.
func readerOfBody(r *request) (memory int64, read func() ([]byte, error), err error) {
	switch {
	case r.body.language == inCBOR:
		memory, read, err = readerOfCBOR(r)
	case r.body.language == inProtobuf:
		memory, read = r.body.message.Memory, r.body.message.JSON
	case r.body.language == inYAML || r.Patch == storage.ApplyPatch:
		memory, read = readerOfYAML(r)
	}
	return memory, read, err
}

// yamlMemory is roughly how many times its own size YAML takes in memory while it is read.
const yamlMemory = 40

// readerOfYAML returns what makes JSON of YAML, which an object in braces is already.
func readerOfYAML(r *request) (memory int64, read func() ([]byte, error)) {
	body := r.Body
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
func readerOfCBOR(r *request) (memory int64, read func() ([]byte, error), err error) {
	limits := r.Limits.Sent
	m, err := cbor.Read(r.Body, cbor.Limits{Bytes: limits.Bytes, Depth: limits.Depth})
	if err != nil {
		return 0, nil, err
	}
	return m.Memory, m.JSON, nil
}

// replaceBody replaces the body by what is made of it. What that takes counts as bodies in flight do.
func replaceBody(r *request, memory int64, read func() ([]byte, error)) error {
	text, err := makeJSON(r, memory, read)
	if err != nil {
		return err
	}
	r.incoming.Head.Drop(aboutBytes)
	r.Body, err = r.incoming.ReplaceBody(text)
	return err
}

// makeJSON makes a text, within the memory and the turn that the request may have for that.
func makeJSON(r *request, memory int64, read func() ([]byte, error)) ([]byte, error) {
	share := r.Memory
	if !share.Grow(int(memory)) {
		return nil, r.Exhausted()
	}
	defer share.Shrink(int(memory))
	if memory >= storage.HeavyText && !share.Work() {
		return nil, r.Exhausted()
	}
	text, err := read()
	if limit := r.Limits.Body; err == nil && int64(len(text)) > limit {
		return nil, status.RequestEntityTooLarge("the object in the body must be at most %d bytes as JSON", limit)
	}
	return text, err
}

// negotiate refuses a request whose client takes no answer that the gateway can give.
func negotiate(r *request) error {
	answers := r.scope.storage.MediaTypes().Answers
	if answers == "" || !r.incoming.Head.Has(message.FieldAccept) {
		return nil
	}
	if r.incoming.Head.Accepts(true, "*/*", "application/*", storage.JSON, storage.YAML) {
		return nil
	}
	return status.NotAcceptable("only the following media types are accepted: " + answers)
}

// readBody reads the body whole, after its type is known to be one that the gateway reads (RES-7).
func readBody(r *request, declared *contract.Operation) error {
	if r.body.mayPass && !isDeletion(&r.Info) {
		r.body.language = inUnread
	}
	if r.body.language == inUnread || !r.incoming.Head.HasBody() {
		return readOpaqueBody(r)
	}
	err := checkMediaType(r, declared)
	isEncoded := false
	if err == nil {
		isEncoded, err = checkEncoding(r)
	}
	switch {
	case err != nil && r.body.mayPass:
		r.body.language = inUnread
		return readOpaqueBody(r)
	case err != nil:
		return err
	}
	if err = readOpaqueBody(r); err == nil && isEncoded {
		err = decompressBody(r)
	}
	if err == nil && r.body.language == inProtobuf && len(r.Body) > 0 {
		err = checkProtobuf(r)
	}
	return err
}

// isDeletion reports whether a body is the options of a deletion. They are read if they can be, for they may ask for a
// dry run.
func isDeletion(i *resource.Info) bool {
	return i.Verb == resource.VerbDelete || i.Verb == resource.VerbDeleteCollection
}

// checkProtobuf finds out whether the gateway knows everything in a body in protobuf.
func checkProtobuf(r *request) (err error) {
	limits := r.Limits.Sent
	r.body.message, err = r.gateway.protobuf.Read(r.Body,
		protobuf.Limits{Bytes: limits.Bytes, Depth: limits.Depth, Accepted: withoutProtobuf})
	switch {
	case err == nil:
	case r.body.mayPass:
		r.body.language = inUnread
	case r.Info.HasBody() && errors.As(err, &r.body.beyond):
		r.body.language = inBeyond
	default:
		return err
	}
	return nil
}

// lookAtBody reads a body that passes as it came, for those who like to know what is in it; nil if it cannot be read.
func lookAtBody(r *request) *document.Document {
	r.body.language = inJSON
	if checkMediaType(r, nil) != nil || r.body.language == inProtobuf && checkProtobuf(r) != nil ||
		r.body.language >= inBeyond {
		r.body.language = inUnread
		return nil
	}
	memory, read, err := readerOfBody(r)
	text := r.Body
	if err == nil && read != nil {
		text, err = makeJSON(r, memory, read)
		r.body.json = text
	}
	r.body.language = inUnread
	if err != nil || !r.Memory.Grow(len(r.body.json)) {
		return nil
	}
	d, err := r.Parse(text, r.Limits.Sent)
	if err != nil {
		return nil
	}
	return d
}

// readOpaqueBody reads the body whole and within bounds, whatever it is.
func readOpaqueBody(r *request) (err error) {
	r.Body, err = r.incoming.ReadBody(r.Limits.Body)
	return err
}

// decodeBody is the one reading of the body. What follows works on its tape; unedited values leave byte
// for byte as they came.
func decodeBody(r *request, a attempt) error {
	switch {
	case r.body.parsed != nil:
		a.Object, a.Source, r.body.parsed = r.body.parsed, r.Body, nil
		return nil
	case r.body.language == inUnread:
		a.Source = r.Body
		return nil
	case len(r.Body) == 0 && !mayBodyBeEmpty(r):
		return status.BadRequest("the body must not be empty")
	case len(r.Body) == 0:
		return nil
	}
	d, err := parseBody(r)
	if err != nil && r.body.mayPass && r.Memory.Refusal() == memory.None {
		r.body.language, a.Source = inUnread, r.Body
		return nil
	}
	if err != nil {
		return err
	}
	a.Object, a.Source = d, r.Body
	switch {
	case r.body.language == inCBOR:
		a.EditedType = valueJSON
	case r.body.language != inJSON || r.body.isUntyped:
		a.ContentType = valueJSON
	}
	return nil
}

// parseBody reads the body, in whatever language it is.
func parseBody(r *request) (*document.Document, error) {
	if err := transcodeBody(r); err != nil {
		return nil, err
	}
	d, err := r.Parse(textOfBody(r), r.Limits.Sent)
	if err != nil {
		return nil, notJSON(err)
	}
	return d, nil
}

// textOfBody returns the body as JSON, once it was made so.
func textOfBody(r *request) []byte {
	if r.body.json != nil {
		return r.body.json
	}
	return r.Body
}

// mayBodyBeEmpty reports whether the request needs no body.
func mayBodyBeEmpty(r *request) bool {
	i, described, o := &r.Info, r.Resource, r.scope.operation
	if !i.HasBody() {
		return o == nil || len(o.Bodies) == 0 || o.MayBeEmpty
	}
	if o != nil && o.MayBeEmpty && (i.Verb == resource.VerbCreate || described.Envelope == resource.Bare) {
		return true
	}
	return described != nil && described.Writes.EmptyBodies &&
		(i.Verb == resource.VerbCreate || described.Operation != nil)
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
func decodePatch(r *request, a attempt) error {
	if err := decodeBody(r, a); err != nil {
		return err
	}
	a.Patch, a.Object, a.Source, a.ContentType = a.Object, nil, nil, nil
	if a.EditedType != nil {
		a.EditedType = valueApplyPatch
	}
	return nil
}
