package telemetry

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"
)

// gauges are the quantities of this moment.
type gauges struct {
	inFlight  atomic.Int64
	waiting   atomic.Int64
	upgraded  atomic.Int64
	bodyBytes atomic.Pointer[func() int64]
}

// RequestStarted and RequestEnded keep the number of requests in flight; call them in pairs.
func (t *Telemetry) RequestStarted() { t.gauges.inFlight.Add(1) }

// RequestEnded is the end of what RequestStarted began.
func (t *Telemetry) RequestEnded() { t.gauges.inFlight.Add(-1) }

// WaitStarted and WaitEnded keep the number of requests that wait until fewer others are served; call them in pairs.
func (t *Telemetry) WaitStarted() { t.gauges.waiting.Add(1) }

// WaitEnded is the end of what WaitStarted began.
func (t *Telemetry) WaitEnded() { t.gauges.waiting.Add(-1) }

// UpgradeStarted and UpgradeEnded keep the number of connections that go on in another protocol; call them in pairs.
func (t *Telemetry) UpgradeStarted() { t.gauges.upgraded.Add(1) }

// UpgradeEnded is the end of what UpgradeStarted began.
func (t *Telemetry) UpgradeEnded() { t.gauges.upgraded.Add(-1) }

// ObserveBodyBytes sets the function that tells how many bytes of memory request bodies hold. Each scrape calls it.
func (t *Telemetry) ObserveBodyBytes(inUse func() int64) { t.gauges.bodyBytes.Store(&inUse) }

func (g *gauges) register(m metric.Meter) error {
	for _, one := range []struct {
		name, unit, description string
		value                   func() int64
	}{
		{"gateway_requests_in_flight", "", "Requests being served now.", g.inFlight.Load},
		{"gateway_requests_waiting", "", "Requests that wait until rate limits let one more be served.", g.waiting.Load},
		{"gateway_upgraded_connections", "", "Connections that go on in another protocol (exec, port-forward, …) now.", g.upgraded.Load},
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
