package main

import (
	"github.com/admission-gateway/gateway/internal/admin"
	"github.com/admission-gateway/gateway/internal/circuit"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/upstream/balance"
	"github.com/admission-gateway/gateway/proxy"
)

// describeUpstreams shows operators the backends and their servers.
func (n *node) describeUpstreams() admin.Upstreams {
	page := admin.Upstreams{Upstreams: []admin.Upstream{}}
	for _, u := range n.upstreams() {
		one := admin.Upstream{
			Name: u.Name, Circuit: u.Circuit.String(),
			Connections: u.Open, IdleConnections: u.Idle, PendingRequests: u.Pending,
			Retries: u.Retried, Ejections: u.Ejections, Endpoints: []admin.Endpoint{},
		}
		for _, e := range u.Endpoints {
			shown := admin.Endpoint{
				Address: e.Address, Host: e.Authority, Status: e.Status.String(), HealthCheck: e.Cause,
				IsChecked: e.IsWell, ConsecutiveFailures: e.Failures, Connections: e.Connections,
				RequestsInFlight: e.InFlight,
			}
			if !e.Until.IsZero() {
				until := e.Until.UTC()
				shown.EjectedUntil = &until
			}
			if !e.Heard.IsZero() {
				heard := e.Heard.UTC()
				shown.LastAnswerTime = &heard
			}
			one.Endpoints = append(one.Endpoints, shown)
		}
		for _, v := range u.Versions {
			one.Versions = append(one.Versions, admin.Versions(v))
		}
		for _, name := range u.Unresolved {
			one.UnresolvedNames = append(one.UnresolvedNames,
				admin.UnresolvedName{Host: name.Authority, Message: name.Cause})
		}
		page.Upstreams = append(page.Upstreams, one)
	}
	return page
}

// measureUpstreams counts them for the metrics.
func (n *node) measureUpstreams() []telemetry.Upstream {
	var all []telemetry.Upstream
	for _, u := range n.upstreams() {
		one := telemetry.Upstream{
			Name:      u.Name,
			Endpoints: make(map[string]int), Circuits: make(map[string]int),
			Active: u.Open - u.Idle, Idle: u.Idle, Pending: u.Pending, Retries: u.Retried, Ejections: u.Ejections,
			Surplus: u.Surplus, Unended: u.Unended,
		}
		for _, s := range []balance.EndpointStatus{balance.EndpointReady, balance.EndpointEjected,
			balance.EndpointUnhealthy} {
			one.Endpoints[s.String()] = 0
		}
		for _, e := range u.Endpoints {
			one.Endpoints[e.Status.String()]++
		}
		for _, s := range []circuit.State{circuit.Closed, circuit.Open, circuit.HalfOpen} {
			one.Circuits[s.String()] = 0
		}
		one.Circuits[u.Circuit.String()] = 1
		for _, v := range u.Versions {
			if v.IsVarying() {
				one.Varying = append(one.Varying, v.Resource)
			}
		}
		all = append(all, one)
	}
	return all
}

// upstreams are the backends; they are not set before the gateway is made.
func (n *node) upstreams() []proxy.Upstream {
	if !n.listening.Load() {
		return nil
	}
	return n.gateway.Load().Upstreams()
}
