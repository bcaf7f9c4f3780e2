package cel

import (
	"errors"
	"fmt"
	"testing"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/outcome"
)

// FuzzParsed: what is said of an expression that was parsed once, for several checkers, is what is
// said of one that each of them has for itself.
func FuzzParsed(f *testing.F) {
	for _, expression := range celtest.AnyExpressions {
		f.Add(expression)
	}
	for _, expression := range []string{
		`object.spec.none < 5`, `variables.size < '5'`, `variables.broken == 1`, `1 / 0 == 1`,
		`[1, 2].all(object, object / 0 == 1)`, `[1].exists(request, object.spec.size / 0 == 1)`,
		`self.x == bool(string(dyn(1.5)))`, `math.greatest(1, 2) / 0 == 1`,
		`optional.of(object.spec.size).orValue('a') < 5`, `has(object.spec.none) && params.x == 1`,
		`authorizer.requestResource.check('get').allowed() && 1 / 0 == 1`, `google.protobuf.Timestamp{}`, `object.`,
		`type(object.spec.size) == int`, `cel.bind(a, 1 / 0, a == 1)`, `{b'a': 1}`,
		`[?object.a]`,
	} {
		f.Add(expression)
	}
	typ := fateType(f)
	all := NewCommon()
	f.Fuzz(func(t *testing.T, expression string) {
		if len(expression) > 200 {
			return
		}
		shared := Parse(expression)
		constant, why := Parse(expression).constantFate()
		want := alwaysFails(expression)
		if want == nil && constant == outcome.AlwaysErrs {
			want = errors.New(Prefixed(why, FailsAlways+": "))
		}
		if got := shared.AlwaysFails(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q always fails: got %v, want %v", expression, got, want)
		}
		compareShared(t, all, expression)
		for _, v := range []TypedVariables{{Object: typ}, {}, {Object: typ, HasParams: true, Mutating: true},
			{Object: typ}} {
			mine, own := checkerFor(t, NewCommon(), v), checkerFor(t, NewCommon(), v)
			ask := func(c *TypeChecker, p func() *Parsed) string {
				fate, err := c.Fate(p())
				units, ok := c.Cost(p())
				return fmt.Sprint(c.Check(p()), fate, err, units, ok, c.Variable("fuzzed", p()))
			}
			if got, want := ask(mine, func() *Parsed { return shared }),
				ask(own, func() *Parsed { return Parse(expression) }); got != want {
				t.Errorf("%q: got %s, want %s", expression, got, want)
			} else {
				for range 2 { // for other policies, too
					others := checkerFor(t, all, v)
					if got := ask(others, func() *Parsed { return all.Parse(expression) }); got != want {
						t.Errorf("%q in common: got %s, want %s", expression, got, want)
					}
				}
			}
		}
		if fate, err := shared.constantFate(); fate != constant || fmt.Sprint(err) != fmt.Sprint(why) {
			t.Errorf("%q has another fate once it was checked: %v, %v, before %v, %v", expression, fate, err, constant,
				why)
		}
	})
}

// compareShared compiles an expression for several policies that share what they have in common, and for one by itself.
func compareShared(t *testing.T, all *Common, expression string) {
	uses := []func(c *AdmissionCompiler) (*Program, error){
		func(c *AdmissionCompiler) (*Program, error) { return c.Condition(expression) },
		func(c *AdmissionCompiler) (*Program, error) { return c.MatchCondition(expression) },
		func(c *AdmissionCompiler) (*Program, error) { return c.Annotation(expression) },
		func(c *AdmissionCompiler) (*Program, error) {
			m, err := c.Message(expression)
			if err != nil {
				return nil, err
			}
			return m.Program(), nil
		},
		func(c *AdmissionCompiler) (*Program, error) {
			if err := c.Variable("fuzzed", expression); err != nil {
				return nil, err
			}
			return c.Condition("variables.fuzzed == 1")
		},
	}
	for i, compile := range uses {
		for _, variables := range [][2]string{{"size", "object.spec.size"}, {"size", "'a'"}, {"broken", "object."}} {
			policy := func(shared *Common) (said string) {
				c := NewAdmissionCompiler(i%2 == 0)
				c.DeclareState([]string{"things"})
				if shared != nil {
					c.Share(shared)
				}
				said = fmt.Sprint(c.Variable(variables[0], variables[1]))
				p, err := compile(c)
				if err != nil {
					return said + err.Error()
				}
				native, reason := p.Plan()
				return fmt.Sprint(said, p.Source(), native, reason, p.uses, p.readsUser, p.readsKind, p.needsNoObject,
					p.foreign, p.carried, p.size, p.wholes, p.counts)
			}
			want := policy(nil)
			for range 2 {
				if got := policy(all); got != want {
					t.Errorf("%q in common with others: got %s, want %s", expression, got, want)
				}
			}
		}
	}
}

// checkerFor returns a checker that knows some variables.
func checkerFor(t *testing.T, all *Common, v TypedVariables) *TypeChecker {
	c, err := all.TypeChecker(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range [][2]string{{"size", "object.spec.size"}, {"broken", "object.spec.none"}} {
		_ = c.Variable(v[0], all.Parse(v[1])) // what is wrong with it is in its fate
	}
	return c
}
