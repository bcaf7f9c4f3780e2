package cel

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	celgo "github.com/google/cel-go/cel"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// anyExpression is an expression of any type for Kubernetes' compiler.
type anyExpression struct{ name, text string }

func (e anyExpression) GetName() string          { return e.name }
func (e anyExpression) GetExpression() string    { return e.text }
func (anyExpression) ReturnTypes() []*celgo.Type { return []*celgo.Type{celgo.AnyType} }

// policySpec holds the fields that admission policies of all kinds have.
type policySpec struct {
	Kind string
	Spec struct {
		ParamKind        *struct{}
		Variables        []struct{ Name, Expression string }
		MatchConditions  []struct{ Expression string }
		Validations      []struct{ Expression, MessageExpression string }
		AuditAnnotations []struct{ ValueExpression string }
	}
}

const corpusNamespace = `{"metadata":{"name":"default","labels":{"team":"a"}},"spec":{},"status":{}}`

// TestCorpusOfPolicies evaluates every expression of every policy in the suites on recorded objects: natively, by
// cel-go on lazy values, and with Kubernetes' own compiler and evaluator.
func TestCorpusOfPolicies(t *testing.T) {
	var n tally
	bodies := celtest.RequestBodies(t)
	var params []string
	for _, object := range celtest.PolicyDocuments(t) {
		if bytes.Contains(object, []byte(`"ControlConfiguration"`)) && bytes.Contains(object, []byte(`"settings"`)) &&
			!bytes.Contains(object, []byte("CustomResourceDefinition")) {
			params = append(params, string(object))
		}
	}
	params = params[:min(len(params), 3)]
	for _, object := range testutil.Sampled(3, celtest.PolicyDocuments(t)) {
		var p policySpec
		if json.Unmarshal(object, &p) != nil || p.Kind != "ValidatingAdmissionPolicy" &&
			p.Kind != "MutatingAdmissionPolicy" {
			continue
		}
		evaluatePolicy(t, &n, &p, bodies, params)
	}
	n.report(t, 99)
}

func evaluatePolicy(t *testing.T, n *tally, p *policySpec, bodies, params []string) {
	hasParams := p.Spec.ParamKind != nil
	c := NewAdmissionCompiler(hasParams)
	kubeCompiler, err := plugincel.NewCompositedCompiler(
		environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	declarations := plugincel.OptionalVariableDeclarations{HasParams: hasParams, HasAuthorizer: true}
	e, err := c.env(true)
	if err != nil {
		t.Fatal(err)
	}
	lazyVariables := &Variables{}
	for _, v := range p.Spec.Variables {
		if err := c.Variable(v.Name, v.Expression); err != nil {
			continue
		}
		kubeCompiler.CompileAndStoreVariable(anyExpression{v.Name, v.Expression}, declarations,
			environment.StoredExpressions)
		program := c.list.programs[len(c.list.programs)-1]
		n.planned(program)
		checked, issues := e.Compile(v.Expression)
		if issues != nil {
			t.Fatal(issues.Err())
		}
		lazy, _, err := e.interpreted(v.Expression, checked.NativeRep(), lazyVariables)
		if err != nil {
			t.Fatal(err)
		}
		lazyVariables.add(v.Name, lazy)
	}
	var expressions []string
	for _, v := range p.Spec.Variables {
		expressions = append(expressions, "variables."+v.Name)
	}
	for _, v := range p.Spec.MatchConditions {
		expressions = append(expressions, v.Expression)
	}
	for _, v := range p.Spec.Validations {
		expressions = append(expressions, v.Expression)
		if v.MessageExpression != "" {
			expressions = append(expressions, v.MessageExpression)
		}
	}
	for _, v := range p.Spec.AuditAnnotations {
		expressions = append(expressions, v.ValueExpression)
	}
	for _, expression := range expressions {
		checked, issues := e.Compile(expression)
		if issues != nil {
			continue // meant to be refused
		}
		natively, err := e.plan(expression, checked.NativeRep(), &c.list)
		if err != nil {
			continue
		}
		lazily, _, err := e.interpreted(expression, checked.NativeRep(), lazyVariables)
		if err != nil {
			t.Fatal(err)
		}
		n.planned(natively)
		theirs := kubeCompiler.CompileCondition([]plugincel.ExpressionAccessor{anyExpression{"", expression}},
			declarations, environment.StoredExpressions)
		for i, body := range bodies {
			param := ""
			if len(params) > 0 && hasParams && i%4 != 3 {
				param = params[i%len(params)]
			}
			evaluateThreeWays(t, n, expression, natively, lazily, &c.list, lazyVariables, theirs, body,
				bodies[(i+1)%len(bodies)], param)
		}
	}
}

func evaluateThreeWays(t *testing.T, n *tally, expression string, natively, lazily *Program, variables,
	lazyVariables *Variables, theirs plugincel.ConditionEvaluator, body, old, param string) {
	object := &unstructured.Unstructured{Object: celtest.Decode(t, body).(map[string]any)}
	before := &unstructured.Unstructured{Object: celtest.Decode(t, old).(map[string]any)}
	kind := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	resource := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	attributes := admission.NewAttributesRecord(object, before, kind, "default", "web", resource, "", admission.Update,
		nil, false, &user.DefaultInfo{Name: "jane", UID: "1", Groups: []string{"dev"}})
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind,
		VersionedObject: admission.NewLazyObject(object), VersionedOldObject: admission.NewLazyObject(before)}
	bindings := plugincel.OptionalVariableBindings{}
	if param != "" {
		bindings.VersionedParams = &unstructured.Unstructured{Object: celtest.Decode(t, param).(map[string]any)}
	}
	namespace := &corev1.Namespace{}
	if err := json.Unmarshal([]byte(corpusNamespace), namespace); err != nil {
		t.Fatal(err)
	}
	request := plugincel.CreateAdmissionRequest(attributes, metav1.GroupVersionResource(resource),
		metav1.GroupVersionKind(kind))
	want := func() evalResult {
		results, _, err := theirs.ForInput(context.Background(), versioned, request, bindings,
			plugincel.CreateNamespaceObject(namespace), 100*PolicyBudget)
		switch {
		case err != nil:
			return evalResult{err: err.Error()}
		case results[0].Error != nil:
			return evalResult{err: results[0].Error.Error()}
		}
		return evalResult{value: celtest.Show(results[0].EvalResult)}
	}
	set := func(v *Vars) {
		v.Set(value.Object, celtest.Parse(t, body), nil)
		v.Set(value.OldObject, celtest.Parse(t, old), nil)
		v.Set(value.NamespaceObject, celtest.Parse(t, corpusNamespace), nil)
		if param != "" {
			v.Set(value.Params, celtest.Parse(t, param), nil)
		}
		v.SetRequest(&Request{
			Group: "apps", Version: "v1", Kind: schema.GroupVersionKind{Group: "apps", Version: "v1",
				Kind: "Deployment"}, Resource: "deployments", Namespace: "default", Name: "web", Operation: "UPDATE",
			User: User{Name: "jane", UID: "1", Groups: []string{"dev"}},
		})
	}
	n.compare(t, expression,
		func() (evalResult, bool) { return oursWith(natively, variables, set), natively.native != nil },
		func() evalResult { return oursWith(lazily, lazyVariables, set) }, want)
}
