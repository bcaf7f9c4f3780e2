package main

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/admission-gateway/gateway/internal/audit"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/outbound"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/telemetry/tracing"
)

// How long the audit log waits after a write that failed, and how often it tries while it may lose events.
const (
	auditBackoff    = time.Second
	auditMaxBackoff = 30 * time.Second
	auditAttempts   = 4
	// auditWait is how long events wait for others before they are written to the file.
	auditWait = 100 * time.Millisecond
	// auditFlush is how long a gateway that ends waits for its sinks.
	auditFlush = 5 * time.Second
)

// newAudit opens the audit log of the configuration; nil if it has none.
func newAudit(c *config.Audit, files *credentials.Watcher, metrics *telemetry.Telemetry, tracer *tracing.Tracer,
	log *slog.Logger) (*auditLog, error) {
	if c == nil {
		return nil, nil
	}
	o := audit.Options{
		QueueBytes: int(c.QueueBytes), Backoff: auditBackoff, MaxBackoff: auditMaxBackoff, Attempts: auditAttempts,
	}
	report := newSinkReport("audit log", "audit", metrics, log)
	o.Failed = report.failed
	o.Dropped = func(sink string, events int, why error) {
		metrics.AuditLost(sink, events)
		report.lost.Add(sink, events, why)
	}
	if c.Mode == config.AuditBlocking {
		o.Mode = audit.Blocking
	}
	var sinks []audit.Waiting
	if c.Log != nil {
		file, err := fileSink(c.Log)
		if err != nil {
			return nil, err
		}
		sinks = append(sinks, file)
	}
	if c.Webhook != nil {
		hook, err := webhookSink(c.Webhook, files, tracer)
		if err != nil {
			return nil, err
		}
		sinks = append(sinks, hook)
	}
	return &auditLog{&audit.Auditor{Log: audit.New(o, sinks...), MaxEvent: int(c.MaxEventBytes)}, report}, nil
}

// An auditLog is the audit log of a gateway.
type auditLog struct {
	*audit.Auditor
	report *sinkReport
}

// asked returns the log for the data plane; nil if there is none.
func (a *auditLog) asked() *audit.Auditor {
	if a == nil {
		return nil
	}
	return a.Auditor
}

// auditNames are the names of the sinks that the configuration has.
func auditNames(c *config.Audit) (names []string) {
	if c != nil && c.Log != nil {
		names = append(names, "log")
	}
	if c != nil && c.Webhook != nil {
		names = append(names, "webhook")
	}
	return names
}

// fileSink opens a file that events are written to.
func fileSink(l *config.AuditLog) (audit.Waiting, error) {
	file, err := audit.OpenFile(audit.FileOptions{
		Path: l.Path, MaxSize: int(l.MaxSizeMegabytes) << 20, MaxBackups: int(l.MaxBackups), MaxAge: int(l.MaxAgeDays),
		Compress: l.Compress,
	})
	return audit.Waiting{Sink: file, Wait: auditWait}, err
}

// webhookSink makes the webhook that a kubeconfig names, as for kube-apiserver.
func webhookSink(w *config.AuditWebhook, files *credentials.Watcher, tracer *tracing.Tracer) (audit.Waiting, error) {
	at, err := clientcmd.BuildConfigFromFlags("", w.Kubeconfig)
	if err != nil {
		return audit.Waiting{}, err
	}
	account, err := credentials.WatchServiceAccount(files, "the webhook of the audit log", at)
	if err != nil {
		return audit.Waiting{}, err
	}
	return audit.Waiting{Wait: w.MaxWaitSeconds.Duration(), Sink: audit.NewWebhook(audit.WebhookOptions{
		URL: at.Host, Account: account, MaxEvents: int(w.MaxEvents), Timeout: w.TimeoutSeconds.Duration(),
		Network: outbound.Options{TLS: account.OwnTLS, Proxy: at.Proxy, Trace: spans(tracer, tracing.Propagate)},
	})}, nil
}

// closeAudit writes what waits, for a short time.
func closeAudit(a *auditLog) error {
	if a == nil {
		return nil
	}
	defer a.report.lost.Close()
	ctx, cancel := context.WithTimeout(context.Background(), auditFlush)
	defer cancel()
	return a.Log.Close(ctx)
}
