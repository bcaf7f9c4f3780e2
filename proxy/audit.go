package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/conventions"
	"github.com/admission-gateway/gateway/internal/audit"
	"github.com/admission-gateway/gateway/internal/discovery"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/proxy/events"
)

// leftOut stands for what may have data of a Secret.
const leftOut = "(withheld)"

// shown returns a text that may have data of the object, unless the object is a Secret.
func (a *admitter) shown(text string) string {
	if i := &a.request.Info; i.Group == "" && i.Resource == "secrets" {
		return leftOut
	}
	return text
}

// noteKind keeps the kind of the object, if policies found something that may be recorded as an Event.
func (a *admitter) noteKind() {
	if a.scope.backend.events != nil && a.kind == "" && !a.report.IsEmpty() {
		a.kind = strings.Clone(a.kindOfObject())
	}
}

// audit records what policies found: failures that are ignored, denials, failures that bindings
// only want noted, and the annotations that policies make of the request. Values of other objects
// are among them only if the author of a policy wrote them into an annotation (ERR-7).
func (a *admitter) audit() {
	if a.isRehearsal {
		return
	}
	a.noteKind()
	for _, f := range a.report.IgnoredFailures() {
		if times, tell := a.gateway.often.ignored.Allow(f.Policy, time.Now()); tell {
			a.gateway.log.Warn("a policy failed and is set to be ignored then", "policy", f.Policy, "cause", a.shown(f.Err.Error()), "times", times)
		}
		a.gateway.metrics.PolicyIgnored(f.Policy)
	}
	for _, f := range a.report.RelaxedErrors() {
		if times, tell := a.gateway.often.relaxed.Allow(f.Policy, time.Now()); tell {
			a.gateway.log.Warn("an error in a policy counted as an undefined value, as its builtinErrors ask for",
				"policy", f.Policy, "cause", a.shown(f.Err.Error()), "times", times)
		}
		a.gateway.metrics.PolicyRelaxed(f.Policy)
	}
	a.countDenials()
	for _, f := range a.report.AuditedFailures() {
		a.gateway.metrics.AdmissionAudited(f.Policy)
	}
	a.auditTerms()
	annotations := a.report.Annotations()
	if len(annotations) == 0 || a.trail.events.Wants(audit.Metadata) {
		return // the audit log has them
	}
	noted := make([]slog.Attr, 0, len(annotations)+5)
	noted = append(noted, slog.String("verb", a.request.Info.VerbName()), slog.String("resource", a.request.Info.GroupResource().String()),
		slog.String("namespace", a.request.Info.Namespace), slog.String("name", a.attributes.Name()), slog.String("user", a.who.user.Name))
	for _, n := range annotations {
		noted = append(noted, slog.String(n.Key, a.shown(n.Value)))
	}
	a.gateway.log.LogAttrs(context.Background(), slog.LevelInfo, "audit annotations", noted...)
}

// auditTerms counts the results of policies that are only tried, and the policies that were not
// evaluated.
func (a *admitter) auditTerms() {
	if a.isRehearsal || a.gateway.isUncounted {
		return
	}
	a.report.Settle()
	failures := a.report.TriedFailures()
	for i, f := range failures {
		switch isCounted := slices.ContainsFunc(failures[:i], func(o admission.TriedFailure) bool { return o.Policy == f.Policy && o.Failed == f.Failed }); {
		case isCounted:
		case f.Failed:
			a.countError(f.Policy, f.Binding, f.Message, "a policy that is only tried failed")
		default:
			telemetry.WouldDeny(a.gateway.metrics, f.Policy)
		}
	}
	for _, e := range a.report.Exceptions() {
		telemetry.Excepted(a.gateway.metrics, e.Policy, e.Exception)
	}
}

// noteConventions adds to the report the results of conventions that are only tried, and the
// conventions that were not evaluated.
func (a *admitter) noteConventions() {
	for _, t := range a.checked.Trials {
		a.report.NoteTrial(t.Terms, nil)
		for _, message := range t.Denials {
			a.report.NoteTrial(t.Terms, &admission.TriedFailure{Message: message, Policy: t.Policy})
		}
	}
	for _, e := range a.checked.Excepted {
		a.report.NoteException(e.Policy, e.Exception, e.Reason)
	}
	a.checked = conventions.Result{}
}

// notedIn returns the policies that would have refused a request, and the exceptions by which policies were not asked, for
// its record.
func notedIn(r *admission.Report) (n telemetry.Noted) {
	for _, f := range r.TriedFailures() {
		if f.Failed {
			continue
		}
		n.WouldDeny = joined(n.WouldDeny, f.Policy)
	}
	for _, e := range r.Exceptions() {
		n.Exceptions = joined(n.Exceptions, e.Exception)
	}
	return n
}

// joined adds a name to a list of names, once.
func joined(list, name string) string {
	switch {
	case list == "":
		return name
	case slices.Contains(strings.Split(list, ","), name):
		return list
	}
	return list + "," + name
}

// kindOfObject returns the kind of the object that the path names, whatever its subresource is.
func (a *admitter) kindOfObject() string {
	i := &a.request.Info
	if d := a.scope.backend.served; i.Subresource != "" && d != nil {
		if r := d.Catalog().Find(discovery.Path{GroupVersionResource: i.GroupVersionResource()}); r != nil {
			return r.Kind.Kind
		}
	}
	return a.attributes.Kind().Kind
}

// recordEvents records at the backend what policies refused, and which of them could not judge,
// unless this was hidden from the client: who may not write the object does not make Events about
// it either.
func recordEvents(h *handler, code int) {
	a := h.admission
	if a.kind == "" || h.permission.refusal != nil || h.request.Info.Options.DryRun {
		return
	}
	i := &h.request.Info
	about := &corev1.ObjectReference{ // which outlives the request
		APIVersion: strings.Clone(schema.GroupVersion{Group: i.Group, Version: i.Version}.String()), Kind: a.kind,
		Namespace: strings.Clone(i.ObjectNamespace()), Name: strings.Clone(cmp.Or(i.Name, string(h.trail.object))),
	}
	action := i.VerbName()
	if denials := a.report.Denials(); len(denials) > 0 && code >= http.StatusBadRequest {
		reason := events.Denied
		if denials[0].Failed {
			reason = events.Failed
		}
		h.route.backend.events.Record(about, reason, action, a.shown(denials[0].Cause.Message))
		return
	}
	if code >= http.StatusBadRequest {
		return
	}
	for _, f := range a.report.IgnoredFailures() {
		h.route.backend.events.Record(about, events.Failed, action, a.shown(fmt.Sprintf("the policy '%s' failed and is set to be ignored then: %v", f.Policy, f.Err)))
		return // one says that there is something to look at
	}
}

// countDenials counts the denials of policies, and apart from them the failures for which a request is refused.
func (a *admitter) countDenials() {
	for _, d := range a.report.Denials() {
		if !d.Failed {
			a.gateway.metrics.AdmissionDenied(d.Policy, a.request.Info.Resource, string(cmp.Or(d.Reason, metav1.StatusReasonInvalid)))
			continue
		}
		a.countError(d.Policy, d.Binding, d.Cause.Message, "a policy failed, and the request is refused")
	}
}

// countError counts a failure of a policy, and logs it.
func (a *admitter) countError(policy, binding, cause, text string) {
	a.gateway.metrics.PolicyErred(policy)
	if times, tell := a.gateway.often.erred.Allow(policy, time.Now()); tell {
		a.gateway.log.Error(text, "policy", policy, "binding", binding, "cause", a.shown(cause), "times", times)
	}
}

// undecided is the answer to a request whose time was over before its policies could decide; nil for any other.
func (a *admitter) undecided() error {
	if by := a.request.Deadline(); by.IsZero() || time.Now().Before(by) {
		return nil
	}
	for _, d := range a.report.Denials() {
		if d.Failed {
			return status.Timeout("the request was over before its policies had decided", 1)
		}
	}
	return nil
}

// auditID is by what a client, the gateway's audit log and the backend's name a request.
const auditID = "Audit-Id"

// beginRecording begins to record the request, as the audit Policy asks for. A log that must not lose an event, and has no
// room for one, refuses the request.
func beginRecording(h *handler) error {
	to := h.gateway.observers.audit
	head, peer := &h.incoming.Head, h.incoming.Peer()
	own := head.Value(message.FieldAuditID)
	id := str(own)
	if id == "" {
		id = h.trail.record.ID
	}
	client := peer.IP
	if h.who.client != peer.Addr {
		client = h.who.client.String()
	}
	in := h.gateway.inForce(h.set)
	err := h.trail.events.Begin(to, h.set.Audit(), &audit.Start{
		Configuration: in.Configuration, Policies: in.Policies,
		ID: id, Target: str(h.trail.target), Agent: str(head.Value(message.FieldUserAgent)), Info: &h.request.Info,
		User: &h.who.user, Client: client, Peer: peer.IP, Received: h.request.Started,
	}, func() string { return string(telemetry.AppendRequestID(nil)) })
	if err != nil {
		return status.ServiceUnavailable("the audit log takes no more events at the moment, and no request may go unrecorded", 1)
	}
	if used := h.trail.events.ID(); used != "" && used != str(own) {
		before := len(h.trail.lines)
		h.trail.lines = append(append(append(h.trail.lines, auditID+": "...), used...), "\r\n"...)
		h.request.From.Trace = h.trail.lines
		if s := h.trail.spans; s != nil {
			s.AddLines(h.trail.lines[before:])
		}
	}
	return nil
}

// recordAnswer keeps of the answer what the audit Policy asks for.
func recordAnswer(h *handler) {
	if !isRecorded(h) {
		return
	}
	e, r := &h.trail.events, &h.request.Response
	if r.IsOwn() && r.Header(auditID) == nil {
		r.Add(auditID, e.ID())
	}
	if e.Wants(audit.Request) && !sendsObject(&h.request.Info) && isJSON(h.body.text()) {
		e.NotePatch(h.body.text())
	}
	if !r.IsOwn() && r.Status() >= 400 || h.request.Info.Verb == resource.VerbDelete {
		e.NoteAnswer(r.Body())
	}
	switch {
	case !e.Wants(audit.RequestResponse) || isEndless(h.request):
	case r.IsStream() && r.IsJSON() && len(r.ContentEncoding()) == 0:
		r.SetStream(&recordedStream{r.Stream(), e})
	case isJSON(r.Body()):
		e.AppendResponse(r.Body())
	case r.IsStream() || len(r.Body()) > 0:
		e.NoteOmitted("the response object is not in JSON")
	}
}

// sendsObject reports whether the body of the request is an object, and no patch or options.
func sendsObject(i *resource.Info) bool {
	return i.Verb == resource.VerbCreate || i.Verb == resource.VerbUpdate
}

// isJSON reports whether a body may be recorded as it is: the body of a patch may be YAML, and of an answer anything.
func isJSON(body []byte) bool { return len(body) > 0 && json.Valid(body) }

// A recordedStream is the body of an answer that is recorded while it is sent.
type recordedStream struct {
	message.Stream
	events *audit.Recording
}

// Read implements message.Stream.
func (s *recordedStream) Read(p []byte) (int, error) {
	n, err := s.Stream.Read(p)
	s.events.AppendResponse(p[:n])
	return n, err
}

// ReadReady implements message.Stream.
func (s *recordedStream) ReadReady(p []byte) (int, error) {
	n, err := s.Stream.ReadReady(p)
	s.events.AppendResponse(p[:n])
	return n, err
}

// annotationsOf returns the annotations of an audit event: who refused the request, and what policies note.
func annotationsOf(r *admission.Report) []audit.Annotation {
	var all []audit.Annotation
	var by []string
	var failed []string
	for _, d := range r.Denials() {
		if d.Failed && !slices.Contains(failed, d.Policy) {
			failed = append(failed, d.Policy)
		}
		if !d.Failed && !slices.Contains(by, d.Policy) {
			by = append(by, d.Policy)
		}
	}
	if len(by) > 0 {
		all = append(all, audit.Annotation{Key: audit.DeniedBy, Value: strings.Join(by, ",")})
	}
	if len(failed) > 0 {
		all = append(all, audit.Annotation{Key: audit.FailedIn, Value: strings.Join(failed, ",")})
	}
	for _, n := range r.Annotations() {
		all = append(all, audit.Annotation{Key: n.Key, Value: n.Value})
	}
	return all
}

// isRecorded reports whether the audit Policy asks for an event of the request.
func isRecorded(h *handler) bool { return h.trail.events.Wants(audit.Metadata) }
