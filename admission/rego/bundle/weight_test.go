package bundle

import (
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/util"

	"github.com/admission-gateway/gateway/admission/rego"
)

// kept returns how much of the heap is held by what f returns.
func kept(f func() any) int {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	v := f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(v)
	return int(after.HeapAlloc) - int(before.HeapAlloc)
}

// noise is what the heap may differ by on its own.
const noise = 64 << 10

// TestJSONWeight: the values that encoding/json makes never take more than was asked for before.
func TestJSONWeight(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	texts := map[string]string{}
	for _, part := range []string{"{}", "[]", "1", `"a"`, `""`, "null", "12345678901234567890", `{"a":1}`, "[1]",
		"[[]]", `{"a":{}}`, `{"a":[]}`, `{"a":1,"b":2,"c":3}`,
		`{"aaaaaaaa":"bbbbbbbbb"}`, `{"1":1,"2":1,"3":1,"4":1,"5":1,"6":1,"7":1,"8":1,"9":1}`, "[1,2,3]", "[1,2,3,4,5]",
		"1.5"} {
		texts[part] = "[" + strings.Repeat(part+",", 50_000) + "0]"
	}
	var members strings.Builder
	for i := range 100_000 {
		members.WriteString(`"` + strconv.Itoa(i) + `":` + strconv.Itoa(i) + ",")
	}
	texts["members"] = "{" + members.String() + `"x":0}`
	for i := range 20 {
		var b strings.Builder
		b.WriteByte('[')
		for b.Len() < 200_000 {
			randomValue(&b, random, 4)
			b.WriteByte(',')
		}
		b.WriteString("0]")
		texts["random "+strconv.Itoa(i)] = b.String()
	}
	for name, text := range texts {
		took := kept(func() any {
			var v any
			if err := util.UnmarshalJSON([]byte(text), &v); err != nil {
				t.Fatal(err)
			}
			return v
		})
		if weight := jsonWeight([]byte(text)); took > weight+noise {
			t.Errorf("%s: %d bytes were asked for, and %d taken", name, weight, took)
		}
	}
}

func randomValue(b *strings.Builder, random *rand.Rand, depth int) {
	n := random.IntN(6)
	switch kind := random.IntN(5); {
	case kind == 0 && depth > 0:
		b.WriteByte('[')
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			randomValue(b, random, depth-1)
		}
		b.WriteByte(']')
	case kind == 1 && depth > 0:
		b.WriteByte('{')
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(`"k` + strconv.Itoa(i) + `":`)
			randomValue(b, random, depth-1)
		}
		b.WriteByte('}')
	case kind == 2:
		b.WriteString(`"` + strings.Repeat("x", random.IntN(20)) + `\",{["`)
	case kind == 3:
		b.WriteString(strconv.Itoa(random.IntN(1_000_000)))
	default:
		b.WriteString("true")
	}
}

// TestParseWeight: what OPA's parser makes never takes more than was asked for before.
func TestParseWeight(t *testing.T) {
	const n = 1 << 14
	for name, source := range map[string]string{
		"list": "x := [" + strings.Repeat("1,", n) + "1]", "set": "x := {" + strings.Repeat("1,", n) + "1}",
		"object":    "x := {" + strings.Repeat("a:1,", n) + "b:1}",
		"variables": "p if { x := [" + strings.Repeat("a,", n) + "1]}", "lists": "x := [" + strings.Repeat("[],", n) +
			"1]", "objects": "x := [" + strings.Repeat("{},", n) + "1]",
		"reference": "p if { x" + strings.Repeat(".b", n) + " }", "rules": strings.Repeat("p:=1\n", n),
		"ifs": strings.Repeat("p if 1\n", n), "expressions": "p if {" + strings.Repeat("1;", n) + "1}",
		"calls": "p if {" + strings.Repeat("f();", n) + "1}", "sum": "p if { x = 1" + strings.Repeat("+1", 4000) + "}",
		"comments": strings.Repeat("#\n", n), "string": `x := "` + strings.Repeat("a", n) + `"`,
		"strings": "x := [" + strings.Repeat(`"",`, n) + "1]", "not": "p if {" + strings.Repeat("not a;", n) + "1}",
		"with":           "p if { a " + strings.Repeat("with b as 1 ", n) + "}",
		"comprehensions": "x := [" + strings.Repeat("[1|1],", n) + "1]", "some": "p if {" +
			strings.Repeat("some a;", n) + "1}", "imports": strings.Repeat("import data.a\n", n),
		"else": "p if 1" + strings.Repeat(" else if 1", 2000), "every": "p if {" +
			strings.Repeat("every x in a {1};", n) + "1}", "templates": "x := [" + strings.Repeat(`$"{1}",`, n) + "1]",
		"heads": strings.Repeat("p contains 1 if 1\n", n), "arguments": "f(" + strings.Repeat("a,", n) + "a) := 1",
		"defaults": strings.Repeat("default a := 1\n", n),
		"brackets": "p if { x" + strings.Repeat("[1]", n) + " }", "unicode": "x := [" +
			strings.Repeat("\"\u00e9\",", n) + "1]",
	} {
		source := "package a\n" + source + "\n"
		took := kept(func() any {
			m, err := ast.ParseModuleWithOpts("a.rego", source, ast.ParserOptions{RegoVersion: ast.RegoV1})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return m
		})
		if weight := rego.ParseWeight([]byte(source)); took > weight+noise {
			t.Errorf("%s: %d bytes were asked for, and %d taken", name, weight, took)
		}
	}
}
