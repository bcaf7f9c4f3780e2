package telemetry

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Upstream describes a backend at a moment. Its servers are counted and not named: they come and go, and a label
// for each would be without bound.
type Upstream struct {
	Name string
	// Endpoints counts the backend's servers by their status, such as Ready. Each status is in it, be it with 0.
	Endpoints map[string]int
	// Circuits are the states of the circuit breaker with 1 for the one that it is in, and 0.
	Circuits map[string]int
	// Active and Idle count connections, Pending the requests that wait for one.
	Active, Idle, Pending int
	// Retries and Ejections count what happened so far.
	Retries, Ejections uint64
	// Unended counts the writes that were given up and may still be carried out, although nothing waits for their end.
	Unended uint64
	// Surplus counts the connections on which bytes came that were not asked for.
	Surplus uint64
	// Varying are the described resources whose reads differ without a write between them.
	Varying []string
}

// upstreams is the source of the state of backends.
type upstreams struct {
	observe atomic.Pointer[func() []Upstream]
}

// ObserveUpstreams sets the function that returns the state of the backends. Each scrape calls it.
func (t *Telemetry) ObserveUpstreams(observe func() []Upstream) { t.upstreams.observe.Store(&observe) }

func (u *upstreams) register(m metric.Meter) error {
	var failed error
	gauge := func(name, description string) metric.Int64ObservableUpDownCounter {
		g, err := m.Int64ObservableUpDownCounter(name, metric.WithDescription(description))
		failed = firstOf(failed, err)
		return g
	}
	counter := func(name, description string) metric.Int64ObservableCounter {
		c, err := m.Int64ObservableCounter(name, metric.WithDescription(description))
		failed = firstOf(failed, err)
		return c
	}
	endpoints := gauge("gateway_upstream_endpoints", "Servers of backends, by whether requests are sent to them.")
	circuits := gauge("gateway_upstream_circuit", "1 for the state that the circuit breaker of a backend is in.")
	connections := gauge("gateway_upstream_connections",
		"Connections to backends, by whether a request or stream has them.")
	pending := gauge("gateway_upstream_pending_requests", "Requests that wait for a connection to a backend.")
	retries := counter("gateway_upstream_retries", "Requests that were sent to a backend once more.")
	ejections := counter("gateway_upstream_ejections",
		"How often a server of a backend was passed over because it failed.")
	unended := counter("gateway_upstream_unended_writes", "Writes to a backend that compares no versions which had not ended a minute after their time had passed, or were not watched: one that is carried out after all may undo others.")
	surplus := counter("gateway_upstream_surplus", "Connections to a backend that were closed because it sent bytes that it was not asked for: behind an answer, or before a request.")
	varying := gauge("gateway_upstream_varying_reads", "1 for a resource whose reads differ although nobody writes it, so that its objects get no ETags.")
	if failed != nil {
		return failed
	}
	_, err := m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		observe := u.observe.Load()
		if observe == nil {
			return nil
		}
		for _, one := range bounded((*observe)()) {
			name := attribute.String("upstream", one.Name)
			labelled := func(key, value string) metric.MeasurementOption {
				return metric.WithAttributes(name, attribute.String(key, value))
			}
			for status, n := range one.Endpoints {
				o.ObserveInt64(endpoints, int64(n), labelled("status", status))
			}
			for state, n := range one.Circuits {
				o.ObserveInt64(circuits, int64(n), labelled("state", state))
			}
			o.ObserveInt64(connections, int64(one.Active), labelled("state", "Active"))
			o.ObserveInt64(connections, int64(one.Idle), labelled("state", "Idle"))
			o.ObserveInt64(pending, int64(one.Pending), metric.WithAttributes(name))
			o.ObserveInt64(retries, int64(one.Retries), metric.WithAttributes(name))
			o.ObserveInt64(ejections, int64(one.Ejections), metric.WithAttributes(name))
			o.ObserveInt64(surplus, int64(one.Surplus), metric.WithAttributes(name))
			o.ObserveInt64(unended, int64(one.Unended), metric.WithAttributes(name))
			for _, r := range one.Varying {
				o.ObserveInt64(varying, 1, labelled("resource", r))
			}
		}
		return nil
	}, endpoints, circuits, connections, pending, retries, ejections, surplus, unended, varying)
	return err
}

func firstOf(first, err error) error {
	if first != nil {
		return first
	}
	return err
}

// maxUpstreams bounds the backends that get series of their own: a cluster may have thousands. The configuration's come
// first.
const maxUpstreams = 200

// bounded returns backends of which those beyond the bound are counted together, under other.
func bounded(all []Upstream) []Upstream {
	if len(all) <= maxUpstreams {
		return all
	}
	rest := Upstream{Name: other, Endpoints: map[string]int{}, Circuits: map[string]int{}}
	for _, one := range all[maxUpstreams:] {
		for status, n := range one.Endpoints {
			rest.Endpoints[status] += n
		}
		for state, n := range one.Circuits {
			rest.Circuits[state] += n
		}
		rest.Active, rest.Idle, rest.Pending = rest.Active+one.Active, rest.Idle+one.Idle, rest.Pending+one.Pending
		rest.Unended += one.Unended
		rest.Retries, rest.Ejections, rest.Surplus = rest.Retries+one.Retries, rest.Ejections+one.Ejections,
			rest.Surplus+one.Surplus
	}
	return append(all[:maxUpstreams:maxUpstreams], rest)
}
