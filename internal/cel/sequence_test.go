package cel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/admission-gateway/gateway/internal/cel/celtest"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// sequenced evaluates conditions as a sequence. Each has to have the result, the error and the cost
// that it has alone, after the ones before it. It returns how many conditions were compared.
func sequenced(t *testing.T, e *env, seed []byte) (compared int) {
	g := celtest.OfObjects(seed)
	var documents [2]*document.Document
	for i := range documents {
		d, err := document.Parse([]byte(g.Object()), document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Release)
		documents[i] = d
	}
	var programs []*Program
	for range 6 {
		var expression string
		switch g.Pick(4) {
		case 0:
			expression = "!has(object.a.b) || object.a.b != " + g.Value(1)
		case 1:
			expression = "dyn(" + g.Value(2) + ")"
		default:
			expression = fmt.Sprintf("dyn(%s) != dyn(%s)", g.Value(2), g.Value(1))
		}
		checked, issues := e.Compile(expression)
		if issues != nil {
			continue
		}
		natively, lazily, err := bothWays(t, e, expression, checked.NativeRep())
		if err != nil {
			continue
		}
		if natively == nil || g.Pick(6) == 0 {
			natively = lazily
		}
		programs = append(programs, natively)
	}
	budget := int64(PolicyBudget)
	if g.Pick(3) == 0 {
		budget = int64(g.Pick(200))
	}
	frame := func() *Frame {
		f := NewFrame(context.Background())
		f.SetBudget(budget)
		f.Vars().Set(value.Object, documents[0].Root(), nil)
		f.Vars().Set(value.OldObject, documents[1].Root(), nil)
		return f
	}
	one, all := frame(), frame()
	defer one.Release()
	defer all.Release()
	unlike := one.Spent() - all.Spent() // by requests before
	s := NewSequence(programs)
	at, failure := s.Next(all, all.Vars(), 0)
	for i, p := range programs {
		isTrue, err := p.EvalBool(one, one.Vars())
		if compared++; err == nil && isTrue {
			if at <= i {
				t.Fatalf("%s is true, and as one of a sequence it is not: %v", p.Source(), failure)
			}
			continue
		}
		if at != i || fmt.Sprint(failure) != fmt.Sprint(err) {
			t.Fatalf("%s: %v; as one of a sequence condition %d: %v", p.Source(), err, at, failure)
		}
		if more := one.Spent() - all.Spent() - unlike; more != 0 || one.Budget() != all.Budget() {
			t.Fatalf("%s: alone it spends %d units more, and leaves %d; in a sequence %d", p.Source(), more,
				one.Budget(), all.Budget())
		}
		at, failure = s.Next(all, all.Vars(), i+1)
	}
	if at != len(programs) || failure != nil || one.Spent()-all.Spent() != unlike || one.Budget() != all.Budget() {
		t.Fatalf("at the end: condition %d of %d, %v; %d and %d units left", at, len(programs), failure, one.Budget(),
			all.Budget())
	}
	return compared
}

// TestSequence proves that a sequence of conditions gives what each of them gives alone.
func TestSequence(t *testing.T) {
	e := adhocEnv(t)
	random := rand.New(rand.NewPCG(7, 8))
	seed := make([]byte, 600)
	compared := 0
	for range 400 {
		fillSeed(seed, random)
		compared += sequenced(t, e, seed)
	}
	if compared < 1000 {
		t.Errorf("only %d conditions were compared", compared)
	}
}

// TestSequenceOfOthers: conditions that tests observe, and those that are traced, are evaluated by themselves.
func TestSequenceOfOthers(t *testing.T) {
	sources := []string{"object.a == 1", "object.b == 1", "object.a < 2", "object.c == 1"}
	programs := nativePrograms(t, sources)
	var seen Observation
	programs[2].Observe(&seen)
	d, err := document.Parse([]byte(`{"a":1,"b":2}`), document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	for _, isTraced := range []bool{false, true} {
		f := NewFrame(context.Background())
		tracer := &traces{}
		if isTraced {
			f.Trace(tracer)
		}
		f.Vars().Set(value.Object, d.Root(), nil)
		s := NewSequence(programs)
		if at, err := s.Next(f, f.Vars(), 0); at != 1 || err != nil {
			t.Errorf("%d, %v", at, err)
		}
		if at, err := s.Next(f, f.Vars(), 2); at != 3 || err == nil {
			t.Errorf("%d, %v", at, err)
		}
		if isTraced && len(*tracer) != len(sources) {
			t.Errorf("%d conditions were traced", len(*tracer))
		}
		f.Release()
	}
	if !seen.WasTrue() || seen.WasFalse() {
		t.Error("the condition was not observed")
	}
}

// FuzzSequence does the same as TestSequence with conditions made of bytes.
func FuzzSequence(f *testing.F) {
	random := rand.New(rand.NewPCG(9, 10))
	for range 12 {
		seed := make([]byte, 500)
		fillSeed(seed, random)
		f.Add(seed)
	}
	e := adhocEnv(f)
	f.Fuzz(func(t *testing.T, seed []byte) { sequenced(t, e, seed) })
}
