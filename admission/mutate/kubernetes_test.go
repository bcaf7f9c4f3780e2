package mutate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	kadmission "k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	listersv1 "k8s.io/client-go/listers/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/internal/schema/schematest"
)

// kubernetes is kube-apiserver's own plugin with one resource, whose objects have the schema.
type kubernetes struct {
	converter managedfields.TypeConverter
	validator *schematest.Kubernetes
}

func newKubernetes(t testing.TB, props *apiextensionsv1.JSONSchemaProps) *kubernetes {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.lab.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "lab.example.com",
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget",
				ListKind: "WidgetList"},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: props},
			}},
		},
	}
	document, err := builder.BuildOpenAPIV3(crd, "v1", builder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	k := &kubernetes{}
	if k.converter, err = managedfields.NewTypeConverter(document.Components.Schemas, false); err != nil {
		t.Fatal(err)
	}
	if k.validator, err = schematest.NewKubernetes(props); err != nil {
		t.Fatal(err)
	}
	return k
}

// GetTypeConverter implements patch.TypeConverterManager.
func (k *kubernetes) GetTypeConverter(schema.GroupVersionKind) managedfields.TypeConverter {
	return k.converter
}

// Run implements patch.TypeConverterManager.
func (k *kubernetes) Run(context.Context) {}

// GetObjectCreater and the following implement admission.ObjectInterfaces.
func (k *kubernetes) GetObjectCreater() runtime.ObjectCreater { return k }

func (k *kubernetes) New(schema.GroupVersionKind) (runtime.Object, error) {
	return &unstructured.Unstructured{}, nil
}

func (k *kubernetes) GetObjectTyper() runtime.ObjectTyper { return runtime.NewScheme() }

func (k *kubernetes) GetObjectDefaulter() runtime.ObjectDefaulter { return k }

func (k *kubernetes) Default(o runtime.Object) {
	k.validator.Default(o.(*unstructured.Unstructured).Object)
}

func (k *kubernetes) GetObjectConvertor() runtime.ObjectConvertor { return runtime.NewScheme() }

func (k *kubernetes) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper {
	return runtime.NewEquivalentResourceRegistry()
}

// hook compiles a policy as the plugin does when one is created.
func hook(p *admissionv1.MutatingAdmissionPolicy,
	bindings ...*admissionv1.MutatingAdmissionPolicyBinding) mutating.PolicyHook {
	p, everything := p.DeepCopy(), &metav1.LabelSelector{}
	p.Spec.MatchConstraints.NamespaceSelector = everything
	if p.Spec.MatchConstraints.ObjectSelector == nil {
		p.Spec.MatchConstraints.ObjectSelector = everything
	}
	declared := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
	compiler, err := plugincel.NewCompositedCompiler(
		environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		panic(err)
	}
	for _, v := range p.Spec.Variables {
		compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, declared,
			environment.StoredExpressions)
	}
	evaluator := mutating.PolicyEvaluator{CompositedCompiler: compiler}
	if len(p.Spec.MatchConditions) > 0 {
		var conditions []plugincel.ExpressionAccessor
		for i := range p.Spec.MatchConditions {
			conditions = append(conditions, (*matchconditions.MatchCondition)(&p.Spec.MatchConditions[i]))
		}
		evaluator.Matcher = matchconditions.NewMatcher(compiler.CompileCondition(conditions, declared,
			environment.StoredExpressions), p.Spec.FailurePolicy, "policy", "validate", p.Name)
	}
	declared.HasPatchTypes = true
	for _, m := range p.Spec.Mutations {
		if m.JSONPatch != nil {
			evaluator.Mutators = append(evaluator.Mutators, patch.NewJSONPatcher(
				compiler.CompileMutatingEvaluator(&patch.JSONPatchCondition{Expression: m.JSONPatch.Expression},
					declared, environment.StoredExpressions)))
		} else {
			evaluator.Mutators = append(evaluator.Mutators, patch.NewApplyConfigurationPatcher(
				compiler.CompileMutatingEvaluator(
					&patch.ApplyConfigurationCondition{Expression: m.ApplyConfiguration.Expression}, declared,
					environment.StoredExpressions)))
		}
	}
	return mutating.PolicyHook{Policy: p, Bindings: bindings, Evaluator: evaluator}
}

// namespaces has the one namespace.
type namespaces struct{ listersv1.NamespaceLister }

func (namespaces) Get(name string) (*corev1.Namespace, error) {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": "prod"}}}, nil
}

func (namespaces) List(labels.Selector) ([]*corev1.Namespace, error) { return nil, nil }

// admit runs the plugin as kube-apiserver's chain does: a second time if it asks for it.
func (k *kubernetes) admit(object, old map[string]any, hooks []mutating.PolicyHook) (map[string]any, error) {
	slices.SortFunc(hooks, func(a, b mutating.PolicyHook) int { return strings.Compare(a.Policy.Name, b.Policy.Name) })
	o := &unstructured.Unstructured{Object: object}
	operation := kadmission.Create
	var oldObject runtime.Object
	if old != nil {
		operation, oldObject = kadmission.Update, &unstructured.Unstructured{Object: old}
	}
	a := kadmission.NewAttributesRecord(o, oldObject, o.GroupVersionKind(), "team-a", o.GetName(),
		schema.GroupVersionResource{Group: "lab.example.com", Version: "v1", Resource: "widgets"}, "",
		operation, nil, false, &user.DefaultInfo{Name: "jane", Groups: []string{"dev"}})
	dispatcher := mutating.NewDispatcher(nil, matching.NewMatcher(namespaces{}, nil), k)
	ctx := context.Background()
	err := dispatcher.Dispatch(ctx, a, k, hooks)
	if err == nil && a.GetReinvocationContext().ShouldReinvoke() {
		a.GetReinvocationContext().SetIsReinvoke()
		err = dispatcher.Dispatch(ctx, a, k, hooks)
	}
	return o.Object, err
}

// files is a set of policies as a YAML file has it, each bound once unless it has bindings.
func files(t testing.TB, text string) (policies []*admissionv1.MutatingAdmissionPolicy) {
	t.Helper()
	for i, part := range strings.Split(text, "\n---\n") {
		p := &admissionv1.MutatingAdmissionPolicy{}
		if err := yaml.UnmarshalStrict([]byte(part), &p.Spec); err != nil {
			t.Fatalf("%s: %v", part, err)
		}
		p.Name = fmt.Sprintf("p%d", i)
		if p.Spec.ReinvocationPolicy == "" {
			p.Spec.ReinvocationPolicy = admissionv1.NeverReinvocationPolicy
		}
		if p.Spec.MatchConstraints == nil {
			p.Spec.MatchConstraints = &admissionv1.MatchResources{}
		}
		p.Spec.MatchConstraints.ResourceRules = []admissionv1.NamedRuleWithOperations{
			{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.OperationAll},
				Rule: admissionv1.Rule{APIGroups: []string{"lab.example.com"}, APIVersions: []string{"v1"},
					Resources: []string{"widgets"}},
			}}}
		policies = append(policies, p)
	}
	return policies
}

func bindingOf(p *admissionv1.MutatingAdmissionPolicy) *admissionv1.MutatingAdmissionPolicyBinding {
	return &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name + "-b"},
		Spec:       admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: p.Name},
	}
}

// TestLikeKubernetes runs policies in kube-apiserver's own plugin and here, on the same objects.
func TestLikeKubernetes(t *testing.T) {
	k, props := newWidgets(t)
	for _, text := range policyFiles {
		for _, object := range widgets {
			k.same(t, props, text, object)
		}
	}
}

// TestValuesLikeKubernetes: what the fields of patches may hold. Parts of the request and the namespace are left out,
// which Kubernetes cannot write into objects.
func TestValuesLikeKubernetes(t *testing.T) {
	k, props := newWidgets(t)
	var texts []string
	for _, value := range values {
		for _, field := range []string{"any: Object.spec.any{v: %s}", "labels: {'k': %s}", "color: %s", "tags: %s",
			"labels: %s", "size: %s", "parts: %s", "any: %s"} {
			texts = append(texts, "mutations:\n"+apply+`"Object{spec: Object.spec{`+fmt.Sprintf(field, value)+`}}"}`)
		}
		for _, field := range []string{"dyn(%s)", "{'k': %s}", "[dyn(%s)]", "Object.spec.any{v: %s}",
			"[Object.spec.any{v: [%s]}]"} {
			texts = append(texts, "mutations:\n"+patch1+`"[JSONPatch{op: 'add', path: '/spec/any', value: `+
				fmt.Sprintf(field, value)+`}]"}`)
		}
	}
	for _, text := range texts {
		k.same(t, props, text, widgets[1])
	}
}

func newWidgets(t testing.TB) (*kubernetes, *apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict([]byte(widgetSchema), props); err != nil {
		t.Fatal(err)
	}
	return newKubernetes(t, props), props
}

// same runs policies on an object, defaulted as it is before admission, on both sides.
func (k *kubernetes) same(t *testing.T, props *apiextensionsv1.JSONSchemaProps, text, object string) {
	t.Helper()
	t.Run("", func(t *testing.T) {
		defaulted := decode(t, object)
		k.validator.Default(defaulted)
		object := string(schematest.Encode(defaulted))
		policies := files(t, text)
		var hooks []mutating.PolicyHook
		for _, p := range policies {
			hooks = append(hooks, hook(p, bindingOf(p)))
		}
		want, wantErr := k.admit(defaulted, nil, hooks)
		got, err := admit(t, props, object, "", policies)
		compare(t, text+"\nobject "+object, got, err, want, wantErr)
	})
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := utiljson.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// compare compares an outcome with Kubernetes': what its errors say of patches that cannot be
// applied we word ourselves.
func compare(t *testing.T, what, got string, err error, want map[string]any, wantErr error) {
	t.Helper()
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%s\ngot  %s, %v\nwant %v, %v", what, got, err, want, wantErr)
	}
	if err == nil {
		if !reflect.DeepEqual(decode(t, got), roundTrip(t, want)) {
			raw, _ := json.Marshal(want)
			t.Fatalf("%s\ngot  %s\nwant %s", what, got, raw)
		}
		return
	}
	var ours, theirs *apierrors.StatusError
	if !errors.As(err, &ours) || !errors.As(wantErr, &theirs) {
		t.Fatalf("%s\ngot  %T %v\nwant %T %v", what, err, err, wantErr, wantErr)
	}
	a, b := ours.ErrStatus, theirs.ErrStatus
	if a.Code != b.Code || a.Reason != b.Reason {
		t.Fatalf("%s\ngot  %d %s %s\nwant %d %s %s", what, a.Code, a.Reason, a.Message, b.Code, b.Reason, b.Message)
	}
	if a.Code >= 500 {
		return
	}
	if len(a.Details.Causes) != len(b.Details.Causes) || a.Details.Name != b.Details.Name ||
		a.Details.Kind != b.Details.Kind {
		t.Fatalf("%s\ngot  %+v\nwant %+v", what, a.Details, b.Details)
	}
	for i := range b.Details.Causes {
		x, y := a.Details.Causes[i].Message, b.Details.Causes[i].Message
		if sameFailure(x) != sameFailure(y) &&
			(!strings.Contains(x, ": must not be ") || !strings.Contains(y, "convert patch object")) {
			t.Errorf("%s\ngot  %s\nwant %s", what, x, y)
		}
	}
}

func roundTrip(t *testing.T, v map[string]any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, string(raw))
}

// sameFailure returns the part of a message that both have: kube-apiserver has paths in the order
// of Go's maps, shows values as Go has them, and does not name failed operations of patches.
func sameFailure(message string) string {
	const atomics = "maps or structs: "
	if before, paths, ok := strings.Cut(message, atomics); ok {
		sorted := strings.Split(paths, ", ")
		slices.Sort(sorted)
		message = before + atomics + strings.Join(sorted, ", ")
	}
	for _, differs := range []string{"JSON patch: ", "JSON Patch: ", "expected ", "element ", "marshal to JSON: ",
		"errors:"} {
		message, _, _ = strings.Cut(message, differs)
	}
	return message
}
