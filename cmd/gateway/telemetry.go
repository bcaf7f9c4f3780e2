package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"k8s.io/klog/v2"

	"github.com/admission-gateway/gateway/internal/admin"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/quote"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/telemetry/otlp"
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
		o.Push = &telemetry.Push{Endpoint: p.Endpoint, IsGRPC: p.Protocol == config.OTLPOverGRPC,
			Period: p.PeriodSeconds.Duration()}
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

// lastTelemetry is how long a gateway that ends waits for a collector that has answered so far.
const lastTelemetry = time.Second

// endTelemetry sends the last spans and metrics. A collector that does not answer delays no end, and decides no exit
// code.
func (n *node) endTelemetry() {
	ctx, cancel := context.WithTimeout(context.Background(), lastTelemetry)
	defer cancel()
	var ends sync.WaitGroup
	for _, signal := range []struct {
		name     string
		delivery *otlp.Delivery
		end      func(context.Context) error
	}{{"spans", n.tracer.Delivery(), n.tracer.Shutdown}, {"metrics", n.metrics.Push(), n.metrics.Shutdown}} {
		ends.Go(func() {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			why := signal.delivery.Failure()
			if why != nil {
				cancel() // nothing more is tried
			}
			done := make(chan error, 1)
			go func() { done <- signal.end(ctx) }()
			var err error
			select {
			case err = <-done:
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
			if lost := signal.delivery.Lost(); signal.delivery != nil && (err != nil || why != nil) {
				n.log.Warn("the last telemetry could not be sent", "signal", signal.name, "cause", cmp.Or(why, err),
					"lost", lost)
			}
		})
	}
	ends.Wait()
}

// telemetryHealth is the check of the collectors, without which requests are served.
func (n *node) telemetryHealth() error {
	var all []error
	if why := n.tracer.Delivery().Failure(); why != nil {
		all = append(all, fmt.Errorf("spans: %w", why))
	}
	if why := n.metrics.Push().Failure(); why != nil {
		all = append(all, fmt.Errorf("metrics: %w", why))
	}
	if err := errors.Join(all...); err != nil {
		return admin.Warning{Err: err}
	}
	return nil
}

// redisHealth is the check of Redis, without which requests are served, or refused as policies say.
func (n *node) redisHealth() error {
	if away := n.metrics.SharedLimitStoreAway(); away > 0 {
		return admin.Warning{Err: fmt.Errorf("%s of Redis not answering: shared limits are decided as whenStoreUnavailable says", quote.Count(away, "server"))}
	}
	return nil
}
