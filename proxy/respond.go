package proxy

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/upstream"
	"github.com/admission-gateway/gateway/internal/wire"
)

const jsonType = "application/json"

// allowedMethods is the answer to OPTIONS and the Allow header of a 405; unpatched is that of a resource that refuses PATCH.
const (
	allowedMethods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
	unpatched      = "GET, HEAD, POST, PUT, DELETE, OPTIONS"
)

// allowed are the methods that the resource takes.
func (x *exchange) allowed() string {
	if x.res != nil && x.res.RefusesPatch {
		return unpatched
	}
	return allowedMethods
}

// answer completes the backend's answer: an error becomes a Status (ERR-1), and warnings are added (ERR-6).
func (x *exchange) answer() error {
	if x.verbatim.Status != 0 {
		x.warnVerbatim()
		return nil
	}
	r := &x.ctx.Response
	if code := r.StatusCode(); code >= 400 {
		if !x.isHead() && !x.negotiated(r) && (r.IsBodyStream() || !isJSON(r.Header.ContentType()) || !status.IsStatus(r.Body())) {
			return x.backendError(r)
		}
	}
	x.warn(r)
	return nil
}

// negotiated tells whether a Kubernetes backend wrote an error in another language than JSON because the client asked for that.
func (x *exchange) negotiated(r *fasthttp.Response) bool {
	if x.upstream.plain {
		return false
	}
	media, _, _ := bytes.Cut(r.Header.ContentType(), []byte(";"))
	switch string(bytes.TrimSpace(media)) {
	case "application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor":
		return true
	}
	return false
}

// backendError is the Status of an error answer of the backend.
func (x *exchange) backendError(r *fasthttp.Response) error {
	var body []byte
	if !r.IsBodyStream() && len(r.Header.ContentEncoding()) == 0 {
		body = r.Body()
	}
	if r.StatusCode() < 400 {
		return status.BadGateway("the backend answered a read of the stored object with a code that the gateway cannot use")
	}
	return status.FromBackend(status.BackendAnswer{
		Code:        r.StatusCode(),
		ContentType: string(r.Header.ContentType()),
		RetryAfter:  string(r.Header.Peek(fasthttp.HeaderRetryAfter)),
		Body:        body,
		Resource:    x.info.GroupResource(),
		Name:        x.info.Name,
		Verb:        x.info.Verb,
	})
}

// refuse writes an error as a Status: the one place where the gateway answers for itself.
func (x *exchange) refuse(err error) {
	x.dropAnswer()
	r := &x.ctx.Response
	x.warn(r)
	writeStatus(r, statusOf(err))
	if x.challenge != "" {
		r.Header.Set(fasthttp.HeaderWWWAuthenticate, x.challenge)
	}
	if r.StatusCode() == fasthttp.StatusMethodNotAllowed {
		r.Header.Set(fasthttp.HeaderAllow, x.allowed())
	}
	x.tellLimits()
}

// writeStatus makes a Status the answer.
func writeStatus(r *fasthttp.Response, e *status.Error) {
	s := &e.ErrStatus
	r.Header.SetContentType(jsonType)
	r.SetStatusCode(int(s.Code))
	if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		r.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(int(s.Details.RetryAfterSeconds)))
	}
	r.SetBodyRaw(status.AppendJSON(nil, s))
}

// statusOf gives any error of the way its Status.
func statusOf(err error) *status.Error {
	var bad *wire.Error
	if errors.As(err, &bad) {
		return status.Coded(bad.Code, bad.Message)
	}
	var failed *upstream.Error
	if errors.As(err, &failed) {
		switch failed.Kind.Code() {
		case fasthttp.StatusServiceUnavailable:
			return status.ServiceUnavailable(failed.Error(), failed.RetryAfter)
		case fasthttp.StatusGatewayTimeout:
			return status.Timeout(failed.Error(), failed.RetryAfter)
		default:
			return status.BadGateway(failed.Error())
		}
	}
	return status.From(err)
}

// warn adds the warnings gathered on the way.
func (x *exchange) warn(r *fasthttp.Response) {
	if len(x.warnings) == 0 {
		return
	}
	for _, h := range status.WarningHeaders(x.warnings) {
		r.Header.Add(fasthttp.HeaderWarning, h)
	}
	x.warnings = x.warnings[:0]
}

// warnVerbatim adds them to an answer of the backend that is passed on as it came.
func (x *exchange) warnVerbatim() {
	for _, h := range status.WarningHeaders(x.warnings) {
		x.verbatim.AddLine(fasthttp.HeaderWarning + ": " + h + "\r\n")
	}
}

// endless tells whether the answer consists of events, so that a shutdown may end it after any of them: a watch, of paths too that
// no policy file describes. Of any other answer the client would take a part for the whole.
func (x *exchange) endless() bool {
	watch, _ := x.info.Param("watch")
	media, _, _ := bytes.Cut(x.ctx.Response.Header.ContentType(), []byte(";"))
	return x.info.Options.Watch || !x.info.IsResource && (watch == "true" || watch == "1") ||
		bytes.EqualFold(bytes.TrimSpace(media), []byte("text/event-stream"))
}

// dropAnswer forgets an answer of the backend that is not passed on, and frees its connection.
func (x *exchange) dropAnswer() {
	_ = x.ctx.Response.CloseBodyStream()
	x.verbatim.Status = 0
	x.conn.ownAnswer(x.ctx)
}

// answerOptions tells which methods there are (RES-4).
func (x *exchange) answerOptions() error {
	x.ctx.Response.SetStatusCode(fasthttp.StatusNoContent)
	x.ctx.Response.Header.Set(fasthttp.HeaderAllow, x.allowed())
	return nil
}

// answerDryRun answers with what would have been stored: a plain backend knows no dry run, so nothing may reach it.
func (x *exchange) answerDryRun() error {
	r := &x.ctx.Response
	r.Header.SetContentType(jsonType)
	switch x.info.Verb {
	case resource.VerbUpdate:
		if x.creates {
			r.SetStatusCode(fasthttp.StatusCreated)
		}
	case resource.VerbCreate:
		r.SetStatusCode(fasthttp.StatusCreated)
	case resource.VerbDelete, resource.VerbDeleteCollection:
		r.SetBodyString(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}`)
		return nil
	}
	r.SetBody(x.content())
	return nil
}
