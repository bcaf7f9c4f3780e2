package proxy

import (
	"context"
	"log/slog"
	"time"

	"github.com/admission-gateway/gateway/internal/status"
)

// audit records what policies found: failures that are ignored, denials, failures that bindings only want noted, and the
// annotations that policies make of the request. Values of other objects are among them only where the author of a policy
// wrote them into an annotation (ERR-7).
func (x *exchange) audit() {
	for _, f := range x.report.IgnoredFailures() {
		if times, tell := x.gateway.ignored.due(f.Policy, time.Now()); tell {
			x.gateway.log.Warn("a policy failed and is set to be ignored then", "policy", f.Policy, "cause", f.Err, "times", times)
		}
		x.gateway.metrics.PolicyIgnored(f.Policy)
	}
	for _, d := range x.report.Denials() {
		x.gateway.metrics.AdmissionDenied(d.Policy)
	}
	for _, f := range x.report.AuditedFailures() {
		x.gateway.metrics.AdmissionAudited(f.Policy)
	}
	annotations := x.report.Annotations()
	if len(annotations) == 0 {
		return
	}
	noted := make([]slog.Attr, 0, len(annotations)+5)
	noted = append(noted, slog.String("verb", x.info.Verb), slog.String("resource", x.info.GroupResource().String()),
		slog.String("namespace", x.info.Namespace), slog.String("name", x.attributes.Name()), slog.String("user", x.user.Name))
	for _, a := range annotations {
		noted = append(noted, slog.String(a.Key, a.Value))
	}
	x.gateway.log.LogAttrs(context.Background(), slog.LevelInfo, "audit annotations", noted...)
}

// undecided is the answer to a request whose time was over before its policies could decide; nil for any other.
func (x *exchange) undecided() error {
	if by := x.deadline(); by.IsZero() || time.Now().Before(by) {
		return nil
	}
	for _, d := range x.report.Denials() {
		if d.Failed {
			return status.Timeout("the request was over before its policies had decided", 1)
		}
	}
	return nil
}
