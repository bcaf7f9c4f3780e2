package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
)

// The loads of the table of sizes.
const (
	sizesUser = "POST 1.3 KB with a JWT"
	usersRow  = "gateway-users"
)

// sizeRows are the gateways of the table with one and two cores.
var sizeRows = []string{gatewayTarget, "gateway-admission", emulationTarget}

// runSizes prints what a gateway needs: requests/s, memory and CPU time with one and two cores, and what each feature
// adds.
func runSizes(ctx context.Context, o options) (err error) {
	rows, err := chosen(sizeRows)
	if err != nil {
		return err
	}
	all := append(features(), moreFeatures()...)
	m, o, closeAll, err := prepare(ctx, o, append(slices.Clone(rows), featureRows(all)...))
	if err != nil {
		return err
	}
	defer closeAll()
	requests := slices.DeleteFunc(loads(),
		func(l Load) bool { return l.Name != postLoad && l.Name != getLoad && l.Name != putLoad })
	var reports []*Report
	for cores, cpus := range []string{m.serverCPUs, m.serverCPUs + "," + m.loadCPUs[:digits(m.loadCPUs)]} {
		fmt.Fprintf(os.Stderr, "%d of 2 cores\n", cores+1)
		m.serverCPUs = cpus
		report, err := m.measure(ctx, o, rows, requests)
		if err != nil {
			return err
		}
		reports = append(reports, report)
		if runtime.NumCPU() < 2 {
			break
		}
	}
	m.serverCPUs = o.serverCPUs
	posts := []Load{
		{Name: postLoad, Method: http.MethodPost, Path: collection, Body: workloadJSON,
			Only: slices.DeleteFunc(featureNames(all), func(name string) bool { return name == usersRow })},
		{Name: sizesUser, Method: http.MethodPost, Path: collection, Body: workloadJSON, AsUser: true,
			Only: []string{usersRow}},
	}
	report, err := m.measure(ctx, o, featureRows(all), posts)
	if err != nil {
		return err
	}
	p := printer{to: os.Stdout}
	p.printf("Medians of %d interleaved rounds of %g s, %d keep-alive connections, %s, a machine with %d CPUs.\n\n",
		o.rounds, o.duration.Seconds(), o.connections, runtime.Version(), runtime.NumCPU())
	if err := sizesTable(&p, reports); err != nil {
		return err
	}
	return featuresTable(&p, report, all)
}

// digits counts the digits that a list of CPUs begins with: its first CPU.
func digits(list string) int {
	n := 0
	for n < len(list) && '0' <= list[n] && list[n] <= '9' {
		n++
	}
	return n
}

func memoryOf(s Sample) float64 { return s.MiB }

// sizesTable has a report for each number of cores.
func sizesTable(p *printer, reports []*Report) error {
	p.printf("| request | gateway | cores | requests/s | p99 ms | CPU µs/request | MiB idle | MiB under load |\n|---|---|--:|--:|--:|--:|--:|--:|\n")
	for i := range reports[0].Results {
		for cores, r := range reports {
			x := &r.Results[i]
			p.printf("| %s | %s | %d | %.0f | %.2f | %.1f | %.0f | %.0f |\n", x.Load, x.Title, cores+1,
				median(x.Samples, throughputOf), median(x.Samples, func(s Sample) float64 { return s.P99 / 1000 }),
				median(x.Samples, cpuOf), x.IdleMiB, median(x.Samples, memoryOf))
		}
	}
	return p.err
}

// featuresTable says what each feature adds to full admission without logs and traces.
func featuresTable(p *printer, r *Report, all []Feature) error {
	reference := r.result(postLoad, quietTarget)
	p.printf("\n| added to full admission of a POST | CPU µs/request | ÷ without it | MiB idle | MiB under load |\n|---|--:|--:|--:|--:|\n")
	for _, f := range all {
		load, title := postLoad, f.Title
		if f.Name == usersRow {
			load = sizesUser
		}
		if f.Name == quietTarget {
			title = "nothing"
		}
		x := r.result(load, f.Name)
		p.printf("| %s | %.1f | %s | %.0f | %.0f |\n", title, median(x.Samples, cpuOf),
			cell(ratio(x.Samples, reference.Samples, cpuOf)), x.IdleMiB, median(x.Samples, memoryOf))
	}
	return p.err
}
