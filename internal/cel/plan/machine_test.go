package plan_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	celgo "github.com/google/cel-go/cel"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/plan"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// TestPlannable: cel-go refuses no expression that need not be shown to it.
func TestPlannable(t *testing.T) {
	l := celtest.Plain(t)
	for expression, want := range map[string]bool{
		// What cel-go may refuse, or refuses.
		`object.a.matches('a' + '[')`: false, `'a'.find('(') == ''`: false, `int('x') == 1`: false,
		`duration('1s') == duration('2s')`: false,
		`{b'a': 1}.size() == 1`:            false, `object[duration('1s')]`: false, `object[b'a']`: false, `object[null]`: false,
		`object[1.5]`: false,
		`object[1u]`:  false, `object[true]`: false, `object[[1]]`: false, `[?optional.of(1)]`: false,
		`type(object.a) == int`:                            false,
		`object.a == google.protobuf.NullValue.NULL_VALUE`: false, `google.protobuf.Timestamp{}`: false,
		`object.all(x, x.matches('a' + '['))`: false,
		`[1, int('x')]`:                       false, `1 == int('x')`: false, `size(string(1))`: false,
		`object.a.startsWith(string(1))`: false,
		`string(1).startsWith(object.a)`: false, `int('1') in object`: false, `object[object.a + 1]`: false,
		`[1].all(x, int('x') == x)`: false,
		`[int('1')].all(x, true)`:   false, `has(object[1u].a)`: false, `{'a': 1}`: false, `optional.none()`: false,
		`object.?a`: false,
		`int`:       false, `object.a == int`: false,
		// What it never refuses.
		`object`: true, `object.a.b`: true, `1`: true, `'a'`: true, `object['a'].b[0]`: true, `object[object.a]`: true,
		`object[object.a.b]`:                  true,
		`[1, 2].all(object, object / 0 == 1)`: true, `object.all(k, v, k in v)`: true, `[].exists(x, x)`: true,
		`object.a in []`:                     true,
		`(object.a ? object.b : object.c).d`: true, `has((object.a ? object.b : object.c).d)`: true,
		`has(object.a[0].b)`: true, `-object.a == 1`: true,
		`object.a.b.startsWith('x') ? 1 < 2 : object.c % 2 == 1`: true, `size(object.a.map(x, x + 1))`: true,
		`object.a.endsWith('x') || !object.b`:     true,
		`object.a.contains('x') && object.b >= 1`: true, `[object.a, object.b].exists_one(x, x != 1)`: true,
		`object.a - 1 <= 2 * 3`: true, `object.a > 1`: true,
	} {
		ast, issues := l.Env.Compile(expression)
		if issues != nil {
			t.Errorf("%s: %v", expression, issues.Err())
			continue
		}
		got := plan.IsPlannable(ast.NativeRep())
		if got != want {
			t.Errorf("%s is plannable: %v, want %v", expression, got, want)
		}
		if _, err := l.Compile(expression); got && err != nil {
			t.Errorf("%s: %v", expression, err)
		}
	}
}

// variables are those of a policy: each is evaluated when it is read first, on the machine that runs.
type variables struct {
	machine *plan.Machine
	natives []*celtest.Expression
	names   []string
	values  []plan.Val
	nodes   *value.Bindings
	read    int
}

// Global implements plan.Variables.
func (v *variables) Global(name string) (any, bool) {
	if name == plan.NameVariables {
		return types.DefaultTypeAdapter.NativeToValue(map[string]string{"other": "global"}), true
	}
	return nil, false
}

// Composited implements plan.Variables.
func (v *variables) Composited(i int, name string) (plan.Val, bool) {
	if i >= len(v.names) || v.names[i] != name {
		return plan.Val{}, false
	}
	if v.values[i].Kind == plan.ValUnset {
		v.read++
		size := plan.FrameSize{Roots: []value.Slot{value.Object}, Native: true, Locals: v.natives[i].Native.Locals}
		v.machine.Begin(&size, false, v.nodes, celtest.Limit)
		v.values[i] = v.machine.Scalar(v.natives[i].Native.Eval(v.machine))
		v.machine.Retained++
		v.machine.End()
	}
	return v.values[i], true
}

// TestVariablesOfPolicies: an expression reads the variables of its policy by their places, and evaluates each once,
// within the evaluation that reads it, whose own local variables and lists stay as they are.
func TestVariablesOfPolicies(t *testing.T) {
	l := celtest.Plain(t)
	env, err := l.Extend(celgo.Variable(plan.NameVariables, celgo.DynType))
	if err != nil {
		t.Fatal(err)
	}
	l.Env = env
	names := []string{"doubled", "b-c", "failing"}
	places := map[string]int{"doubled": 0, "b-c": 1, "failing": 2, "other": 9}
	natives := []*celtest.Expression{compiled(t, l, "object.l.map(x, object.l.map(y, y)).map(x, x[0] * 2)"), compiled(t,
		l, "object.s + '!'"), compiled(t, l, "object.none")}
	node := celtest.Parse(t, `{"l":[3,4],"s":"text"}`)
	for expression, want := range map[string]string{
		"[1, 2].map(x, variables.doubled[0] + x)":                                                    "[int(7), int(8)]",
		"[object.s, variables.doubled, object.s]":                                                    `["text", [int(6), int(6)], "text"]`,
		"variables.b__dash__c + variables.b__dash__c":                                                `"text!text!"`,
		"[9, 8].all(x, [7].all(y, variables.doubled.size() == 2 && x > 7 && y == 7))":                "bool(true)",
		"variables.doubled.map(x, x + variables.doubled[0])":                                         "[int(12), int(12)]",
		"variables.failing == 1":                                                                     "error: no such key: none",
		"variables.other":                                                                            `"global"`,
		"has(variables.other)":                                                                       "bool(true)",
		"[1].map(variables, variables + 1)":                                                          "[int(2)]",
		"object.l.map(x, [x, variables.doubled[0]].map(y, y + x))":                                   "[[int(6), int(9)], [int(8), int(10)]]",
		"[variables.doubled == variables.doubled, variables.b__dash__c == 'text!', object.s == 'x']": "[bool(true), bool(true), bool(false)]",
	} {
		ast, issues := l.Env.Compile(expression)
		if issues != nil {
			t.Fatal(issues)
		}
		native, reason := plan.Compile(&l.Language, ast.NativeRep(), plan.NewMeter(ast.NativeRep()), places)
		if native == nil {
			t.Errorf("%s has no native plan: %s", expression, reason)
			continue
		}
		m := celtest.NewMachine()
		m.Bindings.Set(value.Object, node, nil)
		v := &variables{machine: &m.Machine, natives: natives, names: names, values: make([]plan.Val, len(names)),
			nodes: &m.Bindings}
		m.Serve(v)
		for range 2 { // the second evaluation finds what was kept
			size := plan.FrameSize{Roots: []value.Slot{value.Object}, Native: true, Locals: native.Locals}
			got, _ := m.Run(size, func(*value.Bindings) {},
				func() plan.Val { return m.Scalar(native.Eval(&m.Machine)) })
			if got.String() != want {
				t.Errorf("%s is %v, want %s", expression, got, want)
			}
		}
		if v.read > 2 {
			t.Errorf("%s evaluated variables %d times", expression, v.read)
		}
		m.Release()
	}
}

// TestOptionalOldSelf: a rule with optionalOldSelf reads oldSelf as an optional value, which an object that is new does
// not have. Again goes on to another rule of the same value.
func TestOptionalOldSelf(t *testing.T) {
	env, err := celtest.Plain(t).Extend(celgo.Variable(plan.NameSelf, celgo.DynType), celgo.Variable(plan.NameOldSelf,
		celgo.OptionalType(celgo.DynType)))
	if err != nil {
		t.Fatal(err)
	}
	l := celtest.Plain(t)
	l.Env = env
	for expression, want := range map[string][2]string{ // with and without the value before
		"oldSelf.hasValue()":            {"bool(true)", "bool(false)"},
		"oldSelf.orValue(7)":            {"{\"a\": int(1)}", "int(7)"},
		"oldSelf.a.orValue(7)":          {"int(1)", "int(7)"},
		"oldSelf.b.orValue(7)":          {"int(7)", "int(7)"},
		"has(oldSelf.a)":                {"bool(true)", "bool(false)"},
		"oldSelf.optMap(o, o.a + 1)":    {"optional(int(2))", "none"},
		"self.a == oldSelf.a.value()":   {"bool(false)", "error: optional.none() dereference"},
		"oldSelf[?'a'].orValue(self.a)": {"int(1)", "int(2)"},
	} {
		x := compiled(t, l, expression)
		for i, old := range []string{`{"a":1}`, ""} {
			m := celtest.NewMachine()
			m.Bindings.Set(value.Self, celtest.Parse(t, `{"a":2}`), nil)
			if old != "" {
				m.Bindings.Set(value.OldSelf, celtest.Parse(t, old), nil)
			}
			size := plan.FrameSize{Roots: []value.Slot{value.Self, value.OldSelf}, Native: true,
				Locals: x.Native.Locals}
			m.Begin(&size, true, &m.Bindings, celtest.Limit)
			for range 2 {
				out := m.Scalar(x.Native.Eval(&m.Machine))
				got := ""
				if out.Kind == plan.ValErr {
					got = fmt.Sprint("error: ", out.Ref())
				} else {
					got = celtest.Show(m.Ref(out))
				}
				if got != want[i] {
					t.Errorf("%s with %q is %s, want %s", expression, old, got, want[i])
				}
				m.Again(true, celtest.Limit)
			}
			m.End()
			m.Release()
		}
	}
}

// TestLimits: an evaluation, and each one that follows it, may cost so many units, and all of them what the budget has.
func TestLimits(t *testing.T) {
	x := compiled(t, celtest.Plain(t), "object.l.all(x, x > 0)")
	node := celtest.Parse(t, `{"l":[1,2,3,4,5,6,7,8,9]}`)
	_, cost := x.Natively(func(b *value.Bindings) { b.Set(value.Object, node, nil) })
	for _, c := range []struct {
		limit, budget int64
		times         int
		want          ref.Val
	}{
		{cost, 1 << 40, 3, types.True}, {cost - 1, 1 << 40, 1, types.Int(value.OverLimit)},
		{1 << 40, cost, 1, types.True},
		{1 << 40, cost - 1, 1, types.Int(value.OverBudget)}, {cost, 3 * cost, 3, types.True},
		{cost, 3*cost - 1, 3, types.Int(value.OverBudget)},
	} {
		m := celtest.NewMachine()
		m.Arena.SetBudget(c.budget)
		m.Bindings.Set(value.Object, node, nil)
		size := plan.FrameSize{Roots: []value.Slot{value.Object}, Native: true, Locals: x.Native.Locals}
		var got ref.Val
		func() {
			defer func() {
				if stop, ok := recover().(value.Stop); ok {
					got = types.Int(stop)
				}
			}()
			m.Begin(&size, false, &m.Bindings, c.limit)
			for i := range c.times {
				if i > 0 {
					m.Again(false, c.limit)
				}
				if x.Native.Test(&m.Machine) == plan.IsTrue {
					got = types.True
				}
			}
		}()
		m.End()
		if got != c.want {
			t.Errorf("limit %d, budget %d, %d times of %d units: %v, want %v", c.limit, c.budget, c.times, cost, got,
				c.want)
		}
		if spent := c.budget - m.Arena.Budget(); spent != m.Arena.Spent() ||
			spent > min(c.budget, int64(c.times)*c.limit) {
			t.Errorf("limit %d, budget %d: %d units are taken, %d spent", c.limit, c.budget, spent, m.Arena.Spent())
		}
		m.Release()
	}
}

// TestOneMachine evaluates many expressions one after another on one machine, natively and by cel-go, while documents
// are edited, replaced and swapped. Each must return what a new machine returns for the same documents parsed anew, and
// the machine must give back what the expressions made.
func TestOneMachine(t *testing.T) {
	l := celtest.Plain(t)
	random := rand.New(rand.NewPCG(3, 4))
	parse := func(text string) *document.Document {
		d, err := document.Parse([]byte(text), document.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		t.Cleanup(d.Release)
		return d
	}
	compared := 0
	for range 60 {
		seed := make([]byte, 900)
		for i := range seed {
			seed[i] = byte(random.Uint32())
		}
		g := celtest.OfObjects(seed)
		documents := [2]*document.Document{parse(g.Object()), parse(g.Object())}
		m := celtest.NewMachine()
		for range 8 {
			switch g.Pick(5) {
			case 0: // a member that paths go through
				at := documents[g.Pick(2)]
				at.Set(at.Root(), g.Of("a", "b", "c", "s"),
					[]byte(g.Of(`{"a":{"b":7},"c":[1]}`, `[1,2]`, `"a"`, `0`, `null`)))
			case 1:
				documents[0] = parse(g.Object())
			case 2:
				documents[0], documents[1] = documents[1], documents[0]
			}
			expression := fmt.Sprintf("[dyn(%s), dyn(object.?a.?b), dyn(object.?a.?b.?a), dyn(has(object.a.c))]",
				g.Value(2))
			x, err := l.Compile(expression)
			if err != nil || x.Native == nil {
				continue
			}
			bind := func(b *value.Bindings) {
				b.Set(value.Object, documents[0].Root(), nil)
				b.Set(value.OldObject, documents[1].Root(), nil)
			}
			anew := [2]*document.Document{parse(string(documents[0].AppendTo(nil))),
				parse(string(documents[1].AppendTo(nil)))}
			bindAnew := func(b *value.Bindings) {
				b.Set(value.Object, anew[0].Root(), nil)
				b.Set(value.OldObject, anew[1].Root(), nil)
			}
			got, units := x.NativelyOn(m, bind)
			if want, wantUnits := x.Natively(bindAnew); got != want || units != wantUnits {
				t.Fatalf("natively: %s\n%s\nafter others %v, %d units\nanew         %v, %d", expression,
					anew[0].AppendTo(nil),
					got, units, want, wantUnits)
			}
			got, units = x.LazilyOn(m, bind)
			if want, wantUnits := x.Lazily(bindAnew); got != want || units != wantUnits {
				t.Fatalf("lazily: %s\n%s\nafter others %v, %d units\nanew         %v, %d", expression,
					anew[0].AppendTo(nil), got,
					units, want, wantUnits)
			}
			compared++
		}
		m.Release()
	}
	if compared < 200 {
		t.Errorf("only %d expressions were compared", compared)
	}
}

// TestGivesBack: what an evaluation made is given back when it ends, unless it is kept.
func TestGivesBack(t *testing.T) {
	x := compiled(t, celtest.Plain(t),
		"object.l.map(x, object.l.map(y, string(x) + string(y) + 'z')).size() + object.l.map(x, [x]).size()")
	node := celtest.Parse(t, `{"l":[1000,2000,3000]}`)
	m := celtest.NewMachine()
	defer m.Release()
	m.Bindings.Set(value.Object, node, nil)
	size := plan.FrameSize{Roots: []value.Slot{value.Object}, Native: true, Locals: x.Native.Locals}
	run := func() plan.Marks {
		m.Begin(&size, false, &m.Bindings, celtest.Limit)
		if v := x.Native.Eval(&m.Machine); v.Int() != 6 {
			t.Errorf("the value is %d", v.Int())
		}
		during := m.Mark()
		m.End()
		return during
	}
	before := m.Mark()
	during := run()
	if during == before {
		t.Error("the evaluation takes nothing")
	}
	run()
	run()
	if third := m.Mark(); third != before && run() != during {
		t.Errorf("the machine is at %+v, and was at %+v", third, before)
	}
	again := m.Mark()
	m.Begin(&size, false, &m.Bindings, celtest.Limit)
	x.Native.Eval(&m.Machine)
	m.Retained++
	m.End()
	if m.Mark() == again {
		t.Error("what was kept is given back")
	}
	m.Forget(again)
	if m.Mark() != again {
		t.Errorf("after Forget the machine is at %+v, want %+v", m.Mark(), again)
	}
}
