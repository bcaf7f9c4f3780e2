package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const module = "testdata/module"

// all takes all faults of the package clamp but some.
func all(equivalent ...string) sample {
	s := sample{equivalent: map[string]bool{}}
	for _, name := range equivalent {
		s.equivalent[name] = true
	}
	return s
}

// runOf plants a sample in the package clamp, and returns what is printed about it, without times.
func runOf(t *testing.T, s sample, verbose bool) string {
	t.Helper()
	m, err := build(module, "./clamp", s)
	if err != nil {
		t.Fatal(err)
	}
	defer m.remove()
	m.within = 2 * time.Second
	var b strings.Builder
	if err := m.run(&b, verbose); err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`take .*s\n`).ReplaceAllString(b.String(), "take T\n")
}

// The sample names each fault, and whether a test catches it: one that never ends is caught too.
func TestRun(t *testing.T) {
	want, err := os.ReadFile("testdata/clamp.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := runOf(t, all(), true); got != string(want) {
		t.Errorf("printed\n%s\nnot\n%s", got, want)
	}
}

// The same seed takes the same faults, and another takes others; a known fault is never taken.
func TestSample(t *testing.T) {
	known := "clamp: Next: wait < 0 becomes wait <= 0"
	names := func(n int, seed uint64) string {
		s := all(known)
		s.n, s.seed = n, seed
		m, err := build(module, "./clamp", s)
		if err != nil {
			t.Fatal(err)
		}
		m.remove()
		var names []string
		for _, f := range m.faults {
			if f.name("clamp") == known {
				t.Errorf("the sample has %s", known)
			}
			names = append(names, f.name("clamp"))
		}
		return strings.Join(names, "\n")
	}
	first := names(5, 1)
	if n := strings.Count(first, "\n") + 1; n != 5 {
		t.Errorf("the sample has %d faults, not 5:\n%s", n, first)
	}
	if again := names(5, 1); again != first {
		t.Errorf("the seed took\n%s\nand then\n%s", first, again)
	}
	if other := names(5, 2); other == first {
		t.Errorf("another seed took the same:\n%s", first)
	}
	names(0, 0)
}

func TestBuildFails(t *testing.T) {
	for _, c := range []struct {
		pattern string
		s       sample
		want    string
	}{
		{"./bare", all(), "bare has no tests in its folder"},
		{"./...", all(), "./... names 2 packages, not one"},
		{"./clamp", all("clamp: Gone: a becomes b"), "the list of equivalent faults has one that cannot be planted: clamp: Gone: a becomes b"},
		{"./missing", all(), "directory not found"},
	} {
		m, err := build(module, c.pattern, c.s)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error is %v, not %q", c.pattern, err, c.want)
		}
		if err == nil {
			m.remove()
		}
	}
}

func TestReadEquivalent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(file, []byte("# a comment\n\na: F: x becomes y  # faster alone\nb: G: z is left out\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	got, err := readEquivalent(file)
	if err != nil || len(got) != 2 || !got["a: F: x becomes y"] || !got["b: G: z is left out"] {
		t.Errorf("read %v, %v", got, err)
	}
	if got, err := readEquivalent(filepath.Join(t.TempDir(), "missing")); err != nil || len(got) != 0 {
		t.Errorf("read %v, %v", got, err)
	}
}
