package rego

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	opatypes "github.com/open-policy-agent/opa/v1/types"
)

// internals are the marks of internals of the program: addresses, types of Go, its packages, and
// what a run-time failure says.
var internals = regexp.MustCompile(`0x[0-9a-f]{4,}|&\{|\*[a-z]+\.[A-Z]|\b(ast|types|topdown|jwk|jws|x509|url|time|netip|big|json|yaml)\.[A-Z]\w+|` +
	`\b(net/url|net/netip|netip|strconv|encoding/\w+|time|asn1|x509|tls|hex|base64|gojsonschema|regexp/syntax)(\.\w+)?: |runtime error|github\.com/|goroutine |interface \{\}|%!|\bmap\[`)

// operands are JSON values that functions take, and values that each of them fails for.
var operands = []string{
	`""`, `"a"`, `"\u0001"`, `"%zz"`, `"http://a b\u007f/%zz"`, `"http://[::1"`, `"[("`, `"1e400"`,
	`"99999999999999999999"`, `"{"`, `"{\"a\": "`, `"query {"`, `"10.0.0.0/99"`, `"10.0.0.1"`,
	`"!!"`, `"abc"`, `"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"`,
	`"-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----"`, `"a.b.c"`, `"eyJhbGciOiJub25lIn0.e30."`,
	`"eyJhbGciOiJIUzI1NiJ9.e30.AAAA"`, `"1.x"`, `"5 parsecs"`, `"10zz"`, `"{{.a"`, `"{{.a.b.c}}"`,
	`"package x\nallow = "`, `"%d %s %x %q %v"`, `"a: b: c"`, `"2006-13-01T00:00:00Z"`, `"Nowhere/City"`, `"sha3"`,
	`0`, `-1`, `1.5`, `1e30`, `9223372036854775808`, `true`, `null`, `[]`, `[1, "a", null]`, `[{"a": 1}, ["b"]]`, `{}`,
	`{"a": 1}`, `{"a": {"b": [1]}, "c": "d"}`, `{"type": "x"}`, `{"type": 5}`, `{"pattern": "[("}`,
	`{"alg": "HS256"}`, `{"alg": "RS256", "kty": "RSA"}`, `{"kty": "oct", "k": "!!"}`, `{"keys": []}`,
	`{"op": "x", "path": "y"}`, `[{"op": "add", "path": "x"}]`, `[{"op": "remove", "path": "/q"}]`, `["a", "b"]`,
	`[["a", "b"], ["b"]]`,
	`{"$ref": "#/x"}`, `{"method": "x", "url": "y"}`, `{"cert": "x"}`, `[9223372036854775807, "UTC", "[("]`,
	`[0, "Nowhere/City"]`, `"\u00e9\u0000"`,
}

// sampleOf returns a value that a function takes.
func sampleOf(t opatypes.Type) string {
	switch bare(t).(type) {
	case opatypes.Boolean:
		return "true"
	case opatypes.Number:
		return "1"
	case opatypes.Null:
		return "null"
	case *opatypes.Array:
		return `["a", "b"]`
	case *opatypes.Object:
		return `{"a": 1}`
	case *opatypes.Set:
		return `["a"]`
	}
	return `"a"`
}

// TestFailuresSayNothingInternal: a failure is reported in words of Rego, whichever built-in
// function fails over which values, by plans and by OPA: no address, no type of Go, and nothing
// that a package of the program says of itself. Equal evaluations fail with equal words.
func TestFailuresSayNothingInternal(t *testing.T) {
	if testing.Short() {
		t.Skip("calls each function with all kinds of values")
	}
	seen, bad, tried := map[string]bool{}, map[string]string{}, 0
	for _, f := range ast.Builtins {
		arity := len(f.Decl.FuncArgs().Args)
		if f.Infix != "" && arity < 2 || f.Relation || f.IsDeprecated() || arity == 0 {
			continue
		}
		args, given := make([]string, arity), make([]string, arity)
		for i, a := range f.Decl.FuncArgs().Args {
			args[i], given[i] = fmt.Sprintf("input.review.a%d", i), sampleOf(a)
			if _, isSet := bare(a).(*opatypes.Set); isSet {
				args[i] = fmt.Sprintf("{x | some x in input.review.a%d}", i)
			}
		}
		p, err := Compile(Options{},
			Module{File: "p.rego", Source: []byte("package p\n\nr := x if x := " + f.Name + "(" +
				strings.Join(args, ", ") + ")\n")})
		if err != nil {
			continue // which no module calls
		}
		q, err := p.Query("data.p.r")
		if err != nil {
			t.Fatal(err)
		}
		try := func(given []string) {
			members := make([]Member, len(given))
			for i, text := range given {
				members[i] = Member{fmt.Sprintf("a%d", i), parsed(t, []byte(text))}
			}
			for way, q := range map[string]*Query{"by a plan": q, "by OPA": byOPA(q)} {
				var first string
				for range 2 {
					_, err := q.Value(context.Background(), &Input{Review: Object(members...)})
					tried++
					if err == nil || errors.Is(err, ErrUndefined) {
						break
					}
					text := err.Error()
					seen[text] = true
					if first != "" && first != text && !strings.Contains(text, "budget") {
						t.Errorf("%s(%s) %s: %s, and then %s", f.Name, strings.Join(given, ", "), way, first, text)
					}
					first = text
					_, said, _ := strings.Cut(text, f.Name+": ")
					if found := internals.FindString(said); found != "" && bad[f.Name+" "+found] == "" {
						bad[f.Name+" "+found] = fmt.Sprintf("%s(%s): %s", f.Name, strings.Join(given, ", "), text)
					}
				}
			}
		}
		for i := range given {
			for _, operand := range operands {
				changed := slices.Clone(given)
				changed[i] = operand
				try(changed)
				for k := range changed {
					changed[k] = operand
				}
				try(changed)
			}
		}
	}
	for _, found := range slices.Sorted(maps.Keys(bad)) {
		t.Errorf("%q in %s", found, bad[found])
	}
	if t.Logf("%d evaluations, %d different failures", tried, len(seen)); len(seen) < 200 {
		t.Error("too few")
	}
}

// bare returns the type of an operand without its name.
func bare(t opatypes.Type) opatypes.Type {
	if named, is := t.(*opatypes.NamedType); is {
		return named.Type
	}
	return t
}
