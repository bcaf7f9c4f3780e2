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
	"github.com/admission-gateway/gateway/internal/index"
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

// compareIndex makes an index of random policies, and compares its results for random requests with
// kube-apiserver's matcher of rules, which is asked about each rule.
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
			rule := Rule{
				Group: pick("*", "", "apps", "batch"), Resource: pick("*", "pods", "jobs", "namespaces"),
				Operations: Operation(1 + r.IntN(15)),
				Versions:   some("v1", "v2"), Subresources: some("", "status", "scale"),
			}
			switch r.IntN(4) {
			case 0:
				rule.Namespaces = some("team-a", "team-b")
			case 1:
				for _, value := range some("a", "b", "") {
					rule.Labels = append(rule.Labels, Label{Key: "app", Value: value})
				}
			}
			p.rules = append(p.rules, rule)
		}
		policies = append(policies, p)
	}
	x, chain := newIndex(policies), NewChain(nil, policies)
	for range 30 {
		a := &Attributes{
			Info: &resource.Info{
				Group: pick("", "apps", "batch", "other"), Version: pick("v1", "v2", "v3"),
				Resource:    pick("pods", "jobs", "namespaces", "others"),
				Subresource: pick("", "", "status", "exec"), Namespace: pick("", "team-a", "team-b", "team-c"),
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
		old, named := false, false
		for i, p := range policies {
			may := false
			for _, rule := range p.Rules() {
				named = named || concernsAny(&rule, a)
				if !concerns(&rule, a) {
					continue
				}
				if !inNamespace(&rule, a) {
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
		var to, into room
		f := x.find(&to, a.Info, a.Operation)
		s := search(f, a.Info)
		if got := drain(&s); !slices.Equal(got, all) {
			t.Fatalf("%+v: found %v, want %v", a.Info, got, all)
		}
		s = searchFor(f, a)
		if got := drain(&s); !slices.Equal(got, narrow) {
			t.Fatalf("%+v %v: found %v, want %v", a.Info, labels, got, narrow)
		}
		other := *a
		other.Operation = pick2(r, Create, Update, Delete, Connect)
		var others []int
		for i, p := range policies {
			if slices.ContainsFunc(p.Rules(),
				func(rule Rule) bool { return concerns(&rule, &other) && inNamespace(&rule, &other) }) {
				others = append(others, i)
			}
		}
		g := x.find(&into, a.Info, other.Operation)
		if got := x.differs(f, g, a.Info, a.Operation, other.Operation); got != !slices.Equal(all, others) {
			t.Fatalf("%+v: differs between %v and %v: %v", a.Info, all, others, got)
		}
		if got := x.matches(f, a.Info, a.Operation); got != (len(all) > 0) {
			t.Fatalf("%+v: concerns %v", a.Info, got)
		}
		if got := x.needsOld(f, a.Info, a.Operation); got != old {
			t.Fatalf("%+v: needs the old object: %v", a.Info, got)
		}
		if got := chain.IsNamed(a.Info, a.Operation); got != named {
			t.Fatalf("%+v: named %v", a.Info, got)
		}
		compareScoped(t, chain, a, other.Operation, narrow)
	}
}

// compareScoped compares the policies found once for a resource with the chain's answer for each
// request.
func compareScoped(t *testing.T, c *Chain, a *Attributes, other Operation, narrow []int) {
	t.Helper()
	one := resource.Info{Group: a.Info.Group, Version: a.Info.Version, Resource: a.Info.Resource,
		Subresource: a.Info.Subresource}
	s, i := c.For(&one), a.Info
	for _, o := range []Operation{a.Operation, other, a.Operation | other} {
		got := []bool{s.Concerns(i, o), s.Validates(i, o), s.Mutates(i, o), s.NeedsOld(i, o), s.IsNamed(o),
			s.Differs(i, o, other), s.ReadsCarried()}
		want := []bool{c.Concerns(i, o), c.Validates(i, o), c.Mutates(i, o), c.NeedsOld(i, o), c.IsNamed(i, o),
			c.Differs(i, o, other), c.ReadsCarried(i)}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v %v: a Scoped says %v, the chain %v", i, o, got, want)
		}
	}
	found := searchFor(s.at(a.Operation).validating, a)
	if got := drain(&found); !slices.Equal(got, narrow) {
		t.Fatalf("%+v: a Scoped finds %v, want %v", i, got, narrow)
	}
}

func pick2[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func drain(s *index.Search) (all []int) {
	for p := s.Next(); p >= 0; p = s.Next() {
		all = append(all, p)
	}
	return all
}

// concerns reports whether a rule names the resource and the operation, as kube-apiserver's matcher says.
func concerns(r *Rule, a *Attributes) bool {
	i := a.Info
	rule := admissionv1.RuleWithOperations{Rule: admissionv1.Rule{APIGroups: []string{r.Group}, APIVersions: r.Versions,
		Resources: resourcesOf(r)}}
	if len(r.Versions) == 0 {
		rule.APIVersions = []string{"*"}
	}
	for _, o := range []Operation{Create, Update, Delete, Connect} {
		if r.Operations&o != 0 {
			rule.Operations = append(rule.Operations, admissionv1.OperationType(o.String()))
		}
	}
	gvr := schema.GroupVersionResource{Group: i.Group, Version: i.Version, Resource: i.Resource}
	m := rules.Matcher{Rule: rule, Attr: kadmission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{},
		i.Namespace, i.Name, gvr, i.Subresource,
		kadmission.Operation(a.Operation.String()), nil, false, nil)}
	return m.Matches()
}

// resourcesOf is what the rule names as kube-apiserver's rules write it.
func resourcesOf(r *Rule) (names []string) {
	if len(r.Subresources) == 0 {
		return []string{r.Resource, r.Resource + "/*"}
	}
	for _, s := range r.Subresources {
		if names = append(names, r.Resource+"/"+s); s == "" {
			names[len(names)-1] = r.Resource
		}
	}
	return names
}

// concernsAny is concerns whatever the subresource is.
func concernsAny(r *Rule, a *Attributes) bool {
	any := *r
	any.Subresources = nil
	return concerns(&any, a)
}

// inNamespace reports whether the request may be in a namespace that the rule asks for, unless it asks for labels.
func inNamespace(r *Rule, a *Attributes) bool {
	return len(r.Labels) > 0 || len(r.Namespaces) == 0 || a.Namespace() == "" || a.Info.IsNamespaces() ||
		slices.Contains(r.Namespaces, a.Namespace())
}

// asked reports whether the request is as the rule asks besides.
func asked(r *Rule, a *Attributes) bool {
	if len(r.Labels) == 0 {
		return len(r.Namespaces) == 0 || a.Namespace() == "" || a.Info.IsNamespaces() ||
			slices.Contains(r.Namespaces, a.Namespace())
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
	"resource": func(i int) Rule {
		return Rule{Group: "apps", Resource: fmt.Sprint("r", i),
			Operations: AllOperations}
	},
	"group":     func(i int) Rule { return Rule{Group: fmt.Sprint("g", i), Resource: "*", Operations: AllOperations} },
	"operation": func(i int) Rule { return Rule{Group: "apps", Resource: "deployments", Operations: Delete} },
	"version": func(i int) Rule {
		return Rule{Group: "apps", Resource: "deployments", Operations: AllOperations, Versions: []string{"v1beta1"}}
	},
	"namespace": func(i int) Rule {
		return Rule{Group: "*", Resource: "*", Operations: AllOperations, Namespaces: []string{fmt.Sprint("team-", i)}}
	},
	"label": func(i int) Rule {
		return Rule{Group: "*", Resource: "*", Operations: AllOperations,
			Labels: []Label{{Key: "app", Value: fmt.Sprint("app-", i)}}}
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

// BenchmarkThousandOthersScoped measures the same with what is found once for the resource.
func BenchmarkThousandOthersScoped(b *testing.B) {
	for by := range others {
		b.Run(by, func(b *testing.B) {
			c, a := thousand(by), attributes(b, labelledDeployment)
			a.Info.Version = "v1"
			s := c.For(a.Info)
			var r Report
			b.ReportAllocs()
			for b.Loop() {
				if s.Concerns(a.Info, a.Operation) {
					s.NeedsOld(a.Info, a.Operation)
				}
				s.Validate(context.Background(), a, &r)
			}
		})
	}
}

// TestScopedIsShared: to look at a resource without policies costs no memory, and a thousand policies for one namespace
// each are not copied.
func TestScopedIsShared(t *testing.T) {
	i := &resource.Info{Group: "apps", Version: "v1", Resource: "deployments"}
	for by, most := range map[string]float64{"resource": 0, "group": 0, "namespace": 5} {
		c := thousand(by)
		if n := testing.AllocsPerRun(100, func() { c.For(i) }); n > most {
			t.Errorf("%s: %v allocations", by, n)
		}
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
