package proxy

import (
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/proxy/explaining"
)

// An attempt leads a write from its body to the backend. It is made again if another writer came between.
type attempt struct {
	name string
	make func(*handler, *storage.Write) error
}

// attempts has for each verb how a write of an object is made, if its body is in JSON or in a language that becomes
// JSON. What no verb is among them for passes as it came.
var attempts = [resource.NumVerbs]attempt{
	resource.VerbCreate:           {"create", (*handler).create},
	resource.VerbUpdate:           {"update", (*handler).update},
	resource.VerbPatch:            {"patch", (*handler).patch},
	resource.VerbDelete:           {"delete", (*handler).delete},
	resource.VerbDeleteCollection: {"deletecollection", (*handler).deleteCollection},
}

// attemptOf returns how a write of an operation is made.
func attemptOf(s *scope) attempt {
	switch of := attempts[s.verb]; {
	case of.make == nil, s.verb.HasBody() && !s.hasBody:
		return attemptToPass
	case !s.hasBody:
		return of
	case s.scaler != nil:
		return attempt{"scale", (*handler).scale}
	case s.isOperation:
		return attempts[resource.VerbCreate]
	default:
		return of
	}
}

// attemptToPass sends the body on as it came.
var attemptToPass = attempt{"pass", (*handler).pass}

// attempt returns how the write is made: bodies of some languages have a way of their own.
func (h *handler) attempt() attempt {
	switch {
	case !h.scope.hasBody:
		return h.scope.attempt
	case h.request.Patch == storage.FormPatch:
		return attempt{"patch a form", patchForm}
	case h.body.language == inForm:
		return attempt{"admit a form", admitForm}
	case h.body.language == inBytes:
		return attempt{"pass bytes", passBytes}
	case h.body.language == inBeyond:
		return attempt{"admit unread", (*handler).admitUnread}
	case h.scope.isOpaque(h.request):
		return attemptToPass
	}
	return h.scope.attempt
}

// change is the stage of a write: it reads the body and admits the object, again if another writer came between.
func (h *handler) change() error {
	h.kept = len(h.request.Warnings)
	at(h.trail.story, explaining.Body, nil)
	h.body.mayPass = h.scope.passesUnread(h.request)
	if err := h.body.read(h.scope.operation); err != nil {
		return err
	}
	if h.request.Info.IsObject() { // one that another writer may change at the same time
		if err := h.scope.storage.Lock(h.request, h.scope.hasBody && h.scope.isOpaque(h.request)); err != nil {
			return err
		}
	}
	defer h.request.Unlock()
	return h.retry(h.attempt())
}

const (
	// maxAttempts bounds how often one write is admitted when other writers keep coming between.
	maxAttempts = 16
	// maxNames bounds how many names are tried for an object that leaves its name to the server, as in
	// Kubernetes (META-3).
	maxNames = 8
)

// retry makes attempts at a write until one is not in conflict with another writer, a bounded number of times.
// A write that the client pinned to a version itself is never tried again.
func (h *handler) retry(try attempt) error {
	for n := 1; ; n++ {
		w := h.write
		w.Begin(h.request)
		if w.Info.Verb != resource.VerbPatch {
			w.Declared = h.body.declared
		}
		err := try.make(h, w)
		h.trail.noteObject(w.Info.Name)
		switch {
		case err == nil:
			return h.completeAnswer(&w.Info)
		case err == storage.ErrNotSent, err == storage.ErrUnseen:
			return err
		case err == storage.ErrAnswered:
			return h.completeAnswer(&w.Info)
		case err == storage.ErrNameTaken && n == maxNames:
			return status.GenerateNameConflict(w.Info.GroupResource(), w.Info.Name, 1)
		case err == storage.ErrConflict && h.isPinned(w) && !w.IsPinned && w.Existing.IsPinnedByHeader():
			return status.PreconditionFailed(w.Info.GroupResource(), w.Info.Name, status.ModifiedMessage)
		case err == storage.ErrConflict && (n == maxAttempts || h.isPinned(w)): // of a request that the server has authorized
			return w.Conflict()
		case err != storage.ErrNameTaken && err != storage.ErrConflict:
			if err = h.permission.orForbidden(err); h.permission.refusal != nil || !h.permission.maySee() {
				return err // the server looks first whether the client may write at all
			}
			return h.scope.storage.Refusal(w, err)
		}
		w.Release()
		h.asked.Release()
		h.incoming.Memory.Reopen()
		h.admission.Forget()
		h.request.Warnings = h.request.Warnings[:h.kept]
	}
}

// isPinned reports whether the client itself named the version that it means to change.
func (h *handler) isPinned(w *storage.Write) bool {
	if w.IsPinned || w.Existing.IsCompared { // what the gateway has compared, it compares again
		return w.IsPinned
	}
	return h.incoming.Head.Has(message.FieldIfMatch) || h.incoming.Head.Has(message.FieldIfNoneMatch)
}
