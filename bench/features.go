package main

import (
	"path/filepath"
)

// quietTarget is full admission that reports no requests; features that report them are measured
// beside it.
const quietTarget = "gateway-quiet"

// A Feature is full admission and what else the gateway does for a request.
type Feature struct {
	Name  string // of the target
	Title string // in tables
	// Logs is telemetry.log.requests; empty is None.
	Logs string
	// Traces is telemetry.tracing.samplingRatePerMillion; negative without tracing.
	Traces int
	// Policies are further policy files.
	Policies []string
	// IsMeasured says that metrics are counted.
	IsMeasured bool
	// IsAudited says that each request has an event of the level Metadata, in a file.
	IsAudited bool
	// KnowsUsers says that users are known by the tokens of the machine's issuer.
	KnowsUsers bool
}

// features are the rows that are compared with full admission that reports no requests.
func features() []Feature {
	return []Feature{
		{Name: quietTarget, Title: "full admission, nobody is told", Traces: -1},
		{Name: "gateway-log", Title: "access log of refusals", Logs: "RefusedAndFailed", Traces: -1},
		{Name: "gateway-metrics", Title: "metrics", IsMeasured: true, Traces: -1},
		{Name: "gateway-audit", Title: "audit at Metadata to a file", IsAudited: true, Traces: -1},
		{Name: "gateway-traces", Title: "unsampled traces", Traces: 0},
		{Name: "gateway-told", Title: "these four together", Logs: "RefusedAndFailed", IsMeasured: true,
			IsAudited: true, Traces: 0},
	}
}

// moreFeatures are in the table of sizes alone.
func moreFeatures() []Feature {
	bench := func(dir string) []string { return []string{filepath.Join("bench", dir)} }
	return []Feature{
		{Name: "gateway-log-all", Title: "access log of all requests", Logs: "All", Traces: -1},
		{Name: "gateway-traces-some", Title: "traces, one of 100 sampled", Traces: 10_000},
		{Name: "gateway-users", Title: "identity by JWT and a limit for each user", KnowsUsers: true,
			Policies: bench("limits"), Traces: -1},
		{Name: "gateway-three-rego", Title: "three policies in Rego",
			Policies: []string{filepath.Join("bench", "rego", "labels"), filepath.Join("bench", "rego", "privileged"),
				filepath.Join("bench", "rego", "repos")}, Traces: -1},
	}
}

func featureNames(all []Feature) []string {
	var names []string
	for _, f := range all {
		names = append(names, f.Name)
	}
	return names
}
