package match

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/admissiontest"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// randomSpec writes a few members of a match block, such that it can match.
func randomSpec(r *rand.Rand) string {
	selectors := []string{
		"{matchLabels: {tier: prod}}", "{}", "{matchExpressions: [{key: tier, operator: NotIn, values: [prod, dev]}]}",
		"{matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [team-a]}]}",
		"{matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [team-a]}]}",
	}
	names := []string{"[team-a]", "['team-*']", "['*-a', default]", "['*']", "['*e*']", "[kube-system, team-b]", "[]"}
	members := []string{
		"scope: " + pick(r, "Cluster", "Namespaced", "'*'"), "namespaces: " + pick(r, names...),
		"excludedNamespaces: " + pick(r, names...),
		"labelSelector: " + pick(r, selectors...), "namespaceSelector: " + pick(r, selectors...),
		"name: " + pick(r, "web", "'w*'", "'*b'", "'gen-*'", "other", "'*'", "team-a"),
		"source: " + pick(r, "All", "Original", "Generated"),
	}
	r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members[:1+r.IntN(3)], ", ") + "}"
}

// TestOutside: what a match block selects is never taken for excluded before the object is known, and much of the rest
// is.
func TestOutside(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	lookup := (&admissiontest.Lookup{}).
		Add("apiVersion: v1\nkind: Namespace\nmetadata: {name: team-a, labels: {tier: prod}}").
		Add("apiVersion: v1\nkind: Namespace\nmetadata: {name: team-b, labels: {tier: test}}")
	selected, excluded, outside := 0, 0, 0
	for n := range 20000 {
		text := randomSpec(r)
		var spec Spec
		if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
			t.Fatal(err)
		}
		m, errs := Compile(&spec, nil)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		i := &resource.Info{
			Verb:       pick(r, resource.VerbCreate, resource.VerbUpdate, resource.VerbPatch, resource.VerbDelete),
			IsResource: true,
			Version:    "v1", Name: pick(r, "web", "db", "gen-abc"), APIPrefix: "api",
		}
		kind := ""
		switch r.IntN(3) {
		case 0:
			i.Resource, i.Namespace, kind = "pods", pick(r, "team-a", "team-b"), "Pod"
		case 1:
			i.Resource, i.Name, kind = "namespaces", pick(r, "team-a", "team-b"), "Namespace"
			i.Namespace = i.Name
		case 2:
			i.Resource, kind = "nodes", "Node"
		}
		name, operation := i.Name, admission.Update
		switch i.Verb {
		case resource.VerbCreate:
			i.Name, operation = "", admission.Create
		case resource.VerbDelete:
			operation = admission.Delete
		}
		object := func() *document.Document {
			return admissiontest.Parse(fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata: {name: %s, labels: {tier: %s}, generateName: %s}", kind, name, pick(r, "prod", "test"), pick(r, "gen-", "web-")))
		}
		a := &admission.Attributes{Info: i, Operation: operation, Object: object(), Lookup: lookup}
		if operation != admission.Create {
			a.Old = object()
		}
		matches := false
		for _, d := range []*document.Document{a.Object, a.Old} {
			if d == nil {
				continue
			}
			o := New(a, d)
			one, err := m.Matches(context.Background(), &o)
			if err != nil {
				t.Fatal(err)
			}
			matches = matches || one
		}
		if reasons := m.Reasons(context.Background(), "spec.match", Objects(nil, a)); matches != (len(reasons) == 0) {
			t.Fatalf("seed %d, case %d: %s selects %+v: %v, because of %v", seed, n, text, i, matches, reasons)
		}
		applicability := m.Applicability(i, resource.Applicability{Applies: resource.Always})
		if applicability.Applies == resource.Always && !matches || applicability.Applies == resource.Never && matches ||
			(applicability.Applies == resource.Never) != m.Excludes(i) {
			t.Fatalf("seed %d, case %d: %s selects %+v: %v, and the applicability is %+v", seed, n, text, i, matches,
				applicability)
		}
		early := &admission.Attributes{Info: i, Operation: operation, Lookup: lookup}
		isExcluded, isFilteredOut := m.Excludes(i), m.IsFilteredOut(context.Background(), early)
		switch {
		case matches && (isExcluded || isFilteredOut):
			t.Fatalf("seed %d, case %d: %s selects %+v, but excludes it before: %v, %v", seed, n, text, i, isExcluded,
				isFilteredOut)
		case matches:
			selected++
		case isExcluded:
			excluded++
		case isFilteredOut:
			outside++
		}
	}
	if selected < 1000 || excluded < 1000 || outside < 100 {
		t.Errorf("the cases are poor: %d selected, %d excluded, %d outside", selected, excluded, outside)
	}
}
