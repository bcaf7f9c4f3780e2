package rego

import "testing"

// TestErrorsAfterTheFirstValue: OPA goes on with the first value of a rule before it looks for a second one, so that an error there
// counts before one in the rule, also if the rule has an else.
func TestErrorsAfterTheFirstValue(t *testing.T) {
	for _, module := range []string{
		`r0 := 1 if { some k; v := input.review.map[k]; v - input.review.map.a } else := v3 if { v3 := input.review.x }
violation contains {"msg": "m"} if { not 1 = count(r0) }`,
		`r0 := 1 if { some k; v = input.review.map[k]; v - input.review.map.a } else := v3 if { v3 := input.review.kind; input.review.kind == "none" }
violation contains {"msg": "m"} if { not 1 = count(r0) }`,
		`r0 := 1 if { some k; v := input.review.map[k]; v - input.review.map.a } else := 2 if { input.review.y }
violation contains {"msg": "m"} if { r0 == 1 }`,
		`r0 := w if { some k; v := input.review.map[k]; w := v - input.review.map.a }
violation contains {"msg": "m"} if { not 1 = count(r0) }`,
		`r0 := w if { some k; v := input.review.map[k]; w := v - input.review.map.a }
violation contains {"msg": "m"} if { r0 == 0; count(r0) == 1; r0 > 3 }`,
		`r0 := 1 if { some k; v := input.review.map[k]; v - input.review.map.a } else := v3 if { v3 := input.review.x }
r1 := r0 + 1 if { not input.review.none } else := input.review.y if { true }
violation contains {"msg": "m"} if { r1 == 2; not startswith(r1, "a") }`,
		`r0 := 1 if { some k; v := input.review.map[k]; v - input.review.map.a } else := v3 if { v3 := input.review.x }
violation contains {"msg": "m"} if { r0 == 1 }`,
	} {
		q := elseQuery(t, "package p\nimport rego.v1\n"+module)
		if is, why := q.Native(); !is {
			t.Logf("no plan: %s", why)
		}
		for _, review := range []string{`{"map":{"a":1,"b":{"a":2}}}`, `{"map":{"a":1}}`, `{"map":{"b":{"a":2},"a":1},"x":[1],"y":true}`, `{"map":{"a":1,"b":1,"c":"x"},"kind":"none"}`, `{"map":{}}`} {
			in := Input{Review: read(t, []byte(review))}
			likeOPA(t, q, &in)
		}
	}
}

func elseQuery(t *testing.T, module string) *Query {
	t.Helper()
	p, err := Compile(Options{}, Module{File: "policy.rego", Source: []byte(module)})
	if err != nil {
		t.Fatal(err)
	}
	q, err := p.Query("data.p.violation")
	if err != nil {
		t.Fatal(err)
	}
	return q
}
