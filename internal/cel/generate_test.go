package cel

import (
	"math/rand/v2"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// compareGenerated compares an expression in three ways. ok is false if there is nothing to
// compare.
func compareGenerated(t *testing.T, e *env, kubeEnv *celgo.Env, expression string, objects [2]string, set func(*Vars),
	values map[string]any) (ok bool) {
	checked, issues := e.Compile(expression)
	if issues != nil {
		return false
	}
	theirAST, issues := kubeEnv.Compile(expression)
	if issues != nil {
		t.Errorf("%s does not compile: %v", expression, issues.Err())
		return false
	}
	natively, lazily, err := bothWays(t, e, expression, checked.NativeRep())
	theirs, theirErr := kubeEnv.Program(theirAST)
	if err != nil || theirErr != nil {
		// Kubernetes evaluates constants when it plans. Here a compiled policy is asked whether it always fails.
		if (err == nil) != (theirErr == nil) && (err != nil || alwaysFails(expression) == nil) {
			t.Errorf("%s\nplanning: %v, Kubernetes %v", expression, err, theirErr)
		}
		return false
	}
	if natively == nil {
		t.Errorf("%s does not run natively", expression)
		return false
	}
	lazy, lazyUnits := metered(lazily, nil, set)
	native, nativeUnits := metered(natively, nil, set)
	if most := max(lazyUnits, nativeUnits); most > ExpressionLimit || min(lazyUnits, nativeUnits) < 0 {
		t.Errorf("%s\n%s\nnatively %d units, lazily %d: more than an expression may cost", expression, objects,
			nativeUnits, lazyUnits)
	}
	if strings.Contains(lazy.err+native.err, "cost limit") {
		if prices, ok := kubernetesUnits(theirs, values); ok && prices < ExpressionLimit/4 {
			t.Errorf("%s\n%s\nnatively %v, lazily %v, by Kubernetes' prices %d units", expression, objects, native,
				lazy, prices)
		}
		return true
	}
	// An object that the schema refuses reaches no rule: which of its faults an expression meets first is not compared.
	isRefused := strings.Contains(lazy.err+native.err, "invalid data, ")
	if native != lazy && !isRefused {
		t.Errorf("%s\n%s\nnatively %v\nlazily   %v", expression, objects, native, lazy)
	}
	// A plan counts what cel-go's interpreter counts that reads the tape, and the steps that
	// Kubernetes counts besides. It evaluates an operand of a wrong type twice, and lists it makes
	// for less. So it neither works for nothing nor refuses what twice these have the units for.
	// The interpreter reads operands whole before it finds an error; a plan stops at it.
	if native.err != "" {
		lazyUnits = min(lazyUnits, nativeUnits)
	}
	if prices, ok := kubernetesUnits(theirs, values); ok &&
		(lazyUnits > 2*nativeUnits+prices+20 || nativeUnits > 2*(lazyUnits+prices)+10) {
		t.Errorf("%s\n%s\nnatively %d units, lazily %d, by Kubernetes' prices %d", expression, objects, nativeUnits,
			lazyUnits, prices)
	}
	kube := kubernetes(theirs, values)
	for try := 0; try < 100 && !same(lazy, kube) && !uncomparable(lazy, kube); try++ {
		kube = kubernetes(theirs, values) // the order of a map's keys is random
	}
	if !same(lazy, kube) && !uncomparable(lazy, kube) {
		t.Errorf("%s\n%s\nlazily     %v\nKubernetes %v", expression, objects, lazy, kube)
	}
	return true
}

// kubernetesUnits is what an evaluation costs by Kubernetes' prices; false if it panics, as it does over some errors.
func kubernetesUnits(p celgo.Program, values map[string]any) (units int64, ok bool) {
	defer func() {
		if recover() != nil {
			units, ok = 0, false
		}
	}()
	_, details, _ := p.Eval(values)
	if details == nil || details.ActualCost() == nil {
		return 0, false
	}
	return int64(*details.ActualCost()), true
}

// generatedPlain compares expressions about plain JSON.
func generatedPlain(t testing.TB) func(t *testing.T, seed []byte) bool {
	e := adhocEnv(t)
	return func(t *testing.T, seed []byte) bool {
		g := celtest.OfObjects(seed)
		objects := [2]string{g.Object(), g.Object()}
		nodes := [2]document.Node{celtest.Parse(t, objects[0]), celtest.Parse(t, objects[1])}
		return compareGenerated(t, e, e.Env, g.Value(3), objects, func(v *Vars) {
			v.Set(value.Object, nodes[0], nil)
			v.Set(value.OldObject, nodes[1], nil)
		}, map[string]any{
			"object":    types.DefaultTypeAdapter.NativeToValue(celtest.Decode(t, objects[0])),
			"oldObject": types.DefaultTypeAdapter.NativeToValue(celtest.Decode(t, objects[1])),
			"params":    nil, "namespaceObject": nil,
		})
	}
}

// generatedTyped compares expressions about what a schema describes.
func generatedTyped(t testing.TB) func(t *testing.T, seed []byte) bool {
	s := celtest.Structural(t, celtest.TypedSchema)
	typ := value.NewType(s, true)
	c := ruleCompiler{node: s, typ: typ, self: model.SchemaDeclType(s, true).MaybeAssignTypeName(selfTypeName)}
	e, err := c.env(false)
	if err != nil {
		t.Fatal(err)
	}
	kubeEnv := rulesEnv(t, s, true, false)
	withMeta := model.WithTypeAndObjectMeta(s)
	return func(t *testing.T, seed []byte) bool {
		g := celtest.OfTyped(seed)
		objects := [2]string{g.Typed(), g.Typed()}
		nodes := [2]document.Node{celtest.Parse(t, objects[0]), celtest.Parse(t, objects[1])}
		return compareGenerated(t, e, kubeEnv, g.Value(3), objects, func(v *Vars) {
			v.Set(value.Self, nodes[0], typ)
			v.Set(value.OldSelf, nodes[1], typ)
		}, map[string]any{
			"self":    schemacel.UnstructuredToVal(celtest.Decode(t, objects[0]), withMeta),
			"oldSelf": schemacel.UnstructuredToVal(celtest.Decode(t, objects[1]), withMeta),
		})
	}
}

// TestGeneratedExpressions compares some generated expressions.
func TestGeneratedExpressions(t *testing.T) {
	for name, compare := range map[string]func(*testing.T, []byte) bool{"plain": generatedPlain(t),
		"typed": generatedTyped(t)} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			compared := 0
			for range 4000 {
				seed := make([]byte, 200)
				fillSeed(seed, random)
				if compare(t, seed) {
					compared++
				}
			}
			t.Logf("%d expressions were compared", compared)
			if compared < 500 {
				t.Errorf("only %d expressions were compared", compared)
			}
		})
	}
}

// TestUnitsOfConstants: a map of constants alone costs as much as in cel-go, which makes it once, whatever its keys
// are.
func TestUnitsOfConstants(t *testing.T) {
	e := adhocEnv(t)
	for _, expression := range []string{`{dyn([1]): 1}`, `{dyn({'a': 1}): 1}`, `{'a': {dyn([]): 1}}`} {
		checked, issues := e.Compile(expression)
		if issues != nil {
			t.Fatal(issues)
		}
		natively, lazily, err := bothWays(t, e, expression, checked.NativeRep())
		if err != nil {
			t.Fatal(err)
		}
		if _, native := metered(natively, nil, func(*Vars) {}); native != 0 {
			t.Errorf("%s costs %d units natively", expression, native)
		}
		if _, lazy := metered(lazily, nil, func(*Vars) {}); lazy != 0 {
			t.Errorf("%s costs %d units in cel-go", expression, lazy)
		}
	}
}

// FuzzExpressions compares expressions and objects made of bytes natively, by cel-go on lazy values, and by cel-go on
// Kubernetes' values.
func FuzzExpressions(f *testing.F) {
	for i := range 20 {
		seed := make([]byte, 120)
		for j := range seed {
			seed[j] = byte(i*37 + j*j*11)
		}
		f.Add(seed, i%2 == 0)
	}
	plain, typed := generatedPlain(f), generatedTyped(f)
	f.Fuzz(func(t *testing.T, seed []byte, schema bool) {
		if schema {
			typed(t, seed)
			return
		}
		plain(t, seed)
	})
}

// fillSeed fills a seed with random bytes, of which expressions are made.
func fillSeed(seed []byte, random *rand.Rand) {
	for i := range seed {
		seed[i] = byte(random.Uint32())
	}
}
