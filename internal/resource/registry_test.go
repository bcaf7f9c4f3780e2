package resource

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/internal/status"
)

func statusOf(t *testing.T, err error) *metav1.Status {
	t.Helper()
	var s *status.Error
	if !errors.As(err, &s) {
		t.Fatalf("%T is no Status: %v", err, err)
	}
	return &s.ErrStatus
}

// RES-3: what a policy file may not say.
func TestNewRegistryRefuses(t *testing.T) {
	order := func(paths ...string) *Resource {
		return &Resource{Group: "shop.example.com", Version: "v2", Names: Names{Kind: "Order", Plural: "orders"},
			Paths: paths}
	}
	operation := func(method, name string, paths ...string) *Resource {
		r := order(paths...)
		r.Operation = &Operation{Subresource: name, Method: method, Verb: VerbCreate}
		return r
	}
	namespaced := func(paths ...string) *Resource {
		r := order(paths...)
		r.Namespaced = true
		return r
	}
	tests := []struct {
		name      string
		resources []*Resource
		want      string
	}{
		{"group", []*Resource{{Group: "Shop", Version: "v1", Names: Names{Kind: "Order", Plural: "orders"}}},
			"group 'Shop' of resource 'orders.Shop': a lowercase RFC 1123 subdomain"},
		{"version", []*Resource{{Version: "1.0", Names: Names{Kind: "Order", Plural: "orders"}}},
			"version '1.0' of resource 'orders': must not contain dots"},
		{"plural", []*Resource{{Version: "v1", Names: Names{Kind: "Order", Plural: "Orders"}}},
			"name 'Orders' of resource 'Orders'"},
		{"kind", []*Resource{{Version: "v1", Names: Names{Plural: "orders"}}},
			"kind '' of resource 'orders': must be set"},
		{"subresource",
			[]*Resource{{Version: "v1", Names: Names{Kind: "Order", Plural: "orders"},
				Subresources: Subresources{Other: []string{"a/b"}}}}, "subresource 'a/b'"},
		{"twice", []*Resource{order(), order()}, "resource 'orders.shop.example.com' in version 'v2' must not be defined more than once"},
		{"no slash", []*Resource{order("v2/orders")}, "path 'v2/orders' must be plain segments"},
		{"root", []*Resource{order("/")}, "path '/' must have between 1 and 14 segments"},
		{"too long", []*Resource{order(strings.Repeat("/a", 15))}, "must have between 1 and 14 segments"},
		{"double slash", []*Resource{order("/v2//orders")}, "must be plain segments"},
		{"dots", []*Resource{order("/v2/../orders")}, "must be plain segments"},
		{"encoded", []*Resource{order("/v2/or%20ders")}, "must be plain segments"},
		{"variable", []*Resource{order("/v2/x{id}")}, "must not contain 'x{id}'"},
		{"unknown variable twice", []*Resource{order("/v2/{id}/orders/{id}")},
			"must not contain '{id}' more than once"},
		{"operation twice", []*Resource{operation("POST", "search", "/v2/{a}/search"),
			operation("POST", "find", "/v2/{b}/search")},
			"POST '/v2/{b}/search' of 'orders.shop.example.com' must not match the same requests as '/v2/{a}/search' of 'orders.shop.example.com'"},
		{"same operation", []*Resource{operation("POST", "search", "/v2/search"),
			operation("POST", "search", "/v3/search")}, "must not be defined more than once"},
		{"part of a segment", []*Resource{order("/v2/order-{name}")}, "must not contain 'order-{name}'"},
		{"variable twice", []*Resource{order("/v2/{name}/x/{name}")}, "must not contain '{name}' more than once"},
		{"namespace of none", []*Resource{order("/v2/{namespace}/orders")},
			"must not contain '{namespace}': the resource is not namespaced"},
		{"no namespace", []*Resource{namespaced("/v2/orders/{name}")},
			"must contain '{namespace}': the resource is namespaced"},
		{"same path", []*Resource{order("/v2/orders/{name}"),
			{Group: "b", Version: "v2", Names: Names{Kind: "B", Plural: "bs"}, Namespaced: true,
				Paths: []string{"/v2/orders/{namespace}"}}},
			"path '/v2/orders/{namespace}' of 'bs.b' must not match the same requests as path '/v2/orders/{name}' of 'orders.shop.example.com'"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := NewRegistry(tt.resources)
			if err == nil || r != nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// A template that shares its beginning with another is found all the same.
func TestTemplatesBacktrack(t *testing.T) {
	r, err := NewRegistry([]*Resource{
		{Version: "v1", Names: Names{Kind: "A", Plural: "as"}, Namespaced: true,
			Paths: []string{"/t/{namespace}/as/{name}"}},
		{Version: "v1", Names: Names{Kind: "B", Plural: "bs"}, Paths: []string{"/t/admin/bs/{name}"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{"/t/admin/as/x": "as", "/t/admin/bs/x": "bs", "/t/team-a/as/x": "as"} {
		info, _, err := r.Resolve("GET", []byte(target))
		if err != nil || info.Resource != want || info.Name != "x" {
			t.Errorf("%s: got %+v, %v", target, info, err)
		}
	}
}

func TestEmptyRegistry(t *testing.T) {
	r, err := NewRegistry(nil)
	if err != nil {
		t.Fatal(err)
	}
	info, res, err := r.Resolve("POST", []byte("/apis/a.example.com/v1/namespaces/team-a/bs"))
	if err != nil || res != nil || info.Verb != VerbCreate || info.Resource != "bs" || info.Namespace != "team-a" {
		t.Errorf("got %+v, %v, %v", info, res, err)
	}
}

func TestNames(t *testing.T) {
	for _, e := range []Envelope{Kubernetes, Bare} {
		if e.String() == "" {
			t.Errorf("%d has no name", e)
		}
	}
	if Optimistic.String() != "Optimistic" || BestEffort.String() != "BestEffort" ||
		FieldValidationStrict.String() != "Strict" || FieldValidationUnset.String() != "" {
		t.Error("a name is not the one of policy files")
	}
}
