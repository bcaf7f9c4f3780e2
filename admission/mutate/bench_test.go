//go:build unix

package mutate

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
)

// benchWidget has 1.4 KB.
var benchWidget = `{"apiVersion":"lab.example.com/v1","kind":"Widget","metadata":{"name":"payments","namespace":"team-a","labels":{"app":"payments","tier":"backend"},"annotations":{"example.com/owner":"payments@example.com"}},` +
	`"spec":{"size":5,"tags":["a","b"],"steps":["build","test","release"],"parts":[` + strings.Repeat(`{"name":"server-NN","weight":2,"kind":"registry.example.com/payments/server:1.4.2"},`, 11) + `{"name":"proxy","weight":1}],` +
	`"box":{"a":"b"},"labels":{"k":"v"},"any":{"list":[1],"map":{"a":1}}}}`

func numbered(text string) string {
	for n := 'a'; strings.Contains(text, "NN"); n++ {
		text = strings.Replace(text, "NN", string(n), 1)
	}
	return text
}

// A change is a thing to do to an object: as a DefaultingPolicy and as MutatingAdmissionPolicies do it.
var changes = []struct{ name, defaulting, policies string }{
	{"JSONPatch", "", "mutations:\n" + patch1 + `"[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('example.com/team'), value: 'a'}]"}`},
	{"ApplyConfiguration", "", "mutations:\n" + apply + `"Object{metadata: Object.metadata{labels: {'example.com/team': 'a'}}, spec: Object.spec{parts: [Object.spec.parts{name: 'mesh', weight: 9}]}}"}`},
	{"each-item", "", "mutations:\n" + apply + `"Object{spec: Object.spec{parts: object.spec.parts.filter(p, !has(p.kind)).map(p, Object.spec.parts{name: p.name, kind: 'none'})}}"}`},
	{
		"three-defaults",
		"defaults: [{field: spec.color, value: red}, {field: 'metadata.labels[team]', valueExpression: object.metadata.namespace}, {field: 'spec.parts[*].kind', value: none}]",
		"mutations:\n" + apply + `"has(object.spec.color) ? Object{} : Object{spec: Object.spec{color: 'red'}}"}` +
			"\n" +
			apply + `"has(object.metadata.labels.team) ? Object{} : Object{metadata: Object.metadata{labels: {'team': object.metadata.namespace}}}"}` + "\n" +
			apply + `"Object{spec: Object.spec{parts: object.spec.parts.filter(p, !has(p.kind)).map(p, Object.spec.parts{name: p.name, kind: 'none'})}}"}`,
	},
}

// BenchmarkMutations changes an object of 1.4 KB, which is decoded before, and reports how many
// times the CPU time Kubernetes' own plugin takes: the median of rounds in which both run.
func BenchmarkMutations(b *testing.B) {
	k, props := newWidgets(b)
	object := numbered(benchWidget)
	for _, c := range changes {
		policies := files(b, c.policies)
		var hooks []mutating.PolicyHook
		for _, p := range policies {
			hooks = append(hooks, hook(p, bindingOf(p)))
		}
		theirs := func() {
			var decoded map[string]any
			if err := utiljson.Unmarshal([]byte(object), &decoded); err != nil {
				b.Fatal(err)
			}
			if _, err := k.admit(decoded, nil, hooks); err != nil {
				b.Fatal(err)
			}
		}
		ours := map[string][]admission.Mutator{c.name: compiled(b, policies)}
		if c.defaulting != "" {
			ours[c.name+"/DefaultingPolicy"] = defaultingPolicies(b, c.defaulting)
		}
		a := request(b, props, object, "")
		kind, user := a.Schema.(*widgetKind), a.User
		for name, mutators := range ours {
			chain := admission.NewChain(mutators, nil)
			run := func() {
				d, err := document.Parse([]byte(object), document.Limits{})
				if err != nil {
					b.Fatal(err)
				}
				frame := cel.NewFrame(context.Background())
				kind.object = d
				one := admission.Attributes{Info: a.Info, Operation: a.Operation, User: user, Object: d,
					Lookup: a.Lookup, Frame: frame, Schema: kind}
				var r admission.Report
				if err := chain.Mutate(context.Background(), &one, &r); err != nil {
					b.Fatal(err)
				}
				frame.Release()
				d.Release()
			}
			b.Run(name, func(b *testing.B) {
				var ratios, times []float64
				for b.Loop() {
					slow, fast := timed(b, theirs, 20), timed(b, run, 200)
					ratios, times = append(ratios, slow/fast), append(times, fast)
				}
				slices.Sort(ratios)
				slices.Sort(times)
				b.ReportMetric(ratios[len(ratios)/2], "times")
				b.ReportMetric(times[0], "ns")
				b.ReportMetric(testing.AllocsPerRun(100, run), "allocs")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// timed is the CPU time of one run in nanoseconds, of so many.
func timed(b *testing.B, run func(), times int) float64 {
	start := cpuTime(b)
	for range times {
		run()
	}
	return float64(cpuTime(b)-start) / float64(times)
}

func cpuTime(b *testing.B) int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}
