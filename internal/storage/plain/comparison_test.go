package plain

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestComparison: what is found out about a backend is remembered, told once, and forgotten when another server may
// answer.
func TestComparison(t *testing.T) {
	notes, tasks := schema.GroupResource{Resource: "notes"}, schema.GroupResource{Group: "g", Resource: "tasks"}
	var told []string
	all := &Comparisons{Asks: true, Found: func(r schema.GroupResource, method string, f Finding) {
		told = append(told, r.String()+" "+method+" "+f.String())
	}}
	known := func() (list []string) {
		for _, k := range all.All() {
			list = append(list, k.Resource+" "+k.ETags)
		}
		return list
	}
	k := all.Of(notes)
	if k != all.Of(notes) || k == all.Of(tasks) {
		t.Error("there is not one comparison for each resource")
	}
	if !k.ask("PUT") || k.ask("PUT") || !k.ask("PATCH") {
		t.Error("not one request at a time asks, for each method")
	}
	if got := known(); got != nil || k.Known() > asking {
		t.Errorf("known: %s", got)
	}
	k.note("PUT", unknown)
	if !k.ask("PUT") {
		t.Error("a probe that found nothing is not repeated")
	}
	k.note("PUT", Compared)
	k.note("PUT", Compared)
	k.noteStrong()
	if k.ask("PUT") || !k.refusesOthers() || !k.compares("PUT") || k.compares("PATCH") {
		t.Error("a backend that compares is not known")
	}
	k.note("PATCH", NotCompared)
	all.Of(tasks).noteETags(Weak)
	all.Of(tasks).noteETags(None)
	all.Of(tasks).noteETags(Weak)
	if want := []string{"notes NotCompared", "tasks.g None"}; !slices.Equal(known(), want) {
		t.Errorf("known: %s, want %s", known(), want)
	}
	k.noteAnswers(true)
	if k.answers.get() != Compared {
		t.Errorf("answers: %s", k.answers.get())
	}
	k.noteAnswers(false)
	k.noteAnswers(true)
	if k.answers.get() != NotCompared {
		t.Errorf("answers: %s", k.answers.get())
	}
	if !k.asksVarying() || k.asksVarying() {
		t.Error("not one request at a time asks whether reads vary")
	}
	k.noteVarying(Varying)
	if !k.isVarying() || k.Known() != Varying || !all.All()[0].IsVarying() || all.All()[1].IsVarying() {
		t.Error("that reads vary is not known")
	}
	want := []string{"notes PUT Compared", "notes PATCH NotCompared", "tasks.g  Weak", "tasks.g  None",
		"notes  Varying"}
	if !slices.Equal(told, want) {
		t.Errorf("told: %q, want %q", told, want)
	}
	all.Forget()
	if got := known(); got != nil || k.isVarying() || k.givesStrong() || k.refusesOthers() || !k.ask("PUT") {
		t.Errorf("not forgotten: %s", got)
	}
	all.Forget() // a probe on its way notes what it finds all the same
	if k.ask("PUT") {
		t.Error("two probes are on their way")
	}
	all.Keep(func(r schema.GroupResource) bool { return r == tasks })
	if all.Of(notes) == k {
		t.Error("a resource that no file describes is kept")
	}
	var none *Comparison
	none.noteStrong()
	none.noteETags(Weak)
	if none.ask("PUT") || none.isVarying() || none.givesStrong() || none.asksVarying() || none.compares("PUT") {
		t.Error("something is known of a backend that nobody asks about")
	}
}

// TestProbesEnd: probes that find nothing end after some.
func TestProbesEnd(t *testing.T) {
	k := (&Comparisons{Asks: true, Found: func(schema.GroupResource, string, Finding) {}}).Of(schema.GroupResource{})
	n := 0
	for ; n < 100 && k.ask("PUT"); n++ {
		k.note("PUT", unknown)
	}
	if n != 8 || k.Known() != Unclear {
		t.Errorf("%d probes, then %s", n, k.Known())
	}
	if (&Comparison{}).ask("PUT") {
		t.Error("a comparison asks that should not")
	}
}
