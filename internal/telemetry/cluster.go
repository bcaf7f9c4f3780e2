package telemetry

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Cluster describes what was read of a watched cluster.
type Cluster struct {
	Kinds []ClusterKind
	// Lag is how long the last change took from its event until it was in force.
	Lag time.Duration
}

// ClusterKind describes what was read of the objects of a kind. The kinds are those that routes are made of.
type ClusterKind struct {
	Name          string
	Events, Lists uint64
	Silences      uint64    // watches that were given up because nothing came any more
	LastEvent     time.Time // zero: none came yet
	Age           time.Duration
}

// cluster is the source of what is known of a watched cluster.
type cluster struct {
	observe atomic.Pointer[func() Cluster]
}

func (c *cluster) register(m metric.Meter) error {
	events, failed := m.Int64ObservableCounter("gateway_cluster_watch_events",
		metric.WithDescription("Events that watches of a cluster brought, bookmarks included, by kind."))
	lists, err := m.Int64ObservableCounter("gateway_cluster_lists",
		metric.WithDescription("How often all objects of a kind were listed: at the start, and when a watch could not go on."))
	failed = firstOf(failed, err)
	silences, err := m.Int64ObservableCounter("gateway_cluster_watch_silences",
		metric.WithDescription("Watches of a kind that were given up because the API server was silent beyond the end of their time."))
	failed = firstOf(failed, err)
	last, err := m.Float64ObservableGauge("gateway_cluster_last_event_timestamp",
		metric.WithDescription("When an event of a kind came last, in Unix time."), metric.WithUnit("s"))
	failed = firstOf(failed, err)
	age, err := m.Float64ObservableGauge("gateway_cluster_age",
		metric.WithDescription("How long ago the API server last showed that the objects of a kind are right; at most 45 while it can be asked."), metric.WithUnit("s"))
	failed = firstOf(failed, err)
	lag, err := m.Float64ObservableGauge("gateway_cluster_lag",
		metric.WithDescription("How long the last change in a cluster took from its event until it was in force."), metric.WithUnit("s"))
	if failed = firstOf(failed, err); failed != nil {
		return failed
	}
	_, err = m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		observe := c.observe.Load()
		if observe == nil {
			return nil
		}
		now := (*observe)()
		for _, k := range now.Kinds {
			kind := metric.WithAttributes(attribute.String("kind", k.Name))
			o.ObserveInt64(events, int64(k.Events), kind)
			o.ObserveInt64(lists, int64(k.Lists), kind)
			o.ObserveInt64(silences, int64(k.Silences), kind)
			o.ObserveFloat64(age, k.Age.Seconds(), kind)
			if !k.LastEvent.IsZero() {
				o.ObserveFloat64(last, float64(k.LastEvent.UnixMilli())/1000, kind)
			}
		}
		o.ObserveFloat64(lag, now.Lag.Seconds())
		return nil
	}, events, lists, silences, last, age, lag)
	return err
}
