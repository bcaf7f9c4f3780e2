package proxy

import (
	"github.com/valyala/fasthttp"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// What a Kubernetes API server adds to the objects of its own kinds only the server can tell. Where the configuration says
// so, it is asked by a dry run of what would be sent to it; what it answers is what validating policies judge, and
// what is sent then is pinned to the version that the answer was made of.

// judgesResult tells whether validating policies judge what the server would make of the object.
func (x *exchange) judgesResult() bool {
	if !x.gateway.admitOnResult || x.upstream.plain {
		return false
	}
	operation, ok := admission.OperationOf(x.info.Verb)
	if x.creates {
		operation = admission.Create
	}
	return ok && x.set.Admission().Judges(&x.info, operation)
}

// askResult has the server tell what it would store. Where it refuses the object its answer is the client's.
func (x *exchange) askResult() error {
	if !x.judgesResult() {
		return nil
	}
	x.sent = x.content()
	if err := x.dryRun(x.sent, valueJSON); err != nil {
		return err
	}
	switch code := x.dryAnswer.StatusCode(); {
	case code == fasthttp.StatusConflict && x.versioned, code == fasthttp.StatusOK && x.creates:
		return errRaced
	case code == fasthttp.StatusCreated && x.info.Verb == resource.VerbUpdate && !x.creates:
		x.pinCreation()
	case !isDone(code):
		x.dryAnswer.CopyTo(&x.ctx.Response)
		return errAnswered
	}
	const unreadable = "what would be stored, which has to be judged, must be a JSON object that the gateway can read"
	result, err := document.Parse(x.dryAnswer.Body(), x.gateway.storedLimits)
	if err != nil {
		return status.BadGateway(unreadable)
	}
	x.result = result
	switch root := result.Root(); {
	case root.Kind() != document.Object:
		return status.BadGateway(unreadable)
	case textIn(root, "kind") == "Status" && textIn(root, "apiVersion") == "v1":
		// What a binding or an eviction comes to is no object, so that policies judge what was sent.
		result.Release()
		x.result = nil
		return nil
	}
	x.pinResult()
	return nil
}

// pinResult makes the write that follows fail where it would not come to what was judged: for another version, or under
// another name.
func (x *exchange) pinResult() {
	metadata := metadataOf(x.result)
	switch x.info.Verb {
	case resource.VerbUpdate:
		version := textIn(metadata, "resourceVersion")
		if x.creates || version == "" {
			return
		}
		sent := ensureMetadata(x.doc)
		if textIn(sent, "resourceVersion") == "" {
			x.doc.SetString(sent, "resourceVersion", version)
			x.versioned = true
		}
		if uid := textIn(metadata, "uid"); uid != "" && x.namesObject() && textIn(sent, "uid") == "" {
			x.doc.SetString(sent, "uid", uid)
		}
	case resource.VerbCreate:
		name, sent := textIn(metadata, "name"), metadataOf(x.doc)
		if name == "" || x.info.Subresource != "" || textIn(sent, "generateName") == "" || textIn(sent, "name") != "" {
			return
		}
		x.doc.SetString(sent, "name", name)
		x.info.Name, x.generated = name, true
	}
}

// judgedObject is the object that policies see.
func (x *exchange) judgedObject() *document.Document {
	if x.result != nil {
		return x.result
	}
	return x.doc
}

// warnOfResult tells a client whose object was denied what the server warned of; else the server itself does.
func (x *exchange) warnOfResult() {
	if x.result == nil {
		return
	}
	var lines []string
	for _, line := range x.dryAnswer.Header.PeekAll(fasthttp.HeaderWarning) {
		lines = append(lines, string(line))
	}
	warnings, _ := utilnet.ParseWarningHeaders(lines)
	for _, w := range warnings {
		x.warnings = append(x.warnings, w.Text)
	}
}
