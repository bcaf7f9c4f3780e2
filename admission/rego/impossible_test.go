package rego

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestImpossible: what the types of an object prove of rules is found, and nothing else.
func TestImpossible(t *testing.T) {
	var object map[string]any
	if err := json.Unmarshal([]byte(`{"type": "object", "properties": {"kind": {}, "metadata": {},
		"spec": {"type": "object", "properties": {"size": {}, "owner": {}, "any": {}, "map": {"type": "object"},
			"tags": {"type": "array", "items": {}}, "rooms": {"type": "array", "items": {"type": "object", "properties": {"doors": {}}}}}}}}`), &object); err != nil {
		t.Fatal(err)
	}
	const found = "FOUND"
	for _, c := range []struct{ name, rules, want string }{
		{"nothing to suggest", `deny contains "x" if input.review.object.spec.elsewhere > 3`, found},
		{"right", `deny contains "x" if input.review.object.spec.size > 3`, ""},
		{"a field that no object has", `deny contains "x" if input.review.object.spec.sise > 3`, found},
		{"by a variable", `deny contains "x" if { o := input.review.object; s := o.spec; s.sise > 3 }`, found},
		{"by input.request", `deny contains "x" if input.request.object.spec.sise > 3`, found},
		{"in the message", `deny contains msg if { input.review.object.spec.size > 3; msg := sprintf("%v", [input.review.object.spec.sise]) }`, found},
		{"in the head", `deny contains input.review.object.spec.sise if input.review.object.spec.size > 3`, found},
		{"of an item", `deny contains "x" if input.review.object.spec.rooms[_].windows > 3`, found},
		{"of an item that has it", `deny contains "x" if { some r in input.review.object.spec.rooms; r.doors > 3 }`,
			""},
		{"of an item by a variable", `deny contains "x" if { some r in input.review.object.spec.rooms; r.windows > 3 }`, found},
		{"a name in a list", `deny contains "x" if input.review.object.spec.tags.first == "a"`, found},
		{"null may be there", `deny contains "x" if input.review.object.spec == null`, ""},
		{"no object", `deny contains "x" if input.review.object == null`, ""},
		{"of one clause that has another beside it", "deny contains \"x\" if input.review.object.spec.sise > 3\ndeny contains \"y\" if input.review.object.spec.size > 3", found},
		{"negated", `deny contains "x" if not input.review.object.spec.sise`, ""},
		{"in a comprehension", `deny contains "x" if count([s | s := input.review.object.spec.sise]) == 0`, ""},
		{"in every", `deny contains "x" if every s in input.review.object.spec.tags { s.sise > 3 }`, ""},
		{"with another input", `deny contains "x" if { r with input as {"review": {"object": {"spec": {"sise": 4}}}} }` + "\nr if input.review.object.spec.sise > 3", ""},
		{"with an else", `deny contains "x" if r == 2` + "\nr := 1 if input.review.object.spec.sise > 3\nelse := 2",
			""},
		{"with a default", `deny contains "x" if r == 2` +
			"\ndefault r := 2\nr := 1 if input.review.object.spec.sise > 3", ""},
		{"by a helper", `deny contains "x" if r` + "\nr if input.review.object.spec.sise > 3", found},
		{"by one helper of two", `deny contains "x" if r` + "\nr if input.review.object.spec.sise > 3\nr if input.review.object.spec.size > 3", ""},
		{"by a function", `deny contains "x" if f(1)` + "\nf(x) if input.review.object.spec.sise > x", found},
		{"a set that is empty", `deny contains "x" if s["a"]` + "\ns contains x if x := input.review.object.spec.sise",
			found},
		{"an item of a set that is empty", `deny contains x if some x in s` +
			"\ns contains x if x := input.review.object.spec.sise", found},
		{"the size of a set that is empty", `deny contains "x" if count(s) == 0` +
			"\ns contains x if x := input.review.object.spec.sise", ""},
		{"a variable of the name of a rule", `deny contains "x" if { r := 1; r == 1 }` +
			"\nr if input.review.object.spec.sise > 3", ""},
		{"an argument of the name of a rule", `deny contains "x" if f(1)` +
			"\nf(r) if r == 1\nr if input.review.object.spec.sise > 3", ""},
		{"what is not known", `deny contains "x" if input.review.object.spec.any.b.c == 1`, ""},
		{"a key of a map", `deny contains "x" if input.review.object.spec.map.b == 1`, ""},
		{"the stored object", `deny contains "x" if input.review.oldObject.spec.sise > 3`, ""},
		{"parameters", `deny contains "x" if input.parameters.sise > 3`, ""},
		{"by object.get", `deny contains "x" if object.get(input.review.object.spec, "sise", 5) > 3`, ""},
		{"a rule that nothing asks", `deny contains "x" if input.review.object.spec.size > 3` +
			"\nr if input.review.object.spec.sise > 3", ""},
	} {
		p, err := Compile(Options{}, Module{File: "a.rego", Source: []byte("package policy\n\n" + c.rules + "\n")})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		deny, err := p.Query("data.policy.deny")
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		errs := p.Impossible(object, true, deny)
		if (len(errs) > 0) != (c.want == found) {
			t.Errorf("%s: got %v, want %q", c.name, errs, c.want)
		}
		for _, e := range errs {
			if e.Line < 3 || e.Column == 0 ||
				!strings.HasPrefix(e.Message, "'deny' can never have a value here, whatever the object: ") {
				t.Errorf("%s: got %v", c.name, e)
			}
		}
		if strings.Contains(c.name, "beside it") {
			if errs := p.Impossible(object, false, deny); len(errs) > 0 {
				t.Errorf("%s: got %v without clauses", c.name, errs)
			}
		}
		if suggests := strings.Contains(errs.Error(), "; did you mean `size`?"); suggests != (c.want == found &&
			strings.Contains(c.rules, ".sise")) {
			t.Errorf("%s: got %v", c.name, errs)
		}
	}
}

// TestFailingConstants: calls that fail whatever the object are found where they are, and no others.
func TestFailingConstants(t *testing.T) {
	for rules, want := range map[string]string{
		`deny contains "x" if 1 / 0 == 1`:                    `a.rego:3:22: always fails, since it depends on no object: eval_builtin_error: div: divide by zero`,
		`deny contains "x" if { x := 4 % (2 - 2); x > 1 }`:   `a.rego:3:29: always fails, since it depends on no object: eval_builtin_error: rem: modulo by zero`,
		`deny contains "x" if input.a > to_number("three")`:  `a.rego:3:32: always fails, since it depends on no object: eval_builtin_error: to_number: parsing "three": invalid syntax`,
		`deny contains "x" if units.parse_bytes("10XB") > 3`: `a.rego:3:22: always fails, since it depends on no object: eval_builtin_error: units.parse_bytes: units.parse_bytes: byte unit xb not recognized`,
		`deny contains "x" if regex.match("[", input.a)`: "a.rego:3:22: always fails, since it depends on no object: eval_builtin_error: regex.match: " +
			"error parsing regexp: missing closing ]: `[`",
		`deny contains "x" if { p := "["; regex.match(p, input.a) }`: "a.rego:3:34: always fails, since it depends on no object: eval_builtin_error: regex.match: " +
			"error parsing regexp: missing closing ]: `[`",
		`deny contains "x" if { some p in ["a"]; regex.match(p, input.a) }` + "\np := \"[\"": ``,
		`deny contains "x" if { q := [p | p := "["]; some p in q; regex.match(p, input.a) }`: ``,
		`deny contains "x" if input.a / 0 == 1`:                                              ``,
		`deny contains "x" if { to_number("3") > 2; lower("A") == "a"; 1 < 0 }`:              ``,
		`deny contains "x" if time.now_ns() > 3`:                                             ``,
		`deny contains "x" if "a" in ["b"]`:                                                  ``,
	} {
		p, err := Compile(Options{}, Module{File: "a.rego", Source: []byte("package policy\n\n" + rules + "\n")})
		if err != nil {
			t.Fatalf("%s: %v", rules, err)
		}
		got := ""
		if errs := p.FailingConstants(); len(errs) > 0 {
			got = errs.Error()
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", rules, got, want)
		}
	}
}
