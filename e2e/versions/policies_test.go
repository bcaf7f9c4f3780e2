package versions

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	"k8s.io/kubernetes/pkg/apis/admissionregistration/validation"

	"github.com/admission-gateway/gateway/policies"
)

// A maker makes random policies and bindings. Most of what it makes is valid.
type maker struct{ random *rand.Rand }

// of is one of the choices: mostly the first.
func (m *maker) of(choices ...any) any {
	if m.random.Intn(12) != 0 {
		return choices[0]
	}
	return choices[m.random.Intn(len(choices))]
}

// some are up to most of the choices, which may repeat.
func (m *maker) some(most int, choices ...any) []any {
	all := []any{}
	for range m.random.Intn(most + 1) {
		all = append(all, choices[m.random.Intn(len(choices))])
	}
	return all
}

// odds reports true once in so many times.
func (m *maker) odds(n int) bool { return m.random.Intn(n) == 0 }

func (m *maker) selector() any {
	return m.of(map[string]any{}, map[string]any{"matchLabels": map[string]any{"env": "prod"}},
		map[string]any{"matchExpressions": []any{map[string]any{"key": m.of("env", "a/b/c", ""),
			"operator": m.of("In", "Exists", "DoesNotExist", "Like"), "values": m.some(2, "a", "b", "a b")}}},
		map[string]any{"matchLabels": map[string]any{"env": "not valid!"}})
}

// rule makes a resource rule.
func (m *maker) rule(operations ...any) map[string]any {
	r := map[string]any{
		"apiGroups": m.some(2, "apps", "", "batch", "*"), "apiVersions": m.some(2, "v1", "v1beta1", "*", ""),
		"operations": m.some(2, operations...),
		"resources": m.some(4, "deployments", "*", "*/*", "pods", "pods/exec", "pods/*", "*/status", "*/scale",
			"pods/status", "deployments/scale", "", "*/exec"),
	}
	for key, valid := range map[string]any{"apiGroups": []any{"apps"}, "apiVersions": []any{"v1"},
		"operations": []any{"CREATE"}, "resources": []any{"deployments"}} {
		if key != "resources" && !m.odds(12) || key == "resources" && m.odds(2) {
			r[key] = valid
		}
	}
	if m.odds(3) {
		r["scope"] = m.of("*", "Namespaced", "Cluster", "Some")
	}
	if m.odds(8) {
		r["resourceNames"] = m.some(3, "a", "b.c", "A_b", "a/b", "..", "", "x%y")
	}
	return r
}

func (m *maker) match(needsRules bool, operations ...any) map[string]any {
	c := map[string]any{}
	if needsRules || m.odds(2) {
		c["resourceRules"] = []any{m.rule(operations...)}
	}
	if m.odds(4) {
		c["excludeResourceRules"] = []any{m.rule(operations...)}
	}
	if m.odds(4) {
		c["namespaceSelector"] = m.selector()
	}
	if m.odds(4) {
		c["objectSelector"] = m.selector()
	}
	if m.odds(4) {
		c["matchPolicy"] = m.of("Exact", "Equivalent", "Loose")
	}
	return c
}

// common sets what both kinds of policies have.
func (m *maker) common(spec map[string]any, operations ...any) (hasParams bool) {
	if !m.odds(20) {
		spec["matchConstraints"] = m.match(!m.odds(10), operations...)
	}
	if m.odds(2) {
		spec["failurePolicy"] = m.of("Fail", "Ignore", "Never")
	}
	if hasParams = m.odds(3); hasParams {
		spec["paramKind"] = map[string]any{"apiVersion": m.of("v1", "example.com/v1", "a/b/c", "", "/", "v1/",
			"EXAMPLE/v1", "example.com/1"), "kind": m.of("ConfigMap", "configMap", "Config Map", "")}
	}
	if m.odds(3) {
		spec["matchConditions"] = []any{map[string]any{"name": m.of("one", "a/b", "", "-x"),
			"expression": m.of("object.kind == 'a'", "true", "", " ", "1 + 'a'", "1")},
			map[string]any{"name": m.of("two", "one"), "expression": "has(object.spec)"}}
	}
	if m.odds(3) {
		spec["variables"] = []any{map[string]any{"name": m.of("a", "b", "", "a-b", "for", "1a"),
			"expression": m.of("object.metadata.name", "1", "", "object.")}}
	}
	return hasParams
}

func (m *maker) object(kind, version string, spec map[string]any) map[string]any {
	return map[string]any{"apiVersion": "admissionregistration.k8s.io/" + version, "kind": kind,
		"metadata": map[string]any{"name": "p"}, "spec": spec}
}

// validating makes a ValidatingAdmissionPolicy.
func (m *maker) validating() map[string]any {
	spec := map[string]any{}
	hasParams := m.common(spec, "CREATE", "UPDATE", "DELETE", "CONNECT", "*", "PATCH")
	if !m.odds(10) {
		v := map[string]any{"expression": m.of("object.metadata.name != 'a'", "has(object.spec)", "", " ", "1",
			"object.", "variables.a == 'b'")}
		if hasParams && m.odds(2) {
			v["expression"] = "params == null || has(params.data)"
		}
		if m.odds(2) {
			v["message"] = m.of("must be", " ", "two\nlines", "two\rlines", "end\n")
		}
		if m.odds(3) {
			v["messageExpression"] = m.of("'must be ' + object.metadata.name", " ", "1", "object.")
		}
		if m.odds(3) {
			v["reason"] = m.of("Invalid", "Forbidden", "Unauthorized", "RequestEntityTooLarge", "Gone")
		}
		spec["validations"] = []any{v}
	}
	if m.odds(4) {
		spec["auditAnnotations"] = []any{map[string]any{"key": m.of("k", "a.b", "a/b", "", "k!"),
			"valueExpression": m.of("object.metadata.name", "", "1", "null")},
			map[string]any{"key": m.of("l", "k"), "valueExpression": "'a'"}}
	}
	return m.object("ValidatingAdmissionPolicy", m.of("v1", "v1beta1").(string), spec)
}

// mutating makes a MutatingAdmissionPolicy.
func (m *maker) mutating() map[string]any {
	spec := map[string]any{"reinvocationPolicy": m.of("Never", "IfNeeded", "Always", "")}
	m.common(spec, "CREATE", "UPDATE", "*", "DELETE", "CONNECT")
	apply := map[string]any{"expression": m.of("Object{spec: Object.spec{replicas: 1}}", "", "1", "object")}
	patch := map[string]any{"expression": m.of("[JSONPatch{op: 'add', path: '/spec/a', value: 1}]", "", "1", "object")}
	one := map[string]any{"patchType": m.of("ApplyConfiguration", "JSONPatch", "Merge", "")}
	if one["patchType"] != "JSONPatch" != m.odds(16) {
		one["applyConfiguration"] = apply
	}
	if one["patchType"] == "JSONPatch" != m.odds(16) {
		one["jsonPatch"] = patch
	}
	if !m.odds(10) {
		spec["mutations"] = []any{one}
	}
	return m.object("MutatingAdmissionPolicy", m.of("v1", "v1beta1", "v1alpha1").(string), spec)
}

// binding makes a binding of the policy.
func (m *maker) binding(kind, version string) map[string]any {
	spec := map[string]any{"policyName": m.of("p", "", "A!", "a/b")}
	if m.odds(2) {
		ref := map[string]any{"parameterNotFoundAction": m.of("Deny", "Allow", "Warn", "")}
		if m.odds(8) {
			delete(ref, "parameterNotFoundAction")
		}
		if !m.odds(12) {
			ref["name"] = m.of("c", "a/b", "..", "A b")
		}
		if m.odds(12) {
			ref["selector"] = m.selector()
		}
		if m.odds(3) {
			ref["namespace"] = "n"
		}
		spec["paramRef"] = ref
	}
	if m.odds(3) {
		spec["matchResources"] = m.match(false, "CREATE", "UPDATE", "*", "DELETE")
	}
	if kind == "ValidatingAdmissionPolicy" {
		spec["validationActions"] = m.of([]any{"Deny"}, []any{"Warn", "Audit"}, []any{"Deny", "Warn"}, []any{},
			[]any{"Deny", "Deny"}, []any{"Log"})
	}
	return m.object(kind+"Binding", version, spec)
}

// validated returns what kube-apiserver says of an object that is created.
func validated(t *testing.T, object map[string]any) field.ErrorList {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	internal := schema.GroupVersion{Group: admissionregistration.GroupName, Version: runtime.APIVersionInternal}
	decoded, err := runtime.Decode(legacyscheme.Codecs.UniversalDecoder(internal), text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	switch o := decoded.(type) {
	case *admissionregistration.ValidatingAdmissionPolicy:
		return validation.ValidateValidatingAdmissionPolicy(o)
	case *admissionregistration.ValidatingAdmissionPolicyBinding:
		return validation.ValidateValidatingAdmissionPolicyBinding(o)
	case *admissionregistration.MutatingAdmissionPolicy:
		return validation.ValidateMutatingAdmissionPolicy(o)
	case *admissionregistration.MutatingAdmissionPolicyBinding:
		return validation.ValidateMutatingAdmissionPolicyBinding(o)
	}
	t.Fatalf("%T", decoded)
	return nil
}

// stricter are the errors that kube-apiserver does not have. docs/differences.md lists them with their reasons.
var stricter = regexp.MustCompile(`must leave something of .resourceRules.|must have something in common with|fails for every object|always fails, since|can never apply`)

// TestPoliciesAreAcceptedAsByKubernetes makes policies and bindings, and compares whether they are accepted.
func TestPoliciesAreAcceptedAsByKubernetes(t *testing.T) {
	amount := 3000
	if testing.Short() {
		amount = 300
	}
	m := &maker{rand.New(rand.NewSource(43))}
	dir := t.TempDir()
	accepted, refused := 0, 0
	for range amount {
		policy := m.validating()
		if m.odds(3) {
			policy = m.mutating()
		}
		_, version, _ := strings.Cut(policy["apiVersion"].(string), "/")
		binding := m.binding(policy["kind"].(string), version)
		var texts []string
		var want []string
		for _, o := range []map[string]any{policy, binding} {
			text, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, string(text))
			for _, err := range validated(t, o) {
				want = append(want, err.Error())
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "p.yaml"), []byte(strings.Join(texts, "\n---\n")),
			0o600); err != nil {
			t.Fatal(err)
		}
		_, found := policies.Load([]string{dir})
		var got []string
		for _, f := range found {
			if f.Severity == policies.Error && !stricter.MatchString(f.Message) {
				got = append(got, fmt.Sprintf("%s: %s", f.Field, f.Message))
			}
		}
		if len(want) == 0 {
			accepted++
		} else {
			refused++
		}
		if (len(got) == 0) != (len(want) == 0) {
			t.Errorf("%s\ngot  %q\nwant %q", strings.Join(texts, "\n"), got, slices.Compact(want))
		}
	}
	if accepted < amount/10 || refused < amount/10 {
		t.Errorf("%d are accepted, and %d refused: too few of one to compare", accepted, refused)
	}
}
