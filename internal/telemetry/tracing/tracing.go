// Package tracing makes spans of requests with OpenTelemetry's SDK, and sends them by OTLP.
//
// Whether a request is traced is decided first, without the SDK. What is traced has a span for the
// request, one for its admission with an event for each policy, and one for each exchange with a
// backend, Redis or an issuer. Attributes have the names of the semantic conventions. Queries,
// headers and bodies are never among them.
package tracing

import (
	"context"
	"fmt"
	"os"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/admission-gateway/gateway/internal/telemetry/otlp"
)

// Options say where spans go. What they leave out the environment says, by OpenTelemetry's standard
// variables; without either nothing is traced.
type Options struct {
	// Endpoint is the URL of a collector.
	Endpoint string
	// IsGRPC says that it is asked by gRPC, else by HTTP.
	IsGRPC bool
	// PerMillion is how many of a million requests without a parent are traced. It counts only if there is an Endpoint.
	PerMillion int32
	// Version is the gateway's.
	Version string
	// Instance is the id of the process in what is sent.
	Instance string
	// Exporter sends spans in place of OTLP; nil is OTLP.
	Exporter sdktrace.SpanExporter
}

// A Tracer makes spans. It is safe for concurrent use.
type Tracer struct {
	provider *sdktrace.TracerProvider
	counter  *counter
	tracer   trace.Tracer
	sampling sampling
}

// scope is the name of the instrumentation.
const scope = "github.com/admission-gateway/gateway"

// New returns a tracer, or nil if spans are not exported.
func New(ctx context.Context, o Options) (*Tracer, error) {
	exporter, err := o.newExporter(ctx)
	if exporter == nil || err != nil {
		return nil, err
	}
	t := &Tracer{}
	if t.sampling, err = o.sampling(); err != nil {
		return nil, err
	}
	r, err := otlp.Resource(ctx, o.Version, o.Instance)
	if err != nil {
		return nil, err
	}
	t.counter = newCounter(exporter)
	t.provider = sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(t.counter), sdktrace.WithResource(r), sdktrace.WithSampler(sdktrace.AlwaysSample()),
		sdktrace.WithIDGenerator(ids{}),
	)
	t.tracer = t.provider.Tracer(scope, trace.WithInstrumentationVersion(o.Version))
	return t, nil
}

// newExporter returns what sends spans; nil if nothing does.
func (o *Options) newExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	if o.Exporter != nil {
		return o.Exporter, nil
	}
	byGRPC := o.IsGRPC
	if o.Endpoint == "" {
		wanted, err := otlp.IsWanted("TRACES")
		if !wanted || err != nil {
			return nil, err
		}
		if byGRPC, err = otlp.IsGRPC("TRACES"); err != nil {
			return nil, err
		}
	}
	var client otlptrace.Client
	switch {
	case byGRPC && o.Endpoint != "":
		client = otlptracegrpc.NewClient(otlptracegrpc.WithEndpointURL(o.Endpoint))
	case byGRPC:
		client = otlptracegrpc.NewClient()
	case o.Endpoint != "":
		client = otlptracehttp.NewClient(otlptracehttp.WithEndpointURL(strings.TrimSuffix(o.Endpoint, "/") +
			"/v1/traces"))
	default:
		client = otlptracehttp.NewClient()
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("spans cannot be sent: %w", err)
	}
	return exporter, nil
}

func (o *Options) sampling() (sampling, error) {
	if o.Endpoint != "" && os.Getenv("OTEL_TRACES_SAMPLER") == "" {
		return sampling{true, uint64(o.PerMillion) * (whole / 1_000_000)}, nil
	}
	return samplingByName(os.Getenv("OTEL_TRACES_SAMPLER"), os.Getenv("OTEL_TRACES_SAMPLER_ARG"))
}

// Flush sends what was made so far.
func (t *Tracer) Flush(ctx context.Context) error { return t.provider.ForceFlush(ctx) }

// Shutdown sends what is left, for as long as ctx lasts. What is left then is counted as lost.
func (t *Tracer) Shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	defer t.counter.leave()
	return t.provider.Shutdown(ctx)
}

// Delivery says how the sending of spans goes; nil if none are sent.
func (t *Tracer) Delivery() *otlp.Delivery {
	if t == nil {
		return nil
	}
	return t.counter.delivery
}

// ids makes the ids of spans. The id of a new trace is decided before its first span.
type ids struct{}

type chosen struct{}

// NewIDs implements sdktrace.IDGenerator.
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id, ok := ctx.Value(chosen{}).(trace.TraceID)
	if !ok {
		id = newTraceID()
	}
	return id, newSpanID()
}

// NewSpanID implements sdktrace.IDGenerator.
func (ids) NewSpanID(context.Context, trace.TraceID) trace.SpanID { return newSpanID() }
