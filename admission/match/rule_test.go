package match

import (
	"reflect"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/admission"
)

// TestIndexRules: the rules that constraints give a chain, so that it need not ask the policy.
func TestIndexRules(t *testing.T) {
	for _, c := range []struct {
		constraints string
		want        []admission.Rule
	}{
		{`resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments, deployments/scale]}]`,
			[]admission.Rule{{Group: "apps", Resource: "deployments", Subresources: []string{""}, Operations: 3},
				{Group: "apps", Resource: "deployments", Subresources: []string{"scale"}, Operations: 3}}},
		{`{matchPolicy: Exact, resourceRules: [{apiGroups: [apps, batch], apiVersions: [v1, v2], operations: ["*"], resources: ["*/status"]}]}`,
			[]admission.Rule{
				{Group: "apps", Resource: "*", Subresources: []string{"status"}, Operations: 15,
					Versions: []string{"v1", "v2"}},
				{Group: "batch", Resource: "*", Subresources: []string{"status"}, Operations: 15,
					Versions: []string{"v1", "v2"}},
			}},
		{`{matchPolicy: Exact, resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [DELETE], resources: ["*"]}]}`,
			[]admission.Rule{{Group: "*", Resource: "*", Subresources: []string{""}, Operations: 4}}},
		{`resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [events]}]`,
			[]admission.Rule{{Group: "", Resource: "events", Subresources: []string{""}, Operations: 1},
				{Group: "events.k8s.io", Resource: "events", Subresources: []string{""}, Operations: 1}}},
		{`{}`, []admission.Rule{{Group: "*", Resource: "*", Operations: 15}}},
		{`namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: team-a}}`,
			[]admission.Rule{{Group: "*", Resource: "*", Operations: 15, Namespaces: []string{"team-a"}}}},
		{`namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: Exists}, {key: kubernetes.io/metadata.name, operator: In, values: [team-a, team-b]}]}`,
			[]admission.Rule{{Group: "*", Resource: "*", Operations: 15, Namespaces: []string{"team-a", "team-b"}}}},
		{`namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [team-a]}]}`,
			[]admission.Rule{{Group: "*", Resource: "*", Operations: 15}}},
		{`namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: team-a, tier: prod}}`,
			// which labels a namespace has is not known here
			[]admission.Rule{{Group: "*", Resource: "*", Operations: 15}}},
		{`objectSelector: {matchLabels: {tier: prod, app: web}}`,
			[]admission.Rule{{Group: "*", Resource: "*", Operations: 15,
				Labels: []admission.Label{{Key: "app", Value: "web"}}}}},
		{`objectSelector: {matchExpressions: [{key: a, operator: DoesNotExist}, {key: app, operator: In, values: [web, db]}]}`,
			[]admission.Rule{{Group: "*", Resource: "*", Operations: 15,
				Labels: []admission.Label{{Key: "app", Value: "web"}, {Key: "app", Value: "db"}}}}},
		{`objectSelector: {matchExpressions: [{key: app, operator: NotIn, values: [web]}]}`,
			[]admission.Rule{{Group: "*", Resource: "*", Operations: 15}}},
	} {
		m := &admissionv1.MatchResources{}
		if err := yaml.UnmarshalStrict([]byte(c.constraints), m); err != nil {
			t.Fatal(err)
		}
		if got := IndexRules(m); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", c.constraints, got, c.want)
		}
	}
}
