package main

import (
	"maps"
	"slices"
	"testing"

	"github.com/admission-gateway/gateway/tools/limits"
	"github.com/admission-gateway/gateway/tools/load/loadtest"
)

// A module on disk: what is an arrow, and what is not.
func TestArrows(t *testing.T) {
	packages := loadtest.Module(t, map[string]string{
		"room/a.go": "package room\n\ntype A struct{ Field B }\n\nfunc (A) Do() { helper() }\n",
		"room/b.go": "package room\n\ntype B int\n\nfunc helper() {}\n\nfunc (b B) Other(a interface{ Local() }) { a.Local() }\n",
		// A field, a local name and a name of another package are no arrows.
		"room/c.go":      "package room\n\nimport \"strings\"\n\nfunc c(x struct{ Field int }) { Field := x.Field; _ = Field; strings.ToLower(\"\") }\n",
		"room/d.go":      "package room\n\nfunc d(v interface{ Do() }) { v.Do(); var a A; a.Do(); a.Field++; _ = a.Field.Other }\n",
		"room/d_test.go": "package room\n\nfunc forTests() { c(struct{ Field int }{}) }\n",
	})
	want := graph{
		{"a.go", "b.go"}: {"B", "helper"},
		{"d.go", "a.go"}: {"A", "Do"},
		{"d.go", "b.go"}: {"Other"},
	}
	if got := arrowsOf(packages[0]); !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("arrows %v, want %v", got, want)
	}
}

func TestBackUp(t *testing.T) {
	for _, c := range []struct {
		name   string
		arrows string // pairs of files
		want   []arrow
	}{
		{"none", "", nil},
		{"a ladder", "ab bc cd ac ad bd", nil},
		{"a ladder against the alphabet", "dc cb ba da", nil},
		{"two that need each other", "ab ba", []arrow{{"b", "a"}}},
		{"a circle with a way out", "ab bc ca cd ea", []arrow{{"c", "a"}}},
		{"two circles", "ab ba cd dc bc", []arrow{{"a", "b"}, {"d", "c"}}},
		{"one arrow against many", "ab ac ad ba bc", []arrow{{"b", "a"}}},
		// All but one arrow of the cheaper side: a uses b, c and d, which use e, which uses a.
		{"a wide circle", "ab ac ad be ce de ea", []arrow{{"e", "a"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := graph{}
			for i := 0; i+1 < len(c.arrows); i += 3 {
				g[arrow{c.arrows[i : i+1], c.arrows[i+1 : i+2]}] = nil
			}
			if got := g.backUp(); !slices.Equal(got, c.want) {
				t.Errorf("back up: %v, want %v", got, c.want)
			}
		})
	}
}

// A file finds its best place, and the others keep their order.
func TestBestMove(t *testing.T) {
	g := graph{{"a", "b"}: nil, {"b", "c"}: nil, {"a", "c"}: nil}
	files := []string{"c", "a", "b"}
	to, gain := g.bestMove(files, 0)
	if to != 2 || gain != 2 {
		t.Fatalf("to %d with a gain of %d, want 2 and 2", to, gain)
	}
	move(files, 0, to)
	if want := []string{"a", "b", "c"}; !slices.Equal(files, want) {
		t.Errorf("order %v, want %v", files, want)
	}
	move(files, 2, 0)
	if want := []string{"c", "a", "b"}; !slices.Equal(files, want) {
		t.Errorf("order %v, want %v", files, want)
	}
}

func TestCount(t *testing.T) {
	packages := loadtest.Module(t, map[string]string{
		// Three pairs of files that need each other.
		"bad/a.go": "package bad\n\nfunc a() { b() }\n\nfunc a2() { c() }\n",
		"bad/b.go": "package bad\n\nfunc b() { a(); c() }\n",
		"bad/c.go": "package bad\n\nfunc c() { a2(); b() }\n",
		// One such pair alone is let through.
		"few/a.go": "package few\n\nfunc a() { b() }\n",
		"few/b.go": "package few\n\nfunc b() { a() }\n",
	})
	if got, want := count(packages), (limits.Counts{"bad": 3}); !maps.Equal(got, want) {
		t.Errorf("counts %v, want %v", got, want)
	}
}
