package cel

import (
	"testing"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// TestMapsInOrder: the result of a loop over a map is the same each time, in the order of the keys,
// natively and by cel-go. 60 evaluations of each expression: a map of Go's would show another order
// after a few.
func TestMapsInOrder(t *testing.T) {
	e := adhocEnv(t)
	node := celtest.Parse(t, celtest.PlainObject)
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
		for way, p := range programs(t, e, expression) {
			if p == nil {
				continue
			}
			for range 60 {
				got := ours(p, func(v *Vars) { v.Set(value.Object, node, nil) }).String()
				if got != want {
					t.Errorf("%s, %s: got %s, want %s", way, expression, got, want)
					break
				}
			}
		}
	}
}
