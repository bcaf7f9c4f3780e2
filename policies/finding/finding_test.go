package finding_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/policies/finding"
)

// TestSummarized: notes are counted, and warnings that say the same, or the same of other names, are shown a few times.
// Errors are all there.
func TestSummarized(t *testing.T) {
	var found []finding.Finding
	add := func(n int, severity finding.Severity, file, message string) {
		for i := range n {
			found = append(found, finding.Finding{File: file, Field: fmt.Sprint("f", i), Message: message,
				Severity: severity})
		}
	}
	add(6, finding.Error, "a", "must be right")
	add(5, finding.Warning, "a", "is not enforced")
	add(8, finding.Warning, "b", "is not enforced")
	add(1, finding.Warning, "b", "has no effect")
	for i := range 12 {
		add(1, finding.Warning, "c", fmt.Sprintf("the format 'f%d' is not enforced", i))
	}
	add(6, finding.Warning, "d", "the format 'f' is not enforced")
	for i := range 6 {
		add(1, finding.Warning, "d", fmt.Sprintf("the format 'f%d' is not enforced", i))
	}
	add(3, finding.Gap, "e", "links are not followed")
	for i := range 7 {
		add(1, finding.Gap, "e", fmt.Sprintf("the format 'f%d' is not enforced", i))
	}
	add(2, finding.Note, "b", "is not read")
	before := slices.Clone(found)
	var got []string
	for _, f := range finding.Summarized(found) {
		got = append(got, f.String())
	}
	want := []string{
		"a: f0: must be right", "a: f1: must be right", "a: f2: must be right", "a: f3: must be right",
		"a: f4: must be right", "a: f5: must be right",
		"a: f0: warning: is not enforced", "a: f1: warning: is not enforced", "a: f2: warning: is not enforced",
		"a: f3: warning: is not enforced", "a: f4: warning: is not enforced",
		"b: f0: warning: is not enforced", "b: f1: warning: is not enforced", "b: f2: warning: is not enforced",
		"b: f3: warning: is not enforced",
		"b: f4: warning: is not enforced; the same is true of 3 more places, which 'gateway check -v' lists",
		"b: f0: warning: has no effect",
		"c: f0: warning: the format 'f0' is not enforced", "c: f0: warning: the format 'f1' is not enforced",
		"c: f0: warning: the format 'f2' is not enforced",
		"c: f0: warning: the format 'f3' is not enforced", "c: f0: warning: the format 'f4' is not enforced",
		"c: f0: warning: the format 'f5' is not enforced",
		"c: f0: warning: the format 'f6' is not enforced", "c: f0: warning: the format 'f7' is not enforced",
		"c: f0: warning: the format 'f8' is not enforced",
		"c: f0: warning: the format 'f9' is not enforced; 2 more places differ in their names alone, and 'gateway check -v' lists them",
		"d: f0: warning: the format 'f' is not enforced", "d: f1: warning: the format 'f' is not enforced",
		"d: f2: warning: the format 'f' is not enforced",
		"d: f3: warning: the format 'f' is not enforced",
		"d: f4: warning: the format 'f' is not enforced; the same is true of 1 more place, which 'gateway check -v' lists",
		"d: f0: warning: the format 'f0' is not enforced", "d: f0: warning: the format 'f1' is not enforced",
		"d: f0: warning: the format 'f2' is not enforced",
		"d: f0: warning: the format 'f3' is not enforced",
		"d: f0: warning: the format 'f4' is not enforced; 1 more place differs in its names alone, and 'gateway check -v' lists it",
		"e: f0: note: links are not followed; the same is true of 2 more places, which 'gateway check -v' lists",
		"e: f0: note: the format 'f0' is not enforced", "e: f0: note: the format 'f1' is not enforced",
		"e: f0: note: the format 'f2' is not enforced",
		"e: f0: note: the format 'f3' is not enforced",
		"e: f0: note: the format 'f4' is not enforced; 2 more places differ in their names alone, and 'gateway check -v' lists them",
		"b: note: 2 notes on what nearly every document has, such as answers, which are not enforced; 'gateway check -v' lists them",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !slices.Equal(found, before) {
		t.Error("the findings themselves have changed")
	}
}

// TestRule: text for people and the log have the id of the check, if there is one.
func TestRule(t *testing.T) {
	f := finding.Finding{File: "a.yaml", Line: 3, Message: "is not used", Severity: finding.Warning}
	if got, want := f.Named(), f.Text(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := f.Attributes(), []any{"finding", f.Text()}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	f.Rule = "unused"
	if got, want := f.Named(), "a.yaml:3: warning: is not used [unused]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := f.Attributes(), []any{"finding", f.Text(), "rule", "unused"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
