package typecheck_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/admission/typecheck"
	"github.com/admission-gateway/gateway/internal/cel"
	gatewayschema "github.com/admission-gateway/gateway/internal/schema"
)

// known has what definitions say, for both sides.
type known struct {
	mapper  *meta.DefaultRESTMapper
	schemas map[schema.GroupVersionKind]*spec.Schema
}

// ResolveSchema implements resolver.SchemaResolver.
func (k *known) ResolveSchema(gvk schema.GroupVersionKind) (*spec.Schema, error) {
	if s, ok := k.schemas[gvk]; ok {
		return s, nil
	}
	return nil, fmt.Errorf("%v: %w", gvk, resolver.ErrSchemaNotFound)
}

func (k *known) Resource(gvr schema.GroupVersionResource) (typecheck.Kind, bool) {
	gvk, err := k.mapper.KindFor(gvr)
	if err != nil {
		return typecheck.Kind{}, false
	}
	return k.Kind(gvk)
}

func (k *known) Kind(gvk schema.GroupVersionKind) (typecheck.Kind, bool) {
	s, ok := k.schemas[gvk]
	if !ok {
		return typecheck.Kind{}, false
	}
	return typecheck.Kind{GroupVersionKind: gvk, Type: cel.NewObjectType(gvk.Kind, func() *spec.Schema { return s },
		true), Own: true}, true
}

func (k *known) add(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	for _, v := range crd.Spec.Versions {
		gv := schema.GroupVersion{Group: crd.Spec.Group, Version: v.Name}
		k.mapper.AddSpecific(gv.WithKind(crd.Spec.Names.Kind), gv.WithResource(crd.Spec.Names.Plural),
			gv.WithResource(crd.Spec.Names.Singular), meta.RESTScopeNamespace)
		if v.Schema != nil {
			k.schemas[gv.WithKind(crd.Spec.Names.Kind)] = gatewayschema.Published(v.Schema.OpenAPIV3Schema, true)
		}
	}
}

// unique matches the numbers that Kubernetes adds to the names of types.
var unique = regexp.MustCompile(`\b([A-Z][A-Za-z]*?)\d+\b`)

var costs = regexp.MustCompile(`\S+, Kind=\w+: estimated cost exceeds [^()]*\([^()]*\)`)

func normal(text string) string {
	text = unique.ReplaceAllString(strings.ReplaceAll(text, "WidgetParams", "Widget"), "$1")
	// The numbers have different lengths, and so have pointers to missing ones.
	return strings.Join(strings.Fields(text), " ")
}

// compare holds the warnings about a policy against Kubernetes'.
func (k *known) compare(t *testing.T, p *admissionv1.ValidatingAdmissionPolicy) (found int) {
	t.Helper()
	checker := validating.TypeChecker{SchemaResolver: k, RestMapper: k.mapper}
	var want, got []string
	for _, w := range checker.Check(p) {
		want = append(want, w.FieldRef+": "+normal(w.Warning))
	}
	policy := &typecheck.Policy{Match: p.Spec.MatchConstraints, ParamKind: p.Spec.ParamKind,
		Variables: p.Spec.Variables}
	for i, v := range p.Spec.Validations {
		path := field.NewPath("spec", "validations").Index(i)
		policy.Expressions = append(policy.Expressions,
			typecheck.Expression{Field: path.Child("expression"), Text: v.Expression})
		if v.MessageExpression != "" {
			policy.Expressions = append(policy.Expressions, typecheck.Expression{Field: path.Child("messageExpression"),
				Text: v.MessageExpression})
		}
	}
	warnings, err := typecheck.Check(policy, k)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range warnings {
		text := strings.TrimSpace(costs.ReplaceAllString(normal(w.Text), ""))
		if !strings.HasPrefix(w.Field, "spec.variables") && text != "" { // Kubernetes leaves these out
			got = append(got, w.Field+": "+text)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%s:\ngot\n%s\nwant\n%s", p.Name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	return len(got)
}

const widget = `
apiVersion: apiextensions.k8s.io/v1
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
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {
      size: {type: integer}, ratio: {type: number}, on: {type: boolean}, name: {type: string}, when: {type: string, format: date-time}, wait: {type: string, format: duration},
      blob: {type: string, format: byte}, port: {x-kubernetes-int-or-string: true}, tags: {type: array, items: {type: string}}, labels: {type: object, additionalProperties: {type: string}},
      parts: {type: array, items: {type: object, properties: {weight: {type: integer}, namespace: {type: string}}}}, any: {type: object, x-kubernetes-preserve-unknown-fields: true},
      bare: {x-kubernetes-preserve-unknown-fields: true}, a-b: {type: string}}}}}}
  - name: v2
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: string}}}}}}
`

// TestLikeKubernetes: the warnings about policies are the same as kube-apiserver's.
func TestLikeKubernetes(t *testing.T) {
	k := newKnown()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(widget), crd); err != nil {
		t.Fatal(err)
	}
	k.add(t, crd)
	found := 0
	for _, expression := range []string{
		`object.spec.size < 5`, `object.spec.sise < 5`, `object.spec.size < '5'`, `object.size < 5`,
		`has(object.spec.none)`, `oldObject.spec.none == 1`, `object.spec.ratio < 5`,
		`object.spec.when < timestamp('2020-01-01T00:00:00Z')`, `object.spec.when < '2020'`,
		`object.spec.wait < duration('1h')`, `object.spec.blob == b'x'`, `object.spec.blob == 'x'`,
		`object.spec.port == 5`, `object.spec.port == 'x'`, `object.spec.tags.all(t, t < 5)`,
		`object.spec.tags.exists(t, t.startsWith('a'))`, `object.spec.labels['a'] == 5`, `object.spec.labels.a == 'x'`,
		`object.spec.parts.all(p, p.weight > 1 && p.none == 2)`, `object.spec.parts[0].__namespace__ == 'x'`,
		`object.spec.any.x == 1`, `object.spec.bare == 1`, `object.spec.a__dash__b == 'x'`,
		`object.metadata.name == 'x'`, `object.metadata.labels['x'] == 'y'`, `object.metadata.none == 'x'`,
		`object.metadata.creationTimestamp == 'x'`, `object.kind == 'Widget'`, `object.kinds == 'Widget'`,
		`object.metadata.ownerReferences.all(o, o.controller)`,
		`object.metadata.managedFields[0].time > object.metadata.creationTimestamp`,
		`request.operation == 'CREATE'`, `request.none == 1`, `namespaceObject.metadata.labels['a'] == 'b'`,
		`namespaceObject.none == 'b'`, `params.spec.size < object.spec.size`, `params.none == 1`,
		`authorizer.group('').resource('pods').check('get').allowed()`, `variables.size < 5`, `variables.size < '5'`,
		`variables.broken < 5`, `variables.spec.none == 5`, `variables.none == 5`, `variables.tags.all(t, t == 5)`,
		`object.spec.?size.orValue('x') == 'x'`, `object.?spec.?none.hasValue()`, `type(object.spec.port) == int`,
		`[1, 2].exists(object, object == 1)`, `dyn(object).none == 1`, `'a' + object.spec.size == 'a5'`,
		`object.spec == oldObject.spec`, `object == params`, `!object.spec.size`,
		`object.spec.on ? object.spec.size : object.spec.name`, `quantity(object.spec.name).isLessThan(quantity('1'))`,
		`object.spec.size.matches('x')`,
	} {
		for _, rule := range []string{
			`{apiGroups: [example.com], apiVersions: [v1], resources: [widgets]}`,
			`{apiGroups: [example.com], apiVersions: [v2, v1], resources: [widgets, widgets/status, others]}`,
			`{apiGroups: ["*"], apiVersions: [v1], resources: [widgets]}`,
			`{apiGroups: [example.com, ""], apiVersions: ["*"], resources: [widgets]}`,
			`{apiGroups: ["", example.com], apiVersions: [v1], resources: ["*"]}`,
		} {
			for _, param := range []string{"", "paramKind: {apiVersion: example.com/v1, kind: Widget}\n",
				"paramKind: {apiVersion: v1, kind: ConfigMap}\n"} {
				p := &admissionv1.ValidatingAdmissionPolicy{}
				if err := yaml.Unmarshal([]byte(param+`
matchConstraints: {resourceRules: [`+rule+`]}
variables: [{name: size, expression: object.spec.size}, {name: broken, expression: object.spec.none}, {name: spec, expression: object.spec}, {name: tags, expression: object.spec.tags}]
`), &p.Spec); err != nil {
					t.Fatal(err)
				}
				p.Name = expression + " " + rule + " " + param
				p.Spec.Validations = []admissionv1.Validation{{Expression: expression, MessageExpression: "string(" +
					expression + ")"}}
				found += k.compare(t, p)
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d warnings", found)
	}
}

func newKnown() *known {
	return &known{mapper: meta.NewDefaultRESTMapper(nil), schemas: map[schema.GroupVersionKind]*spec.Schema{}}
}

// TestSuitesLikeKubernetes: so are those about the policies of the suites, against the definitions of the suites.
func TestSuitesLikeKubernetes(t *testing.T) {
	dir := os.Getenv("SUITES_DIR")
	if dir == "" {
		dir = "../../../shared/suites"
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the suites are not there: set SUITES_DIR")
	}
	k := newKnown()
	var policies []*admissionv1.ValidatingAdmissionPolicy
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, text := range strings.Split("\n"+string(data), "\n---") {
			var kind struct{ Kind string }
			if yaml.Unmarshal([]byte(text), &kind) != nil {
				continue
			}
			switch kind.Kind {
			case "CustomResourceDefinition":
				crd := &apiextensionsv1.CustomResourceDefinition{}
				if yaml.Unmarshal([]byte(text), crd) == nil {
					k.add(t, crd)
				}
			case "ValidatingAdmissionPolicy":
				p := &admissionv1.ValidatingAdmissionPolicy{}
				if yaml.Unmarshal([]byte(text), p) == nil {
					policies = append(policies, p)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, p := range policies {
		found += k.compare(t, p)
	}
	t.Logf("%d warnings about %d policies with %d kinds", found, len(policies), len(k.schemas))
	if len(policies) < 50 {
		t.Errorf("only %d policies", len(policies))
	}
}
