package vap

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/admissiontest"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
)

// policyOf makes a policy for deployments from the rest of its spec, bound with the actions.
func policyOf(t testing.TB, spec string, actions ...admissionv1.ValidationAction) *Policy {
	t.Helper()
	p := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatal(err)
	}
	if p.Spec.MatchConstraints == nil {
		p.Spec.MatchConstraints = &admissionv1.MatchResources{}
	}
	if len(p.Spec.MatchConstraints.ResourceRules) == 0 {
		p.Spec.MatchConstraints.ResourceRules = []admissionv1.NamedRuleWithOperations{
			{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{"*"},
				Rule: admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"},
					Resources: []string{"deployments"}},
			}}}
	}
	if len(actions) == 0 {
		actions = []admissionv1.ValidationAction{admissionv1.Deny}
	}
	b, errs := CompileBinding(&admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "b"},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "p", ValidationActions: actions},
	})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	compiled, errs := Compile(p, b)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return compiled
}

func run(t testing.TB, a *admission.Attributes, policies ...admission.Validator) *admission.Report {
	t.Helper()
	r := &admission.Report{}
	admission.NewChain(nil, policies).Validate(context.Background(), a, r)
	return r
}

// Compile compiles without states.
func Compile(p *admissionv1.ValidatingAdmissionPolicy, bindings ...*Binding) (*Policy, field.ErrorList) {
	return Compiler{}.Compile(p, bindings...)
}

const deployments = "/apis/apps/v1/namespaces/team-a/deployments"

func post(t *testing.T, object string) *admission.Attributes {
	t.Helper()
	return attributesOf(t, "POST", deployments, []byte(object), nil)
}

func denials(r *admission.Report) []string {
	var all []string
	for _, d := range r.Denials() {
		text := strings.TrimPrefix(d.Cause.Message, "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: ")
		if d.Cause.Field != "" {
			text = d.Cause.Field + ": " + text
		}
		all = append(all, fmt.Sprintf("%s: %s", d.Reason, text))
	}
	return all
}

// TestAllFailures: every validation that fails is reported, with its reason and field (VAL-1, VAL-2).
func TestAllFailures(t *testing.T) {
	p := policyOf(t, `
validations:
- {expression: object.spec.replicas <= 5, message: must be less than or equal to 5}
- {expression: "object.spec.paused == false", reason: Forbidden}
- {expression: "'team' in object.metadata.labels", messageExpression: "'label of ' + object.metadata.name"}
- {expression: object.metadata.name == 'web'}
`)
	r := run(t, post(t, `{"metadata":{"name":"web","labels":{}},"spec":{"replicas":9,"paused":true}}`), p)
	want := []string{
		"Invalid: spec.replicas: must be less than or equal to 5",
		"Forbidden: spec.paused: spec.paused: Invalid value: true: must be false",
		"Invalid: metadata.labels[team]: label of web",
	}
	if got := denials(r); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestSelectorOfPluralNamespaces: the labels of a custom resource with the plural 'namespaces' are not those of its
// namespace.
func TestSelectorOfPluralNamespaces(t *testing.T) {
	p := policyOf(t, `
matchConstraints:
  namespaceSelector: {matchLabels: {env: prod}}
  resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: [namespaces]}]
validations:
- {expression: "false", message: must not be}
`)
	lookup := (&admissiontest.Lookup{}).Add(`{apiVersion: v1, kind: Namespace, metadata: {name: team-a, labels: {env: prod}}}`)
	for _, c := range []struct {
		path, env string
		isDenied  bool
	}{
		{"/apis/bus.example.com/v1/namespaces/team-a/namespaces", "dev", true},
		{"/api/v1/namespaces", "dev", false},
		{"/api/v1/namespaces", "prod", true},
	} {
		a := attributesOf(t, "POST", c.path, []byte(`{"metadata":{"name":"x","labels":{"env":"`+c.env+`"}}}`), nil)
		a.Lookup = lookup
		if got := len(denials(run(t, a, p))) > 0; got != c.isDenied {
			t.Errorf("%s with labels of %s: denied %v", c.path, c.env, got)
		}
	}
}

// TestFailureMatrix: every way in which an expression can fail, with each failure policy, never
// lets a request pass that the policy would have to judge, nor refuses one that it has to let pass
// (hostile-input.md, fail matrix).
func TestFailureMatrix(t *testing.T) {
	many := `{"metadata":{"name":"web"},"spec":{"x":"a","l":[` + strings.TrimSuffix(strings.Repeat("1,", 5000), ",") +
		`]}}`
	costly := "object.spec.l.all(a, object.spec.l.all(b, a == b))"
	over := "validation failed due to running out of cost budget, no further validation rules will be run"
	// About 900,000 units each: eleven of them cannot be evaluated in the budget of ten million,
	// three not in the budget of match conditions.
	near := "object.spec.l.all(a, lists.range(175).all(b, b >= 0))"
	for _, c := range []struct {
		name, spec string
		expired    bool
		want       []string // with Fail
	}{
		{name: "error", spec: `validations: [{expression: object.spec.x < 5}]`,
			want: []string{"Invalid: spec.x: expression 'object.spec.x < 5' resulted in error: no such overload"}},
		{name: "limit of one expression", spec: `validations: [{expression: "` + costly + `"}]`,
			want: []string{"Invalid: expression '" + costly + "' resulted in error: operation cancelled: actual cost limit exceeded; shorten object.spec.l, which has 5000 items"}},
		{name: "shared budget", spec: "validations:\n" + strings.Repeat(`- {expression: "`+near+"\"}\n", 12),
			want: []string{"Invalid: " + over}},
		{name: "deadline", spec: `validations: [{expression: "` + costly + `"}]`, expired: true,
			want: []string{"Invalid: operation cancelled: the request was cancelled or its deadline has passed"}},
		{name: "match condition", spec: `
matchConditions: [{name: a, expression: "object.spec.missing == 1"}]
validations: [{expression: "false"}]`,
			want: []string{"Invalid: expression 'object.spec.missing == 1' resulted in error: no such key: missing"}},
		{name: "several match conditions", spec: `
matchConditions: [{name: a, expression: "object.spec.a == 1"}, {name: b, expression: "true"}, {name: c, expression: "object.spec.c == 1"}]
validations: [{expression: "false"}]`,
			want: []string{"Invalid: [expression 'object.spec.a == 1' resulted in error: no such key: a, expression 'object.spec.c == 1' resulted in error: no such key: c]"}},
		{name: "budget of match conditions", spec: "matchConditions:\n" + conditions(near, 4) +
			`validations: [{expression: "false"}]`, want: []string{"Invalid: " + over}},
		{name: "variable", spec: `
variables: [{name: v, expression: object.spec.missing}]
validations: [{expression: variables.v == 1}]`,
			want: []string{`Invalid: spec.missing: expression 'variables.v == 1' resulted in error: composited variable "v" fails to evaluate: no such key: missing`}},
		{name: "audit annotation", spec: `auditAnnotations: [{key: a, valueExpression: "string(object.spec.missing)"}]`,
			want: []string{"Invalid: expression 'string(object.spec.missing)' resulted in error: no such key: missing"}},
		{name: "namespace not known", spec: `
matchConstraints: {namespaceSelector: {matchLabels: {tier: prod}}}
validations: [{expression: "false"}]`,
			want: []string{"Invalid: ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: the labels of namespace 'team-a' are not known"}},
	} {
		for _, failure := range []string{"Fail", "Ignore"} {
			t.Run(c.name+"/"+failure, func(t *testing.T) {
				p := policyOf(t, "failurePolicy: "+failure+"\n"+c.spec)
				a := post(t, many)
				if c.expired {
					a.Frame.SetDeadline(time.Now().Add(-time.Second))
				}
				r := run(t, a, p)
				want := c.want
				if failure == "Ignore" {
					want = nil
					if len(r.IgnoredFailures()) == 0 {
						t.Error("nobody is told of the failure")
					}
				}
				if got := denials(r); !reflect.DeepEqual(got, want) {
					t.Errorf("got  %q\nwant %q", got, want)
				}
				for _, d := range r.Denials() {
					if !d.Failed {
						t.Errorf("%q is no failure", d.Cause.Message)
					}
				}
			})
		}
	}
}

func conditions(expression string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "- {name: c%d, expression: \"%s\"}\n", i, expression)
	}
	return b.String()
}

// TestMatchConditions: one that does not hold decides, whatever failed before.
func TestMatchConditions(t *testing.T) {
	p := policyOf(t, `
matchConditions: [{name: a, expression: "object.spec.missing == 1"}, {name: b, expression: "request.operation == 'UPDATE'"}]
validations: [{expression: "false"}]`)
	if got := denials(run(t, post(t, `{"spec":{}}`), p)); got != nil {
		t.Errorf("got %q", got)
	}
}

// TestActions: what each action of a binding does with a failed validation.
func TestActions(t *testing.T) {
	const spec = `validations: [{expression: "true"}, {expression: "false", message: "no"}]`
	for _, c := range []struct {
		actions                   []admissionv1.ValidationAction
		denied, warned, annotated bool
	}{
		{[]admissionv1.ValidationAction{"Deny"}, true, false, false},
		{[]admissionv1.ValidationAction{"Warn"}, false, true, false},
		{[]admissionv1.ValidationAction{"Audit"}, false, false, true},
		{[]admissionv1.ValidationAction{"Deny", "Audit"}, true, false, true},
		{[]admissionv1.ValidationAction{"Warn", "Audit"}, false, true, true},
	} {
		r := run(t, post(t, `{}`), policyOf(t, spec, c.actions...))
		if len(r.Denials()) > 0 != c.denied {
			t.Errorf("%v: denials %v", c.actions, r.Denials())
		}
		if warned := reflect.DeepEqual(r.Warnings(),
			[]string{"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': no"}); warned != c.warned {
			t.Errorf("%v: warnings %v", c.actions, r.Warnings())
		}
		var want []admission.Annotation
		if c.annotated {
			want = []admission.Annotation{{Key: "validation.policy.admission.k8s.io/validation_failure",
				Value: fmt.Sprintf(`[{"message":"no","policy":"p","binding":"b","expressionIndex":1,"validationActions":["%s"]}]`, strings.Join(strs(c.actions), `","`))}}
		}
		if got := r.Annotations(); !reflect.DeepEqual(got, want) {
			t.Errorf("%v: annotations %v", c.actions, got)
		}
	}
}

func strs[T ~string](from []T) []string {
	var to []string
	for _, s := range from {
		to = append(to, string(s))
	}
	return to
}

// TestAuditAnnotations: strings are noted, null and blanks are not, whatever the verdict.
func TestAuditAnnotations(t *testing.T) {
	r := run(t, post(t, `{"spec":{"replicas":3}}`), policyOf(t, `
validations: [{expression: "false"}]
auditAnnotations:
- {key: replicas, valueExpression: "' ' + string(object.spec.replicas)"}
- {key: none, valueExpression: "null"}
- {key: blank, valueExpression: "'  '"}
`))
	want := []admission.Annotation{{Key: "p/replicas", Value: "3"}}
	if got := r.Annotations(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

// TestMessages: the order in which a message is looked for.
func TestMessages(t *testing.T) {
	long := strings.Repeat("x", cel.MaxMessageBytes+1)
	object := `{"metadata":{"name":"web"},"long":"` + long + `","lines":"a\nb"}`
	for _, c := range []struct{ message, expression, want string }{
		{"", "", "failed expression: 1 == 2"},
		{"  static  ", "", "static"},
		{"static", "' computed '", "computed"},
		{"static", "'  '", "static"},
		{"static", "object.missing", "static"},
		{"static", "object.long", "static"},
		{"static", "object.lines", "static"},
		{"", "object.missing", "failed expression: 1 == 2"},
	} {
		expression := c.expression
		if expression != "" {
			expression = fmt.Sprintf("messageExpression: \"string(%s)\"", expression)
		}
		p := policyOf(t, fmt.Sprintf("validations:\n- expression: ' 1 == 2 '\n  message: '%s'\n  %s\n", c.message,
			expression))
		if got := denials(run(t, post(t, object), p)); !reflect.DeepEqual(got, []string{"Invalid: " + c.want}) {
			t.Errorf("%+v: got %.200q", c, got)
		}
	}
}

// TestMatch: which requests a policy matches.
func TestMatch(t *testing.T) {
	const rules = `
matchConstraints:
  matchPolicy: Exact
  resourceRules:
  - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments, deployments/scale]}
  - {apiGroups: [""], apiVersions: ["*"], operations: ["*"], resources: ["*/status"]}
  - {apiGroups: [batch], apiVersions: [v1], operations: [CREATE], resources: [jobs], resourceNames: [nightly]}
  - {apiGroups: [rbac.authorization.k8s.io], apiVersions: [v1], operations: [CREATE], resources: ["*"], scope: Cluster}
  - {apiGroups: [policy], apiVersions: [v1], operations: [CREATE], resources: ["*"], scope: Namespaced}
  excludeResourceRules:
  - {apiGroups: [apps], apiVersions: [v1], operations: ["*"], resources: [deployments], resourceNames: [exempt]}
validations: [{expression: "false"}]`
	exact := policyOf(t, rules)
	equivalent := policyOf(t, strings.Replace(rules, "Exact", "Equivalent", 1))
	for _, c := range []struct {
		method, path, object string
		exact, equivalent    bool
	}{
		{"POST", deployments, `{"metadata":{"name":"web"}}`, true, true},
		{"PUT", deployments + "/web", `{}`, true, true},
		{"DELETE", deployments + "/web", ``, false, false},
		{"POST", deployments, `{"metadata":{"name":"exempt"}}`, false, false},
		{"PUT", deployments + "/exempt", `{"metadata":{"name":"web"}}`, false, false},
		{"PUT", deployments + "/exempt/scale", `{}`, true, true},
		{"PUT", deployments + "/web/scale", `{}`, true, true},
		{"PUT", deployments + "/web/status", `{}`, false, false},
		// v1 is not known to be its equivalent
		{"POST", "/apis/apps/v1beta1/namespaces/team-a/deployments", `{}`, false, false},
		{"POST", "/apis/extensions/v1/namespaces/team-a/deployments", `{}`, false, false},
		{"PUT", "/api/v1/namespaces/team-a/pods/web/status", `{}`, true, true},
		{"PUT", "/api/v2/nodes/n1/status", `{}`, true, true},
		{"PUT", "/api/v1/namespaces/team-a/pods/web", `{}`, false, false},
		{"POST", "/apis/batch/v1/namespaces/team-a/jobs", `{"metadata":{"name":"nightly"}}`, true, true},
		{"POST", "/apis/batch/v1/namespaces/team-a/jobs", `{"metadata":{"name":"hourly"}}`, false, false},
		{"POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", `{}`, true, true},
		{"POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/team-a/roles", `{}`, false, false},
		{"POST", "/apis/policy/v1/namespaces/team-a/poddisruptionbudgets", `{}`, true, true},
		{"POST", "/apis/policy/v1/podsecuritypolicies", `{}`, false, false},
	} {
		object := []byte(c.object)
		if c.object == "" {
			object = nil
		}
		a := attributesOf(t, c.method, c.path, object, nil)
		if got := len(run(t, a, exact).Denials()) > 0; got != c.exact {
			t.Errorf("%s %s %s, Exact: got %v", c.method, c.path, c.object, got)
		}
		if got := len(run(t, a, equivalent).Denials()) > 0; got != c.equivalent {
			t.Errorf("%s %s %s, Equivalent: got %v", c.method, c.path, c.object, got)
		}
	}
}

// TestSelectors: labels of the object, of the stored object, and of the namespace.
func TestSelectors(t *testing.T) {
	objects := policyOf(t, `
matchConstraints: {objectSelector: {matchLabels: {team: a}, matchExpressions: [{key: exempt, operator: DoesNotExist}]}}
validations: [{expression: "false"}]`)
	byName := policyOf(t, `
matchConstraints: {namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [team-b]}]}}
validations: [{expression: "false"}]`)
	byTier := policyOf(t, `
matchConstraints: {namespaceSelector: {matchLabels: {tier: prod}}}
validations: [{expression: "false"}]`)
	namespaces := policyOf(t, `
matchConstraints:
  namespaceSelector: {matchLabels: {tier: prod}}
  resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [namespaces, nodes]}]
validations: [{expression: "false"}]`)
	const nodes, ns = "/api/v1/nodes", "/api/v1/namespaces"
	for i, c := range []struct {
		policy                       *Policy
		method, path                 string
		object, old, namespaceObject string
		want                         bool
	}{
		{objects, "POST", deployments, `{"metadata":{"labels":{"team":"a"}}}`, ``, ``, true},
		{objects, "POST", deployments, `{"metadata":{"labels":{"team":"b"}}}`, ``, ``, false},
		{objects, "POST", deployments, `{"metadata":{"labels":{"team":"a","exempt":""}}}`, ``, ``, false},
		{objects, "POST", deployments, `{"metadata":{}}`, ``, ``, false},
		{objects, "PUT", deployments + "/w", `{"metadata":{"labels":{"team":"b"}}}`,
			`{"metadata":{"labels":{"team":"a"}}}`, ``, true},
		{objects, "DELETE", deployments + "/w", ``, `{"metadata":{"labels":{"team":"a"}}}`, ``, true},
		{byName, "POST", deployments, `{}`, ``, ``, true},
		{byName, "POST", strings.Replace(deployments, "team-a", "team-b", 1), `{}`, ``, ``, false},
		{byTier, "POST", deployments, `{}`, ``, `{"metadata":{"labels":{"tier":"prod"}}}`, true},
		{byTier, "POST", deployments, `{}`, ``, `{"metadata":{"labels":{"tier":"test"}}}`, false},
		{namespaces, "POST", nodes, `{}`, ``, ``, true},
		{namespaces, "POST", ns, `{"metadata":{"name":"x","labels":{"tier":"prod"}}}`, ``, ``, true},
		{namespaces, "POST", ns, `{"metadata":{"name":"x"}}`, ``, ``, false},
		{namespaces, "DELETE", ns + "/x", ``, `{"metadata":{"labels":{"tier":"prod"}}}`, ``, true},
	} {
		raw := func(s string) []byte {
			if s == "" {
				return nil
			}
			return []byte(s)
		}
		a := attributesOf(t, c.method, c.path, raw(c.object), raw(c.old))
		if c.namespaceObject != "" {
			d, err := document.Parse([]byte(c.namespaceObject), document.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Release()
			a.NamespaceObject = d.Root()
		}
		r := run(t, a, c.policy)
		got := len(r.Denials()) > 0
		if got && r.Denials()[0].Failed {
			t.Errorf("case %d failed: %v", i, r.Denials())
		}
		if got != c.want {
			t.Errorf("case %d: got %v", i, got)
		}
	}
}

// TestBindings: each binding narrows the policy for itself, and one that matches is enough.
func TestBindings(t *testing.T) {
	p := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	p.Spec.MatchConstraints = &admissionv1.MatchResources{
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{"*"},
			Rule: admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"},
				Resources: []string{"deployments"}},
		}}}}
	p.Spec.Validations = []admissionv1.Validation{{Expression: "false", Message: "no"}}
	binding := func(name, namespace string, action admissionv1.ValidationAction) *Binding {
		b, errs := CompileBinding(&admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "p",
				ValidationActions: []admissionv1.ValidationAction{action},
				MatchResources: &admissionv1.MatchResources{
					NamespaceSelector: &metav1.LabelSelector{
						MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}}}},
		})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return b
	}
	compiled, errs := Compile(p, binding("deny-a", "team-a", "Deny"), binding("warn-a", "team-a", "Warn"),
		binding("deny-b", "team-b", "Deny"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	r := run(t, post(t, `{}`), compiled)
	if len(r.Denials()) != 1 || r.Denials()[0].Binding != "deny-a" || len(r.Warnings()) != 1 ||
		!strings.Contains(r.Warnings()[0], "'warn-a'") {
		t.Errorf("denials %v, warnings %v", r.Denials(), r.Warnings())
	}
	unbound, errs := Compile(p)
	if len(errs) > 0 || len(unbound.Rules()) != 0 {
		t.Errorf("a policy without bindings: %v, %v", unbound, errs)
	}
}

// TestFindings: what is refused here and not by Kubernetes, and that all findings are reported at once.
func TestFindings(t *testing.T) {
	p := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	p.Spec.ParamKind = &admissionv1.ParamKind{APIVersion: "v1", Kind: "Config Map"}
	p.Spec.FailurePolicy = ptr.To(admissionv1.FailurePolicyType("Maybe"))
	p.Spec.MatchConstraints = &admissionv1.MatchResources{
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{"CREATE"},
			Rule: admissionv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"v1"},
				Resources: []string{"*", "pods"}},
		}}},
		ObjectSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}},
	}
	p.Spec.MatchConditions = []admissionv1.MatchCondition{{Name: "a b", Expression: "variables.x"},
		{Name: "", Expression: ""}}
	p.Spec.Variables = []admissionv1.Variable{{Name: "x", Expression: "1 +"},
		{Name: "x y", Expression: "authorizer.path('/x').check('get').allowed()"}}
	p.Spec.Validations = []admissionv1.Validation{{Expression: "params.x == variables.x", Message: "a\nb",
		MessageExpression: "params"}, {Expression: "object.x ="}}
	p.Spec.AuditAnnotations = []admissionv1.AuditAnnotation{{Key: "a", ValueExpression: ""}}
	_, errs := Compile(p)
	var got []string
	for _, err := range errs {
		got = append(got, err.Field)
	}
	want := []string{
		"spec.failurePolicy", "spec.paramKind.kind",
		"spec.matchConstraints.objectSelector.matchExpressions[0].operator",
		"spec.matchConstraints.resourceRules[0].resources",
		"spec.matchConditions[0].name", "spec.matchConditions[1].expression", "spec.matchConditions[1].name",
		"spec.variables[1].name", "spec.validations[0].message", "spec.auditAnnotations[0].valueExpression",
		"spec.matchConstraints.objectSelector", "spec.matchConditions[0].expression", "spec.variables[0].expression",
		"spec.validations[0].messageExpression", "spec.validations[1].expression",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q\n%v", got, want, errs)
	}
	_, errs = CompileBinding(
		&admissionv1.ValidatingAdmissionPolicyBinding{Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: "Not A Name", ParamRef: &admissionv1.ParamRef{Name: "x"},
		}})
	got = nil
	for _, err := range errs {
		got = append(got, err.Field)
	}
	if want := []string{"spec.policyName", "spec.validationActions",
		"spec.paramRef.parameterNotFoundAction"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
}

// TestNeedsOld: when the stored object has to be fetched.
func TestNeedsOld(t *testing.T) {
	for spec, want := range map[string]bool{
		`validations: [{expression: "object.x == 1"}]`:                                                                                            false,
		`validations: [{expression: "oldObject == null || object.x == oldObject.x"}]`:                                                             true,
		`validations: [{expression: "false", messageExpression: "string(oldObject.x)"}]`:                                                          true,
		"variables: [{name: o, expression: oldObject}]\nvalidations: [{expression: \"variables.o == null\"}]":                                     true,
		"matchConditions: [{name: c, expression: oldObject != null}]\nvalidations: [{expression: \"true\"}]":                                      true,
		`auditAnnotations: [{key: a, valueExpression: "string(oldObject.x)"}]`:                                                                    true,
		"matchConstraints: {objectSelector: {matchLabels: {a: b}}}\nvalidations: [{expression: \"true\"}]":                                        true,
		"matchConstraints: {namespaceSelector: {matchLabels: {a: b}}, objectSelector: {}}\nvalidations: [{expression: \"object != oldObject2\"}]": false,
	} {
		spec = strings.Replace(spec, "object != oldObject2", "object != null", 1)
		if got := policyOf(t, spec).NeedsOld(); got != want {
			t.Errorf("%s: got %v", spec, got)
		}
	}
}

// TestConcurrent: one policy serves many requests at once.
func TestConcurrent(t *testing.T) {
	p := policyOf(t, `
variables: [{name: names, expression: "object.spec.containers.map(c, c.name)"}]
validations: [{expression: "variables.names.all(n, n.startsWith(object.metadata.name))", messageExpression: "'not ' + object.metadata.name"}]`)
	done := make(chan error)
	for g := range 4 {
		go func() {
			var failed error
			for i := range 200 {
				name := fmt.Sprintf("n%d-%d", g, i)
				a := attributesOf(t, "POST", deployments, []byte(fmt.Sprintf(`{"metadata":{"name":"%s"},"spec":{"containers":[{"name":"%s-a"},{"name":"x"}]}}`, name, name)), nil)
				got := denials(run(t, a, p))
				if want := []string{"Invalid: spec.containers: not " + name}; !reflect.DeepEqual(got, want) {
					failed = errors.Join(failed, fmt.Errorf("got %q", got))
				}
			}
			done <- failed
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// BenchmarkPolicy admits an object of 1.3 KB by one policy of five validations.
func BenchmarkPolicy(b *testing.B) {
	p := policyOf(b, `
validations:
- {expression: object.spec.replicas <= 10}
- {expression: "object.spec.template.spec.containers.all(c, c.image.startsWith('registry.example.com/'))"}
- {expression: "has(object.metadata.labels.team) && object.metadata.labels.team in ['a', 'b', 'c']"}
- {expression: "object.spec.template.spec.containers.all(c, has(c.resources.limits) && has(c.resources.limits.memory))"}
- {expression: "object.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && size(object.metadata.name) <= 63"}`)
	chain := admission.NewChain(nil, []admission.Validator{p})
	d, err := document.Parse([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"payments","namespace":"team-a","labels":{"app":"payments","team":"a"}},"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"server","image":"registry.example.com/payments/server:1.4.2","resources":{"limits":{"cpu":"500m","memory":"512Mi"}}},{"name":"proxy","image":"registry.example.com/mesh/proxy:2.1.0","resources":{"limits":{"cpu":"100m","memory":"128Mi"}}}]}}}}`), document.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Release()
	a := admission.Attributes{Info: info(), Operation: admission.Create, Object: d}
	var r admission.Report
	b.ReportAllocs()
	for b.Loop() {
		a.Frame = cel.NewFrame(context.Background())
		chain.Validate(context.Background(), &a, &r)
		a.Frame.Release()
		if len(r.Denials()) > 0 {
			b.Fatal(r.Denials())
		}
	}
}
