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
func passDocumented(r *request) error {
	o, head := r.scope.operation, &r.incoming.Head
	if o == nil || len(o.Bodies) == 0 {
		return passThrough(r)
	}
	at(r.telemetry.explanation, explaining.Body, nil)
	if !head.HasBody() {
		return passEmpty(r, o)
	}
	if !checksBody(r, o) {
		return passUnread(r)
	}
	if err := readBody(r, o); err != nil {
		return err
	}
	if len(r.Body) == 0 {
		return passEmpty(r, o)
	}
	if err := checkDocumentedBody(r); err != nil {
		return err
	}
	return passThrough(r)
}

// checksBody reports whether the media type of the request's body is one that the gateway reads, or none that is
// declared.
func checksBody(r *request, o *contract.Operation) bool {
	media, ok := message.ParseMediaType(r.incoming.Head.Value(message.FieldContentType))
	if !ok {
		return true
	}
	declared := o.BodyOf(media.Name)
	return declared == nil || declared.As != contract.AsBytes && declared.Schema != nil
}

// passEmpty is the way of a request without a body.
func passEmpty(r *request, o *contract.Operation) error {
	if !o.MayBeEmpty {
		return status.BadRequest("the body must not be empty")
	}
	return passUnread(r)
}

// passUnread is the way of a request of which the body is not read.
func passUnread(r *request) error {
	if wrong := r.parameters; len(wrong) > 0 {
		return r.Invalid("", wrong, 0)
	}
	return passThrough(r)
}

// checkDocumentedBody checks the body of a documented operation by what its media type declares, and names what is
// wrong with the parameters with what is wrong with it.
func checkDocumentedBody(r *request) error {
	wrong, more := r.parameters, 0
	if declared := r.body.declared; declared != nil && declared.Schema != nil {
		a := r.attempt
		a.Begin(r.Request)
		var err error
		if declared.Form != nil {
			err = decodeForm(r, a)
		} else {
			err = decodeBody(r, a)
		}
		if err != nil {
			return err
		}
		r.telemetry.events.NoteRequest(a.Object)
		wrong = append(wrong[:len(wrong):len(wrong)], a.unread...)
		found, left := checkDeclaredBody(r, declared, a.Object.Root())
		wrong, more = append(wrong, found...), left
	}
	if len(wrong) == 0 {
		return nil
	}
	return r.Invalid("", wrong, more)
}

// checkDeclaredBody returns what is wrong with a body.
func checkDeclaredBody(r *request, declared *contract.Body, root document.Node) (wrong field.ErrorList, more int) {
	found := declared.Check(root, r.frame)
	countRefused(r, r.Info.Route, found.Errors)
	return contract.Named(r.attempt.unread, found.Errors)[len(r.attempt.unread):], found.More
}

// redirectToDescribed answers a path that is described but for the slash at its end with the described one (RFC 9110,
// 15.4.9).
func redirectToDescribed(r *request) error {
	target := str(r.telemetry.target)
	if target == "" {
		target = str(r.incoming.Head.Target)
	}
	answer := &r.Response
	answer.Start(http.StatusPermanentRedirect)
	answer.Add("Location", withOtherSlash(target))
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

// refuseMethod refuses a method that no file describes at the path of objects which policies or a schema judge: it
// could change them behind their backs.
func refuseMethod(r *request) error {
	return status.MethodNotAllowed(r.Resource.GroupResource(), string(r.Head.Method))
}

// mayWrite reports whether requests of a method may change something.
func mayWrite(i *resource.Info) bool {
	return i.OtherMethod != "" && i.OtherMethod != http.MethodTrace || !i.Verb.IsSafe()
}
