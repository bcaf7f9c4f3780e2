// Package explaining records what becomes of a request, for who asks for an explanation. The proxy
// gives it every step as it is taken, by the handlers and the policies that every request has; what
// would be sent to the backend is held back. A nil Recorder records nothing.
package explaining

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/explanation"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

const (
	// maxBytes bounds an explanation, without the bodies of messages.
	maxBytes = 1 << 20
	// maxBody bounds the body of a message, and maxMessages how many there are.
	maxBody, maxMessages = 256 << 10, 100
)

// A Recorder records the explanation of one request. It belongs to one goroutine.
type Recorder struct {
	explanation explanation.Explanation
	hiding      hiding
	secret      Secrets // of any policy
	left        int     // bytes

	tree   explanation.Tree // the object as it was last
	isRead bool             // there is such
	stores bool             // what changes now may come from the stored object
	policy *running         // nil if none runs
	ran    map[string]bool  // policies that matched the request
	hides  hidesAnswer
	// attributes are the ones that policies saw last.
	attributes *admission.Attributes
}

// hidesAnswer says what of the answer may show a Secret.
type hidesAnswer struct{ refusal, warnings bool }

// running is a policy that runs.
type running struct {
	shown                              explanation.Policy
	before                             explanation.Tree
	reads                              cel.Reads
	denials, warnings, ignored, audits int
	mutates                            bool
	is                                 findings
}

// findings say what is found of a policy while it runs.
type findings struct {
	opaque    bool // it may read other objects, and which values come from them is unknown
	mixed     bool // its variables may have what is taken from the stored object
	secret    bool // it may have read a Secret
	tainted   bool // its variables may have what comes from a Secret
	unmatched bool // one of its match conditions is false
}

var (
	_ admission.Recorder = (*Recorder)(nil)
	_ storage.Sink       = (*Recorder)(nil)
)

// New begins an explanation.
func New(about explanation.Request, showsValues bool) *Recorder {
	r := &Recorder{left: maxBytes, ran: map[string]bool{}}
	r.hiding.showsValues = showsValues
	r.hiding.begin()
	r.explanation = explanation.Explanation{APIVersion: explanation.APIVersion, Kind: explanation.Kind, Request: about,
		Steps: []explanation.Step{}}
	return r
}

// About says what the request asks for, by which stages it is served, and which objects that policies read may be
// Secrets.
func (r *Recorder) About(i *resource.Info, described bool, stages []string, secret Secrets) {
	if r == nil {
		return
	}
	r.explanation.Resource = &explanation.Resource{
		Verb: i.VerbName(), Group: strings.Clone(i.Group), Version: strings.Clone(i.Version),
		Resource: strings.Clone(i.Resource), Subresource: strings.Clone(i.Subresource),
		Namespace: strings.Clone(i.Namespace), Name: strings.Clone(i.Name), IsDescribed: described, Stages: stages,
	}
	r.hiding.object.isOwn = (i.Verb == resource.VerbCreate || i.Verb == resource.VerbUpdate) && i.Subresource != "scale"
	r.hiding.object.isSecret = i.Group == "" && i.Resource == "secrets"
	r.hiding.secret = secret
	r.secret = secret
}

// Step begins a step.
func (r *Recorder) Step(name, about string) {
	if r == nil {
		return
	}
	r.close(nil, nil, "", "")
	if !r.spend(len(name) + len(about)) {
		return
	}
	r.explanation.Steps = append(r.explanation.Steps, explanation.Step{Name: name, About: about})
}

// Object ends a step that may have changed the object. isStored says that what it changed may come
// from the stored object.
func (r *Recorder) Object(d *document.Document, isStored bool) {
	if r == nil || d == nil {
		return
	}
	before, known := r.tree, r.isRead
	r.tree, r.isRead = explanation.Parse(d.AppendTo(nil)), true
	r.hiding.learn(r.tree)
	if !known || len(r.explanation.Steps) == 0 {
		return
	}
	s := &r.explanation.Steps[len(r.explanation.Steps)-1]
	s.Edits = append(s.Edits, r.edits(explanation.Diff(before, r.tree), origin{others: isStored})...)
}

// Reread takes the object as it is now for the state that the next edits begin with: fields that
// only policies saw were not edited.
func (r *Recorder) Reread(d *document.Document) {
	if r != nil && d != nil && r.isRead {
		r.tree = explanation.Parse(d.AppendTo(nil))
	}
}

// edits makes edits fit to be shown.
func (r *Recorder) edits(all []explanation.Edit, from origin) []explanation.Edit {
	for i := range all {
		e := &all[i]
		r.hiding.edit(e, from)
		if !r.spend(len(e.Path) + len(e.Old) + len(e.New)) {
			return all[:i]
		}
	}
	return all
}

// spend counts what an explanation is to have.
func (r *Recorder) spend(bytes int) bool {
	const least = 64 // for names and brackets
	if r.explanation.IsCut || r.left < bytes+least {
		r.explanation.IsCut = true
		return false
	}
	r.left -= bytes + least
	return true
}

// Begin implements admission.Recorder.
func (r *Recorder) Begin(ctx context.Context, p admission.Policy, a *admission.Attributes, report *admission.Report) {
	r.close(nil, nil, "", "")
	r.attributes = a
	if r.hiding.object.isSecret && a.Old != nil {
		r.hiding.learn(explanation.Parse(a.Old.AppendTo(nil)))
	}
	one := &running{
		shown:   explanation.Policy{Kind: kindOf(p, a), Name: p.Name(), Item: a.Item, Verdict: explanation.NoMatch},
		denials: len(report.Denials()), warnings: len(report.Warnings()),
		ignored: len(report.IgnoredFailures()), audits: len(report.AuditedFailures()),
	}
	_, one.mutates = p.(admission.Mutator)
	r.hiding.secret = Secrets{Parameters: HasSecretParams(p), Collections: r.secret.Collections}
	one.is.secret = r.hiding.secret.Parameters || !isTraced(one.shown.Kind) &&
		(r.hiding.object.isSecret || r.hiding.secret.Collections)
	one.shown.Reasons = reasonsOf(ctx, p, a)
	if len(one.shown.Reasons) == 0 {
		r.ran[keyOf(p, one.mutates)] = true
	}
	if one.mutates && a.Object != nil {
		one.before = explanation.Parse(a.Object.AppendTo(nil))
		one.is.opaque = readsOthers(p)
	}
	r.policy = one
}

// HasSecretParams reports whether the parameters of a policy are Secrets.
func HasSecretParams(p admission.Policy) bool {
	with, is := p.(interface{ HasSecretParams() bool })
	return is && with.HasSecretParams()
}

// isTraced reports whether all that policies of a kind read is read by expressions that are traced.
func isTraced(kind string) bool {
	switch kind {
	case "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy", "DefaultingPolicy":
		return true
	}
	return false
}

// readsOthers reports whether a policy without expressions, which would be traced, may read other
// objects.
func readsOthers(p admission.Policy) bool {
	m, is := p.(interface{ ReadsOthers() bool })
	return is && m.ReadsOthers()
}

// End implements admission.Recorder.
func (r *Recorder) End(a *admission.Attributes, report *admission.Report, binding string, v admission.Verdict) {
	r.close(a, report, binding, v)
}

// close ends the policy that runs. One that was not ended has answered the request.
func (r *Recorder) close(a *admission.Attributes, report *admission.Report, binding string, v admission.Verdict) {
	one := r.policy
	if one == nil {
		return
	}
	r.policy, r.hiding.secret = nil, r.secret
	one.shown.Binding = binding
	switch {
	case v != "" && (len(one.shown.Reasons) == 0 || v != admission.Allowed && v != admission.Unchanged):
		one.shown.Verdict, one.shown.Reasons = string(v), nil
	case v == "":
		one.shown.Verdict = string(admission.Denied)
	}
	if one.is.secret {
		r.hides.refusal = r.hides.refusal || report == nil || len(report.Denials()) > one.denials
		r.hides.warnings = r.hides.warnings || report == nil || len(report.Warnings()) > one.warnings
	}
	if report != nil {
		for _, d := range report.Denials()[min(one.denials, len(report.Denials())):] {
			r.say(one, d.Cause.Message)
		}
		for _, text := range report.Warnings()[min(one.warnings, len(report.Warnings())):] {
			r.say(one, text)
		}
		for _, f := range report.IgnoredFailures()[min(one.ignored, len(report.IgnoredFailures())):] {
			r.say(one, "ignored: "+f.Err.Error())
		}
		for _, f := range report.AuditedFailures()[min(one.audits, len(report.AuditedFailures())):] {
			r.say(one, "audited: "+f.Message)
		}
	}
	if one.mutates && a != nil && a.Object != nil {
		after := explanation.Parse(a.Object.AppendTo(nil))
		from := origin{others: one.is.opaque || one.reads.Old || one.reads.Others, secrets: one.is.secret}
		one.shown.Edits = r.edits(explanation.Diff(one.before, after), from)
		if a.Item == "" {
			r.tree, r.isRead = after, true
		}
	}
	if one.is.unmatched && (one.shown.Verdict == string(admission.Allowed) ||
		one.shown.Verdict == string(admission.Unchanged)) {
		one.shown.Verdict = explanation.NoMatch
		one.shown.Reasons = []explanation.Reason{{Field: "spec.matchConditions", Because: "one of them is false"}}
	} else if one.shown.Verdict == explanation.NoMatch {
		return // it is among the others
	}
	if !r.spend(len(one.shown.Kind) + len(one.shown.Name) + len(one.shown.Binding)) {
		return
	}
	s := r.step()
	s.Policies = append(s.Policies, one.shown)
}

func (r *Recorder) say(one *running, text string) {
	if text = r.hiding.text(text); one.is.secret {
		text = withheld
	}
	if r.spend(len(text)) {
		one.shown.Messages = append(one.shown.Messages, strings.Clone(text))
	}
}

// step is the step at hand.
func (r *Recorder) step() *explanation.Step {
	if len(r.explanation.Steps) == 0 {
		r.explanation.Steps = append(r.explanation.Steps,
			explanation.Step{Name: "Request", About: "what comes before the object"})
	}
	return &r.explanation.Steps[len(r.explanation.Steps)-1]
}

// Unmatched records that a match condition of the policy is false.
func (r *Recorder) Unmatched() {
	if r.policy != nil {
		r.policy.is.unmatched = true
	}
}

// Fired records a rule in Rego that had a value.
func (r *Recorder) Fired(name, file string, line int) {
	if r.policy == nil || !r.spend(len(name)+len(file)) {
		return
	}
	one := explanation.Rule{Name: name, File: file, Line: line}
	for _, known := range r.policy.shown.Rules {
		if known == one {
			return
		}
	}
	r.policy.shown.Rules = append(r.policy.shown.Rules, one)
}

// Traced implements cel.Tracer.
func (r *Recorder) Traced(t *cel.Trace) {
	if r.policy != nil {
		r.policy.reads.Old = r.policy.reads.Old || t.Reads.Old
		r.policy.reads.Others = r.policy.reads.Others || t.Reads.Others
	}
	mixed, tainted := mixes(t.Expression, r.hiding.paths), mixes(t.Expression, r.hiding.secretPaths)
	isSecret := r.hiding.isSecret(t.Reads, tainted)
	if r.policy == nil {
		r.hides.refusal = r.hides.refusal || isSecret // by a rule of the schema
	} else {
		is := &r.policy.is
		readsVariables := strings.Contains(t.Expression, "variables")
		is.mixed, is.tainted = is.mixed || mixed, is.tainted || tainted
		mixed, tainted = mixed || is.mixed && readsVariables, tainted || is.tainted && readsVariables
		is.secret = is.secret || isSecret || tainted
	}
	e := r.expression(t, mixed, tainted)
	size := len(e.Text) + len(e.Value) + len(e.Error)
	for _, p := range e.Parts {
		size += len(p.Text) + len(p.Value) + 64
	}
	if !r.spend(size) {
		return
	}
	if r.policy != nil {
		r.policy.shown.Expressions = append(r.policy.shown.Expressions, e)
		return
	}
	s := r.step()
	s.Expressions = append(s.Expressions, e)
}

func (r *Recorder) expression(t *cel.Trace, mixed, tainted bool) explanation.Expression {
	e := explanation.Expression{Variable: strings.Clone(t.Variable), Text: t.Expression, IsDoubtful: t.IsDoubtful}
	isSecret := r.hiding.isSecret(t.Reads, tainted)
	e.Value = r.hiding.value(t.Value, t.Reads, mixed)
	if isSecret && t.Value != "" && !t.IsCondition {
		e.Value = withheld
	}
	var failed *cel.Error
	switch {
	case t.Err == nil:
	case isSecret || r.hiding.hides(t.Reads, mixed):
		e.Error = "it has no value for the request"
	case errors.As(t.Err, &failed):
		e.Error = r.hiding.text(failed.Detail)
	default:
		e.Error = r.hiding.text(t.Err.Error())
	}
	for _, p := range t.Parts {
		value := r.hiding.value(p.Value, p.Reads, mixed)
		// The part that is all of a condition has its value.
		if r.hiding.isSecret(p.Reads, tainted) && !(t.IsCondition && p.Depth == 0 && p.Value == t.Value) {
			value = withheld
		}
		e.Parts = append(e.Parts, explanation.Subexpression{
			Text: p.Source, Line: p.Line, Column: p.Column, Depth: p.Depth, Value: value, InLoop: p.InLoop,
		})
	}
	return e
}

// Take implements storage.Sink.
func (r *Recorder) Take(m *storage.Message) {
	if len(r.explanation.Sent) == maxMessages {
		r.explanation.IsCut = true
		return
	}
	one := explanation.Message{Method: string(m.Method), Target: string(m.Target), ContentType: string(m.ContentType)}
	switch {
	case m.Upload != nil:
		one.Bytes = max(int(m.Upload.Length()), 0)
		r.Unknown("the body passes as it comes, and is not read here")
	case len(m.Body) > 0:
		r.hiding.body(&one, m.Body)
	}
	r.explanation.Sent = append(r.explanation.Sent, one)
}

// Unknown records something that cannot be known.
func (r *Recorder) Unknown(what string) {
	if r != nil {
		r.explanation.Unknown = append(r.explanation.Unknown, what)
	}
}

// Limit adds a rate limit.
func (r *Recorder) Limit(l explanation.Limit) {
	if r != nil && r.spend(len(l.Name)+len(l.Because)) {
		r.explanation.Limits = append(r.explanation.Limits, l)
	}
}

// Refuse says at which step the way ended.
func (r *Recorder) Refuse(why string) {
	r.close(nil, nil, "", "")
	s := r.step()
	if s.Refusal = strings.Clone(r.hiding.text(why)); r.hides.refusal {
		s.Refusal = withheld
	}
}

// Sends reports whether something would be sent to the backend.
func (r *Recorder) Sends() bool { return len(r.explanation.Sent) > 0 }

// Finish ends the explanation with the answer. The chain has all policies, also the ones that were not about
// the request.
func (r *Recorder) Finish(ctx context.Context, chain *admission.Chain,
	a explanation.Response) *explanation.Explanation {
	r.close(nil, nil, "", "")
	r.others(ctx, chain)
	if len(a.Status) > 0 && r.hides.refusal {
		a.Status = withoutMessage(a.Status)
	} else if len(a.Status) > 0 {
		if a.Status = json.RawMessage(r.hiding.text(string(a.Status))); !json.Valid(a.Status) {
			a.Status = json.RawMessage(`"(hidden)"`)
		}
	}
	for i := range a.Warnings {
		if a.Warnings[i] = r.hiding.text(a.Warnings[i]); r.hides.warnings {
			a.Warnings[i] = withheld
		}
	}
	r.explanation.Answer = a
	return &r.explanation
}

// withoutMessage is an answer without what its author wrote: a Status, or a problem.
func withoutMessage(answer json.RawMessage) json.RawMessage {
	var shown struct {
		Kind       string `json:"kind,omitempty"`
		APIVersion string `json:"apiVersion,omitempty"`
		Type       string `json:"type,omitempty"`
		Status     any    `json:"status,omitempty"`
		Message    string `json:"message"`
		Reason     string `json:"reason,omitempty"`
		Code       int    `json:"code,omitempty"`
	}
	if err := json.Unmarshal(answer, &shown); err != nil {
		return json.RawMessage(`"` + withheld + `"`)
	}
	shown.Message = withheld
	text, err := json.Marshal(&shown)
	if err != nil {
		return json.RawMessage(`"` + withheld + `"`)
	}
	return text
}

// others adds the policies that are not about the request.
func (r *Recorder) others(ctx context.Context, chain *admission.Chain) {
	a := r.attributes
	if a == nil || a.Info == nil || chain == nil {
		return
	}
	if r.explanation.Resource != nil {
		r.explanation.Resource.Operation = a.Operation.String()
	}
	chain.Each(func(p admission.Policy, mutates bool) {
		if r.ran[keyOf(p, mutates)] {
			return
		}
		one := explanation.Policy{Kind: kindOf(p, a), Name: p.Name(), Verdict: explanation.NoMatch,
			Reasons: reasonsOf(ctx, p, a)}
		if len(one.Reasons) > 0 && r.spend(len(one.Kind)+len(one.Name)) {
			r.explanation.Others = append(r.explanation.Others, one)
		}
	})
}

// See records the attributes that policies would see, if none saw them.
func (r *Recorder) See(a *admission.Attributes) {
	if r != nil && r.attributes == nil {
		r.attributes = a
	}
}

func keyOf(p admission.Policy, mutates bool) string {
	if mutates {
		return "m " + p.Name()
	}
	return "v " + p.Name()
}

// kindOf is the kind of a policy; empty if it does not say so.
func kindOf(p admission.Policy, a *admission.Attributes) string {
	e, is := p.(admission.Explainer)
	if !is {
		return ""
	}
	for _, o := range e.Applicabilities(a) {
		return o.Kind
	}
	return ""
}

// reasonsOf returns why a policy does not match the request. A panic of a policy is not a reason.
func reasonsOf(ctx context.Context, p admission.Policy, a *admission.Attributes) (found []explanation.Reason) {
	defer func() {
		if recover() != nil {
			found = nil
		}
	}()
	for _, x := range admission.ReasonsOf(ctx, p, a) {
		found = append(found, explanation.Reason{Binding: x.Binding, Field: x.Field, Because: strings.Clone(x.Because)})
	}
	return found
}
