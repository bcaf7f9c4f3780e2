package vap

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/admissiontest"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/status"
)

// bound compiles a policy for deployments from the rest of its spec, with the specs of its
// bindings.
func bound(t *testing.T, spec string, bindings ...string) *Policy {
	t.Helper()
	p := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatal(err)
	}
	if p.Spec.MatchConstraints == nil {
		p.Spec.MatchConstraints = &admissionv1.MatchResources{}
	}
	p.Spec.MatchConstraints.ResourceRules = []admissionv1.NamedRuleWithOperations{
		{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{"*"},
			Rule: admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"},
				Resources: []string{"deployments"}},
		}}}
	var compiled []*Binding
	for i, text := range bindings {
		b := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("b%d", i)}}
		if err := yaml.UnmarshalStrict([]byte("policyName: p\nvalidationActions: [Deny]\n"+text), &b.Spec); err != nil {
			t.Fatal(err)
		}
		c, errs := CompileBinding(b)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		compiled = append(compiled, c)
	}
	policy, errs := Compiler{States: []string{"quotas", "missing"}}.Compile(p, compiled...)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return policy
}

func findings(r *admission.Report) string {
	var all []string
	for _, d := range r.Denials() {
		all = append(all, strings.TrimPrefix(d.Cause.Message, "ValidatingAdmissionPolicy 'p' "))
	}
	for _, i := range r.IgnoredFailures() {
		all = append(all, "ignored: "+i.Err.Error())
	}
	return strings.Join(all, "\n")
}

const limits = `
paramKind: {apiVersion: v1, kind: ConfigMap}
validations: [{expression: object.spec.replicas <= int(params.data.max), messageExpression: "'at most ' + params.data.max + ' by ' + params.metadata.name"}]
`

func configMaps() *admissiontest.Lookup {
	return (&admissiontest.Lookup{}).
		Add("{apiVersion: v1, kind: ConfigMap, metadata: {name: five, namespace: team-a, labels: {use: limits}}, data: {max: '5'}}").
		Add("{apiVersion: v1, kind: ConfigMap, metadata: {name: nine, namespace: team-a, labels: {use: limits}}, data: {max: '9'}}").
		Add("{apiVersion: v1, kind: ConfigMap, metadata: {name: broken, namespace: team-a}, data: {max: SECRET}}").
		Add("{apiVersion: v1, kind: ConfigMap, metadata: {name: seven, namespace: shared}, data: {max: '7'}}")
}

// TestParams: a policy is evaluated once for each parameter of each binding, and all of them have to pass.
func TestParams(t *testing.T) {
	const object = `{"spec":{"replicas":8}}`
	for _, c := range []struct {
		name     string
		spec     string
		bindings []string
		want     string
	}{
		{"by name", limits, []string{"paramRef: {name: five, parameterNotFoundAction: Deny}"},
			"with binding 'b0' denied request: at most 5 by five"},
		{"by name, elsewhere", limits,
			[]string{"paramRef: {name: seven, namespace: shared, parameterNotFoundAction: Deny}"},
			"with binding 'b0' denied request: at most 7 by seven"},
		{"by labels", limits, []string{"paramRef: {selector: {matchLabels: {use: limits}}, parameterNotFoundAction: Deny}"}, "with binding 'b0' denied request: at most 5 by five"},
		{"several bindings", limits, []string{"paramRef: {name: nine, parameterNotFoundAction: Deny}",
			"paramRef: {name: five, parameterNotFoundAction: Deny}",
			"paramRef: {name: five, parameterNotFoundAction: Deny}"},
			"with binding 'b1' denied request: at most 5 by five\nwith binding 'b2' denied request: at most 5 by five"},
		{"none, which is allowed", limits, []string{"paramRef: {name: none, parameterNotFoundAction: Allow}"}, ""},
		{"none, which is not", limits, []string{"paramRef: {name: none, parameterNotFoundAction: Deny}"},
			"with binding 'b0' denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"},
		{"none, which is not, but failures are ignored", "failurePolicy: Ignore\n" + limits,
			[]string{"paramRef: {name: none, parameterNotFoundAction: Deny}"},
			"ignored: no params found for policy binding with `Deny` parameterNotFoundAction"},
		{"no reference", "paramKind: {apiVersion: v1, kind: ConfigMap}\nvalidations: [{expression: params == null}]", []string{""}, ""},
		{"conditions see them", limits + "matchConditions: [{name: m, expression: params.data.max != '5'}]",
			[]string{"paramRef: {selector: {matchLabels: {use: limits}}, parameterNotFoundAction: Deny}"}, ""},
		{"ERR-7: errors do not show them",
			limits + "variables: [{name: v, expression: \"quantity(params.data.max)\"}]\n",
			[]string{"paramRef: {name: broken, parameterNotFoundAction: Deny}"},
			"with binding 'b0' denied request: expression 'object.spec.replicas <= int(params.data.max)' resulted in error: type conversion error from 'string' to 'int'"},
	} {
		a := post(t, object)
		a.Lookup = configMaps()
		if got := findings(run(t, a, bound(t, c.spec, c.bindings...))); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// TestParamsShareNothing: each parameter has a budget of its own.
func TestParamsShareNothing(t *testing.T) {
	a := post(t, `{"spec":{"replicas":1}}`)
	a.Lookup = configMaps()
	evaluate := func(n int, ref string) {
		validation := "{expression: \"lists.range(50000).all(x, x >= 0) && int(params.data.max) > 0\"}"
		spec := "paramKind: {apiVersion: v1, kind: ConfigMap}\nvalidations: [" +
			strings.TrimSuffix(strings.Repeat(validation+", ", n), ", ") + "]"
		if got := findings(run(t, a, bound(t, spec, "paramRef: {"+ref+", parameterNotFoundAction: Deny}"))); got != "" {
			t.Errorf("%s: denied: %s", ref, got)
		}
	}
	evaluate(1, "name: five")
	one := cel.PolicyBudget - a.Frame.Budget()
	for _, ref := range []string{"name: five", "selector: {matchLabels: {use: limits}}"} {
		evaluate(int(cel.PolicyBudget/one)*2/3, ref)
		if left := a.Frame.Budget(); left > cel.PolicyBudget/2 {
			t.Errorf("%s: %d units are left: two parameters would do with one budget", ref, left)
		}
	}
}

const namespaceA = "{apiVersion: v1, kind: Namespace, metadata: {name: team-a, labels: {tier: prod}}}"

// TestNamespaceObject: the namespace is looked up for policies that read it, and only then.
func TestNamespaceObject(t *testing.T) {
	const reads = "validations: [{expression: namespaceObject.metadata.labels.tier == 'test', message: by namespace}]"
	down := errors.New("the Namespace 'team-a' cannot be read: the backend cannot be reached")
	for _, c := range []struct {
		name   string
		spec   string
		lookup *admissiontest.Lookup
		asked  int
		want   string
	}{
		{"read", reads, (&admissiontest.Lookup{}).Add(namespaceA), 1, "with binding 'b0' denied request: by namespace"},
		{"not read", "validations: [{expression: object.spec.replicas > 5, message: small}]",
			(&admissiontest.Lookup{}).Add(namespaceA), 0, "with binding 'b0' denied request: small"},
		{"not reached", reads + "\nmatchConditions: [{name: m, expression: 'false'}]",
			(&admissiontest.Lookup{Err: down}), 0, ""},
		{"match conditions do not see it", "matchConditions: [{name: m, expression: namespaceObject == null}]\nvalidations: [{expression: 'false', message: matched}]",
			(&admissiontest.Lookup{}).Add(namespaceA), 0, "with binding 'b0' denied request: matched"},
		{"cannot be read", reads, &admissiontest.Lookup{Err: down}, 1,
			"with binding 'b0' denied request: failed to configure binding: " + down.Error()},
		{"cannot be read, ignored", "failurePolicy: Ignore\n" + reads, &admissiontest.Lookup{Err: down}, 1,
			"ignored: " + down.Error()},
	} {
		a := post(t, `{"spec":{"replicas":1}}`)
		a.Lookup = c.lookup
		got := findings(run(t, a, bound(t, c.spec, "")))
		if got != c.want || c.lookup.Asked != c.asked {
			t.Errorf("%s: after %d questions\n%s\nwant\n%s", c.name, c.lookup.Asked, got, c.want)
		}
	}
	// That it does not exist is the answer, as it is in Kubernetes whatever the failure policy.
	for _, failure := range []string{"Fail", "Ignore"} {
		a := post(t, `{"spec":{"replicas":1}}`)
		a.Lookup = &admissiontest.Lookup{}
		r := run(t, a, bound(t, "failurePolicy: "+failure+"\n"+reads, ""))
		if err := r.Err(a); err == nil || status.From(err).ErrStatus.Code != 404 ||
			status.From(err).ErrStatus.Message != `namespaces "team-a" not found` {
			t.Errorf("%s: answered %v", failure, err)
		}
	}
	// A namespace is in none.
	a := attributesOf(t, "PUT", "/api/v1/namespaces/team-a", []byte(`{"metadata":{"name":"team-a"}}`), nil)
	a.Lookup = (&admissiontest.Lookup{}).Add(namespaceA)
	p := policyOf(t, "matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [namespaces]}]}\n"+
		"validations: [{expression: namespaceObject != null, message: none}]")
	if got := findings(run(t, a, p)); got != "with binding 'b' denied request: none" {
		t.Errorf("of a namespace: %s", got)
	}
}

// TestState: state reads as it is, fails or leaves the policy out.
func TestState(t *testing.T) {
	known := map[string][]document.Node{"quotas": {admissiontest.Parse("{metadata: {name: q}, max: 5}").Root()}}
	for _, c := range []struct {
		name string
		spec string
		skip bool
		want string
	}{
		{"read", "validations: [{expression: 'state.quotas.all(q, object.spec.replicas <= q.max)', message: over quota}]", false, "with binding 'b0' denied request: over quota"},
		{"in conditions", "matchConditions: [{name: m, expression: 'state.quotas.size() == 0'}]\nvalidations: [{expression: 'false'}]", false, ""},
		{"in variables", "variables: [{name: m, expression: 'state.quotas[0].max'}]\nvalidations: [{expression: object.spec.replicas <= variables.m, message: over quota}]", false, "with binding 'b0' denied request: over quota"},
		{"missing", "validations: [{expression: state.missing.size() == 0}]", false,
			"with binding 'b0' denied request: expression 'state.missing.size() == 0' resulted in error: the state 'missing' is not known"},
		{"missing, ignored", "failurePolicy: Ignore\nvalidations: [{expression: state.missing.size() == 0}]", false,
			"ignored: expression 'state.missing.size() == 0' resulted in error: the state 'missing' is not known"},
		{"missing, skipped", "validations: [{expression: 'false'}, {expression: state.missing.size() == 0}]", true,
			"ignored: the policy is left out, because a state that it reads is not known"},
		{"missing in a condition, skipped", "matchConditions: [{name: m, expression: state.missing.size() == 0}]\nvalidations: [{expression: 'false'}]", true,
			"ignored: the policy is left out, because a state that it reads is not known"},
		{"missing in an annotation, skipped", "validations: [{expression: 'false'}]\nauditAnnotations: [{key: k, valueExpression: string(state.missing.size())}]", true,
			"ignored: the policy is left out, because a state that it reads is not known"},
		{"missing in a message, skipped", "validations: [{expression: 'false', message: static, messageExpression: string(state.missing.size())}]", true, "with binding 'b0' denied request: static"},
	} {
		a := post(t, `{"spec":{"replicas":9}}`)
		a.Lookup = &admissiontest.Lookup{Known: known, Skip: c.skip}
		if got := findings(run(t, a, bound(t, c.spec, ""))); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// TestEquivalent: a policy sees the version that its rules name.
func TestEquivalent(t *testing.T) {
	const spec = "validations: [{expression: \"object.apiVersion == 'apps/v1' && request.resource.version == 'v1' && request.requestResource.version == 'v2' && request.kind.kind == 'Deployment' && " +
		"request.requestKind.version == 'v2' && oldObject.apiVersion == 'apps/v1'\"}, {expression: 'false', message: seen}]"
	attributes := func(l *admissiontest.Lookup) *admission.Attributes {
		l.Others = []schema.GroupVersionResource{{Group: "apps", Version: "v1", Resource: "deployments"}}
		a := attributesOf(t, "PUT", strings.Replace(deployments, "v1", "v2", 1)+"/web",
			[]byte(`{"apiVersion":"apps/v2","kind":"Deployment"}`),
			[]byte(`{"apiVersion":"apps/v2","kind":"Deployment"}`))
		a.Lookup = l
		return a
	}
	a := attributes(&admissiontest.Lookup{})
	if got := findings(run(t, a,
		bound(t, spec, "",
			""))); got != "with binding 'b0' denied request: seen\nwith binding 'b1' denied request: seen" {
		t.Errorf("converted: %s", got)
	}
	if n, _ := a.Object.Root().Get("apiVersion"); n.Str() != "apps/v2" {
		t.Error("the object itself was converted")
	}
	if got := findings(run(t, attributes(&admissiontest.Lookup{}),
		bound(t, "matchConstraints: {matchPolicy: Exact}\n"+spec, ""))); got != "" {
		t.Errorf("Exact: %s", got)
	}
	inconvertible := &admissiontest.Lookup{
		Inconvertible: errors.New("'deployments.apps' cannot be converted from version 'v2' to 'v1'")}
	want := "with binding 'b0' denied request: failed to configure binding: failed to convert object version: 'deployments.apps' cannot be converted from version 'v2' to 'v1'"
	if got := findings(run(t, attributes(inconvertible), bound(t, spec, ""))); got != want {
		t.Errorf("inconvertible: %s", got)
	}
	// What a policy converted, the next one does not see.
	other := policyOf(t, "matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v2], operations: ['*'], resources: [deployments]}]}\n"+
		"validations: [{expression: \"object.apiVersion == 'apps/v1'\", message: as it came}]")
	if got := findings(run(t, attributes(&admissiontest.Lookup{}), bound(t, spec, ""), other)); !strings.HasSuffix(got,
		"denied request: as it came") {
		t.Errorf("the next policy: %s", got)
	}
}
