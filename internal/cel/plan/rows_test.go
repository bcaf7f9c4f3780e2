package plan_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
)

// expressionsIn returns the expressions in a file of expected results: the lines without a tab.
func expressionsIn(t *testing.T, file string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line[0] != '\t' {
			all = append(all, strings.TrimSuffix(line, "\n"))
		}
	}
	return all
}

// TestOperators compares the expressions of testdata/operators.txt on all pairs of many values, as object.a and
// object.b. Behind each are the units of all pairs together: natively, and by cel-go.
func TestOperators(t *testing.T) {
	l := celtest.Plain(t)
	texts := []string{
		"0", "1", "-1", "2147483648", "9223372036854775807", "-9223372036854775808", "0.5", "1.0",
		`""`, `"a"`, `"ab"`, `"a long text of more than ten characters"`, "true", "false", "null", "[]", `["a",1]`,
		`{"a":1}`,
	}
	var pairs []input
	for _, a := range texts {
		for _, b := range texts {
			pairs = append(pairs, plainInput(t, `{"a":`+a+`,"b":`+b+`}`, `{"a":`+b+`,"b":`+a+`}`))
		}
	}
	expressions := expressionsIn(t, "testdata/operators.txt")
	var units bytes.Buffer
	for _, expression := range expressions {
		x, err := l.Compile(expression)
		if err != nil {
			t.Fatal(expression, err)
		}
		if x.Native == nil {
			t.Fatalf("%s has no native plan: %s", expression, x.Reason)
		}
		var native, lazy int64
		for _, in := range pairs {
			n, z := compare(t, x, in, isAlike)
			native, lazy = native+n, lazy+z
		}
		fmt.Fprintf(&units, "%s\n\t%d units, %d\n", expression, native, lazy)
	}
	golden(t, "testdata/operators.txt", units.Bytes())
}

// large has strings and lists that are long enough for the costs of functions to differ.
func large() string {
	word := strings.Repeat("ab, é", 200)
	list := strings.TrimSuffix(strings.Repeat(`"x1","y22",`, 100), ",")
	numbers := strings.TrimSuffix(strings.Repeat("3,1,2,", 60), ",")
	return fmt.Sprintf(`{"s":%q,"l":[%s],"n":[%s],"m":{"a":[%s],"b":%q},"i":3,"big":%q,`, word, list, numbers, numbers,
		word,
		strings.Repeat("a", 700_000)) + `"o":[{"k":2,"v":"b"},{"k":1,"v":"a"}]}`
}

// TestLarge compares the expressions of testdata/large.txt, whose arguments are large. Behind each are the units and
// the memory that it costs, with its value or failure: natively, and by cel-go.
func TestLarge(t *testing.T) {
	l := celtest.Plain(t)
	in := plainInput(t, large(), `{"s":"b"}`)
	var text bytes.Buffer
	for _, expression := range expressionsIn(t, "testdata/large.txt") {

		x, err := l.Compile(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		fmt.Fprintf(&text, "%s\n", expression)
		if x.Native == nil {
			t.Errorf("%s has no native plan: %s", expression, x.Reason)
			continue
		}
		natively, lazily := celtest.NewMachine(), celtest.NewMachine()
		native, nativeUnits := x.NativelyOn(natively, in.bind)
		lazy, lazyUnits := x.LazilyOn(lazily, in.bind)
		fmt.Fprintf(&text, "\t%d units, %d KiB  %s\n", nativeUnits, natively.Asked.Peak>>10, short(native.String()))
		fmt.Fprintf(&text, "\t%d units, %d KiB  %s\n", lazyUnits, lazily.Asked.Peak>>10, short(lazy.String()))
		if !strings.HasPrefix(native.Err, "stopped") { // Kubernetes may work for minutes on what is stopped here
			want, _ := x.Theirs(in.values)
			for try := 0; try < 100 && !isAlike(native, want); try++ {
				want, _ = x.Theirs(in.values) // the order of a map's keys is random
			}
			if !isAlike(native, want) || !isAlike(lazy, want) {
				t.Errorf("%s\nnatively %v\nlazily   %v\nwant     %v", expression, native, lazy, want)
			}
		}
		natively.Release()
		lazily.Release()
		if natively.Asked.Used() != 0 || lazily.Asked.Used() != 0 {
			t.Errorf("%s: %d and %d bytes are not given back", expression, natively.Asked.Used(), lazily.Asked.Used())
		}
	}
	golden(t, "testdata/large.txt", text.Bytes())
}

func short(s string) string {
	if len(s) > 90 {
		return s[:60] + "..." + s[len(s)-20:]
	}
	return s
}
