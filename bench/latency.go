package main

import "net/http"

// The loads about latency: of one request after the other, and of requests that come at a rate that leaves a server
// some time to spare.
const (
	oneConnectionLoad = "POST 1.3 KB on one connection"
	pacedLoad         = "POST 1.3 KB at 70 % of its peak"
	pace              = 0.7
)

func latencyLoads() []Load {
	only := []string{nginxTarget, fasthttpTarget, gatewayTarget, admissionTarget}
	return []Load{
		{Name: oneConnectionLoad, Method: http.MethodPost, Path: collection, Body: workloadJSON, Connections: 1,
			Only: only},
		{Name: pacedLoad, Method: http.MethodPost, Path: collection, Body: workloadJSON, PacedBy: postLoad, Only: only},
	}
}

func latencyGoals() []Goal {
	var all []Goal
	for _, reference := range []string{nginxTarget, fasthttpTarget} {
		all = append(all, Goal{Load: oneConnectionLoad, Target: admissionTarget, Reference: reference, AtMost: 1.25,
			Figure: p50},
			Goal{Load: pacedLoad, Target: admissionTarget, Reference: reference, AtMost: 1.5, Figure: p99})
	}
	return all
}
