package access

import (
	"net/http"
	"testing"

	"github.com/admission-gateway/gateway/internal/status"
)

// TestRuleOf: the rule that a role needs for a request, as the API server would authorize it.
func TestRuleOf(t *testing.T) {
	for _, c := range []struct {
		method, target string
		want           status.AccessRule
		is             bool
	}{
		{"GET", "/api/v1/namespaces/a/pods/b", status.AccessRule{Resource: "pods", Verb: "get"}, true},
		{"GET", "/api/v1/namespaces/a", status.AccessRule{Resource: "namespaces", Verb: "get"}, true},
		{"GET", "/apis/apps/v1/deployments?limit=500",
			status.AccessRule{Group: "apps", Resource: "deployments", Verb: "list"}, true},
		{"GET", "/apis/apps/v1/deployments?watch=true",
			status.AccessRule{Group: "apps", Resource: "deployments", Verb: "watch"}, true},
		{"GET", "/apis/apps/v1/namespaces/a/deployments/b/scale",
			status.AccessRule{Group: "apps", Resource: "deployments", Subresource: "scale", Verb: "get"}, true},
		{"POST", SubjectTarget, status.AccessRule{Group: "authorization.k8s.io", Resource: "subjectaccessreviews",
			Verb: "create"}, true},
		{"GET", "/version", status.AccessRule{}, false},
		{"GET", "version", status.AccessRule{}, false},
	} {
		if got, is := RuleOf(c.method, c.target); got != c.want || is != c.is {
			t.Errorf("%s %s: %+v, %t", c.method, c.target, got, is)
		}
	}
	if got := Lacking(http.StatusNotFound, "GET", "/api/v1/pods"); got != "" {
		t.Errorf("what is not there lacks %q", got)
	}
}
