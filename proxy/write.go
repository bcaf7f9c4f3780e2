package proxy

import (
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/proxy/explaining"
)

// A write leads an attempt from its body to the backend. There is another attempt if another writer came between.
type write struct {
	name string
	try  func(*request, attempt) error
}

// writes has for each verb how an object is written, if its body is in JSON or in a language that becomes JSON. A verb
// without one passes as the client sent it.
var writes = [resource.NumVerbs]write{
	resource.VerbCreate:           {"create", create},
	resource.VerbUpdate:           {"update", update},
	resource.VerbPatch:            {"patch", patch},
	resource.VerbDelete:           {"delete", deleteObject},
	resource.VerbDeleteCollection: {"deletecollection", deleteCollection},
}

// writeOf returns how the requests of an operation write.
func writeOf(s *scope) write {
	switch of := writes[s.verb]; {
	case of.try == nil, s.verb.HasBody() && !s.hasBody:
		return passingWrite
	case !s.hasBody:
		return of
	case s.scaler != nil:
		return write{"scale", scale}
	case s.isOperation:
		return writes[resource.VerbCreate]
	default:
		return of
	}
}

// passingWrite sends the body on as it came.
var passingWrite = write{"pass", pass}

// writeFor returns how the request writes: bodies of some languages are written in another way.
func writeFor(r *request) write {
	switch {
	case !r.scope.hasBody:
		return r.scope.write
	case r.Patch == storage.FormPatch:
		return write{"patch a form", patchForm}
	case r.body.language == inForm:
		return write{"admit a form", admitForm}
	case r.body.language == inBytes:
		return write{"pass bytes", passBytes}
	case r.body.language == inBeyond:
		return write{"admit unread", admitUnread}
	case r.scope.isOpaque(r.Request):
		return passingWrite
	}
	return r.scope.write
}

// change is the stage of a write: it reads the body and admits the object, again if another writer came between.
func change(r *request) error {
	warnings := len(r.Warnings)
	at(r.telemetry.explanation, explaining.Body, nil)
	r.body.mayPass = r.scope.passesUnread(r.Request)
	if err := readBody(r, r.scope.operation); err != nil {
		return err
	}
	if r.Info.IsObject() { // one that another writer may change at the same time
		if err := r.scope.storage.Lock(r.Request, r.scope.hasBody && r.scope.isOpaque(r.Request)); err != nil {
			return err
		}
	}
	defer r.Unlock()
	return retry(r, writeFor(r), warnings)
}

const (
	// maxAttempts bounds how often one write is admitted when other writers keep coming between.
	maxAttempts = 16
	// maxNames bounds how many names are tried for an object that leaves its name to the server, as in
	// Kubernetes (META-3).
	maxNames = 8
)

// retry makes attempts at a write until one is not in conflict with another writer, a bounded number of times.
// A write that the client pinned to a version itself is never tried again. Only so many warnings are not of an attempt.
func retry(r *request, how write, warnings int) error {
	for n := 1; ; n++ {
		a := r.attempt
		a.Begin(r.Request)
		if a.Info.Verb != resource.VerbPatch {
			a.Declared = r.body.declared
		}
		err := how.try(r, a)
		r.telemetry.noteObject(a.Info.Name)
		switch {
		case err == nil:
			return completeAnswer(r, &a.Info)
		case err == storage.ErrNotSent, err == storage.ErrUnseen:
			return err
		case err == storage.ErrAnswered:
			return completeAnswer(r, &a.Info)
		case err == storage.ErrNameTaken && n == maxNames:
			return status.GenerateNameConflict(a.Info.GroupResource(), a.Info.Name, 1)
		case err == storage.ErrConflict && isPinned(r, a) && !a.IsPinned && a.Existing.IsPinnedByHeader():
			return status.PreconditionFailed(a.Info.GroupResource(), a.Info.Name, status.ModifiedMessage)
		case err == storage.ErrConflict && (n == maxAttempts || isPinned(r, a)):
			// of a request that the server has authorized
			return a.Conflict()
		case err != storage.ErrNameTaken && err != storage.ErrConflict:
			if err = orForbidden(r, err); r.permission.refusal != nil || !maySee(r) {
				return err // the server looks first whether the client may write at all
			}
			return r.scope.storage.Refusal(a.Write, err)
		}
		a.Release()
		r.asked.Release()
		r.incoming.Memory.Reopen()
		a.forget()
		r.Warnings = r.Warnings[:warnings]
	}
}

// isPinned reports whether the client itself named the version that it means to change.
func isPinned(r *request, a attempt) bool {
	if a.IsPinned || a.Existing.IsCompared { // what the gateway has compared, it compares again
		return a.IsPinned
	}
	return r.incoming.Head.Has(message.FieldIfMatch) || r.incoming.Head.Has(message.FieldIfNoneMatch)
}
