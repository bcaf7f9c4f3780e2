package cel

import (
	"fmt"
	"testing"
)

// FuzzParsed: what is said of an expression that was parsed once, for several checkers, is what is
// said of one that each of them has for itself.
func FuzzParsed(f *testing.F) {
	for _, expression := range fuzzExpressions {
		f.Add(expression)
	}
	for _, expression := range []string{
		`object.spec.none < 5`, `variables.size < '5'`, `variables.broken == 1`, `1 / 0 == 1`, `[1, 2].all(object, object / 0 == 1)`, `[1].exists(request, object.spec.size / 0 == 1)`,
		`self.x == bool(string(dyn(1.5)))`, `math.greatest(1, 2) / 0 == 1`, `optional.of(object.spec.size).orValue('a') < 5`, `has(object.spec.none) && params.x == 1`,
		`authorizer.requestResource.check('get').allowed() && 1 / 0 == 1`, `google.protobuf.Timestamp{}`, `object.`, `type(object.spec.size) == int`, `cel.bind(a, 1 / 0, a == 1)`, `{b'a': 1}`,
		`[?object.a]`,
	} {
		f.Add(expression)
	}
	typ := fateType(f)
	f.Fuzz(func(t *testing.T, expression string) {
		if len(expression) > 200 {
			return
		}
		shared := Parse(expression)
		if got, want := fmt.Sprint(shared.AlwaysFails()), fmt.Sprint(alwaysFails(expression)); got != want {
			t.Errorf("%q always fails: got %s, want %s", expression, got, want)
		}
		constant, why := shared.ConstantFate()
		for _, v := range []TypedVariables{{Object: typ}, {}, {Object: typ, HasParams: true, Mutating: true}, {Object: typ}} {
			mine, own := checkerFor(t, v), checkerFor(t, v)
			ask := func(c *TypeChecker, p func() *Parsed) string {
				fate, err := c.Fate(p())
				units, ok := c.Cost(p())
				return fmt.Sprint(c.Check(p()), fate, err, units, ok, c.Variable("fuzzed", p()))
			}
			if got, want := ask(mine, func() *Parsed { return shared }), ask(own, func() *Parsed { return Parse(expression) }); got != want {
				t.Errorf("%q: got %s, want %s", expression, got, want)
			}
		}
		if fate, err := shared.ConstantFate(); fate != constant || fmt.Sprint(err) != fmt.Sprint(why) {
			t.Errorf("%q has another fate once it was checked: %v, %v, before %v, %v", expression, fate, err, constant, why)
		}
	})
}

// checkerFor returns a checker that knows some variables.
func checkerFor(t *testing.T, v TypedVariables) *TypeChecker {
	c, err := NewTypeChecker(v)
	if err != nil {
		t.Fatal(err)
	}
	for name, expression := range map[string]string{"size": "object.spec.size", "broken": "object.spec.none"} {
		_ = c.Variable(name, Parse(expression)) // what is wrong with it is in its fate
	}
	return c
}
