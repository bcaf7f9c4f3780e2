package cel

import (
	"runtime"
	"strings"
	"testing"
)

// TestHeld: what an expression makes, garbage included, is bounded whatever it makes it of, in both ways to run.
func TestHeld(t *testing.T) {
	const most = 64 << 20
	e := adhocEnv(t)
	for _, c := range []struct{ name, expression, object string }{
		{"lists of lists", `object.l.map(a, object.l.map(b, a + b)).size() == 0`, hostile(3000, 1)},
		{"lists of long strings", `object.l.map(a, a + a).map(a, a + a).map(a, a + a).size() == 0`, hostile(1000, 1000)},
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
		{"replaced", `object.l.map(a, object.s.replace('a', 'bb')).size() == 0`, hostile(1000, 2000)},
		{"upper case", `object.l.map(a, object.s.lowerAscii()).size() == 0`, hostile(1000, 2000)},
		{"optionals", `object.l.map(a, object.l.map(b, object.?s)).size() == 0`, hostile(3000, 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			ast, issues := e.Compile(c.expression)
			if issues != nil {
				t.Fatal(issues.Err())
			}
			natively, lazily, err := bothWays(t, e, c.expression, ast.NativeRep())
			if err != nil {
				t.Fatal(err)
			}
			node := parse(t, c.object)
			for way, p := range map[string]*Program{"natively": natively, "lazily": lazily} {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				got := evaluated(p, func(v *Vars) { v.Set(Object, node, nil) })
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

// evaluated is what a condition comes to.
func evaluated(p *Program, set func(*Vars)) string {
	o := oursWith(p, nil, set)
	return strings.TrimSpace(o.String())
}
