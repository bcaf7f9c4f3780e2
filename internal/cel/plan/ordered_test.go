package plan_test

import (
	"testing"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
)

// TestMapsInOrder: the result of a loop over a map is the same each time, in the order of the keys,
// natively and by cel-go. 60 evaluations of each expression: a map of Go's would show another order
// after a few.
func TestMapsInOrder(t *testing.T) {
	l := celtest.Plain(t)
	in := plainInput(t, celtest.PlainObject, "")
	for expression, want := range map[string]string{
		"{'d': 1, 'b': 2, 'c': 3, 'a': 4}.map(k, k).join(',')":                                    `"a,b,c,d"`,
		"{'d': 1, 'b': 2, 'c': 3, 'a': 4}.transformList(k, v, k + string(v)).join(',')":           `"a4,b2,c3,d1"`,
		"{'d': 1, 'b': 2, 'c': 3, 'a': 4}.filter(k, k != 'a')[0]":                                 `"b"`,
		"{dyn('b'): 2, dyn(3): 3, dyn(true): 1, dyn(-1): 0, dyn(2u): 5}.map(k, string(k)).join()": `"true-123b"`,
		"{'x': 'y', 'w': 'z', 'v': 'y'}.transformMapEntry(k, v, {v: k})":                          "error: insert failed: key y already exists",
		"{'c': 1, 'b': 2, 'd': 3, 'a': 4}.map(k, {'x': 1}[k])":                                    "error: no such key: a",
		"object.metadata.labels.transformMap(k, v, v + '!').map(k, k).join(',')":                  `"app,example.com/tier"`,
		"'%s'.format([{'d': 1, 'b': 2, 'c': 3, 'a': 4}.transformMap(k, v, v + 1)])":               `"{\"a\":5, \"b\":3, \"c\":4, \"d\":2}"`,
		"{'d': 1, 'b': 2, 'c': 3, 'a': 4}.map(k, k) == ['a', 'b', 'c', 'd'] ? 'yes' : ''":         `"yes"`,
	} {
		x := compiled(t, l, expression)
		for range 60 {
			if got, _ := x.Natively(in.bind); got.String() != want {
				t.Errorf("natively, %s: got %s, want %s", expression, got, want)
				break
			}
			if got, _ := x.Lazily(in.bind); got.String() != want {
				t.Errorf("lazily, %s: got %s, want %s", expression, got, want)
				break
			}
		}
	}
}

func compiled(t testing.TB, l *celtest.Language, expression string) *celtest.Expression {
	t.Helper()
	x, err := l.Compile(expression)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	if x.Native == nil {
		t.Fatalf("%s has no native plan: %s", expression, x.Reason)
	}
	return x
}
