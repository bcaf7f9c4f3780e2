package policies

import (
	"fmt"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestMatchBlocksReach: the resources that the match blocks of policies and limits name at
// Kubernetes' paths.
func TestMatchBlocksReach(t *testing.T) {
	policy := func(groups, resources string) string {
		return "apiVersion: admission-gateway.io/v1alpha1\nkind: ConventionPolicy\nmetadata: {name: a}\nspec:\n  checks: {conditions: Warn}\n  matchConstraints:\n" +
			"    resourceRules: [{apiGroups: " + groups + ", resources: " + resources +
			", apiVersions: [v1], operations: [CREATE]}]\n"
	}
	limit := func(match string) string {
		return "apiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: a}\nspec:\n  match: " + match + "\n  key: Global\n  requests: 1\n  periodSeconds: 1\n"
	}
	constraint := func(match string) string {
		return "apiVersion: templates.gatekeeper.sh/v1\nkind: ConstraintTemplate\nmetadata: {name: never}\nspec:\n  crd: {spec: {names: {kind: Never}}}\n  targets:\n" +
			"  - {target: admission.k8s.gatekeeper.sh, rego: 'package never\n\n\n      violation[{\"msg\": \"never\"}] { input.review.object.bad }'}\n---\n" +
			"apiVersion: constraints.gatekeeper.sh/v1beta1\nkind: Never\nmetadata: {name: p}\nspec: {match: " + match + "}\n"
	}
	const (
		own  = "*.apps *.autoscaling *.batch *.extensions *.policy"
		core = "bindings componentstatuses configmaps endpoints events limitranges namespaces nodes persistentvolumeclaims persistentvolumes pods podtemplates" +
			" replicationcontrollers resourcequotas secrets serviceaccounts services"
		everything = own + " | " + core + " | *"
	)
	for name, c := range map[string]struct{ file, want string }{
		"everything":                      {policy("['*']", "['*']"), everything},
		"everything and its subresources": {policy("['*']", "['*/*']"), everything},
		"one subresource of everything":   {policy("['*']", "['*/status']"), everything},
		"all of a group":                  {policy("[shop]", "['*']"), "*.shop |  | "},
		"all of the core group":           {policy("['']", "['*']"), "*.events.k8s.io | " + core + " | "},
		"a resource of a group":           {policy("[shop.example.com]", "[carts/status]"), "carts.shop.example.com |  | "},
		"a resource of the core group":    {policy("['']", "[pods]"), "pods |  | "},
		"a resource of all groups":        {policy("['*']", "[carts]"), "carts.apps carts.autoscaling carts.batch carts.extensions carts.policy |  | carts"},
		"a core resource of all groups":   {policy("['*']", "[pods]"), "pods.apps pods.autoscaling pods.batch pods.extensions pods.policy | pods | pods"},
		"no match block":                  {"apiVersion: admission-gateway.io/v1alpha1\nkind: ConventionPolicy\nmetadata: {name: a}\nspec: {checks: {conditions: Warn}}\n", everything},
		"a limit on all resources":        {limit("{resources: ['*']}"), everything},
		"a limit on all groups":           {limit("{apiGroups: ['*']}"), everything},
		"a limit on a group":              {limit("{apiGroups: [shop]}"), "*.shop |  | "},
		"a limit on every request":        {limit("{verbs: [create]}"), " |  | "},
		"constraints on everything":       {constraint("{}"), everything},
		"constraints on kinds of a group": {constraint("{kinds: [{apiGroups: [shop], kinds: ['*']}]}"), "*.shop |  | "},
		"constraints on a kind": {constraint("{kinds: [{apiGroups: [apps], kinds: [Deployment]}]}"),
			"deployments.apps |  | "},
		"constraints on a kind of another": {constraint("{kinds: [{apiGroups: [shop], kinds: [Cart]}]}"),
			"*.shop |  | "},
	} {
		t.Run(name, func(t *testing.T) {
			set, found := Load([]string{testutil.WriteFiles(t, map[string]string{"a.yaml": c.file})})
			if set == nil {
				t.Fatal(found)
			}
			matched := set.MatchedResources()
			var resources []string
			for _, one := range matched.Resources {
				resources = append(resources, one.String())
			}
			got := fmt.Sprintf("%s | %s | %s", strings.Join(resources, " "), strings.Join(matched.Core, " "),
				strings.Join(matched.Dotted, " "))
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestReached: check says what each wildcard reaches, if an upstream is a plain API.
func TestReached(t *testing.T) {
	const file = `apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: users}
spec:
  group: shop.example.com
  version: v1
  names: {plural: users, kind: User}
  paths: {collection: /users, item: "/users/{name}"}
---
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: never}
spec:
  crd: {spec: {names: {kind: Never}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    rego: |
      package never
      violation[{"msg": "never"}] { input.review.object.bad }
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: Never
metadata: {name: p}
spec: {match: {kinds: [{apiGroups: [apps], kinds: [Deployment]}, {apiGroups: [""], kinds: ["*"]}]}}
---
apiVersion: admission-gateway.io/v1alpha1
kind: ConventionPolicy
metadata: {name: a}
spec:
  checks: {conditions: Warn}
  matchConstraints:
    resourceRules:
    - {apiGroups: [shop.example.com], resources: [users], apiVersions: [v1], operations: [CREATE]}
    - {apiGroups: ["*"], resources: [pods, users], apiVersions: [v1], operations: [CREATE]}
    - {apiGroups: [apps, shop.example.com], resources: ["*/status"], apiVersions: [v1], operations: [CREATE]}
`
	const want = `a.yaml:24: spec.match.kinds[1]: note: reaches on a Plain upstream no described resource; Kubernetes' own resources below '/api/v1/'
a.yaml:34: spec.matchConstraints.resourceRules[1].apiGroups[0]: note: reaches on a Plain upstream the described resource 'users.shop.example.com'; 'pods', 'users' below '/apis/GROUP/VERSION/' of 'apps', 'autoscaling', 'batch', 'extensions', 'policy' and of groups whose names have a dot; 'pods' below '/api/v1/'
a.yaml:35: spec.matchConstraints.resourceRules[2].resources[0]: note: reaches on a Plain upstream the described resource 'users.shop.example.com'; every path below '/apis/apps/VERSION/'; every path below '/apis/shop.example.com/VERSION/'
`
	dir := testutil.WriteFiles(t, map[string]string{"a.yaml": file})
	for name, c := range map[string]struct {
		routes []Route
		want   string
	}{
		"an ordinary API": {[]Route{{PathPrefix: "/", Upstream: "shop"}}, want},
		"both": {[]Route{{PathPrefix: "/", Upstream: "server", Kubernetes: true},
			{PathPrefix: "/users", Upstream: "shop"}}, want},
		"an API server": {[]Route{{PathPrefix: "/apis", Upstream: "server", Kubernetes: true}},
			"a.yaml:8: spec.paths.collection: no route leads to '/users', '/users/{name}': " +
				"'server' gets paths at and below '/apis' by the route of any host and the prefix '/apis'\n"},
		"unknown": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := text(dir, CheckFor([]string{dir}, Gateway{Routes: c.routes})); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
