package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// planOf compiles the value of an annotation.
func planOf(t *testing.T, policy, text string) *Plan {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	p, errs := Compile(s, policy, field.NewPath("rollout"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return p
}

func TestEnforces(t *testing.T) {
	at := func(text string) time.Time {
		when, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	const noon = `{"warnUntil": "2026-06-30T12:00:00Z"}`
	labelled := func(s labels.Selector) bool { return s.Matches(labels.Set{"tier": "test"}) }
	for _, c := range []struct {
		name, plan string
		request    Request
		want       bool
	}{
		{"before the time", noon, Request{At: at("2026-06-30T11:59:59.999999999Z")}, false},
		{"at the time", noon, Request{At: at("2026-06-30T12:00:00Z")}, true},
		{"after the time", noon, Request{At: at("2026-06-30T12:00:00.000000001Z")}, true},
		{"at the time in another zone", `{"warnUntil": "2026-06-30T14:00:00+02:00"}`,
			Request{At: at("2026-06-30T12:00:00Z")}, true},
		{"none", `{"percent": 0}`, Request{Subject: []string{"a"}}, false},
		{"all", `{"percent": 100}`, Request{Subject: []string{"a"}}, true},
		{"in the namespace", `{"namespaces": ["a", "b"]}`, Request{Namespace: "b"}, true},
		{"in another namespace", `{"namespaces": ["a", "b"]}`, Request{Namespace: "c"}, false},
		{"in no namespace", `{"namespaces": ["a", "b"]}`, Request{}, false},
		{"in none of no namespaces", `{"namespaces": []}`, Request{Namespace: "a"}, false},
		{"labels fit", `{"namespaceSelector": {"matchLabels": {"tier": "test"}}}`,
			Request{Namespace: "a", Selects: labelled}, true},
		{"labels do not fit", `{"namespaceSelector": {"matchLabels": {"tier": "prod"}}}`,
			Request{Namespace: "a", Selects: labelled}, false},
		{"by name and not by labels", `{"namespaces": ["a"], "namespaceSelector": {"matchLabels": {"tier": "prod"}}}`,
			Request{Namespace: "a", Selects: labelled}, true},
		{"no labels are known", `{"namespaceSelector": {}}`, Request{Namespace: "a"}, false},
		{"one of two holds", `{"namespaces": ["a"], "percent": 0}`, Request{Namespace: "a"}, false},
	} {
		if got := planOf(t, "P/p", c.plan).Enforces(&c.request); got != c.want {
			t.Errorf("%s: got %t, want %t", c.name, got, c.want)
		}
	}
}

// TestShares: a share is a share, and stays one's own while it grows. It is the same everywhere, which
// these numbers hold.
func TestShares(t *testing.T) {
	const objects = 10_000
	subject := func(i int) []string { return []string{"", "pods", "team-a", fmt.Sprint("pod-", i)} }
	before := make([]bool, objects)
	for _, percent := range []int{0, 1, 10, 50, 99, 100} {
		p, enforced := planOf(t, "P/p", fmt.Sprintf(`{"percent": %d}`, percent)), 0
		for i := range objects {
			is := p.Enforces(&Request{Subject: subject(i)})
			if is {
				enforced++
			} else if before[i] {
				t.Fatalf("object %d was enforced with a smaller share than %d %%", i, percent)
			}
			before[i] = is
		}
		if off := enforced - objects*percent/100; off < -200 || off > 200 {
			t.Errorf("%d %%: %d of %d objects are enforced", percent, enforced, objects)
		}
	}
	half, other := planOf(t, "P/p", `{"percent": 50}`), planOf(t, "P/other", `{"percent": 50}`)
	same := 0
	for i := range objects {
		if r := (&Request{Subject: subject(i)}); half.Enforces(r) == other.Enforces(r) {
			same++
		}
	}
	if same < objects*45/100 || same > objects*55/100 {
		t.Errorf("two policies agree about %d of %d objects", same, objects)
	}
	for _, c := range []struct {
		subject []string
		want    uint64
	}{
		{[]string{"", "pods", "team-a", "web"}, 94}, {[]string{"", "pods", "team-aw", "eb"}, 54}, {nil, 80},
		{[]string{""}, 20},
	} {
		if got := half.bucketOf(c.subject); got != c.want {
			t.Errorf("%q is in the bucket %d, want %d", c.subject, got, c.want)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{``, `must be a JSON object, such as {"percent": 10}`},
		{`null`, `must be a JSON object, such as {"percent": 10}`},
		{`10`, `must be a JSON object, such as {"percent": 10}`},
		{`{"percent": 10`, `must be a JSON object: unexpected end of JSON input`},
		{`{"percent": 10} x`, `must be a JSON object: invalid character 'x' after top-level value`},
		{`{"percent": "10"}`, `must be a JSON object: json: cannot unmarshal string into Go struct field Spec.percent of type int32`},
		{`{"Percent": 10}`, `must be a JSON object: unknown field "Percent"`},
		{`{"percent": 10, "percent": 20}`, `must be a JSON object: duplicate field "percent"`},
		{`{}`, "rollout: Required value: must have one of `warnUntil`, `percent`, `namespaces` and `namespaceSelector`"},
		{`{"percent": null}`, "rollout: Required value: must have one of `warnUntil`, `percent`, `namespaces` and `namespaceSelector`"},
		{`{"percent": -1}`, `rollout.percent: Invalid value: -1: must be from 0 to 100`},
		{`{"percent": 101}`, `rollout.percent: Invalid value: 101: must be from 0 to 100`},
		{`{"warnUntil": "tomorrow"}`, `rollout.warnUntil: Invalid value: "tomorrow": must be a time in RFC 3339, such as '2027-01-31T09:00:00Z'`},
		{`{"warnUntil": "2027-01-31"}`, `rollout.warnUntil: Invalid value: "2027-01-31": must be a time in RFC 3339, such as '2027-01-31T09:00:00Z'`},
		{`{"namespaces": ["a", "B_"]}`, `rollout.namespaces[1]: Invalid value: "B_": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`},
		{`{"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}`, `rollout.namespaceSelector: Invalid value: "Like" is not a valid label selector operator`},
	} {
		s, err := Parse(c.text)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			plan, errs := Compile(s, "P/p", field.NewPath("rollout"))
			if got = errs.ToAggregate().Error(); plan != nil {
				t.Errorf("%s: there is a plan beside findings", c.text)
			}
		}
		if got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.text, got, c.want)
		}
	}
}

func TestIn(t *testing.T) {
	before, after := time.Date(2026, 6, 30, 11, 0, 0, 0, time.UTC), time.Date(2026, 6, 30, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		plan string
		at   time.Time
		want string
	}{
		{`{"warnUntil": "2026-06-30T12:00:00Z"}`, before, "from 2026-06-30T12:00:00Z on"},
		{`{"warnUntil": "2026-06-30T12:00:00Z"}`, after, ""},
		{`{"percent": 100}`, before, ""},
		{`{"warnUntil": "2026-06-30T12:00:00Z", "percent": 10, "namespaces": ["a"]}`, before,
			"from 2026-06-30T12:00:00Z on, for 10 %, in the namespace 'a'"},
		{`{"namespaces": ["a", "b"], "namespaceSelector": {"matchLabels": {"tier": "test"}}}`, after, `in the namespaces 'a', 'b' and in namespaces with the labels "tier=test"`},
		{`{"namespaces": []}`, after, "in no namespace"},
	} {
		if got := planOf(t, "P/p", c.plan).In(c.at); got != c.want {
			t.Errorf("%s: got %q, want %q", c.plan, got, c.want)
		}
	}
}

// TestCounts: counts go on with sets that say the same of a policy, and begin anew otherwise.
func TestCounts(t *testing.T) {
	var counts Counts
	first, second := time.Unix(1000, 0), time.Unix(2000, 0)
	a, b := planOf(t, "P/a", `{"percent": 10}`), planOf(t, "P/b", `{"percent": 10}`)
	counts.Adopt([]*Plan{a, b}, first)
	a.Count().Add(true)
	a.Count().Add(false)
	b.Count().Add(true)
	again, changed := planOf(t, "P/a", `{"percent": 10}`), planOf(t, "P/b", `{"percent": 20}`)
	counts.Adopt([]*Plan{again, changed}, second)
	again.Count().Add(true)
	a.Count().Add(false) // a request that began with the set before
	if got, want := again.Count().Numbers(), (Numbers{2, 4, first}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := changed.Count().Numbers(), (Numbers{0, 0, second}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if len(counts.counts) != 2 {
		t.Errorf("%d counts are kept", len(counts.counts))
	}
}

// FuzzParse: whatever the annotation says, it is refused with a reason, or makes a plan that decides the
// same each time, and never enforces more than its share in its namespaces from its time on.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"warnUntil": "2026-06-30T12:00:00Z", "percent": 10, "namespaces": ["a"], "namespaceSelector": {"matchLabels": {"tier": "test"}}}`,
		`{"percent": 0}`, `{"percent": 1e2}`, `{"percent": 100.0}`, `{}`, `[]`, `{"percent": 10} {}`,
		`{"namespaces": null}`, ` {"percent":5} `, "{\"percent\": 10, \"Percent\": 20}",
	} {
		f.Add(seed, "team-a", "web")
	}
	f.Fuzz(func(t *testing.T, text, namespace, name string) {
		s, err := Parse(text)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("no reason")
			}
			return
		}
		p, errs := Compile(s, "P/p", field.NewPath("rollout"))
		if p == nil {
			if len(errs) == 0 {
				t.Fatal("no reason")
			}
			return
		}
		r := &Request{At: time.Unix(0, 0), Namespace: namespace, Subject: []string{name}}
		enforced := p.Enforces(r)
		if enforced != p.Enforces(r) {
			t.Fatal("two answers to one request")
		}
		switch {
		case !enforced:
		case s.Percent != nil && *s.Percent == 0, s.WarnUntil != "" && p.Until().After(r.At),
			s.NamespaceSelector == nil && s.Namespaces != nil && !strings.Contains(strings.Join(s.Namespaces, " "),
				namespace):
			t.Fatalf("%s enforces %+v", text, r)
		}
	})
}

func TestCompileResource(t *testing.T) {
	zero := int32(0)
	for _, c := range []struct {
		spec             ResourceSpec
		enforces, silent bool
		want             string
	}{
		{ResourceSpec{Mode: Observe}, false, true, ""},
		{ResourceSpec{Mode: Warn}, false, false, ""},
		{ResourceSpec{Spec: Spec{Percent: &zero}}, false, false, ""},
		{ResourceSpec{Mode: Observe, Spec: Spec{WarnUntil: "2026-01-01T00:00:00Z"}}, true, true, ""},
		{ResourceSpec{}, false, false, "rollout: Required value: must have one of `warnUntil`, `percent`, `namespaces` and `namespaceSelector`"},
		{ResourceSpec{Mode: "Deny"}, false, false,
			`rollout.mode: Unsupported value: "Deny": supported values: "Observe", "Warn"`},
		{ResourceSpec{Mode: Warn, Spec: Spec{NamespaceSelector: &metav1.LabelSelector{}}}, false, false, "rollout.namespaceSelector: Forbidden: must not be set: an ordinary API has no labels of namespaces"},
	} {
		p, errs := CompileResource(&c.spec, "APIResource/a", field.NewPath("rollout"))
		if got := fmt.Sprint(errs.ToAggregate()); p == nil {
			if got != c.want {
				t.Errorf("%+v: got %s, want %s", c.spec, got, c.want)
			}
			continue
		}
		r := Request{At: time.Date(2026, 6, 30, 12, 0, 0, 0, time.UTC), Subject: []string{"a"}}
		if len(errs) > 0 || p.Enforces(&r) != c.enforces || p.IsSilent() != c.silent {
			t.Errorf("%+v: enforces %t, is silent %t, %v", c.spec, p.Enforces(&r), p.IsSilent(), errs)
		}
	}
}

// TestOperations: the number of kept refusals is bounded, and frequent ones stay.
func TestOperations(t *testing.T) {
	var c Count
	at := time.Unix(1000, 0)
	o := c.Operation("POST", "/a")
	if c.Operation("POST", "/a") != o {
		t.Fatal("an operation is counted twice")
	}
	frequent := &Refusal{Code: 422, Reason: "Invalid", Fields: []string{strings.Repeat("é", 100)}}
	for i := range 50 {
		o.Refuse(frequent, at)
		o.Refuse(&Refusal{Code: 400, Fields: []string{fmt.Sprint(i)}}, at.Add(time.Duration(i)))
		o.Admit()
	}
	o.Skip()
	n := c.Operations()[0]
	if n.Would != 100 || n.Tried != 151 || n.Unjudged != 1 || len(n.Examples) != maxExamples {
		t.Errorf("got %+v", n)
	}
	if e := n.Examples[0]; e.Count != 50 || len(e.Fields[0]) > maxField+len("...") || n.Examples[1].Fields[0] != "49" {
		t.Errorf("got %+v", n.Examples)
	}
	for i := range 2 * maxOperations {
		c.Operation("GET", fmt.Sprint(i)).Admit()
	}
	if got := len(c.Operations()); got != maxOperations+1 {
		t.Errorf("%d operations are kept", got)
	}
}
