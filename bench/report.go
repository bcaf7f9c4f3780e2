package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxUserMicroseconds is the goal for the processor's time in user space of a POST through full admission.
const maxUserMicroseconds = 9

// A Report holds the raw figures of a run; the table is made from it.
type Report struct {
	Rounds      int       `json:"rounds"`
	Seconds     float64   `json:"secondsPerSample"`
	Connections int       `json:"connections"`
	Results     []Result  `json:"results"`
	Footprint   Footprint `json:"footprint"`
	Set         SetResult `json:"set"`
}

// A Result are the samples of one target under one load, one a round.
type Result struct {
	Load    string   `json:"load"`
	Target  string   `json:"target"`
	Title   string   `json:"title"`
	IdleMiB float64  `json:"idleMiB"` // resident memory before the first round
	Samples []Sample `json:"samples"`
}

// result returns the result of a target under a load; nil if it is not measured.
func (r *Report) result(load, target string) *Result {
	for i := range r.Results {
		if r.Results[i].Load == load && r.Results[i].Target == target {
			return &r.Results[i]
		}
	}
	return nil
}

// find returns the samples of a target under a load; nil if it was not measured.
func (r *Report) find(load, target string) []Sample {
	if one := r.result(load, target); one != nil {
		return one.Samples
	}
	return nil
}

// nginx returns the samples of the nginx that a load is sent to; nil if none was measured.
func (r *Report) nginx(load string) []Sample {
	for _, target := range []string{nginxTarget, secureNginxTarget, nginxH2Target, nginxH2CTarget, nginxGRPCTarget} {
		if samples := r.find(load, target); samples != nil {
			return samples
		}
	}
	return nil
}

// beyond returns samples with the CPU time that is left when a target's time for the loads together is taken off; nil
// if that was not measured.
func (r *Report) beyond(samples []Sample, loads []string, target string) []Sample {
	base := r.together(loads, target)
	rest := slices.Clone(samples[:min(len(samples), len(base))])
	for i := range rest {
		rest[i].CPU -= base[i].CPU
	}
	return rest
}

// together returns samples with the CPU time that a target needs for one request of each of the loads; nil if one of
// them was not measured.
func (r *Report) together(loads []string, target string) []Sample {
	var sum []Sample
	for i, load := range loads {
		samples := r.find(load, target)
		if len(samples) == 0 {
			return nil
		}
		if i == 0 {
			sum = make([]Sample, len(samples))
		}
		sum = sum[:min(len(sum), len(samples))]
		for j := range sum {
			sum[j].CPU += samples[j].CPU
		}
	}
	return sum
}

// ratio returns the median over the rounds of a figure divided by the reference's in the same
// round; ok is false if the reference was not measured. Rounds lie close in time, so that what else
// the machine does cancels out.
func ratio(samples, reference []Sample, figure func(Sample) float64) (_ float64, ok bool) {
	values := ratios(samples, reference, figure)
	return middle(values), len(values) > 0
}

// ratios returns the ratio of each round, in ascending order. Of seven rounds the first and the last are an interval in
// which the true median lies with a confidence of 98 %.
func ratios(samples, reference []Sample, figure func(Sample) float64) []float64 {
	n := min(len(samples), len(reference))
	values := make([]float64, 0, n)
	for i := range n {
		if base := figure(reference[i]); base > 0 {
			values = append(values, figure(samples[i])/base)
		}
	}
	slices.Sort(values)
	return values
}

func throughputOf(s Sample) float64 { return s.Throughput }
func cpuOf(s Sample) float64        { return s.CPU }
func userOf(s Sample) float64       { return s.User }

// table writes the medians and ratios as Markdown.
func (r *Report) table(to io.Writer) error {
	p := printer{to: to}
	p.printf("Medians of %d interleaved rounds of %g s, %d keep-alive connections; the server under test has one core, the load generator and the backend have the others. "+
		"Ratios are medians of the ratios in each round.\n\n", r.Rounds, r.Seconds, r.Connections)
	p.printf("| request | server | requests/s | ÷ nginx | p50 ms | p99 ms | CPU µs/request | user | ÷ nginx | ÷ fasthttp |\n")
	p.printf("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for i := range r.Results {
		x := &r.Results[i]
		nginx, fast := r.nginx(x.Load), r.find(x.Load, fasthttpTarget)
		p.printf("| %s | %s | %.0f | %s | %.2f | %.2f | %.1f | %.1f | %s | %s |\n", x.Load, x.Title,
			median(x.Samples, throughputOf), cell(ratio(x.Samples, nginx, throughputOf)),
			median(x.Samples, func(s Sample) float64 { return s.P50 / 1000 }),
			median(x.Samples, func(s Sample) float64 { return s.P99 / 1000 }),
			median(x.Samples, cpuOf), median(x.Samples, userOf), cell(ratio(x.Samples, nginx, cpuOf)),
			cell(ratio(x.Samples, fast, cpuOf)))
	}
	for i := range r.Results {
		broken := 0
		for _, s := range r.Results[i].Samples {
			broken += s.Broken
		}
		if broken > 0 {
			p.printf("\n%s under %s: %d connections failed or timed out.\n", r.Results[i].Title, r.Results[i].Load,
				broken)
		}
	}
	return p.err
}

func cell(ratio float64, ok bool) string {
	if !ok {
		return "–"
	}
	return fmt.Sprintf("%.2f", ratio)
}

// verdict writes how the goals fare and reports whether all that were measured are reached.
func (r *Report) verdict(to io.Writer) (bool, error) {
	p, reached := printer{to: to}, true
	for _, g := range goals() {
		reference, what := r.find(g.Load, g.Reference), g.Reference+"'s CPU"
		if len(g.Of) > 0 {
			reference = r.together(g.Of, g.Reference)
			what += " for " + strings.Join(g.Of, " and ")
		}
		samples := r.find(g.Load, g.Target)
		if g.Beyond != "" {
			samples, reference = r.beyond(samples, []string{g.Load}, g.Beyond), r.beyond(reference, g.Of, g.Beyond)
			what += ", both beyond " + g.Beyond + "'s"
		}
		of := cpuOf
		if g.Figure.of != nil {
			of, what = g.Figure.of, g.Reference+"'s "+g.Figure.name
		}
		all := ratios(samples, reference, of)
		if len(all) == 0 {
			continue
		}
		got := middle(all)
		word := "reached"
		if got > g.AtMost {
			word, reached = "MISSED", false
		}
		p.printf("- %s, %s: %.2f × (%.2f to %.2f) %s, goal at most %.2f: %s\n", g.Load, g.Target, got, all[0],
			all[len(all)-1], what, g.AtMost, word)
	}
	if more, ok := r.manyRoutesMore(); ok {
		p.printf("- 10,000 routes beside one: %.1f µs, goal at most %d\n", more, maxRoutesMicroseconds)
		reached = reached && more <= maxRoutesMicroseconds
	}
	if further, ok := r.furtherConstraint(); ok {
		p.printf("- each further constraint that matches: %.1f µs, goal at most %d\n", further, maxFurtherMicroseconds)
		reached = reached && further <= maxFurtherMicroseconds
	}
	if f := r.Footprint; f.StartMilliseconds > 0 {
		p.printf("- start with the demo's policies: %.0f ms, goal at most %d; idle: %.0f MiB resident, goal at most %d\n",
			f.StartMilliseconds, maxStartMilliseconds, f.IdleMiB, maxIdleMiB)
		reached = reached && f.StartMilliseconds <= maxStartMilliseconds && f.IdleMiB <= maxIdleMiB
	}
	if f := r.Footprint; f.DocumentMB > 0 {
		p.printf("- load of GitHub's OpenAPI document: %.2f s of CPU time, goal at most %.0f; %.0f MB at the peak above a gateway without files, goal at most %d\n",
			f.DocumentSeconds, maxDocumentSeconds, f.DocumentMB, maxDocumentMB)
		reached = reached && f.DocumentSeconds <= maxDocumentSeconds && f.DocumentMB <= maxDocumentMB
	}
	if admitted := r.find(postLoad, admissionTarget); len(admitted) > 0 {
		user := median(admitted, userOf)
		p.printf("- %s, %s: %.1f µs in user space, goal at most %d\n", postLoad, admissionTarget, user,
			maxUserMicroseconds)
		reached = reached && user <= maxUserMicroseconds
	}
	if r.Set.StartSeconds > 0 {
		reached = r.Set.verdict(&p) && reached
	}
	return reached, p.err
}

// A printer keeps the first error of its writes.
type printer struct {
	to  io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.to, format, args...)
	}
}
