package proxy

import (
	"net/http"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/proxy/explaining"
)

// passDocumented is the way of an operation that a document describes and that is no verb of a resource. Its body is
// checked by the schema of its media type, and sent on byte for byte. Nothing stored is read.
func (h *handler) passDocumented() error {
	o, head := h.scope.operation, &h.incoming.Head
	if o == nil || len(o.Bodies) == 0 {
		return h.passThrough()
	}
	at(h.trail.story, explaining.Body, nil)
	if !head.HasBody() {
		return h.passEmpty(o)
	}
	if !h.checksBody(o) {
		return h.passUnread()
	}
	if err := h.body.read(o); err != nil {
		return err
	}
	if len(h.request.Body) == 0 {
		return h.passEmpty(o)
	}
	if err := h.checkBody(); err != nil {
		return err
	}
	return h.passThrough()
}

// checksBody reports whether the media type of the request's body is one that the gateway reads, or none that is declared.
func (h *handler) checksBody(o *contract.Operation) bool {
	media, ok := message.ParseMediaType(h.incoming.Head.Value(message.FieldContentType))
	if !ok {
		return true
	}
	declared := o.BodyOf(media.Name)
	return declared == nil || declared.As != contract.AsBytes && declared.Schema != nil
}

// passEmpty is the way of a request without a body.
func (h *handler) passEmpty(o *contract.Operation) error {
	if !o.MayBeEmpty {
		return status.BadRequest("the body must not be empty")
	}
	return h.passUnread()
}

// passUnread is the way of a request of which the body is not read.
func (h *handler) passUnread() error {
	if wrong := h.admission.parameters; len(wrong) > 0 {
		return h.request.Invalid("", wrong, 0)
	}
	return h.passThrough()
}

// checkBody checks the body of a documented operation by what its media type declares, and names what is wrong with the
// parameters with what is wrong with it.
func (h *handler) checkBody() error {
	wrong, more := h.admission.parameters, 0
	if declared := h.body.declared; declared != nil && declared.Schema != nil {
		w := h.write
		w.Begin(h.request)
		var err error
		if declared.Form != nil {
			err = h.body.decodeForm(w, h.admission)
		} else {
			err = h.body.decode(w)
		}
		if err != nil {
			return err
		}
		h.trail.events.NoteRequest(w.Object)
		wrong = append(wrong[:len(wrong):len(wrong)], h.admission.unread...)
		found, left := h.admission.checkDocumented(declared, w.Object.Root())
		wrong, more = append(wrong, found...), left
	}
	if len(wrong) == 0 {
		return nil
	}
	return h.request.Invalid("", wrong, more)
}

// checkDocumented returns what is wrong with a body.
func (a *admitter) checkDocumented(declared *contract.Body, root document.Node) (wrong field.ErrorList, more int) {
	found := declared.Check(root, a.frame)
	a.countRefused(a.request.Info.Route, found.Errors)
	return contract.Named(a.unread, found.Errors)[len(a.unread):], found.More
}

// redirect answers a path that is described but for the slash at its end with the described one (RFC 9110, 15.4.9).
func (h *handler) redirect() error {
	target := str(h.trail.target)
	if target == "" {
		target = str(h.incoming.Head.Target)
	}
	r := &h.request.Response
	r.Start(http.StatusPermanentRedirect)
	r.Add("Location", withOtherSlash(target))
	return errServed
}

// withOtherSlash returns a target whose path has a slash at the end if it had none, and none if it had one.
func withOtherSlash(target string) string {
	path := str(pathOf([]byte(target)))
	query := target[len(path):]
	if path[len(path)-1] == '/' {
		return path[:len(path)-1] + query
	}
	return path + "/" + query
}

// refuseMethod refuses a method that no file describes at the path of objects which policies or a schema judge: it could
// change them behind their backs.
func (h *handler) refuseMethod() error {
	return status.MethodNotAllowed(h.request.Resource.GroupResource(), string(h.request.Head.Method))
}

// mayWrite reports whether requests of a method may change something.
func mayWrite(i *resource.Info) bool {
	return i.OtherMethod != "" && i.OtherMethod != http.MethodTrace || !i.Verb.IsSafe()
}
