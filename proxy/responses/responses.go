// Package responses checks answers of backends against OpenAPI documents. Answers are never
// changed, and wait for nothing: what is kept of a body is looked at when the answer has been sent.
package responses

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/telemetry"
)

// An Observer counts answers that are not what a document declares, and logs them. It is safe for
// concurrent use.
type Observer struct {
	// Budget is the memory that bodies and what is made of them count towards.
	Budget  *memory.Budget
	Metrics *telemetry.Telemetry
	Log     *slog.Logger

	often telemetry.Sampler
}

// A Subject says what answers are to.
type Subject struct {
	// Upstream and Resource are names that files give: there are few.
	Upstream, Resource string
	Verb               resource.Verb
	Method             string
}

// Watch begins to watch the answers to a request. operation returns what is declared for a verb.
func (o *Observer) Watch(about Subject, limits *storage.Limits,
	operation func(verb resource.Verb) *contract.Operation) *Watch {
	w := &Watch{observer: o, about: about, limits: limits, operation: operation}
	w.memory.Open(o.Budget, nil)
	return w
}

// A Watch looks at the answers to one request. Only the last one counts: the gateway asks again for some that clients
// never see. A nil Watch looks at nothing.
type Watch struct {
	observer  *Observer
	about     Subject
	limits    *storage.Limits
	operation func(verb resource.Verb) *contract.Operation
	memory    memory.Reservation
	seen      *seen // nil if no answer is declared
}

var _ storage.Watcher = (*Watch)(nil)

// verbOf returns the verb that a document describes the request to the backend by; VerbOther for one that it does not.
func (w *Watch) verbOf(method string) resource.Verb {
	switch method {
	case w.about.Method:
		return w.about.Verb
	case http.MethodGet: // that the gateway made of a HEAD; else it is the gateway's own question
		if w.about.Method == http.MethodHead {
			return w.about.Verb
		}
	case http.MethodPut: // that the gateway made of a patch, or of a create
		return resource.VerbUpdate
	}
	return resource.VerbOther
}

// Answered implements storage.Watcher.
func (w *Watch) Answered(method []byte, answer *message.Response) {
	w.forget()
	var declared *contract.Operation
	if verb := w.verbOf(string(method)); verb != resource.VerbOther {
		declared = w.operation(verb)
	}
	if declared == nil || len(declared.Answers) == 0 {
		return
	}
	w.seen = &seen{code: answer.Status()}
	of := declared.AnswerOf(answer.Status())
	switch {
	case of != nil:
		w.look(string(method), of, answer)
	case !isOfHTTP(answer.Status()):
		w.seen.found = []contract.Departure{{Kind: contract.OfCode, Detail: "must be declared"}}
	}
}

// isOfHTTP reports whether a code is HTTP's own answer to a condition or a range that the client names, so that no
// document needs to declare it.
func isOfHTTP(code int) bool {
	switch code {
	case http.StatusPartialContent, http.StatusNotModified, http.StatusPreconditionFailed,
		http.StatusRequestedRangeNotSatisfiable:
		return true
	}
	return false
}

// look looks at the head of an answer, and keeps its body, or what is to come of it.
func (w *Watch) look(method string, of *contract.Answer, answer *message.Response) {
	s := w.seen
	contentType := string(answer.Header("Content-Type"))
	presence := contract.SomeBody
	switch {
	case method == http.MethodHead, s.code == http.StatusNoContent, s.code == http.StatusNotModified:
		presence = contract.NoBody
	case !answer.IsStream() && len(answer.Body()) == 0:
		presence = contract.EmptyBody
	}
	var content *contract.Content
	if s.found, content = of.Check(contentType, answer.Headers, presence); content.IsRead(contentType) {
		s.content = content
		s.keep(w, answer)
	}
}

// forget gives back what is kept.
func (w *Watch) forget() {
	if w.seen != nil {
		w.seen.stop()
		w.seen = nil
	}
	w.memory.Close()
}

// Detach ends the watch of an answer that goes on without its request.
func (w *Watch) Detach() {
	if w != nil && w.seen != nil && w.seen.content != nil {
		w.seen.leave(endless)
	}
	w.Finish()
}

// Finish looks at the body, counts the answer and logs it. It is called when the answer was sent.
func (w *Watch) Finish() {
	if w == nil {
		return
	}
	if s := w.seen; s != nil {
		s.read(w)
		w.observer.report(&w.about, s)
	}
	w.forget()
}

// The results of checks, as metrics name them.
const (
	valid     = "Valid"
	invalid   = "Invalid"
	unchecked = "Unchecked"
)

// report counts an answer and logs it.
func (o *Observer) report(about *Subject, s *seen) {
	result := valid
	switch {
	case len(s.found) > 0:
		result = invalid
	case s.unread != "":
		result = unchecked
	}
	for kind := range contract.Kinds {
		first, more := firstOf(s.found, kind)
		if first == nil {
			continue
		}
		if times, tell := o.often.Allow(about.Resource+" "+about.Verb.String()+" "+kind.String(), time.Now()); tell {
			o.Log.Warn("an answer is not what the API's document declares", "upstream", about.Upstream, "resource",
				about.Resource,
				"verb", about.Verb.String(), "code", s.code, "kind", kind.String(), "field", storage.Short(first.Field),
				"cause", first.Detail,
				"more", more, "times", times)
		}
		telemetry.AnswerDeparted(o.Metrics, about.Resource, kind.String())
	}
	if s.unread != "" {
		if times, tell := o.often.Allow(about.Resource+" "+about.Verb.String()+" "+s.unread, time.Now()); tell {
			o.Log.Info("an answer is not held to the API's document", "upstream", about.Upstream, "resource",
				about.Resource,
				"verb", about.Verb.String(), "code", s.code, "cause", s.unread, "times", times)
		}
	}
	telemetry.AnswerChecked(o.Metrics, about.Resource, result)
}

// firstOf returns the first departure of a kind, and how many more there are.
func firstOf(found []contract.Departure, kind contract.Kind) (first *contract.Departure, more int) {
	for k := range found {
		switch {
		case found[k].Kind != kind:
		case first == nil:
			first = &found[k]
		default:
			more++
		}
	}
	return first, more
}
