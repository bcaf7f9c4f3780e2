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

// shownText returns a text that may have data of the object, unless the object is a Secret.
func shownText(r *request, text string) string {
	if i := &r.Info; i.Group == "" && i.Resource == "secrets" {
		return leftOut
	}
	return text
}

// noteKind keeps the kind of the object, if policies found something that may be recorded as an Event.
func noteKind(r *request) {
	if r.scope.backend.events != nil && r.telemetry.kind == "" && !r.attempt.report.IsEmpty() {
		r.telemetry.kind = strings.Clone(kindOfObject(r))
	}
}

// auditReport records what policies found: failures that are ignored, denials, failures that bindings
// only want noted, and the annotations that policies make of the request. Values of other objects
// are among them only if the author of a policy wrote them into an annotation (ERR-7).
func auditReport(r *request) {
	if r.isShadow {
		return
	}
	noteKind(r)
	for _, f := range r.attempt.report.IgnoredFailures() {
		if times, tell := r.gateway.often.ignored.Allow(f.Policy, time.Now()); tell {
			r.gateway.log.Warn("a policy failed and is set to be ignored then", "policy", f.Policy, "cause",
				shownText(r, f.Err.Error()), "times", times)
		}
		r.gateway.metrics.PolicyIgnored(f.Policy)
	}
	for _, f := range r.attempt.report.RelaxedErrors() {
		if times, tell := r.gateway.often.relaxed.Allow(f.Policy, time.Now()); tell {
			r.gateway.log.Warn("an error in a policy counted as an undefined value, as its builtinErrors ask for",
				"policy", f.Policy, "cause", shownText(r, f.Err.Error()), "times", times)
		}
		r.gateway.metrics.PolicyRelaxed(f.Policy)
	}
	countDenials(r)
	for _, f := range r.attempt.report.AuditedFailures() {
		r.gateway.metrics.AdmissionAudited(f.Policy)
	}
	auditTerms(r)
	annotations := r.attempt.report.Annotations()
	if len(annotations) == 0 || r.telemetry.events.Wants(audit.Metadata) {
		return // the audit log has them
	}
	noted := make([]slog.Attr, 0, len(annotations)+5)
	noted = append(noted, slog.String("verb", r.Info.VerbName()),
		slog.String("resource", r.Info.GroupResource().String()),
		slog.String("namespace", r.Info.Namespace), slog.String("name", r.attempt.attributes.Name()),
		slog.String("user", r.who.user.Name))
	for _, n := range annotations {
		noted = append(noted, slog.String(n.Key, shownText(r, n.Value)))
	}
	r.gateway.log.LogAttrs(context.Background(), slog.LevelInfo, "audit annotations", noted...)
}

// auditTerms counts the results of policies that are only tried, and the policies that were not
// evaluated.
func auditTerms(r *request) {
	if r.isShadow || r.gateway.isUncounted {
		return
	}
	r.attempt.report.ReportDryRuns()
	failures := r.attempt.report.DryRunFailures()
	for i, f := range failures {
		switch isCounted := slices.ContainsFunc(failures[:i],
			func(o admission.DryRunFailure) bool { return o.Policy == f.Policy && o.Failed == f.Failed }); {
		case isCounted:
		case f.Failed:
			countError(r, f.Policy, f.Binding, f.Message, "a policy that is only tried failed")
		default:
			telemetry.WouldDeny(r.gateway.metrics, f.Policy)
		}
	}
	for _, e := range r.attempt.report.Exceptions() {
		telemetry.Excepted(r.gateway.metrics, e.Policy, e.Exception)
	}
}

// noteConventions adds to the report the results of conventions that are only tried, and the
// conventions that were not evaluated.
func noteConventions(r *request) {
	for _, t := range r.attempt.checked.DryRuns {
		r.attempt.report.NoteDryRun(t.Terms, nil)
		for _, message := range t.Denials {
			r.attempt.report.NoteDryRun(t.Terms, &admission.DryRunFailure{Message: message, Policy: t.Policy})
		}
	}
	for _, e := range r.attempt.checked.Excepted {
		r.attempt.report.NoteException(e.Policy, e.Exception, e.Reason)
	}
	r.attempt.checked = conventions.Result{}
}

// notedIn returns the policies that would have refused a request, and the exceptions by which policies were not asked,
// for its record.
func notedIn(r *admission.Report) (n telemetry.NotEnforced) {
	for _, f := range r.DryRunFailures() {
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
func kindOfObject(r *request) string {
	i := &r.Info
	if d := r.scope.backend.served; i.Subresource != "" && d != nil {
		if served := d.Catalog().Find(discovery.Path{GroupVersionResource: i.GroupVersionResource()}); served != nil {
			return served.Kind.Kind
		}
	}
	return r.attempt.attributes.Kind().Kind
}

// recordEvents records at the backend what policies refused, and which of them could not judge,
// unless this was hidden from the client: who may not write the object does not make Events about
// it either.
func recordEvents(r *request, code int) {
	if r.telemetry.kind == "" || r.permission.refusal != nil || r.Info.Options.DryRun {
		return
	}
	i := &r.Info
	about := &corev1.ObjectReference{ // which outlives the request
		APIVersion: strings.Clone(schema.GroupVersion{Group: i.Group, Version: i.Version}.String()),
		Kind:       r.telemetry.kind,
		Namespace:  strings.Clone(i.ObjectNamespace()), Name: strings.Clone(cmp.Or(i.Name, string(r.telemetry.object))),
	}
	action := i.VerbName()
	if denials := r.attempt.report.Denials(); len(denials) > 0 && code >= http.StatusBadRequest {
		reason := events.Denied
		if denials[0].Failed {
			reason = events.Failed
		}
		r.route.backend.events.Record(about, reason, action, shownText(r, denials[0].Cause.Message))
		return
	}
	if code >= http.StatusBadRequest {
		return
	}
	for _, f := range r.attempt.report.IgnoredFailures() {
		r.route.backend.events.Record(about, events.Failed, action,
			shownText(r, fmt.Sprintf("the policy '%s' failed and is set to be ignored then: %v", f.Policy, f.Err)))
		return // one says that there is something to look at
	}
}

// countDenials counts the denials of policies, and apart from them the failures for which a request is refused.
func countDenials(r *request) {
	for _, d := range r.attempt.report.Denials() {
		if !d.Failed {
			r.gateway.metrics.AdmissionDenied(d.Policy, r.Info.Resource,
				string(cmp.Or(d.Reason, metav1.StatusReasonInvalid)))
			continue
		}
		countError(r, d.Policy, d.Binding, d.Cause.Message, "a policy failed, and the request is refused")
	}
}

// countError counts a failure of a policy, and logs it.
func countError(r *request, policy, binding, cause, text string) {
	r.gateway.metrics.PolicyErred(policy)
	if times, tell := r.gateway.often.erred.Allow(policy, time.Now()); tell {
		r.gateway.log.Error(text, "policy", policy, "binding", binding, "cause", shownText(r, cause), "times", times)
	}
}

// undecided is the answer to a request whose time was over before its policies could decide; nil for any other.
func undecided(r *request) error {
	if by := r.Deadline(); by.IsZero() || time.Now().Before(by) {
		return nil
	}
	for _, d := range r.attempt.report.Denials() {
		if d.Failed {
			return status.Timeout("the request was over before its policies had decided", 1)
		}
	}
	return nil
}

// auditID is by what a client, the gateway's audit log and the backend's name a request.
const auditID = "Audit-Id"

// beginRecording begins to record the request, as the audit Policy asks for. A log that must not lose an event, and has
// no room for one, refuses the request.
func beginRecording(r *request) error {
	to := r.gateway.observers.audit
	head, peer := &r.incoming.Head, r.incoming.Peer()
	own := head.Value(message.FieldAuditID)
	id := str(own)
	if id == "" {
		id = r.telemetry.record.ID
	}
	client := peer.IP
	if r.who.client != peer.Addr {
		client = r.who.client.String()
	}
	in := r.gateway.inForce(r.set)
	err := r.telemetry.events.Begin(to, r.set.Audit(), &audit.Start{
		Configuration: in.Configuration, Policies: in.Policies,
		ID: id, Target: str(r.telemetry.target), Agent: str(head.Value(message.FieldUserAgent)), Info: &r.Info,
		User: &r.who.user, Client: client, Peer: peer.IP, Received: r.Started,
	}, func() string { return string(telemetry.AppendRequestID(nil)) })
	if err != nil {
		return status.ServiceUnavailable("the audit log takes no more events at the moment, and no request may go unrecorded", 1)
	}
	if used := r.telemetry.events.ID(); used != "" && used != str(own) {
		before := len(r.telemetry.lines)
		r.telemetry.lines = append(append(append(r.telemetry.lines, auditID+": "...), used...), "\r\n"...)
		r.From.Trace = r.telemetry.lines
		if s := r.telemetry.spans; s != nil {
			s.AddLines(r.telemetry.lines[before:])
		}
	}
	return nil
}

// recordAnswer keeps of the answer what the audit Policy asks for.
func recordAnswer(r *request) {
	if !isRecorded(r) {
		return
	}
	e, answer := &r.telemetry.events, &r.Response
	if answer.IsOwn() && answer.Header(auditID) == nil {
		answer.Add(auditID, e.ID())
	}
	if e.Wants(audit.Request) && !sendsObject(&r.Info) && isJSON(textOfBody(r)) {
		e.NotePatch(textOfBody(r))
	}
	if !answer.IsOwn() && answer.Status() >= 400 || r.Info.Verb == resource.VerbDelete {
		e.NoteAnswer(answer.Body())
	}
	switch {
	case !e.Wants(audit.RequestResponse) || isEndless(r.Request):
	case answer.IsStream() && answer.IsJSON() && len(answer.ContentEncoding()) == 0:
		answer.SetStream(&recordedStream{answer.Stream(), e})
	case isJSON(answer.Body()):
		e.AppendResponse(answer.Body())
	case answer.IsStream() || len(answer.Body()) > 0:
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
func isRecorded(r *request) bool { return r.telemetry.events.Wants(audit.Metadata) }
