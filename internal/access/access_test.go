package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// TestSelectors: selectors narrow the question.
func TestSelectors(t *testing.T) {
	parsed, _ := labels.ParseToRequirements("a=b,c in (d,e),!f,g,h!=i,j>3")
	review := subjectReview(authorizer.AttributesRecord{
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
	path := subjectReview(authorizer.AttributesRecord{Path: "/healthz", Verb: "get"})
	if path.Spec.ResourceAttributes != nil || path.Spec.NonResourceAttributes.Path != "/healthz" {
		t.Errorf("asks %v", path.Spec)
	}
}

// server answers reviews.
type server struct {
	mu    sync.Mutex
	asked []string
	code  int
	body  string
	err   error
	delay time.Duration
}

func (s *server) post(ctx context.Context, target string, body []byte) (int, []byte, error) {
	s.mu.Lock()
	s.asked = append(s.asked, target+string(body))
	code, answer, err, delay := s.code, s.body, s.err, s.delay
	s.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return 0, nil, ctx.Err()
	}
	return code, []byte(answer), err
}

// takes returns how often the server was asked since the last call.
func (s *server) takes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.asked = nil }()
	return len(s.asked)
}

const (
	yes     = `{"kind":"SubjectAccessReview","status":{"allowed":true}}`
	no      = `{"kind":"SubjectAccessReview","status":{"allowed":false,"reason":"no role"}}`
	denied  = `{"kind":"SubjectAccessReview","status":{"allowed":false,"denied":true,"reason":"by rule"}}`
	asJane  = `{"kind":"SelfSubjectReview","status":{"userInfo":{"username":"jane"}}}`
	nobody  = `{"kind":"SelfSubjectReview","status":{"userInfo":{}}}`
	nothing = ""
)

// web returns the attributes of a create by a user with this name.
func web(name string) *authorizer.AttributesRecord {
	return &authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: name}, Verb: "create", ResourceRequest: true, APIGroup: "apps", APIVersion: "v1",
		Resource: "deployments", Namespace: "team-a",
	}
}

func must(q *ReviewRequest, err error) *ReviewRequest {
	if err != nil {
		panic(err)
	}
	return q
}

// TestQuestions: what is asked, in Kubernetes' form.
func TestQuestions(t *testing.T) {
	s, r := &server{code: 201, body: yes}, New()
	about := web("jane")
	about.User = &user.DefaultInfo{Name: "jane", UID: "u1", Groups: []string{"g"},
		Extra: map[string][]string{"k": {"v"}}}
	for _, q := range []*ReviewRequest{must(r.Subject(s, s.post, about)), must(r.Self(s, []byte("c"), s.post, about)),
		must(r.Who(s, []byte("c"), s.post))} {
		_, _ = r.Ask(context.Background(), q)
	}
	const attributes = `"spec":{"resourceAttributes":{"namespace":"team-a","verb":"create","group":"apps","version":"v1","resource":"deployments"}`
	for i, want := range []string{
		SubjectTarget + `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},` + attributes +
			`,"user":"jane","groups":["g"],"extra":{"k":["v"]},"uid":"u1"},"status":{"allowed":false}}`,
		SelfTarget + `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},` + attributes + `},"status":{"allowed":false}}`,
		WhoTarget + `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","metadata":{},"status":{"userInfo":{}}}`,
	} {
		if s.asked[i] != want {
			t.Errorf("asked\n%s\nwant\n%s", s.asked[i], want)
		}
	}
}

// TestRemembered: an answer counts for ten seconds from when it was asked for, and so does that a question may not be
// asked; any other error is asked about again.
func TestRemembered(t *testing.T) {
	for _, c := range []struct {
		name, body string
		code       int
		err        error
		want       string // verdict, reason and error
		remembered bool
		refuses    bool
	}{
		{"yes", yes, 201, nil, "Allow  <nil>", true, false},
		{"no", no, 200, nil, "NoOpinion no role <nil>", true, true},
		{"denied", denied, 201, nil, "Deny by rule <nil>", true, true},
		{"both", `{"kind":"SubjectAccessReview","status":{"allowed":true,"denied":true}}`, 201, nil,
			"Deny  the backend both allowed and denied it", false, false},
		{"may not be asked", nothing, 403, nil, "NoOpinion  the backend answered 403 Forbidden: add {apiGroups: [\"authorization.k8s.io\"], resources: [\"subjectaccessreviews\"], verbs: [\"create\"]} to the role of the gateway's own account", true, false},
		{"no such user", nothing, 401, nil, "NoOpinion  the backend answered 401 Unauthorized", true, false},
		{"no such API", nothing, 404, nil, "NoOpinion  the backend answered 404 Not Found", false, false},
		{"no code of HTTP", nothing, 599, nil, "NoOpinion  the backend answered 599", false, false},
		{"something else", `{"kind":"Widget","status":{"allowed":true}}`, 201, nil,
			"NoOpinion  the backend's answer cannot be read", false, false},
		{"nonsense", "x", 201, nil, "NoOpinion  the backend's answer cannot be read", false, false},
		{"down", nothing, 0, errors.New("the backend cannot be reached"), "NoOpinion  the backend cannot be reached",
			false, false},
		{"a reason beyond all bounds", `{"kind":"SubjectAccessReview","status":{"reason":"` +
			strings.Repeat("x", maxText+1) + `"}}`, 201, nil,
			"NoOpinion " + strings.Repeat("x", maxText+1) + " <nil>", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, r := &server{code: c.code, body: c.body, err: c.err, delay: time.Second}, New()
				q := must(r.Subject(s, s.post, web("jane")))
				if _, ok := r.Remember(q); ok || r.Refuses() {
					t.Error("something is remembered from the beginning")
				}
				for i, ask := range []func(context.Context, *ReviewRequest) (ReviewResponse, error){r.Ask, r.Try} {
					a, err := ask(t.Context(), q)
					if got := fmt.Sprint(a.Verdict, " ", a.Reason, " ", err); got != c.want {
						t.Errorf("call %d: %s, want %s", i, got, c.want)
					}
				}
				if n := s.takes(); n != map[bool]int{true: 1, false: 2}[c.remembered] {
					t.Errorf("asked %d times", n)
				}
				if _, ok := r.Remember(q); ok != (c.remembered && c.code < 300) || r.Refuses() != c.refuses {
					t.Errorf("remembered %t, refuses %t", ok, r.Refuses())
				}
				time.Sleep(Remembered - time.Second - 1)
				if r.Refuses() != c.refuses {
					t.Error("forgotten too early")
				}
				time.Sleep(time.Nanosecond)
				if _, ok := r.Remember(q); ok || r.Refuses() {
					t.Error("remembered for too long")
				}
				if _, _ = r.Ask(t.Context(), q); s.takes() != 1 {
					t.Error("not asked again")
				}
			})
		})
	}
}

// TestApart: whatever distinguishes two questions, the answer to one is not used for the other.
func TestApart(t *testing.T) {
	s, other, r := &server{code: 201, body: no}, &server{code: 201, body: no}, New()
	change := func(f func(*authorizer.AttributesRecord)) *ReviewRequest {
		about := web("jane")
		f(about)
		return must(r.Subject(s, s.post, about))
	}
	questions := []*ReviewRequest{
		must(r.Subject(s, s.post, web("jane"))), must(r.Subject(s, s.post, web("joe"))),
		must(r.Subject(other, other.post, web("jane"))),
		must(r.Self(s, []byte("a"), s.post, web("jane"))), must(r.Self(s, []byte("b"), s.post, web("jane"))),
		must(r.Who(s, []byte("a"), s.post)), must(r.Who(s, []byte("b"), s.post)),
		change(func(a *authorizer.AttributesRecord) { a.User = &user.DefaultInfo{Name: "jane", UID: "u"} }),
		change(func(a *authorizer.AttributesRecord) {
			a.User = &user.DefaultInfo{Name: "jane",
				Groups: []string{"g"}}
		}),
		change(func(a *authorizer.AttributesRecord) {
			a.User = &user.DefaultInfo{Name: "jane", Extra: map[string][]string{"k": {"v"}}}
		}),
		change(func(a *authorizer.AttributesRecord) { a.Verb = "update" }),
		change(func(a *authorizer.AttributesRecord) { a.APIGroup = "batch" }),
		change(func(a *authorizer.AttributesRecord) { a.APIVersion = "v2" }),
		change(func(a *authorizer.AttributesRecord) { a.Resource = "jobs" }),
		change(func(a *authorizer.AttributesRecord) { a.Subresource = "scale" }),
		change(func(a *authorizer.AttributesRecord) { a.Namespace = "team-b" }),
		change(func(a *authorizer.AttributesRecord) { a.Name = "web" }),
	}
	seen := map[key]bool{}
	for i, q := range questions {
		if seen[q.key] {
			t.Errorf("question %d is taken for another", i)
		}
		seen[q.key] = true
		if _, ok := r.Remember(q); ok {
			t.Errorf("question %d is answered by another one", i)
		}
		_, _ = r.Ask(context.Background(), q)
	}
}

// TestWho: a name, or an error.
func TestWho(t *testing.T) {
	for body, want := range map[string]string{asJane: "jane <nil>", nobody: " the backend's answer cannot be read",
		"x": " the backend's answer cannot be read"} {
		s, r := &server{code: 201, body: body}, New()
		a, err := r.Ask(context.Background(), must(r.Who(s, []byte("c"), s.post)))
		if got := fmt.Sprint(a.User, " ", err); got != want || r.Refuses() {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// TestTogether: requests that ask the same at the same time share an answer, and none of them waits
// past its deadline.
func TestTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := &server{code: 201, body: no, delay: 3 * time.Second}, New()
		q := must(r.Subject(s, s.post, web("jane")))
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if a, err := r.Try(t.Context(), q); err != nil || a.Reason != "no role" {
					t.Errorf("%v %v", a, err)
				}
			})
		}
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if a, err := r.Ask(ctx, q); err != errOver || a.Verdict != authorizer.DecisionNoOpinion {
				t.Errorf("the impatient one: %v %v", a, err)
			}
		})
		all.Wait()
		if n := s.takes(); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}

// TestTurns: questions wait for their turn as long as it comes soon.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := &server{code: 201, body: no, delay: 10 * time.Millisecond}, New()
		var all sync.WaitGroup
		for i := range 50 * MaxTried {
			all.Go(func() {
				if _, err := r.Try(t.Context(), must(r.Subject(s, s.post, web(fmt.Sprint(i))))); err != nil {
					t.Errorf("question %d: %v", i, err)
				}
			})
		}
		all.Wait()
	})
}

// TestBounds: a flood of questions asks so many at a time, each for so long, and what is remembered of it has an end.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := &server{code: 201, body: no, delay: time.Hour}, New()
		var all sync.WaitGroup
		var mu sync.Mutex
		busy, late := 0, 0
		turnedAway := func() int {
			mu.Lock()
			defer mu.Unlock()
			return busy
		}
		for i := range 1000 {
			all.Go(func() {
				_, err := r.Try(t.Context(), must(r.Subject(s, s.post, web(fmt.Sprint(i)))))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case errors.Is(err, ErrBusy):
					busy++
				case errors.Is(err, context.DeadlineExceeded):
					late++
				}
			})
		}
		started := time.Now()
		synctest.Wait()
		if n := s.takes(); n != MaxTried || turnedAway() != 0 {
			t.Errorf("%d asked, %d turned away at once", n, turnedAway())
		}
		time.Sleep(MaxWait)
		synctest.Wait()
		if n := s.takes(); n != 0 || turnedAway() != 1000-MaxTried {
			t.Errorf("%d asked, %d turned away", n, turnedAway())
		}
		// Policies ask beside them.
		s.mu.Lock()
		s.delay = 0
		s.mu.Unlock()
		if _, err := r.Ask(t.Context(), must(r.Subject(s, s.post, web("jane")))); err != nil {
			t.Errorf("a policy's question: %v", err)
		}
		all.Wait()
		if late != MaxTried || time.Since(started) != Timeout {
			t.Errorf("%d late after %v", late, time.Since(started))
		}
		for i := range 2 * MaxRemembered {
			if _, err := r.Try(t.Context(), must(r.Subject(s, s.post, web(fmt.Sprint(i))))); err != nil {
				t.Fatal(err)
			}
		}
		if n := r.known.Len(); n != MaxRemembered || len(r.active) > 0 || len(r.tried) > 0 {
			t.Errorf("%d remembered, %d active, %d places taken", n, len(r.active), len(r.tried))
		}
	})
}

// TestRefusal: its words.
func TestRefusal(t *testing.T) {
	if got := (&Refusal{Code: http.StatusForbidden}).Error(); got != "the backend answered 403 Forbidden" {
		t.Error(got)
	}
}
