package policies

import (
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// wide and everywhere are what wildcards reach below /apis, and below /api too.
const (
	wide       = "'apps', 'autoscaling', 'batch', 'extensions', 'policy' and of groups whose names have a dot"
	everywhere = "every path below '/apis/GROUP/VERSION/' of " + wide + "; Kubernetes' own resources below '/api/v1/'"
)

// Policies that cannot match are warned of as far as the files alone make it certain, and the rest if no upstream is an
// API server.
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
		"a resource in the singular": {rule("[shop.example.com]", "[user]"), kubernetes, "a.yaml:17: spec.matchConstraints.resourceRules[0].resources[0]: warning: matches nothing that the files describe: the group 'shop.example.com' has no resource 'user'; did you mean `users`?\n"},
		"another resource":           {rule("[shop.example.com]", "[carts]"), kubernetes, "a.yaml:17: spec.matchConstraints.resourceRules[0].resources[0]: warning: matches nothing that the files describe: the group 'shop.example.com' has no resource 'carts'\n"},
		"a subresource":              {rule("[shop.example.com]", "[users/scale]"), kubernetes, "a.yaml:17: spec.matchConstraints.resourceRules[0].resources[0]: warning: matches nothing that the files describe: 'users.shop.example.com' has no subresource 'scale'\n"},
		"a group misspelled":         {rule("[shop.exmaple.com]", "[users]"), kubernetes, "a.yaml:16: spec.matchConstraints.resourceRules[0].apiGroups[0]: warning: matches nothing that the files describe: no file has the group 'shop.exmaple.com'; did you mean `shop.example.com`?\n"},
		"another group":              {rule("[other.example.org]", "[users]"), plain, "a.yaml:16: spec.matchConstraints.resourceRules[0].apiGroups[0]: warning: matches nothing but paths below '/apis/other.example.org/': no file has the group, and no upstream is an API server that may have it\n"},
		"another group of a server":  {rule("[other.example.org]", "[users]"), kubernetes, ""},
		"a limit":                    {limit("{apiGroups: [shop.example.com], resources: [user]}"), plain, "a.yaml:14: spec.match.resources[0]: matches nothing that the files describe: the group 'shop.example.com' has no resource 'user'; did you mean `users`?\n"},
		"a limit on everything":      {limit("{verbs: [create]}"), plain, ""},
		"everything of nothing": {"apiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: a}\nspec:\n  match: {apiGroups: ['*']}\n  key: Global\n  requests: 1\n  periodSeconds: 1\n", plain,
			"a.yaml:5: spec.match.apiGroups[0]: note: reaches on a Plain upstream no described resource; " + everywhere + "\n"},
		"an item outside its collection": {"apiVersion: admission-gateway.io/v1alpha1\nkind: APIResource\nmetadata: {name: a}\nspec:\n  version: v1\n  names: {plural: users, kind: User}\n  paths: {collection: /shop/users, item: '/shop/user/{name}'}\n", plain,
			"a.yaml:7: spec.paths.item: warning: is not below the collection '/shop/users': objects at '/shop/users/{name}' are not held to this file\n"},
		"required of no property": {"apiVersion: admission-gateway.io/v1alpha1\nkind: APIResource\nmetadata: {name: a}\nspec:\n  version: v1\n  names: {plural: users, kind: User}\n  paths: {collection: /users, item: '/users/{name}'}\n  schema:\n    openAPIV3Schema:\n      type: object\n      required: [usernam]\n      properties: {username: {type: string}, open: {type: object, required: [a], x-kubernetes-preserve-unknown-fields: true}}\n", plain,
			"a.yaml:11: spec.schema.openAPIV3Schema.required[0]: can never be met: no property has the name 'usernam'; did you mean `username`?\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := testutil.WriteFiles(t, map[string]string{"a.yaml": c.file})
			if got := text(dir, CheckFor([]string{dir}, Gateway{Routes: c.routes})); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// Operations of policies and verbs of limits that a document has no method for are warned of.
func TestUnmatchedVerbs(t *testing.T) {
	const shop = `openapi: 3.1.0
info: {title: Shop, version: "1"}
x-admission-gateway-resource: {group: shop.example.com}
paths:
  /orders:
    get: {responses: {"200": {description: all}}}
    post: {requestBody: {content: {application/json: {schema: {type: object}}}}, responses: {"201": {description: created}}}
  /orders/{id}:
    get: {responses: {"200": {description: one}}}
  /orders/{id}/cancel:
    post: {x-admission-gateway-operation: {name: cancel, operation: UPDATE}, requestBody: {content: {application/json: {schema: {type: object}}}}, responses: {"202": {description: cancelled}}}
  /carts/{id}:
    delete: {responses: {"204": {description: gone}}}
    put: {requestBody: {content: {application/json: {schema: {type: object}}}}, responses: {"200": {description: replaced}}}
  /me:
    get: {responses: {"200": {description: it}}}
    patch: {requestBody: {content: {application/json: {schema: {type: object}}}}, responses: {"200": {description: changed}}}
---
`
	policy := func(groups, resources, operations string) string {
		return shop + `apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: a}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: ` + groups + `, resources: ` + resources + `, apiVersions: ["*"], operations: ` + operations + `}]
  rego: |
    package p
    deny contains "no" if input.review.name == "x"
`
	}
	limit := func(match string) string {
		return shop + "apiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: a}\nspec:\n  match: " + match + "\n  key: Global\n  requests: 1\n  periodSeconds: 1\n"
	}
	plain := []Route{{PathPrefix: "/", Upstream: "shop"}}
	kubernetes := []Route{{PathPrefix: "/", Upstream: "server", Kubernetes: true},
		{PathPrefix: "/orders", Upstream: "shop"}, {PathPrefix: "/carts", Upstream: "shop"},
		{PathPrefix: "/me", Upstream: "shop"}}
	const (
		own     = "[shop.example.com]"
		at      = "a.yaml:24: spec.matchConstraints.resourceRules[0].operations"
		limited = "a.yaml:23: spec.match.verbs"
		group   = "a.yaml:24: spec.matchConstraints.resourceRules[0].resources[0]: note: reaches on a Plain upstream the described resources 'carts.shop.example.com', 'me.shop.example.com', 'orders.shop.example.com'; "
		named   = "a.yaml:23: spec.match.resources: note: reaches on a Plain upstream the described resource 'orders.shop.example.com'; 'orders' below '/apis/GROUP/VERSION/' of " + wide + "\n"
		some    = ": note: matches nothing that the files describe: the only verbs of 'orders.shop.example.com' are create, get, list, watch\n"
		none    = ": matches nothing that the files describe: the only verbs of 'orders.shop.example.com' are create, get, list, watch\n"
		orders  = ": warning: matches nothing that the files describe: the only verbs of 'orders.shop.example.com' are create, get, list, watch\n"
	)
	for name, c := range map[string]struct {
		file   string
		routes []Route
		want   string
	}{
		"what there is":                  {policy(own, "[orders]", "[CREATE]"), kubernetes, ""},
		"never deleted":                  {policy(own, "[orders]", "[DELETE]"), kubernetes, at + "[0]" + orders},
		"created and never updated":      {policy(own, "[orders]", "[CREATE, UPDATE]"), kubernetes, at + "[1]" + some},
		"never connected to":             {policy(own, "[orders]", "[CREATE, CONNECT]"), kubernetes, at + "[1]" + some},
		"all operations":                 {policy(own, "[orders]", "['*']"), kubernetes, ""},
		"another resource has it":        {policy(own, "[orders, carts]", "[CREATE, UPDATE, DELETE]"), kubernetes, ""},
		"a PUT that creates":             {policy(own, "[carts]", "[CREATE]"), kubernetes, ""},
		"a single object":                {policy(own, "[me]", "[CREATE, UPDATE, DELETE]"), kubernetes, at + "[0]: note: matches nothing that the files describe: the only verbs of 'me.shop.example.com' are get, patch\n" + at + "[2]: note: matches nothing that the files describe: the only verbs of 'me.shop.example.com' are get, patch\n"},
		"an operation":                   {policy(own, "[orders/cancel]", "[UPDATE]"), kubernetes, ""},
		"an operation of the other kind": {policy(own, "[orders/cancel]", "[CREATE]"), kubernetes, at + "[0]: warning: matches nothing that the files describe: the only verbs of 'orders.shop.example.com' are update\n"},
		"with all that is below":         {policy(own, "['orders/*']", "[UPDATE, DELETE]"), kubernetes, at + "[1]: note: matches nothing that the files describe: the only verbs of 'orders.shop.example.com' are create, get, list, update, watch\n"},
		"all of a group":                 {policy(own, "['*']", "[CONNECT]"), kubernetes, at + "[0]: warning: matches nothing that the files describe: the only verbs of 'carts.shop.example.com', 'me.shop.example.com', 'orders.shop.example.com' are create, delete, get, list, patch, update, watch\n" + group + "every path below '/apis/shop.example.com/VERSION/'\n"},
		"everything, with a server":      {policy("['*']", "['*']", "[CONNECT]"), kubernetes, group + everywhere + "\n"},
		"everything, without a server":   {policy("['*']", "['*']", "[CONNECT]"), plain, at + "[0]: warning: matches nothing that the files describe: the only verbs of 'carts.shop.example.com', 'me.shop.example.com', 'orders.shop.example.com' are create, delete, get, list, patch, update, watch\n" + group + everywhere + "\n"},
		"beside Kubernetes' own":         {policy("['', shop.example.com]", "[orders]", "[CONNECT]"), plain, ""},
		"a limit on what there is":       {limit("{apiGroups: [shop.example.com], resources: [orders], verbs: [create, list, watch]}"), kubernetes, ""},
		"a limit that nothing meets": {
			limit("{apiGroups: [shop.example.com], resources: [orders], verbs: [patch]}"), kubernetes, limited + "[0]" +
				orders},
		"a limit on methods": {
			limit("{apiGroups: [shop.example.com], resources: [orders], verbs: [get, post]}"), kubernetes,
			limited + "[1]" + some},
		"a limit on OPTIONS": {
			limit("{apiGroups: [shop.example.com], resources: [orders], verbs: [options]}"), kubernetes, ""},
		"a limit without groups":         {limit("{resources: [orders], verbs: [delete]}"), plain, limited + "[0]" + none},
		"a limit that a server may meet": {limit("{resources: [orders], verbs: [delete]}"), kubernetes, named},
		"a limit on whatever passes":     {limit("{verbs: [head]}"), plain, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := testutil.WriteFiles(t, map[string]string{"a.yaml": c.file})
			if got := text(dir, CheckFor([]string{dir}, Gateway{Routes: c.routes})); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
