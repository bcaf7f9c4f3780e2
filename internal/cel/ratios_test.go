//go:build unix

package cel

import (
	"slices"
	"syscall"
	"testing"
)

// BenchmarkRatios reports how many times faster one way is than another: the median of rounds in
// which both run, one after the other, so that what else the machine does falls on both.
func BenchmarkRatios(b *testing.B) {
	native, lazy, maps, policies := natively(b), lazily(b), guardedMaps(b), kubernetesPolicies(b)
	typed, rules := kubernetesRules(b)
	for _, c := range []struct {
		name       string
		slow, fast contender
	}{
		{"policies/native-to-kubernetes", policies, native},
		{"rules/native-to-kubernetes", typed, rules},
		{"policies/native-to-guarded-maps", maps, native},
		{"policies/lazy-to-guarded-maps", maps, lazy},
	} {
		b.Run(c.name, func(b *testing.B) {
			var ratios []float64
			for b.Loop() {
				slow := timed(b, c.slow.run, 100)
				fast := timed(b, c.fast.run, 1000)
				ratios = append(ratios, slow/fast)
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "times")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// timed is the CPU time of one run in nanoseconds, of so many: what else the machine does, and how many of its cores
// the garbage collector takes, makes no difference.
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
