package rego

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const coveredModule = `package p

default size := 0

size := input.review.size if input.review.size > 1

deny contains "large" if size > 10

deny contains "gone" if {
	to_number(input.review.name) > 1
	input.review.operation == "DELETE"
}

kind := "a" if {
	input.review.kind == "a"
} else := "b" if {
	input.review.kind == "b"
}

limit := 3
`

// TestObserve: rules are noted as they are written, what the index leaves out too, and the verdict
// stays as it is without that.
func TestObserve(t *testing.T) {
	p, err := Compile(Options{}, Module{File: "p.rego", Source: []byte(coveredModule)})
	if err != nil {
		t.Fatal(err)
	}
	all := map[Rule]*Observation{}
	p.Observe(func(r Rule) *Observation {
		all[r] = &Observation{}
		return all[r]
	})
	q, err := p.Query("data.p.deny")
	if err != nil {
		t.Fatal(err)
	}
	q = q.With(parsed(t, []byte(`{}`)))
	// Without the index the rule for deletions fails for the name.
	in := &Input{Review: parsed(t, []byte(`{"size":11,"operation":"CREATE","name":"x"}`))}
	found, err := q.Violations(context.Background(), in)
	if err != nil || len(found) != 1 || found[0].Message != "large" {
		t.Fatal(found, err)
	}
	var got []string
	for r, o := range all {
		got = append(got, fmt.Sprintf("%02d %s fact=%v ran=%v defined=%v undefined=%v", r.Line, r.Name, r.IsFact,
			o.Ran(), o.WasDefined(), o.WasUndefined()))
	}
	slices.Sort(got)
	want := []string{
		"03 size fact=true ran=false defined=false undefined=false",
		"05 size fact=false ran=true defined=true undefined=false",
		"07 deny fact=false ran=true defined=true undefined=false",
		"09 deny fact=false ran=true defined=false undefined=false",
		"14 kind fact=false ran=false defined=false undefined=false",
		"16 kind fact=false ran=false defined=false undefined=false",
		"20 limit fact=true ran=false defined=false undefined=false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	q, err = p.Query("data.p.kind")
	if err != nil {
		t.Fatal(err)
	}
	in.Review = parsed(t, []byte(`{"kind":"b"}`))
	if _, err := q.Value(context.Background(), in); err != nil {
		t.Fatal(err)
	}
	for r, o := range all {
		if r.Name == "kind" && (!o.Ran() || o.WasDefined() != (r.Line == 16) || o.WasUndefined() != (r.Line == 14)) {
			t.Errorf("%v: ran %v, defined %v, undefined %v", r, o.Ran(), o.WasDefined(), o.WasUndefined())
		}
	}
}
