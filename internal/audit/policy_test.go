package audit

import (
	"fmt"
	"strings"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/resource"
)

func TestDecide(t *testing.T) {
	yes, no := true, false
	p, errs := Compile(&auditv1.Policy{
		OmitStages: []auditv1.Stage{"RequestReceived"}, OmitManagedFields: true,
		Rules: []auditv1.PolicyRule{
			{Level: "None", Users: []string{"probe"}},
			{Level: "Metadata", Resources: []auditv1.GroupResources{{Resources: []string{"secrets", "pods/exec"}}},
				OmitManagedFields: &yes},
			{
				Level: "RequestResponse", Verbs: []string{"create", "update"}, UserGroups: []string{"people"},
				OmitManagedFields: &no,
				Resources:         []auditv1.GroupResources{{Group: "shop"}}, Namespaces: []string{"team-a"},
				OmitStages: []auditv1.Stage{"Panic"},
			},
			{Level: "Request", NonResourceURLs: []string{"/healthz*"}},
		},
	})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	pods := func(verb, resource, sub string) *resource.Info { return info(verb, "", resource, sub, "team-a") }
	for _, c := range []struct {
		info *resource.Info
		user identity.User
		want string
	}{
		{pods("get", "secrets", ""), identity.User{Name: "probe"}, "None"},
		{pods("get", "secrets", ""), identity.User{Name: "x"}, "Metadata true ResponseStarted ResponseComplete Panic"},
		{pods("create", "pods", "exec"), identity.User{Name: "x"},
			"Metadata true ResponseStarted ResponseComplete Panic"},
		{pods("create", "pods", ""), identity.User{Name: "x"}, "None"},
		{info("create", "shop", "orders", "", "team-a"), identity.User{Groups: []string{"x", "people"}},
			"RequestResponse false ResponseStarted ResponseComplete"},
		{info("create", "shop", "orders", "", "team-b"), identity.User{Groups: []string{"people"}}, "None"},
		{info("create", "shop", "orders", "", "team-a"), identity.User{}, "None"},
		{&resource.Info{Verb: resource.VerbGet, Path: "/healthz/etcd"}, identity.User{},
			"Request true ResponseStarted ResponseComplete Panic"},
		{&resource.Info{Verb: resource.VerbGet, Path: "/version"}, identity.User{}, "None"},
	} {
		d := p.Decide(c.info, &c.user)
		got := d.Level.String()
		if d.Level != None {
			got += fmt.Sprint(" ", d.OmitManagedFields)
		}
		for s := RequestReceived; s <= Panic; s++ {
			if d.Has(s) {
				got += " " + s.String()
			}
		}
		if got != c.want {
			t.Errorf("%+v by %+v: %s, want %s", c.info, c.user, got, c.want)
		}
	}
}

// TestDecideByPath: a path that servers read in different ways is recorded as the one that is recorded most.
func TestDecideByPath(t *testing.T) {
	p, errs := Compile(&auditv1.Policy{Rules: []auditv1.PolicyRule{
		{Level: "None", NonResourceURLs: []string{"/healthz", "/public/*"}},
		{Level: "Request", NonResourceURLs: []string{"/admin", "/admin/*"},
			OmitStages: []auditv1.Stage{"RequestReceived"}},
		{Level: "RequestResponse", NonResourceURLs: []string{"/keys/*"}, OmitStages: []auditv1.Stage{"Panic"}},
		{Level: "Metadata", Verbs: []string{"get"}, OmitStages: []auditv1.Stage{"ResponseStarted"}},
	}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	const metadata = "Metadata RequestReceived ResponseComplete Panic"
	for path, want := range map[string]string{
		"/healthz": "None", "/public/x": "None", "/public/a%20b": "None", "/public/a//b": "None", "/other": metadata,
		"/other/a%2fb":         metadata,
		"/admin":               "Request ResponseStarted ResponseComplete Panic",
		"/keys/1":              "RequestResponse RequestReceived ResponseStarted ResponseComplete",
		"/public/../admin":     "Request ResponseStarted ResponseComplete Panic", // as /admin
		"/public/%2e%2e/admin": "Request ResponseStarted ResponseComplete Panic",
		"/public/..%2fother":   metadata, "/healthz;x": metadata,
		"/keys/../public/x": "RequestResponse RequestReceived ResponseStarted ResponseComplete",
		"/public/" + strings.Repeat(`;//%2f\`, 60) +
			"/%252525252525252525": "RequestResponse RequestReceived ResponseStarted ResponseComplete Panic",
	} {
		d := p.Decide(&resource.Info{Verb: resource.VerbGet, Path: path}, &identity.User{})
		got := d.Level.String()
		for s := RequestReceived; s <= Panic; s++ {
			if d.Has(s) {
				got += " " + s.String()
			}
		}
		if got != want {
			t.Errorf("%.60s: %s, want %s", path, got, want)
		}
	}
}

func info(verb, group, name, sub, namespace string) *resource.Info {
	return &resource.Info{
		Verb: resource.VerbNamed(verb), IsResource: true, Group: group, Version: "v1", Resource: name, Subresource: sub,
		Namespace: namespace,
	}
}

func TestNoPolicyRecordsNothing(t *testing.T) {
	var p *Policy
	if d := p.Decide(&resource.Info{}, &identity.User{}); d.Has(ResponseComplete) {
		t.Error("an event without a policy")
	}
}

func TestCompileRefuses(t *testing.T) {
	for want, p := range map[string]auditv1.Policy{
		"rules: Required value: a policy without rules records nothing": {},
		`rules[0].level: Unsupported value: "All": supported values: "None", "Metadata", "Request", "RequestResponse"`: {
			Rules: []auditv1.PolicyRule{{Level: "All"}},
		},
		`rules[0].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular resources and non-resource URLs`: {
			Rules: []auditv1.PolicyRule{{Level: "Request", Namespaces: []string{"a"}, NonResourceURLs: []string{"/x"}}},
		},
	} {
		_, errs := Compile(&p)
		if len(errs) == 0 || errs[0].Error() != want {
			t.Errorf("got %v, want %s", errs, want)
		}
	}
}
