package policies

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/finding"
)

// text is the findings, one a line, with names relative to dir.
func text(dir string, found []Finding) string {
	var b strings.Builder
	for _, f := range found {
		b.WriteString(strings.ReplaceAll(f.String(), dir+string(filepath.Separator), ""))
		b.WriteByte('\n')
	}
	return b.String()
}

const (
	widgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.com
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, default: 1}
`
	policyP = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: p
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}
  validations:
  - expression: object.spec.size < 5
`
	bindingB = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: b
spec:
  policyName: p
  validationActions: [Deny]
`
	// statusSchema is the schema of an APIResource whose objects have a field `status`.
	statusSchema = "  schema:\n    openAPIV3Schema:\n      type: object\n      properties:\n        status: {type: string}\n"
	orders       = `apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata:
  name: orders
spec:
  version: v2
  names: {plural: orders, kind: Order}
  paths: {collection: /v2/orders, item: '/v2/orders/{name}'}
`
	limit = `apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata:
  name: l
spec:
  requests: 3
  periodSeconds: 60
`
)

func TestFindings(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"nothing wrong", map[string]string{"a.yaml": widgets, "b/c.yml": policyP, "b/d.json": `{"apiVersion":"admission-gateway.io/v1alpha1","kind":"RateLimitPolicy","metadata":{"name":"l"},"spec":{"requests":1,"periodSeconds":1}}`, "b/e.yaml": bindingB, "f.yaml": orders}, ""},
		{"other files are not looked at", map[string]string{"a.yaml": widgets, "README.md": "#", ".hidden.yaml": "{",
			"..data/x.yaml": "{", "kustomization.yaml": "resources: []"}, ""},
		{"nothing at all", map[string]string{"README.md": "#"}, "DIR: warning: holds no policy files\n"},
		{"nothing but comments", map[string]string{"a.yaml": "# nothing\n"}, ""},
		{"an empty file", map[string]string{"a.yaml": "", "b.yaml": widgets}, "a.yaml: must not be empty\n"},
		{"a module without a policy", map[string]string{"a.rego": "package a"}, "a.rego: warning: no RegoPolicy is in this folder or above, so that the file is not used\n"},
		{"modules that do not compile",
			map[string]string{"r/p.yaml": regoPolicyOf("p", ""),
				"r/a.rego": "package a\n\ndeny contains msg if {\n\tmsg := y\n}\n"}, "" +
				"r/a.rego:4: rego_unsafe_var_error: var y is unsafe\n"},
		{"functions that are refused", map[string]string{"r/p.yaml": regoPolicyOf("p", ""), "r/a.rego": "package a\n\ndeny contains msg if {\n\tmsg := http.send({\"url\": \"http://x\", \"method\": \"GET\"}).raw_body\n}\n"}, "" +
			"r/a.rego:4: rego_type_error: must not call 'http.send': policies have no network, but for http.send to the hosts in `allowedHosts`\n"},
		{"strict mode, and tests beside modules",
			map[string]string{"r/p.yaml": regoPolicyOf("p", ""),
				"r/a.rego":      "package a\n\nimport data.b\n\ndeny contains \"no\" if {\n\tx := 1\n}\n",
				"r/a_test.rego": "package a_test\n\nimport data.a\n\ntest_a if count(a.deny) == 1\n"}, "" +
				"r/a.rego:3: warning: rego_compile_error: import data.b unused\n" +
				"r/a.rego:6: warning: rego_compile_error: assigned var x unused\n"},
		{"modules without rules that the gateway knows",
			map[string]string{"p.yaml": regoPolicyOf("p", "{rego: 'package a.b'}")}, "" +
				"p.yaml:4: spec.package: Invalid value: \"\": no module defines one of the rules deny, violation, warn, allow, patch or defaults in the package 'data.a.b'\n"},
		{"a rule as Conftest names it",
			map[string]string{"p.yaml": regoPolicyOf("p",
				"{rego: 'package a deny_x contains \"no\" if input.review.name == \"x\"'}")}, ""},
		{"no module", map[string]string{"p.yaml": regoPolicyOf("p", "")}, "" +
			"p.yaml:4: spec.rego: Required value: there is no module in 'DIR' either: must have a text, or files that end in '.rego' beside the policy\n"},
		{"a state that is not there",
			map[string]string{"p.yaml": regoPolicyOf("p",
				"{rego: 'package a deny contains \"no\" if count(data.state.plans) == 0'}")}, "" +
				"p.yaml:4: spec: a module reads data.state.plans: no StateSource has that name\n"},
		{"not YAML", map[string]string{"a.yaml": "{", "b.yaml": widgets + "kind: X\n"},
			"a.yaml:2: must be valid YAML: did not find expected node content\n" +
				"b.yaml:22: kind: must not be set twice; it is set on line 2 already\n"},

		{"kinds without a spec",
			map[string]string{"a.yaml": docs("admissionregistration.k8s.io/v1 MutatingAdmissionPolicy",
				"admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding",
				"admission-gateway.io/v1alpha1 DefaultingPolicy", "admission-gateway.io/v1alpha1 StateSource",
				"admission-gateway.io/v1alpha1 ConventionPolicy")}, "" +
				"a.yaml:1: spec.matchConstraints: Required value\n" +
				"a.yaml:1: spec.mutations: Required value: mutations must contain at least one item\n" +
				"a.yaml:1: spec.reinvocationPolicy: Required value\n" +
				"a.yaml:5: spec.policyName: Required value\n" +
				"a.yaml:9: spec: Required value\n" +
				"a.yaml:13: spec: Required value\n" +
				"a.yaml:17: spec: Required value\n" +
				"a.yaml:3: metadata.name: warning: no MutatingAdmissionPolicyBinding names the policy 'x', so that it never runs\n"},
		{"kinds that are none",
			map[string]string{"a.yaml": docs("admission-gateway.io/v1alpha1 RateLimit",
				"admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration",
				"admission-gateway.io/v1alpha1 GatewayConfiguration",
				"apiextensions.k8s.io/v1beta1 CustomResourceDefinition", "admission-gateway.io/v1 APIResource",
				"admissionregistration.k8s.io/v1alpha1 ValidatingAdmissionPolicy",
				"apiextensions.k8s.io/v1 ConversionReview")}, "" +
				"a.yaml:2: kind: must be 'APIResource', 'ConventionPolicy', 'DefaultingPolicy', 'ErrorTemplate', 'PolicyException', 'PolicyTest', 'RateLimitPolicy', 'RegoPolicy' or 'StateSource', not 'RateLimit'\n" +
				"a.yaml:10: kind: must not be 'GatewayConfiguration' among the policies: the gateway's own configuration is given with --config\n" +
				"a.yaml:13: apiVersion: must be 'apiextensions.k8s.io/v1', not 'apiextensions.k8s.io/v1beta1'\n" +
				"a.yaml:17: apiVersion: must be 'admission-gateway.io/v1alpha1', not 'admission-gateway.io/v1'\n" +
				"a.yaml:21: apiVersion: must be 'admissionregistration.k8s.io/v1' or 'admissionregistration.k8s.io/v1beta1', not 'admissionregistration.k8s.io/v1alpha1'\n" +
				"a.yaml:26: kind: must be 'CustomResourceDefinition', not 'ConversionReview'\n" +
				"a.yaml:6: kind: warning: the ValidatingWebhookConfiguration is skipped: the gateway calls no webhooks, so that only a backend's own API server asks them\n"},
		{"names", map[string]string{"a.yaml": strings.Replace(limit, "name: l", "labels: {}", 1),
			"b.yaml": strings.Replace(limit, "name: l", "name: l\n  namespace: x", 1),
			"c.yaml": "apiVersion: v1\nkind: ConfigMap\n"}, "" +
			"a.yaml:3: metadata.name: Required value: must have a name\n" +
			"c.yaml:1: metadata.name: Required value: must have a name, by which policies refer to the object\n" +
			"b.yaml:5: metadata.namespace: warning: has no effect: a RateLimitPolicy belongs to no namespace\n"},
		{"a namespace",
			map[string]string{"a.yaml": strings.Replace(widgets, "  name: widgets", "  namespace: x\n  name: widgets",
				1) + "---\n" +
				strings.Replace(policyP, "name: p", "name: p\n  namespace: x", 1) + "---\n" +
				strings.Replace(bindingB, "name: b", "name: b\n  namespace: x", 1)}, "" +
				"a.yaml:4: metadata.namespace: warning: has no effect: a CustomResourceDefinition belongs to no namespace\n" +
				"a.yaml:28: metadata.namespace: warning: has no effect: a ValidatingAdmissionPolicy belongs to no namespace\n" +
				"a.yaml:40: metadata.namespace: warning: has no effect: a ValidatingAdmissionPolicyBinding belongs to no namespace\n"},
		{"the same object twice", map[string]string{"a.yaml": widgets, "b.yaml": widgets, "c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: x}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: x}\n"}, "" +
			"b.yaml:4: metadata.name: must be unique; CustomResourceDefinition 'widgets.example.com' is in a.yaml:4 already\n" +
			"c.yaml:7: metadata.name: must be unique; ConfigMap 'x/c' is in c.yaml:3 already\n"},

		{"an unknown field in a definition",
			map[string]string{"a.yaml": strings.Replace(widgets, "default: 1}", "default: 1, maxmum: 3}", 1)}, "" +
				"a.yaml:21: spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.size.maxmum: warning: unknown field; did you mean `maximum`?\n"},
		{"an unknown field behind a form of a schema", map[string]string{"a.yaml": widgets + "              list: {type: array, items: {type: string, maxLenght: 3}}\n              map: {type: object, additionalProperties: {type: string, maxLenght: 3}}\n"}, "" +
			"a.yaml:22: spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.list.items.maxLenght: warning: unknown field; did you mean `maxLength`?\n" +
			"a.yaml:23: spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.map.additionalProperties.maxLenght: warning: unknown field; did you mean `maxLength`?\n"},
		{"a broken definition",
			map[string]string{"a.yaml": strings.NewReplacer("type: integer, default: 1",
				"type: integer, uniqueItems: true", "Namespaced", "World").Replace(widgets)}, "" +
				"a.yaml:7: spec.scope: Unsupported value: \"World\": supported values: \"Cluster\", \"Namespaced\"\n" +
				"a.yaml:21: spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[size].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic\n"},
		{"a rule that is no condition",
			map[string]string{"a.yaml": strings.Replace(widgets, "default: 1",
				"x-kubernetes-validations: [{rule: self}]", 1)}, "" +
				"a.yaml:21: spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[size].x-kubernetes-validations[0].rule: Invalid value: cel expression must evaluate to a bool\n"},
		{"a value of another type",
			map[string]string{"a.yaml": strings.Replace(widgets, "served: true", "served: 'true'", 1)},
			"a.yaml:11: spec.versions[0].served: must be a boolean, not a string\n"},
		{"STAT-1: a definition without status subresource",
			map[string]string{"a.yaml": strings.Replace(widgets, "    subresources: {status: {}}\n", "", 1) +
				"          status: {type: object}\n"}, "" +
				"a.yaml:10: spec.versions[0]: warning: v1 without the subresource `status` keeps the status that clients write, as in Kubernetes\n"},
		{"two definitions of one kind",
			map[string]string{"a.yaml": widgets, "b.yaml": strings.NewReplacer("widgets", "gadgets").Replace(widgets)},
			"" +
				"a.yaml:10: spec.versions[0]: must not have the kind 'Widget' of the resource 'gadgets.example.com' in version 'v1' in b.yaml:10\n"},

		{"a binding that cannot be read may name any policy",
			map[string]string{"a.yaml": policyP, "b.yaml": strings.Replace(bindingB, "policyName: p", "policyName: 1",
				1)},
			"b.yaml:6: spec.policyName: must be a string, not the number 1\n"},
		{"an unknown field in a binding",
			map[string]string{"a.yaml": policyP,
				"b.yaml": strings.Replace(bindingB, "policyName: p", "policyName: p\n  matchResource: {}", 1)},
			"b.yaml:7: spec.matchResource: warning: unknown field; did you mean `matchResources`?\n"},
		{"unknown fields of a mutating policy and its binding", map[string]string{
			"a.yaml": "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\nmetadata: {name: m}\nspec:\n  reinvocationPolicy: Never\n  failurePolcy: Ignore\n" +
				"  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}\n" +
				"  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: \"test\", path: \"/kind\", value: \"Pod\"}]'}}]\n",
			"b.yaml": "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicyBinding\nmetadata: {name: m}\nspec:\n  policyName: m\n  validationActions: [Deny]\n"}, "" +
			"a.yaml:6: spec.failurePolcy: warning: unknown field; did you mean `failurePolicy`?\n" +
			"b.yaml:6: spec.validationActions: warning: unknown field\n"},
		{"a mutating binding to nothing", map[string]string{
			"b.yaml": "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicyBinding\nmetadata: {name: m}\nspec: {policyName: m}\n"},
			"b.yaml:4: spec.policyName: warning: no MutatingAdmissionPolicy in the policy files has the name 'm', so that the binding does nothing\n"},
		{"an unbound policy", map[string]string{"a.yaml": policyP}, "a.yaml:4: metadata.name: warning: no ValidatingAdmissionPolicyBinding names the policy 'p', so that it never runs\n"},
		{"a binding to nothing", map[string]string{"a.yaml": bindingB}, "a.yaml:6: spec.policyName: warning: no ValidatingAdmissionPolicy in the policy files has the name 'p', so that the binding does nothing\n"},
		{"a binding to a policy that is wrong",
			map[string]string{"a.yaml": bindingB, "b.yaml": strings.Replace(policyP, "expression:", "expresion:", 1)},
			"" +
				"b.yaml:10: spec.validations[0].expression: Required value: expression is not specified\n" +
				"b.yaml:10: spec.validations[0].expresion: warning: unknown field; did you mean `expression`?\n"},
		{"an older version of a policy",
			map[string]string{"a.yaml": strings.Replace(bindingB, "io/v1", "io/v1beta1", 1),
				"b.yaml": strings.Replace(policyP, "io/v1", "io/v1beta1", 1)}, ""},
		{"a policy twice in two versions", map[string]string{"a.yaml": policyP, "b.yaml": strings.Replace(policyP, "io/v1", "io/v1beta1", 1), "c.yaml": bindingB}, "b.yaml:4: metadata.name: must be unique; ValidatingAdmissionPolicy 'p' is in a.yaml:4 already\n"},
		{"a policy that does not compile",
			map[string]string{"a.yaml": strings.Replace(policyP, "object.spec", "obj.spec", 1), "b.yaml": bindingB},
			"" +
				"a.yaml:10: spec.validations[0].expression: Invalid value: \"obj.spec.size < 5\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'obj' (in container '') | obj.spec.size < 5 | ^\n"},
		{"a binding that is wrong",
			map[string]string{"a.yaml": policyP, "b.yaml": strings.Replace(bindingB, "[Deny]", "[Deny, Warn]", 1)}, "" +
				"b.yaml:7: spec.validationActions: Invalid value: [\"Deny\",\"Warn\"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)\n"},

		{"an APIResource without anything", map[string]string{"a.yaml": "apiVersion: admission-gateway.io/v1alpha1\nkind: APIResource\nmetadata:\n  name: a\nspec: {}\n"}, "" +
			"a.yaml:5: spec.names: Required value\na.yaml:5: spec.version: Required value\n"},
		{"an APIResource with wrong names",
			map[string]string{"a.yaml": strings.NewReplacer("version: v2",
				"version: V2\n  group: Shop_\n  envelope: bare", "plural: orders",
				"plural: Orders, singular: Order, listKind: orderList", "kind: Order}",
				"kind: order}").Replace(orders)}, "" +
				"a.yaml:8: spec.envelope: Unsupported value: \"bare\": supported values: \"Bare\", \"Kubernetes\"\n"},
		{"an APIResource whose names break rules",
			map[string]string{"a.yaml": strings.NewReplacer("version: v2", "version: V2\n  group: Shop_",
				"plural: orders", "plural: Orders, singular: Order, listKind: orderList", "kind: Order}",
				"kind: order}").Replace(orders)}, "" +
				"a.yaml:6: spec.version: Invalid value: \"V2\": must be a DNS label that begins with a letter, such as 'v2'\n" +
				"a.yaml:7: spec.group: Invalid value: \"Shop_\": must be a DNS subdomain, such as 'shop.example.com', or empty\n" +
				"a.yaml:8: spec.names.plural: Invalid value: \"Orders\": must be a DNS label that begins with a letter, such as 'orders'\n" +
				"a.yaml:8: spec.names.singular: Invalid value: \"Order\": must be a DNS label that begins with a letter, such as 'order'\n" +
				"a.yaml:8: spec.names.listKind: Invalid value: \"orderList\": must be letters and digits that begin with a capital letter, such as 'OrderList'\n" +
				"a.yaml:8: spec.names.kind: Invalid value: \"order\": must be letters and digits that begin with a capital letter, such as 'Order'\n"},
		{"an APIResource with wrong paths",
			map[string]string{"a.yaml": strings.Replace(orders, "{collection: /v2/orders, item: '/v2/orders/{name}'}",
				"{collection: v2/orders, item: '/v2/orders/{id}'}", 1),
				"b.yaml": strings.NewReplacer("name: orders", "name: o2",
					"{collection: /v2/orders, item: '/v2/orders/{name}'}",
					"{collection: '/{namespace}/{namespace}/orders', item: '/v2/{name}/{name}'}").Replace(orders)}, "" +
				"a.yaml:8: spec.paths.collection: Invalid value: \"v2/orders\": must be a path such as '/v2/orders' or '/v2/tenants/{namespace}/orders'\n" +
				"a.yaml:8: spec.paths.item: Invalid value: must hold '{name}' beside a `collection`\n" +
				"b.yaml:8: spec.paths.collection: Invalid value: \"/{namespace}/{namespace}/orders\": must not hold '{namespace}' twice\n" +
				"b.yaml:8: spec.paths.item: Invalid value: \"/v2/{name}/{name}\": must not hold '{name}' twice\n" +
				"b.yaml:8: spec.paths.item: Invalid value: must hold '{namespace}' as `collection` does\n"},
		{"an APIResource without paths",
			map[string]string{"a.yaml": strings.Replace(orders,
				"  paths: {collection: /v2/orders, item: '/v2/orders/{name}'}\n", "  operations: []\n", 1)}, "" +
				"a.yaml:5: spec.paths: Required value: must be set unless there are `operations`\n"},
		{"an APIResource of one object",
			map[string]string{"a.yaml": strings.Replace(orders, "{collection: /v2/orders, item: '/v2/orders/{name}'}",
				"{item: /me}", 1)}, ""},
		{"an APIResource with further variables",
			map[string]string{"a.yaml": strings.NewReplacer("collection: /v2/orders",
				"collection: '/{shop}/{branch}/orders/'", "item: '/v2/orders/{name}'",
				"item: '/{shop}/{branch}/orders/{name}/'").Replace(orders)}, ""},
		{"an APIResource with a variable twice",
			map[string]string{"a.yaml": strings.NewReplacer("collection: /v2/orders",
				"collection: '/{shop}/{shop}/orders'").Replace(orders)}, "" +
				"a.yaml:5: spec: path '/{shop}/{shop}/orders' must not contain '{shop}' more than once\n"},
		{"an APIResource with operations", map[string]string{"a.yaml": orders + "  operations:\n  - {name: bulk, path: /v2/orders/bulk, schema: {openAPIV3Schema: {type: array, maxItems: 9, items: {type: object}}}}\n" +
			"  - {name: pay, path: '/v2/orders/{name}/pay'}\n  - {name: pay, path: '/v2/orders/{name}/pay', method: DELETE, operation: UPDATE}\n" +
			"  - {path: '/v2/orders/{name}'}\n"}, ""},
		{"an APIResource with wrong operations",
			map[string]string{"a.yaml": orders +
				"  operations:\n  - {name: scale, path: /v2/a}\n  - {name: a, path: v2/b}\n"}, "" +
				"a.yaml:10: spec.operations[0].name: Invalid value: \"scale\": must not be 'status' or 'scale', which are subresources of their own\n" +
				"a.yaml:11: spec.operations[1].path: Invalid value: \"v2/b\": must be a path such as '/users/bulk' or '/users/{name}/activate'\n"},
		{"an APIResource with an operation's schema of no body", map[string]string{"a.yaml": orders + "  operations:\n  - {name: c, path: /v2/d, schema: {openAPIV3Schema: {type: string}}}\n"}, "" +
			"a.yaml:10: spec.operations[0].schema.openAPIV3Schema.type: Invalid value: \"string\": must be object or array at the root\n"},
		{"an APIResource with wrong methods", map[string]string{"a.yaml": orders + "  operations:\n  - {name: a, path: /v2/b, method: GET}\n  - {name: b, path: /v2/c, operation: DELETE}\n  - {name: b, path: /v2/c}\n"}, "" +
			"a.yaml:10: spec.operations[0].method: Unsupported value: \"GET\": supported values: \"POST\", \"PUT\", \"PATCH\", \"DELETE\"\n" +
			"a.yaml:11: spec.operations[1].operation: Unsupported value: \"DELETE\": supported values: \"CREATE\", \"UPDATE\"\n" +
			"a.yaml:12: spec.operations[2]: Duplicate value: {\"method\":\"POST\",\"name\":\"b\"}\n"},
		{"an APIResource with fields that it cannot have",
			map[string]string{"a.yaml": orders + "  envelope: Kubernetes\n  fields: {name: id}\n",
				"b.yaml": strings.Replace(orders, "name: orders", "name: o2", 1) +
					"  fields: {name: 'a..b', status: ''}\n"}, "" +
				"a.yaml:10: spec.fields: Forbidden: may not be set unless `envelope` is 'Bare'\n" +
				"b.yaml:9: spec.fields.name: Invalid value: \"a..b\": must be member names joined by dots, such as 'meta.id', or empty\n"},
		{"a status that nobody claims", map[string]string{
			"a.yaml": orders + statusSchema,
			"b.yaml": strings.NewReplacer("name: orders", "name: o2", "plural: orders, kind: Order",
				"plural: purchases, kind: Purchase", "/v2/orders", "/v2/purchases").Replace(orders) +
				"  fields: {status: ''}\n" + statusSchema,
			"c.yaml": strings.NewReplacer("name: orders", "name: o3", "plural: orders, kind: Order",
				"plural: sales, kind: Sale", "/v2/orders", "/v2/sales").Replace(orders) +
				"  fields: {status: status}\n" + statusSchema,
			"d.yaml": strings.NewReplacer("name: orders", "name: o4", "plural: orders, kind: Order",
				"plural: gifts, kind: Gift", "/v2/orders", "/v2/gifts").Replace(orders) +
				"  statusSubresource: Disabled\n" + statusSchema,
		}, "" +
			"a.yaml:13: spec.schema.openAPIV3Schema.properties.status: warning: clients may write it: set `fields: {status: status}` if only the API itself may, or `fields: {status: ''}` if clients may\n"},
		{"a status that is kept apart and has no field",
			map[string]string{"a.yaml": orders + "  statusSubresource: Emulated\n"}, "" +
				"a.yaml:5: spec.fields: Required value: must name the `status` where `statusSubresource` is not 'Disabled'\n"},
		{"an APIResource with a schema that is wrong", map[string]string{"a.yaml": orders + "  schema:\n    openAPIV3Schema:\n      type: object\n      properties:\n        id: {typ: string}\n", "b.yaml": strings.Replace(orders, "name: orders", "name: o2", 1) + "  schema:\n    openAPIV3Schema:\n      type: object\n      properties:\n        id: {maxLength: 3}\n", "c.yaml": strings.Replace(orders, "name: orders", "name: o3", 1) + "  schema:\n    openAPIV3Schema:\n      type: object\n      properties:\n        size: {type: integer, x-kubernetes-validations: [{rule: self}]}\n"}, "" +
			"a.yaml:13: spec.schema.openAPIV3Schema.properties.id.typ: unknown field; did you mean `type`?\n" +
			"b.yaml:13: spec.schema.openAPIV3Schema.properties[id].type: Required value: must not be empty for specified object fields\n" +
			"c.yaml:13: spec.schema.openAPIV3Schema.properties[size].x-kubernetes-validations[0].rule: Invalid value: cel expression must evaluate to a bool\n"},
		{"two APIResources on one path",
			map[string]string{"a.yaml": orders,
				"b.yaml": strings.NewReplacer("name: orders", "name: o2", "plural: orders, kind: Order",
					"plural: purchases, kind: Purchase").Replace(orders)}, "" +
				"b.yaml:5: spec: path '/v2/orders' of 'purchases' must not match the same requests as path '/v2/orders' of 'orders'\n" +
				"b.yaml:5: spec: path '/v2/orders/{name}' of 'purchases' must not match the same requests as path '/v2/orders/{name}' of 'orders'\n"},
		{"one resource in two files",
			map[string]string{"a.yaml": orders, "b.yaml": strings.NewReplacer("name: orders", "name: o2", "/v2/orders",
				"/v3/orders").Replace(orders)}, "" +
				"b.yaml:5: spec: must not define the resource 'orders' in version 'v2' again, which a.yaml:5 does\n"},

		{"a RateLimitPolicy without anything", map[string]string{"a.yaml": "apiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata:\n  name: a\nspec: {}\n", "b.yaml": "apiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata:\n  name: b\n"}, "" +
			"a.yaml:5: spec.requests: Required value: must be set unless `maxInFlight` or `maxInFlightTotal` is set\nb.yaml:1: spec: Required value\n"},
		{"a RateLimitPolicy out of bounds", map[string]string{"a.yaml": strings.NewReplacer("requests: 3", "requests: 0", "60", "86401").Replace(limit) + "  burst: 0\n  scope: World\n  key: Address\n  match: {verbs: [read], resources: ['*/status']}\n"}, "" +
			"a.yaml:6: spec.requests: Invalid value: 0: must be greater than or equal to 1\n" +
			"a.yaml:7: spec.periodSeconds: Invalid value: 86401: must be less than or equal to 86400\n" +
			"a.yaml:8: spec.burst: Invalid value: 0: must be greater than or equal to 1\n" +
			"a.yaml:9: spec.scope: Unsupported value: \"World\": supported values: \"Local\", \"Shared\"\n" +
			"a.yaml:10: spec.key: Unsupported value: \"Address\": supported values: \"User\", \"ClientAddress\", \"Header\", \"Global\", \"Namespace\", \"Resource\"\n" +
			"a.yaml:11: spec.match.verbs[0]: Unsupported value: \"read\": supported values: \"*\", \"get\", \"list\", \"watch\", \"create\", \"update\", \"patch\", \"delete\", \"deletecollection\", \"head\", \"post\", \"put\", \"options\"\n"},
		{"a RateLimitPolicy against its rules",
			map[string]string{"a.yaml": limit + "  key: Header\n  keyExpression: request.name\n",
				"b.yaml": strings.Replace(limit, "name: l", "name: m", 1) +
					"  headerName: X Tenant\n  match: {resources: ['*/status']}\n"}, "" +
				"a.yaml:5: spec.headerName: Required value: must be set when `key` is 'Header'\n" +
				"a.yaml:9: spec.keyExpression: Forbidden: may not be set together with `key`\n" +
				"b.yaml:8: spec.headerName: Forbidden: may not be set unless `key` is 'Header'\n" +
				"b.yaml:8: spec.headerName: Invalid value: \"X Tenant\": must be letters, digits and '-'\n" +
				"b.yaml:9: spec.match.resources[0]: Invalid value: \"*/status\": must be '*', a plural name such as 'orders', or a subresource such as 'orders/status'\n"},
		{"a RateLimitPolicy with wrong expressions", map[string]string{"a.yaml": limit + "  keyExpression: 1 + 1\n  match:\n    matchConditions: [{name: c, expression: request.nme == 'x'}]\n"}, "" +
			"a.yaml:8: spec.keyExpression: Invalid value: \"1 + 1\": must evaluate to string but got int\n" +
			"a.yaml:10: spec.match.matchConditions[0].expression: Invalid value: \"request.nme == 'x'\": compilation failed: ERROR: <input>:1:8: undefined field 'nme' | request.nme == 'x' | .......^\n"},
		{"an unknown field of ours", map[string]string{"a.yaml": limit + "  inFlight: 3\n"},
			"a.yaml:8: spec.inFlight: unknown field\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := testutil.WriteFiles(t, test.files)
			set, found := Load([]string{dir})
			got := strings.ReplaceAll(text(dir, found), dir, "DIR")
			if got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
			if (set == nil) != finding.HasErrors(found) {
				t.Errorf("the set is %v, the findings are %v", set, found)
			}
		})
	}
}

// docs makes documents of "apiVersion kind".
func docs(types ...string) string {
	var b strings.Builder
	for i, one := range types {
		apiVersion, kind, _ := strings.Cut(one, " ")
		if i > 0 {
			b.WriteString("---\n")
		}
		b.WriteString("apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: x}\n")
	}
	return b.String()
}

// regoPolicyOf is a RegoPolicy about orders; more is the rest of its spec.
func regoPolicyOf(name, more string) string {
	spec := "matchConstraints: {resourceRules: [{apiGroups: [shop.example.com], apiVersions: ['*'], operations: ['*'], resources: [orders]}]}"
	if more = strings.Trim(more, "{}"); more != "" {
		spec += ", " + more
	}
	return "apiVersion: admission-gateway.io/v1alpha1\nkind: RegoPolicy\nmetadata: {name: " + name + "}\nspec: {" +
		spec + "}\n"
}
