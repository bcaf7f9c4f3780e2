package status

import (
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestDenialSentences: denials begin as Kubernetes' do, whose quotes differ.
func TestDenialSentences(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{DeniedByValidatingPolicy("p", "b"), "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "},
		{DeniedByValidatingPolicy("p", ""), "ValidatingAdmissionPolicy 'p' denied request: "},
		{DeniedByMutatingPolicy("p", "b"), "policy 'p' with binding 'b' denied request: "},
		{DeniedByMutatingPolicy("p", ""), `policy "p" denied request: `},
		{DeniedByPolicy("p"), "policy 'p' denied request: "},
		{ValidationFailed("p", "b", "why"),
			"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': why"},
	} {
		if c.got != c.want {
			t.Errorf("got  %s\nwant %s", c.got, c.want)
		}
	}
}

// TestDenialOfTwoBindings: a policy finds something once, and each binding denies it by its own name.
func TestDenialOfTwoBindings(t *testing.T) {
	found := Denial{Cause: metav1.StatusCause{Message: "spec: no"},
		Details: []metav1.StatusCause{{Message: "spec.a: no"}}}
	first, second := found, found
	first.Begin("one: ")
	second.Begin("two: ")
	want := []Denial{
		{Cause: metav1.StatusCause{Message: "one: spec: no"},
			Details: []metav1.StatusCause{{Message: "one: spec.a: no"}}},
		{Cause: metav1.StatusCause{Message: "two: spec: no"},
			Details: []metav1.StatusCause{{Message: "two: spec.a: no"}}},
	}
	if got := []Denial{first, second}; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestDeniedByWebhook: what webhooks deny is worded as kube-apiserver words it, with a line for each denial, beside
// what other policies say.
func TestDeniedByWebhook(t *testing.T) {
	hook := func(message string) Denial {
		return Denial{Webhook: "validation.gatekeeper.sh", Reason: metav1.StatusReasonForbidden,
			Cause: metav1.StatusCause{Message: message}}
	}
	other := Denial{Reason: metav1.StatusReasonForbidden,
		Cause: metav1.StatusCause{Message: "policy 'p' denied request: no"}}
	many := make([]Denial, MaxCauses+2)
	for i := range many {
		many[i] = hook("[a] x")
	}
	const sentence = `admission webhook "validation.gatekeeper.sh" denied the request: `
	for _, c := range []struct {
		denials []Denial
		want    string
		causes  int
	}{
		{[]Denial{hook("[a] x")}, sentence + "[a] x", 1},
		{[]Denial{hook("[a] x"), hook("[b] y"), hook("[b] y")}, sentence + "[a] x\n[b] y\n[b] y", 2},
		{[]Denial{hook("[a] x"), other, hook("[b] y")}, `pods "p" is forbidden: ` + sentence +
			"[a] x\n[b] y; policy 'p' denied request: no", 3},
		{many, sentence + strings.Repeat("[a] x\n", MaxCauses-1) + "[a] x; and 2 more", 2},
	} {
		got := Denied(schema.GroupResource{Resource: "pods"}, "p", c.denials).ErrStatus
		if got.Message != c.want || got.Code != 403 || got.Reason != metav1.StatusReasonForbidden ||
			len(got.Details.Causes) != c.causes {
			t.Errorf("got  %d %s %q with %d causes\nwant 403 Forbidden %q with %d", got.Code, got.Reason, got.Message,
				len(got.Details.Causes), c.want, c.causes)
		}
	}
}
