package admission

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

// TestIndex: the index finds the policies that a look at each of their rules finds, in order and each once.
func TestIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		compareIndex(t, r)
	}
}

// FuzzIndex does the same.
func FuzzIndex(f *testing.F) {
	for i := range uint64(20) {
		f.Add(i, i*i)
	}
	f.Fuzz(func(t *testing.T, one, other uint64) { compareIndex(t, rand.New(rand.NewPCG(one, other))) })
}

// compareIndex makes an index of random policies, and holds what it finds for random requests to kube-apiserver's matcher
// of rules, which is asked about each rule.
func compareIndex(t *testing.T, r *rand.Rand) {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	some := func(from ...string) (some []string) {
		for _, s := range from {
			if r.IntN(3) == 0 {
				some = append(some, s)
			}
		}
		return some
	}
	var policies []Validator
	for i := range r.IntN(30) {
		p := &scripted{name: fmt.Sprintf("p%02d", i), old: r.IntN(5) == 0}
		for range r.IntN(4) {
			rule := Rule{Group: pick("*", "", "apps", "batch"), Resource: pick("*", "pods", "jobs", "namespaces"), Operations: Operation(1 + r.IntN(15)), Versions: some("v1", "v2")}
			switch r.IntN(4) {
			case 0:
				rule.Namespaces = some("team-a", "team-b")
			case 1:
				for _, value := range some("a", "b", "") {
					rule.Labels = append(rule.Labels, Label{"app", value})
				}
			}
			p.rules = append(p.rules, rule)
		}
		policies = append(policies, p)
	}
	x := newIndex(policies)
	for range 30 {
		a := &Attributes{
			Info: &resource.Info{
				Group: pick("", "apps", "batch", "other"), Version: pick("v1", "v2", "v3"), Resource: pick("pods", "jobs", "namespaces", "others"),
				Namespace: pick("", "team-a", "team-b", "team-c"),
			},
			Operation: pick2(r, Create, Update, Delete, Connect),
		}
		labels := [2]string{}
		for i := range labels {
			labels[i] = pick(``, `{}`, `{"app": "a"}`, `{"app": "b", "x": "y"}`, `{"app": ""}`, `{"app": 5}`)
		}
		for i, d := range []**document.Document{&a.Object, &a.Old} {
			if labels[i] != "" {
				parsed, err := document.Parse([]byte(`{"metadata":{"labels":`+labels[i]+`}}`), document.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				*d = parsed
			}
		}
		var all, narrow []int
		old := false
		for i, p := range policies {
			may := false
			for _, rule := range p.Rules() {
				if !concerns(&rule, a) {
					continue
				}
				if !slices.Contains(all, i) {
					all = append(all, i)
				}
				old = old || p.NeedsOld()
				may = may || asked(&rule, a)
			}
			if may {
				narrow = append(narrow, i)
			}
		}
		s := x.search(a.Info, a.Operation)
		if got := drain(&s); !slices.Equal(got, all) {
			t.Fatalf("%+v: found %v, want %v", a.Info, got, all)
		}
		s = x.searchFor(a)
		if got := drain(&s); !slices.Equal(got, narrow) {
			t.Fatalf("%+v %v: found %v, want %v", a.Info, labels, got, narrow)
		}
		other := *a
		other.Operation = pick2(r, Create, Update, Delete, Connect)
		var others []int
		for i, p := range policies {
			if slices.ContainsFunc(p.Rules(), func(rule Rule) bool { return concerns(&rule, &other) }) {
				others = append(others, i)
			}
		}
		if got := x.differs(a.Info, a.Operation, other.Operation); got != !slices.Equal(all, others) {
			t.Fatalf("%+v: differs between %v and %v: %v", a.Info, all, others, got)
		}
		if got := x.concerns(a.Info, a.Operation); got != (len(all) > 0) {
			t.Fatalf("%+v: concerns %v", a.Info, got)
		}
		if got := x.needsOld(a.Info, a.Operation); got != old {
			t.Fatalf("%+v: needs the old object: %v", a.Info, got)
		}
	}
}

func pick2[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func drain(s *search) (all []int) {
	for p := s.next(); p >= 0; p = s.next() {
		all = append(all, p)
	}
	return all
}

// concerns reports whether a rule names the resource and the operation, as kube-apiserver's matcher says.
func concerns(r *Rule, a *Attributes) bool {
	i := a.Info
	rule := admissionv1.RuleWithOperations{Rule: admissionv1.Rule{APIGroups: []string{r.Group}, APIVersions: r.Versions, Resources: []string{r.Resource}}}
	if len(r.Versions) == 0 {
		rule.APIVersions = []string{"*"}
	}
	for _, o := range []Operation{Create, Update, Delete, Connect} {
		if r.Operations&o != 0 {
			rule.Operations = append(rule.Operations, admissionv1.OperationType(o.String()))
		}
	}
	gvr := schema.GroupVersionResource{Group: i.Group, Version: i.Version, Resource: i.Resource}
	m := rules.Matcher{Rule: rule, Attr: kadmission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, i.Namespace, i.Name, gvr, "",
		kadmission.Operation(a.Operation.String()), nil, false, nil)}
	return m.Matches()
}

// asked reports whether the request is as the rule asks besides.
func asked(r *Rule, a *Attributes) bool {
	if len(r.Labels) == 0 {
		return len(r.Namespaces) == 0 || a.Namespace() == "" || a.Info.Resource == "namespaces" || slices.Contains(r.Namespaces, a.Namespace())
	}
	for _, d := range []*document.Document{a.Object, a.Old} {
		labels, ok := Labels(root(d))
		for _, l := range r.Labels {
			if value, has := (nodeLabels{labels}).Lookup(l.Key); ok && has && value == l.Value {
				return true
			}
		}
	}
	return false
}

// others are policies that do not match a deployment's creation, by what they do not match it.
var others = map[string]func(i int) Rule{
	"resource":  func(i int) Rule { return Rule{Group: "apps", Resource: fmt.Sprint("r", i), Operations: AllOperations} },
	"group":     func(i int) Rule { return Rule{Group: fmt.Sprint("g", i), Resource: "*", Operations: AllOperations} },
	"operation": func(i int) Rule { return Rule{Group: "apps", Resource: "deployments", Operations: Delete} },
	"version": func(i int) Rule {
		return Rule{Group: "apps", Resource: "deployments", Operations: AllOperations, Versions: []string{"v1beta1"}}
	},
	"namespace": func(i int) Rule {
		return Rule{Group: "*", Resource: "*", Operations: AllOperations, Namespaces: []string{fmt.Sprint("team-", i)}}
	},
	"label": func(i int) Rule {
		return Rule{Group: "*", Resource: "*", Operations: AllOperations, Labels: []Label{{"app", fmt.Sprint("app-", i)}}}
	},
}

func thousand(by string) *Chain {
	var validators []Validator
	for i := range 1000 {
		validators = append(validators, &scripted{
			name: fmt.Sprint("p", i), rules: []Rule{others[by](i)},
			do: func(*Attributes, *Report) error { panic("must not run") },
		})
	}
	return NewChain(nil, validators)
}

const labelledDeployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","labels":{"app":"web","tier":"prod"}}}`

// BenchmarkThousandOthers measures how much 1,000 policies that do not match cost a request, in all
// its steps.
func BenchmarkThousandOthers(b *testing.B) {
	for by := range others {
		b.Run(by, func(b *testing.B) {
			c, a := thousand(by), attributes(b, labelledDeployment)
			a.Info.Version = "v1"
			var r Report
			b.ReportAllocs()
			for b.Loop() {
				if c.Concerns(a.Info, a.Operation) {
					c.NeedsOld(a.Info, a.Operation)
				}
				c.Validate(context.Background(), a, &r)
			}
		})
	}
}

// TestOthersCostNothing: policies that do not match are not called and allocate nothing.
func TestOthersCostNothing(t *testing.T) {
	for by := range others {
		c, a := thousand(by), attributes(t, labelledDeployment)
		a.Info.Version = "v1"
		var r Report
		if n := testing.AllocsPerRun(100, func() { c.Validate(context.Background(), a, &r) }); n != 0 {
			t.Errorf("%s: %v allocations", by, n)
		}
		if err := r.Err(a); err != nil {
			t.Errorf("%s: %v", by, strings.TrimSpace(err.Error()))
		}
	}
}
