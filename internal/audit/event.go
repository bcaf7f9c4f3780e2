package audit

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/quote"
	"github.com/admission-gateway/gateway/internal/resource"
)

// maxUserAgent is how much of a User-Agent is recorded, in bytes, as in Kubernetes.
const maxUserAgent = 1024

// An Event has all that is known of a request at a stage of it. Its strings may point into the request.
type Event struct {
	ID       string // the same at all stages, in answers and in requests to a backend
	Level    Level
	Stage    Stage
	Target   string // the request's path and query as they came
	Info     *resource.Info
	User     *identity.User
	Sources  []string // the client's address, and the proxies between
	Agent    string   // the User-Agent
	Object   Reference
	Answer   Response
	Received time.Time
	At       time.Time // when the stage was reached

	// RequestObject and ResponseObject are JSON; empty for none.
	RequestObject, ResponseObject []byte
	// Configuration and Policies name what decided over the request, by hashes; empty if that is not known.
	Configuration, Policies string
	// Annotations are sorted by key.
	Annotations []Annotation
}

// A Reference has what only the object of a request shows.
type Reference struct{ Namespace, Name, UID, ResourceVersion string }

// A Response is the answer that the client got. The zero value is no answer yet.
type Response struct {
	Code int
	// Status has the members of the Status that was the answer; nil for any other answer.
	Status *Status
}

// A Status has the members of a Status that are recorded. Details is JSON; empty for none.
type Status struct {
	Status, Message, Reason string
	Details                 []byte
}

// An Annotation is a note about what decided over a request.
type Annotation struct{ Key, Value string }

// Append appends the event as one line of JSON, with the newline, in the order of Kubernetes'
// members.
func (e *Event) Append(dst []byte) []byte {
	w := writer{dst}
	w.raw(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"`)
	w.raw(e.Level.String())
	w.member(`","auditID":`, e.ID)
	w.raw(`,"stage":"`)
	w.raw(e.Stage.String())
	w.member(`","requestURI":`, e.Target)
	w.who(e)
	w.reference(e)
	w.answer(&e.Answer)
	w.object(`,"requestObject":`, e.RequestObject)
	w.object(`,"responseObject":`, e.ResponseObject)
	w.raw(`,"requestReceivedTimestamp":"`)
	w.to = appendTime(w.to, e.Received)
	w.raw(`","stageTimestamp":"`)
	w.to = appendTime(w.to, e.At)
	w.raw(`"`)
	w.annotations(e)
	w.raw("}\n")
	return w.to
}

// writer writes members of JSON objects that have one member already. Names of members come with all that stands around
// them, so that each takes one copy.
type writer struct{ to []byte }

func (w *writer) raw(s string) { w.to = append(w.to, s...) }

func (w *writer) text(s string) { w.to = quote.AppendHTML(w.to, s) }

func (w *writer) member(name, value string) {
	w.raw(name)
	w.text(value)
}

// optional writes a member that is left out if it is empty.
func (w *writer) optional(name, value string) {
	if value != "" {
		w.member(name, value)
	}
}

func (w *writer) list(name string, values []string) {
	if len(values) == 0 {
		return
	}
	w.raw(name)
	w.strings(values)
}

func (w *writer) strings(values []string) {
	for i, v := range values {
		w.separate('[', i)
		w.text(v)
	}
	w.raw("]")
}

// separate writes what stands before the item at i of a list or an object.
func (w *writer) separate(open byte, i int) {
	if i > 0 {
		open = ','
	}
	w.to = append(w.to, open)
}

// first makes an object of the members that were written since from.
func (w *writer) first(from int) {
	if len(w.to) == from {
		w.raw("{")
	} else {
		w.to[from] = '{' // the first comma
	}
	w.raw("}")
}

// who writes what the request does, and who sends it.
func (w *writer) who(e *Event) {
	w.member(`,"verb":`, e.Info.VerbName())
	w.raw(`,"user":`)
	w.user(e.User)
	w.list(`,"sourceIPs":`, e.Sources)
	w.agent(e.Agent)
}

func (w *writer) user(u *identity.User) {
	from := len(w.to)
	w.optional(`,"username":`, u.Name)
	w.optional(`,"uid":`, u.UID)
	w.list(`,"groups":`, u.Groups)
	if len(u.Extra) > 0 {
		w.raw(`,"extra":`)
		for i, key := range slices.Sorted(maps.Keys(u.Extra)) {
			w.separate('{', i)
			w.text(key)
			w.raw(":")
			if len(u.Extra[key]) == 0 {
				w.raw("[")
			}
			w.strings(u.Extra[key])
		}
		w.raw("}")
	}
	w.first(from)
}

func (w *writer) agent(agent string) {
	if len(agent) > maxUserAgent {
		agent = agent[:maxUserAgent] + "...TRUNCATED"
	}
	w.optional(`,"userAgent":`, agent)
}

// reference writes the object that the request addresses. The body says what the path leaves open.
func (w *writer) reference(e *Event) {
	i := e.Info
	if !i.IsResource {
		return
	}
	w.raw(`,"objectRef":`)
	from := len(w.to)
	w.optional(`,"resource":`, i.Resource)
	w.optional(`,"namespace":`, either(i.Namespace, e.Object.Namespace))
	w.optional(`,"name":`, either(i.Name, e.Object.Name))
	w.optional(`,"uid":`, e.Object.UID)
	w.optional(`,"apiGroup":`, i.Group)
	w.optional(`,"apiVersion":`, i.Version)
	w.optional(`,"resourceVersion":`, e.Object.ResourceVersion)
	w.optional(`,"subresource":`, i.Subresource)
	w.first(from)
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (w *writer) answer(a *Response) {
	if a.Code == 0 {
		return
	}
	w.raw(`,"responseStatus":{"metadata":{}`)
	if s := a.Status; s != nil {
		w.optional(`,"status":`, s.Status)
		w.optional(`,"message":`, s.Message)
		w.optional(`,"reason":`, s.Reason)
		w.object(`,"details":`, s.Details)
	}
	w.raw(`,"code":`)
	if hundreds, rest := a.Code/100, a.Code%100; 0 < hundreds && hundreds < 10 {
		w.to = append(w.to, byte('0'+hundreds), byte('0'+rest/10), byte('0'+rest%10), '}')
		return
	}
	w.to = append(strconv.AppendInt(w.to, int64(a.Code), 10), '}')
}

func (w *writer) object(name string, object []byte) {
	if len(object) == 0 {
		return
	}
	w.raw(name)
	for _, c := range object {
		if c != '\n' && c != '\r' { // strings have none
			w.to = append(w.to, c)
		}
	}
}

func (w *writer) annotations(e *Event) {
	if e.Configuration == "" && e.Policies == "" && len(e.Annotations) == 0 {
		return
	}
	w.raw(`,"annotations":`)
	from := len(w.to)
	w.optional(`,"`+ConfigurationHash+`":`, e.Configuration)
	w.optional(`,"`+PoliciesHash+`":`, e.Policies)
	for _, a := range e.Annotations {
		w.raw(",")
		w.text(a.Key)
		w.raw(":")
		w.text(a.Value)
	}
	w.first(from)
}
