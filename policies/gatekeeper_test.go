package policies

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/admissiontest"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// template is a ConstraintTemplate of the kind Check: what a pod's annotation 'say' has is a violation, and so is each
// word of the parameter.
const checkTemplate = `apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: check}
spec:
  crd:
    spec:
      names: {kind: Check}
      validation:
        openAPIV3Schema:
          type: object
          properties:
            words: {type: array, items: {type: string}}
            most: {type: integer, default: 3}
  targets:
  - target: admission.k8s.gatekeeper.sh
    rego: |
      package check
      import data.lib.words.said

      violation[{"msg": msg}] { msg := said(input.review.object) }
      violation[{"msg": msg}] { msg := sprintf("%v of %v", [input.parameters.words[_], input.parameters.most]) }
    libs:
    - |
      package lib.words
      said(object) = object.metadata.annotations.say
`

const celTemplate = `apiVersion: templates.gatekeeper.sh/v1beta1
kind: ConstraintTemplate
metadata: {name: limit}
spec:
  crd: {spec: {names: {kind: Limit}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    operations: [CREATE, UPDATE, DELETE]
    code:
    - engine: K8sNativeValidation
      source:
        variables:
        - {name: most, expression: 'has(variables.params.most) ? variables.params.most : 1'}
        validations:
        - {expression: 'size(variables.anyObject.metadata.name) <= variables.most', messageExpression: "'at most ' + string(variables.most)"}
        - {expression: ' has(variables.anyObject.spec) '}
`

func constraintOf(kind, name, spec string) string {
	return "---\napiVersion: constraints.gatekeeper.sh/v1beta1\nkind: " + kind + "\nmetadata: {name: " + name +
		"}\nspec: " + spec + "\n"
}

// review is a request about a pod in the namespace team-a, or about a namespace.
func review(t *testing.T, operation admission.Operation, object, old string) *admission.Attributes {
	t.Helper()
	a := &admission.Attributes{
		Info: &resource.Info{Verb: resource.VerbCreate, IsResource: true, APIPrefix: "api", Version: "v1",
			Resource: "pods", Namespace: "team-a"},
		Operation: operation,
		Lookup: (&admissiontest.Lookup{Known: map[string][]document.Node{}}).
			Add("{apiVersion: v1, kind: Namespace, metadata: {name: team-a, labels: {tier: prod}}}"),
		Frame: cel.NewFrame(t.Context()),
	}
	t.Cleanup(a.Frame.Release)
	if object != "" {
		a.Object = admissiontest.Parse(object)
	}
	if old != "" {
		a.Old = admissiontest.Parse(old)
	}
	if strings.Contains(object+old, "kind: Namespace") {
		a.Info.Resource = "namespaces"
	}
	return a
}

// verdict returns the messages of a set's policies for a request: the denial, warnings, and notes.
func verdict(set *Set, a *admission.Attributes) string {
	var r admission.Report
	set.Admission().Validate(context.Background(), a, &r)
	var said []string
	if err := r.Err(a); err != nil {
		said = append(said, status.From(err).ErrStatus.Message)
	}
	for _, w := range r.Warnings() {
		said = append(said, "warning: "+w)
	}
	for _, f := range r.AuditedFailures() {
		said = append(said, "noted: "+f.Message)
	}
	return strings.Join(said, "\n")
}

// TestConstraintsAreIndexed: a constraint costs nothing to requests for other kinds, and causes no
// reads that its match block and its template do not need.
func TestConstraintsAreIndexed(t *testing.T) {
	kinds := "kinds: [{apiGroups: [''], kinds: [Pod]}]"
	for spec, old := range map[string]bool{
		"{match: {" + kinds + "}}":                                                 false,
		"{match: {" + kinds + ", labelSelector: {matchLabels: {a: b}}}}":           true,
		"{match: {" + kinds + ", namespaceSelector: {matchLabels: {tier: prod}}}}": false,
	} {
		set, found := Load(
			[]string{testutil.WriteFiles(t,
				map[string]string{"a.yaml": checkTemplate, "c.yaml": constraintOf("Check", "b", spec)})})
		if set == nil {
			t.Fatal(found)
		}
		pods, services := &resource.Info{Version: "v1", Resource: "pods"},
			&resource.Info{Version: "v1", Resource: "services"}
		chain := set.Admission()
		if !chain.Concerns(pods, admission.Update) || chain.Concerns(services, admission.Update) ||
			chain.Concerns(pods, admission.Delete) {
			t.Errorf("%s: must concern updates of pods alone", spec)
		}
		if got := chain.NeedsOld(pods, admission.Update); got != old {
			t.Errorf("%s: needs the stored object: %t, want %t", spec, got, old)
		}
	}
	set, found := Load(
		[]string{testutil.WriteFiles(t,
			map[string]string{"a.yaml": celTemplate, "c.yaml": constraintOf("Limit", "b", "{match: {"+kinds+"}}")})})
	if set == nil {
		t.Fatal(found)
	}
	pods := &resource.Info{Version: "v1", Resource: "pods"}
	if chain := set.Admission(); chain.NeedsOld(pods, admission.Update) || !chain.NeedsOld(pods, admission.Delete) {
		t.Error("a template about deletions needs the stored object for these alone")
	}
}

// TestGatekeeperFindings: what is said about Gatekeeper's objects, with the line that is meant.
func TestGatekeeperFindings(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"unknown template": {constraintOf("Nothing", "x", "{}"), "a.yaml:3:1: kind: no ConstraintTemplate in the policy files defines the kind 'Nothing'"},
		"parameters": {checkTemplate + constraintOf("Check", "c", "{parameters: {words: x}}"),
			"spec.parameters.words: Invalid value: \"string\": must be of type array"},
		"unknown parameter": {checkTemplate + constraintOf("Check", "c", "{parameters: {word: x}}"), "spec.parameters.word: Invalid value: must not be set: constraints of the kind 'Check' have no such field"},
		"unknown match":     {checkTemplate + constraintOf("Check", "c", "{match: {kind: [Pod]}}"), "spec.match.kind: Invalid value: must not be set: constraints of the kind 'Check' have no such field"},
		"action":            {checkTemplate + constraintOf("Check", "c", "{enforcementAction: block}"), `spec.enforcementAction: Unsupported value: "block": supported values: "deny", "dryrun", "scoped", "warn"`},
		"point":             {checkTemplate + constraintOf("Check", "c", "{enforcementAction: scoped, scopedEnforcementActions: [{action: deny, enforcementPoints: [{name: here}]}]}"), "spec.scopedEnforcementActions[0].enforcementPoints[0].name: Unsupported value"},
		"idle":              {checkTemplate + constraintOf("Check", "c", "{enforcementAction: scoped, scopedEnforcementActions: [{action: deny, enforcementPoints: [{name: vap.k8s.io}]}]}"), "warning: no action is for the enforcement point validation.gatekeeper.sh, so that the constraint does nothing"},
		"unused":            {checkTemplate, "a.yaml:7:15: spec.crd.spec.names.kind: warning: no constraint in the policy files is of the kind 'Check', so that the template does nothing"},
		"name":              {strings.Replace(checkTemplate, "name: check", "name: other", 1), "a.yaml:3:12: metadata.name: Invalid value: \"other\": must be 'check', the kind of the constraints in lower case"},
		"schema":            {strings.Replace(checkTemplate, "type: array", "type: list", 1), "a.yaml:12:21: spec.crd.spec.validation.openAPIV3Schema.properties[words].type: Unsupported value: \"list\""},
		"target": {strings.Replace(checkTemplate, "target: admission.k8s.gatekeeper.sh", "target: x", 1),
			"spec.targets[0].target: Unsupported value"},
		"no rule": {strings.ReplaceAll(checkTemplate, "violation[", "deny["), "spec.targets[0].rego: Invalid value: invalid rego: invalid module: missing required rules: [violation]"},
		"syntax": {strings.Replace(checkTemplate, `"msg": msg}] { msg := said`,
			`"msg": msg}] { msg := := said`, 1), "a.yaml:20:40: spec.targets[0].rego: rego_parse_error"},
		"library": {strings.Replace(checkTemplate, "object.metadata.annotations.say", "object.(", 1),
			"a.yaml:25:29: spec.targets[0].rego: rego_parse_error"},
		"library elsewhere": {strings.Replace(checkTemplate, "package lib.words", "package words", 1), "a.yaml:24:7: spec.targets[0].rego: invalid lib prefix: path data.words not found in lib prefixes"},
		"import":            {strings.Replace(checkTemplate, "import data.lib.words.said", "import data.words.said", 1), "a.yaml:18:7: spec.targets[0].rego: invalid import: bad import: \"data.words.said\""},
		"import of input":   {strings.Replace(checkTemplate, "import data.lib.words.said", "import input.review", 1), "a.yaml:18:7: spec.targets[0].rego: invalid import: cannot import input: \"input.review\""},
		"reference":         {strings.Replace(checkTemplate, "input.parameters.words[_]", "data.constraints[_]", 1), "spec.targets[0].rego: invalid data references: disallowed ref data.constraints[_]"},
		"expression": {strings.Replace(celTemplate, "string(variables.most)", "variables.less", 1),
			"spec.targets[0].code[0].source.validations[0].messageExpression: Invalid value"},
		"variable": {strings.Replace(celTemplate, "? variables.params.most : 1", "? nothing : 1", 1),
			"spec.targets[0].code[0].source.variables[0].expression: Invalid value"},
		"reserved":  {strings.Replace(celTemplate, "name: most", "name: params", 1), "spec.targets[0].code[0].source.variables[0].name: Invalid value: \"params\": must not be a name that Gatekeeper keeps for itself"},
		"expansion": {"apiVersion: expansion.gatekeeper.sh/v1beta1\nkind: ExpansionTemplate\nmetadata: {name: e}\n", "a.yaml:2:1: kind: must not be 'ExpansionTemplate': the gateway expands no objects that generate others: the pods of a workload are judged when they are created"},
		"provider":  {"apiVersion: externaldata.gatekeeper.sh/v1beta1\nkind: Provider\nmetadata: {name: e}\n", "a.yaml:2:1: kind: must not be 'Provider': the gateway asks no providers of external data"},
		"config":    {"apiVersion: config.gatekeeper.sh/v1alpha1\nkind: Config\nmetadata: {name: c}\n", "a.yaml:3:12: metadata.name: must be 'config', the only name that Gatekeeper reads, not 'c'"},
		"process":   {"apiVersion: config.gatekeeper.sh/v1alpha1\nkind: Config\nmetadata: {name: config}\nspec: {match: [{processes: [web]}]}\n", "spec.match[0].processes[0]: must be '*', 'audit', 'mutation-webhook', 'sync', 'webhook', not 'web'"},
		"sync": {strings.Replace(checkTemplate, "said(input.review.object)", "data.inventory.cluster.x", 1) +
			constraintOf("Check", "c", "{}") +
			"---\napiVersion: syncset.gatekeeper.sh/v1alpha1\nkind: SyncSet\nmetadata: {name: s}\nspec: {gvks: [{group: shop.example.com, version: v1, kind: Order}]}\n",
			"spec.gvks[0]: must be a kind whose resource is known: add a StateSource with the resource, the apiVersion 'shop.example.com/v1' and the kind 'Order'"},
		"needs sync": {strings.Replace(strings.Replace(checkTemplate, "said(input.review.object)",
			"data.inventory.cluster.x", 1), "{name: check}",
			"{name: check, annotations: {metadata.gatekeeper.sh/requires-sync-data: '\"[[{\\\"groups\\\": [\\\"\\\"], \\\"versions\\\": [\\\"v1\\\"], \\\"kinds\\\": [\\\"Service\\\"]}]]\"'}}", 1) + constraintOf("Check", "c", "{}"),
			"metadata.annotations[metadata.gatekeeper.sh/requires-sync-data]: warning: "},
		"mutators": {"apiVersion: mutations.gatekeeper.sh/v1\nkind: Assign\nmetadata: {name: a}\nspec: {applyTo: [{groups: [''], versions: [v1], kinds: [Pod]}], location: spec.a.b, parameters: {assign: {value: 1}}}\n" +
			"---\napiVersion: mutations.gatekeeper.sh/v1\nkind: Assign\nmetadata: {name: b}\nspec: {applyTo: [{groups: [''], versions: [v1], kinds: [Pod]}], location: 'spec.a[name: x].b', parameters: {assign: {value: 1}}}\n",
			"a.yaml:9:65: spec.location: must not take the fields of objects for others than these do: Assign 'a'"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range Check([]string{testutil.WriteFiles(t, map[string]string{"a.yaml": c.file})}) {
				line := f.String()
				if f.Column > 0 {
					line = strings.Replace(line, fmt.Sprintf(":%d:", f.Line), fmt.Sprintf(":%d:%d:", f.Line, f.Column),
						1)
				}
				got = append(got, line)
			}
			if !slices.ContainsFunc(got, func(line string) bool { return strings.Contains(line, c.want) }) {
				t.Errorf("got  %s\nwant %s", strings.Join(got, "\n     "), c.want)
			}
		})
	}
}
