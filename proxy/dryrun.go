package proxy

import (
	"bytes"

	"github.com/valyala/fasthttp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/upstream"
	"github.com/admission-gateway/gateway/internal/wire"
)

// What results from a patch before a Kubernetes API server only that server can tell: it knows who owns which field, how
// its own kinds are merged and what its webhooks add. So the server is asked first, by a dry run of the client's own
// patch; what it answers is judged, and the patch that follows is pinned to the version that the answer was made of.

// readPatch is the one reading of a patch for a Kubernetes backend.
func (x *exchange) readPatch() error {
	if err := x.parse(); err != nil {
		return err
	}
	x.patch, x.doc = x.doc, nil
	want := document.Object
	if x.patchType == jsonPatch {
		want = document.Array
	}
	if got := x.patch.Root().Kind(); got != want {
		return status.BadRequest("the body must be %s, not %s", article(want), article(got))
	}
	x.named = textIn(metadataOf(x.patch), "resourceVersion") != ""
	return nil
}

// askServer has the server tell what the patch results in. Where it refuses the patch its answer is the client's.
func (x *exchange) askServer() error {
	if err := x.dryRun(x.body, nil); err != nil {
		return err
	}
	switch x.dryAnswer.StatusCode() {
	case fasthttp.StatusOK:
	case fasthttp.StatusCreated:
		x.creates = true
	default:
		x.dryAnswer.CopyTo(&x.ctx.Response)
		return errAnswered
	}
	const unreadable = "what would result from the patch, which has to be judged, must be a JSON object that the gateway can read"
	result, err := document.Parse(x.dryAnswer.Body(), x.gateway.storedLimits)
	if err != nil {
		return status.BadGateway(unreadable)
	}
	x.doc = result
	if result.Root().Kind() != document.Object {
		return status.BadGateway(unreadable)
	}
	return nil
}

// dryRun asks the server for what the request would come to with a body, which is of the client's type unless another one is
// given.
func (x *exchange) dryRun(body, contentType []byte) error {
	f := x.forwarding()
	f.Target, f.Length = x.dryRunTarget(), int64(len(body))
	f.Skip = wire.Fields(wire.FieldAccept, wire.FieldAcceptEncoding)
	f.Extra = append(x.extra[:0], wire.Header{Name: nameAccept, Value: valueJSON}, wire.Header{Name: nameAcceptEncoding, Value: valueIdentity})
	if contentType != nil {
		f.Skip |= wire.Fields(wire.FieldContentType)
		f.Extra = append(f.Extra, wire.Header{Name: nameContentType, Value: contentType})
	}
	x.head = x.conn.head.AppendForward(x.head[:0], f)
	x.call = upstream.Request{Head: x.head, Body: body, Idempotent: true, Whole: 2 * x.gateway.bodyLimit, Deadline: x.deadline()}
	x.asked = true
	x.dryAnswer.Reset()
	return x.upstream.client.Do(&x.call, &x.dryAnswer)
}

// dryRunTarget is the client's own target, as a dry run.
func (x *exchange) dryRunTarget() []byte {
	x.target = append(x.target[:0], x.conn.head.Target...)
	switch {
	case x.info.Options.DryRun:
		return x.target
	case bytes.IndexByte(x.target, '?') < 0:
		return append(x.target, "?dryRun=All"...)
	}
	return append(x.target, "&dryRun=All"...)
}

// fetchPatched reads what is patched where something on the way depends on it.
func (x *exchange) fetchPatched() error {
	if x.creates || !x.needsOld() {
		return nil
	}
	return x.readPatched()
}

// readPatched reads what is patched, which must still be what the server was asked about.
func (x *exchange) readPatched() error {
	if err := x.readOld(); err != nil {
		return err
	}
	if textIn(metadataOf(x.old), "resourceVersion") != textIn(metadataOf(x.doc), "resourceVersion") {
		return errRaced
	}
	return nil
}

// readStored reads the stored object where it turns out late that something depends on it.
func (x *exchange) readStored() error {
	if x.patch != nil {
		return x.readPatched()
	}
	return x.readOld()
}

// forwardPatch sends the patch that leads to what was admitted, and to nothing else.
func (x *exchange) forwardPatch() error {
	if err := x.pinPatch(); err != nil {
		return err
	}
	f := x.forwarding()
	f.Length = int64(len(x.sent))
	if x.rebuilt {
		f.Skip = wire.Fields(wire.FieldContentType)
		f.Extra = append(x.extra[:0], wire.Header{Name: nameContentType, Value: valueJSONPatch})
	}
	x.head = x.conn.head.AppendForward(x.head[:0], f)
	x.call = upstream.Request{Head: x.head, Body: x.sent, Deadline: x.deadline(), Verbatim: &x.verbatim}
	if err := x.upstream.client.Do(&x.call, &x.ctx.Response); err != nil {
		return err
	}
	// The dry run has shown that the server takes the patch, so that only the pin can be what it refuses now.
	switch code := x.code(); {
	case code == fasthttp.StatusConflict && !x.named:
		x.dropAnswer()
		return errRaced
	}
	return nil
}

// pinPatch makes the body of the patch: the client's own where no policy changed the result, with the version that it is
// pinned to. What policies changed goes into a configuration that is applied, so that the client owns its fields as it
// would without the gateway; in any other patch who owns what follows from the result alone.
func (x *exchange) pinPatch() error {
	version := textIn(metadataOf(x.doc), "resourceVersion")
	if version == "" && !x.creates {
		return status.BadGateway("the result of the patch has no resourceVersion, so that the write cannot be pinned to what was judged")
	}
	edited := x.doc.Edited()
	switch {
	case x.patchType == applyPatch:
		if edited {
			if err := x.foldEdits(); err != nil {
				return err
			}
		}
		if x.creates {
			version = noVersion
		}
		x.patch.SetString(ensureMetadata(x.patch), "resourceVersion", version)
	case edited:
		if x.old == nil {
			if err := x.readPatched(); err != nil {
				return err
			}
		}
		x.edited = append(x.edited[:0], '[')
		x.edited = document.AppendDifference(x.edited, x.old.Root(), x.doc.Root(), serverFields)
		if len(x.edited) > 1 {
			x.edited = append(x.edited, ',')
		}
		x.edited = append(appendPin(x.edited, version), ']')
		x.sent, x.rebuilt = x.edited, true
		return nil
	case x.patchType == jsonPatch:
		x.patch.Append(x.patch.Root(), appendPin(nil, version))
	default:
		x.patch.SetString(ensureMetadata(x.patch), "resourceVersion", version)
	}
	x.edited = x.patch.AppendTo(x.edited[:0])
	x.sent = x.edited
	return nil
}

// foldEdits makes the changes that policies made of the result changes of the applied configuration.
func (x *exchange) foldEdits() error {
	asked, err := document.Parse(x.dryAnswer.Body(), x.gateway.storedLimits)
	if err != nil {
		return err
	}
	defer asked.Release()
	kind := schema.FromAPIVersionAndKind(textIn(x.doc.Root(), "apiVersion"), textIn(x.doc.Root(), "kind"))
	x.set.MergeType(x.info.GroupVersionResource(), kind).Fold(x.patch, asked.Root(), x.doc.Root())
	return nil
}

// noVersion is a version that no object has, for the first revision of a store is that of an empty one. The server does not
// look at the version in a configuration whose object it creates, and refuses the configuration where there is one by then.
const noVersion = "1"

// serverFields are the members of metadata that the server alone decides about, for any writer.
var serverFields = [][]string{
	{"metadata", "managedFields"}, {"metadata", "generation"}, {"metadata", "resourceVersion"}, {"metadata", "uid"}, {"metadata", "creationTimestamp"},
}

// appendPin appends the operation of a JSON patch that makes the server refuse it for any other version.
func appendPin(to []byte, version string) []byte {
	to = append(to, `{"op":"add","path":"/metadata/resourceVersion","value":`...)
	return append(document.AppendString(to, version), '}')
}
