package policytest

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// kyvernoFiles are what tests of Kyverno's refer to.
var kyvernoFiles = map[string]string{
	"replicas.yaml": `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: replicas}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}]}
  matchConditions: [{name: not-exempt, expression: "!has(object.metadata.labels) || !('exempt' in object.metadata.labels)"}]
  validations: [{expression: object.spec.replicas <= 3, message: at most 3}]
`,
	"bound.yaml": `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: replicas}
spec: {policyName: replicas, validationActions: [Audit], matchResources: {namespaceSelector: {matchLabels: {stage: production}}}}
`,
	"users.yaml": `apiVersion: admissionregistration.k8s.io/v1beta1
kind: ValidatingAdmissionPolicy
metadata: {name: users, annotations: {policies.kyverno.io/scored: "false"}}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "request.userInfo.username == 'jane' && 'dev' in request.userInfo.groups"}]
`,
	"params.yaml": `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: params}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]}
  validations: [{expression: object.spec.replicas <= int(params.data.most)}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: params}
spec: {policyName: params, validationActions: [Deny], paramRef: {name: most, namespace: default, parameterNotFoundAction: Deny}}
`,
	"labels.yaml": `apiVersion: admissionregistration.k8s.io/v1beta1
kind: MutatingAdmissionPolicy
metadata: {name: labels}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'team': 'a'}}}"}
`,
	"theirs.yaml": `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: theirs}
spec: {}
---
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: vpol}
spec: {}
`,
	"objects/deployments.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: few, namespace: production}
spec: {replicas: 1}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: many, namespace: production}
spec: {replicas: 9}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: many, namespace: testing}
spec: {replicas: 9}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: exempt, namespace: production, labels: {exempt: "", team: a}}
spec: {replicas: 9}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: odd, namespace: production}
spec: {}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: nowhere}
spec: {replicas: 2}
`,
	"objects/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n",
	"most.yaml":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: most, namespace: default}\ndata: {most: \"5\"}\n",
	"values.yaml":      "apiVersion: cli.kyverno.io/v1alpha1\nkind: Values\nnamespaceSelector:\n- {name: production, labels: {stage: production}}\n- {name: testing, labels: {stage: testing}}\n",
	"jane.yaml":        "kind: UserInfo\nuserInfo: {username: jane, groups: [dev]}\n",
	"patched.yaml":     "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: nowhere, labels: {team: a}}\nspec: {replicas: 2}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: few, namespace: production, labels: {team: b}}\nspec: {replicas: 1}\n",
}

// TestKyverno: a kyverno-test.yaml has Kyverno's verdicts: policies without bindings are bound to everything, actions
// do not matter, a policy that is not about an object is skipped, and what is not found fails. What the gateway lacks
// is skipped with the reason.
func TestKyverno(t *testing.T) {
	for _, c := range []struct{ name, test, want string }{
		{"bindings, namespaces and conditions", `apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {name: t}
policies: [replicas.yaml, bound.yaml]
resources: [objects]
variables: values.yaml
results:
- {policy: replicas, isValidatingAdmissionPolicy: true, kind: Deployment, resources: [few], result: pass}
- {policy: replicas, kind: Deployment, resources: [production/many], result: fail}
- {policy: replicas, kind: Deployment, resources: ["apps/v1,Deployment,testing,many", exempt], result: skip}
- {policy: replicas, kind: Deployment, resource: odd, status: error}
- {policy: replicas, kind: Deployment, resource: few, result: fail}
- {policy: replicas, kind: Deployment, resource: many, namespace: testing, result: pass}
- {policy: replicas, kind: Deployment, resources: [missing], result: pass}
- {policy: missing, kind: Deployment, resources: [few], result: pass}
`, `replicas/Deployment few passed
replicas/Deployment many passed
replicas/Deployment many passed
replicas/Deployment exempt passed
replicas/Deployment odd passed
replicas/Deployment few failed the policy's result is 'pass', want 'fail'
replicas/Deployment many failed the policy's result is 'skip', want 'pass'
replicas/Deployment missing failed no file in 'resources' has the object 'missing'
missing/Deployment few failed no file in 'policies' has the policy 'missing'`},
		{"no kind, users and what is not scored", `name: old
policies: [users.yaml, replicas.yaml]
resources: [objects/*.yaml]
userinfo: jane.yaml
results:
- {policy: users, kind: ConfigMap, resources: [map], result: pass}
- {policy: replicas, kind: Deployment, resources: [nowhere], result: pass}
- {policy: replicas, kind: Deployment, resources: [testing/many], result: fail}
`, `users/ConfigMap map passed
replicas/Deployment nowhere passed
replicas/Deployment many passed`},
		{"warn", `apiVersion: kyverno.io/v1
kind: Test
policies: [users.yaml]
resources: [objects/map.yaml]
results:
- {policy: users, kind: ConfigMap, resources: [map], result: warn}
- {policy: users, kind: ConfigMap, result: fail}
`, `users/ConfigMap map passed
users/ConfigMap map failed the policy's result is 'warn', want 'fail': ValidatingAdmissionPolicy 'users' with binding 'bound-to-everything' denied request: ['request.userInfo.username' must be 'jane', 'request.userInfo.groups' must contain 'dev']`},
		{"parameters", `apiVersion: cli.kyverno.io/v1alpha1
kind: Test
policies: [params.yaml]
resources: [objects/deployments.yaml]
paramResources: [most.yaml]
results:
- {policy: params, kind: Deployment, resources: [few], result: pass}
- {policy: params, kind: Deployment, resources: [production/many], result: fail}
`, `params/Deployment few passed
params/Deployment many passed`},
		{"mutations", `apiVersion: cli.kyverno.io/v1alpha1
kind: Test
policies: [labels.yaml]
resources: [objects/deployments.yaml]
results:
- {policy: labels, isMutatingAdmissionPolicy: true, kind: Deployment, resources: [nowhere], patchedResources: patched.yaml, result: pass}
- {policy: labels, isMutatingAdmissionPolicy: true, kind: Deployment, resources: [few], patchedResource: patched.yaml, result: pass}
- {policy: labels, isMutatingAdmissionPolicy: true, kind: Deployment, resources: [exempt], result: skip}
`, `labels/Deployment nowhere passed
labels/Deployment few failed metadata.labels.team is "a", want "b"
labels/Deployment exempt passed`},
		{"lacking", `apiVersion: cli.kyverno.io/v1alpha1
kind: Test
policies: [theirs.yaml, replicas.yaml]
resources: [objects/deployments.yaml]
values: {policies: [{name: replicas, resources: [{name: few, values: {request.operation: DELETE}}]}]}
results:
- {policy: theirs, rule: a, kind: Deployment, resources: [few, missing], result: fail}
- {policy: vpol, isValidatingPolicy: true, kind: Deployment, resources: [few], result: pass}
- {policy: replicas, kind: Deployment, resources: [few], result: pass}
checks: [{match: {}, assert: {status: pass}}]
`, `theirs/Deployment few skipped the gateway does not serve the kind ClusterPolicy
theirs/Deployment missing skipped the gateway does not serve the kind ClusterPolicy
vpol/Deployment few skipped the gateway does not serve the kind ValidatingPolicy
replicas/Deployment few skipped the operation DELETE needs a stored object, which the test does not have
kyverno-test/checks[0] skipped 'checks' are assertions about Kyverno's own answers, which the gateway does not have`},
		{"servers", `apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {name: far}
policies: ["https://example.com/replicas.yaml", replicas.yaml]
resources: [objects/map.yaml]
results: [{policy: replicas, kind: ConfigMap, resources: [map], result: skip}]
`, `replicas/ConfigMap map skipped policies[0]: 'https://example.com/replicas.yaml' is not a file, and the gateway asks no server for tests`},
		{"exceptions", `apiVersion: cli.kyverno.io/v1alpha1
kind: Test
policies: [replicas.yaml]
resources: [objects/map.yaml]
exceptions: [exceptions.yaml]
results: [{policy: replicas, kind: ConfigMap, resources: [map], result: skip}]
`, `replicas/ConfigMap map skipped the gateway does not have Kyverno's 'exceptions'`},
		{"no results", "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: empty}\npolicies: [replicas.yaml]\n", "empty/results skipped the test has no 'results'"},
		{"a result that is none", "name: t\npolicies: [replicas.yaml]\nresources: [objects]\nresults: [{policy: replicas, kind: Deployment, resources: [few], result: passed}]\n",
			"kyverno-test.yaml:1:1: results[0]: result: must be 'pass', 'fail', 'skip', 'warn' or 'error', not 'passed'"},
		{"a file that is missing", "name: t\npolicies: [none.yaml]\nresources: [objects]\nresults: []\n",
			"kyverno-test.yaml:1:1: policies[0]: open none.yaml: no such file or directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := maps.Clone(kyvernoFiles)
			files["kyverno-test.yaml"] = c.test
			dir := testutil.WriteFiles(t, files)
			var got []string
			s, err := Run(context.Background(), Options{Paths: []string{filepath.Join(dir, "kyverno-test.yaml")}})
			if err != nil {
				got = append(got, err.Error())
			} else {
				for _, r := range s.Results {
					got = append(got,
						strings.TrimSpace(fmt.Sprintf("%s %s %s", r.ID, r.Outcome, strings.Join(r.Problems, "; "))))
				}
			}
			all := strings.ReplaceAll(strings.ReplaceAll(strings.Join(got, "\n"), dir+"/", ""), "`", "'")
			if all != c.want {
				t.Errorf("got\n%s\nwant\n%s", all, c.want)
			}
		})
	}
}
