package cel

import (
	"context"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/admission-gateway/gateway/internal/document"
)

const benchObject = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"payments","namespace":"team-a","labels":{"app":"payments","team":"a","tier":"backend"},"annotations":{"example.com/owner":"payments@example.com"}},` +
	`"spec":{"replicas":3,"revisionHistoryLimit":10,"selector":{"matchLabels":{"app":"payments"}},"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"25%","maxUnavailable":0}},` +
	`"template":{"metadata":{"labels":{"app":"payments","team":"a"}},"spec":{"serviceAccountName":"payments","containers":[` +
	`{"name":"server","image":"registry.example.com/payments/server:1.4.2","ports":[{"name":"http","containerPort":8080},{"name":"metrics","containerPort":9090}],"resources":{"requests":{"cpu":"250m","memory":"256Mi"},"limits":{"cpu":"500m","memory":"512Mi"}},"securityContext":{"runAsNonRoot":true,"readOnlyRootFilesystem":true},"env":[{"name":"LOG_LEVEL","value":"info"},{"name":"DB_HOST","value":"db.team-a.svc"}]},` +
	`{"name":"proxy","image":"registry.example.com/mesh/proxy:2.1.0","ports":[{"name":"admin","containerPort":15000}],"resources":{"requests":{"cpu":"50m","memory":"64Mi"},"limits":{"cpu":"100m","memory":"128Mi"}},"securityContext":{"runAsNonRoot":true}}]}}}}`

var benchRules = []string{
	`object.spec.replicas <= 10`,
	`object.spec.template.spec.containers.all(c, c.image.startsWith('registry.example.com/'))`,
	`has(object.metadata.labels.team) && object.metadata.labels.team in ['a', 'b', 'c']`,
	`object.spec.template.spec.containers.all(c, has(c.resources.limits) && has(c.resources.limits.memory))`,
	`object.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && size(object.metadata.name) <= 63`,
}

func benchPrograms(t testing.TB) []*Program {
	c := NewAdmissionCompiler(false)
	var programs []*Program
	for _, rule := range benchRules {
		p, err := c.Condition(rule)
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, p)
	}
	return programs
}

func evalAll(t testing.TB, programs []*Program, n document.Node) {
	f := NewFrame(context.Background())
	v := f.Vars()
	v.Set(Object, n, nil)
	for _, p := range programs {
		if ok, err := p.EvalBool(f, v); !ok || err != nil {
			t.Fatal(p.Source(), ok, err)
		}
	}
	f.Release()
}

// BenchmarkFiveRules evaluates five typical rules on an object of 1.3 KB.
func BenchmarkFiveRules(b *testing.B) {
	programs := benchPrograms(b)
	n := parse(b, benchObject)
	b.ReportAllocs()
	for b.Loop() {
		evalAll(b, programs, n)
	}
}

// BenchmarkEachRule evaluates each of the rules alone.
func BenchmarkEachRule(b *testing.B) {
	n := parse(b, benchObject)
	for i, p := range benchPrograms(b) {
		b.Run(benchRules[i], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				evalAll(b, []*Program{p}, n)
			}
		})
	}
}

// BenchmarkFiveRulesGuardedMaps does the same as Kubernetes does: cel-go over maps with its own cost tracking and
// cancellation.
func BenchmarkFiveRulesGuardedMaps(b *testing.B) {
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
	object := types.DefaultTypeAdapter.NativeToValue(decode(b, benchObject))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		vars := map[string]any{"object": object}
		for _, p := range programs {
			if out, _, err := p.ContextEval(ctx, vars); err != nil || out != types.True {
				b.Fatal(out, err)
			}
		}
	}
}

// TestAllocations holds five typical rules to the allocations that cel-go itself cannot do without.
func TestAllocations(t *testing.T) {
	programs := benchPrograms(t)
	n := parse(t, benchObject)
	evalAll(t, programs, n)
	if got := testing.AllocsPerRun(200, func() { evalAll(t, programs, n) }); got > 6 {
		t.Errorf("five rules allocate %v times, want at most 6", got)
	}
}
