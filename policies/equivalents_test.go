package policies

import (
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestUnconvertible: check warns of policies for versions that only a conversion webhook could
// convert to.
func TestUnconvertible(t *testing.T) {
	definition := func(conversion string) string {
		return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
` + conversion + `  versions:
  - {name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v2, served: true, storage: false, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v3, served: true, storage: false, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`
	}
	const webhook = "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://example.com'}}}\n"
	policy := func(match string) string {
		return `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints: ` + match + `
  validations: [{expression: "true"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: p}
spec: {policyName: p, validationActions: [Deny]}
`
	}
	rule := func(versions string) string {
		return "{apiGroups: [example.com], apiVersions: " + versions + ", operations: [CREATE], resources: [widgets]}"
	}
	const warned = "p.yaml:5: spec.matchConstraints.resourceRules[0].apiVersions: warning: requests for 'widgets.example.com' in version 'v2', 'v3' go by `failurePolicy`: " +
		"the gateway cannot convert them to a version that is named here, as only a webhook could; name every version, or set `matchPolicy: Exact`\n"
	for about, c := range map[string]struct{ conversion, match, want string }{
		"one version":            {webhook, "{resourceRules: [" + rule("[v1]") + "]}", warned},
		"a status":               {webhook, "{resourceRules: [{apiGroups: ['*'], apiVersions: [v1], operations: [CREATE], resources: [widgets/status]}]}", warned},
		"all versions":           {webhook, "{resourceRules: [" + rule("['*']") + "]}", ""},
		"all versions, by rules": {webhook, "{resourceRules: [" + rule("[v1, v3]") + ", " + rule("[v2]") + "]}", ""},
		"exactly":                {webhook, "{matchPolicy: Exact, resourceRules: [" + rule("[v1]") + "]}", ""},
		"another resource":       {webhook, "{resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}", ""},
		"no conversion":          {"", "{resourceRules: [" + rule("[v1]") + "]}", ""},
	} {
		t.Run(about, func(t *testing.T) {
			dir := testutil.WriteFiles(t,
				map[string]string{"crd.yaml": definition(c.conversion), "p.yaml": policy(c.match)})
			if got := text(dir, CheckFor([]string{dir},
				Gateway{Routes: []Route{{PathPrefix: "/", Upstream: "server", Kubernetes: true}}})); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
