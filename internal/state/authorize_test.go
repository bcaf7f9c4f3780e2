package state

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/admission-gateway/gateway/internal/access"
)

// TestAuthorize: questions and answers, as kube-apiserver's own webhook for authorization has them.
func TestAuthorize(t *testing.T) {
	about := authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: "jane", UID: "u1", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}},
		Verb: "get", ResourceRequest: true, APIGroup: "apps", APIVersion: "*", Resource: "deployments",
		Namespace: "team-a", Name: "web",
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
		{"allowed", `{"kind":"SubjectAccessReview","status":{"allowed":true,"reason":"RBAC"}}`, 201, nil,
			authorizer.DecisionAllow, "RBAC", ""},
		{"denied", `{"kind":"SubjectAccessReview","status":{"allowed":false,"denied":true,"reason":"no"}}`, 201, nil, authorizer.DecisionDeny, "no", ""},
		{"no opinion", `{"kind":"SubjectAccessReview","status":{"allowed":false}}`, 201, nil,
			authorizer.DecisionNoOpinion, "", ""},
		{"both", `{"kind":"SubjectAccessReview","status":{"allowed":true,"denied":true}}`, 201, nil,
			authorizer.DecisionDeny, "", "the backend both allowed and denied it"},
		{"forbidden", `{}`, 403, nil, authorizer.DecisionNoOpinion, "", "the backend answered 403 Forbidden: add {apiGroups: [\"authorization.k8s.io\"], resources: [\"subjectaccessreviews\"], verbs: [\"create\"]} to the role of the gateway's own account"},
		{"nonsense", `x`, 201, nil, authorizer.DecisionNoOpinion, "", "the backend's answer cannot be read"},
		{"down", ``, 0, errors.New("the backend cannot be reached"), authorizer.DecisionNoOpinion, "",
			"the backend cannot be reached"},
	} {
		s := newServer()
		s.raw, s.code = c.raw, c.code
		if c.fail != nil {
			s.break_(c.fail)
		}
		a := &Authorizer{Backend: s, Reviews: access.New()}
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

// shut is a gate that lets nothing be read.
type shut struct{ err error }

func (g shut) MayRead() error { return g.err }

// TestAuthorizeGate: nothing is asked for a request for which nothing may be read.
func TestAuthorizeGate(t *testing.T) {
	s, why := newServer(), errors.New("may not")
	a := &Authorizer{Backend: s, Reviews: access.New(), Gate: shut{why}}
	decision, _, err := a.Authorize(context.Background(), authorizer.AttributesRecord{})
	if decision != authorizer.DecisionNoOpinion || err != why || len(s.requests) > 0 {
		t.Errorf("%v %v after %q", decision, err, s.requests)
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
