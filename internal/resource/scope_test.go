package resource

import (
	"strings"
	"testing"
)

func users(group string, s Scope) *Resource {
	return &Resource{Group: group, Version: "v1", Names: Names{Plural: "users", Kind: "User"},
		Paths: []string{"/users", "/users/{name}"}, Envelope: Bare, Scope: s}
}

// TestEqualPaths: two APIs may have the same paths unless some scope has to have both.
func TestEqualPaths(t *testing.T) {
	for _, tt := range []struct {
		a, b    Scope
		refused bool
	}{
		{Scope{}, Scope{}, true},
		{Scope{}, Scope{Route: "a"}, true},
		{Scope{Upstream: "u"}, Scope{Upstream: "u", Route: "a"}, true},
		{Scope{Hosts: []string{"x", "y"}}, Scope{Hosts: []string{"y"}}, true},
		{Scope{Hosts: []string{"x", "y"}}, Scope{Hosts: []string{"y", "x"}}, true},
		{Scope{Route: "a"}, Scope{Route: "b"}, false},
		{Scope{Upstream: "u"}, Scope{Upstream: "v"}, false},
		{Scope{Hosts: []string{"x"}}, Scope{Hosts: []string{"y"}}, false},
		{Scope{Upstream: "u"}, Scope{Route: "a"}, false}, // the routes decide
		{Scope{Targets: []Target{{Gateway: "n/g"}}}, Scope{Targets: []Target{{Gateway: "n/g", Listener: "l"}}}, true},
		{Scope{}, Scope{Targets: []Target{{Gateway: "n/g"}}}, true},
		{Scope{Targets: []Target{{Gateway: "n/g", Listener: "l"}}},
			Scope{Targets: []Target{{Gateway: "n/g", Listener: "m"}}}, false},
		{Scope{Targets: []Target{{Route: "HTTPRoute/n/r"}}}, Scope{Targets: []Target{{Route: "HTTPRoute/n/s"}}}, false},
	} {
		_, err := NewRegistry([]*Resource{users("a.example.com", tt.a), users("b.example.com", tt.b)})
		if tt.refused != (err != nil) || err != nil &&
			!strings.Contains(err.Error(),
				"must not match the same requests as path '/users' of 'users.a.example.com'") {
			t.Errorf("%+v and %+v: got %v", tt.a, tt.b, err)
		}
	}
}

// TestWithin: a route has the resources whose scopes cover it, and of the others it does not open what it does not
// reach.
func TestWithin(t *testing.T) {
	r, err := NewRegistry([]*Resource{users("a.example.com", Scope{Route: "a"}),
		users("b.example.com", Scope{Upstream: "v"})})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Within(&RouteRef{Upstream: "v", Route: "a"}); err == nil {
		t.Error("a route that both scopes cover is not refused")
	}
	nowhere := func(string) bool { return false }
	for _, tt := range []struct {
		name    string
		view    View
		path    string
		group   string
		refused bool
	}{
		{"a", View{RouteRef{Upstream: "u", Route: "a"}, anyPath, anyPath}, "/users", "a.example.com", false},
		{"b", View{RouteRef{Upstream: "v"}, anyPath, anyPath}, "/users", "b.example.com", false},
		{"neither", View{RouteRef{Upstream: "u", Route: "c"}, anyPath, anyPath}, "/users", "", false},
		{"neither, which the API has by other routes", View{RouteRef{Upstream: "u", Route: "c"}, anyPath, nowhere},
			"/x/../users", "", true},
		{"neither, and not the same API", View{RouteRef{Upstream: "u", Route: "c"}, nowhere, nowhere}, "/x/../users",
			"",
			false},
	} {
		info, res, err := NewPlain(r, NamedResources{}, tt.view).Resolve("GET", []byte(tt.path))
		group := ""
		if res != nil {
			group = res.Group
		}
		if group != tt.group || tt.refused != (err != nil) || !tt.refused && info.IsUndescribed != (group == "") {
			t.Errorf("%s: got %q, undescribed %v, %v", tt.name, group, info.IsUndescribed, err)
		}
	}
}

// TestTargets: a reference to an object of Gateway API covers the requests that come by it.
func TestTargets(t *testing.T) {
	place := RouteRef{Gateway: "infra/gw", Listener: "http", Route: "HTTPRoute/shop/app", Rule: "cart"}
	for _, c := range []struct {
		kind, namespace, name, section string
		covers                         bool
	}{
		{"Gateway", "infra", "gw", "", true},
		{"Gateway", "infra", "gw", "http", true},
		{"Gateway", "infra", "gw", "https", false},
		{"Gateway", "shop", "gw", "", false},
		{"HTTPRoute", "shop", "app", "", true},
		{"HTTPRoute", "shop", "app", "cart", true},
		{"HTTPRoute", "shop", "app", "1", false},
		{"GRPCRoute", "shop", "app", "", false},
	} {
		target, is := TargetOf(c.kind, c.namespace, c.name, c.section)
		if s := (Scope{Targets: []Target{{Gateway: "x/y"}, target}}); !is || s.Covers(&place) != c.covers ||
			s.Covers(&RouteRef{}) {
			t.Errorf("%+v covers the route: %v", c, !c.covers)
		}
	}
	if _, is := TargetOf("Service", "shop", "app", ""); is {
		t.Error("a Service is a target")
	}
}
