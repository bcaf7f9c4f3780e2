package tracing

import (
	"context"
	"os"
	"strconv"
	"sync/atomic"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/admission-gateway/gateway/internal/telemetry/otlp"
)

// A counter lies between the tracer and the SDK's queue of spans, and between that and the exporter. It lets no more
// spans wait than the queue takes, so that it knows of each that is lost.
type counter struct {
	sdktrace.SpanProcessor // the queue
	delivery               *otlp.Delivery
	room                   int64
	waiting                atomic.Int64
}

// newCounter returns the processor of spans that an exporter sends.
func newCounter(exporter sdktrace.SpanExporter) *counter {
	c := &counter{delivery: &otlp.Delivery{}, room: sdktrace.DefaultMaxQueueSize}
	if n, err := strconv.Atoi(os.Getenv("OTEL_BSP_MAX_QUEUE_SIZE")); err == nil && n > 0 {
		c.room = int64(n)
	}
	c.SpanProcessor = sdktrace.NewBatchSpanProcessor(&countedExporter{exporter, c},
		sdktrace.WithMaxQueueSize(int(c.room)))
	return c
}

// OnEnd implements sdktrace.SpanProcessor.
func (c *counter) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if c.waiting.Add(1) > c.room {
		c.waiting.Add(-1)
		c.delivery.Lose(1)
		return
	}
	c.SpanProcessor.OnEnd(s)
}

// leave counts the spans that wait as lost.
func (c *counter) leave() { c.delivery.Lose(int(c.waiting.Swap(0))) }

type countedExporter struct {
	sdktrace.SpanExporter
	counter *counter
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *countedExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	e.counter.waiting.Add(-int64(len(spans)))
	return e.counter.delivery.Send(len(spans), func() error { return e.SpanExporter.ExportSpans(ctx, spans) })
}
