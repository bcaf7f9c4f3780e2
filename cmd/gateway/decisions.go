package main

import (
	"context"
	"log/slog"
	"maps"

	"github.com/admission-gateway/gateway/admission/decisions"
	"github.com/admission-gateway/gateway/admission/rego/mask"
	"github.com/admission-gateway/gateway/internal/audit"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/telemetry/tracing"
	"github.com/admission-gateway/gateway/policies/modules"
)

// decisionLog is the decision log of a gateway; nil if it has none.
type decisionLog struct {
	*decisions.Log
	config *config.DecisionLogs
	filter mask.Filter
	report *sinkReport
}

// newDecisionLog opens the decision log of the configuration; nil if it has none.
func newDecisionLog(c *config.DecisionLogs, instance string, files *credentials.Watcher, metrics *telemetry.Telemetry,
	tracer *tracing.Tracer, log *slog.Logger) (*decisionLog, error) {
	if c == nil {
		return nil, nil
	}
	d := &decisionLog{config: c, report: newSinkReport("decision log", "decisions", metrics, log)}
	dropped := func(sink string, events int, why decisions.Reason) {
		telemetry.DecisionsLost(metrics, sink, string(why), events)
		d.report.lost.Add(sink, events, d.report.causeOf(sink, string(why)))
	}
	o := decisions.Options{
		Labels: map[string]string{"id": instance, "version": version()}, NewID: telemetry.AppendRequestID,
		QueueBytes: int(c.QueueBytes), MaxEventBytes: int(c.MaxEventBytes), Backoff: auditBackoff,
		MaxBackoff: auditMaxBackoff,
		Dropped:    dropped, Failed: d.report.failed,
	}
	maps.Copy(o.Labels, c.Labels)
	if c.MaskBundle != "" {
		o.Filter = &d.filter
	}
	var sinks []audit.Waiting
	if l := c.Log; l != nil {
		file, err := fileSink(l)
		if err != nil {
			return nil, err
		}
		sinks = append(sinks, file)
	}
	if s := c.Service; s != nil {
		o.MaxBackoff = s.MaxDelaySeconds.Duration()
		to := decisions.Service{
			URL: s.URL, Partition: s.Partition, Timeout: s.TimeoutSeconds.Duration(),
			Limit:    int(s.UploadSizeLimitBytes),
			Patience: s.MaxDelaySeconds.Duration(), Dropped: dropped,
			Sent: func(ok bool) { telemetry.DecisionsSent(metrics, outcomeOf(ok)) },
		}
		var err error
		if to.Network, to.Token, err = reach(files, "the service of decision logs", s.TLS, s.TokenFile); err != nil {
			return nil, err
		}
		to.Network.Trace = spans(tracer, tracing.Propagate)
		sinks = append(sinks, audit.Waiting{Sink: to.Sink(), Wait: s.MinDelaySeconds.Duration(),
			MaxWait: s.MaxDelaySeconds.Duration()})
	}
	d.Log = decisions.New(o, sinks...)
	return d, nil
}

func outcomeOf(ok bool) string {
	if ok {
		return "Sent"
	}
	return "Failed"
}

// asked returns the log for the data plane; nil if there is none.
func (d *decisionLog) asked() *decisions.Log {
	if d == nil {
		return nil
	}
	return d.Log
}

// masks compiles the rules that say what is logged, if they are in the bundle; nil if they are not.
func (d *decisionLog) masks(bundle string, b modules.Bundle) (*mask.Rules, error) {
	if d == nil || d.config == nil || d.config.MaskBundle != bundle {
		return nil, nil
	}
	return mask.Compile(b.Bundle, b.Usable)
}

// setMasks brings rules into force; nil leaves it at the ones before.
func (d *decisionLog) setMasks(r *mask.Rules) {
	if r != nil {
		d.filter.Set(r)
	}
}

// close writes what waits, for a short time.
func (d *decisionLog) close() error {
	if d == nil {
		return nil
	}
	defer d.report.lost.Close()
	ctx, cancel := context.WithTimeout(context.Background(), auditFlush)
	defer cancel()
	return d.Close(ctx)
}
