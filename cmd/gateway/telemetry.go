package main

import (
	"context"
	"io"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"k8s.io/klog/v2"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/telemetry/tracing"
)

// lastLines is how long the log may take for its last lines.
const lastLines = 2 * time.Second

// openLog opens the log of a gateway, which Kubernetes' libraries write to as well. The end of it has to be awaited
// by closeLog.
func openLog(w io.Writer, c *config.Log) (log *telemetry.Log, closeLog func(), err error) {
	log, err = telemetry.OpenLog(w, telemetry.LogOptions{
		Level: string(c.Level), Format: telemetry.LogFormat(c.Format), Access: accessOptions(c),
	})
	if err != nil {
		return nil, nil, err
	}
	klog.SetSlogLogger(telemetry.NamedLevels(log.Messages))
	return log, func() {
		ctx, cancel := context.WithTimeout(context.Background(), lastLines)
		defer cancel()
		_ = log.Close(ctx) // there is no other place to report it
	}, nil
}

// metricsOptions are the options of a gateway's metrics.
func metricsOptions(m *config.Metrics, instance string) telemetry.Options {
	o := telemetry.Options{Version: version(), Instance: instance, AreNamesSemantic: m.Names != config.PrometheusNames}
	if p := m.Push; p != nil {
		o.Push = &telemetry.Push{Endpoint: p.Endpoint, IsGRPC: p.Protocol == config.OTLPOverGRPC, Period: p.PeriodSeconds.Duration()}
	}
	return o
}

// newTracer returns the maker of spans; nil if they are not exported.
func newTracer(t *config.Tracing, instance string, log *slog.Logger) (*tracing.Tracer, error) {
	o := tracing.Options{Version: version(), Instance: instance}
	if t != nil {
		o.Endpoint, o.IsGRPC, o.PerMillion = t.Endpoint, t.Protocol == config.OTLPOverGRPC, t.SamplingRatePerMillion
	}
	var failures telemetry.Sampler
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		if times, tell := failures.Allow("otlp", time.Now()); tell {
			log.Warn("telemetry cannot be sent", "cause", err, "times", times)
		}
	}))
	return tracing.New(context.Background(), o)
}

func accessOptions(c *config.Log) telemetry.AccessOptions {
	o := telemetry.AccessOptions{Refused: c.Requests != config.LogNone, ECS: c.FieldNames == config.ECSNames}
	switch c.Requests {
	case config.LogSampled:
		o.OneIn = c.SampleOneIn
	case config.LogAll:
		o.OneIn = 1
	}
	return o
}
