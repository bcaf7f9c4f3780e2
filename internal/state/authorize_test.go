package state

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// TestAuthorize: questions and answers, as kube-apiserver's own webhook for authorization has them.
func TestAuthorize(t *testing.T) {
	about := authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: "jane", UID: "u1", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}},
		Verb: "get", ResourceRequest: true, APIGroup: "apps", APIVersion: "*", Resource: "deployments", Namespace: "team-a", Name: "web",
	}
	const question = `POST /apis/authorization.k8s.io/v1/subjectaccessreviews{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":` +
		`{"resourceAttributes":{"namespace":"team-a","verb":"get","group":"apps","version":"*","resource":"deployments","name":"web"},` +
		`"user":"jane","groups":["g"],"extra":{"k":["v"]},"uid":"u1"},"status":{"allowed":false}}`
	for _, c := range []struct {
		name, raw string
		code      int
		fail      error
		want      authorizer.Decision
		reason    string
		err       string
	}{
		{"allowed", `{"status":{"allowed":true,"reason":"RBAC"}}`, 201, nil, authorizer.DecisionAllow, "RBAC", ""},
		{"denied", `{"status":{"allowed":false,"denied":true,"reason":"no"}}`, 201, nil, authorizer.DecisionDeny, "no", ""},
		{"no opinion", `{"status":{"allowed":false}}`, 201, nil, authorizer.DecisionNoOpinion, "", ""},
		{"both", `{"status":{"allowed":true,"denied":true}}`, 201, nil, authorizer.DecisionDeny, "", "the backend both allowed and denied it"},
		{"forbidden", `{}`, 403, nil, authorizer.DecisionNoOpinion, "", "the backend answered 403 Forbidden"},
		{"nonsense", `x`, 201, nil, authorizer.DecisionNoOpinion, "", "the backend's answer cannot be read"},
		{"down", ``, 0, errors.New("the backend cannot be reached"), authorizer.DecisionNoOpinion, "", "the backend cannot be reached"},
	} {
		s := newServer()
		s.raw, s.code = c.raw, c.code
		if c.fail != nil {
			s.break_(c.fail)
		}
		a := &Authorizer{Backend: s}
		for range 3 {
			decision, reason, err := a.Authorize(context.Background(), about)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if decision != c.want || reason != c.reason || got != c.err {
				t.Errorf("%s: %v %q %q", c.name, decision, reason, got)
			}
		}
		if len(s.requests) != 1 || s.requests[0] != question {
			t.Errorf("%s: asked %q", c.name, s.requests)
		}
	}
}

// TestAuthorizeElsewhere: only a Kubernetes API server is asked; anyone else's users may do nothing.
func TestAuthorizeElsewhere(t *testing.T) {
	s := newServer()
	s.plain = true
	for _, a := range []*Authorizer{{Backend: s}, {}} {
		decision, reason, err := a.Authorize(context.Background(), authorizer.AttributesRecord{})
		if decision != authorizer.DecisionDeny || reason != notAsked || err != nil || len(s.requests) > 0 {
			t.Errorf("%v %q %v after %q", decision, reason, err, s.requests)
		}
	}
}

// TestAuthorizeSelectors: selectors narrow the question.
func TestAuthorizeSelectors(t *testing.T) {
	parsed, _ := labels.ParseToRequirements("a=b,c in (d,e),!f,g,h!=i,j>3")
	review := reviewOf(authorizer.AttributesRecord{
		ResourceRequest:           true,
		FieldSelectorRequirements: fields.ParseSelectorOrDie("x=y,z!=w").Requirements(),
		LabelSelectorRequirements: parsed,
	})
	if got := len(review.Spec.ResourceAttributes.LabelSelector.Requirements); got != 5 {
		t.Errorf("%d requirements of labels: %v", got, review.Spec.ResourceAttributes.LabelSelector.Requirements)
	}
	for i, want := range []string{"x In [y]", "z NotIn [w]"} {
		r := review.Spec.ResourceAttributes.FieldSelector.Requirements[i]
		if got := r.Key + " " + string(r.Operator) + " [" + r.Values[0] + "]"; got != want {
			t.Errorf("requirement %s, want %s", got, want)
		}
	}
	path := reviewOf(authorizer.AttributesRecord{Path: "/healthz", Verb: "get"})
	if path.Spec.ResourceAttributes != nil || path.Spec.NonResourceAttributes.Path != "/healthz" {
		t.Errorf("asks %v", path.Spec)
	}
}
