package telemetry

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// configState describes the configuration in force and the attempts to replace it.
type configState struct {
	succeeded, failed atomic.Int64
	active            atomic.Pointer[activeConfiguration]
}

type activeConfiguration struct {
	hash    string
	pending []string
	read    time.Time
}

// ConfigurationLoaded records that the configuration was read at the given time, and that the one of the hash is in force,
// newly or still. Pending are the keys of the settings that need a restart.
func (t *Telemetry) ConfigurationLoaded(hash string, pending []string, at time.Time) {
	t.config.active.Store(&activeConfiguration{hash, pending, at})
	t.config.succeeded.Add(1)
}

// ConfigurationRejected records that the configuration was read and refused; the one in force stayed.
func (t *Telemetry) ConfigurationRejected() { t.config.failed.Add(1) }

func (c *configState) register(m metric.Meter) error {
	for _, one := range []struct {
		name, description string
		value             *atomic.Int64
	}{
		{"gateway_config_reload_success", "Readings of the configuration that succeeded, the first one included.", &c.succeeded},
		{"gateway_config_reload_failure", "Readings of the configuration that failed; the one in force stayed.", &c.failed},
	} {
		if _, err := m.Int64ObservableCounter(one.name, metric.WithDescription(one.description),
			metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
				o.Observe(one.value.Load())
				return nil
			})); err != nil {
			return err
		}
	}
	if _, err := m.Float64ObservableGauge("gateway_config_reload_last_success_timestamp",
		metric.WithDescription("When the configuration was last read with success, in Unix time."), metric.WithUnit("s"),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			if a := c.active.Load(); a != nil {
				o.Observe(float64(a.read.UnixMilli()) / 1000)
			}
			return nil
		})); err != nil {
		return err
	}
	if _, err := m.Int64ObservableGauge("gateway_config_restart_needed",
		metric.WithDescription("1 for each key whose value in the configuration file differs from the one in force until a restart."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			if a := c.active.Load(); a != nil {
				for _, key := range a.pending {
					o.Observe(1, metric.WithAttributes(attribute.String("key", key)))
				}
			}
			return nil
		})); err != nil {
		return err
	}
	_, err := m.Int64ObservableGauge("gateway_config_info",
		metric.WithDescription("Always 1; the label is the hash of the configuration in force, equal on replicas that agree."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			if a := c.active.Load(); a != nil {
				o.Observe(1, metric.WithAttributes(attribute.String("hash", a.hash)))
			}
			return nil
		}))
	return err
}
