package storage

import (
	"time"

	"github.com/admission-gateway/gateway/internal/resource"
)

// A Request is a storage's view of a client's request: its Subject, and the Exchanges with the backend on
// the client's behalf. It belongs to one goroutine.
type Request struct {
	Subject
	Exchanges

	Patch PatchType
	// Editor completes the body of Response on its way; nil if there is nothing to do.
	Editor Editor
}

// SetSubject sets what the target of the request was resolved to. The deadline of the request follows from it.
func (r *Request) SetSubject(i *resource.Info, described *resource.Resource) {
	r.Info, r.Resource, r.Served = *i, described, nil
	r.isDryRun, r.deadline, r.bound = i.Options.DryRun, time.Time{}, time.Time{}
	if r.Limits != nil && r.Limits.Timeout > 0 {
		r.bound = r.Started.Add(r.Limits.Timeout)
	}
	if i.Options.Timeout > 0 && !i.Options.Watch {
		r.deadline = r.Started.Add(i.Options.Timeout)
	}
}

// Reset forgets the request and keeps memory for the next.
func (r *Request) Reset() {
	if r.Editor != nil {
		r.Editor.Release()
	}
	r.ForgetQuestions()
	r.Response.Reset(keptBytes)
	r.memory().forget()
	clear(r.Warnings)
	response, warnings, kept := r.Response, r.Warnings[:0], r.kept
	*r = Request{} // in place: a literal with what is kept would be copied
	r.Response, r.Warnings, r.kept = response, warnings, kept
}
