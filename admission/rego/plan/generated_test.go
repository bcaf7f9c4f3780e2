package plan_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/admission-gateway/gateway/admission/rego/regotest"
)

// TestGenerated compares the rules of random modules with OPA's evaluator, for random inputs. The seeds are ones by
// which no module makes OPA go in circles, which would end the process.
func TestGenerated(t *testing.T) {
	data := map[string]any{}
	decode(t, `{"fixed":{"a":1,"list":["a","b",2],"map":{"a":{"b":1},"1":"x"}}}`, &data)
	var example any
	decode(t, `{"a":1,"b":"x","list":[1,"x",[1,2],{"a":3}],"map":{"a":1,"b":{"a":2},"c":[3]},"on":true,
		"k":{"one":1,"two":2,"x":"x","a":"a","yes":true,"no":false}}`, &example)
	var given any
	decode(t, `{"a":"x","b":2,"list":["x",1,[1,2]],"map":{"a":1,"b":{"a":2}},"most":2}`, &given)
	compared := 0
	for i := range 70 {
		r := rand.New(rand.NewPCG(uint64(i), 12))
		g := &regotest.Grammar{Rand: r}
		text := g.Module(func(text string) bool {
			_, err := compiled(ast.RegoV1, data, "true", text)
			return err == nil
		})
		for rule, kind := range g.Kinds {
			name := fmt.Sprintf("data.t.r%d", rule)
			if kind == "function" {
				continue
			}
			q, err := compiled(ast.RegoV1, data, "x = "+name, text)
			if err != nil || q.plan == nil {
				continue
			}
			for n := range 4 {
				review, parameters := example, given
				if n > 0 {
					review, parameters = regotest.Changed(example, r), regotest.Changed(given, r)
				}
				input := ast.NewTerm(ast.MustInterfaceToValue(map[string]any{"review": review,
					"parameters": parameters}))
				q.lenient = n == 3
				q.compare(t, input)
				if compared++; t.Failed() {
					t.Fatalf("%s of\n%s\nfor %s", name, text, input)
				}
			}
		}
	}
	if compared < 400 {
		t.Errorf("only %d evaluations were compared", compared)
	}
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		t.Fatal(err)
	}
}

// TestErrorsAfterTheFirstValue: OPA goes on with the first value of a rule before it looks for a second one, so that an
// error there counts before one in the rule, also if the rule has an else.
func TestErrorsAfterTheFirstValue(t *testing.T) {
	for _, module := range []string{
		`r0 := 1 if { some k; v := input.review.map[k]; v - input.review.map.a } else := v3 if { v3 := input.review.x }
p contains {"msg": "m"} if { not 1 = count(r0) }`,
		`r0 := 1 if { some k; v = input.review.map[k]; v - input.review.map.a } else := v3 if { v3 := input.review.kind; input.review.kind == "none" }
p contains {"msg": "m"} if { not 1 = count(r0) }`,
		`r0 := 1 if { some k; v := input.review.map[k]; v - input.review.map.a } else := 2 if { input.review.y }
p contains {"msg": "m"} if { r0 == 1 }`,
		`r0 := w if { some k; v := input.review.map[k]; w := v - input.review.map.a }
p contains {"msg": "m"} if { r0 == 0; count(r0) == 1; r0 > 3 }`,
		`r0 := 1 if { some k; v := input.review.map[k]; v - input.review.map.a } else := v3 if { v3 := input.review.x }
r1 := r0 + 1 if { not input.review.none } else := input.review.y if { true }
p contains {"msg": "m"} if { r1 == 2; not startswith(r1, "a") }`,
		`p := 1 if { x := to_number(input.review.x[_]); x > 0; input.review.kind == "none" }
p := 1 if { y := input.review.kind; y == "some" } else := 3`,
		`f(k) := 1 if { k == "a" }
f(k) := 2 if { to_number(k) > 1; k == "b" }
p contains [k, f(k)] if some k, _ in input.review.map`,
		`p if { data.fixed.map[input.review.kind]; to_number("a") > 1 } else := 2 if { input.review.kind == "none" }`,
		`p if { v := input.review.kind; to_number(v) > 1; input.review.kind == "none" }
p if { input.review.x == [1] }`,
		`p if { time.now_ns() == time.now_ns() }`,
	} {
		q, err := compiled(ast.RegoV1, map[string]any{"fixed": map[string]any{"map": map[string]any{"1": "x"}}},
			"x = data.t.p", "package t\n"+module)
		if err != nil {
			t.Fatal(err)
		}
		if q.plan == nil {
			continue
		}
		for _, review := range []string{`{"map":{"a":1,"b":{"a":2}}}`, `{"map":{"a":1}}`,
			`{"map":{"b":{"a":2},"a":1},"x":[1],"y":true}`, `{"map":{"a":1,"b":1,"c":"x"},"kind":"none"}`,
			`{"map":{}}`, `{"kind":"some","x":["1","a"]}`, `{"kind":"none","x":["a"]}`, `{"kind":"1"}`, `{"kind":1}`,
			`{"kind":"7","x":[1]}`} {
			q.compare(t, ast.MustParseTerm(`{"review": `+review+`}`))
		}
	}
}
