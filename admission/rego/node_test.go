package rego

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/admission/rego/plan"
	"github.com/admission-gateway/gateway/internal/document"
)

// readings are rules that read what they find in a review in all ways that plans know.
const readings = `package t
import rego.v1

a := input.review.a
b := input.review.b

both contains x if some x in a
both contains x if some x in b
second contains x if some x in b
first := {x | some x in a}

f(x) := x.a
g(x) := object.get(x, "a", x) if is_object(x)
g(x) := [count(x), x[0]] if is_array(x)
has(x, y) if x[_] == y

# More rules than are evaluated without a look at OPA's index.
one_of(x) if x == "a"
one_of(x) if x == 1
one_of(x) if x == [1]
one_of(x) if "x" in x
one_of(x) if x.b == 1
one_of(x) if x == {"a": 1}
one_of(x) if x[_] == [1, 2]

any_of if input.review.a == 1
any_of if input.review.b == {}
any_of if "x" in input.review.a
any_of if input.review.a[_] == {"a": false}
any_of if input[_] == 1
any_of if "a" in input.review

ones := [x | some x in both; one_of(x)]
alike := [a == b, a != b, a < b, a >= b, input.review == input.review, input.review.a == input.review.a]
ordered := [x | some x in both]
sizes := [count(a), count(both), count(first)]
shared := [x | some x in second; x in first]
found := [x | some x in both; first[x]]
left := [first - second, first & second, first | second]
named := [[k, v] | some k, v in a]
indexed := [v | some k in b; v := a[k]]
by_key := [v | v := a[k]; b[k]]
called := [f(x) | some x in both]
got := [g(x) | some x in a]
held := [x | some x in b; has(both, x)]
pairs := [[x, y] | [x, y] = a[_]]
members := [x | {"a": x} = a[_]]
each if every x in a { x != b }
each_set if every x in both { count(x) > 0 }
keys := {k | a[k]}
missing := {k | b[k]} - keys
none_missing if missing == set()
in_keys := [k | keys[k]; {j | b[j]}[k]]
by_value := {x: y | some y, x in a}
walked := [p | walk(a, p)]
text := sprintf("%v %v", [both, a])
none := [x | some x in a; not x.a]
one_is if input.review.a[_] == input.review.b[_]
deep := [x | x := input.review.a[_].a[_]; x != null]
replaced := y if y := alike with input.review.a as b
whole := input
`

// TestReadings: rules see parts of a document as they see OPA's values.
func TestReadings(t *testing.T) {
	compare := readingsCompared(t)
	for _, text := range readingSeeds {
		compare(t, text)
	}
}

// FuzzReadings compares what rules make of a document that is read as it is with what OPA's evaluator
// makes of its values.
func FuzzReadings(f *testing.F) {
	compare := readingsCompared(f)
	for _, text := range readingSeeds {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { compare(t, text) })
}

var readingSeeds = []string{
	`{"a":[{"name":"x","a":1},{"name":"y","a":[1,2]},{"a":1,"name":"x"}],"b":[{"name":"y","a":[1,2]},[1],"c",2,null,true,{}]}`,
	`{"a":[{"a":1},{"a":1.0},{"a":10e-1}],"b":[{"a":1e0},[1],[1.0]]}`,
	`{"a":[[1e300],[10e299],[1e300]],"b":[[10e299],[-0],[0],[0.0]]}`,
	`{"a":[[4503599627370496.49999999999999999999],[4503599627370496.50000000000000000001]],"b":[[0.30000000000000001],[0.30000000000000004],[0.3]]}`,
	`{"a":[{},[],{"a":null},[[]],[{}],{"b":{}},{"b":[]}],"b":{"a":{},"b":[],"c":{"b":{}}}}`,
	`{"a":{"a":1,"b":{"c":[1]}},"b":{"b":{"c":[1]},"a":1}}`,
	`{"a":{"x":{"a":[1,{"a":2}]},"é":1,"\u00e8":"\ud83d\ude00","":0},"b":["x","é","",0,1]}`,
	`{"a":[[1],[2],[3],[4],[5],[6],[7],[8],[9],[10],[1]],"b":[[10],[9,1],[9]]}`,
	`{"a":[{"k":9007199254740993},{"k":9007199254740992}],"b":[{"k":9007199254740993.0},{"k":123456789012345678901234567890}]}`,
	`{"a":[["x","y"],["x"],["x","y","z"]],"b":["x"]}`,
	`{"a":["z","x","x",null,true,"y"],"b":["x","y",false,null]}`,
	`{"a":["x",1,"x",[1],1.0],"b":[1,"x",[1.0],"y"]}`,
	`{"a":{"x":"y","y":"x"},"b":{"y":1,"z":2}}`,
	`{"a":["0","1","2","3","4","5","6","7","8","9"],"b":["9","0"]}`,
	`{"a":["a",1,[1],["x"],{"b":1},{"a":1},{"c":"x"},{"d":[1,2]}],"b":{"c":{},"d":["x"]}}`,
	`{"a":"text","b":1}`, `{"a":null}`, `{"b":[0,1]}`, `[1]`, `{"a":[{"a":false}],"b":[false]}`,
}

// readingsCompared returns what compares the rules for a document.
func readingsCompared(t testing.TB) func(t *testing.T, text string) {
	p, err := Compile(Options{}, Module{File: "t.rego", Source: []byte(readings)})
	if err != nil {
		t.Fatal(err)
	}
	var queries []*Query
	for line := range strings.Lines(readings) {
		name, _, isRule := strings.Cut(line, " ")
		if !isRule || strings.ContainsAny(name, "(") || !p.Has("data.t."+name) {
			continue
		}
		q, err := p.Query("data.t." + name)
		if err != nil {
			t.Fatal(err)
		}
		if is, why := q.Native(); !is {
			t.Fatalf("%s has no plan: %s", name, why)
		}
		queries = append(queries, q)
	}
	if len(queries) < 25 {
		t.Fatalf("there are only %d rules", len(queries))
	}
	return func(t *testing.T, text string) {
		d, err := document.Parse([]byte(text), document.Limits{})
		if err != nil {
			return
		}
		defer d.Release()
		made, madeErr := ValueOf(d.Root())
		shared := plan.NewShared(nil)
		unmade, err := new(reading).begin(d, nil)
		if textOfError(err) != textOfError(madeErr) {
			t.Fatalf("the error is %v, want %v", err, madeErr)
		}
		if err != nil {
			return
		}
		for _, q := range queries {
			for _, q := range []*Query{q, q.Lenient()} {
				want, wantErr := byOPA(q).Value(t.Context(), &Input{Review: made})
				for name, in := range map[string]*Input{"alone": {Review: unmade},
					"shared": {Review: unmade, Shared: shared}} {
					// OPA calls no function again for an equal argument, in which 1 may be 1.0.
					got, err := q.Value(t.Context(), in)
					if textOfError(err) != textOfError(wantErr) && !oneConflicts(err, wantErr) || err == nil &&
						!got.term.Equal(want.term) {
						t.Errorf("%s %s of %s is\n%v, %v, want\n%v, %v", q.rule, name, text, got.term, err, want.term,
							wantErr)
					}
				}
			}
		}
	}
}

// TestUnmadeReview: what cannot be made of a review fails the evaluation that reads it, and no other.
func TestUnmadeReview(t *testing.T) {
	module := "package t\nfew := input.review.n\nmany := count([x | x := input.review.list[_]])\nall := sprintf(\"%v\", [input.review])"
	p, err := Compile(Options{}, Module{File: "t.rego", Source: []byte(module)})
	if err != nil {
		t.Fatal(err)
	}
	d, err := document.Parse(fmt.Appendf(nil, `{"n":1,"list":[%s0]}`, strings.Repeat(`"some text",`, 20000)),
		document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	for rule, want := range map[string]error{"few": nil, "many": ErrNoMemory, "all": ErrNoMemory} {
		q, err := p.Query("data.t." + rule)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range []*Query{q, byOPA(q)} {
			if q.native == nil {
				want = ErrNoMemory // OPA's evaluator takes the whole review
			}
			review, err := new(reading).begin(d, &meter{memory: &testMemory{}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := q.Value(t.Context(), &Input{Review: review}); !errors.Is(err, want) {
				t.Errorf("%s: the error is %v, want %v (native: %v)", rule, err, want, q.native != nil)
			}
		}
	}
}
