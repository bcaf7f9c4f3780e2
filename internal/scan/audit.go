package scan

import (
	"errors"
	"net/http"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/recorded"
)

// recordedBytes is how much larger an event or an entry may be than the objects in it.
const recordedBytes = 4

// recordLimits returns the limits of events and entries, which have up to three objects.
func recordLimits(of document.Limits) document.Limits {
	of.Bytes *= recordedBytes
	of.Nodes *= recordedBytes
	of.Depth += 8
	return of
}

// auditShape reads an event of an audit log (audit.k8s.io) with the object of its request. It implements shape.
type auditShape struct{}

// read implements shape.
func (auditShape) read(w *worker, text []byte, i *item) string {
	r, err := recorded.Event(text, recordLimits(w.scan.options.New.Gateway.ObjectLimits()))
	if err != nil {
		return w.unusable(i, err)
	}
	if r.Stage != "ResponseComplete" && r.Stage != "Panic" {
		return "it is an event of an earlier stage of a request"
	}
	switch r.Method {
	case http.MethodPost, http.MethodPut:
	case http.MethodPatch:
		// The event has the patch. What came of it is in the answer.
		if r.Answer == nil {
			return "it is a patch, and the event does not have the object that came of it"
		}
		r.Method, r.Body = http.MethodPut, r.Answer
		r.Target, _, _ = strings.Cut(r.Target, "?") // the parameters are of the patch
	default:
		return notWrite
	}
	if r.Body == nil {
		return "the event has no requestObject: its audit level is too low"
	}
	w.replay(r)
	return ""
}

// notWrite is why a record of another request is not judged.
const notWrite = "it neither creates nor replaces an object"

// replay makes the trial of a write that was recorded.
func (w *worker) replay(r *recorded.Request) {
	t := &w.trial
	t.method, t.target, t.body, t.old = []byte(r.Method), []byte(r.Target), r.Body, r.Old
	t.isStored = r.Code == http.StatusOK
	if r.User != nil {
		t.user = r.User
	}
}

// unusable returns why a record is not judged. One that cannot be read is found.
func (w *worker) unusable(i *item, err error) string {
	var unreadable *document.Error
	if errors.As(err, &unreadable) {
		return w.unreadable(i, err)
	}
	return err.Error()
}
