package cel

import (
	"runtime"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// TestMemoryOfMadeValues: what an expression makes, garbage included, is bounded whatever it makes it of, in both
// ways to run.
func TestMemoryOfMadeValues(t *testing.T) {
	const most = 64 << 20
	e := adhocEnv(t)
	for _, c := range []struct{ name, expression, object string }{
		{"lists of lists", `object.l.map(a, object.l.map(b, a + b)).size() == 0`, hostile(3000, 1)},
		{"lists of long strings", `object.l.map(a, a + a).map(a, a + a).map(a, a + a).size() == 0`,
			hostile(1000, 1000)},
		{"maps", `object.l.map(a, object.l.map(b, {'a': a, 'b': b})).size() == 0`, hostile(3000, 1)},
		{"maps of maps", `object.l.map(a, object.l.transformMap(i, b, a)).size() == 0`, hostile(3000, 1)},
		{"characters", `lists.range(100).map(i, object.s.split('')).size() == 0`, hostile(1, 500_000)},
		{"matches", `lists.range(100).map(i, object.s.findAll('a')).size() == 0`, hostile(1, 100_000)},
		{"ranges", `lists.range(1000).map(i, lists.range(1000)).size() == 0`, `{}`},
		{"reversed", `lists.range(1000).map(i, object.l.reverse()).size() == 0`, hostile(3000, 1)},
		{"distinct", `object.l.map(a, object.l.distinct()).size() == 0`, hostile(1000, 1)},
		{"sorted", `object.l.map(a, object.l.sort()).size() == 0`, hostile(1000, 1)},
		{"flattened", `object.l.map(a, [object.l, object.l].flatten()).size() == 0`, hostile(1000, 1)},
		{"added", `object.l.map(a, object.l + [a]).size() == 0`, hostile(3000, 1)},
		{"doubled lists", `[object.l].map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x.size() == 0)[0]`, hostile(3000, 1)},
		{"formatted", `object.l.map(a, '%s'.format([object.l])).size() == 0`, hostile(3000, 1)},
		{"joined", `object.l.map(a, object.l.join(',')).size() == 0`, hostile(3000, 10)},
		{"joined by much", `object.l.map(x, '').join(object.s).size() == 0`, `{"s":"` + strings.Repeat("a", 500_000) +
			`","l":[` + strings.Repeat(`"",`, 1000) + `""]}`},
		{"replaced by much", `object.s.replace('a', object.s).size() == 0`, hostile(1, 30_000)},
		{"matches of a computed pattern", `object.s.findAll(object.l[0].substring(0, 1)).size() == 0`,
			hostile(1, 1_000_000)},
		{"characters of a long text", `object.s.split('').size() == 0`, hostile(1, 1_000_000)},
		{"matches in a long text", `object.s.findAll('a').size() == 0`, hostile(1, 1_000_000)},
		{"items of a long list", `object.l.map(x, x).size() == 0`, hostile(500_000, 1)},
		{"replaced", `object.l.map(a, object.s.replace('a', 'bb')).size() == 0`, hostile(1000, 2000)},
		{"upper case", `object.l.map(a, object.s.lowerAscii()).size() == 0`, hostile(1000, 2000)},
		{"optionals", `object.l.map(a, object.l.map(b, object.?s)).size() == 0`, hostile(3000, 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := celtest.Parse(t, c.object)
			for way, p := range programs(t, e, c.expression) {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				got := evaluated(p, func(v *Vars) { v.Set(value.Object, node, nil) })
				runtime.ReadMemStats(&after)
				made := int64(after.TotalAlloc - before.TotalAlloc)
				t.Logf("%s: %.1f MiB, %s", way, float64(made)/(1<<20), got)
				if made > max(most, 100*int64(len(c.object))) {
					t.Errorf("%s: %d bytes made for an object of %d", way, made, len(c.object))
				}
			}
		})
	}
}

// evaluated is the result of a condition.
func evaluated(p *Program, set func(*Vars)) string {
	o := oursWith(p, nil, set)
	return strings.TrimSpace(o.String())
}
