package cel

import (
	"fmt"
	"testing"
)

// TestUnfilled: an expression that reads a field whose default is not filled in is found, unless it asks for the field.
func TestUnfilled(t *testing.T) {
	u := NewUnfilled([]string{".size", ".a-b", ".spec.mode", ".spec", ".lines[*].count", ".labels[*].on"})
	for expression, want := range map[string]string{
		`object.size < 5`:                                                  "[object.size]",
		`object.size < 5 && oldObject.size > 1`:                            "[object.size oldObject.size]",
		`object['size'] < 5`:                                               "[object.size]",
		`object.a__dash__b == 1`:                                           "[object.a-b]",
		`has(object.size) && object.size < 5`:                              "[]",
		`!has(object.size) || object.size < 5`:                             "[]",
		`'size' in object && object.size < 5`:                              "[]",
		`has(oldObject.size) && object.size < 5`:                           "[object.size]",
		`object.?size.orValue(1) < 5`:                                      "[]",
		`object[?'size'].orValue(1) < 5`:                                   "[]",
		`object.?spec.mode.orValue('') == ''`:                              "[]",
		`object.other < 5`:                                                 "[]",
		`object.sizes.size < 5`:                                            "[]",
		`object.spec.mode == ''`:                                           "[object.spec object.spec.mode]",
		`has(object.spec.mode)`:                                            "[object.spec]",
		`has(object.spec) && has(object.spec.mode) && object.spec.mode==1`: "[]",
		`object.lines.all(l, l.count > 1)`:                                 "[object.lines[*].count]",
		`object.lines.all(l, !has(l.count) || l.count > 1)`:                "[]",
		`object.lines[0].count > 1`:                                        "[object.lines[*].count]",
		`object.lines.exists(object, object.size > 1)`:                     "[]",
		`object.labels['a'].on`:                                            "[object.labels[*].on]",
		`object.lines.map(l, {'n': [l.count]})`:                            "[object.lines[*].count]",
		`[object.size].exists(s, s > 1)`:                                   "[object.size]",
		`variables.all.size > 1`:                                           "[object.size]",
		`variables.other.size > 1`:                                         "[]",
		`object.checked`:                                                   "[]",
		`object.size <`:                                                    "[]",
	} {
		r := u.Reader(map[string]string{"object": "", "oldObject": ""})
		r.Variable("all", Parse("object"))
		r.Variable("other", Parse("object.other"))
		if got := fmt.Sprint(r.Reads(Parse(expression))); got != want {
			t.Errorf("%s: got %s, want %s", expression, got, want)
		}
	}
	r := u.Reader(map[string]string{"object": ""})
	r.Condition(Parse("has(object.size)"))
	if got := fmt.Sprint(r.Reads(Parse("object.size + object.spec.mode"))); got != "[object.spec object.spec.mode]" {
		t.Errorf("behind a match condition: got %s", got)
	}
	if got := fmt.Sprint(u.Reader(map[string]string{"self": ".lines[*]"}).Reads(
		Parse("self.count > 1"))); got != "[self.count]" {
		t.Errorf("a rule of a schema: got %s", got)
	}
	if NewUnfilled(nil) != nil {
		t.Error("no fields are some")
	}
}
