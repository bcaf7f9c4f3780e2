package plan_test

import (
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
)

// readings are rules that read what they find in the input in all ways that plans know.
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

// TestReadings: rules see an input that is not made as they see OPA's values.
func TestReadings(t *testing.T) {
	for line := range strings.Lines(readings) {
		name, _, isRule := strings.Cut(line, " ")
		if !isRule || strings.ContainsAny(name, "(#") || name == "import" || name == "package" {
			continue
		}
		q, err := compiled(ast.RegoV1, nil, "x = data.t."+name, readings)
		if err != nil {
			t.Fatal(err)
		}
		if q.plan == nil {
			t.Fatalf("%s has no plan: %s", name, q.reason)
		}
		for _, text := range readingSeeds {
			t.Run(name, func(t *testing.T) { q.compare(t, ast.MustParseTerm(`{"review": `+text+`}`)) })
		}
	}
}
