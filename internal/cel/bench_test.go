package cel

import (
	"context"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// benchRules are typical rules of policies. All hold for benchObject.
var benchRules = []string{
	`object.spec.replicas <= 10`,
	`object.spec.template.spec.containers.all(c, c.image.startsWith('registry.example.com/'))`,
	`has(object.metadata.labels.team) && object.metadata.labels.team in ['a', 'b', 'c']`,
	`object.spec.template.spec.containers.all(c, has(c.resources.limits) && has(c.resources.limits.memory))`,
	`object.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && size(object.metadata.name) <= 63`,
	`object.spec.template.spec.containers.all(c, !has(c.securityContext.privileged) || !c.securityContext.privileged)`,
	`object.spec.template.spec.containers.all(c, c.image.contains(':') && !c.image.endsWith(':latest'))`,
	`object.metadata.namespace != 'default' && object.metadata.name != object.metadata.namespace`,
	`object.spec.template.spec.containers.all(c, !has(c.ports) || c.ports.all(p, p.containerPort >= 1024))`,
	`object.metadata.labels.all(k, k.size() <= 63) && object.spec.template.spec.serviceAccountName != ''`,
}

// benchSchema is a structural schema of benchObject.
const benchSchema = `
type: object
properties:
  spec:
    type: object
    properties:
      replicas: {type: integer}
      revisionHistoryLimit: {type: integer}
      selector: {type: object, properties: {matchLabels: {type: object, additionalProperties: {type: string}}}}
      strategy:
        type: object
        properties:
          type: {type: string}
          rollingUpdate: {type: object, properties: {maxSurge: {x-kubernetes-int-or-string: true}, maxUnavailable: {x-kubernetes-int-or-string: true}}}
      template:
        type: object
        properties:
          metadata: {type: object, properties: {labels: {type: object, additionalProperties: {type: string}}}}
          spec:
            type: object
            properties:
              serviceAccountName: {type: string}
              containers:
                type: array
                items:
                  type: object
                  properties:
                    name: {type: string}
                    image: {type: string}
                    ports: {type: array, items: {type: object, properties: {name: {type: string}, containerPort: {type: integer}}}}
                    resources:
                      type: object
                      properties:
                        requests: {type: object, additionalProperties: {type: string}}
                        limits: {type: object, additionalProperties: {type: string}}
                    securityContext: {type: object, properties: {privileged: {type: boolean}, runAsNonRoot: {type: boolean}, readOnlyRootFilesystem: {type: boolean}}}
                    env: {type: array, items: {type: object, properties: {name: {type: string}, value: {type: string}}}}
  metadata:
    type: object
    properties:
      name: {type: string}
      namespace: {type: string}
      labels: {type: object, additionalProperties: {type: string}}
      annotations: {type: object, additionalProperties: {type: string}}
`

// A contender evaluates all of benchRules once.
type contender struct {
	name string
	run  func()
}

func nativePrograms(t testing.TB, rules []string) []*Program {
	t.Helper()
	c := NewAdmissionCompiler(false)
	var programs []*Program
	for _, rule := range rules {
		p, err := c.Condition(rule)
		if err != nil {
			t.Fatal(err)
		}
		if p.native == nil {
			t.Fatalf("%s does not run natively: %s", rule, p.reason)
		}
		programs = append(programs, p)
	}
	return programs
}

func lazyPrograms(t testing.TB, rules []string) []*Program {
	t.Helper()
	e := adhocEnv(t)
	var programs []*Program
	for _, rule := range rules {
		ast, issues := e.Compile(rule)
		if issues != nil {
			t.Fatal(issues.Err())
		}
		p, _, err := e.interpreted(rule, ast.NativeRep(), nil)
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, p)
	}
	return programs
}

// evalAll evaluates programs in a frame of their own, as a request does.
func evalAll(t testing.TB, programs []*Program, s value.Slot, n document.Node, typ *value.Type) {
	f := NewFrame(context.Background())
	v := f.Vars()
	v.Set(s, n, typ)
	for _, p := range programs {
		if ok, err := p.EvalBool(f, v); !ok || err != nil {
			t.Fatal(p.Source(), ok, err)
		}
	}
	f.Release()
}

func natively(b testing.TB) contender {
	programs, n := nativePrograms(b, benchRules), celtest.Parse(b, celtest.BenchObject)
	return contender{"native", func() { evalAll(b, programs, value.Object, n, nil) }}
}

func lazily(b testing.TB) contender {
	programs, n := lazyPrograms(b, benchRules), celtest.Parse(b, celtest.BenchObject)
	return contender{"cel-go over lazy values", func() { evalAll(b, programs, value.Object, n, nil) }}
}

// guardedMaps is cel-go over maps with its own cost limit and cancellation.
func guardedMaps(b testing.TB) contender {
	env, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).StoredExpressionsEnv().
		Extend(celgo.Variable("object", celgo.DynType))
	if err != nil {
		b.Fatal(err)
	}
	var programs []celgo.Program
	for _, rule := range benchRules {
		ast, issues := env.Compile(rule)
		if issues != nil {
			b.Fatal(issues.Err())
		}
		p, err := env.Program(ast, celgo.InterruptCheckFrequency(100))
		if err != nil {
			b.Fatal(err)
		}
		programs = append(programs, p)
	}
	object := types.DefaultTypeAdapter.NativeToValue(celtest.Decode(b, celtest.BenchObject))
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	return contender{"guarded cel-go over maps", func() {
		vars := map[string]any{"object": object}
		for _, p := range programs {
			if out, _, err := p.ContextEval(ctx, vars); err != nil || out != types.True {
				b.Fatal(out, err)
			}
		}
	}}
}

// kubernetesPolicies evaluates each rule as a ValidatingAdmissionPolicy of its own, with Kubernetes' validator.
func kubernetesPolicies(b testing.TB) contender {
	var policies []validating.Validator
	for _, rule := range benchRules {
		compiler, err := plugincel.NewCompositedCompiler(
			environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
		if err != nil {
			b.Fatal(err)
		}
		declarations := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
		condition := compiler.CompileCondition(
			[]plugincel.ExpressionAccessor{&validating.ValidationCondition{Expression: rule}}, declarations,
			environment.StoredExpressions)
		nothing := compiler.CompileCondition(nil, declarations, environment.StoredExpressions)
		policies = append(policies, validating.NewValidator(condition, nil, nothing, nothing, nil, nil))
	}
	object := &unstructured.Unstructured{Object: celtest.Decode(b, celtest.BenchObject).(map[string]any)}
	kind := object.GroupVersionKind()
	resource := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	attributes := admission.NewAttributesRecord(object, nil, kind, "team-a", "payments", resource, "", admission.Create,
		nil, false, &user.DefaultInfo{Name: "jane", Groups: []string{"dev"}})
	namespace := &corev1.Namespace{}
	namespace.Name = "team-a"
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	return contender{"Kubernetes' policies", func() {
		versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind,
			VersionedObject: admission.NewLazyObject(object)}
		for _, p := range policies {
			result := p.Validate(ctx, resource, versioned, nil, namespace, PolicyBudget, nil)
			if len(result.Decisions) != 1 || result.Decisions[0].Action != validating.ActionAdmit {
				b.Fatal(result.Decisions)
			}
		}
	}}
}

// kubernetesRules evaluates the rules as a schema's, over Kubernetes' typed values of an object.
func kubernetesRules(b testing.TB) (theirs, ours contender) {
	s := celtest.Structural(b, benchSchema)
	rules := make(apiextensionsv1.ValidationRules, len(benchRules))
	for i, rule := range benchRules {
		rules[i].Rule = strings.ReplaceAll(rule, "object.", "self.")
	}
	s.XValidations = rules
	object := celtest.Decode(b, celtest.BenchObject)
	kube := schemacel.NewValidator(s, false, uint64(ExpressionLimit))
	compiled, _, errs := CompileRules(rules, s, false, field.NewPath("rules"))
	if len(errs) > 0 {
		b.Fatal(errs)
	}
	var programs []*Program
	for _, r := range compiled.Rules {
		if r.Program.native == nil {
			b.Fatalf("%s does not run natively: %s", r.Source, r.Program.reason)
		}
		programs = append(programs, r.Program)
	}
	n := celtest.Parse(b, celtest.BenchObject)
	theirs = contender{"Kubernetes' rules", func() {
		if errs, _ := kube.Validate(context.Background(), nil, s, object, nil, PolicyBudget); len(errs) > 0 {
			b.Fatal(errs)
		}
	}}
	return theirs, contender{"native rules", func() { evalAll(b, programs, value.Self, n, compiled.Type) }}
}

// BenchmarkTenRules evaluates ten typical rules on an object of 1.4 KB in all ways.
func BenchmarkTenRules(b *testing.B) {
	typed, rules := kubernetesRules(b)
	for _, c := range []contender{natively(b), lazily(b), guardedMaps(b), kubernetesPolicies(b), rules, typed} {
		b.Run(strings.ReplaceAll(c.name, " ", "-"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.run()
			}
		})
	}
}

// BenchmarkEachRule evaluates each of the rules alone.
func BenchmarkEachRule(b *testing.B) {
	n := celtest.Parse(b, celtest.BenchObject)
	for i, p := range nativePrograms(b, benchRules) {
		b.Run(benchRules[i], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				evalAll(b, []*Program{p}, value.Object, n, nil)
			}
		})
	}
}

// TestAllocations: ten typical rules allocate nothing natively, and by cel-go what it cannot do without.
func TestAllocations(t *testing.T) {
	for _, c := range []struct {
		contender
		most float64
	}{{natively(t), 0}, {lazily(t), 12}} {
		c.run()
		if got := testing.AllocsPerRun(200, c.run); got > c.most {
			t.Errorf("%s: ten rules allocate %v times, want at most %v", c.name, got, c.most)
		}
	}
}
