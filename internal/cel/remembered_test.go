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

// remembered evaluates expressions one after another on one frame, which remembers where paths led
// and what was read of lists, while their documents are edited, replaced and swapped in between.
// Each must return the same on a new frame with newly parsed documents. It returns how many
// expressions were compared.
func remembered(t *testing.T, e *env, seed []byte) (compared int) {
	g := celtest.OfObjects(seed)
	parse := func(text string) *document.Document {
		d, err := document.Parse([]byte(text), document.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		t.Cleanup(d.Release)
		return d
	}
	documents := [2]*document.Document{parse(g.Object()), parse(g.Object())}
	f := NewFrame(context.Background())
	defer f.Release()
	bind := func(v *Vars, of [2]*document.Document) {
		v.Set(value.Object, of[0].Root(), nil)
		v.Set(value.OldObject, of[1].Root(), nil)
	}
	for range 8 {
		switch g.Pick(5) {
		case 0: // a member that paths go through
			d := documents[g.Pick(2)]
			at := d.Root()
			for g.Pick(2) == 0 {
				next, ok := at.Get(g.Of("a", "b", "c"))
				if !ok || next.Kind() != document.Object {
					break
				}
				at = next
			}
			d.Set(at, g.Of("a", "b", "c", "s"), []byte(g.Of(`{"a":{"b":7},"c":[1]}`, `[1,2]`, `"a"`, `0`, `null`)))
		case 1:
			documents[0] = parse(g.Object())
		case 2:
			documents[0], documents[1] = documents[1], documents[0]
		}
		expression := fmt.Sprintf("[dyn(%s), dyn(object.?a.?b), dyn(object.?a.?b.?a)]", g.Value(2))
		checked, issues := e.Compile(expression)
		if issues != nil {
			continue
		}
		natively, lazily, err := bothWays(t, e, expression, checked.NativeRep())
		if err != nil {
			continue
		}
		anew := [2]*document.Document{parse(string(documents[0].AppendTo(nil))),
			parse(string(documents[1].AppendTo(nil)))}
		for way, p := range map[string]*Program{"natively": natively, "lazily": lazily} {
			if p == nil {
				continue
			}
			bind(f.Vars(), documents)
			var units int64
			got := evaluatedOn(f, p, f.Vars(), &units)
			if want := ours(p, func(v *Vars) { bind(v, anew) }); got != want {
				t.Fatalf("%s: %s\n%s\n%s\nafter others %v\nanew         %v", way, expression, anew[0].AppendTo(nil),
					anew[1].AppendTo(nil), got, want)
			}
			compared++
		}
	}
	return compared
}

// TestRememberedPaths proves that what a frame remembers of earlier expressions changes no later one.
func TestRememberedPaths(t *testing.T) {
	e := adhocEnv(t)
	random := rand.New(rand.NewPCG(3, 4))
	seed := make([]byte, 900)
	compared := 0
	for range 300 {
		fillSeed(seed, random)
		compared += remembered(t, e, seed)
	}
	if compared < 2000 {
		t.Errorf("only %d evaluations were compared", compared)
	}
}

// FuzzRememberedPaths does the same with expressions and edits made of bytes.
func FuzzRememberedPaths(f *testing.F) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 12 {
		seed := make([]byte, 600)
		fillSeed(seed, random)
		f.Add(seed)
	}
	e := adhocEnv(f)
	f.Fuzz(func(t *testing.T, seed []byte) { remembered(t, e, seed) })
}
