package rego

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// TestFamily: sets whose names begin with a rule's name and '_' count as the rule.
func TestFamily(t *testing.T) {
	tests := []struct{ name, text, rules, found string }{
		{"the rule alone", `deny contains "a"`, "data.p.deny", "a"},
		{"sets of longer names", "deny contains \"b\"\ndeny_images contains \"a\"\ndeny_images_too contains {\"msg\": \"c\"}",
			"data.p.deny data.p.deny_images data.p.deny_images_too", "b a c"},
		{"no rule of the name", "deny_images contains \"a\"\ndenyall contains \"b\"\nwarn_images contains \"c\"",
			"data.p.deny_images", "a"},
		{"the same text twice", "deny contains \"a\"\ndeny_images contains \"a\"", "data.p.deny data.p.deny_images",
			"a"},
		{"a rule that reads the others", "deny contains m if some m in deny_images\ndeny_images contains \"a\"",
			"data.p.deny data.p.deny_images", "a"},
		{"what is no set", "deny contains \"a\"\ndeny_list := [\"b\"]\ndeny_is(x) if x == 1\ndeny_if if true\ndeny_map[\"k\"] := 1", "data.p.deny", "a"},
		{"a rule that is no set", "deny if count(deny_images) > 0\ndeny_images contains \"a\"", "data.p.deny", ""},
		{"a rule with a default", "default deny := false\ndeny_images contains \"a\"", "data.p.deny", "none"},
		{"none", "denied contains \"a\"", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, err := Compile(Options{}, Module{File: "p.rego", Source: []byte("package p\n\n" + test.text + "\n")})
			if err != nil {
				t.Fatal(err)
			}
			rules := p.Family("data.p", "deny")
			if got := strings.Join(rules, " "); got != test.rules {
				t.Fatalf("got the rules %q, want %q", got, test.rules)
			}
			if len(rules) == 0 {
				return
			}
			q, err := p.Union(rules)
			if err != nil {
				t.Fatal(err)
			}
			found, err := q.Violations(context.Background(), &Input{})
			if err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for _, v := range found {
				got = append(got, v.Message)
			}
			if len(found) == 0 {
				got = append(got, "none")
			}
			want := strings.Split(test.found, " ")
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
