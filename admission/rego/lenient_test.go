package rego

import (
	"testing"

	"github.com/admission-gateway/gateway/admission/rego/plan"
)

// TestLenient: errors of built-in functions count as undefined values if the query asks for it. The
// first one is reported, also if OPA evaluates the query, and no strict query sees a value that was
// found this way.
func TestLenient(t *testing.T) {
	q := query(t, Options{}, "data.p.deny", `package p

large contains c.name if {
	some c in input.review.containers
	to_number(c.cpu) > 4
}

deny contains name if some name in large
`)
	in := Input{Review: read(t, []byte(`{"containers":[{"name":"a","cpu":"many"},{"name":"b","cpu":"8"}]}`)),
		Shared: plan.NewShared(nil)}
	var told []string
	in.Relaxed = func(err error) { told = append(told, err.Error()) }
	const failure = `p.rego:5:2: eval_builtin_error: to_number: parsing "many": invalid syntax`
	for _, of := range []*Query{q, byOPA(q)} {
		told = nil
		if got := valueOf(t, of.Lenient(), &in); got != `["b"]` {
			t.Errorf("lenient, native %v: got %s", of.native != nil, got)
		}
		if len(told) != 1 || told[0] != "data.p.deny: "+failure {
			t.Errorf("lenient, native %v: told %q", of.native != nil, told)
		}
		if got := valueOf(t, of, &in); got != "!"+failure {
			t.Errorf("strict, native %v: got %s", of.native != nil, got)
		}
	}
	var got []string
	for _, e := range q.program.Relaxable() {
		got = append(got, e.Error())
	}
	if len(got) != 1 || got[0] != "dir/p.rego:3:1: fail-open: an error of 'to_number' counts as undefined here, so that a request may pass that the rule would refuse" {
		t.Errorf("check says %q", got)
	}
}

// TestLenientBounds: what a lenient query may not do ends it as it ends a strict one.
func TestLenientBounds(t *testing.T) {
	q := query(t, Options{Budget: 1 << 20}, "data.p.deny", "package p\n\ndeny contains \"no\" if {\n\tcount(numbers.range(1, 1000000000)) > 0\n}\n")
	huge := query(t, Options{}, "data.p.deny", "package p\n\ndeny contains \"no\" if to_number(input.review) > 1\n")
	for _, of := range []*Query{huge, byOPA(huge)} {
		const want = "!p.rego:3:23: eval_builtin_error: to_number: a number has an exponent of more than 4 digits"
		if got := valueOf(t, of.Lenient(), &Input{Review: Text("1e999999")}); got != want {
			t.Errorf("native %v: got %s", of.native != nil, got)
		}
	}
	for _, of := range []*Query{q, byOPA(q)} {
		if got := valueOf(t, of.Lenient(), &Input{}); got != "!"+errBudget.Error() {
			t.Errorf("native %v: got %s", of.native != nil, got)
		}
	}
}
