package admission

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// An IgnoredFailure is a failure of a policy that its failure policy lets pass.
type IgnoredFailure struct {
	Policy string
	Err    error
}

// An Annotation is one annotation of the request's audit event.
type Annotation struct{ Key, Value string }

// A Report collects what policies find in one request. The zero value is empty
// and ready; Reset makes a used one so again.
type Report struct {
	// Observer is called with the verdict of each policy; it may be nil.
	Observer Observer
	// Decisions logs the evaluations of rules in Rego and of constraints; nil if they are not
	// logged.
	Decisions DecisionLogger
	// Recorder records all that policies do; nil if no explanation is wanted.
	Recorder Recorder

	denials  []status.Denial
	warnings []string
	ignored  []IgnoredFailure
	relaxed  []IgnoredFailure
	audited  []AuditedFailure
	notes    []note
	answer   *status.Error
	dryRuns  dryRuns
}

// A Verdict is a policy's decision on a request, in a word.
type Verdict string

// The verdicts.
const (
	Allowed Verdict = "Allow"
	Denied  Verdict = "Deny"
	// Errored is the verdict of a policy that failed, and for which the request is refused, or will be once the policy
	// is enforced.
	Errored Verdict = "Error"
	// Passed is the verdict of a policy that failed, and is ignored then.
	Passed Verdict = "Ignore"
	// Noted is the verdict of a policy whose failures are only audited.
	Noted Verdict = "Audit"
	// Changed and Unchanged are the verdicts of mutators.
	Changed   Verdict = "Mutate"
	Unchanged Verdict = "Unchanged"
	// WouldDeny and WouldMutate are the verdicts of policies that are only tried, and NotAsked is the
	// one of a policy that is not asked because of an exception.
	WouldDeny   Verdict = "WouldDeny"
	WouldMutate Verdict = "WouldMutate"
	NotAsked    Verdict = "Except"
)

// An Observer is called with the verdicts of policies.
type Observer interface {
	// Decided is called after each policy that concerned the request, with its place in [Chain.Names] and
	// the units of cost that its expressions took. The binding is the one of the first denial, if any.
	Decided(place int, policy, binding string, v Verdict, cost int64)
}

// A Recorder records all that policies do for one request. It is nil unless an explanation is
// wanted.
type Recorder interface {
	// Begin is called before a policy runs, with the report as it is then.
	Begin(ctx context.Context, p Policy, a *Attributes, r *Report)
	// End is called when it has run.
	End(a *Attributes, r *Report, binding string, v Verdict)
}

// sizes are how much a report has of each.
type sizes struct {
	denials, ignored, audited int
	tried, excepted           int
	spent                     int64
}

// measure returns how much there is before a policy runs.
func (r *Report) measure(a *Attributes) (s sizes) {
	if r.Observer == nil && r.Recorder == nil {
		return s
	}
	return sizes{len(r.denials), len(r.ignored), len(r.audited), len(r.dryRuns.failures), len(r.dryRuns.excepted),
		spentOf(a)}
}

func spentOf(a *Attributes) int64 {
	if a.Frame == nil {
		return 0
	}
	return a.Frame.Spent()
}

// decided reports a policy to the observer: what it added to the report, or otherwise the verdict.
func (r *Report) decided(place int, policy string, before sizes, a *Attributes, otherwise Verdict) {
	if r.Observer == nil && r.Recorder == nil {
		return
	}
	verdict, binding := otherwise, ""
	switch {
	case len(r.denials) > before.denials:
		verdict, binding = refusal(r.denials[before.denials:])
	case len(r.dryRuns.excepted) > before.excepted:
		verdict, binding = NotAsked, ""
	case len(r.dryRuns.failures) > before.tried:
		verdict, binding = dryRunVerdict(r.dryRuns.failures[before.tried:])
	case len(r.ignored) > before.ignored:
		verdict = Passed
	case len(r.audited) > before.audited:
		verdict, binding = Noted, r.audited[before.audited].Binding
	}
	if r.Recorder != nil {
		r.Recorder.End(a, r, binding, verdict)
	}
	if r.Observer != nil {
		r.Observer.Decided(place, policy, binding, verdict, spentOf(a)-before.spent)
	}
}

// refusal returns the verdict of denials: a policy that decided nothing failed.
func refusal(denials []status.Denial) (v Verdict, binding string) {
	for i := range denials {
		if !denials[i].Failed {
			return Denied, denials[i].Binding
		}
	}
	return Errored, denials[0].Binding
}

// dryRunVerdict returns the verdict of the failures of a policy in a dry run.
func dryRunVerdict(failures []DryRunFailure) (v Verdict, binding string) {
	if at := slices.IndexFunc(failures, DryRunFailure.refuses); at >= 0 {
		return WouldDeny, failures[at].Binding
	}
	return Errored, failures[0].Binding
}

// Deny adds a reason for refusing the request.
func (r *Report) Deny(d status.Denial) { r.denials = append(r.denials, d) }

// Answer sets the answer to the request, whatever policies say; the first one
// counts.
func (r *Report) Answer(err *status.Error) {
	if r.answer == nil {
		r.answer = err
	}
}

// Warn adds a text for a Warning header; a text is sent once.
func (r *Report) Warn(text string) {
	if !slices.Contains(r.warnings, text) {
		r.warnings = append(r.warnings, text)
	}
}

// Ignored notes that a policy failed and the request goes on.
func (r *Report) Ignored(policy string, err error) {
	r.ignored = append(r.ignored, IgnoredFailure{policy, err})
}

// Relaxed notes that an error in a policy counted as an undefined value, as the policy asks for. The
// first error of each policy is kept.
func (r *Report) Relaxed(policy string, err error) {
	if !slices.ContainsFunc(r.relaxed, func(f IgnoredFailure) bool { return f.Policy == policy }) {
		r.relaxed = append(r.relaxed, IgnoredFailure{policy, err})
	}
}

// RelaxedErrors are the errors that counted as undefined values, the first one of each policy.
func (r *Report) RelaxedErrors() []IgnoredFailure { return r.relaxed }

// Denials are the reasons for refusing the request, in the order of the
// policies' names.
func (r *Report) Denials() []status.Denial { return r.denials }

// Warnings are the texts for Warning headers.
func (r *Report) Warnings() []string { return r.warnings }

// IgnoredFailures are the failures of policies that were let pass.
func (r *Report) IgnoredFailures() []IgnoredFailure { return r.ignored }

// IsEmpty reports whether policies found nothing, or nothing but reasons to warn.
func (r *Report) IsEmpty() bool {
	return r.answer == nil && len(r.denials)+len(r.ignored)+len(r.relaxed)+len(r.audited)+len(r.notes) == 0 &&
		r.dryRuns.isEmpty()
}

// Reset empties the report and keeps its memory.
func (r *Report) Reset() {
	if r.IsEmpty() && len(r.warnings) == 0 {
		return
	}
	clear(r.denials)
	clear(r.warnings)
	clear(r.ignored)
	clear(r.relaxed)
	clear(r.audited)
	clear(r.notes)
	*r = Report{Observer: r.Observer, Decisions: r.Decisions, Recorder: r.Recorder, denials: r.denials[:0],
		warnings: r.warnings[:0], ignored: r.ignored[:0], relaxed: r.relaxed[:0], audited: r.audited[:0],
		notes: r.notes[:0]}
}

// nameIn is how an answer names the object of a request, as in Kubernetes: by the prefix of its
// name if it has none yet. A plain API gives names later, and knows none called Unknown.
func nameIn(a *Attributes) string {
	if name := a.Name(); name != "" || a.Resource != nil && a.Resource.Envelope == resource.Bare {
		return name
	}
	if a.Object != nil && (a.Resource == nil || a.Resource.Envelope == resource.Kubernetes) {
		if base := text(at(a.Object.Root(), "metadata", "generateName")); base != "" {
			return base
		}
	}
	return "Unknown"
}

// Err is the answer to the request, nil when nothing denies it.
func (r *Report) Err(a *Attributes) error {
	if r.answer != nil {
		return r.answer
	}
	if len(r.denials) == 0 {
		return nil
	}
	return status.Denied(a.Info.GroupResource(), nameIn(a), r.denials)
}

// mutationErr is the answer to a request that mutators failed for, nil if none did.
func (r *Report) mutationErr(a *Attributes) error {
	if len(r.denials) == 0 {
		return nil
	}
	return status.MutationDenied(a.Info.GroupResource(), nameIn(a), r.denials)
}

// An AuditedFailure is a failed validation that is only noted in the audit
// event, in Kubernetes' JSON.
type AuditedFailure struct {
	Message           string   `json:"message"`
	Policy            string   `json:"policy"`
	Binding           string   `json:"binding"`
	ExpressionIndex   int      `json:"expressionIndex"`
	ValidationActions []string `json:"validationActions"`
}

// Audit adds a failed validation to the audit event.
func (r *Report) Audit(f AuditedFailure) { r.audited = append(r.audited, f) }

// note is a value of an annotation that a policy makes; one policy may make several for a key.
type note struct{ policy, key, value string }

// maxAnnotationBytes is how long one value of an annotation may be.
const maxAnnotationBytes = 10 << 10

// Annotate adds a policy's own annotation, POLICY/KEY, to the audit event. Values
// are cut at 10 KiB; different values of one key are joined by a comma.
func (r *Report) Annotate(policy, key, value string) {
	if len(value) > maxAnnotationBytes {
		value = strings.ToValidUTF8(value[:maxAnnotationBytes], "")
	}
	n := note{policy, key, strings.Clone(value)}
	if !slices.Contains(r.notes, n) {
		r.notes = append(r.notes, n)
	}
}

// The annotations of the audit event that the gateway makes. The first is Kubernetes' own.
const (
	failureAnnotation   = "validation.policy.admission.k8s.io/validation_failure"
	triedAnnotation     = "rollout.admission-gateway.io/would_deny"
	exceptionAnnotation = "rollout.admission-gateway.io/excepted"

	maxAuditedFailures = 50
)

// AuditedFailures are the failed validations that are only noted.
func (r *Report) AuditedFailures() []AuditedFailure { return r.audited }

// Annotations are the annotations of the audit event, whatever the verdict.
func (r *Report) Annotations() []Annotation {
	var all []Annotation
	for _, n := range r.notes {
		key := n.policy + "/" + n.key
		if i := slices.IndexFunc(all, func(a Annotation) bool { return a.Key == key }); i >= 0 {
			all[i].Value += ", " + n.value
			continue
		}
		all = append(all, Annotation{key, n.value})
	}
	if len(r.audited) > 0 {
		// A list of strings and numbers always has a JSON form.
		value, _ := json.Marshal(r.audited[:min(len(r.audited), maxAuditedFailures)])
		all = append(all, Annotation{failureAnnotation, string(value)})
	}
	if found := r.dryRuns.failures; len(found) > 0 {
		value, _ := json.Marshal(found[:min(len(found), maxAuditedFailures)])
		all = append(all, Annotation{triedAnnotation, string(value)})
	}
	if found := r.dryRuns.excepted; len(found) > 0 {
		value, _ := json.Marshal(found[:min(len(found), maxAuditedFailures)])
		all = append(all, Annotation{exceptionAnnotation, string(value)})
	}
	return all
}
