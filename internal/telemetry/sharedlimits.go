package telemetry

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// sharedBounds are the upper bounds of the histogram of decisions on shared limits in seconds: from
// decisions without a round trip to the longest deadline.
var sharedBounds = []float64{0.000005, 0.00001, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
	0.1, 1}

// sharedLimits describes the limits that gateways share.
type sharedLimits struct {
	decisions   metric.Float64Histogram
	outcomes    intern[string, metric.MeasurementOption]
	unavailable atomic.Int64
}

// SharedLimitDecided counts a decision on the shared limits of a request. The outcome is one CamelCase word of a small
// fixed set, such as Admitted, Refused or Timeout.
func (t *Telemetry) SharedLimitDecided(outcome string, took time.Duration) {
	s := &t.sharedLimits
	if option := s.outcomes.get(outcome, maxNames, newOutcome); option != nil {
		s.decisions.Record(context.Background(), took.Seconds(), *option)
	}
}

func newOutcome(outcome string) (string, *metric.MeasurementOption) {
	option := metric.WithAttributeSet(attribute.NewSet(attribute.String("outcome", outcome)))
	return outcome, &option
}

// SharedLimitStore records how many servers of the store of shared limits do not answer.
func (t *Telemetry) SharedLimitStore(unavailable int) {
	t.sharedLimits.unavailable.Store(int64(unavailable))
}

// SharedLimitStoreAway returns how many servers of the store of shared limits do not answer.
func (t *Telemetry) SharedLimitStoreAway() int { return int(t.sharedLimits.unavailable.Load()) }

func (s *sharedLimits) register(m metric.Meter) error {
	var err error
	s.decisions, err = m.Float64Histogram("gateway_shared_limit_decision_duration",
		metric.WithDescription("How long decisions on limits that gateways share took, by outcome."),
		metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(sharedBounds...))
	if err != nil {
		return err
	}
	_, err = m.Int64ObservableUpDownCounter("gateway_shared_limit_unavailable_servers",
		metric.WithDescription("Servers of Redis that do not answer, so that shared limits are decided without them."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(s.unavailable.Load())
			return nil
		}))
	return err
}
