package audit

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/resource"
)

// maxID is the length of the longest id that is taken over from a client, as in Kubernetes.
const maxID = 64

// The annotations of the gateway and of Kubernetes' own log.
const (
	// DeniedBy names the policies that refused a request.
	DeniedBy = "admission-gateway.io/denied-by"
	// FailedIn names the policies that failed, so that the request was refused.
	FailedIn = "admission-gateway.io/failed-in"
	// Explained says that the request was only explained: nothing of it reached the backend.
	Explained = "admission-gateway.io/explained"
	// Outcome says that the result of a write is not known: its client left while the backend was carrying it out.
	Outcome = "admission-gateway.io/outcome"
	// ConfigurationHash and PoliciesHash name what decided over a request.
	ConfigurationHash = "admission-gateway.io/configuration"
	PoliciesHash      = "admission-gateway.io/policies"
	// Omitted says why an object is not recorded.
	Omitted = "admission-gateway.io/omitted"

	truncated = "audit.k8s.io/truncated"
)

// An Auditor records requests in a log. It is immutable and safe for concurrent use.
type Auditor struct {
	Log *Log
	// MaxEvent bounds one event, in bytes. A larger one is recorded without its objects.
	MaxEvent int
}

// A Recording collects what is recorded of one request. It belongs to one goroutine. The zero value records
// nothing, and none of its methods has to be guarded.
type Recording struct {
	auditor     *Auditor
	decision    Decision
	reservation Reservation
	event       Event
	sources     [2]string
	request     []byte // memory of the objects
	response    []byte
	names       []byte // memory of what the reference has
	omitted     string // why an object is missing
	withholds   bool   // replaces the object of a Secret, which is not recorded
}

// leftOut replaces what may have data of a Secret.
const leftOut = "(withheld)"

// A Start has all that is known of a request when its recording begins.
type Start struct {
	ID       string // by which the client calls the request; empty, or too long, for none
	Target   string
	Agent    string
	Info     *resource.Info
	User     *identity.User
	Client   string // the client's address
	Peer     string // the address that the connection comes from
	Received time.Time
	// Configuration and Policies name what decides over the request.
	Configuration, Policies string
}

// Begin begins to record a request, if the policy wants it recorded. Its strings, the user and the info
// must stay until End or Detach. The error is ErrFull if the log must not lose an event and has no
// room; then nothing of the request may reach the backend.
func (r *Recording) Begin(a *Auditor, p *Policy, s *Start, newID func() string) error {
	r.decision = p.Decide(s.Info, s.User)
	if r.decision.Level == None {
		return nil
	}
	reservation, err := a.Log.Reserve()
	if err != nil {
		r.decision = Decision{}
		return err
	}
	r.auditor, r.reservation = a, reservation
	r.withholds = s.Info.Group == "" && s.Info.Resource == "secrets" && r.decision.Level < Request
	r.sources = [2]string{s.Client, s.Peer}
	e := &r.event // filled in place: it is large
	*e = Event{}
	e.ID, e.Level, e.Target, e.Info, e.User, e.Agent, e.Received = s.ID, r.decision.Level, s.Target, s.Info, s.User,
		s.Agent, s.Received
	e.Object.Name = selectedName(s.Info)
	e.Configuration, e.Policies = s.Configuration, s.Policies
	e.Sources = r.sources[:]
	if s.Client == s.Peer {
		e.Sources = r.sources[:1]
	}
	if s.ID == "" || len(s.ID) > maxID {
		e.ID = newID()
	}
	r.record(RequestReceived, s.Received)
	return nil
}

// ID identifies the request in this log and the backend's; empty if it is not recorded.
func (r *Recording) ID() string { return r.event.ID }

// Wants reports whether so much of the request is recorded.
func (r *Recording) Wants(l Level) bool { return r.auditor != nil && r.decision.Level >= l }

// NoteRequest keeps the object that the client sent, and what only the object shows. The first one
// counts.
func (r *Recording) NoteRequest(object *document.Document) {
	if r.auditor == nil || r.event.RequestObject != nil {
		return
	}
	r.noteReference(object.Root())
	if r.Wants(Request) {
		r.request = object.AppendTo(r.request[:0])
		r.event.RequestObject = r.keep(r.request, nil)
	}
}

// NotePatch keeps the patch or the options that the client sent, in JSON.
func (r *Recording) NotePatch(patch []byte) {
	if r.Wants(Request) {
		r.request = r.keep(r.request[:0], patch)
		r.event.RequestObject = r.request
	}
}

// NoteStatus keeps the Status that the client got.
func (r *Recording) NoteStatus(s *metav1.Status) {
	if r.auditor == nil {
		return
	}
	kept := &Status{Status: s.Status, Message: s.Message, Reason: string(s.Reason)}
	details := s.Details
	if r.withholds && details != nil && len(details.Causes) > 0 { // which say what is wrong with the data
		kept.Message, details = leftOut, details.DeepCopy()
		for i := range details.Causes {
			details.Causes[i].Message = leftOut
		}
	}
	if details != nil {
		kept.Details, _ = json.Marshal(details) // strings and numbers always have a JSON form
	}
	r.event.Answer.Status = kept
}

// NoteAnswer keeps the Status that an answer is, if it is one.
func (r *Recording) NoteAnswer(body []byte) {
	var s metav1.Status
	if r.auditor != nil && json.Unmarshal(body, &s) == nil && s.Kind == "Status" && s.APIVersion == "v1" {
		r.NoteStatus(&s)
	}
}

// AppendResponse keeps the object that the client gets, in JSON, or a further part of it.
func (r *Recording) AppendResponse(part []byte) {
	if r.Wants(RequestResponse) && r.omitted == "" {
		r.response = r.keep(r.response, part)
		r.event.ResponseObject = r.response
	}
}

// NoteOmitted keeps why an object is not recorded.
func (r *Recording) NoteOmitted(why string) {
	if r.Wants(Request) {
		r.omitted = why
	}
}

// keep appends to an object; what is larger than an event may be is left out.
func (r *Recording) keep(object, part []byte) []byte {
	if len(object)+len(part) > r.auditor.MaxEvent {
		r.omitted = "the object is larger than an event may be"
		return object[:0]
	}
	return append(object, part...)
}

// Started records that the head of an answer is sent that lasts.
func (r *Recording) Started(code int) {
	if r.auditor == nil {
		return
	}
	r.event.Answer.Code = code
	r.record(ResponseStarted, time.Now())
}

// End records the answer, with the annotations of policies, which it may change. The recording may be used for the next
// request.
func (r *Recording) End(code int, panicked bool, annotations []Annotation) {
	if r.auditor == nil {
		return
	}
	if r.withholds {
		for i := range annotations {
			if key := annotations[i].Key; key != DeniedBy && key != FailedIn {
				annotations[i].Value = leftOut
			}
		}
	}
	r.event.Answer.Code, r.event.Annotations = code, annotations
	if r.omitted != "" {
		r.event.Annotations = append(r.event.Annotations, Annotation{Omitted, r.omitted})
	}
	if r.decision.OmitManagedFields {
		r.event.RequestObject = withoutManagedFields(r.event.RequestObject)
		r.event.ResponseObject = withoutManagedFields(r.event.ResponseObject)
	}
	stage := ResponseComplete
	if panicked {
		stage = Panic
	}
	r.record(stage, time.Now())
	r.auditor.Log.Release(&r.reservation)
	*r = Recording{request: kept(r.request), response: kept(r.response), names: kept(r.names)}
}

// Detach returns the recording with memory of its own, for an answer that outlives its request's. The
// one that it was taken from records nothing any more.
func (r *Recording) Detach() *Recording {
	d := &Recording{auditor: r.auditor, decision: r.decision, reservation: r.reservation, omitted: r.omitted,
		withholds: r.withholds, event: r.event}
	e := &d.event
	e.Sources = slices.Clone(e.Sources) // whose memory is the recording's own
	*r = Recording{}
	if d.auditor == nil {
		return d
	}
	for i := range e.Sources {
		e.Sources[i] = strings.Clone(e.Sources[i])
	}
	info, user := *e.Info, *e.User
	for _, s := range []*string{
		&e.ID, &e.Target, &e.Agent, &user.Name, &user.UID,
		&info.OtherMethod, &info.Group, &info.Version, &info.Resource, &info.Subresource, &info.Namespace, &info.Name,
		&e.Object.Namespace, &e.Object.Name, &e.Object.UID, &e.Object.ResourceVersion,
	} {
		*s = strings.Clone(*s)
	}
	e.Info, e.User = &info, &user
	e.RequestObject, e.ResponseObject = bytes.Clone(e.RequestObject), bytes.Clone(e.ResponseObject)
	d.response = e.ResponseObject
	return d
}

// noteReference keeps the reference in an object's metadata. The object may be released before it
// is recorded, so that what the path leaves open of it is copied.
func (r *Recording) noteReference(object document.Node) {
	to, i := &r.event.Object, r.event.Info
	*to = Reference{}
	metadata, isThere := object.Step(&metadataName)
	if !isThere {
		return
	}
	r.names = r.names[:0]
	if i.Namespace == "" {
		to.Namespace = r.copied(metadata, &namespaceName)
	}
	if i.Name == "" {
		to.Name = r.copied(metadata, &objectName)
	}
	to.UID = r.copied(metadata, &uidName)
	to.ResourceVersion = r.copied(metadata, &resourceVersionName)
}

// The names of members that make a reference.
var (
	metadataName        = document.NewName("metadata")
	namespaceName       = document.NewName("namespace")
	objectName          = document.NewName("name")
	uidName             = document.NewName("uid")
	resourceVersionName = document.NewName("resourceVersion")
)

// copied returns a member that is a string in the recording's memory; "" for any other. What was copied before stays
// valid if that memory moves.
func (r *Recording) copied(object document.Node, name *document.Name) string {
	m, isThere := object.Step(name)
	if !isThere || m.Kind() != document.String {
		return ""
	}
	from := len(r.names)
	r.names = m.AppendStr(r.names)
	return unsafe.String(unsafe.SliceData(r.names[from:]), len(r.names)-from)
}

// member returns a member of an object; invalid if there is none.
func member(object document.Node, name string) document.Node {
	if !object.Valid() || object.Kind() != document.Object {
		return document.Node{}
	}
	m, _ := object.Get(name)
	return m
}

// withoutManagedFields takes metadata.managedFields out of an object, or out of the items of a list. What
// is no object stays as it is.
func withoutManagedFields(object []byte) []byte {
	if !bytes.Contains(object, []byte(`"managedFields"`)) {
		return object
	}
	d, err := document.Parse(object, document.Limits{})
	if err != nil {
		return object
	}
	defer d.Release()
	removeManagedFields(d, d.Root())
	if items := member(d.Root(), "items"); items.Valid() && items.Kind() == document.Array {
		for item := items.First(); item.Valid(); item = item.Next() {
			removeManagedFields(d, item)
		}
	}
	return d.AppendTo(nil)
}

func removeManagedFields(d *document.Document, object document.Node) {
	if fields := member(member(object, "metadata"), "managedFields"); fields.Valid() {
		d.Remove(fields)
	}
}

// maxKept is how much memory is kept for the next request, in bytes.
const maxKept = 64 << 10

func kept(memory []byte) []byte {
	if cap(memory) > maxKept {
		return nil
	}
	return memory[:0]
}

var lines = sync.Pool{New: func() any { return new([]byte) }}

// record writes an event of the stage, if the policy wants one. A sink that has no room for its
// objects gets it without them.
func (r *Recording) record(s Stage, at time.Time) {
	if !r.decision.Has(s) {
		return
	}
	e := &r.event
	e.Stage, e.At = s, at
	if s == RequestReceived || s == ResponseStarted {
		request, response := e.RequestObject, e.ResponseObject // of a later stage
		e.RequestObject, e.ResponseObject = nil, nil
		defer func() { e.RequestObject, e.ResponseObject = request, response }()
	}
	line := lines.Get().(*[]byte)
	*line = e.Append((*line)[:0])
	r.add(line)
	*line = kept(*line)
	lines.Put(line)
}

// add hands the line of the event to the log.
func (r *Recording) add(line *[]byte) {
	log, isWhole, missed := r.auditor.Log, len(*line) <= r.auditor.MaxEvent, Missed{}
	if isWhole {
		if missed = log.Add(*line, &r.reservation); !missed.IsAny() {
			return
		}
	}
	short := r.event
	short.RequestObject, short.ResponseObject = nil, nil
	short.Annotations = append(short.Annotations[:len(short.Annotations):len(short.Annotations)],
		Annotation{truncated, "true"})
	*line = short.Append((*line)[:0])
	if isWhole {
		missed = log.AddShorter(*line, missed)
	} else {
		missed = log.Add(*line, &r.reservation)
	}
	log.Lose(missed)
}
