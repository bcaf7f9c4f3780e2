package telemetry

import (
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// durationBounds are the upper bounds of histograms of durations in seconds. The lowest ones resolve the gateway's own
// share, the highest one a backend near its deadline.
var durationBounds = [...]float64{0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10}

// lost takes what has no series of its own, and is not shown.
var lost histogram

func (h *histogram) orOther() *histogram {
	if h == nil {
		return &lost
	}
	return h
}

// histogram counts durations. The number of them is the sum of its buckets.
type histogram struct {
	buckets [len(durationBounds) + 1]bucket
	nanos   atomic.Int64
}

// bucket has the number of durations, and one of them that was traced.
type bucket struct {
	count  atomic.Uint64
	traced atomic.Pointer[tracedDuration]
}

// tracedDuration is a duration that a trace shows.
type tracedDuration struct {
	took  time.Duration
	at    time.Time
	trace Trace
}

func (h *histogram) add(took time.Duration, trace *Trace) {
	seconds := took.Seconds()
	i := 0
	for i < len(durationBounds) && seconds > durationBounds[i] {
		i++
	}
	h.buckets[i].count.Add(1)
	h.nanos.Add(int64(took))
	if trace.Sampled {
		h.buckets[i].traced.Store(&tracedDuration{took, time.Now(), *trace})
	}
}

// point returns the histogram as it is now.
func (h *histogram) point(attributes attribute.Set, start, now time.Time) (p metricdata.HistogramDataPoint[float64]) {
	p = metricdata.HistogramDataPoint[float64]{
		Attributes: attributes, StartTime: start, Time: now, Bounds: durationBounds[:],
		BucketCounts: make([]uint64, len(h.buckets)),
		Sum:          time.Duration(h.nanos.Load()).Seconds(),
	}
	for i := range h.buckets {
		b := &h.buckets[i]
		p.BucketCounts[i] = b.count.Load()
		p.Count += p.BucketCounts[i]
		if e := b.traced.Load(); e != nil {
			p.Exemplars = append(p.Exemplars, metricdata.Exemplar[float64]{
				Time: e.at, Value: e.took.Seconds(), TraceID: e.trace.ID[:], SpanID: e.trace.Span[:],
			})
		}
	}
	return p
}
