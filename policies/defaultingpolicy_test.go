package policies

import (
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

const defaultedDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, minimum: 1}
              mode: {type: string, enum: [Fast, Safe]}
              labels: {type: object, additionalProperties: {type: string}}
              steps: {type: array, items: {type: object, properties: {name: {type: string}}}}
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name, port], properties: {name: {type: string}, port: {type: integer}}}
`

// defaulting is a policy for widgets with defaults.
func defaulting(name, defaults string) string {
	return `apiVersion: admission-gateway.io/v1alpha1
kind: DefaultingPolicy
metadata: {name: ` + name + `}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [widgets]}]}
  defaults:
` + defaults
}

// TestDefaultingPolicies: what is wrong with one is found when it is loaded, also what does not suit the schemas of the
// resources that it names.
func TestDefaultingPolicies(t *testing.T) {
	for name, c := range map[string]struct{ policy, want string }{
		"right": {defaulting("p", `
  - {field: spec.size, value: 3}
  - {field: spec.mode, valueExpression: "object.spec.size > 3 ? 'Safe' : 'Fast'", when: has(object.spec.size)}
  - {field: "metadata.labels[example.com/x]", value: "y"}
  - {field: "spec.steps[*].name", valueExpression: self.x}
  - {field: "spec.ports[name=http].port", value: 80}
  - {field: "spec.ports[name=https]", value: {port: 443}}
`), ""},
		"fields": {defaulting("p", `
  - {field: spec.sise, value: 3}
  - {field: "spec[0]", value: 3}
  - {field: "spec.ports[port=80].name", value: x}
  - {field: "spec.steps[name=a]", value: {}}
  - {field: spec.size.x, value: 1}
  - {field: "spec.ports[name=x]", value: 1}
`), "" +
			"p.yaml:9: spec.defaults[1].field: Invalid value: \"spec[0]\": must not have the index '[0]': which item it is of can change; the key of a map stands in quotes\n" +
			"p.yaml:13: spec.defaults[5].field: Invalid value: \"spec.ports[name=x]\": must not name an item of a list: `value` is no object\n"},
		"fields of the schema": {defaulting("p", `
  - {field: spec.sise, value: 3}
  - {field: "spec.ports[port=80].name", value: x}
  - {field: "spec.steps[name=a]", value: {}}
  - {field: spec.size.x, value: 1}
  - {field: "metadata.lables[a]", value: x}
`), "" +
			"p.yaml:8: spec.defaults[0].field: must not name the field `spec.sise`, which there is not, in objects of 'widgets.example.com' in version 'v1'\n" +
			"p.yaml:9: spec.defaults[1].field: must not tell the items of `spec.ports` apart by 'port': they are by 'name', in objects of 'widgets.example.com' in version 'v1'\n" +
			"p.yaml:10: spec.defaults[2].field: must not tell the items of `spec.steps` apart by 'name': its schema gives no keys by which they are (x-kubernetes-list-type: map), in objects of 'widgets.example.com' in version 'v1'\n" +
			"p.yaml:11: spec.defaults[3].field: must not lead into `spec.size`, which is no object, in objects of 'widgets.example.com' in version 'v1'\n" +
			"p.yaml:12: spec.defaults[4].field: must not name the field `metadata.lables`, which there is not, in objects of 'widgets.example.com' in version 'v1'\n"},
		"values": {defaulting("p", `
  - {field: spec.size, value: 0}
  - {field: spec.size, value: "3"}
  - {field: spec.mode, value: Slow}
  - {field: spec, value: {size: 1, colour: red}}
  - {field: spec.labels, value: {a: 1}}
  - {field: "spec.ports[name=http]", value: {}}
  - {field: "metadata.labels[a]", value: 5}
  - {field: spec.size, valueExpression: "'big'"}
  - {field: spec.labels, valueExpression: "[1]"}
  - {field: spec.size, valueExpression: 1 + 1}
`), "" +
			"p.yaml:8: spec.defaults[0].value: must fit the field: Invalid value: 0: must be greater than or equal to 1, in objects of 'widgets.example.com' in version 'v1'\n" +
			"p.yaml:9: spec.defaults[1].field: can never apply: the default with the index 0 sets the field first\n" +
			"p.yaml:9: spec.defaults[1].value: must fit the field: Invalid value: \"string\": must be of type integer, in objects of 'widgets.example.com' in version 'v1'\n" +
			"p.yaml:10: spec.defaults[2].value: must fit the field: Unsupported value: \"Slow\": supported values: \"Fast\", \"Safe\", in objects of 'widgets.example.com' in version 'v1'\n" +
			"p.yaml:11: spec.defaults[3].value: must fit the field: .colour: field not declared in schema, in objects of 'widgets.example.com' in version 'v1'\n" +
			"p.yaml:12: spec.defaults[4].value: must fit the field: [a]: Invalid value: \"integer\": must be of type string, in objects of 'widgets.example.com' in version 'v1'\n" +
			"p.yaml:13: spec.defaults[5].value: must fit the field: port: Required value, in objects of 'widgets.example.com' in version 'v1'\n" +
			"p.yaml:14: spec.defaults[6].value: must fit the field: expected string, got 5, in objects of 'widgets.example.com' in version 'v1'\n" +
			"p.yaml:15: spec.defaults[7].field: can never apply: the default with the index 0 sets the field first\n" +
			"p.yaml:15: spec.defaults[7].valueExpression: must fit the field, which is not for values of kind string, in objects of 'widgets.example.com' in version 'v1'\n" +
			"p.yaml:16: spec.defaults[8].field: can never apply: the default with the index 4 sets the field first\n" +
			"p.yaml:16: spec.defaults[8].valueExpression: must fit the field, which is not for values of kind array, in objects of 'widgets.example.com' in version 'v1'\n" +
			"p.yaml:17: spec.defaults[9].field: can never apply: the default with the index 0 sets the field first\n"},
		"expressions": {defaulting("p", `
  - {field: spec.size, valueExpression: 1 +}
  - {field: spec.size, value: 1, when: "1"}
  - {field: spec.size, value: 1, valueExpression: "1"}
  - {field: spec.size}
  - {field: spec.size, value: null}
  - {field: spec.mode, valueExpression: state.nothing}
`), "" +
			"p.yaml:8: spec.defaults[0].valueExpression: Invalid value: \"1 +\": compilation failed: ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER} | 1 + | ...^\n" +
			"p.yaml:9: spec.defaults[1].when: Invalid value: \"1\": must evaluate to bool but got int\n" +
			"p.yaml:10: spec.defaults[2].valueExpression: Forbidden: must not be set beside `value`\n" +
			"p.yaml:11: spec.defaults[3].value: Required value: must be set, other than to null, unless there is a `valueExpression`\n" +
			"p.yaml:12: spec.defaults[4].value: Required value: must be set, other than to null, unless there is a `valueExpression`\n" +
			"p.yaml:13: spec.defaults[5].valueExpression: Invalid value: \"state.nothing\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'state' (in container '') | state.nothing | ^; the policy files must have a StateSource for each member of `state`\n"},
		"types of expressions": {defaulting("p", `
  - {field: spec.size, valueExpression: object.spec.sise}
`), "p.yaml:8: spec.defaults[0].valueExpression: ERROR: <input>:1:12: fails for every object: undefined field 'sise' | object.spec.sise | ...........^\n"},
		"matching": {`apiVersion: admission-gateway.io/v1alpha1
kind: DefaultingPolicy
metadata: {name: p}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {a: "b!"}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, DELETE], resources: [pods/]}]
  matchConditions: [{name: a, expression: "1"}]
  defaults: [{field: spec.nodeName, value: a}]
`, "" +
			"p.yaml:6: spec.matchConstraints.namespaceSelector.matchLabels: Invalid value: \"b!\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')\n" +
			"p.yaml:7: spec.matchConstraints.resourceRules.operations: Unsupported value: \"DELETE\": supported values: \"*\", \"CONNECT\", \"CREATE\", \"UPDATE\"\n" +
			"p.yaml:8: spec.matchConditions[0].expression: Invalid value: \"1\": must evaluate to bool but got int\n"},
		"enumerations": {`apiVersion: admission-gateway.io/v1alpha1
kind: DefaultingPolicy
metadata: {name: p}
spec:
  failurePolicy: Never
  mode: "off"
  matchConstraints: {matchPolicy: Some, resourceRules: []}
  defaults: []
`, "" +
			"p.yaml:5: spec.failurePolicy: Unsupported value: \"Never\": supported values: \"Fail\", \"Ignore\"\n" +
			"p.yaml:6: spec.mode: Unsupported value: \"off\": supported values: \"Enabled\", \"Disabled\"\n" +
			"p.yaml:7: spec.matchConstraints.matchPolicy: Unsupported value: \"Some\": supported values: \"Equivalent\", \"Exact\"\n" +
			"p.yaml:7: spec.matchConstraints.resourceRules: Invalid value: 0: must have at least 1 item\n" +
			"p.yaml:8: spec.defaults: Invalid value: 0: must have at least 1 item\n"},
		"unknown fields": {strings.Replace(defaulting("p", "  - {field: spec.size, value: 3, wen: a}\n"), "spec:\n",
			"spec:\n  matchConstraint: {}\n", 1), "" +
			"p.yaml:5: spec.matchConstraint: unknown field; did you mean `matchConstraints`?\n" +
			"p.yaml:8: spec.defaults[0].wen: unknown field; did you mean `when`?\n"},
		"a built-in kind": {strings.NewReplacer("example.com", `""`, "widgets", "pods").Replace(defaulting("p", `
  - {field: "spec.containers[*].imagePullPolicy", value: Always}
  - {field: "spec.containers[name=a].ports[containerPort=80].name", value: http}
  - {field: "spec.volumes[nome=a].emptyDir", value: {}}
  - {field: spec.hostNetwork, value: "yes"}
`)), "" +
			"p.yaml:10: spec.defaults[2].field: must not tell the items of `spec.volumes` apart by 'nome': they are by 'name', in objects of 'pods' in version 'v1'\n" +
			"p.yaml:11: spec.defaults[3].value: must fit the field: expected boolean, got \"yes\", in objects of 'pods' in version 'v1'\n"},
		"wildcards are left alone": {strings.Replace(defaulting("p", "  - {field: spec.sise, value: 3}\n"), "[v1]",
			`["*"]`, 1), ""},
		"disabled": {strings.Replace(defaulting("p", "  - {field: spec.sise, value: 3}\n"), "spec:\n",
			"spec:\n  mode: Disabled\n", 1),
			"p.yaml:8: spec.defaults[0].field: warning: must not name the field `spec.sise`, which there is not, in objects of 'widgets.example.com' in version 'v1'\n"},
	} {
		dir := testutil.WriteFiles(t, map[string]string{"crd.yaml": defaultedDefinition, "p.yaml": c.policy})
		if got := text(dir, Check([]string{dir})); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}
