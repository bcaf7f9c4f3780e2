package policies

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/testutil"
)

func mustLoad(t *testing.T, files map[string]string) *Set {
	t.Helper()
	set, found := Load([]string{testutil.WriteFiles(t, files)})
	for _, f := range found {
		if !strings.Contains(f.Message, "in one gateway only") { // a warning of BestEffort
			t.Error(f)
		}
	}
	if set == nil {
		t.Fatal("no set")
	}
	return set
}

func resolve(t *testing.T, s *Set, method, target string) (resource.Info, *resource.Resource) {
	t.Helper()
	info, r, err := s.Registry().Resolve(method, []byte(target))
	if err != nil {
		t.Fatal(err)
	}
	return info, r
}

func TestResourceOfDefinition(t *testing.T) {
	set := mustLoad(t, map[string]string{"a.yaml": widgets + `  - name: v2
    served: true
    storage: false
    deprecated: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    schema: {openAPIV3Schema: {type: object}}
  - name: v3
    served: false
    storage: false
    schema: {openAPIV3Schema: {type: object}}
`})
	if len(set.Registry().Resources()) != 2 {
		t.Errorf("got %d resources, want the two that are served", len(set.Registry().Resources()))
	}
	info, r := resolve(t, set, "PUT", "/apis/example.com/v1/namespaces/team-a/widgets/w1")
	if info.Verb != resource.VerbUpdate || info.Namespace != "team-a" || info.Name != "w1" || r == nil {
		t.Fatalf("got %+v, %+v", info, r)
	}
	want := resource.Resource{Group: "example.com", Version: "v1", Namespaced: true,
		Names:        resource.Names{Kind: "Widget", ListKind: "WidgetList", Plural: "widgets", Singular: "widget"},
		Subresources: resource.Subresources{Status: true}}
	if r.GroupVersionResource() != want.GroupVersionResource() || r.Names.Kind != want.Names.Kind ||
		r.Names.ListKind != want.Names.ListKind || r.Names.Singular != want.Names.Singular || !r.Namespaced ||
		!r.Subresources.Status || r.Subresources.Scale != nil {
		t.Errorf("got %+v", r)
	}
	d, err := document.Parse([]byte(`{"spec":{}}`), document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	defaults.Apply(d, set.Schema(r))
	if got := string(d.AppendTo(nil)); got != `{"spec":{"size":1}}` {
		t.Errorf("got %s", got)
	}
	if set.Deprecation(r) != "" || set.Deprecation(nil) != "" || set.Schema(nil) != nil {
		t.Error("a resource has what it has not")
	}
	_, v2 := resolve(t, set, "GET", "/apis/example.com/v2/widgets")
	if v2 == nil || v2.Subresources.Scale == nil || set.Deprecation(v2) != "example.com/v2 Widget is deprecated" {
		t.Errorf("got %+v, %q", v2, set.Deprecation(v2))
	}
}

func TestAPIResource(t *testing.T) {
	orderNames := resource.Names{Kind: "Order", ListKind: "OrderList", Plural: "orders", Singular: "order"}
	tests := []struct {
		name, more string
		want       resource.Resource
	}{
		{"by default", "", resource.Resource{
			Version: "v2", Names: orderNames,
			Paths: []string{"/v2/orders", "/v2/orders/{name}"}, Envelope: resource.Bare,
			Fields: resource.Fields{Items: resource.FieldPath{}},
			Writes: resource.Writes{FieldValidation: resource.FieldValidationWarn},
		}},
		{"all fields", "  fields: {name: meta.id, version: meta.rev, status: '', items: data.orders}\n  concurrency: BestEffort\n  fieldValidation: Strict\n  statusSubresource: Disabled\n", resource.Resource{
			Version: "v2", Names: orderNames,
			Paths: []string{"/v2/orders", "/v2/orders/{name}"}, Envelope: resource.Bare,
			Fields: resource.Fields{Name: resource.FieldPath{"meta", "id"}, Version: resource.FieldPath{"meta", "rev"},
				Items: resource.FieldPath{"data", "orders"}},
			Backend: resource.Backend{Concurrency: resource.BestEffort},
			Writes:  resource.Writes{FieldValidation: resource.FieldValidationStrict},
		}},
		{"some fields have their defaults", "  fields: {name: id}\n", resource.Resource{
			Version: "v2", Names: orderNames,
			Paths: []string{"/v2/orders", "/v2/orders/{name}"}, Envelope: resource.Bare,
			Fields: resource.Fields{Name: resource.FieldPath{"id"}, Items: resource.FieldPath{}},
			Writes: resource.Writes{FieldValidation: resource.FieldValidationWarn},
		}},
		{"a status that the file names", "  fields: {name: id, status: meta.state}\n", resource.Resource{
			Version: "v2", Names: orderNames, Subresources: resource.Subresources{Status: true},
			Paths: []string{"/v2/orders", "/v2/orders/{name}"}, Envelope: resource.Bare,
			Fields: resource.Fields{Name: resource.FieldPath{"id"}, Status: resource.FieldPath{"meta", "state"},
				Items: resource.FieldPath{}},
			Writes: resource.Writes{FieldValidation: resource.FieldValidationWarn},
		}},
		{"Kubernetes' envelope", "  envelope: Kubernetes\n  group: shop.example.com\n", resource.Resource{
			Group: "shop.example.com", Version: "v2", Names: orderNames,
			Subresources: resource.Subresources{Status: true},
			Paths:        []string{"/v2/orders", "/v2/orders/{name}"},
			Writes:       resource.Writes{FieldValidation: resource.FieldValidationWarn},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			set := mustLoad(t, map[string]string{"a.yaml": orders + test.more})
			info, r := resolve(t, set, "GET", "/v2/orders/o-1")
			if r == nil || info.Name != "o-1" {
				t.Fatalf("got %+v", info)
			}
			got := *r
			want := test.want
			// What the registry adds is its own matter.
			if got.GroupVersionKind() != want.GroupVersionKind() || !reflect.DeepEqual(got.Names, want.Names) ||
				got.Namespaced != want.Namespaced || got.Subresources.Status != want.Subresources.Status ||
				!reflect.DeepEqual(got.Paths, want.Paths) || got.Envelope != want.Envelope ||
				!reflect.DeepEqual(got.Fields, want.Fields) || got.Backend.Concurrency != want.Backend.Concurrency ||
				got.Writes.FieldValidation != want.Writes.FieldValidation {
				t.Errorf("got\n%+v\nwant\n%+v", got, want)
			}
			// What metadata is in objects of Kubernetes' envelope is known without a schema.
			if known := set.Schema(r) != nil; known != (want.Envelope == resource.Kubernetes) {
				t.Errorf("there is a schema: %v", known)
			}
		})
	}
	set := mustLoad(t, map[string]string{"a.yaml": "apiVersion: admission-gateway.io/v1alpha1\nkind: APIResource\nmetadata: {name: o}\nspec:\n  version: v2\n  names: {plural: orders, kind: Order}\n  paths: {collection: /v2/orders, item: '/v2/tenants/{namespace}/orders/{name}'}\n"})
	if info, r := resolve(t, set, "GET", "/v2/tenants/team-a/orders/o-1"); r == nil || !r.Namespaced ||
		info.Namespace != "team-a" || info.Name != "o-1" {
		t.Errorf("got %+v, %+v", info, r)
	}
}

func TestPoliciesRun(t *testing.T) {
	set := mustLoad(t, map[string]string{"a.yaml": widgets, "b.yaml": policyP, "c.yaml": bindingB})
	info, r := resolve(t, set, "POST", "/apis/example.com/v1/namespaces/team-a/widgets")
	if !set.Admission().Concerns(&info, admission.Create) || set.Admission().Concerns(&info, admission.Update) {
		t.Error("the policy concerns creations, and nothing else")
	}
	d, err := document.Parse([]byte(`{"spec":{"size":7}}`), document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	frame := cel.NewFrame(context.Background())
	defer frame.Release()
	a := &admission.Attributes{Info: &info, Resource: r, Operation: admission.Create, Object: d, Frame: frame}
	var report admission.Report
	set.Admission().Validate(context.Background(), a, &report)
	want := []status.Denial{{Policy: "p", Binding: "b",
		Cause: metav1.StatusCause{Message: "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: spec.size: Invalid value: 7: must be less than 5"}}}
	got := report.Denials()
	if len(got) != 1 || got[0].Policy != want[0].Policy || got[0].Binding != want[0].Binding ||
		got[0].Cause.Message != want[0].Cause.Message {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestRateLimits(t *testing.T) {
	const match = "  match: {verbs: [create], apiGroups: [example.com], resources: [widgets], namespaces: [team-a], matchConditions: [{name: c, expression: \"request.headers['x-tenant'] != 'internal'\"}]}\n"
	tests := []struct {
		name, more, method, target string
		tenant                     string
		allowed                    int
	}{
		{"everything, by address", "", "GET", "/apis/example.com/v1/namespaces/team-b/widgets", "", 3},
		{"what matches", match, "POST", "/apis/example.com/v1/namespaces/team-a/widgets", "", 3},
		{"another verb", match, "GET", "/apis/example.com/v1/namespaces/team-a/widgets", "", 10},
		{"another namespace", match, "POST", "/apis/example.com/v1/namespaces/team-b/widgets", "", 10},
		{"a condition that is false", match, "POST", "/apis/example.com/v1/namespaces/team-a/widgets", "internal", 10},
		{"burst", "  burst: 5\n", "GET", "/v2/x", "", 5},
		{"an expression as key", "  keyExpression: request.namespace\n", "GET",
			"/apis/example.com/v1/namespaces/team-b/widgets", "", 3},
		{"a header as key", "  key: Header\n  headerName: X-Tenant\n", "GET", "/v2/x", "t", 3},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			set := mustLoad(t, map[string]string{"a.yaml": widgets, "l.yaml": limit + test.more})
			info, _ := resolve(t, set, test.method, test.target)
			frame := cel.NewFrame(context.Background())
			defer frame.Release()
			frame.Vars().SetLimited(&cel.Request{Verb: info.VerbName(), Namespace: info.Namespace,
				Headers: tenant(test.tenant)})
			limiter := ratelimit.New(100)
			allowed := 0
			for range 10 {
				request := &ratelimit.Request{Info: &info, ClientAddress: netip.MustParseAddr("192.0.2.1"),
					Headers: tenant(test.tenant), Frame: func() *cel.Frame { return frame }}
				var charges ratelimit.Charges
				set.Limits().Charge(&charges, request)
				if limiter.Decide(&charges, time.Now()).Allowed() {
					allowed++
				}
			}
			if allowed != test.allowed {
				t.Errorf("%d requests of 10 passed, want %d", allowed, test.allowed)
			}
		})
	}
}

// tenant is the header X-Tenant.
type tenant string

func (t tenant) Get(name string) (string, bool) {
	if name == "x-tenant" && t != "" {
		return string(t), true
	}
	return "", false
}

func (t tenant) Each(f func(name, value string) bool) {
	if t != "" {
		f("x-tenant", string(t))
	}
}

func TestObjects(t *testing.T) {
	set := mustLoad(t, map[string]string{"a.yaml": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Namespace\n  metadata: {name: team-a, labels: {tier: gold}}\n- apiVersion: example.com/v1\n  kind: Limits\n  metadata: {name: l, namespace: team-a}\n"})
	o, ok := set.Object("", "Namespace", "", "team-a")
	if !ok || o.Document.Root().Kind() != document.Object {
		t.Fatalf("got %v", o)
	}
	if metadata, _ := o.Document.Root().Get("metadata"); string(
		metadata.Raw()) != `{"name":"team-a","labels":{"tier":"gold"}}` {
		t.Errorf("got %s", metadata.Raw())
	}
	if _, ok := set.Object("example.com", "Limits", "team-a", "l"); !ok {
		t.Error("the parameters are missing")
	}
	if _, ok := set.Object("", "Namespace", "", "team-b"); ok {
		t.Error("an object is there that no file has")
	}
}

func TestFiles(t *testing.T) {
	dir := testutil.WriteFiles(t, map[string]string{"b.yaml": policyP + "---\n" + bindingB, "a.yaml": "# nothing\n"})
	set, found := Load([]string{dir})
	if set == nil {
		t.Fatal(found)
	}
	const group = "admissionregistration.k8s.io/v1"
	want := []File{
		{Name: filepath.Join(dir, "a.yaml"), Objects: []FileObject{}},
		{Name: filepath.Join(dir, "b.yaml"), Objects: []FileObject{{group, "ValidatingAdmissionPolicy", "", "p"},
			{group, "ValidatingAdmissionPolicyBinding", "", "b"}}},
	}
	if got := set.Files(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Gateways with the same policies have the same hash, whatever the files are called.
func TestHash(t *testing.T) {
	hash := func(files map[string]string) string { return mustLoad(t, files).Hash() }
	first := hash(map[string]string{"a.yaml": widgets, "b.yaml": limit})
	if second := hash(map[string]string{"x/b.yaml": widgets, "a.yaml": limit, "README.md": "#"}); first != second ||
		len(first) != 64 {
		t.Errorf("got %s and %s", first, second)
	}
	if third := hash(map[string]string{"a.yaml": widgets, "b.yaml": limit + "# more\n"}); first == third {
		t.Error("another content has the same hash")
	}
	if none := empty(); none.Hash() == first || len(none.Registry().Resources()) != 0 {
		t.Error("the empty set is not empty")
	}
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

// empty returns a set without any policy.
func empty() *Set {
	s, _ := Load(nil)
	return s
}
