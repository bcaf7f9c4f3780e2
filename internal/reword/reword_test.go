package reword

import (
	"slices"
	"strings"
	"testing"
)

// TestForms: VAL-3, VAL-4: each form of the table with a message that has it.
func TestForms(t *testing.T) {
	const (
		must      = "a requirement must be worded with 'must', not "
		mustNot   = "what is not possible must be worded with 'must not' for a format, not "
		mayNot    = "what is not possible must be worded with 'may not' for behaviour, not "
		inWords   = "an inequality must be worded with 'greater than' or 'less than', 'or equal to' included, not "
		inQuotes  = "literals must be in single quotes"
		noProblem = ""
	)
	seen := map[*form]bool{}
	for _, c := range []struct{ message, want, problems string }{
		{"owner shouldn't be set", "owner must not be set", must + "'shouldn't be'"},
		{"Shall not contain spaces", "Must not contain spaces", must + "'shall not contain'"},
		{"the name should start with 'team-'", "the name must start with 'team-'", must + "'should start'"},
		{"Should be set; should match", "Must be set; must match", must + "'should be'; " + must + "'should match'"},
		{"name has to be lower case", "name must be lower case", must + "'has to be'"},
		{"cannot be empty", "must not be empty", mustNot + "'cannot be empty'"},
		{"A reservation can't be shorter than 30 minutes", "A reservation must not be shorter than 30 minutes",
			mustNot + "'can't be shorter than'"},
		{"the total cannot exceed 10", "the total must not exceed 10", mustNot + "'cannot exceed'"},
		{"region can not be changed once set", "region may not be changed once set", mayNot + "'can not be changed'"},
		{"must be bigger or equal to 4", "must be greater than or equal to 4", inWords + "'be bigger or equal to 4'"},
		{"must be more than or equals 4, inclusive", "must be greater than or equal to 4, inclusive",
			inWords + "'be more than or equals 4'"},
		{"must be smaller or equal to 4.", "must be less than or equal to 4.", inWords + "'be smaller or equal to 4'"},
		{"must be larger than 3", "must be greater than 3", inWords + "'be larger than 3'"},
		{"must be more than 3", "must be greater than 3", inWords + "'be more than 3'"},
		{"must be lower than 100m", "must be less than 100m", inWords + "'be lower than 100m'"},
		{"must be >= 1", "must be greater than or equal to 1", inWords + "'be >= 1'"},
		{"must be <=1, whatever happens", "must be less than or equal to 1, whatever happens", inWords + "'be <=1'"},
		{"must be > 1", "must be greater than 1", inWords + "'be > 1'"},
		{"must be < 1", "must be less than 1", inWords + "'be < 1'"},
		{"spec.replicas ≥ 3", "spec.replicas must be greater than or equal to 3", inWords + "'spec.replicas ≥ 3'"},
		{"cpu<=100m", "cpu must be less than or equal to 100m", inWords + "'cpu<=100m'"},
		{"replicas > 3", "replicas must be greater than 3", inWords + "'replicas > 3'"},
		{"replicas < 3", "replicas must be less than 3", inWords + "'replicas < 3'"},
		{`must be "Cookie" or "Header"`, "must be 'Cookie' or 'Header'", inQuotes},
		{"size should be > 3", "size must be greater than 3", must + "'should be'; " + inWords + "'be > 3'"},
	} {
		better, problems := Message(c.message)
		if got := strings.Join(problems, "; "); better != c.want || got != c.problems {
			t.Errorf("%s\ngot  %s (%s)\nwant %s (%s)", c.message, better, got, c.want, c.problems)
		}
		if again, problems := Message(better); again != better || len(problems) > 0 {
			t.Errorf("%s is worded anew: %s %q", better, again, problems)
		}
		if got, want := Advice(c.message), c.problems+"; better: "+c.want; got != want {
			t.Errorf("got advice %q, want %q", got, want)
		}
		for _, f := range forms {
			if f.pattern.MatchString(c.message) || f.pattern.MatchString(better) {
				seen[f] = true
			}
		}
	}
	for i, f := range forms {
		if !seen[f] {
			t.Errorf("form %d, %s: no message of this test has it", i, f.pattern)
		}
	}
}

// TestUnchanged: what is right, what is no form of the table, and what would become something else is left as it is.
func TestUnchanged(t *testing.T) {
	for _, message := range []string{
		"",
		"You can't book more than 3 desks",
		"you cannot have both a desk and a room",
		"no more than 5 containers are allowed",
		"must have more than 3 items",
		"must not be more than 5 characters",
		"must be no more than 63 characters",
		"a reservation must not be shorter than 30 minutes",
		"must be between 1 and 10",
		"must be greater than or equal to 5",
		"must be < 10 and > 0",
		"port must be in range 1 <= port <= 65535",
		"must hold where `should be < b`",
		"says 'should be'",
		`says "it's"`,
		`'a' differs from "a"`,
		`must be "a b"`,
		`alphabets, ":", "\"" and "-"`,
		"if it should be set, it must be a name",
		"the image is refused because it cannot be empty",
		"(this should only show up with both gates)",
		"does not have to be set",
		"users need to be named",
		"the reason cannot be found",
		"may not be changed once set",
		"don't use the latest tag",
		"use kubectl --flag=<value> >out",
		"a -> b is not possible",
		"must be named <name>-<suffix>",
		"must be ocp-release-<version>-<arch> and <= 64 chars",
		"must match ^(?P<x>a)$",
		"Container <%v> cannot run",
		"see https://example.com/y?a=b>c",
	} {
		if better, problems := Message(message); better != message || len(problems) > 0 {
			t.Errorf("%s\ngot %s %q", message, better, problems)
		}
	}
}

// FuzzMessage: what is proposed needs no second proposal, and code in back-quotes stays.
func FuzzMessage(f *testing.F) {
	f.Add("replicas should be >= 3 and cannot be changed")
	f.Add("must be \"a\" `should be`")
	f.Fuzz(func(t *testing.T, message string) {
		better, problems := Message(message)
		if (len(problems) > 0) != (better != message) {
			t.Fatalf("%q: %q with problems %q", message, better, problems)
		}
	})
}

// FuzzCues: a text without a cue is never reworded.
func FuzzCues(f *testing.F) {
	for _, text := range []string{
		"must be small", "cannot be changed", "Should be >= 5", "needs to be set", "ought\tto be",
		"must be higher than 5", "be larger or equals 3", "replicas≥1",
		`must be "a"`, "\u017fhould be set", "can't be empty", "be lower or equal to 1",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		better, problems := reworded(text)
		if got, found := Message(text); got != better || !slices.Equal(found, problems) {
			t.Errorf("%q becomes %q with %q, want %q with %q", text, got, found, better, problems)
		}
	})
}
