package admission

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/merge"
)

// noted is a Schema that notes when it is asked.
type noted struct{ log *[]string }

func (n noted) SetDefaults() error { *n.log = append(*n.log, "defaults"); return nil }
func (n noted) MergeType(schema.GroupVersionResource, schema.GroupVersionKind) *merge.Type {
	return merge.Deduced()
}
func (n noted) PatchLimits() document.Limits { return document.Limits{} }

// TestMutationOrder: stages, then names; who runs again.
func TestMutationOrder(t *testing.T) {
	for _, c := range []struct {
		name     string
		policies func(log func(string, bool) func(*Attributes, *Report) error) []*scripted
		want     string
	}{
		{"stages before names", func(log func(string, bool) func(*Attributes, *Report) error) []*scripted {
			return []*scripted{
				{name: "a", stage: StageEngines, do: log("engine a", false)}, {name: "c", do: log("default c", false)},
				{name: "b", stage: StagePolicies, do: log("policy b", false)}, {name: "d", do: log("default d", false)},
				{name: "a", stage: StagePolicies, do: log("policy a", false)},
			}
		}, "default c, default d, policy a, policy b, engine a"},
		{"defaults alone need no second pass",
			func(log func(string, bool) func(*Attributes, *Report) error) []*scripted {
				return []*scripted{{name: "c", do: log("default", true)},
					{name: "b", stage: StagePolicies, do: log("policy", false)}}
			}, "default, policy"},
		{"a change after the defaults has them set again",
			func(log func(string, bool) func(*Attributes, *Report) error) []*scripted {
				return []*scripted{{name: "c", do: log("default", false)},
					{name: "b", stage: StagePolicies, do: log("policy", true)}}
			}, "default, policy, default"},
		{"mutators that ask for it run again, in order",
			func(log func(string, bool) func(*Attributes, *Report) error) []*scripted {
				return []*scripted{
					{name: "a", stage: StagePolicies, again: true, do: log("a", false)},
					{name: "b", stage: StagePolicies, do: log("b", true)},
					{name: "c", stage: StagePolicies, again: true, do: log("c", true)},
					{name: "d", stage: StageEngines, again: true, do: log("engine", false)},
				}
			}, "a, b, c, engine, a, c"},
	} {
		var ran []string
		log := func(text string, changes bool) func(*Attributes, *Report) error {
			return func(a *Attributes, _ *Report) error {
				ran = append(ran, text)
				if changes {
					a.Changed()
				}
				return nil
			}
		}
		var mutators []Mutator
		for _, p := range c.policies(log) {
			p.rules = everything()
			mutators = append(mutators, p)
		}
		a := attributes(t, deployment)
		a.Schema = noted{&ran}
		var r Report
		if err := NewChain(mutators, nil).Mutate(context.Background(), a, &r); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(ran, ", "); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestMutationFailures: all failures are causes, the reason of the first one counts, and nothing runs again.
func TestMutationFailures(t *testing.T) {
	fails := func(*Attributes, *Report) error { return errors.New("cannot") }
	runs := 0
	c := NewChain([]Mutator{
		&scripted{name: "a", stage: StagePolicies, rules: everything(), do: fails},
		&scripted{name: "b", stage: StagePolicies, rules: everything(), again: true,
			do: func(a *Attributes, _ *Report) error { runs++; a.Changed(); return nil }},
		&scripted{name: "c", stage: StagePolicies, rules: everything(), failure: Ignore, do: fails},
		&scripted{name: "d", stage: StagePolicies, rules: everything(), do: fails},
	}, nil)
	var r Report
	err := c.Mutate(context.Background(), attributes(t, deployment), &r)
	const want = "policy 'a' denied request: cannot; policy 'd' denied request: cannot"
	if fmt.Sprint(err) != want || runs != 1 || len(r.IgnoredFailures()) != 1 {
		t.Errorf("got %v, %d runs, ignored %v", err, runs, r.IgnoredFailures())
	}
}

// TestNoMutators: a request that no mutator matches costs nothing.
func TestNoMutators(t *testing.T) {
	c := thousand("resource")
	a := attributes(t, deployment)
	var r Report
	if n := testing.AllocsPerRun(100, func() {
		if err := c.Mutate(context.Background(), a, &r); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if !reflect.DeepEqual(r, Report{}) {
		t.Errorf("report %+v", r)
	}
}
