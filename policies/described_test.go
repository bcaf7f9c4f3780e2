package policies

import (
	"github.com/admission-gateway/gateway/internal/testutil"
	"testing"
)

// Policies that cannot match are warned of as far as the files alone make it certain, and the rest if no upstream is an API server.
func TestUnmatched(t *testing.T) {
	const users = `apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: users}
spec:
  group: shop.example.com
  version: v1
  names: {plural: users, kind: User}
  paths: {collection: /users, item: "/users/{name}"}
---
`
	rule := func(groups, resources string) string {
		return users + `apiVersion: admission-gateway.io/v1alpha1
kind: ConventionPolicy
metadata: {name: a}
spec:
  matchConstraints:
    resourceRules:
    - apiGroups: ` + groups + `
      resources: ` + resources + `
      apiVersions: ["*"]
      operations: [CREATE]
  checks: {conditions: Warn}
`
	}
	limit := func(match string) string {
		return users + "apiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: a}\nspec:\n  match: " + match + "\n  key: Global\n  requests: 1\n  periodSeconds: 1\n"
	}
	kubernetes, plain := []Route{
		{PathPrefix: "/", Upstream: "server", Kubernetes: true}, {PathPrefix: "/users", Upstream: "shop"},
	}, []Route{{PathPrefix: "/", Upstream: "shop"}}
	for name, c := range map[string]struct {
		file   string
		routes []Route
		want   string
	}{
		"what there is":              {rule("[shop.example.com]", `[users, "users/*"]`), plain, ""},
		"Kubernetes' own":            {rule(`["", apps]`, "[pods, deployments]"), plain, ""},
		"a resource in the singular": {rule("[shop.example.com]", "[user]"), kubernetes, "a.yaml:17: spec.matchConstraints.resourceRules[0].resources[0]: warning: matches nothing: the group 'shop.example.com' has no resource 'user'; did you mean `users`?\n"},
		"another resource":           {rule("[shop.example.com]", "[carts]"), kubernetes, "a.yaml:17: spec.matchConstraints.resourceRules[0].resources[0]: warning: matches nothing: the group 'shop.example.com' has no resource 'carts'\n"},
		"a subresource":              {rule("[shop.example.com]", "[users/scale]"), kubernetes, "a.yaml:17: spec.matchConstraints.resourceRules[0].resources[0]: warning: matches nothing: 'users.shop.example.com' has no subresource 'scale'\n"},
		"a group misspelled":         {rule("[shop.exmaple.com]", "[users]"), kubernetes, "a.yaml:16: spec.matchConstraints.resourceRules[0].apiGroups[0]: warning: matches nothing that the files describe: no file has the group 'shop.exmaple.com'; did you mean `shop.example.com`?\n"},
		"another group":              {rule("[other.example.org]", "[users]"), plain, "a.yaml:16: spec.matchConstraints.resourceRules[0].apiGroups[0]: warning: matches nothing: no file has the group 'other.example.org', and no upstream is an API server that may have it\n"},
		"another group of a server":  {rule("[other.example.org]", "[users]"), kubernetes, ""},
		"a limit":                    {limit("{apiGroups: [shop.example.com], resources: [user]}"), plain, "a.yaml:14: spec.match.resources[0]: warning: matches nothing: the group 'shop.example.com' has no resource 'user'; did you mean `users`?\n"},
		"a limit on everything":      {limit("{verbs: [create]}"), plain, ""},
		"everything of nothing": {"apiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: a}\nspec:\n  match: {apiGroups: ['*']}\n  key: Global\n  requests: 1\n  periodSeconds: 1\n", plain,
			"a.yaml:5: spec.match.apiGroups[0]: warning: matches nothing: no file describes a resource, and no upstream is an API server that has some\n"},
		"an item outside its collection": {"apiVersion: admission-gateway.io/v1alpha1\nkind: APIResource\nmetadata: {name: a}\nspec:\n  version: v1\n  names: {plural: users, kind: User}\n  paths: {collection: /shop/users, item: '/shop/user/{name}'}\n", plain,
			"a.yaml:7: spec.paths.item: warning: is not below the collection '/shop/users': objects at '/shop/users/{name}' are not held to this file\n"},
		"required of no property": {"apiVersion: admission-gateway.io/v1alpha1\nkind: APIResource\nmetadata: {name: a}\nspec:\n  version: v1\n  names: {plural: users, kind: User}\n  paths: {collection: /users, item: '/users/{name}'}\n  schema:\n    openAPIV3Schema:\n      type: object\n      required: [usernam]\n      properties: {username: {type: string}, open: {type: object, required: [a], x-kubernetes-preserve-unknown-fields: true}}\n", plain,
			"a.yaml:11: spec.schema.openAPIV3Schema.required[0]: warning: can never be met: no property has the name 'usernam'; did you mean `username`?\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := testutil.WriteFiles(t, map[string]string{"a.yaml": c.file})
			if got := text(dir, CheckFor([]string{dir}, Gateway{Routes: c.routes})); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
