package match

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	listersv1 "k8s.io/client-go/listers/core/v1"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/admissiontest"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

// The namespaces that there are, and their labels.
var namespaces = map[string]map[string]string{
	"team-a": {"tier": "prod", corev1.LabelMetadataName: "team-a"},
	"team-b": {"tier": "test", corev1.LabelMetadataName: "team-b"},
}

// TestMatchesAsKubernetes compares random constraints and requests with kube-apiserver's own matcher.
func TestMatchesAsKubernetes(t *testing.T) {
	seed := rand.Uint64()
	random := &generator{rand.New(rand.NewPCG(seed, 1))}
	outcomes := map[string]int{}
	for i := range 10000 {
		got := random.compare(t, fmt.Sprintf("seed %d, case %d", seed, i))
		outcomes[got[:min(len(got), 5)]]++
	}
	for _, outcome := range []string{"no", "error"} {
		if outcomes[outcome] < 50 {
			t.Errorf("the cases are poor: %v", outcomes)
		}
	}
}

// FuzzMatchesAsKubernetes does the same.
func FuzzMatchesAsKubernetes(f *testing.F) {
	for i := range uint64(20) {
		f.Add(i, i*i)
	}
	f.Fuzz(func(t *testing.T, one, other uint64) {
		(&generator{rand.New(rand.NewPCG(one, other))}).compare(t, fmt.Sprintf("seed %d, %d", one, other))
	})
}

// compare compares constraints and a request, and returns what came of it.
func (g *generator) compare(t *testing.T, name string) string {
	constraints, request := g.constraints(), g.request()
	want, got := request.kubernetes(t, constraints), request.ours(t, constraints)
	if got != want {
		t.Fatalf("%s: %s, kube-apiserver says %s\nconstraints %s\nrequest %+v", name, got, want, constraints, request)
	}
	return got
}

type generator struct{ *rand.Rand }

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

func (g *generator) some(from ...string) []string {
	if g.IntN(4) == 0 {
		return []string{"*"}
	}
	var some []string
	for len(some) == 0 {
		for _, s := range from {
			if g.IntN(3) == 0 {
				some = append(some, s)
			}
		}
	}
	return some
}

func (g *generator) constraints() *admissionv1.MatchResources {
	m := &admissionv1.MatchResources{
		NamespaceSelector: g.selector("tier", "prod", "test"),
		ObjectSelector:    g.selector("app", "web", "db"),
		MatchPolicy:       pick(g, nil, new(admissionv1.Exact), new(admissionv1.Equivalent)),
	}
	if m.MatchPolicy == nil {
		m.MatchPolicy = new(admissionv1.Equivalent) // kube-apiserver stores the default
	}
	for range g.IntN(3) {
		m.ResourceRules = append(m.ResourceRules, g.rule())
	}
	if g.IntN(3) == 0 {
		m.ExcludeResourceRules = append(m.ExcludeResourceRules, g.rule())
	}
	return m
}

func (g *generator) selector(key string, values ...string) *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	switch g.IntN(6) {
	case 0:
		s.MatchLabels = map[string]string{key: pick(g, values...)}
	case 1:
		s.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpNotIn,
			Values: []string{pick(g, values...)}}}
	case 2:
		s.MatchExpressions = []metav1.LabelSelectorRequirement{
			{Key: key, Operator: pick(g, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)}}
	}
	return s
}

func (g *generator) rule() admissionv1.NamedRuleWithOperations {
	r := admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Rule: admissionv1.Rule{
			APIGroups:   g.some("", "apps", "events.k8s.io"),
			APIVersions: g.some("v1", "v2"),
			Resources: g.some("deployments", "deployments/scale", "deployments/*", "*/status", "namespaces",
				"namespaces/status", "*/*", "events", "nodes"),
			Scope: pick(g, nil, new(admissionv1.AllScopes), new(admissionv1.NamespacedScope),
				new(admissionv1.ClusterScope)),
		},
	}}
	for _, o := range g.some("CREATE", "UPDATE", "DELETE", "CONNECT") {
		r.Operations = append(r.Operations, admissionv1.OperationType(o))
	}
	if g.IntN(3) == 0 {
		r.ResourceNames = []string{pick(g, "web", "db", "team-a")}
	}
	return r
}

// request is a request that both matchers are asked about.
type request struct {
	resource                     schema.GroupVersionResource
	kind                         string
	subresource, namespace, name string
	operation                    admission.Operation
	object, old                  map[string]string // labels; nil: there is none
}

func (g *generator) request() request {
	r := request{operation: pick(g, admission.Create, admission.Update, admission.Delete),
		name: pick(g, "web", "db", "team-a")}
	switch g.IntN(5) {
	case 0, 1:
		r.resource, r.kind = schema.GroupVersionResource{Group: "apps", Version: pick(g, "v1", "v2"),
			Resource: "deployments"}, "Deployment"
		r.namespace = pick(g, "team-a", "team-b", "gone")
	case 2:
		r.resource, r.kind = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "Namespace"
		r.name = pick(g, "team-a", "team-b", "gone")
		if r.operation != admission.Create {
			r.namespace = r.name
		}
	case 3:
		r.resource, r.kind = schema.GroupVersionResource{Group: pick(g, "", "events.k8s.io"), Version: "v1",
			Resource: "events"}, "Event"
		r.namespace = pick(g, "team-a", "team-b")
	case 4:
		r.resource, r.kind = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, "Node"
	}
	if r.operation == admission.Update {
		r.subresource = pick(g, "", "", "status", "scale")
	}
	set := func() map[string]string {
		return pick(g, map[string]string{}, map[string]string{"app": "web"},
			map[string]string{"app": "db", "tier": "prod"}, map[string]string{"tier": "test"})
	}
	if r.operation != admission.Delete {
		r.object = set()
	}
	if r.operation != admission.Create {
		r.old = set()
		if r.kind == "Namespace" {
			r.old = namespaces[r.name] // the lister has what is stored
		}
	}
	return r
}

// equivalents are the resources that serve the same objects.
func (r *request) equivalents() []schema.GroupVersionResource {
	switch r.resource.Resource {
	case "deployments":
		return []schema.GroupVersionResource{{Group: "apps", Version: "v1", Resource: "deployments"},
			{Group: "apps", Version: "v2", Resource: "deployments"}}
	case "events":
		return []schema.GroupVersionResource{{Version: "v1", Resource: "events"},
			{Group: "events.k8s.io", Version: "v1", Resource: "events"}}
	}
	return []schema.GroupVersionResource{r.resource}
}

func outcome(as schema.GroupVersionResource, matches bool, err error) string {
	switch {
	case err != nil:
		return "error"
	case !matches:
		return "no"
	}
	return as.String()
}

func (r *request) ours(t *testing.T, m *admissionv1.MatchResources) string {
	matcher, errs := New(m, nil, field.NewPath("spec"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	lookup := &admissiontest.Lookup{Others: r.equivalents()}
	for name, set := range namespaces {
		lookup.Add(fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {tier: %s}}", name,
			set["tier"]))
	}
	a := &admission.Attributes{
		Info: &resource.Info{Group: r.resource.Group, Version: r.resource.Version, Resource: r.resource.Resource,
			Subresource: r.subresource, Namespace: r.namespace, Name: r.name},
		Operation: r.operation,
		Object:    labelled(r.object),
		Old:       labelled(r.old),
		Lookup:    lookup,
	}
	as, matches, err := matcher.Matches(context.Background(), a)
	if (matches || err != nil) && matcher.Excludes(a.Info, a.Operation) {
		t.Fatalf("%+v is taken for excluded by %s: %v", r, m, err)
	}
	if matcher.NeverExcludes(a.Info, a.Operation) && matcher.Excludes(a.Info, a.Operation) {
		t.Fatalf("%+v is excluded by %s, which is never to be", r, m)
	}
	early := &admission.Attributes{Info: a.Info, Operation: a.Operation, Lookup: lookup}
	switch isFilteredOut, isUnsure := matcher.IsFilteredOut(context.Background(), early); {
	case isFilteredOut && (matches || err != nil):
		t.Fatalf("%+v is taken for outside by %s: %v", r, m, err)
	case !isUnsure && (err != nil || matches && as != r.resource):
		t.Fatalf("%+v is taken for certain by %s: %v, %v", r, m, as, err)
	}
	if matches {
		indexed := false
		for _, rule := range IndexRules(m) {
			indexed = indexed || (rule.Group == "*" || rule.Group == r.resource.Group) &&
				(rule.Resource == "*" || rule.Resource == r.resource.Resource) && rule.Operations&r.operation != 0 &&
				(len(rule.Versions) == 0 || slices.Contains(rule.Versions, r.resource.Version)) &&
				(len(rule.Namespaces) == 0 || r.namespace == "" || r.resource.Resource == "namespaces" ||
					slices.Contains(rule.Namespaces, r.namespace)) &&
				(len(rule.Labels) == 0 ||
					slices.ContainsFunc(rule.Labels,
						func(l admission.Label) bool { return has(r.object, l) || has(r.old, l) }))
		}
		if !indexed {
			t.Fatalf("the index does not find %+v by %s", r, m)
		}
	}
	return outcome(as, matches, err)
}

func has(set map[string]string, l admission.Label) bool {
	value, ok := set[l.Key]
	return ok && value == l.Value
}

func labelled(set map[string]string) *document.Document {
	if set == nil {
		return nil
	}
	var all []string
	for k, v := range set {
		all = append(all, fmt.Sprintf("%q: %q", k, v))
	}
	return admissiontest.Parse("metadata: {labels: {" + strings.Join(all, ", ") + "}}")
}

func (r *request) kubernetes(t *testing.T, m *admissionv1.MatchResources) string {
	object := func(set map[string]string) runtime.Object {
		if set == nil {
			return nil
		}
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetLabels(set)
		return u
	}
	attributes := kadmission.NewAttributesRecord(object(r.object), object(r.old),
		r.resource.GroupVersion().WithKind(r.kind), r.namespace, r.name, r.resource,
		r.subresource, kadmission.Operation(r.operation.String()), nil, false, nil)
	matches, as, _, err := matching.NewMatcher(lister{}, client{}).Matches(attributes, interfaces{of: r}, criteria{m})
	return outcome(as, matches, err)
}

type criteria struct{ m *admissionv1.MatchResources }

func (c criteria) GetMatchResources() admissionv1.MatchResources { return *c.m }
func (c criteria) GetParsedNamespaceSelector() (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(c.m.NamespaceSelector)
}
func (c criteria) GetParsedObjectSelector() (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(c.m.ObjectSelector)
}

// interfaces are kube-apiserver's. The matcher asks them for equivalents alone.
type interfaces struct {
	kadmission.ObjectInterfaces
	of *request
}

func (i interfaces) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper { return i }

func (i interfaces) EquivalentResourcesFor(schema.GroupVersionResource, string) []schema.GroupVersionResource {
	return i.of.equivalents()
}

func (i interfaces) KindFor(r schema.GroupVersionResource, _ string) schema.GroupVersionKind {
	return r.GroupVersion().WithKind(i.of.kind)
}

// lister and client know the namespaces.
type lister struct{ listersv1.NamespaceLister }

func (lister) Get(name string) (*corev1.Namespace, error) {
	if set, ok := namespaces[name]; ok {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set}}, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, name)
}

type client struct{ kubernetes.Interface }

func (c client) CoreV1() typedcorev1.CoreV1Interface { return core{} }

type core struct{ typedcorev1.CoreV1Interface }

func (c core) Namespaces() typedcorev1.NamespaceInterface { return namespaceClient{} }

type namespaceClient struct{ typedcorev1.NamespaceInterface }

func (namespaceClient) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Namespace, error) {
	return lister{}.Get(name)
}
