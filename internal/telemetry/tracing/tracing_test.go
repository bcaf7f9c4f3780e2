package tracing

import (
	"context"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

const parentID = "0af7651916cd43dd8448eb211c80319c"

func TestParseTraceparent(t *testing.T) {
	for _, tt := range []struct {
		value          string
		valid, sampled bool
	}{
		{"00-" + parentID + "-b7ad6b7169203331-01", true, true},
		{"00-" + parentID + "-b7ad6b7169203331-00", true, false},
		{"00-" + parentID + "-b7ad6b7169203331-03", true, true},
		{"cc-" + parentID + "-b7ad6b7169203331-01-what", true, true},
		{"cc-" + parentID + "-b7ad6b7169203331-01what", false, false},
		{"00-" + parentID + "-b7ad6b7169203331-01-what", false, false},
		{"ff-" + parentID + "-b7ad6b7169203331-01", false, false},
		{"00-00000000000000000000000000000000-b7ad6b7169203331-01", false, false},
		{"00-" + parentID + "-0000000000000000-01", false, false},
		{"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", false, false},
		{"00-" + parentID + "-b7ad6b7169203331-0", false, false},
		{"", false, false},
	} {
		c, ok := ParseTraceparent([]byte(tt.value))
		if ok != tt.valid || ok && (c.IsSampled() != tt.sampled || c.TraceID().String() != parentID) {
			t.Errorf("%s: %v, %+v", tt.value, ok, c)
		}
	}
}

// The decision is the one of the SDK's samplers of the same names.
func TestSampling(t *testing.T) {
	for name, sdk := range map[string]sdktrace.Sampler{
		"always_on": sdktrace.AlwaysSample(), "always_off": sdktrace.NeverSample(),
		"traceidratio":             sdktrace.TraceIDRatioBased(0.3),
		"parentbased_always_on":    sdktrace.ParentBased(sdktrace.AlwaysSample()),
		"parentbased_always_off":   sdktrace.ParentBased(sdktrace.NeverSample()),
		"parentbased_traceidratio": sdktrace.ParentBased(sdktrace.TraceIDRatioBased(0.3)),
	} {
		ours, err := samplingByName(name, "0.3")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 300 {
			id := newTraceID()
			var parent trace.SpanContext
			ctx := context.Background()
			if i%3 > 0 {
				parent = trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: newSpanID(),
					TraceFlags: trace.TraceFlags(i%3 - 1), Remote: true})
				ctx = trace.ContextWithSpanContext(ctx, parent)
			}
			want := sdk.ShouldSample(sdktrace.SamplingParameters{ParentContext: ctx,
				TraceID: id}).Decision == sdktrace.RecordAndSample
			if got := ours.samples(parent, id); got != want {
				t.Errorf("%s: trace %s with parent %v is sampled: %v, want %v", name, id, parent, got, want)
			}
		}
	}
	for _, wrong := range [][2]string{{"jaeger_remote", ""}, {"traceidratio", "2"}, {"traceidratio", "x"},
		{"traceidratio", "NaN"}} {
		if _, err := samplingByName(wrong[0], wrong[1]); err == nil {
			t.Errorf("no error for %q", wrong)
		}
	}
}

func TestOffWithoutWord(t *testing.T) {
	for _, tt := range []struct {
		environment map[string]string
		traced      bool
		wrong       bool
	}{
		{nil, false, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, true, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1",
			"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, true, false},
		{map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, true, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"}, false,
			false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}, false,
			false},
		{map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, false, true},
		{map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, false, true},
		{map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_TRACES_SAMPLER": "xray"}, false, true},
	} {
		for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
			"OTEL_TRACES_EXPORTER", "OTEL_SDK_DISABLED", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_TRACES_SAMPLER"} {
			t.Setenv(name, tt.environment[name])
		}
		tracer, err := New(context.Background(), Options{})
		if (tracer != nil) != tt.traced || (err != nil) != tt.wrong {
			t.Errorf("%v: tracer %v, error %v", tt.environment, tracer, err)
		}
		ended, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = tracer.Shutdown(ended)
		cancel()
	}
}

func BenchmarkUnsampled(b *testing.B) {
	tracer, err := New(context.Background(),
		Options{Exporter: tracetest.NewInMemoryExporter(), Endpoint: "http://127.0.0.1:1"})
	if err != nil {
		b.Fatal(err)
	}
	var lines []byte
	b.ReportAllocs()
	for b.Loop() {
		s := tracer.Look(nil, nil)
		lines = s.AppendUntraced(lines[:0])
	}
}
