// Package proxy is the data plane: it serves each request that internal/http1/server reads by the handler
// of its verb, and answers it. All requests have serve, below, in common; the way of a verb is in the file
// of its name. What the backend is like is behind storage.Storage.
package proxy

import (
	"github.com/admission-gateway/gateway/internal/compress"
	"github.com/admission-gateway/gateway/internal/http1"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/proxy/explaining"
)

// serve is the way of one request, from its head to its answer. A step that returns an error ends it:
// respond.go turns the error into a Status, and nothing that was not admitted has reached the backend.
func (h *handler) serve() error {
	if h.incoming.Refusal != nil {
		return h.incoming.Refusal // the head cannot be read in one way only
	}
	if err := h.resolve(); err != nil { // which resource, and what is asked of it
		return err
	}
	if h.route.cors.Answers(&h.incoming.Head, &h.request.Response.Response) {
		return nil // a browser asks before a script does
	}
	unknown := h.who.identify(h) // who asks
	if h.gateway.observers.audit != nil && h.set.Audit() != nil {
		if err := beginRecording(h); err != nil {
			return err
		}
	}
	if unknown != nil && !takeForAnonymous(h) {
		return unknown
	}
	enforce := (*limits).enforce
	if h.incoming.Head.Has(http1.FieldXAdmissionExplain) { // what would become of it
		if err := beginStory(h); err != nil {
			return err
		}
		enforce = (*limits).tell
	}
	if err := enforce(&h.limits); err != nil { // how often they may
		return err
	}
	if unknown != nil {
		return relayPreflight(h)
	}
	h.admission.foresee()
	if h.request.Info.IsUndescribed {
		if h.gateway.storages(h.set).resolvers[h.route.index].IsDescribed() { // or no answer has a mark
			compress.Unmark(&h.incoming.Head, revisionOf(h.set))
		}
		at(h.trail.story, explaining.Others, nil)
		return h.passThrough()
	}
	if h.request.Info.Verb == resource.VerbOptions {
		return h.upstream.kind.options(h)
	}
	if upgrade := h.incoming.Head.Upgrade; upgrade != nil && isTunnelled(upgrade) && h.upgrade.protocol == nil {
		if err := h.upstream.kind.ignoreUpgrade(h); err != nil {
			return err
		}
	}
	h.named = compress.Unmark(&h.incoming.Head, revisionOf(h.set))
	h.kept = len(h.request.Warnings)
	at(h.trail.story, explaining.Contract, nil)
	if err := h.admission.checkContract(h); err != nil { // whether they ask as the API's document says
		return err
	}
	if err := h.negotiate(); err != nil { // whether they take the answers that there are
		return err
	}
	h.incoming.Memory.SetDeadline(h.request.Deadline())
	if err := h.learnKind(); err != nil { // of which kind its objects are
		return err
	}
	switch {
	case h.isConnect():
		return h.connect() // into a pod, to a port or another server
	case h.request.IsRead():
		return h.read()
	}
	return h.change()
}

// change leads a write: it reads the body and admits the object, again if another writer came between.
func (h *handler) change() error {
	at(h.trail.story, explaining.Body, nil)
	h.body.mayPass = h.passesUnread()
	if err := h.body.read(h.upstream.kind.operation(h.set, h.request.Resource, &h.request.Info)); err != nil {
		return err
	}
	if h.request.Info.IsObject() { // one that another writer may change at the same time
		if err := h.storage.Lock(&h.request, h.request.Info.HasBody() && h.isOpaque()); err != nil {
			return err
		}
	}
	defer h.request.Unlock()
	switch verb := h.request.Info.Verb; {
	case verb == resource.VerbDelete:
		return h.retry((*handler).delete)
	case verb == resource.VerbDeleteCollection:
		return h.retry((*handler).deleteCollection)
	case h.request.Patch == storage.FormPatch:
		return h.retry(patchForm)
	case h.body.language == inForm:
		return h.retry(admitForm)
	case h.body.language == inBytes:
		return h.retry(passBytes)
	case h.body.language == inBeyond:
		return h.retry((*handler).admitUnread)
	case h.isOpaque():
		return h.retry((*handler).pass)
	case isScale(h):
		return h.retry((*handler).scale)
	case verb == resource.VerbCreate || isOperation(h):
		return h.retry((*handler).create)
	case verb == resource.VerbPatch:
		return h.retry((*handler).patch)
	}
	return h.retry((*handler).update)
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
func (h *handler) retry(attempt func(*handler, *storage.Write) error) error {
	for n := 1; ; n++ {
		w := &h.write
		w.Begin(&h.request)
		err := attempt(h, w)
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
		case err == storage.ErrConflict && (n == maxAttempts || h.isPinned(w)): // of a request that the server has authorized
			return w.Conflict()
		case err != storage.ErrNameTaken && err != storage.ErrConflict:
			if err = h.permission.orForbidden(err); h.permission.refusal != nil || !h.permission.maySee() {
				return err // the server looks first whether the client may write at all
			}
			return h.storage.Refusal(w, err)
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
	return w.IsPinned || h.incoming.Head.Has(http1.FieldIfMatch) || h.incoming.Head.Has(http1.FieldIfNoneMatch)
}
