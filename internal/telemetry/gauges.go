package telemetry

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"
)

// gauges are the quantities that every request raises and lowers.
type gauges struct {
	inFlight    atomic.Int64
	bodyBytes   atomic.Int64
	connections atomic.Int64
}

// RequestStarted and RequestEnded keep the number of requests in flight; call them in pairs.
func (t *Telemetry) RequestStarted() { t.gauges.inFlight.Add(1) }

// RequestEnded is the end of what RequestStarted began.
func (t *Telemetry) RequestEnded() { t.gauges.inFlight.Add(-1) }

// BodyBytes adds n, which may be negative, to the bytes of request bodies held in memory.
func (t *Telemetry) BodyBytes(n int64) { t.gauges.bodyBytes.Add(n) }

// ConnectionOpened and ConnectionClosed keep the number of open client connections; call them in pairs.
func (t *Telemetry) ConnectionOpened() { t.gauges.connections.Add(1) }

// ConnectionClosed is the end of what ConnectionOpened began.
func (t *Telemetry) ConnectionClosed() { t.gauges.connections.Add(-1) }

func (g *gauges) register(m metric.Meter) error {
	for _, one := range []struct {
		name, unit, description string
		value                   *atomic.Int64
	}{
		{"gateway_requests_in_flight", "", "Requests being served now.", &g.inFlight},
		{"gateway_request_bodies_in_flight", "By", "Memory that request bodies hold now.", &g.bodyBytes},
		{"gateway_client_connections", "", "Client connections open now.", &g.connections},
	} {
		if _, err := m.Int64ObservableUpDownCounter(one.name,
			metric.WithDescription(one.description), metric.WithUnit(one.unit),
			metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
				o.Observe(one.value.Load())
				return nil
			})); err != nil {
			return err
		}
	}
	return nil
}
