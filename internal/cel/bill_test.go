package cel

import (
	"context"
	"errors"
	"testing"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/plan"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// limitedMemory grants memory up to a limit, and leave a number of times.
type limitedMemory struct{ used, peak, limit, leave, worked int }

func (m *limitedMemory) Grow(n int) bool {
	if m.used+n > m.limit {
		return false
	}
	m.used += n
	m.peak = max(m.peak, m.used)
	return true
}

func (m *limitedMemory) Shrink(n int) { m.used -= n }

func (m *limitedMemory) Work() bool {
	m.worked++
	return m.worked <= m.leave
}

// TestMadeIsAskedFor: what expressions make is asked for, in both ways to run, and given back with
// the frame; if it is refused the evaluation ends.
func TestMadeIsAskedFor(t *testing.T) {
	e := adhocEnv(t)
	for _, c := range []struct {
		name, expression, object string
		least                    int // bytes that the value takes
	}{
		{"map", `object.l.map(x, x).size() == 0`, hostile(50_000, 1), 50_000 * plan.RefBytes},
		{"filter", `object.l.filter(x, x != '').size() == 0`, hostile(50_000, 1), 50_000 * plan.RefBytes},
		{"transformMap", `object.l.transformMap(i, x, x).size() == 0`, hostile(50_000, 1), 50_000 * plan.EntryBytes},
		{"split", `object.s.split('').size() == 0`, hostile(1, 100_000), 100_000 * plan.RefBytes},
		{"findAll", `object.s.findAll('a').size() == 0`, hostile(1, 100_000), 100_000 * plan.RefBytes},
		{"range", `lists.range(100000).size() == 0`, `{}`, 100_000 * plan.RefBytes},
		{"replace", `object.s.replace('a', 'bb').size() == 0`, hostile(1, 500_000), 1_000_000},
		{"concatenation", `(object.s + object.s).size() == 0`, hostile(1, 500_000), 1_000_000},
		{"join", `object.l.join(',').size() == 0`, hostile(100_000, 10), 1_000_000},
		{"format", `'%s'.format([object.s]).size() == 0`, hostile(1, 500_000), 500_000},
		{"conversion", `string(bytes(object.s)).size() == 0`, hostile(1, 500_000), 1_000_000},
		{"upper case", `object.s.upperAscii().size() == 0`, hostile(1, 500_000), 500_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := celtest.Parse(t, c.object)
			for way, p := range programs(t, e, c.expression) {
				evaluate := func(m *limitedMemory) error {
					f := NewFrame(context.Background())
					defer f.Release()
					f.SetMemory(m)
					f.Vars().Set(value.Object, node, nil)
					_, err := p.EvalBool(f, f.Vars())
					return err
				}
				m := &limitedMemory{limit: 1 << 30, leave: 1 << 30}
				if err := evaluate(m); err != nil || m.peak < c.least || m.used != 0 {
					t.Errorf("%s: at least %d bytes are made: %d were asked for, %d are not given back: %v", way,
						c.least, m.peak, m.used, err)
				}
				if most := 10*c.least + value.GrantStep; m.peak > most {
					t.Errorf("%s: %d bytes were asked for, more than %d", way, m.peak, most)
				}
				m = &limitedMemory{limit: c.least / 4, leave: 1 << 30}
				var failure *Error
				if err := evaluate(m); !errors.As(err, &failure) || failure.Cause != value.Refused ||
					!failure.Fatal() || m.used != 0 {
					t.Errorf("%s: with too little memory it ends with %v; %d bytes are not given back", way, err,
						m.used)
				}
			}
		})
	}
}

// TestHeavyWorkAsksForLeave: what costs much asks for leave, again and again, and ends without; what costs little does
// not ask.
func TestHeavyWorkAsksForLeave(t *testing.T) {
	e := adhocEnv(t)
	for _, c := range []struct {
		name, expression, object string
		asks                     bool
	}{
		{"pairs of items", `object.l.all(x, object.l.all(y, x == y))`, hostile(1000, 1), true},
		{"matches in a long text", `object.s.findAll('a').size() >= 0`, hostile(1, 1_000_000), true},
		{"characters of a long text", `object.s.split('').size() >= 0`, hostile(1, 1_000_000), true},
		{"a long pattern", `object.s.matches('^(a|b|c|d|e|f|g|h)*$')`, hostile(1, 1_000_000), true},
		{"a few items", `object.l.all(x, x != '')`, hostile(100, 1), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := celtest.Parse(t, c.object)
			for way, p := range programs(t, e, c.expression) {
				m := &limitedMemory{limit: 1 << 30}
				f := NewFrame(context.Background())
				f.SetMemory(m)
				f.Vars().Set(value.Object, node, nil)
				_, err := p.EvalBool(f, f.Vars())
				f.Release()
				var failure *Error
				switch {
				case !c.asks && (err != nil || m.worked != 0):
					t.Errorf("%s: asked %d times, %v", way, m.worked, err)
				case c.asks && (m.worked != 1 || !errors.As(err, &failure) || failure.Cause != value.Refused):
					t.Errorf("%s: asked %d times for leave that there is not, and ended with %v", way, m.worked, err)
				}
			}
		})
	}
}
