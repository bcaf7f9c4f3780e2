package policies

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/internal/testutil"
)

func stateSource(name, spec string) string {
	return "apiVersion: admission-gateway.io/v1alpha1\nkind: StateSource\nmetadata: {name: " + name + "}\nspec: {" + spec + "}\n"
}

// TestStateSources: what a StateSource says becomes what is read.
func TestStateSources(t *testing.T) {
	const orders = `
apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: orders.shop.example.com}
spec:
  group: shop.example.com
  version: v2
  names: {plural: orders, kind: Order}
  paths: {collection: "/v2/{namespace}/orders", item: "/v2/{namespace}/orders/{name}"}
  envelope: Bare
  fields: {name: id, items: data}
`
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	for _, c := range []struct {
		spec string
		want state.Source
	}{
		{"resource: {apiVersion: storage.k8s.io/v1, resource: storageclasses}",
			state.Source{Path: "/apis/storage.k8s.io/v1/storageclasses",
				Kind: schema.GroupVersionKind{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"}}},
		{"resource: {apiVersion: v1, resource: configmaps, namespace: shared}, labelSelector: 'a in (b,c)', fieldSelector: metadata.name!=x",
			state.Source{Path: "/api/v1/namespaces/shared/configmaps",
				Query: "fieldSelector=metadata.name%21%3Dx&labelSelector=a+in+%28b%2Cc%29",
				Kind:  schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "shared"}},
		{"resource: {apiVersion: v1, resource: configmaps}",
			state.Source{Path: "/api/v1/configmaps", Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}}},
		{"resource: {apiVersion: example.com/v1, resource: widgets}, upstream: other, whenMissing: Skip, maxStalenessSeconds: 0",
			state.Source{Path: "/apis/example.com/v1/widgets", Kind: widget, Upstream: "other", Skip: true}},
		{"resource: {apiVersion: example.com/v1, resource: gadgets, kind: Gadget}",
			state.Source{Path: "/apis/example.com/v1/gadgets",
				Kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}}},
		{"resource: {apiVersion: example.com/v1, resource: gadgets}",
			state.Source{Path: "/apis/example.com/v1/gadgets"}},
		{"resource: {apiVersion: shop.example.com/v2, resource: orders, namespace: team-a}",
			state.Source{Path: "/v2/team-a/orders", Items: resource.FieldPath{"data"}, Namespace: "team-a",
				Kind: schema.GroupVersionKind{Group: "shop.example.com", Version: "v2", Kind: "Order"}}},
		{"path: /v2/plans, items: data.plans, mode: Poll, periodSeconds: 30, maxObjects: 5, maxBytes: 2048",
			state.Source{Path: "/v2/plans", Items: resource.FieldPath{"data", "plans"}, Mode: state.Poll,
				Period: 30 * time.Second, MaxObjects: 5, MaxBytes: 2048}},
		{"path: /v2/plans, mode: Poll, periodSeconds: 3600",
			state.Source{Path: "/v2/plans", Mode: state.Poll, Period: time.Hour, MaxStaleness: 3 * time.Hour}},
		{"path: '/v2/{namespace}/orders', mode: OnDemand, ttlSeconds: 3",
			state.Source{Path: "/v2/{namespace}/orders", Items: resource.FieldPath{"data"}, Mode: state.OnDemand,
				TTL: 3 * time.Second}},
		{"path: /apis/example.com/v1/widgets, mode: Poll, periodSeconds: 1",
			state.Source{Path: "/apis/example.com/v1/widgets", Kind: widget, Mode: state.Poll, Period: time.Second}},
	} {
		dir := testutil.WriteFiles(t,
			map[string]string{"a.yaml": widgets, "b.yaml": orders, "c.yaml": stateSource("s", c.spec)})
		set, found := Load([]string{dir})
		if set == nil || len(set.States()) != 1 {
			t.Fatalf("%s: %s", c.spec, text(dir, found))
		}
		want := c.want
		want.Name = "s"
		if want.TTL == 0 {
			want.TTL = 10 * time.Second
		}
		if want.MaxStaleness == 0 && !strings.Contains(c.spec, "maxStalenessSeconds") {
			want.MaxStaleness = 5 * time.Minute
		}
		if want.MaxObjects == 0 {
			want.MaxObjects, want.MaxBytes = 10000, 64<<20
		}
		if got := fmt.Sprintf("%+v", *set.States()[0]); got != fmt.Sprintf("%+v", want) {
			t.Errorf("%s:\n%s\nwant\n%+v", c.spec, got, want)
		}
	}
}

// TestStateSourceFindings: what is wrong with a StateSource, and with policies that read one.
func TestStateSourceFindings(t *testing.T) {
	const at = "a.yaml:4: spec"
	for _, c := range []struct{ object, want string }{
		{stateSource("s", ""), at + ": Invalid value: must have either `resource` or `path`"},
		{stateSource("s", "path: /a, resource: {apiVersion: v1, resource: pods}"),
			at + ": Invalid value: must have either `resource` or `path`"},
		{stateSource("s", "path: /a, mode: Poll"), at + ": Invalid value: `periodSeconds` must be set where `mode` is 'Poll', and only there"},
		{stateSource("s", "path: /a, periodSeconds: 5"), at + ": Invalid value: `periodSeconds` must be set where `mode` is 'Poll', and only there"},
		{stateSource("s", "path: /a, ttlSeconds: 5"),
			at + ": Invalid value: `ttlSeconds` must not be set where `mode` is not 'OnDemand'"},
		{stateSource("s", "path: /a, mode: Poll, periodSeconds: 60, maxStalenessSeconds: 59"), at + ": Invalid value: `maxStalenessSeconds` must be greater than or equal to `periodSeconds`"},
		{stateSource("s", "path: '/{namespace}/a'"), at + ": Invalid value: `path` must not contain '{namespace}' where `mode` is not 'OnDemand'"},
		{stateSource("s", "path: /a, labelSelector: a=b"), at + ": Invalid value: `labelSelector` and `fieldSelector` must not be set beside `path`"},
		{stateSource("s", "path: a"), at + ".path: Invalid value: \"a\": must be segments of letters, digits and '-', '.', '_', '~', each behind a '/'"},
		{stateSource("s", "path: /a/../b"), at + ".path: Invalid value: \"/a/../b\": must be segments of letters, digits and '-', '.', '_', '~', each behind a '/'"},
		{stateSource("s", "path: '/a?b=c'"), at + ".path: Invalid value: \"/a?b=c\": must be segments of letters, digits and '-', '.', '_', '~', each behind a '/'"},
		{stateSource("s", "path: '/a/{name}', mode: OnDemand"), at + ".path: Invalid value: \"/a/{name}\": must be segments of letters, digits and '-', '.', '_', '~', each behind a '/'"},
		{stateSource("s", "path: /a, mode: Sometimes"), at + ".mode: Unsupported value: \"Sometimes\": supported values: \"Watch\", \"Poll\", \"OnDemand\""},
		{stateSource("s", "resource: {apiVersion: v1, resource: pods}, labelSelector: '(('"), at + ".labelSelector: must be a label selector: found '(', expected: !, identifier, or 'end of string'"},
		{stateSource("s", "resource: {apiVersion: v1, resource: pods}, fieldSelector: 'a'"), at + ".fieldSelector: must be a field selector: invalid selector: 'a'; can't understand 'a'"},
		{stateSource("1s", "path: /a"), "a.yaml:3: metadata.name: must be a name that expressions can read as `state.NAME`: letters, digits, '-', '.', '_' and '/', not beginning with a digit"},
		{stateSource("s", "path: /a") + "---\n" + strings.Replace(policyP, "object.spec.size < 5", "state.t.size() > 0",
			1) + "---\n" + bindingB,
			"a.yaml:15: spec.validations[0].expression: Invalid value: \"state.t.size() > 0\": compilation failed: ERROR: <input>:1:6: undefined field 't' | state.t.size() > 0 | .....^"},
	} {
		dir := testutil.WriteFiles(t, map[string]string{"a.yaml": c.object})
		if got := strings.TrimSpace(text(dir, Check([]string{dir}))); got != c.want {
			t.Errorf("%s\n%s\nwant\n%s", c.object, got, c.want)
		}
	}
}

// TestParamFindings: references that nothing in the files provides, and objects that are not what their kind says.
func TestParamFindings(t *testing.T) {
	policy := strings.Replace(policyP, "spec:\n", "spec:\n  paramKind: {apiVersion: %s, kind: %s}\n", 1)
	binding := strings.Replace(bindingB, "spec:\n", "spec:\n  paramRef: {%s, parameterNotFoundAction: Deny}\n", 1)
	const configMap = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: limits, namespace: team-a}\n"
	for _, c := range []struct{ version, kind, ref, more, want string }{
		{"v1", "ConfigMap", "name: limits", configMap, ""},
		{"v1", "ConfigMap", "name: limits, namespace: team-a", configMap, ""},
		{"v1", "ConfigMap", "name: limits, namespace: team-b", configMap, "spec.paramRef.name: note: no policy file has the ConfigMap 'limits': it is looked up at the backend"},
		{"v1", "ConfigMap", "selector: {}", "", ""},
		{"v1", "ConfigMap", "name: limits, namespace: team-b",
			"---\n" + stateSource("s", "resource: {apiVersion: v1, resource: configmaps}"), ""},
		{"example.com/v1", "Widget", "name: w", "", "spec.paramRef.name: note: no policy file has the Widget 'w': it is looked up at the backend"},
		{"example.com/v1", "Gadget", "name: g", "", "spec.paramRef: warning: nothing in the policy files provides the kind 'Gadget' of 'example.com/v1', which the parameters are of: only a Kubernetes API server as the backend can"},
		{"example.com/v1", "Gadget", "name: g", "---\napiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: g}\n",
			""},
	} {
		dir := testutil.WriteFiles(t,
			map[string]string{"a.yaml": widgets, "b.yaml": fmt.Sprintf(policy, c.version, c.kind) + "---\n" +
				fmt.Sprintf(binding, c.ref) + c.more})
		got := strings.TrimSpace(text(dir, Check([]string{dir})))
		if _, after, found := strings.Cut(got, ": "); found {
			got = after
		}
		if got != c.want {
			t.Errorf("%s %s %s:\n%s\nwant\n%s", c.version, c.kind, c.ref, got, c.want)
		}
	}
	for _, c := range []struct{ object, want string }{
		{"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n", "a.yaml:3: metadata.namespace: warning: Required value: a ConfigMap belongs to a namespace, in which policies look for it"},
		{"apiVersion: v1\nkind: Endpoints\nmetadata: {name: c}\n", "a.yaml:3: metadata.namespace: warning: Required value: an Endpoints belongs to a namespace, in which policies look for it"},
		{"apiVersion: v1\nkind: Namespace\nmetadata: {name: c, namespace: c}\n", "a.yaml:3: metadata.namespace: warning: must not be set: a Namespace belongs to no namespace"},
		{"apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, namespace: x}\nspec: {size: many}\n", "a.yaml:4: spec.size: warning: Invalid value: \"string\": must be of type integer"},
		{"apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, namespace: x}\nspec: {colour: red}\n", "a.yaml:1: warning: unknown field \"spec.colour\""},
	} {
		dir := testutil.WriteFiles(t, map[string]string{"a.yaml": c.object, "b.yaml": widgets})
		if got := strings.TrimSpace(text(dir, Check([]string{dir}))); got != c.want {
			t.Errorf("%s\n%s\nwant\n%s", c.object, got, c.want)
		}
	}
}
