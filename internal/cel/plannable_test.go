package cel

import (
	"testing"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/plan"
)

// refusedPlans are expressions of which cel-go makes no plan, and neighbours of theirs.
var refusedPlans = []string{
	`object.a.matches('a' + '[')`, `'a'.find('(') == ''`, `int('x') == 1`, `duration('1s') == duration('2s')`,
	`{b'a': 1}.size() == 1`, `object[duration('1s')]`,
	`object[b'a']`, `object[null]`, `object[1.5]`, `object[1u]`, `object[true]`, `object[[1]]`, `object[object.a]`,
	`object['a'].b[0]`, `object.a in [b'a', b'b']`,
	`object.a in [[1]]`, `[?optional.of(1)]`, `type(object.a) == int`,
	`object.a == google.protobuf.NullValue.NULL_VALUE`, `-object.a == 1`, `google.protobuf.Timestamp{}`,
	`[1, 2].all(object, object / 0 == 1)`, `object.all(x, x.matches('a' + '['))`, `object.all(k, v, k in v)`,
	`[].exists(x, x)`, `object.a in []`, `(object.a ? object.b : object.c).d`,
	`has((object.a ? object.b : object.c).d)`, `has(object.a[0].b)`,
	`object.a.b.startsWith('x') ? 1 < 2 : object.c % 2 == 1`, `size(object.a.map(x, x + 1))`,
}

// TestPlannable: cel-go refuses no expression that need not be shown to it.
func TestPlannable(t *testing.T) {
	spared := 0
	for _, expression := range append(refusedPlans, celtest.AnyExpressions...) {
		isPlannable, isCompiled := comparePlans(t, adhocEnv(t), expression)
		if !isCompiled {
			t.Errorf("%s does not compile", expression)
		}
		if isPlannable {
			spared++
		}
	}
	if spared < 35 {
		t.Errorf("%d expressions are plannable, want 35 at least", spared)
	}
}

// FuzzPlannable is TestPlannable for any expression.
func FuzzPlannable(f *testing.F) {
	for _, expression := range append(refusedPlans, celtest.AnyExpressions...) {
		f.Add(expression)
	}
	e := adhocEnv(f)
	f.Fuzz(func(t *testing.T, expression string) { comparePlans(t, e, expression) })
}

// comparePlans compares what is said of an expression with what cel-go makes of it. The expression may be of any type.
func comparePlans(t *testing.T, e *env, expression string) (isPlannable, isCompiled bool) {
	t.Helper()
	ast, issues := e.Compile(expression)
	if issues != nil {
		return false, false
	}
	isPlannable = plan.IsPlannable(ast.NativeRep())
	interpreted, _, err := e.interpreted(expression, ast.NativeRep(), nil)
	if isPlannable && err != nil {
		t.Errorf("%s: %v", expression, err)
	}
	p, planErr := e.plan(expression, ast.NativeRep(), nil)
	if (err == nil) != (planErr == nil) {
		t.Fatalf("%s is planned with the error %v, want %v", expression, planErr, err)
	}
	if err == nil && (p.uses != interpreted.uses || p.carried != interpreted.carried || p.native == nil &&
		p.plan == nil || p.native != nil && p.size.Sizes != 0) {
		t.Errorf("%s is planned as %+v, want %+v", expression, p, interpreted)
	}
	return isPlannable, true
}
