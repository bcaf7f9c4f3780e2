package proxy

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/wire"
)

// storeForm makes of the object that was admitted what is stored: the version is the backend's to tell, and no part of it.
func (x *exchange) storeForm() error {
	if x.doc == nil || !x.info.HasBody() {
		return nil
	}
	if x.emulatesMetadata(resource.ResourceVersions) && x.aboutObject() {
		if at, found := metadataOf(x.doc).Get("resourceVersion"); found {
			x.doc.Remove(at)
		}
	}
	if x.pin == pinField {
		stored, _ := find(x.old.Root(), x.res.Fields.Version)
		return x.unplaced(setAt(x.doc, x.res.Fields.Version, stored.Raw()))
	}
	return nil
}

// completeWrite makes the answer to a write what a real API server answers: the object as it is stored, with its version
// (RW-1). Backends answer with anything, from the object to nothing.
func (x *exchange) completeWrite() error {
	if !x.writesWhole() && !x.scaling && !x.finishing {
		return nil
	}
	code := fasthttp.StatusOK
	if x.info.Verb == resource.VerbCreate || x.creates {
		code = fasthttp.StatusCreated
	}
	if x.marking {
		code = x.markedCode()
	}
	if x.completeFinish(); x.settled {
		if len(x.version) == 0 {
			if err := x.storeForm(); err != nil {
				return err
			}
		}
		x.answerObject(x.doc, code)
		return nil
	}
	switch x.code() {
	case fasthttp.StatusCreated:
		if x.old == nil {
			code = fasthttp.StatusCreated // nobody had looked whether the object was there
		}
	case fasthttp.StatusOK, fasthttp.StatusNoContent, fasthttp.StatusNonAuthoritativeInfo:
	default:
		return nil // an error, or what is not done yet
	}
	etag, body := x.backendETag(), x.verbatim.Body()
	if x.verbatim.Status == 0 {
		body = x.ctx.Response.Body()
	}
	object, told := x.objectIn(body)
	if object != x.doc {
		defer object.Release()
	}
	if told {
		x.version = versionOf(x.version[:0], x.res, object.Root(), etag)
	} else if x.version = x.version[:0]; x.res.Fields.Version == nil && x.res.Versions == resource.ETagVersions {
		x.version = appendVersion(x.version, etag)
	}
	known := len(x.version) > 0
	if !x.emulatesMetadata(resource.ResourceVersions) {
		known = told
	}
	if !known {
		if current, etag := x.readBack(); current != nil {
			defer current.Release()
			object, x.version = current, versionOf(x.version[:0], x.res, current.Root(), etag)
		}
	}
	if object != x.doc {
		x.completeAnswer(object)
	}
	x.answerObject(object, code)
	return nil
}

// backendETag is the ETag of the backend's answer.
func (x *exchange) backendETag() []byte {
	if x.verbatim.Status != 0 {
		x.verbatim.ReadHead(&x.answerHead)
		return x.answerHead.Value(wire.FieldETag)
	}
	return x.ctx.Response.Header.Peek(fasthttp.HeaderETag)
}

// objectIn is the object in the backend's answer, and whether it tells what is stored: backends also answer with nothing, or
// with something else. Where it is what was sent, or none, it is the one that was sent.
func (x *exchange) objectIn(body []byte) (object *document.Document, told bool) {
	if bytes.Equal(body, x.sent) {
		// What changes with every write would not be the same.
		return x.doc, x.res.Fields.Version == nil
	}
	d, err := document.Parse(body, x.gateway.storedLimits)
	if err != nil {
		return x.doc, false
	}
	if d.Root().Kind() != document.Object || textIn(metadataOf(d), "name") != x.info.Name {
		d.Release()
		return x.doc, false
	}
	return d, true
}

// readBack reads the object that was written, where the answer to the write did not tell its version. Object and version are
// of one answer, so that they belong together even where another writer has come since. It returns nil where that fails:
// what was written is known anyway.
func (x *exchange) readBack() (*document.Document, []byte) {
	if x.old != nil {
		x.old.Release()
		x.old = nil
	}
	path := x.itemPath()
	if x.info.Verb == resource.VerbCreate {
		var err error
		if path, err = x.createdPath(); err != nil {
			return nil, nil
		}
	}
	if err := x.get(path); err != nil || x.oldAnswer.StatusCode() != fasthttp.StatusOK {
		return nil, nil
	}
	d, err := document.Parse(x.oldAnswer.Body(), x.gateway.storedLimits)
	if err != nil {
		return nil, nil
	}
	if d.Root().Kind() != document.Object {
		d.Release()
		return nil, nil
	}
	return d, x.oldAnswer.Header.Peek(fasthttp.HeaderETag)
}

// completeAnswer gives an object of the backend what a client that reads it would see.
func (x *exchange) completeAnswer(object *document.Document) {
	e := newFilling(x)
	defer e.release()
	_ = e.EditItem(object) // what is stored is known to be complete but for what the backend made of it
}

// answerObject makes an object with its version the answer. Headers of the backend's answer stay where that was an answer of
// this kind.
func (x *exchange) answerObject(object *document.Document, code int) {
	if len(x.version) > 0 && x.emulatesMetadata(resource.ResourceVersions) {
		setVersion(object, object.Root(), x.version)
	}
	if x.scaling {
		x.edited = x.appendScale(x.edited[:0], object)
	} else {
		x.edited = object.AppendTo(x.edited[:0])
	}
	if head := &x.answerHead; x.verbatim.Status == code && isJSON(head.Value(wire.FieldContentType)) && !x.readsBack {
		for _, name := range exactBytes {
			head.Drop(name)
		}
		x.verbatim.Rewrite(head, x.edited)
		return
	}
	etag := string(x.answeredETag())
	x.dropAnswer()
	r := &x.ctx.Response
	r.SetStatusCode(code)
	r.Header.SetContentType(jsonType)
	if etag != "" {
		r.Header.SetCanonical(nameETag, []byte(etag))
	}
	x.edited = r.SwapBody(x.edited)
}

// answeredETag is the ETag of the object in the answer.
func (x *exchange) answeredETag() []byte {
	switch {
	case x.readsBack:
		return x.oldAnswer.Header.Peek(fasthttp.HeaderETag)
	case x.settled && x.pin == pinMatch:
		return x.pinned
	case x.settled:
		return nil
	}
	return x.backendETag()
}
