package vap

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kadmission "k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/informers"
	listersv1 "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/admissiontest"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/status"
)

// A practice is a policy as clusters have it, with its bindings (one that denies, if there are none). Specs are YAML.
type practice struct {
	name     string
	policy   string
	bindings []string
}

// TestPractices runs policies as clusters have them on requests of many kinds, here and in kube-apiserver's own plugin.
func TestPractices(t *testing.T) {
	lookup := &admissiontest.Lookup{Authz: reviewer{}}
	for _, object := range practiceObjects {
		lookup.Add(object)
	}
	for _, p := range practices {
		t.Run(p.name, func(t *testing.T) {
			policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
			if err := yaml.UnmarshalStrict([]byte(p.policy), &policy.Spec); err != nil {
				t.Fatal(err)
			}
			if policy.Spec.MatchConstraints == nil {
				policy.Spec.MatchConstraints = &admissionv1.MatchResources{}
			}
			stored(policy.Spec.MatchConstraints)
			if len(policy.Spec.MatchConstraints.ResourceRules) == 0 {
				policy.Spec.MatchConstraints.ResourceRules = []admissionv1.NamedRuleWithOperations{
					{RuleWithOperations: admissionv1.RuleWithOperations{
						Operations: []admissionv1.OperationType{"*"},
						Rule: admissionv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"},
							Resources: []string{"*"}},
					}}}
			}
			var bindings []*admissionv1.ValidatingAdmissionPolicyBinding
			for i, spec := range append(p.bindings, "validationActions: [Deny]")[:max(len(p.bindings), 1)] {
				b := &admissionv1.ValidatingAdmissionPolicyBinding{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("b%d", i)}}
				if err := yaml.UnmarshalStrict([]byte(spec), &b.Spec); err != nil {
					t.Fatal(err)
				}
				b.Spec.PolicyName = policy.Name
				if b.Spec.MatchResources != nil {
					stored(b.Spec.MatchResources)
				}
				bindings = append(bindings, b)
			}
			var ours []*Binding
			for _, b := range bindings {
				compiled, errs := CompileBinding(b)
				if len(errs) > 0 {
					t.Fatal(errs)
				}
				ours = append(ours, compiled)
			}
			compiled, errs := Compile(policy, ours...)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			hook := hookOf(t, policy, bindings)
			admitted := 0
			for _, r := range practiceRequests {
				want := r.kubernetes(t, hook)
				if want.message == "" {
					admitted++
				}
				if got := r.ours(t, compiled, lookup); !got.agrees(want) {
					t.Errorf("%s %s\ngot  %+v\nwant %+v", r.operation, r.path, got, want)
				}
			}
			if admitted == len(practiceRequests) && len(p.bindings) == 0 {
				t.Errorf("the policy denies nothing of %d requests", admitted)
			}
		})
	}
}

// stored fills in what kube-apiserver does when a policy is stored.
func stored(m *admissionv1.MatchResources) {
	if m.NamespaceSelector == nil {
		m.NamespaceSelector = &metav1.LabelSelector{}
	}
	if m.ObjectSelector == nil {
		m.ObjectSelector = &metav1.LabelSelector{}
	}
	if m.MatchPolicy == nil {
		m.MatchPolicy = new(admissionv1.Equivalent)
	}
}

// verdict has all that policies make of a request.
type verdict struct {
	code        int32
	reason      metav1.StatusReason
	message     string
	warnings    []string
	annotations []string
}

// agrees compares with Kubernetes' verdict. We derive a message if the author gave none, and say
// what to shorten.
func (j verdict) agrees(want verdict) bool {
	return j.code == want.code && j.reason == want.reason && sameWords(j.message, want.message) &&
		slices.EqualFunc(j.warnings, want.warnings, sameWords) && slices.Equal(j.annotations, want.annotations)
}

func sameWords(got, want string) bool {
	before, _, derived := strings.Cut(want, "failed expression: ")
	got, _, _ = strings.Cut(got, "; shorten ")
	got, _, _ = strings.Cut(got, "; reduce ")
	return got == want || derived && strings.HasPrefix(got, before)
}

// practiceRequest is a request that policies are tried on. Objects are YAML.
type practiceRequest struct {
	operation, path string
	object, old     string
	kind            schema.GroupVersionKind // of the object, unless that says it
	user            string
	dryRun          bool
	options         string
}

func (r *practiceRequest) attributes(t *testing.T) *admission.Attributes {
	t.Helper()
	raw := func(text string) json.RawMessage {
		if text == "" {
			return nil
		}
		data, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	a := attributesOf(t, "", r.path, raw(r.object), raw(r.old))
	for _, o := range []admission.Operation{admission.Create, admission.Update, admission.Delete, admission.Connect} {
		if o.String() == r.operation {
			a.Operation = o
		}
	}
	a.User = &identity.User{Name: cmp.Or(r.user, "jane"), Groups: []string{"dev", "system:authenticated"}}
	a.DryRun = r.dryRun
	if r.options != "" {
		a.Options = cel.GivenOptions(admissiontest.Parse(r.options).Root())
	}
	return a
}

func (r *practiceRequest) ours(t *testing.T, p *Policy, lookup *admissiontest.Lookup) verdict {
	a := r.attributes(t)
	a.Lookup = lookup
	report := run(t, a, p)
	j := verdict{warnings: report.Warnings()}
	if err := report.Err(a); err != nil {
		j.code, j.reason, j.message = status.From(err).ErrStatus.Code, status.From(err).ErrStatus.Reason,
			report.Denials()[0].Cause.Message
	}
	for _, note := range report.Annotations() {
		j.annotations = append(j.annotations, note.Key+"="+note.Value)
	}
	slices.Sort(j.annotations)
	return j
}

// recorded are attributes that remember annotations.
type recorded struct {
	kadmission.Attributes
	annotations *[]string
}

// AddAnnotation implements admission.Attributes.
func (r recorded) AddAnnotation(key, value string) error {
	*r.annotations = append(*r.annotations, key+"="+value)
	return nil
}

type warnings []string

// AddWarning implements warning.Recorder.
func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

func (r *practiceRequest) kubernetes(t *testing.T, hook validating.PolicyHook) verdict {
	t.Helper()
	object := func(text string) runtime.Object {
		if text == "" {
			return nil
		}
		return &unstructured.Unstructured{Object: decoded(t, text)}
	}
	a := r.attributes(t)
	o, old := object(r.object), object(r.old)
	kind := r.kind
	for _, of := range []runtime.Object{o, old} {
		if kind.Empty() && of != nil {
			kind = of.GetObjectKind().GroupVersionKind()
		}
	}
	name := a.Name()
	var options runtime.Object
	if r.options != "" {
		options = object(r.options)
	}
	var notes []string
	attributes := recorded{kadmission.NewAttributesRecord(o, old, kind, a.Info.Namespace, name,
		a.Info.GroupVersionResource(), a.Info.Subresource,
		kadmission.Operation(a.Operation.String()), options, a.DryRun,
		&user.DefaultInfo{Name: a.User.Name, Groups: a.User.Groups}), &notes}
	var said warnings
	matcher := generic.NewPolicyMatcher(matching.NewMatcher(namespaceLister{}, nil))
	err := validating.NewDispatcher(reviewer{}, matcher).Dispatch(warning.WithWarningRecorder(context.Background(),
		&said), attributes, interfaces{}, []validating.PolicyHook{hook})
	slices.Sort(notes)
	j := verdict{warnings: said, annotations: notes}
	var failure *apierrors.StatusError
	if errors.As(err, &failure) {
		j.code, j.reason = failure.ErrStatus.Code, failure.ErrStatus.Reason
		j.message = failure.ErrStatus.Message
		if len(failure.ErrStatus.Details.Causes) > 0 {
			j.message = failure.ErrStatus.Details.Causes[0].Message
		}
	} else if err != nil {
		t.Fatal(err)
	}
	return j
}

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := utiljson.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// hookOf compiles a policy as the plugin does when one is created.
func hookOf(t *testing.T, p *admissionv1.ValidatingAdmissionPolicy,
	bindings []*admissionv1.ValidatingAdmissionPolicyBinding) validating.PolicyHook {
	t.Helper()
	declared := plugincel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil, HasAuthorizer: true}
	unauthorized := plugincel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil}
	compiler, err := plugincel.NewCompositedCompiler(
		environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range p.Spec.Variables {
		compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, declared,
			environment.StoredExpressions)
	}
	validations, messages := make([]plugincel.ExpressionAccessor, len(p.Spec.Validations)),
		make([]plugincel.ExpressionAccessor, len(p.Spec.Validations))
	for i, v := range p.Spec.Validations {
		validations[i] = &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason}
		if v.MessageExpression != "" {
			messages[i] = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
	}
	var annotations []plugincel.ExpressionAccessor
	for _, a := range p.Spec.AuditAnnotations {
		annotations = append(annotations,
			&validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression})
	}
	var conditions matchconditions.Matcher
	if len(p.Spec.MatchConditions) > 0 {
		var all []plugincel.ExpressionAccessor
		for i := range p.Spec.MatchConditions {
			all = append(all, (*matchconditions.MatchCondition)(&p.Spec.MatchConditions[i]))
		}
		conditions = matchconditions.NewMatcher(compiler.CompileCondition(all, declared, environment.StoredExpressions),
			p.Spec.FailurePolicy, "policy", "validate", p.Name)
	}
	hook := validating.PolicyHook{Policy: p, Bindings: bindings, Evaluator: validating.NewValidator(
		compiler.CompileCondition(validations, declared, environment.StoredExpressions), conditions,
		compiler.CompileCondition(annotations, declared, environment.StoredExpressions),
		compiler.CompileCondition(messages, unauthorized, environment.StoredExpressions), p.Spec.FailurePolicy, nil)}
	if p.Spec.ParamKind != nil {
		hook.ParamInformer, hook.ParamScope = paramInformer{kind: p.Spec.ParamKind.Kind}, meta.RESTScopeRoot
		if p.Spec.ParamKind.Kind == "ConfigMap" {
			hook.ParamScope = meta.RESTScopeNamespace
		}
	}
	return hook
}

// paramInformer and the types after it give kube-apiserver the objects in practiceObjects.
type paramInformer struct{ kind string }

func (p paramInformer) Informer() cache.SharedIndexInformer { return synced{} }
func (p paramInformer) Lister() cache.GenericLister         { return paramLister(p.kind) }

var _ informers.GenericInformer = paramInformer{}

type synced struct{ cache.SharedIndexInformer }

func (synced) HasSynced() bool { return true }

type paramLister string

func (l paramLister) List(selector labels.Selector) ([]runtime.Object, error) {
	return paramsIn{string(l), ""}.List(selector)
}

func (l paramLister) Get(name string) (runtime.Object, error) {
	return paramsIn{string(l), ""}.Get(name)
}

func (l paramLister) ByNamespace(namespace string) cache.GenericNamespaceLister {
	return paramsIn{string(l), namespace}
}

type paramsIn struct{ kind, namespace string }

func (l paramsIn) List(selector labels.Selector) ([]runtime.Object, error) {
	var found []runtime.Object
	for _, text := range practiceObjects {
		o := &unstructured.Unstructured{}
		data, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			return nil, err
		}
		if err := utiljson.Unmarshal(data, &o.Object); err != nil {
			return nil, err
		}
		if o.GetKind() == l.kind && o.GetNamespace() == l.namespace && selector.Matches(labels.Set(o.GetLabels())) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b runtime.Object) int {
		return cmp.Compare(a.(*unstructured.Unstructured).GetName(), b.(*unstructured.Unstructured).GetName())
	})
	return found, nil
}

func (l paramsIn) Get(name string) (runtime.Object, error) {
	all, err := l.List(labels.Everything())
	for _, o := range all {
		if o.(*unstructured.Unstructured).GetName() == name {
			return o, nil
		}
	}
	if err == nil {
		err = apierrors.NewNotFound(schema.GroupResource{}, name)
	}
	return nil, err
}

type namespaceLister struct{ listersv1.NamespaceLister }

func (namespaceLister) Get(name string) (*corev1.Namespace, error) {
	found, err := paramsIn{"Namespace", ""}.Get(name)
	if err != nil {
		return nil, err
	}
	n := &corev1.Namespace{}
	return n, runtime.DefaultUnstructuredConverter.FromUnstructured(found.(*unstructured.Unstructured).Object, n)
}

// interfaces implement admission.ObjectInterfaces for objects that are not converted.
type interfaces struct{}

func (interfaces) GetObjectCreater() runtime.ObjectCreater     { return runtime.NewScheme() }
func (interfaces) GetObjectTyper() runtime.ObjectTyper         { return runtime.NewScheme() }
func (interfaces) GetObjectDefaulter() runtime.ObjectDefaulter { return runtime.NewScheme() }
func (interfaces) GetObjectConvertor() runtime.ObjectConvertor { return runtime.NewScheme() }
func (interfaces) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper {
	return runtime.NewEquivalentResourceRegistry()
}

// reviewer allows what jane may do.
type reviewer struct{}

// Authorize implements authorizer.UnconditionalAuthorizer.
func (reviewer) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	switch {
	case a.GetVerb() == "broken":
		return authorizer.DecisionNoOpinion, "", errors.New("the authorizer is down")
	case a.GetUser().GetName() == "admin", a.GetVerb() == "use" && a.GetName() == "jane-may":
		return authorizer.DecisionAllow, "because", nil
	case a.GetVerb() == "forbidden":
		return authorizer.DecisionDeny, "never", nil
	}
	return authorizer.DecisionNoOpinion, "nobody said so", nil
}

// TestMissingParamKind: if the kind of the parameters is not there, every request that the policy matches fails, bound
// or not, here and in kube-apiserver's own plugin.
func TestMissingParamKind(t *testing.T) {
	lookup := &admissiontest.Lookup{Authz: reviewer{}}
	for _, object := range practiceObjects {
		lookup.Add(object)
	}
	for name, bindings := range map[string][]string{
		"bound":     {"validationActions: [Deny]\nparamRef: {name: a, parameterNotFoundAction: Allow}"},
		"elsewhere": {"validationActions: [Deny]\nparamRef: {name: a, parameterNotFoundAction: Deny}\nmatchResources: {namespaceSelector: {matchLabels: {none: here}}}"},
		"warned of": {"validationActions: [Warn]\nparamRef: {name: a, parameterNotFoundAction: Deny}"},
		"unbound":   nil,
	} {
		for _, failure := range []admissionv1.FailurePolicyType{admissionv1.Fail, admissionv1.Ignore} {
			policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
			policy.Spec = admissionv1.ValidatingAdmissionPolicySpec{
				FailurePolicy: &failure, ParamKind: &admissionv1.ParamKind{APIVersion: "missing.example.com/v1",
					Kind: "Limit"},
				Validations: []admissionv1.Validation{{Expression: "params == null"}},
				MatchConstraints: &admissionv1.MatchResources{
					ResourceRules: []admissionv1.NamedRuleWithOperations{
						{RuleWithOperations: admissionv1.RuleWithOperations{
							Operations: []admissionv1.OperationType{"CREATE", "DELETE"},
							Rule: admissionv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"},
								Resources: []string{"*"}},
						}}}},
			}
			stored(policy.Spec.MatchConstraints)
			var all []*admissionv1.ValidatingAdmissionPolicyBinding
			var ours []*Binding
			for _, spec := range bindings {
				b := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
				if err := yaml.UnmarshalStrict([]byte(spec), &b.Spec); err != nil {
					t.Fatal(err)
				}
				b.Spec.PolicyName = policy.Name
				if b.Spec.MatchResources != nil {
					stored(b.Spec.MatchResources)
				}
				compiled, errs := CompileBinding(b)
				if len(errs) > 0 {
					t.Fatal(errs)
				}
				all, ours = append(all, b), append(ours, compiled)
			}
			compiled, errs := Compiler{FindsKind: true}.Compile(policy, ours...)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			hook := hookOf(t, policy, all)
			hook.ParamInformer, hook.ParamScope = nil, nil
			hook.ConfigurationError = fmt.Errorf("failed to find resource referenced by paramKind: '%v'",
				schema.GroupVersionKind{Group: "missing.example.com", Version: "v1", Kind: "Limit"})
			denied := 0
			for _, r := range practiceRequests {
				want, got := r.kubernetes(t, hook), r.ours(t, compiled, lookup)
				if !got.agrees(want) {
					t.Errorf("%s, %s: %s %s\ngot  %+v\nwant %+v", name, failure, r.operation, r.path, got, want)
				}
				if want.message != "" {
					denied++
				}
				a := r.attributes(t)
				a.Lookup = lookup
				if got, want := !compiled.IsFilteredOut(context.Background(), a) &&
					compiled.IsAbout(context.Background(), a), r.operation == "CREATE" ||
					r.operation == "DELETE"; got && !want {
					t.Errorf("%s %s: the policy says that it is about the request", r.operation, r.path)
				} else if want && !got && strings.Count(r.path, "/") < 8 && !strings.HasSuffix(r.path, "exec") {
					t.Errorf("%s, %s: %s %s: the policy says that it is not about the request", name, failure,
						r.operation, r.path)
				}
			}
			if denied == 0 != (failure == admissionv1.Ignore) {
				t.Errorf("%s, %s: %d requests are denied", name, failure, denied)
			}
		}
	}
}
