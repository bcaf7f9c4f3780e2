package policies

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// The objects of a Gateway with a route, as files have them.
const (
	gatewayClass = `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: ours}
spec: {controllerName: admission-gateway.io/gateway}
`
	gatewayGW = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: infra}
spec:
  gatewayClassName: ours
  addresses: [{value: 127.0.0.1}]
  listeners: [{name: http, port: 8000, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
`
	routeR = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r, namespace: shop}
spec:
  parentRefs: [{name: gw, namespace: infra}]
  hostnames: [shop.example.com]
  rules: [{backendRefs: [{name: app, port: 80}]}]
`
)

// TestRoutesOfFiles loads objects that routes are made of: what cannot be in force is an error at its place.
func TestRoutesOfFiles(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"none", widgets, ""},
		{"a route", gatewayClass + "---\n" + gatewayGW + "---\n" + routeR, ""},
		{"the same name in two namespaces", gatewayClass + "---\n" + gatewayGW + "---\n" + routeR + "---\n" +
			strings.Replace(routeR, "namespace: shop", "namespace: other", 1), ""},
		{"the same twice", gatewayClass + "---\n" + gatewayGW + "---\n" + routeR + "---\n" + routeR,
			"a.yaml:24: metadata.name: must be unique; HTTPRoute 'shop/r' is in a.yaml:16 already\n"},
		{"no class", gatewayGW + "---\n" + routeR,
			"a.yaml:5: spec.gatewayClassName: must be the name of a GatewayClass of the files whose `controllerName` is 'admission-gateway.io/gateway'\n" +
				"a.yaml:13: spec.parentRefs: must lead to a Gateway or a ListenerSet of the files\n"},
		{"another controller's", strings.Replace(gatewayClass, "admission-gateway.io/gateway", "example.com/other", 1) +
			"---\n" + gatewayGW + "---\n" + routeR, ""},
		{"no listener", gatewayClass + "---\n" + gatewayGW + "---\n" +
			strings.Replace(routeR, "infra}", "infra, sectionName: https}", 1),
			"a.yaml:18: spec.parentRefs[0]: 'gw' has no listener of the name 'https'\n"},
		{"an expression that is none", gatewayClass + "---\n" + gatewayGW + "---\n" +
			strings.Replace(routeR, "[{backendRefs",
				"[{matches: [{path: {type: RegularExpression, value: '('}}], backendRefs", 1),
			"a.yaml:20: spec.rules[0].matches[0].path.value: must be a regular expression of RE2: error parsing regexp: missing closing ): `(`\n"},
		{"an unknown field", gatewayClass + "---\n" + strings.Replace(gatewayGW, "port: 8000", "port: 8000, prot: x",
			1) + "---\n" + routeR,
			"a.yaml:12: spec.listeners[0].prot: warning: unknown field; did you mean `port`?\n"},
		{"an Ingress of nobody", "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i, namespace: shop}\nspec: {ingressClassName: nginx}\n",
			"a.yaml:4: spec.ingressClassName: warning: the Ingress is not served: the files have no IngressClass of it whose `controller` is 'admission-gateway.io/gateway'\n"},
		{"another kind of the group", "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: np, namespace: shop}\n", ""},
		{"a kind that the API does not have", "apiVersion: gateway.networking.k8s.io/v1\nkind: FTPRoute\nmetadata: {name: np, namespace: shop}\n",
			"a.yaml:2: kind: must be 'BackendTLSPolicy', 'GRPCRoute', 'Gateway', 'GatewayClass', 'HTTPRoute', 'ListenerSet', 'ReferenceGrant', 'TCPRoute', 'TLSRoute' or 'UDPRoute', not 'FTPRoute'\n"},
		{"a Secret that is none", gatewayClass + "---\n" + strings.Replace(gatewayGW, "protocol: HTTP,",
			"protocol: HTTPS, tls: {certificateRefs: [{name: c}]},", 1) + "---\n" +
			"apiVersion: v1\nkind: Secret\nmetadata: {name: c, namespace: infra}\ntype: kubernetes.io/tls\nstringData: {tls.crt: x}\n",
			"a.yaml:12: spec.listeners[0].tls.certificateRefs[0]: the Secret 'infra/c' must have 'tls.crt' and 'tls.key'\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			testutil.WriteFile(t, filepath.Join(dir, "a.yaml"), c.text)
			set, found := Load([]string{dir})
			if got := text(dir, found); got != c.want {
				t.Errorf("found is\n%s\nnot\n%s", got, c.want)
			}
			if hasRoute := set != nil && set.Routing() != nil &&
				len(set.Routing().Routes) > 0; hasRoute != strings.HasPrefix(c.name, "a route") &&
				c.name != "the same name in two namespaces" && c.name != "an unknown field" {
				t.Errorf("that there are routes is %v", hasRoute)
			}
		})
	}
}

// TestRoutesAreDescribed: a check for a gateway says for which requests routes are in force.
func TestRoutesAreDescribed(t *testing.T) {
	dir := t.TempDir()
	testutil.WriteFile(t, filepath.Join(dir, "a.yaml"), gatewayClass+"---\n"+gatewayGW+"---\n"+routeR)
	const want = "a.yaml:14: note: takes requests for 'shop.example.com' on the port 8000 of 'infra/gw' (http)\n"
	if got := text(dir, CheckFor([]string{dir}, Gateway{DescribesRoutes: true})); got != want {
		t.Errorf("found is\n%s\nnot\n%s", got, want)
	}
}

// TestTargetRefs: references to objects of Gateway API are checked against those of the files.
func TestTargetRefs(t *testing.T) {
	limit := func(refs string) string {
		return "---\napiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: few}\nspec:\n  requests: 1\n  periodSeconds: 1\n  targetRefs:\n" + refs
	}
	const group = "  - group: gateway.networking.k8s.io\n"
	for _, c := range []struct {
		name, refs, want string
		watches          bool
	}{
		{"a Gateway", group + "    kind: Gateway\n    namespace: infra\n    name: gw\n", "", false},
		{"a listener", group + "    kind: Gateway\n    namespace: infra\n    name: gw\n    sectionName: http\n", "",
			false},
		{"a rule", group + "    kind: HTTPRoute\n    namespace: shop\n    name: r\n    sectionName: '0'\n", "", false},
		{"no such rule", group + "    kind: HTTPRoute\n    namespace: shop\n    name: r\n    sectionName: x\n",
			"a.yaml:29: spec.targetRefs[0]: must be a Gateway, or a route, of the files that is in force, with a listener or a rule of the `sectionName`\n", false},
		{"no such route, which the cluster may have", group + "    kind: HTTPRoute\n    namespace: shop\n    name: s\n",
			"", true},
		{"another kind", group + "    kind: Service\n    namespace: shop\n    name: r\n", "a.yaml:30: spec.targetRefs[0].kind: Unsupported value: \"Service\": supported values: \"Gateway\", \"HTTPRoute\", \"GRPCRoute\"\n", false},
		{"no namespace", group + "    kind: Gateway\n    name: gw\n",
			"a.yaml:29: spec.targetRefs[0].namespace: Required value\n", false},
		{"another group", "  - group: example.com\n    kind: Gateway\n    namespace: infra\n    name: gw\n", "a.yaml:29: spec.targetRefs[0].group: Unsupported value: \"example.com\": supported values: \"gateway.networking.k8s.io\"\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			testutil.WriteFile(t, filepath.Join(dir, "a.yaml"), gatewayClass+"---\n"+gatewayGW+"---\n"+routeR+
				limit(c.refs))
			if got := text(dir, CheckFor([]string{dir}, Gateway{Watches: c.watches})); got != c.want {
				t.Errorf("found is\n%s\nnot\n%s", got, c.want)
			}
		})
	}
}

// TestTargetsOfPolicies: the references of policies, in their field or their annotation, are checked as those of limits
// are.
func TestTargetsOfPolicies(t *testing.T) {
	const (
		match   = "matchConstraints: {resourceRules: [{apiGroups: [\"\"], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}"
		own     = "apiVersion: admission-gateway.io/v1alpha1\nkind: %s\nmetadata: {name: p}\nspec:\n  " + match + "\n  targetRefs:\n  - {group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop, name: NAME}\n"
		foreign = "apiVersion: admissionregistration.k8s.io/v1\nkind: %[1]s\nmetadata:\n  name: p\n  annotations:\n    admission-gateway.io/target-refs: '[{\"group\":\"gateway.networking.k8s.io\",\"kind\":\"HTTPRoute\",\"namespace\":\"shop\",\"name\":\"NAME\"}]'\nspec:\n"
		vap     = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\nspec:\n  " + match + "\n  validations: [{expression: 'true'}]\n"
		binding = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: p}\nspec: {policyName: p, validationActions: [Deny]}\n"
		lost    = "must be a Gateway, or a route, of the files that is in force, with a listener or a rule of the `sectionName`"
		at      = "metadata.annotations[admission-gateway.io/target-refs]"
	)
	for _, c := range []struct{ name, text, want string }{
		{"DefaultingPolicy", fmt.Sprintf(own, "DefaultingPolicy") + "  defaults: [{field: spec.hostname, value: a}]\n",
			"spec.targetRefs[0]: " + lost},
		{"RegoPolicy", fmt.Sprintf(own, "RegoPolicy") + "  rego: |\n    package p\n    deny contains \"no\" if input.review.object.metadata.name == \"x\"\n", "spec.targetRefs[0]: " + lost},
		{"ConventionPolicy", fmt.Sprintf(own, "ConventionPolicy") + "  checks: {reservedKeys: Deny}\n",
			"spec.targetRefs[0]: " + lost},
		{"PolicyException", fmt.Sprintf(own, "PolicyException") + "  policies: [{kind: ValidatingAdmissionPolicy, names: [p]}]\n  reason: a test\n---\n" + vap + "---\n" + binding, "spec.targetRefs[0]: " + lost},
		{"ValidatingAdmissionPolicy", fmt.Sprintf(foreign, "ValidatingAdmissionPolicy") + "  " + match +
			"\n  validations: [{expression: 'true'}]\n---\n" + binding, at + ": " + lost},
		{"ValidatingAdmissionPolicyBinding", fmt.Sprintf(foreign, "ValidatingAdmissionPolicyBinding") +
			"  policyName: p\n  validationActions: [Deny]\n---\n" + vap, at + ": " + lost},
	} {
		for route, want := range map[string]string{"r": "", "s": c.want} {
			dir := t.TempDir()
			testutil.WriteFile(t, filepath.Join(dir, "a.yaml"), gatewayClass+"---\n"+gatewayGW+"---\n"+routeR)
			testutil.WriteFile(t, filepath.Join(dir, "b.yaml"), strings.ReplaceAll(c.text, "NAME", route))
			got := ""
			for _, f := range CheckFor([]string{dir}, Gateway{}) {
				if f.Severity == Error {
					got += f.Field + ": " + f.Message
				}
			}
			if got != want {
				t.Errorf("%s for the route %s: found is %q, not %q", c.name, route, got, want)
			}
		}
	}
	for value, want := range map[string]string{
		`{}`: "must be a list of references in JSON", `[]`: "must have a reference",
		`[{"kind":"Service"}]`: `supported values: "Gateway", "HTTPRoute", "GRPCRoute"`,
		`[{"group":"x","kind":"Gateway","namespace":"a","name":"b"}]`: `supported values: "gateway.networking.k8s.io"`,
		`[{"Kind":"Gateway"}]`: "unknown field",
		`[{"group":"gateway.networking.k8s.io","kind":"Gateway"}]`: "Required value",
	} {
		dir := t.TempDir()
		testutil.WriteFile(t, filepath.Join(dir, "a.yaml"),
			strings.Replace(vap, "{name: p}", "{name: p, annotations: {admission-gateway.io/target-refs: '"+value+"'}}",
				1)+"---\n"+binding)
		if got := text(dir, CheckFor([]string{dir}, Gateway{})); !strings.Contains(got, want) ||
			!strings.Contains(got, at) {
			t.Errorf("%s: found is %q, want %q", value, got, want)
		}
	}
}

// TestTwinsOfTargets: two resources of one path that a rule would have to serve are an error.
func TestTwinsOfTargets(t *testing.T) {
	dir := t.TempDir()
	const to = "  targetRefs: [{group: gateway.networking.k8s.io, kind: %s}]\n"
	write := func(first, second string) string {
		testutil.WriteFile(t, filepath.Join(dir, "a.yaml"), usersOf("a", strings.Replace(to, "%s", first, 1))+"---\n"+
			usersOf("b", strings.Replace(to, "%s", second, 1))+
			"---\n"+gatewayClass+"---\n"+gatewayGW+"---\n"+routeR+"---\n"+
			strings.ReplaceAll(routeR, "name: r,", "name: s,"))
		return text(dir, CheckFor([]string{dir}, Gateway{}))
	}
	if got := write("HTTPRoute, namespace: shop, name: r", "HTTPRoute, namespace: shop, name: s"); got != "" {
		t.Errorf("two routes for two resources: %s", got)
	}
	if got := write("HTTPRoute, namespace: shop, name: r", "Gateway, namespace: infra, name: gw"); !strings.Contains(
		got, "as both are for the rule '0' of the HTTPRoute 'shop/r'") {
		t.Errorf("one route for two resources: %s", got)
	}
}

// TestDocumentOfTarget: an OpenAPI document describes the objects that its extension names.
func TestDocumentOfTarget(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{
		"r": "",
		"x": "b.yaml:3: x-admission-gateway-resource.targetRefs: must be a Gateway, or a route, of the files that is in force, with a listener or a rule of the `sectionName`\n",
	} {
		testutil.WriteFile(t, filepath.Join(dir, "a.yaml"), gatewayClass+"---\n"+gatewayGW+"---\n"+routeR)
		testutil.WriteFile(t, filepath.Join(dir, "b.yaml"), "openapi: 3.0.3\ninfo: {title: shop, version: v1}\nx-admission-gateway-resource: {group: c.example.com, targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop, name: "+name+"}]}\n"+
			"paths:\n  /users:\n    post: {requestBody: {content: {application/json: {schema: {type: object}}}}, responses: {}}\n  /users/{id}:\n    get: {responses: {}}\n")
		got := ""
		for _, f := range CheckFor([]string{dir}, Gateway{}) {
			if f.Severity == Error {
				got += strings.TrimPrefix(f.String(), dir+string(filepath.Separator)) + "\n"
			}
		}
		if got != want {
			t.Errorf("%s: found is\n%s\nnot\n%s", name, got, want)
		}
	}
}

// TestRoutesThatEditWhatIsJudged: filters that the gateway does not carry out for requests that files describe are
// found.
func TestRoutesThatEditWhatIsJudged(t *testing.T) {
	filtered := func(filter string) string {
		return gatewayClass + "---\n" + gatewayGW + "---\n" +
			strings.Replace(routeR, "[{backendRefs", "[{name: all, filters: ["+filter+"], backendRefs", 1)
	}
	modifier := func(edits string) string {
		return "{type: RequestHeaderModifier, requestHeaderModifier: {" + edits + "}}"
	}
	const described = "---\napiVersion: admission-gateway.io/v1alpha1\nkind: APIResource\nmetadata: {name: a}\nspec:\n  group: a.example.com\n  version: v1\n" +
		"  names: {plural: users, kind: User}\n  paths: {collection: /users, item: '/users/{name}'}\n  schema: {openAPIV3Schema: {type: object}}\n"
	const of = "  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop, name: r, sectionName: %s}]\n"
	warning := func(names string) string {
		return "a.yaml:20: spec.rules: warning: the filters of the rule 'all' do not edit '" + names + "' of requests that files describe: these were judged with what the client sent\n"
	}
	for _, c := range []struct{ name, text, want string }{
		{"nothing is described", filtered(modifier("set: [{name: Content-Type, value: a/b}]")), ""},
		{"a line of its author's", filtered(modifier("set: [{name: X-A, value: a/b}]")) + described, ""},
		{"a line of answers", filtered("{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: Content-Type, value: a/b}]}}") + described, ""},
		{"set, added and taken out", filtered(modifier("set: [{name: Content-Type, value: a/b}], add: [{name: X_HTTP_Method, value: PUT}, {name: content-type, value: c}], remove: [If-Match, X-B]")) + described,
			warning("Content-Type', 'X_HTTP_Method', 'content-type', 'If-Match")},
		{"a path", filtered(modifier("set: [{name: X-Original-URL, value: /a}]")) + described,
			warning("X-Original-URL")},
		{"of a backend", strings.Replace(gatewayClass+"---\n"+gatewayGW+"---\n"+routeR, "[{backendRefs: [{",
			"[{name: all, backendRefs: [{filters: ["+modifier("remove: [If-None-Match]")+"], ", 1) + described,
			warning("If-None-Match")},
		{"of the rule", filtered(modifier("remove: [If-Match]")) + described + fmt.Sprintf(of, "all"),
			warning("If-Match")},
		{"of another rule", strings.Replace(filtered(modifier("remove: [If-Match]")), "port: 80}]}]",
			"port: 80}]}, {name: other, backendRefs: [{name: app, port: 80}]}]", 1) + described +
			fmt.Sprintf(of, "other"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			testutil.WriteFile(t, filepath.Join(dir, "a.yaml"), c.text)
			_, found := Load([]string{dir})
			if got := text(dir, found); got != c.want {
				t.Errorf("found is\n%s\nnot\n%s", got, c.want)
			}
		})
	}
}
