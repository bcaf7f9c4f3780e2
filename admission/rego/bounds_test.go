package rego

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/admission/rego/builtin"
)

// query compiles a module and prepares its rule.
func query(t testing.TB, o Options, rule, text string) *Query {
	t.Helper()
	p, err := Compile(o, Module{File: "dir/p.rego", Source: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	q, err := p.Query(rule)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// TestBounds: what a module makes is bounded, whichever function makes it, and so is the memory.
func TestBounds(t *testing.T) {
	doubled := func(first, next string) string {
		text := "x0 := " + first + "\n"
		for i := 1; i <= 40; i++ {
			text += fmt.Sprintf("x%d := ", i) + strings.ReplaceAll(next, "X", fmt.Sprintf("x%d", i-1)) + "\n"
		}
		return text + "r := x40"
	}
	for name, body := range map[string]string{
		"a range":                 `r := numbers.range(1, 1000000000)`,
		"a range of huge numbers": `r := numbers.range(1, 100000000000000000000000000)`,
		"a range with steps":      `r := numbers.range_step(1, 1000000000, 2)`,
		"addresses":               `r := net.cidr_expand("10.0.0.0/4")`,
		"addresses of version 6":  `r := net.cidr_expand("fd00::/16")`,
		"concatenations":          doubled(`"0123456789"`, `concat("", [X, X])`),
		"replacements":            doubled(`"aaaaaaaaaa"`, `replace(X, "a", "aa")`),
		"many replacements":       doubled(`"aaaaaaaaaa"`, `strings.replace_n({"a": "aa"}, X)`),
		"regular replacements":    doubled(`"aaaaaaaaaa"`, `regex.replace(X, "a", "$0$0")`),
		"prints":                  doubled(`"0123456789"`, `sprintf("%s%s", [X, X])`),
		"prints of lists":         doubled(`["0123456789"]`, `array.concat([X], [X])`) + "\ns := sprintf(\"%v\", [r])",
		"JSON of lists":           doubled(`["0123456789"]`, `array.concat([X], [X])`) + "\ns := json.marshal(r)",
		"YAML of lists":           doubled(`["0123456789"]`, `array.concat([X], [X])`) + "\ns := yaml.marshal(r)",
		"widths":                  `r := sprintf("` + strings.Repeat("%900000d", 100) + `", numbers.range(1, 100))`,
		"given widths":            `r := sprintf("` + strings.Repeat("%[1]*[2]d", 100) + `", [900000, 1])`,
		"products":                doubled(`123456789`, `X * X`),
		"shifts":                  `r := bits.lsh(1, 10000000000)`,
		"indents":                 `r := json.marshal_with_options([[[[1]]]], {"pretty": true, "indent": concat("", [s | numbers.range(1, 400000)[_]; s := "          "])})`,
		"lists":                   `r := [x | some i in numbers.range(1, 10000); some j in numbers.range(1, 10000); x := [i, j]]`,
		"sets":                    `r := {x | some i in numbers.range(1, 10000); some j in numbers.range(1, 10000); x := [i, j]}`,
		"objects":                 `r := {x: i | some i in numbers.range(1, 10000); some j in numbers.range(1, 10000); x := sprintf("%d-%d", [i, j])}`,
		"joined lists":            doubled(`numbers.range(1, 1000)`, `array.concat(X, X)`),
		"paths": `nodes := numbers.range(1, 14)` + "\n" + `g := {n: nodes | some n in nodes}` + "\n" +
			`r := graph.reachable_paths(g, {1})`,
		"loops":     `some i in numbers.range(1, 10000); some j in numbers.range(1, 10000); i + j < 0; r := 1`,
		"encodings": doubled(`"%%%%%%%%%%"`, `urlquery.encode(concat("", [X, X]))`),
		"base64":    doubled(`"0123456789"`, `base64.encode(concat("", [X, X]))`),
	} {
		t.Run(name, func(t *testing.T) {
			q := query(t, Options{}, "data.p.deny", "package p\n\ndeny contains \"no\" if {\n"+body+
				"\ncount(sprintf(\"%v\", [r])) >= 0\n}\n")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			found, err := q.Violations(context.Background(), &Input{})
			runtime.ReadMemStats(&after)
			if !errors.Is(err, errBudget) && !errors.Is(err, errTime) &&
				(err == nil || !strings.HasSuffix(err.Error(), builtin.ErrDigits.Error())) {
				t.Errorf("got %v, %v, want %v", found, err, errBudget)
			}
			const most = 64 * DefaultBudget / 4
			if made := after.TotalAlloc - before.TotalAlloc; made > most {
				t.Errorf("made %d MB, want at most %d MB", made>>20, uint64(most)>>20)
			}
		})
	}
}

// TestHeavyValues: a value that names others often, which name others often, is refused.
func TestHeavyValues(t *testing.T) {
	for name, next := range map[string]string{"in a rule": `{"a": X, "b": [X]}`, "by functions": `twice(X)`} {
		text := "package p\n\ntwice(x) := [x, x]\n\ndeny contains \"no\" if {\n\tx0 := [1]\n"
		for i := 1; i <= 40; i++ {
			text += fmt.Sprintf("\tx%d := %s\n", i, strings.ReplaceAll(next, "X", fmt.Sprintf("x%d", i-1)))
		}
		_, err := Compile(Options{}, Module{File: "p.rego", Source: []byte(text + "\tcount(x40) > 0\n}\n")})
		if want := "p.rego:5:1: a rule must not write a value of more than 1048576 parts"; err == nil ||
			err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

// TestHugeNumbers: numbers whose decimal form fills the memory are not calculated with.
func TestHugeNumbers(t *testing.T) {
	q := query(t, Options{}, "data.p.deny", "package p\n\ndeny contains \"no\" if input.x + 1 > 0")
	for _, number := range []string{"1e600000000", "1E+99999", "1e-99999"} {
		if _, err := parse([]byte(`{"x":` + number + `}`)); err == nil {
			t.Errorf("%s is read", number)
		}
		text := query(t, Options{}, "data.p.deny", "package p\n\ndeny contains \"no\" if to_number(input.x) + 1 > 0")
		if _, err := text.Violations(context.Background(),
			&Input{Root: Object(Member{"x", Text(number)})}); err == nil {
			t.Errorf("%s: a text with the number is read", number)
		}
	}
	for _, number := range []string{"1e300", "9007199254740993", "1.50"} {
		root, err := parse([]byte(`{"x":` + number + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if found, err := q.Violations(context.Background(), &Input{Root: root}); err != nil || len(found) != 1 {
			t.Errorf("%s: got %v, %v", number, found, err)
		}
	}
}

// TestNumbersInTexts: a digest in a text is no number, and a number with too many digits to
// calculate with is refused wherever it comes from.
func TestNumbersInTexts(t *testing.T) {
	long := "1." + strings.Repeat("1", builtin.MaxDigits)
	if _, err := parse([]byte(`{"x":` + long + `}`)); !errors.Is(err, builtin.ErrDigits) {
		t.Errorf("a document: got %v, want %v", err, builtin.ErrDigits)
	}
	for body, want := range map[string]string{
		`json.unmarshal("{\"image\":\"a@sha256:9e83421\"}").image != ""`: "",
		`json.unmarshal("[1e83421]") != []`:                              "json.unmarshal: a number has an exponent of more than 4 digits",
		`json.unmarshal(sprintf("[%s]", [input.x])) != []`:               "json.unmarshal: a number has more than 4096 digits",
		`yaml.unmarshal("a: sha256:9e83421f").a != ""`:                   "",
		`yaml.unmarshal("a: 1e83421").a != ""`:                           "yaml.unmarshal: a number has an exponent of more than 4 digits",
		`to_number(input.x) > 0`:                                         "to_number: a number has more than 4096 digits",
		`1e9999 * 1e9999 > 0`:                                            "mul: a number has more than 4096 digits",
	} {
		q := query(t, Options{}, "data.p.deny", "package p\n\ndeny contains \"no\" if "+body)
		found, err := q.Violations(context.Background(), &Input{Root: Object(Member{"x", Text(long)})})
		if want == "" && (err != nil || len(found) != 1) || want != "" &&
			(err == nil || !strings.HasSuffix(err.Error(), want)) {
			t.Errorf("%s: got %v, %v, want %q", body, found, err, want)
		}
	}
}

// TestReferences: no reference in a schema leads to a file or a host, with a budget or in a test.
func TestReferences(t *testing.T) {
	file := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(file, []byte(`{"enum":["hunter2"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ schema, want string }{
		"a file":                   {`{"$ref": "file://` + file + `"}`, "leads out of the schema"},
		"a file, as a text":        {`"{\"$ref\": \"file://` + file + `\"}"`, "leads out of the schema"},
		"a host":                   {`{"properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}}`, "leads out of the schema"},
		"a base":                   {`{"items": {"$id": "file://` + file + `", "items": {"$ref": "#/x"}}}`, "leads out of the schema"},
		"its own name":             {`{"$id": "file:///x", "definitions": {"a": {}}, "items": {"$ref": "file:///x#/definitions/a"}}`, ""},
		"itself":                   {`{"$ref": "#"}`, "a part of itself for the same value"},
		"itself by others":         {`{"definitions": {"a": {"anyOf": [{"$ref": "#/definitions/b"}]}, "b": {"not": {"$ref": "#/definitions/a"}}}}`, "a part of itself for the same value"},
		"itself for another value": {`{"items": {"$ref": "#"}, "type": ["array", "number"]}`, ""},
		"a name that is a value":   {`{"enum": [{"id": "a"}], "items": {"$ref": "#"}}`, ""},
	} {
		for _, f := range []string{"json.match_schema(\"[]\", S)", "json.verify_schema(S)"} {
			text := "package p\n\ntest_it if is_array(" + strings.ReplaceAll(f, "S", c.schema) + ")\n"
			q := query(t, Options{}, "data.p.test_it", text)
			_, err := q.Value(context.Background(), &Input{})
			if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %s: got %v, want %q", name, f, err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %s: the file was read: %v", name, f, err)
			}
		}
	}
}

// TestLibraryLoads: the functions that are refused when a module is loaded are these, and no
// template of Gatekeeper's library calls them.
func TestLibraryLoads(t *testing.T) {
	refused := slices.Sorted(maps.Keys(builtin.Refusals()))
	want := []string{
		"crypto.x509.parse_and_verify_certificates", "crypto.x509.parse_and_verify_certificates_with_options",
		"http.send",
		"net.lookup_ip_addr", "opa.runtime", "providers.aws.sign_req",
	}
	if !slices.Equal(refused, want) {
		t.Errorf("refused are %v, want %v", refused, want)
	}
	dir, count := suites(t), 0
	err := filepath.WalkDir(filepath.Join(dir, "data", "gatekeeper-library"),
		func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Base(path) != "template.yaml" {
				return err
			}
			file, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			modules := template(t, file)
			if len(modules[0].Source) == 0 {
				return nil // it has no Rego
			}
			count++
			if _, err := Compile(Options{V0: true}, modules...); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			return nil
		})
	if err != nil || count < 20 {
		t.Errorf("%d templates load, %v", count, err)
	}
}

// TestEnds: an evaluation ends with its request, and at its deadline.
func TestEnds(t *testing.T) {
	q := query(t, Options{Budget: 1 << 60}, "data.p.deny", "package p\n\ndeny contains \"no\" if {\n\tsome i in numbers.range(1, 100000)\n\tsome j in numbers.range(1, 100000)\n\ti + j < 0\n}\n")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := q.Violations(ctx, &Input{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
	if _, err := q.Violations(context.Background(), &Input{Deadline: time.Now().Add(time.Millisecond)}); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("late: got %v", err)
	}
}

// TestPanic: a panic in the evaluation is an error.
func TestPanic(t *testing.T) {
	q := query(t, Options{}, "data.p.deny", "package p\n\ndeny contains \"no\" if data.inventory.x")
	in := Input{Inventory: func() (Value, error) { panic("x") }}
	if _, err := q.Violations(context.Background(), &in); err == nil ||
		!strings.Contains(err.Error(), "internal error") {
		t.Errorf("got %v", err)
	}
}

// TestFailures: what has no verdict is an error, with its place.
func TestFailures(t *testing.T) {
	for name, c := range map[string]struct{ text, rule, want string }{
		"an error of a function": {"deny contains \"no\" if to_number(input.x) > 1", "deny", "data.p.deny: p.rego:3:23: eval_builtin_error: to_number: parsing \"a\": invalid syntax"},
		"no value":               {"allow if input.x == \"b\"", "allow", "data.p.allow: the rule has no value for the request"},
		"two values":             {"deny := \"a\" if input.x == \"a\"\n\ndeny := \"b\" if input.x == \"a\"", "deny", "data.p.deny: p.rego:5:1: eval_conflict_error: rule data.p.deny produced conflicting values"},
		"not a set":              {"deny := 7", "deny", "data.p.deny: the value must be a set of violations, not number"},
		"no message": {"deny contains {\"message\": \"x\"}", "deny",
			"data.p.deny: a violation must have a member 'msg'"},
		"a message of numbers": {"deny contains {\"msg\": 1}", "deny",
			"data.p.deny: the member \"msg\" of a violation must be a string, not number"},
		"a wrong code": {"deny contains {\"msg\": \"x\", \"code\": 200}", "deny", "data.p.deny: the member 'code' of a violation must be a status code from 400 to 599"},
	} {
		t.Run(name, func(t *testing.T) {
			q := query(t, Options{}, "data.p."+c.rule, "package p\n\n"+c.text+"\n")
			in := Input{Root: Object(Member{"x", Text("a")})}
			var err error
			if c.rule == "allow" {
				_, _, err = q.Allowed(context.Background(), &in)
			} else {
				_, err = q.Violations(context.Background(), &in)
			}
			if err == nil || err.Error() != c.want {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}

// TestCycle: a module with which OPA's evaluator ends the process is evaluated.
func TestCycle(t *testing.T) {
	q := query(t, Options{}, "data.p.r", `package p

f(x) := 1 if {
	v := {1 | w := {x: {x, 1} | x == [x, x]; {x, 1} = input.review.list[[input.review.no, x]]}}
}

r[v] := {{"a": v}, 1} if {
	some v in input.review.map
	w := {u | f(object.get(input.review, "most", 1)); z = input.review.map[u]}
}
`)
	in := &Input{Review: read(t, []byte(`{"list":[1],"no":2,"map":{"a":1,"b":2},"most":2}`))}
	for _, q := range []*Query{q, byOPA(q)} {
		if got, want := valueOf(t, q, in), `{"1":[1,{"a":1}],"2":[1,{"a":2}]}`; got != want {
			t.Errorf("native: %v: got %s, want %s", q.native != nil, got, want)
		}
	}
}
