package admission

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// A Denial is one reason for refusing a request.
type Denial struct {
	// Policy is the name of the policy, Binding that of its binding, if it has
	// bindings.
	Policy, Binding string
	// Message is the whole sentence that the client reads.
	Message string
	// Reason is the reason of the answer; empty means Invalid.
	Reason metav1.StatusReason
	// Type says what is wrong with the field, as the reason of the cause; empty
	// means FieldValueInvalid.
	Type metav1.CauseType
	// Field is the path of the field that it is about; empty where it is not
	// known.
	Field string
	// Details are further causes: what else is wrong, or which items are. The
	// answer's message does not repeat them.
	Details []metav1.StatusCause
	// Failed tells that the policy could not come to a decision.
	Failed bool
}

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
	denials  []Denial
	warnings []string
	ignored  []IgnoredFailure
	audited  []AuditedFailure
	notes    []note
	answer   *status.Error
}

// Deny adds a reason for refusing the request.
func (r *Report) Deny(d Denial) { r.denials = append(r.denials, d) }

// Answer settles the answer to the request, whatever policies say; the first one
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

// Denials are the reasons for refusing the request, in the order of the
// policies' names.
func (r *Report) Denials() []Denial { return r.denials }

// Warnings are the texts for Warning headers.
func (r *Report) Warnings() []string { return r.warnings }

// IgnoredFailures are the failures of policies that were let pass.
func (r *Report) IgnoredFailures() []IgnoredFailure { return r.ignored }

// Reset empties the report and keeps its memory.
func (r *Report) Reset() {
	clear(r.denials)
	clear(r.warnings)
	clear(r.ignored)
	clear(r.audited)
	clear(r.notes)
	*r = Report{denials: r.denials[:0], warnings: r.warnings[:0], ignored: r.ignored[:0], audited: r.audited[:0], notes: r.notes[:0]}
}

// codeOf is the HTTP status for a reason, of those that policies may give.
func codeOf(reason metav1.StatusReason) int32 {
	switch reason {
	case metav1.StatusReasonUnauthorized:
		return http.StatusUnauthorized
	case metav1.StatusReasonForbidden:
		return http.StatusForbidden
	case metav1.StatusReasonRequestEntityTooLarge:
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusUnprocessableEntity
}

// nameIn is how an answer names the object of a request, as in Kubernetes: by what its name is to be made of where it has
// none yet.
func nameIn(a *Attributes) string {
	if name := a.Name(); name != "" {
		return name
	}
	if a.Object != nil && (a.Resource == nil || a.Resource.Envelope == resource.Kubernetes) {
		if base := text(at(a.Object.Root(), "metadata", "generateName")); base != "" {
			return base
		}
	}
	return "Unknown"
}

// Err is the answer to the request, nil when nothing denies it: Kubernetes'
// sentence, `<resource.group> "<name>" is forbidden: <denial>`, with code and
// reason of the first denial. Several denials are joined by semicolons, and each
// is a cause.
func (r *Report) Err(a *Attributes) *status.Error {
	if r.answer != nil {
		return r.answer
	}
	if len(r.denials) == 0 {
		return nil
	}
	var why strings.Builder
	causes := make([]metav1.StatusCause, 0, min(len(r.denials), status.MaxCauses+1))
	for _, d := range r.denials {
		if slices.ContainsFunc(causes, func(c metav1.StatusCause) bool { return c.Message == d.Message && c.Field == d.Field }) {
			continue
		}
		if len(causes) == status.MaxCauses {
			more := fmt.Sprintf("and %d more", len(r.denials)-status.MaxCauses)
			why.WriteString("; " + more)
			causes = append(causes, metav1.StatusCause{Message: more})
			break
		}
		if len(causes) > 0 {
			why.WriteString("; ")
		}
		why.WriteString(d.Message)
		causes = append(causes, metav1.StatusCause{Type: cmp.Or(d.Type, metav1.CauseTypeFieldValueInvalid), Message: d.Message, Field: d.Field})
	}
	for _, d := range r.denials {
		for _, x := range d.Details {
			if len(causes) < status.MaxCauses && !slices.Contains(causes, x) {
				causes = append(causes, x)
			}
		}
	}
	reason := r.denials[0].Reason
	if reason == "" {
		reason = metav1.StatusReasonInvalid
	}
	err := status.Forbidden(a.Info.GroupResource(), nameIn(a), why.String())
	err.ErrStatus.Reason = reason
	err.ErrStatus.Code = codeOf(reason)
	err.ErrStatus.Details.Causes = causes
	return err
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

const (
	failureAnnotation  = "validation.policy.admission.k8s.io/validation_failure"
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
	return all
}
