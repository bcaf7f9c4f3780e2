package rego

import (
	"fmt"
	"strings"
	"testing"
)

// TestMutants: each rule, condition, comparison, negation and number of a module is changed, and its tests stay as they
// are.
func TestMutants(t *testing.T) {
	const text = `package queues

import data.limits

default allow := false

# a comment with 7 > 3
deny contains msg if {
	some c in input.review.containers
	c.size > limits[0]
	not exempt(c.name)
	c.size >= 10 with data.x as 4
	msg := sprintf("'%s' is > 3", [c.name])
}

exempt(name) if startswith(name, "x")

level := 2 if {
	count(input.review.a) == 1
} else := 3 if {
	every x in input.review.a { x < 5 }
}

sizes := [y | some y in input.review.b; y != 6]

test_deny if count(deny) == 0
`
	var got []string
	for _, m := range Mutants(Module{File: "p.yaml", Line: 8, Source: []byte(text)}) {
		if _, err := Compile(Options{}, Module{File: "p.rego", Source: m.Source}); err != nil &&
			strings.Contains(err.Error(), "rego_parse_error") {
			t.Errorf("%s: %v", m.Change, err)
		}
		got = append(got, fmt.Sprintf("%d:%d %s: %s", m.Line, m.Column, m.Rule, m.Change))
	}
	want := `12:18 allow: #false# to #true#
17:2 deny: #c.size > limits[0]# to #false#
17:2 deny: #c.size > limits[0]# to #true#
17:9 deny: #># to #>=#
17:18 deny: #0# to #1#
18:2 deny: #not exempt(c.name)# without #not#
18:2 deny: #not exempt(c.name)# to #true#
19:2 deny: #c.size >= 10 with data.x as 4# to #true#
19:9 deny: #>=# to #>#
19:12 deny: #10# to #11#
19:30 deny: #4# to #5#
23:17 exempt: #startswith(name, "x")# to #false#
23:17 exempt: #startswith(name, "x")# to #true#
25:10 level: #2# to #3#
26:2 level: #count(input.review.a) == 1# to #false#
26:2 level: #count(input.review.a) == 1# to #true#
26:24 level: #==# to #!=#
26:27 level: #1# to #2#
27:11 level: #3# to #4#
28:2 level: #every x in input.review.a { x < 5 }# to #false#
28:2 level: #every x in input.review.a { x < 5 }# to #true#
28:30 level: #x < 5# to #true#
28:32 level: #<# to #<=#
28:34 level: #5# to #6#
31:1 sizes: #sizes := [y | some y in input.review.b; y != 6]# is left out
31:46 sizes: #6# to #7#`
	if all := strings.Join(got, "\n"); all != strings.ReplaceAll(want, "#", "`") {
		t.Errorf("got\n%s", all)
	}
}

// TestMutantsOfBothVersions: a module of either version of the language has mutants, and what is no module has none.
func TestMutantsOfBothVersions(t *testing.T) {
	for text, want := range map[string]int{
		"package p\n\nx { 1 > 2 }\n":    5,
		"package p\n\nx if { 1 > 2 }\n": 5,
		"package p\n\nx if {\n":         0,
		"":                              0,
	} {
		if got := len(Mutants(Module{File: "p.rego", Source: []byte(text)})); got != want {
			t.Errorf("%q has %d mutants, want %d", text, got, want)
		}
	}
}
