package telemetry

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// gauges are the quantities of this moment.
type gauges struct {
	inFlight  atomic.Int64
	waiting   atomic.Int64
	upgraded  atomic.Int64
	bodyBytes atomic.Pointer[func() int64]
	dropped   atomic.Pointer[func() uint64]
	idle      atomic.Pointer[func() map[string]int]
	listeners atomic.Pointer[func() map[string]int]

	lostSpans, failedPushes atomic.Pointer[func() uint64]
}

// RequestStarted and RequestEnded keep the number of requests in flight; call them in pairs.
func (t *Telemetry) RequestStarted() {
	if isMeasured {
		t.gauges.inFlight.Add(1)
	}
}

// RequestEnded is the end of what RequestStarted began.
func (t *Telemetry) RequestEnded() {
	if isMeasured {
		t.gauges.inFlight.Add(-1)
	}
}

// WaitStarted and WaitEnded keep the number of requests that wait until fewer others are served; call them in pairs.
func (t *Telemetry) WaitStarted() { t.gauges.waiting.Add(1) }

// WaitEnded is the end of what WaitStarted began.
func (t *Telemetry) WaitEnded() { t.gauges.waiting.Add(-1) }

// UpgradeStarted and UpgradeEnded keep the number of connections that go on in another protocol; call them in pairs.
func (t *Telemetry) UpgradeStarted() { t.gauges.upgraded.Add(1) }

// UpgradeEnded is the end of what UpgradeStarted began.
func (t *Telemetry) UpgradeEnded() { t.gauges.upgraded.Add(-1) }

// ObserveBodyBytes sets the function that returns how many bytes of memory request bodies hold.
// Each scrape calls it.
func (t *Telemetry) ObserveBodyBytes(inUse func() int64) { t.gauges.bodyBytes.Store(&inUse) }

// ObserveDroppedLines sets the function that returns how many lines of the log were dropped. Each
// scrape calls it.
func (t *Telemetry) ObserveDroppedLines(dropped func() uint64) { t.gauges.dropped.Store(&dropped) }

// ObserveLostSpans sets the function that returns how many spans were lost. Each scrape calls it.
func (t *Telemetry) ObserveLostSpans(lost func() uint64) { t.gauges.lostSpans.Store(&lost) }

// ObserveIdle sets the function that returns how many places of the policy files apply to no request, by reason. Each
// scrape calls it.
func (t *Telemetry) ObserveIdle(counts func() map[string]int) { t.gauges.idle.Store(&counts) }

// ObserveListeners sets the function that returns how many listeners there are, by state. Each scrape calls it.
func (t *Telemetry) ObserveListeners(counts func() map[string]int) { t.gauges.listeners.Store(&counts) }

// ObserveCluster sets the function that returns what was read of a watched cluster. Each scrape calls it.
func (t *Telemetry) ObserveCluster(observe func() Cluster) { t.cluster.observe.Store(&observe) }

func (g *gauges) register(m metric.Meter) error {
	for _, one := range []struct {
		name, description string
		label             attribute.Key
		counts            *atomic.Pointer[func() map[string]int]
	}{
		{"gateway_policy_idle_places", "Places of the policy files that apply to no request, by reason.", "reason",
			&g.idle},
		{"gateway_listeners", "Listeners, by state: Serving, or Failed if they take no requests, or not on all of their addresses.", "state", &g.listeners},
	} {
		if _, err := m.Int64ObservableUpDownCounter(one.name, metric.WithDescription(one.description),
			metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
				if counts := one.counts.Load(); counts != nil {
					for value, n := range (*counts)() {
						o.Observe(int64(n), metric.WithAttributes(one.label.String(value)))
					}
				}
				return nil
			})); err != nil {
			return err
		}
	}
	for _, one := range []struct {
		name, description string
		value             *atomic.Pointer[func() uint64]
	}{
		{"gateway_log_dropped_lines", "Lines of the log that were dropped because it is read too slowly, or cannot be written.", &g.dropped},
		{"gateway_tracing_lost_spans", "Spans that the collector will never have, because it does not take them, or too slowly.", &g.lostSpans},
		{"gateway_metrics_push_failures", "Times at which metrics could not be sent by OTLP.", &g.failedPushes},
	} {
		if _, err := m.Int64ObservableCounter(one.name, metric.WithDescription(one.description),
			metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
				count := uint64(0)
				if value := one.value.Load(); value != nil {
					count = (*value)()
				}
				o.Observe(int64(count))
				return nil
			})); err != nil {
			return err
		}
	}
	for _, one := range []struct {
		name, unit, description string
		value                   func() int64
	}{
		{"gateway_requests_in_flight", "", "Requests being served now.", g.inFlight.Load},
		{"gateway_requests_waiting", "", "Requests that wait until rate limits let one more be served.",
			g.waiting.Load},
		{"gateway_upgraded_connections", "", "Connections that go on in another protocol (exec, port-forward, …) now.",
			g.upgraded.Load},
		{"gateway_request_bodies_in_flight", "By", "Memory that request bodies hold now.", func() int64 {
			if inUse := g.bodyBytes.Load(); inUse != nil {
				return (*inUse)()
			}
			return 0
		}},
	} {
		if _, err := m.Int64ObservableUpDownCounter(one.name,
			metric.WithDescription(one.description), metric.WithUnit(one.unit),
			metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
				o.Observe(one.value())
				return nil
			})); err != nil {
			return err
		}
	}
	return nil
}

// ages are when things end, and how old they are.
type ages struct {
	certificates atomic.Pointer[func() map[string]time.Time]
	states       atomic.Pointer[func() map[string]time.Duration]
	bundles      atomic.Pointer[func() map[string]time.Duration]
}

// ObserveCertificates sets the function that returns when certificates expire. Each scrape calls it.
func (t *Telemetry) ObserveCertificates(expiries func() map[string]time.Time) {
	t.ages.certificates.Store(&expiries)
}

// ObserveStates sets the function that returns how old collections are that policies read. Each scrape calls it.
func (t *Telemetry) ObserveStates(ages func() map[string]time.Duration) { t.ages.states.Store(&ages) }

// ObserveBundles sets the function that returns how old the bundles are. Each scrape calls it.
func (t *Telemetry) ObserveBundles(ages func() map[string]time.Duration) { t.ages.bundles.Store(&ages) }

func (a *ages) register(m metric.Meter) error {
	if _, err := m.Float64ObservableGauge("gateway_tls_certificate_expiry_timestamp",
		metric.WithDescription("When a certificate of the gateway, or the authority that it trusts, expires, in Unix time."), metric.WithUnit("s"),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			if expiries := a.certificates.Load(); expiries != nil {
				for name, at := range (*expiries)() {
					o.Observe(float64(at.Unix()), metric.WithAttributes(attribute.String("name", name)))
				}
			}
			return nil
		})); err != nil {
		return err
	}
	for _, one := range []struct {
		name, description string
		label             attribute.Key
		of                *atomic.Pointer[func() map[string]time.Duration]
	}{
		{"gateway_state_age", "How long ago the backend last showed that a collection that policies read is right; at most 45 while it is watched.", "path", &a.states},
		{"gateway_bundle_age", "How long ago a bundle was last known to be the newest.", "bundle", &a.bundles},
	} {
		if _, err := m.Float64ObservableGauge(one.name, metric.WithDescription(one.description), metric.WithUnit("s"),
			metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
				if ages := one.of.Load(); ages != nil {
					for name, age := range (*ages)() {
						o.Observe(age.Seconds(), metric.WithAttributes(one.label.String(name)))
					}
				}
				return nil
			})); err != nil {
			return err
		}
	}
	return nil
}
