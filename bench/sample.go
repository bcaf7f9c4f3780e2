package main

import "slices"

// A Sample is the result of one run of the load generator against one server.
type Sample struct {
	Requests   int     `json:"requests"`
	Throughput float64 `json:"requestsPerSecond"`
	P50        float64 `json:"p50Microseconds"`
	P99        float64 `json:"p99Microseconds"`
	CPU        float64 `json:"cpuMicrosecondsPerRequest"`  // of the server under test
	User       float64 `json:"userMicrosecondsPerRequest"` // of that, in user space
	Broken     int     `json:"brokenConnections"`          // connections that failed or timed out
	MiB        float64 `json:"residentMiB"`                // of the server under test, right after
}

// median returns the median of a figure of the samples.
func median(samples []Sample, figure func(Sample) float64) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = figure(s)
	}
	return middle(values)
}

// middle returns the median of values, 0 of none. It reorders them.
func middle(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	half := len(values) / 2
	if len(values)%2 == 1 {
		return values[half]
	}
	return (values[half-1] + values[half]) / 2
}
