package policies

import (
	"cmp"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// Every kind of object that can read the user is refused if the configuration neither says how
// users are known, nor that every client is anonymous.
func TestNoIdentity(t *testing.T) {
	const rules = "{resourceRules: [{apiGroups: [\"\"], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}"
	const bound = "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: a}\nspec: {policyName: a, validationActions: [Deny]}\n"
	validating := func(spec string) string {
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: a}\nspec:\n  matchConstraints: " + rules + "\n" + spec + bound
	}
	limit := func(spec string) string {
		return "apiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: a}\nspec:\n  requests: 1\n  periodSeconds: 1\n" + spec
	}
	rego := func(rule string) string {
		return "apiVersion: admission-gateway.io/v1alpha1\nkind: RegoPolicy\nmetadata: {name: a}\nspec:\n  matchConstraints: " + rules +
			"\n  rego: |\n    package a\n    deny contains msg if {\n      " + rule + "\n      msg := \"no\"\n    }\n"
	}
	template := func(rule string) string {
		return "apiVersion: templates.gatekeeper.sh/v1\nkind: ConstraintTemplate\nmetadata: {name: k8sa}\nspec:\n  crd: {spec: {names: {kind: K8sA}}}\n  targets:\n  - target: admission.k8s.gatekeeper.sh\n    rego: |\n" +
			"      package k8sa\n      violation[{\"msg\": \"no\"}] {\n        " + rule + "\n      }\n" +
			"---\napiVersion: constraints.gatekeeper.sh/v1beta1\nkind: K8sA\nmetadata: {name: a}\n"
	}
	for name, c := range map[string]struct{ text, want string }{
		"validation": {validating("  validations: [{expression: \"request.userInfo.username != 'eve'\"}]\n"),
			"a.yaml:6: spec.validations[0].expression"},
		"match condition": {validating("  matchConditions: [{name: a, expression: \"'dev' in request.userInfo.groups\"}]\n  validations: [{expression: 'false'}]\n"), "a.yaml:6: spec.matchConditions[0].expression"},
		"variable":        {validating("  variables: [{name: who, expression: request.userInfo.username}]\n  validations: [{expression: variables.who != 'eve'}]\n"), "a.yaml:6: spec.variables[0].expression"},
		"message":         {validating("  validations: [{expression: 'false', messageExpression: \"'not for ' + request.userInfo.username\"}]\n"), "a.yaml:6: spec.validations[0].messageExpression"},
		"authorizer":      {validating("  validations: [{expression: \"authorizer.path('/a').check('get').allowed()\"}]\n"), "a.yaml:6: spec.validations[0].expression"},
		"nothing of it":   {validating("  validations: [{expression: \"request.operation == 'CREATE'\"}]\n"), ""},
		"exception": {validating("  validations: [{expression: 'false'}]\n") + "---\napiVersion: admission-gateway.io/v1alpha1\nkind: PolicyException\nmetadata: {name: a}\nspec:\n" +
			"  policies: [{kind: ValidatingAdmissionPolicy, names: [a]}]\n  matchConstraints: " + rules + "\n  matchConditions: [{name: a, expression: \"request.userInfo.username == 'ci'\"}]\n  reason: of CI\n  expires: 2100-01-01T00:00:00Z\n",
			"a.yaml:19: spec.matchConditions[0].expression"},
		"key of a limit": {limit("  key: User\n"), "a.yaml:7: spec.key"},
		"exempt users and groups": {limit("  exemptions:\n    usernames: [a]\n    groups: [b]\n"),
			"a.yaml:8: spec.exemptions.usernames\na.yaml:9: spec.exemptions.groups"},
		"expression of a limit": {limit("  keyExpression: request.userInfo.username\n"),
			"a.yaml:7: spec.keyExpression"},
		"cost of a limit":          {limit("  cost: \"request.userInfo.username == 'a' ? 2 : 1\"\n"), "a.yaml:7: spec.cost"},
		"limit of addresses":       {limit("  key: ClientAddress\n  exemptions: {namespaces: [a], clientAddresses: [10.0.0.1]}\n"), ""},
		"Rego":                     {rego(`input.review.userInfo.username == "eve"`), "a.yaml:9"},
		"Rego of a webhook":        {rego(`"dev" in input.request.userInfo.groups`), "a.yaml:9"},
		"Rego by a variable":       {rego(`r := input.review; r.userInfo.username == "eve"`), "a.yaml:9"},
		"Rego by a function":       {rego(`object.get(input.review, "userInfo", {}).username == "eve"`), "a.yaml:9"},
		"Rego, an object's member": {rego(`input.review.object.userInfo == "eve"`), ""},
		"template":                 {template(`input.review.userInfo.username == "eve"`), "a.yaml:11"},
		"template without":         {template(`input.review.object.metadata.name == "eve"`), ""},
		"audit": {"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- {level: None, users: [a]}\n- {level: None, userGroups: [a]}\n- {level: Metadata}\n",
			"a.yaml:4: rules[0].users\na.yaml:5: rules[1].userGroups"},
		"defaulting": {"apiVersion: admission-gateway.io/v1alpha1\nkind: DefaultingPolicy\nmetadata: {name: a}\nspec:\n  matchConstraints: " + rules +
			"\n  defaults: [{field: data.by, valueExpression: request.userInfo.username}]\n",
			"a.yaml:6: spec.defaults[0].valueExpression"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := testutil.WriteFiles(t, map[string]string{"a.yaml": c.text})
			if text := errorsOf(CheckFor([]string{dir}, Gateway{SharedLimits: true}), dir); text != "" {
				t.Errorf("with an identity: %s", text)
			}
			var want strings.Builder
			for place := range strings.SplitSeq(c.want, "\n") {
				if place != "" {
					want.WriteString(place + ": reads who asks, but the configuration has no `identity`, so that everybody is 'system:anonymous': " +
						"name authenticators there, or say `identity: {anonymous: Allow}` if that is meant\n")
				}
			}
			if got := errorsOf(CheckFor([]string{dir}, Gateway{SharedLimits: true, NoIdentity: true}),
				dir); got != want.String() {
				t.Errorf("got\n%swant\n%s", got, want.String())
			}
		})
	}
}

// errorsOf returns the errors among findings, without the folder.
func errorsOf(found []Finding, dir string) string {
	var errs []Finding
	for _, f := range found {
		if f.Severity == Error {
			f.Excerpt = ""
			errs = append(errs, f)
		}
	}
	return strings.ReplaceAll(textOf(errs), dir+"/", "")
}

// Whatever reads the kind of the request's objects is named if the gateway cannot ask an API server for it.
func TestKindsUnknown(t *testing.T) {
	const rules = "{resourceRules: [{apiGroups: [\"\"], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}"
	validating := func(expression string) string {
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: a}\nspec:\n  matchConstraints: " + rules +
			"\n  validations: [{expression: \"" + expression +
			"\"}]\n---\napiVersion: admissionregistration.k8s.io/v1\n" +
			"kind: ValidatingAdmissionPolicyBinding\nmetadata: {name: a}\nspec: {policyName: a, validationActions: [Deny]}\n"
	}
	rego := func(rule string) string {
		return "apiVersion: admission-gateway.io/v1alpha1\nkind: RegoPolicy\nmetadata: {name: a}\nspec:\n  matchConstraints: " + rules +
			"\n  rego: |\n    package a\n    deny contains msg if {\n      " + rule + "\n      msg := \"no\"\n    }\n"
	}
	const template = "apiVersion: templates.gatekeeper.sh/v1\nkind: ConstraintTemplate\nmetadata: {name: k8sa}\nspec:\n  crd: {spec: {names: {kind: K8sA}}}\n  targets:\n  - target: admission.k8s.gatekeeper.sh\n    rego: |\n" +
		"      package k8sa\n      violation[{\"msg\": \"no\"}] {\n        input.review.object.a\n      }\n---\napiVersion: constraints.gatekeeper.sh/v1beta1\nkind: K8sA\nmetadata: {name: a}\n"
	const assign = "apiVersion: mutations.gatekeeper.sh/v1\nkind: AssignMetadata\nmetadata: {name: a}\nspec:\n  match: {kinds: [{apiGroups: [\"\"], kinds: [Pod]}]}\n" +
		"  location: metadata.labels.a\n  parameters: {assign: {value: a}}\n"
	for name, c := range map[string]struct{ text, want string }{
		"kind":              {validating("request.kind.kind == 'ConfigMap'"), "a.yaml:6: spec.validations[0].expression"},
		"kind as sent":      {validating("request.requestKind.group == ''"), "a.yaml:6: spec.validations[0].expression"},
		"optional":          {validating("request.?kind.kind.orValue('') == ''"), "a.yaml:6: spec.validations[0].expression"},
		"whole":             {validating("dyn(request).kind.kind == ''"), "a.yaml:6: spec.validations[0].expression"},
		"of the object":     {validating("object.kind == 'ConfigMap'"), ""},
		"resource":          {validating("request.resource.resource == 'configmaps'"), ""},
		"Rego":              {rego(`input.review.kind.kind == "Pod"`), "a.yaml:9"},
		"Rego of a webhook": {rego(`input.request.requestKind.kind == "Pod"`), "a.yaml:9"},
		"Rego, an object's": {rego(`input.review.object.kind == "Pod"`), ""},
		"constraint": {template + "spec: {match: {kinds: [{apiGroups: [\"\"], kinds: [Pod]}]}}\n",
			"a.yaml:17: spec.match.kinds"},
		"any constraint": {template, ""},
		"mutator":        {assign, "a.yaml:5: spec.match.kinds"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := testutil.WriteFiles(t, map[string]string{"a.yaml": c.text})
			for _, anonymous := range []bool{false, true} {
				var got []string
				for _, f := range CheckFor([]string{dir},
					Gateway{Routes: []Route{{Kubernetes: true, IsAnonymous: anonymous}}}) {
					if before, _, found := strings.Cut(f.String(), ": reads the kind"); found && f.Severity == Warning {
						got = append(got, strings.TrimPrefix(strings.TrimPrefix(before, dir+"/"), "warning: "))
					}
				}
				want := c.want
				if !anonymous {
					want = ""
				}
				if text := strings.Join(got, "\n"); !strings.HasPrefix(text, want) || (want == "") != (text == "") {
					t.Errorf("without an account %t: %q, want %q", anonymous, text, want)
				}
			}
		})
	}
}

// Whatever reads a field with a default that is left to the API is named, unless it asks for the field.
func TestReadsUnfilledDefaults(t *testing.T) {
	const tasks = `openapi: 3.0.3
info: {title: Tasks, version: v1}
x-admission-gateway-resource: {defaults: DEFAULTS, group: example.com, storedObject: Shown}
paths:
  /tasks:
    get: {responses: {"200": {description: all}}}
    post: {requestBody: {content: {application/json: {schema: {$ref: "#/components/schemas/Task"}}}}, responses: {"201": {description: one}}}
  /tasks/{id}:
    get: {responses: {"200": {description: one}}}
    put: {requestBody: {content: {application/json: {schema: {$ref: "#/components/schemas/Task"}}}}, responses: {"200": {description: one}}}
components:
  schemas:
    Task:
      type: object
      required: [name]
      properties:
        id: {type: string}
        name: {type: string, default: a}
        size: {type: integer, default: 3}
        lines: {type: array, items: {type: object, properties: {count: {type: integer, default: 1}}}}
`
	const kind = "example.com/v1, Kind=Task: "
	const match = "  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [tasks]}]}\n"
	validating := func(spec string) string {
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: a}\nspec:\n" + match + spec +
			"---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: a}\nspec: {policyName: a, validationActions: [Deny]}\n"
	}
	rego := func(body string) string {
		return "apiVersion: admission-gateway.io/v1alpha1\nkind: RegoPolicy\nmetadata: {name: a}\nspec:\n" + match +
			"  rego: |\n    package a\n    import rego.v1\n" + body
	}
	deny := func(rules ...string) string {
		return rego("    deny contains \"no\" if {\n      " + strings.Join(rules, "\n      ") + "\n    }\n")
	}
	template := func(kinds, rule string) string {
		return "apiVersion: templates.gatekeeper.sh/v1\nkind: ConstraintTemplate\nmetadata: {name: small}\nspec:\n  crd: {spec: {names: {kind: Small}}}\n  targets:\n" +
			"  - target: admission.k8s.gatekeeper.sh\n    rego: |\n      package small\n      violation[{\"msg\": \"no\"}] {\n        true\n        " + rule + "\n      }\n" +
			"---\napiVersion: constraints.gatekeeper.sh/v1beta1\nkind: Small\nmetadata: {name: small}\nspec: {match: {kinds: [{apiGroups: [example.com], kinds: " + kinds + "}]}}\n"
	}
	excepted := func(condition string) string {
		return "apiVersion: admission-gateway.io/v1alpha1\nkind: PolicyException\nmetadata: {name: a}\nspec:\n  policies: [{kind: ValidatingAdmissionPolicy, names: [a]}]\n" +
			"  reason: small\n" + match + "  matchConditions: [{name: a, expression: '" + condition +
			"'}]\n  expires: '2099-01-01T00:00:00Z'\n---\n" +
			validating("  validations: [{expression: object.name == 'a'}]\n")
	}
	undefined := func(place, field string) string {
		return place + ": warning: " + kind + "reads `" + field + "`, whose default is left to the API: where the field is left out it is undefined, " +
			"and the rule has no result, so that a `deny` denies nothing; read it by object.get(), or ask for it by `not`\n"
	}
	rule := func(text string) string {
		return "      x-kubernetes-validations: [{rule: \"" + text + "\"}]\n"
	}
	says := func(place, fields string) string {
		return place + ": warning: " + fields +
			" left to the API: the expression fails where the field is left out; ask for "
	}
	for name, c := range map[string]struct{ rule, policy, defaults, want string }{
		"validation": {policy: validating("  validations: [{expression: object.size < 5}]\n"),
			want: says("p.yaml:6: spec.validations[0].expression", kind+"reads `object.size`, whose default is") +
				"it with has() first\n"},
		"several fields": {policy: validating("  validations: [{expression: \"object.size < 5 && object.lines.all(l, l.count > 1)\"}]\n"),
			want: says("p.yaml:6: spec.validations[0].expression",
				kind+"reads `object.lines[*].count`, `object.size`, whose defaults are") + "them with has() first\n"},
		"variable": {policy: validating("  variables: [{name: size, expression: object.size}]\n  validations: [{expression: variables.size < 5}]\n"),
			want: says("p.yaml:6: spec.variables[0].expression", kind+"reads `object.size`, whose default is") +
				"it with has() first\n" +
				says("p.yaml:7: spec.validations[0].expression", kind+"reads `object.size`, whose default is") +
				"it with has() first\n"},
		"match condition": {policy: validating("  matchConditions: [{name: a, expression: object.size < 5}]\n  validations: [{expression: object.name == 'a'}]\n"),
			want: says("p.yaml:6: spec.matchConditions[0].expression", kind+"reads `object.size`, whose default is") +
				"it with has() first\n"},
		"behind a match condition": {policy: validating("  matchConditions: [{name: a, expression: has(object.size)}]\n  validations: [{expression: object.size < 5}]\n")},
		"asked for":                {policy: validating("  validations: [{expression: '!has(object.size) || object.size < 5'}]\n")},
		"optional":                 {policy: validating("  validations: [{expression: 'object.?size.orValue(1) < 5'}]\n")},
		"required":                 {policy: validating("  validations: [{expression: object.name == 'a'}]\n")},
		"filled in": {policy: validating("  validations: [{expression: object.size < 5}]\n"),
			rule: rule("self.size < 5"), defaults: "Fill",
			want: "a.yaml:15: components.schemas.Task.required: note: is not enforced of 'name', whose default is filled in\n" +
				"a.yaml:1: note: 3 defaults of schemas are filled in where a request leaves them out: 'x-admission-gateway-resource: {defaults: Off}' " +
				"at the root, at a path or at an operation leaves them to the API\n"},
		"rule of the schema": {rule: rule("self.size < 5"),
			want: says("a.yaml:21: components.schemas.Task.x-kubernetes-validations[0].rule",
				"reads `self.size`, whose default is") + "it with has() first\n"},
		"Rego": {policy: deny("input.request.object.size > 5"), want: undefined("p.yaml:10", "object.size")},
		"Rego of a review": {policy: deny("input.review.oldObject.size > 5"),
			want: undefined("p.yaml:10", "oldObject.size")},
		"Rego by a variable": {policy: deny("task := input.request.object", "task.size > 5"),
			want: undefined("p.yaml:11", "object.size")},
		"Rego by a list": {policy: deny("some line in input.request.object.lines", "line.count > 5"),
			want: undefined("p.yaml:11", "object.lines[*].count")},
		"Rego by a number": {policy: deny("input.request.object.lines[0].count > 5"),
			want: undefined("p.yaml:10", "object.lines[*].count")},
		"Rego by a rule": {
			policy: rego("    task := input.request.object\n    deny contains \"no\" if task.size > 5\n"),
			want:   undefined("p.yaml:10", "object.size")},
		"Rego that asks":          {policy: rego("    deny contains \"no\" if input.request.object.size > 5\n    deny contains \"none\" if not input.request.object.size\n")},
		"Rego with another value": {policy: deny("object.get(input.request.object, \"size\", 3) > 5")},
		"Rego of other fields":    {policy: deny("input.request.object.name == \"x\"")},
		"match condition of Rego": {policy: strings.Replace(deny("input.request.object.name == \"x\""), "  rego:",
			"  matchConditions: [{name: a, expression: object.size < 5}]\n  rego:", 1),
			want: says("p.yaml:6: spec.matchConditions[0].expression", kind+"reads `object.size`, whose default is") +
				"it with has() first\n"},
		"Gatekeeper": {policy: template("[Task]", "input.review.object.size > 5"),
			want: undefined("p.yaml:12", "object.size")},
		"Gatekeeper of a list": {policy: template("[Task]", "input.review.object.lines[_].count > 5"),
			want: undefined("p.yaml:12", "object.lines[*].count")},
		"Gatekeeper that asks": {policy: template("[Task]", "object.get(input.review.object, \"size\", 3) > 5")},
		"Gatekeeper that names all kinds": {policy: template(`["*"]`, "input.review.object.size > 5"),
			want: undefined("p.yaml:12", "object.size")},
		"Gatekeeper without kinds": {policy: strings.Replace(template("[]", "input.review.object.size > 5"),
			"kinds: [{apiGroups: [example.com], kinds: []}]", "", 1), want: undefined("p.yaml:12", "object.size")},
		"Gatekeeper of another kind": {policy: template("[Job]", "input.review.object.size > 5"),
			want: "p.yaml:18: spec.match.kinds[0].kinds[0]: warning: matches nothing that the files describe: the group 'example.com' has no kind 'Job'\n"},
		"all groups": {policy: strings.ReplaceAll(validating("  validations: [{expression: object.size < 5}]\n"),
			"[example.com]", "['*']"),
			want: says("p.yaml:6: spec.validations[0].expression", kind+"reads `object.size`, whose default is") +
				"it with has() first\n"},
		"all groups, asked for": {
			policy: strings.ReplaceAll(
				validating("  validations: [{expression: '!has(object.size) || object.size < 5'}]\n"), "[example.com]",
				"['*']")},
		"all groups, another kind": {policy: strings.ReplaceAll(validating("  matchConditions: [{name: a, expression: \"request.kind.kind == 'Job'\"}]\n  validations: [{expression: object.size < 5}]\n"), "[example.com]", "['*']")},
		"all groups, Rego": {policy: strings.ReplaceAll(deny("input.request.object.size > 5"), "[example.com]",
			"['*']"), want: undefined("p.yaml:10", "object.size")},
		"all resources of an exception": {policy: strings.Replace(excepted("object.size < 5"), "resources: [tasks]",
			"resources: ['*']", 1),
			want: says("p.yaml:8: spec.matchConditions[0].expression", kind+"reads `object.size`, whose default is") +
				"it with has() first\n"},
		"match condition of an exception": {policy: excepted("object.size < 5"),
			want: says("p.yaml:8: spec.matchConditions[0].expression", kind+"reads `object.size`, whose default is") +
				"it with has() first\n"},
		"match condition of an exception that asks": {policy: excepted("has(object.size) && object.size < 5")},
		"rule that asks": {rule: rule("!has(self.size) || self.size < 5")},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"a.yaml": strings.Replace(tasks, "DEFAULTS", cmp.Or(c.defaults, "Off"), 1) +
				c.rule}
			if c.policy != "" {
				files["p.yaml"] = c.policy
			}
			dir := testutil.WriteFiles(t, files)
			_, found := Load([]string{dir})
			if got := text(dir, found); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}
