package cel

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/mutation"
	"k8s.io/apiserver/pkg/cel/mutation/dynamic"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// mutationSpec is a policy as far as its expressions go.
type mutationSpec struct {
	variables [][2]string
	apply     []string
	patches   []string
}

var mutationSpecs = []mutationSpec{{
	variables: [][2]string{
		{"spec", `object.spec.template.spec`},
		{"names", `variables.spec.containers.map(c, c.name)`},
		{"missing", `['team', 'tier', 'cost'].filter(l, !(l in object.metadata.labels))`},
		{"nothing", `object.spec.nothing`},
	},
	apply: []string{
		`Object{}`,
		`Object{metadata: Object.metadata{labels: Object.metadata.labels{team: 'a', ?app: object.metadata.labels[?'app']}}}`,
		`Object{metadata: Object.metadata{labels: {'example.com/owner': object.metadata.name, 'b': string(object.spec.replicas)}}}`,
		`Object{metadata: Object.metadata{annotations: {'names': variables.names.join(',')}}}`,
		`Object{spec: Object.spec{replicas: object.spec.replicas + 1}}`,
		`Object{spec: Object.spec{replicas: has(object.spec.replicas) ? object.spec.replicas : 1}}`,
		`Object{spec: Object.spec{replicas: object.spec.?nothing.orValue(3)}}`,
		`Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{
			containers: variables.spec.containers.map(c, Object.spec.template.spec.containers{name: c.name, imagePullPolicy: c.image.endsWith(':latest') ? 'Always' : 'IfNotPresent'})}}}}`,
		`Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{
			initContainers: [Object.spec.template.spec.initContainers{name: 'mesh', image: 'mesh:1', restartPolicy: 'Always'}]}}}}`,
		`Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{
			securityContext: Object.spec.template.spec.securityContext{runAsNonRoot: true, ?runAsUser: variables.spec.?securityContext.runAsUser}}}}}`,
		`variables.missing.size() > 0 ? Object{metadata: Object.metadata{labels: {'missing': variables.missing[0]}}} : Object{}`,
		`Object{spec: Object.spec{list: [1, 2, 3], empty: [], map: {'a': [1], 'b': []}}}`,
		`Object{spec: Object.spec{d: 1.5, u: 2u, b: true, s: 'x', i: -9223372036854775807}}`,
		`Object{spec: Object.spec{n: null}}`,
		`Object{spec: Object.spec{copy: object.spec.strategy, all: object.metadata.labels}}`,
		`Object{spec: Object.spec{x: variables.nothing}}`,
		`Object{spec: Object.spec{x: object.spec.nothing}}`,
		`Object{spec: Object.wrong{}}`,
		`Object{spec: Object.spec{x: duration('1h'), y: timestamp('2026-01-01T00:00:00Z')}}`,
		`Object{spec: Object.spec{x: quantity('1Gi')}}`,
		`Object{spec: Object.spec{x: {1: 'a'}}}`,
		`Object{spec: Object.spec{x: b'abc'}}`,
		`Object{spec: Object.spec{deep: Object.spec.deep{er: Object.spec.deep.er{v: object.spec.replicas * 2}}}}`,
		`Object{spec: Object.spec{x: Object{}.y}}`,
		`Object{spec: Object.spec{x: has(Object{y: 1}.y), z: Object{y: 1}.y == 1}}`,
		`Object{metadata: Object.metadata{labels: object.metadata.labels.transformMap(k, v, k != 'tier', v + '-x')}}`,
		`Object{spec: Object.spec{sorted: variables.names.sort(), first: variables.names.first(), distinct: variables.names.distinct()}}`,
		`Object{spec: Object.spec{x: [Object.spec.x{a: 1}, Object.spec.x{?a: optional.none()}]}}`,
	},
	patches: []string{
		`[]`,
		`true ? [] : [JSONPatch{op: 'remove', path: '/x'}]`,
		`[JSONPatch{op: 'add', path: '/metadata/labels/team', value: 'a'}]`,
		`[JSONPatch{op: 'replace', path: '/spec/replicas', value: object.spec.replicas + 1}]`,
		`[JSONPatch{op: 'test', path: '/spec/replicas', value: 3}, JSONPatch{op: 'replace', path: '/spec/replicas', value: 4}]`,
		`[JSONPatch{op: 'copy', from: '/metadata/labels/app', path: '/metadata/labels/copy'}, JSONPatch{op: 'move', from: '/a', path: '/b'}]`,
		`variables.missing.map(l, JSONPatch{op: 'add', path: '/metadata/labels/' + l, value: 'unknown'})`,
		`(has(object.metadata.annotations) ? [] : [JSONPatch{op: 'add', path: '/metadata/annotations', value: {}}]) +
			[JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('example.com/a~b'), value: 'x'}]`,
		`variables.spec.containers.map(c, JSONPatch{op: 'add', path: '/spec/x/-', value: Object.spec.x{name: c.name, image: c.image}})`,
		`lists.range(size(variables.spec.containers)).map(i, JSONPatch{op: 'replace', path: '/spec/template/spec/containers/' + string(i) + '/image', value: variables.spec.containers[i].image.replace('registry.example.com', 'mirror')})`,
		`[JSONPatch{op: 'add', path: '/spec/x', value: [1, 2]}, JSONPatch{op: 'add', path: '/spec/y', value: {'a': ['b']}}, JSONPatch{op: 'add', path: '/spec/z', value: null}]`,
		`[JSONPatch{op: 'add', path: '/spec/x', value: object.spec.strategy}]`,
		`[JSONPatch{op: 'add', path: '/spec/x', value: Object.spec.wrong{a: Object.spec.other{}}}]`,
		`[JSONPatch{op: 'add', path: '/spec/x', value: object.nothing}]`,
		`[JSONPatch{op: 'add', path: '/spec/x', value: optional.of(1)}]`,
		`[JSONPatch{op: 'add', path: '/spec/x', value: quantity('1Gi')}]`,
		`[JSONPatch{op: 'add', path: '/spec/x', value: 1.0}, JSONPatch{op: 'add', path: '/spec/x', value: 1.5}, JSONPatch{op: 'add', path: '/spec/x', value: 7u}]`,
		`[JSONPatch{op: 'add', path: '/spec/x', value: duration('90s')}, JSONPatch{op: 'add', path: '/spec/y', value: timestamp('2026-01-01T00:00:00Z')}]`,
		`[JSONPatch{op: 'add', path: '/spec/x', value: b'abc'}]`,
		`[JSONPatch{op: 'add', path: variables.nothing, value: 1}]`,
		`object.metadata.labels.map(k, JSONPatch{op: 'remove', path: '/metadata/labels/' + jsonpatch.escapeKey(k)})`,
		`[JSONPatch{op: object.spec.replicas > 2 ? 'add' : 'replace', path: '/spec/replicas', value: 2}]`,
		`[?optional.of(JSONPatch{op: 'remove', path: '/x'})]`,
		`cel.bind(x, object.metadata.name, [JSONPatch{op: 'add', path: '/y', value: x + x}])`,
	},
}}

// TestCorpusOfPatches: what the expressions of mutating policies make is the same natively, by cel-go on lazy values
// and in Kubernetes' own evaluator, and costs the same in both of our ways.
func TestCorpusOfPatches(t *testing.T) {
	var n tally
	specs := mutationSpecs
	for _, object := range celtest.PolicyDocuments(t) {
		var p struct {
			Kind string
			Spec struct {
				ParamKind *struct{}
				Variables []struct{ Name, Expression string }
				Mutations []struct{ ApplyConfiguration, JSONPatch struct{ Expression string } }
			}
		}
		if json.Unmarshal(object, &p) != nil || p.Kind != "MutatingAdmissionPolicy" || p.Spec.ParamKind != nil {
			continue
		}
		var s mutationSpec
		for _, v := range p.Spec.Variables {
			s.variables = append(s.variables, [2]string{v.Name, v.Expression})
		}
		for _, m := range p.Spec.Mutations {
			if m.ApplyConfiguration.Expression != "" {
				s.apply = append(s.apply, m.ApplyConfiguration.Expression)
			}
			if m.JSONPatch.Expression != "" {
				s.patches = append(s.patches, m.JSONPatch.Expression)
			}
		}
		specs = append(specs, s)
	}
	bodies := celtest.RequestBodies(t)
	for _, s := range specs {
		evaluatePatches(t, &n, &s, bodies)
	}
	n.report(t, 99)
}

func evaluatePatches(t *testing.T, n *tally, s *mutationSpec, bodies []string) {
	c := NewPatchCompiler(false)
	kubeCompiler, err := plugincel.NewCompositedCompiler(
		environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	declared := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
	for _, v := range s.variables {
		if err := c.Variable(v[0], v[1]); err != nil {
			t.Logf("%s: %v", v[1], err)
			return // meant to be refused
		}
		kubeCompiler.CompileAndStoreVariable(anyExpression{v[0], v[1]}, declared, environment.StoredExpressions)
	}
	declared.HasPatchTypes = true
	each := func(expression string, compile func(string) (*Program, error), accessor plugincel.ExpressionAccessor) {
		theirs := kubeCompiler.CompileMutatingEvaluator(accessor, declared, environment.StoredExpressions)
		natively, err := compile(expression)
		if (err == nil) != (len(theirs.CompilationErrors()) == 0) {
			t.Errorf("%s\ncompiling: %v, Kubernetes %v", expression, err, theirs.CompilationErrors())
		}
		if err != nil {
			return
		}
		checked, issues := c.patches.Compile(expression)
		if issues != nil {
			t.Fatal(issues.Err())
		}
		lazily, _, err := c.patches.interpreted(expression, checked.NativeRep(), c.Variables())
		if err != nil {
			t.Fatal(err)
		}
		n.planned(natively)
		for _, body := range bodies {
			if strings.Contains(expression, "variables.") && !strings.Contains(body, `"template"`) {
				continue
			}
			a, cost := patchOf(t, natively, c.Variables(), body)
			b, lazyCost := patchOf(t, lazily, c.Variables(), body)
			n.compared++
			if a != b {
				t.Errorf("%s\nnatively %v\nlazily   %v", expression, a, b)
			}
			if a.err == "" && 2*abs(cost-lazyCost) > cost+40 {
				t.Errorf("%s costs %d units natively, %d lazily", expression, cost, lazyCost)
			}
			if strings.Contains(a.err, "failed to convert patch object") {
				continue // Kubernetes finds that out when it applies the patch
			}
			var want evalResult
			agree := false
			for try := 0; try < 100 && !agree; try++ { // the order of a map's keys is random
				want = kubernetesPatch(t, kubeCompiler.CreateContext(context.Background()), theirs, body)
				agree = (a.err == "") == (want.err == "") && (a.err != "" || sameTree(t, a.value, want.value))
			}
			if !agree {
				t.Errorf("%s\nours       %v\nKubernetes %v", expression, a, want)
			}
		}
	}
	for _, expression := range s.apply {
		each(expression, c.ApplyConfiguration, &patch.ApplyConfigurationCondition{Expression: expression})
	}
	for _, expression := range s.patches {
		each(expression, c.JSONPatch, &patch.JSONPatchCondition{Expression: expression})
	}
}

// abs is the distance from zero.
func abs(i int64) int64 { return max(i, -i) }

// patchOf is the patch that an expression makes for an object, and what making it costs.
func patchOf(t *testing.T, p *Program, variables *Variables, body string) (evalResult, int64) {
	t.Helper()
	f := NewFrame(context.Background())
	defer f.Release()
	v := f.Vars()
	v.Set(value.Object, celtest.Parse(t, body), nil)
	v.SetRequest(&Request{Group: "apps", Version: "v1", Kind: schema.GroupVersionKind{Group: "apps", Version: "v1",
		Kind: "Deployment"}, Resource: "deployments", Namespace: "default", Name: "web", Operation: "CREATE",
		User: User{Name: "jane"}})
	if variables != nil {
		f.OpenVariables(v, variables)
		defer f.CloseVariables(v)
	}
	f.SetBudget(PolicyBudget)
	raw, err := p.EvalPatch(f, v, nil)
	cost := PolicyBudget - f.Budget()
	if err != nil {
		return evalResult{err: err.Error()}, cost
	}
	return evalResult{value: string(raw)}, cost
}

// kubernetesPatch is the patch as Kubernetes' patchers read it off the value of an expression.
func kubernetesPatch(t *testing.T, ctx context.Context, e plugincel.MutatingEvaluator, body string) evalResult {
	t.Helper()
	object := &unstructured.Unstructured{Object: celtest.Decode(t, body).(map[string]any)}
	kind, resource := object.GroupVersionKind(),
		schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	attributes := admission.NewAttributesRecord(object, nil, kind, "default", "web", resource, "", admission.Create,
		nil, false, &user.DefaultInfo{Name: "jane"})
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind,
		VersionedObject: admission.NewLazyObject(object)}
	request := plugincel.CreateAdmissionRequest(attributes, metav1.GroupVersionResource(resource),
		metav1.GroupVersionKind(kind))
	result, _, err := e.ForInput(ctx, versioned, request, plugincel.OptionalVariableBindings{}, &corev1.Namespace{},
		PolicyBudget)
	switch {
	case err != nil:
		return evalResult{err: err.Error()}
	case result.Error != nil:
		return evalResult{err: result.Error.Error()}
	}
	value, err := patchJSON(result.EvalResult)
	if err != nil {
		return evalResult{err: err.Error()}
	}
	return evalResult{value: value}
}

// patchJSON does what the patchers in k8s.io/apiserver do.
func patchJSON(v ref.Val) (string, error) {
	if o, ok := v.(*dynamic.ObjectVal); ok {
		if err := o.CheckTypeNamesMatchFieldPathNames(); err != nil {
			return "", err
		}
		value, ok := o.Value().(map[string]any)
		if !ok {
			return "", fmt.Errorf("invalid return type: %T", v)
		}
		raw, err := json.Marshal(value)
		return string(raw), err
	}
	operations := []map[string]any{}
	for it := v.(traits.Lister).Iterator(); it.HasNext() == types.True; {
		native, err := it.Next().ConvertToNative(reflect.TypeFor[*mutation.JSONPatchVal]())
		if err != nil {
			return "", err
		}
		op := native.(*mutation.JSONPatchVal)
		operation := map[string]any{"op": op.Op, "path": op.Path}
		if op.From != "" {
			operation["from"] = op.From
		}
		if op.Val != nil {
			if o, ok := op.Val.(*dynamic.ObjectVal); ok {
				if err := o.CheckTypeNamesMatchFieldPathNames(); err != nil {
					return "", err
				}
			}
			value, err := op.Val.ConvertToNative(reflect.TypeFor[*structpb.Value]())
			if err != nil {
				return "", err
			}
			operation["value"] = value
		}
		operations = append(operations, operation)
	}
	raw, err := json.Marshal(operations)
	return string(raw), err
}

func sameTree(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := utiljson.Unmarshal([]byte(a), &x); err != nil {
		t.Fatalf("%s: %v", a, err)
	}
	if err := utiljson.Unmarshal([]byte(b), &y); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return reflect.DeepEqual(x, y)
}
