package status

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Denial is one reason why a policy refuses a request.
type Denial struct {
	// Policy is the name of the policy, and Binding the name of its binding, if it has
	// bindings.
	Policy, Binding string
	// Reason is the reason of the answer; empty means Invalid.
	Reason metav1.StatusReason
	// Cause says what is wrong. Its message is the whole sentence that the client
	// reads. An empty type means FieldValueInvalid, and an empty field that none is
	// known.
	Cause metav1.StatusCause
	// Details are further causes: what else is wrong, or which items are. The
	// answer's message does not repeat them.
	Details []metav1.StatusCause
	// Failed is set if the policy could not decide.
	Failed bool
	// Webhook is the name of the admission webhook as whose answer the denial is worded; empty for
	// policies that are no webhook's.
	Webhook string
}

// Begin puts the beginning of a sentence before the messages of the denial.
func (d *Denial) Begin(sentence string) {
	d.Cause.Message = sentence + d.Cause.Message
	d.Details = slices.Clone(d.Details) // other bindings share them
	for i := range d.Details {
		d.Details[i].Message = sentence + d.Details[i].Message
	}
}

// Warning is the warning in place of the denial, worded as warnings of its kind of policies are.
func (d *Denial) Warning() string {
	message := d.Cause.Message
	if d.Webhook != "" {
		return message
	}
	if text, is := strings.CutPrefix(message, DeniedByValidatingPolicy(d.Policy, d.Binding)); is {
		return ValidationFailed(d.Policy, d.Binding, text)
	}
	for _, sentence := range []string{DeniedByMutatingPolicy(d.Policy, d.Binding), DeniedByPolicy(d.Policy)} {
		if text, is := strings.CutPrefix(message, sentence); is {
			return PolicyWarns(d.Policy, text)
		}
	}
	return message
}

// PlaceIn says that the denial concerns a part of the body: an item such as "[3]".
func (d *Denial) PlaceIn(item string) {
	place := func(c *metav1.StatusCause) {
		rest, isPlaced := strings.CutPrefix(c.Message, c.Field+": ")
		switch {
		case c.Field == "":
			c.Field = item
		case c.Field[0] == '[':
			c.Field = item + c.Field
		default:
			c.Field = item + "." + c.Field
		}
		if isPlaced && rest != c.Message {
			c.Message = c.Field + ": " + rest
			return
		}
		c.Message = item + ": " + c.Message
	}
	d.Details = slices.Clone(d.Details) // other bindings share them
	place(&d.Cause)
	for i := range d.Details {
		place(&d.Details[i])
	}
}

// The sentences of denials begin as Kubernetes' do. They name the policy and its
// binding, or the policy alone if the binding is "".

// DeniedByValidatingPolicy begins the sentences of ValidatingAdmissionPolicies.
func DeniedByValidatingPolicy(policy, binding string) string {
	return "ValidatingAdmissionPolicy '" + policy + "'" + withBinding(binding) + " denied request: "
}

// DeniedByMutatingPolicy begins the sentences of MutatingAdmissionPolicies.
func DeniedByMutatingPolicy(policy, binding string) string {
	if binding == "" {
		return `policy "` + policy + `" denied request: `
	}
	return "policy '" + policy + "'" + withBinding(binding) + " denied request: "
}

// DeniedByPolicy begins the sentences of all other policies, which have no
// bindings.
func DeniedByPolicy(policy string) string {
	return "policy '" + policy + "' denied request: "
}

// deniedByWebhook begins the message of a refusal by an admission webhook, as kube-apiserver words it.
func deniedByWebhook(name string) string {
	return "admission webhook \"" + name + "\" denied the request: "
}

// DeniedByWebhook is the answer to a request that an admission webhook refuses, or fails for.
func DeniedByWebhook(name string, code int, why string) *Error {
	reason := metav1.StatusReasonForbidden
	if code >= http.StatusInternalServerError {
		reason = metav1.StatusReasonInternalError
	}
	return failure(code, reason, deniedByWebhook(name)+why)
}

// ValidationFailed is the warning about a request that a ValidatingAdmissionPolicy
// would deny, if its binding did not ask for a warning.
func ValidationFailed(policy, binding, message string) string {
	return "Validation failed for ValidatingAdmissionPolicy '" + policy + "'" + withBinding(binding) + ": " + message
}

// PolicyWarns is the warning of a policy without bindings.
func PolicyWarns(policy, message string) string { return "policy '" + policy + "': " + message }

func withBinding(binding string) string {
	if binding == "" {
		return ""
	}
	return " with binding '" + binding + "'"
}

// Denied is the answer to a request that policies deny: Kubernetes' sentence,
// `<resource.group> "<name>" is forbidden: <denial>`, with code and reason of the
// first denial. Several denials are joined by semicolons, and each is a cause.
// Denials by one webhook alone have its sentence. There must be one.
func Denied(gr schema.GroupResource, name string, denials []Denial) *Error {
	kept, more := distinct(denials)
	why, webhook := wordsOf(kept, more)
	err := Forbidden(gr, name, why)
	if webhook != "" {
		err.ErrStatus.Message = why
	}
	err.ErrStatus.Reason = cmp.Or(denials[0].Reason, metav1.StatusReasonInvalid)
	err.ErrStatus.Code = codeOf(err.ErrStatus.Reason)
	err.ErrStatus.Details.Causes = causesOf(kept, more)
	return err
}

// distinct returns the denials that an answer lists, and words for the others. A denial of a
// webhook is repeated, as the webhook does.
func distinct(denials []Denial) (kept []*Denial, more string) {
	kept = make([]*Denial, 0, min(len(denials), MaxCauses))
	for i := range denials {
		d := &denials[i]
		if d.Webhook == "" && slices.ContainsFunc(kept,
			func(k *Denial) bool { return k.Cause.Message == d.Cause.Message && k.Cause.Field == d.Cause.Field }) {
			continue
		}
		if len(kept) == MaxCauses {
			return kept, fmt.Sprintf("and %d more", len(denials)-MaxCauses)
		}
		kept = append(kept, d)
	}
	return kept, ""
}

// causesOf are the denials as causes, each once, and then their details.
func causesOf(denials []*Denial, more string) []metav1.StatusCause {
	causes := make([]metav1.StatusCause, 0, len(denials)+1)
	for _, d := range denials {
		cause := d.Cause
		cause.Type = cmp.Or(cause.Type, metav1.CauseTypeFieldValueInvalid)
		if d.Webhook == "" || !slices.Contains(causes, cause) {
			causes = append(causes, cause)
		}
	}
	if more != "" {
		causes = append(causes, metav1.StatusCause{Message: more})
	}
	for _, d := range denials {
		for _, x := range d.Details {
			if len(causes) < MaxCauses && !slices.Contains(causes, x) {
				causes = append(causes, x)
			}
		}
	}
	return causes
}

// wordsOf joins the messages of denials. What a webhook says is one sentence, with a line for each of
// its denials. The webhook's name is returned if there is nothing else.
func wordsOf(denials []*Denial, more string) (why, webhook string) {
	var sentences, lines []string
	place := -1
	for _, d := range denials {
		if d.Webhook == "" {
			sentences = append(sentences, d.Cause.Message)
			continue
		}
		if place < 0 {
			place, webhook = len(sentences), d.Webhook
			sentences = append(sentences, "")
		}
		lines = append(lines, d.Cause.Message)
	}
	if place >= 0 {
		sentences[place] = deniedByWebhook(webhook) + strings.Join(lines, "\n")
	}
	if len(sentences) > 1 {
		webhook = ""
	}
	if more != "" {
		sentences = append(sentences, more)
	}
	return strings.Join(sentences, "; "), webhook
}

// MutationDenied is the answer to a request for which policies that change objects
// failed: as in Kubernetes 403, with the reason of the first failure and without
// the sentence that other denials have. There must be one.
func MutationDenied(gr schema.GroupResource, name string, denials []Denial) *Error {
	err := Denied(gr, name, denials)
	messages := make([]string, 0, len(err.ErrStatus.Details.Causes))
	for _, c := range err.ErrStatus.Details.Causes {
		messages = append(messages, c.Message)
	}
	err.ErrStatus.Message = strings.Join(messages, "; ")
	err.ErrStatus.Code = http.StatusForbidden
	err.ErrStatus.Reason = cmp.Or(denials[0].Reason, metav1.StatusReasonForbidden)
	return err
}

// codeOf is the HTTP status for a reason that policies may give.
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
