package status

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAppendProblem(t *testing.T) {
	for _, c := range []struct {
		name   string
		status metav1.Status
		want   string
	}{
		{"nothing but a code", metav1.Status{Code: 404}, `{"type":"about:blank","title":"Not Found","status":404}`},
		{"a code without a phrase", metav1.Status{Code: 499, Reason: "Gone away"},
			`{"type":"about:blank","title":"Gone away","status":499,"reason":"Gone away"}`},
		{"all causes", metav1.Status{Code: 422, Reason: metav1.StatusReasonInvalid, Message: `a "b"`,
			Details: &metav1.StatusDetails{
				Causes: []metav1.StatusCause{{Type: "FieldValueRequired", Message: "Required value", Field: "spec.a"},
					{Message: "all of it"}},
			}}, `{"type":"about:blank","title":"Unprocessable Entity","status":422,"detail":"a \"b\"","reason":"Invalid",` +
			`"errors":[{"detail":"Required value","field":"spec.a","reason":"FieldValueRequired"},{"detail":"all of it"}]}`},
		{"a wait", metav1.Status{Code: 429, Details: &metav1.StatusDetails{RetryAfterSeconds: 7}}, `{"type":"about:blank","title":"Too Many Requests","status":429,"retryAfterSeconds":7}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(AppendProblem(nil, &c.status)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
