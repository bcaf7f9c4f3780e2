package terms

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/admissiontest"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/rollout"
)

// at is when all requests come.
var at = time.Date(2026, 6, 30, 12, 0, 0, 0, time.UTC)

// request makes an update of the pod 'web' in 'team-a'; an object that is empty is not there.
func request(t *testing.T, object, old string) *admission.Attributes {
	t.Helper()
	a := &admission.Attributes{
		Info: &resource.Info{Verb: resource.VerbUpdate, IsResource: true, Version: "v1", Resource: "pods",
			Namespace: "team-a", Name: "web"},
		Operation: admission.Update, Received: at,
		User:   &identity.User{Name: "jane"},
		Lookup: (&admissiontest.Lookup{}).Add("apiVersion: v1\nkind: Namespace\nmetadata: {name: team-a, labels: {tier: test}}"),
		Frame:  cel.NewFrame(context.Background()),
	}
	t.Cleanup(a.Frame.Release)
	if object != "" {
		a.Object = admissiontest.Parse(object)
	}
	if old != "" {
		a.Old = admissiontest.Parse(old)
	}
	a.Bind()
	return a
}

func planOf(t *testing.T, text string) *rollout.Plan {
	t.Helper()
	s, err := rollout.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	p, errs := rollout.Compile(s, "P/p", field.NewPath("rollout"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return p
}

// TestExceptions: an exception applies to what it matches until it ends. One that cannot decide,
// and one whose labels an object no longer has, excepts nothing.
func TestExceptions(t *testing.T) {
	const (
		plain    = "{metadata: {name: web}, spec: {}}"
		labelled = "{metadata: {name: web, labels: {legacy: 'true'}}, spec: {}}"
	)
	rule := "matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [pods]}]}\n"
	byLabel := "matchConstraints: {objectSelector: {matchLabels: {legacy: 'true'}}, resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [pods]}]}\n"
	byTier := "matchConstraints: {namespaceSelector: {matchLabels: {tier: test}}, resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [pods]}]}\n"
	condition := func(expression string) string {
		return rule + "matchConditions: [{name: c, expression: \"" + expression + "\"}]\n"
	}
	lost := &admissiontest.Lookup{Err: errors.New("lost")}
	for _, c := range []struct {
		name, spec, object, old string
		change                  func(*admission.Attributes)
		want                    bool
	}{
		{name: "it matches", spec: rule, object: plain, old: plain, want: true},
		{name: "another resource", spec: rule, object: plain, old: plain,
			change: func(a *admission.Attributes) { a.Info.Resource = "services" }},
		{name: "a moment before its end", spec: rule + "expires: '2026-06-30T12:00:00.000000001Z'\n", object: plain,
			old: plain, want: true},
		{name: "at its end", spec: rule + "expires: '2026-06-30T12:00:00Z'\n", object: plain, old: plain},
		{name: "labels", spec: byLabel, object: labelled, old: plain, want: true},
		{name: "labels that are taken away", spec: byLabel, object: plain, old: labelled},
		{name: "labels of what is deleted", spec: byLabel, old: labelled,
			change: func(a *admission.Attributes) { a.Operation = admission.Delete }, want: true},
		{name: "labels of the namespace", spec: byTier, object: plain, old: plain, want: true},
		{name: "labels of a namespace that cannot be read", spec: byTier, object: plain, old: plain,
			change: func(a *admission.Attributes) { a.Lookup = lost }},
		{name: "labels of a namespace that does not exist", spec: byTier, object: plain, old: plain,
			change: func(a *admission.Attributes) { a.Lookup = &admissiontest.Lookup{} }},
		{name: "a condition that holds",
			spec: condition("object.metadata.name == 'web' && request.userInfo.username == 'jane'"), object: plain,
			old: plain, want: true},
		{name: "a condition that does not hold", spec: condition("object.metadata.name == 'other'"), object: plain,
			old: plain},
		{name: "a condition that fails", spec: condition("object.spec.none == 1"), object: plain, old: plain},
		{name: "a condition about the stored object", spec: condition("oldObject.metadata.name == 'web'"),
			object: plain, old: plain, want: true},
		{name: "a condition beyond its budget", spec: condition("[1,2,3,4,5,6,7,8].all(a, [1,2,3,4,5,6,7,8].all(b, [1,2,3,4,5,6,7,8].all(c, [1,2,3,4,5,6,7,8].all(d, [1,2,3,4,5,6,7,8].all(e, [1,2,3,4,5,6,7,8].all(f, [1,2,3,4,5,6,7,8].all(g, a+b+c+d+e+f+g > 0)))))))"), object: plain, old: plain},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &PolicyException{}
			if err := yaml.Unmarshal([]byte("policies: [{kind: P, names: [p]}]\nreason: legacy\n"+c.spec),
				&p.Spec); err != nil {
				t.Fatal(err)
			}
			p.Name = "e"
			e, errs := Compile(p)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			a := request(t, c.object, c.old)
			if c.change != nil {
				c.change(a)
			}
			old := a.Old
			want := admission.Standing{}
			if c.want {
				want = admission.Standing{Exception: "e", Reason: "legacy"}
			}
			if got := New(nil, []*Exception{e}).Stand(context.Background(), a); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if a.Old != old {
				t.Error("the stored object is gone")
			}
		})
	}
}

// TestRollouts: labels that are not known, and a namespace that is not, hold no policy back.
func TestRollouts(t *testing.T) {
	const byTier = `{"namespaceSelector": {"matchLabels": {"tier": "test"}}}`
	const byOther = `{"namespaceSelector": {"matchLabels": {"tier": "prod"}}}`
	namespace := func(a *admission.Attributes) {
		a.Info.Resource, a.Info.Namespace, a.Info.Name = "namespaces", "", "team-b"
	}
	for _, c := range []struct {
		name, plan, object string
		change             func(*admission.Attributes)
		tried              bool
	}{
		{name: "labels fit", plan: byTier},
		{name: "labels do not fit", plan: byOther, tried: true},
		{name: "labels cannot be read", plan: byOther,
			change: func(a *admission.Attributes) { a.Lookup = &admissiontest.Lookup{Err: errors.New("lost")} }},
		{name: "nothing can be read", plan: byOther, change: func(a *admission.Attributes) { a.Lookup = nil }},
		{name: "the namespace does not exist", plan: byOther,
			change: func(a *admission.Attributes) { a.Lookup = &admissiontest.Lookup{} }},
		{name: "a namespace by its own labels", plan: byTier,
			object: "{metadata: {name: team-b, labels: {tier: test}}}", change: namespace},
		{name: "a namespace by its own name", plan: `{"namespaces": ["team-b"]}`, object: "{metadata: {name: team-b}}",
			change: namespace},
		{name: "another namespace", plan: `{"namespaces": ["team-a"]}`, object: "{metadata: {name: team-b}}",
			change: namespace, tried: true},
		{name: "the time is not there", plan: `{"warnUntil": "2026-06-30T12:00:00.000000001Z"}`, tried: true},
		{name: "the time is there", plan: `{"warnUntil": "2026-06-30T12:00:00Z"}`},
		{name: "no time is known", plan: `{"warnUntil": "2026-06-30T12:00:00Z"}`,
			change: func(a *admission.Attributes) { a.Received = time.Time{} }, tried: time.Now().Before(at)},
	} {
		object := c.object
		if object == "" {
			object = "{metadata: {name: web}}"
		}
		a := request(t, object, "")
		if c.change != nil {
			c.change(a)
		}
		if got := New(planOf(t, c.plan), nil).Stand(context.Background(),
			a); got != (admission.Standing{IsDryRun: c.tried}) {
			t.Errorf("%s: got %+v", c.name, got)
		}
	}
}

// TestShareOfObjects: all requests for an object are treated alike, whatever their user, and
// requests for objects without a name by their user.
func TestShareOfObjects(t *testing.T) {
	terms := New(planOf(t, `{"percent": 50}`), nil)
	tried := func(change func(*admission.Attributes)) bool {
		a := request(t, "{metadata: {name: web}}", "")
		change(a)
		return terms.Stand(context.Background(), a).IsDryRun
	}
	first := tried(func(*admission.Attributes) {})
	for _, user := range []string{"jane", "joe", "jim", "jack", "jill", "june"} {
		if tried(func(a *admission.Attributes) { a.User.Name, a.Operation = user, admission.Delete }) != first {
			t.Errorf("%s is treated otherwise", user)
		}
	}
	verdicts := map[bool]int{}
	for _, user := range []string{"jane", "joe", "jim", "jack", "jill", "june", "jon", "joan", "jean", "jude"} {
		verdicts[tried(func(a *admission.Attributes) {
			a.Info.Name, a.User.Name, a.Object = "", user, admissiontest.Parse("{metadata: {generateName: web-}}")
		})]++
	}
	if len(verdicts) != 2 {
		t.Errorf("all users are treated alike: %v", verdicts)
	}
}

// TestApplicability: what is known without an object.
func TestApplicability(t *testing.T) {
	compiled := func(spec string) *Exception {
		p := &PolicyException{}
		if err := yaml.Unmarshal([]byte("policies: [{kind: P, names: [p]}]\nreason: legacy\n"+spec),
			&p.Spec); err != nil {
			t.Fatal(err)
		}
		p.Name = "e"
		e, errs := Compile(p)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return e
	}
	pods := "matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [pods]}]}\n"
	always := resource.Applicability{Kind: "P", Name: "p", Applies: resource.Always}
	for _, c := range []struct {
		name  string
		terms admission.Terms
		want  resource.Applicability
	}{
		{"a rollout", New(planOf(t, `{"percent": 10}`), nil),
			resource.Applicability{Kind: "P", Name: "p", Applies: resource.Always,
				Because: "enforced for 10 %, and only tried otherwise"}},
		{"a rollout that is over", New(planOf(t, `{"warnUntil": "2026-06-30T12:00:00Z"}`), nil), always},
		{"an exception", New(nil, []*Exception{compiled(pods)}),
			resource.Applicability{Kind: "P", Name: "p", Applies: resource.Never,
				Because: "the PolicyException 'e' excepts the request: legacy"}},
		{"an exception of some objects", New(nil, []*Exception{compiled(pods + "matchConditions: [{name: c, expression: 'true'}]\nexpires: '2026-07-01T00:00:00Z'\n")}),
			resource.Applicability{Kind: "P", Name: "p", Applies: resource.Sometimes, Because: "if the PolicyException 'e', which ends at 2026-07-01T00:00:00Z, does not except the object"}},
		{"an exception that ended", New(nil, []*Exception{compiled(pods + "expires: '2026-06-30T12:00:00Z'\n")}),
			always},
	} {
		a := request(t, "", "")
		if got := c.terms.Applicability(a, always); got.Kind != c.want.Kind || got.Name != c.want.Name ||
			got.Applies != c.want.Applies || got.Because != c.want.Because {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}
