package policies_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/source"
)

// manyKinds are files of two kinds and of one of Kubernetes' own, with many policies for each, and with some that are
// wrong if isWrong is set. Policies of different kinds have the same expressions.
func manyKinds(isWrong bool) *source.Source {
	var files []source.File
	add := func(name string, texts ...string) {
		files = append(files, source.File{Name: name, Data: []byte(strings.Join(texts, "---\n"))})
	}
	add("kinds.yaml", definition("example.com", 0), definition("example.com", 9))
	const validating, validatingBinding, mutating, mutatingBinding = 0, 1, 2, 3
	for i := range 60 {
		name := fmt.Sprintf("policy-%02d", i)
		number := []int{0, 24, 6}[i%3] // expressions that compile
		if isWrong {
			number = i
		}
		texts := []string{
			writers[validating](name, "other", number), writers[validatingBinding](name, "other", 0),
			writers[mutating](name, "other", i%3), writers[mutatingBinding](name, "other", 0),
		}
		for k, text := range texts {
			switch i / 3 % 4 {
			case 1:
				text = strings.ReplaceAll(text, "[widgets]", "[gadgets]")
			case 2:
				text = strings.ReplaceAll(strings.ReplaceAll(text, "[widgets]", "[pods]"), "[example.com]", "['']")
			case 3:
				text = strings.ReplaceAll(text, "[widgets]", "['*']")
			}
			texts[k] = text
		}
		add(name+".yaml", texts...)
	}
	return source.Of(files)
}

// TestCompileInParallel compares what several processors compile with what one does. The race detector sees what they
// share.
func TestCompileInParallel(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, isWrong := range []bool{false, true} {
		files := manyKinds(isWrong)
		runtime.GOMAXPROCS(1)
		one, found := policies.Compile(files)
		if (one == nil) != isWrong {
			t.Fatalf("wrong: %v; one processor finds\n%s", isWrong, findingsText(found))
		}
		if len(found) < 20 {
			t.Errorf("only %d findings: %s", len(found), findingsText(found))
		}
		runtime.GOMAXPROCS(4)
		for range 3 {
			several, again := policies.Compile(files)
			if !slices.Equal(again, found) {
				t.Errorf("several processors find\n%s, and one finds\n%s", findingsText(again), findingsText(found))
			}
			if isWrong {
				continue
			}
			if got, want := described(t, several), described(t, one); got != want {
				t.Errorf("several processors make\n%s, and one makes\n%s", got, want)
			}
		}
	}
}

func findingsText(found []policies.Finding) string {
	var b strings.Builder
	for _, f := range found {
		b.WriteString(f.String() + "\n")
	}
	return b.String()
}
