package main

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/admission-gateway/gateway/internal/admin"
	"github.com/admission-gateway/gateway/internal/audit"
	"github.com/admission-gateway/gateway/internal/telemetry"
)

// A sinkReport says what becomes of the events of the audit log, or of the decision log.
type sinkReport struct {
	name    string // as messages have it: 'audit log'
	metric  string // as metrics have it
	metrics *telemetry.Telemetry
	log     *slog.Logger
	lost    *telemetry.BurstReporter
	often   telemetry.Sampler

	mu       sync.Mutex
	failures map[string]sinkFailure // the last one of each sink
}

// A sinkFailure is why a write failed, and when.
type sinkFailure struct {
	why error
	at  time.Time
}

// recentFailure is how long ago a write may have failed that caused a loss.
const recentFailure = time.Minute

// A lossCause names the failure of a sink beside what a loss is due to. It is an error so that each format of the log
// has its text.
type lossCause struct {
	reason  string
	failure error
}

func (c lossCause) Error() string { return c.reason + ": " + c.failure.Error() }

// causeOf returns the cause of a loss with the failure of the sink, if a write has just failed.
func (r *sinkReport) causeOf(sink, reason string) any {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.failures[sink]; last.why != nil && time.Since(last.at) < recentFailure {
		return lossCause{reason, last.why}
	}
	return reason
}

func newSinkReport(name, metric string, metrics *telemetry.Telemetry, log *slog.Logger) *sinkReport {
	return &sinkReport{
		name: name, metric: metric, metrics: metrics, log: log, failures: map[string]sinkFailure{},
		lost: telemetry.NewBurstReporter(func(sink string, events int, why any) {
			log.Error("events of the "+name+" are lost", "sink", sink, "cause", why, "events", events)
		}),
	}
}

// failed notes a write that failed, and says so now and then.
func (r *sinkReport) failed(sink string, why error) {
	telemetry.SinkFailed(r.metrics, r.metric, sink, why)
	r.mu.Lock()
	r.failures[sink] = sinkFailure{why, time.Now()}
	r.mu.Unlock()
	if times, tell := r.often.Allow(sink, time.Now()); tell {
		r.log.Error("the "+r.name+" cannot be written", "sink", sink, "cause", why, "times", times)
	}
}

// logSink is what checks and metrics call the log's sink.
const logSink = "stderr"

// logHealth is the check of the log, without which requests are served.
func (n *node) logHealth() error {
	return healthOf([]audit.State{{Sink: logSink, Failure: n.logs.Failure()}}, false)
}

// logFailed notes a write of the log that failed. The log says so itself once it can be written.
func (n *node) logFailed(why error) { telemetry.SinkFailed(n.metrics, "log", logSink, why) }

// auditHealth is the check of the audit log: it fails if requests are refused because a sink does not work.
func (n *node) auditHealth() error {
	if !n.listening.Load() || n.records.audit == nil {
		return nil
	}
	return healthOf(n.records.audit.Log.States(), n.records.audit.Log.Refuses())
}

// decisionsHealth is the check of the decision log, without which requests are served.
func (n *node) decisionsHealth() error {
	if !n.listening.Load() || n.records.decisions == nil {
		return nil
	}
	return healthOf(n.records.decisions.States(), false)
}

// healthOf returns what is wrong with sinks.
func healthOf(states []audit.State, isRefused bool) error {
	var all []error
	for _, s := range states {
		if s.Failure != nil {
			all = append(all, fmt.Errorf("%s: %w", s.Sink, s.Failure))
		}
	}
	err := errors.Join(all...)
	if err == nil || isRefused {
		return err
	}
	return admin.Warning{Err: err}
}

// reopenLogs has the files of the audit log and the decision log opened again.
func (n *node) reopenLogs() {
	if n.records.audit != nil {
		n.records.audit.Log.Reopen()
	}
	if n.records.decisions != nil {
		n.records.decisions.Reopen()
	}
}
