package telemetry

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sys/unix"
)

// maxNames bounds the sets of labels of a counter that get series of their own, such as pairs of upstream and reason.
// Later ones are counted under other.
const maxNames = 1000

// events are the counters of what does not happen to every request.
type events struct {
	limited  named
	limits   named
	verdicts named
	costs    named
	schema   named
	warned   named
	denied   named
	ignored  named
	erred    named
	relaxed  named
	audited  named
	upstream named
	refused  named
	lost     named
	bundles  named
	answers  named
	departed named
	recorded named
	mirrored named
	unlogged named
	uploads  named
	tried    named
	excepted named
	unfilled named
	contract named
	sinks    named
	held     named
}

// PolicyDecided counts the decision of a policy on a request, and the units of cost that its
// expressions took.
func (t *Telemetry) PolicyDecided(policy, verdict string, cost int64) {
	if !isMeasured {
		return
	}
	t.events.verdicts.add(policy, verdict)
	if cost > 0 {
		t.events.costs.addSome(policy, "", cost)
	}
}

// SchemaRefused counts something that is wrong with an object by its schema. The cause is one of the CamelCase words of
// causes in a Status.
func (t *Telemetry) SchemaRefused(resource, cause string) {
	t.events.schema.add(resource, knownCause(cause))
}

// knownCause maps rare causes to other, so that a resource has few series.
func knownCause(cause string) string {
	switch cause {
	case "FieldValueInvalid", "FieldValueRequired", "FieldValueNotSupported", "FieldValueTypeInvalid",
		"FieldValueDuplicate", "FieldValueForbidden", "FieldValueTooLong":
		return cause
	}
	return other
}

// AnswerChecked counts an answer of a backend that was checked against its document. The result is
// Valid, Invalid or Unchecked.
func AnswerChecked(t *Telemetry, resource, result string) { t.events.answers.add(resource, result) }

// AnswerDeparted counts an answer that is not what its document declares, in something of a kind.
func AnswerDeparted(t *Telemetry, resource, kind string) { t.events.departed.add(resource, kind) }

// LimitDecided counts a decision of a rate limit: Admit, Refuse or Warn.
func (t *Telemetry) LimitDecided(policy, decision string) { t.events.limits.add(policy, decision) }

// RateLimited counts a request that the named RateLimitPolicy refused.
func (t *Telemetry) RateLimited(policy string) { t.events.limited.add(policy, "") }

// RateLimitWarned counts a request that the named RateLimitPolicy would have refused, were it enforced.
func (t *Telemetry) RateLimitWarned(policy string) { t.events.warned.add(policy, "") }

// PolicyErred counts a request for which the named policy failed, and that is refused, or will be once the policy is
// enforced.
func (t *Telemetry) PolicyErred(policy string) { t.events.erred.add(policy, "") }

// AdmissionDenied counts a request about a resource that the named policy refused, by the reason of the Status. A
// request that several policies refuse counts for each.
func (t *Telemetry) AdmissionDenied(policy, resource, reason string) {
	t.events.denied.addAll(policy, resource, reason, 1)
}

// PolicyIgnored counts a request that the named policy could not judge, and that was let pass as the policy asks for
// then.
func (t *Telemetry) PolicyIgnored(policy string) { t.events.ignored.add(policy, "") }

// PolicyRelaxed counts a request for which an error in the named policy counted as an undefined value, as the policy
// asks for.
func (t *Telemetry) PolicyRelaxed(policy string) { t.events.relaxed.add(policy, "") }

// AdmissionAudited counts a validation of the named policy that failed and is only noted.
func (t *Telemetry) AdmissionAudited(policy string) { t.events.audited.add(policy, "") }

// WouldDeny counts a request that the named policy would have refused, were it enforced.
func WouldDeny(t *Telemetry, policy string) { t.events.tried.add(policy, "") }

// ContractTried counts a request of an operation whose description is only tried. The result is Admitted, Unjudged, or
// the reason for which it would have been refused.
func ContractTried(t *Telemetry, document, operation, result string) {
	t.events.contract.addAll(document, operation, result, 1)
}

// Excepted counts a request about which the named policy was not asked because of an exception.
func Excepted(t *Telemetry, policy, exception string) { t.events.excepted.add(policy, exception) }

// ErrorTemplateFailed counts a refusal that the named ErrorTemplate failed to write.
func (t *Telemetry) ErrorTemplateFailed(template string) { t.events.unfilled.add(template, "") }

// UpstreamError counts a request that the named upstream failed to answer. The reason is one CamelCase word of a small
// fixed set, such as Refused, Timeout or InvalidAnswer.
func (t *Telemetry) UpstreamError(upstream, reason string) { t.events.upstream.add(upstream, reason) }

// CredentialsRefused counts credentials that the named kind of authenticator took for invalid, or could not judge.
// Tokens that are remembered do not count again.
func (t *Telemetry) CredentialsRefused(authenticator string) { t.events.refused.add(authenticator, "") }

// BundleFailed counts that a version of a bundle failed, by stage.
func (t *Telemetry) BundleFailed(bundle, stage string) { t.events.bundles.add(bundle, stage) }

// AuditLost counts events of the audit log that the named sink will never have.
func (t *Telemetry) AuditLost(sink string, events int) {
	t.events.lost.addSome(sink, "", int64(events))
}

// SinkFailed counts a write to a sink of the named log that failed, by the system's own name of the error.
func SinkFailed(t *Telemetry, log, sink string, why error) {
	t.events.sinks.addAll(log, sink, causeOf(why), 1)
}

// causeOf returns one of a small set of names of an error.
func causeOf(why error) string {
	var number syscall.Errno
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(why, &number):
		if name := unix.ErrnoName(number); name != "" {
			return name
		}
	case errors.As(why, &timeout) && timeout.Timeout():
		return "Timeout"
	}
	return "Other"
}

// DecisionsLost counts decisions that a sink of the decision log will never have, by reason.
func DecisionsLost(t *Telemetry, sink, reason string, some int) {
	t.events.unlogged.addSome(sink, reason, int64(some))
}

// DecisionsSent counts a body of decisions that a service was sent: Sent or Failed.
func DecisionsSent(t *Telemetry, outcome string) { t.events.uploads.add(outcome, "") }

// RequestMirrored counts a copy of a request for a mirror: Sent, Failed or Dropped.
func (t *Telemetry) RequestMirrored(upstream, outcome string) {
	t.events.mirrored.add(upstream, outcome)
}

// EventRecorded counts an Event of Kubernetes: Sent, Failed or Dropped.
func (t *Telemetry) EventRecorded(upstream, outcome string) {
	t.events.recorded.add(upstream, outcome)
}

// Expect makes the counters of rare failures: of events that the sinks of the audit log lose, and of requests that
// policies cannot judge and let pass. An alert on the growth of a counter does not see the event by which the counter
// appears.
func (t *Telemetry) Expect(sinks, policies []string) {
	t.events.lost.expect(sinks)
	t.events.ignored.expect(policies)
	t.events.erred.expect(policies)
}

// A Tally is how often something happened. What depends on the counter, such as a verdict.
type Tally struct {
	Name, What string
	Count      int64
}

// FolderRefused counts a request that was refused because a folder of policy files could have policies for it, and has
// errors.
func (t *Telemetry) FolderRefused(folder, owner string) { t.events.held.add(folder, owner) }

// Totals has the present values of counters. Each list is in the order of its names.
type Totals struct {
	Verdicts   []Tally // the decisions of policies
	Limits     []Tally // what rate limits decided
	LostEvents []Tally // of the audit log, by sink
	// LostDecisions are of the decision log, by sink and reason.
	LostDecisions []Tally
	InFlight      int64 // requests that are served now
}

// Totals returns what has been counted since the start.
func (t *Telemetry) Totals() Totals {
	e := &t.events
	return Totals{
		Verdicts: e.verdicts.tallies(), Limits: e.limits.tallies(), LostEvents: e.lost.tallies(),
		LostDecisions: e.unlogged.tallies(),
		InFlight:      t.gauges.inFlight.Load(),
	}
}

func (e *events) register(m metric.Meter) error {
	for _, one := range []struct {
		into              *named
		name, description string
		labels            [3]attribute.Key
	}{
		{&e.limited, "gateway_rate_limited_requests", "Requests refused with 429, by the policy that refused them.",
			[3]attribute.Key{"policy"}},
		{&e.warned, "gateway_rate_limit_warnings", "Requests beyond the limit of a policy that only warns, by policy.",
			[3]attribute.Key{"policy"}},
		{&e.limits, "gateway_rate_limit_decisions", "Decisions of rate limits, by policy: Admit, Refuse, or Warn beyond a limit that is not enforced.", [3]attribute.Key{"policy", "decision"}},
		{&e.denied, "gateway_admission_denials", "Requests that a policy refused, by policy, resource and the reason of the Status.", [3]attribute.Key{"policy", "resource", "reason"}},
		{&e.ignored, "gateway_admission_ignored_failures",
			"Requests that a policy could not judge and let pass, by policy.", [3]attribute.Key{"policy"}},
		{&e.erred, "gateway_admission_errors", "Requests that were refused because a policy failed, by policy.",
			[3]attribute.Key{"policy"}},
		{&e.relaxed, "gateway_admission_relaxed_errors", "Requests for which an error in a policy counted as an undefined value, by policy.", [3]attribute.Key{"policy"}},
		{&e.audited, "gateway_admission_audited_failures", "Validations that failed and were only noted, by policy.",
			[3]attribute.Key{"policy"}},
		{&e.tried, "gateway_admission_would_deny",
			"Requests that a policy would have refused, were its rollout over, by policy.", [3]attribute.Key{"policy"}},
		{&e.excepted, "gateway_admission_exceptions",
			"Requests about which a policy was not asked, by policy and exception.",
			[3]attribute.Key{"policy", "exception"}},
		{&e.verdicts, "gateway_policy_verdicts",
			"Verdicts of policies on the requests that they match, by policy and verdict.",
			[3]attribute.Key{"policy", "verdict"}},
		{&e.costs, "gateway_policy_cost_units", "Units of cost that the expressions of policies took.",
			[3]attribute.Key{"policy"}},
		{&e.refused, "gateway_credentials_refused", "Credentials that were not valid, or could not be judged, by kind of authenticator.", [3]attribute.Key{"authenticator"}},
		{&e.bundles, "gateway_bundle_failures", "Failures to get, verify, activate or keep a version of a bundle, by bundle and stage.", [3]attribute.Key{"bundle", "stage"}},
		{&e.schema, "gateway_schema_refusals", "What was wrong with objects by their schema, by resource and the kind of cause.", [3]attribute.Key{"resource", "cause"}},
		{&e.unfilled, "gateway_error_template_failures", "Refusals that an ErrorTemplate failed to write, so that clients got a Status, by template.", [3]attribute.Key{"template"}},
		{&e.contract, "gateway_contract_trials", "Requests of operations whose description is only tried, by result: Admitted, Unjudged, or the reason for which they would have been refused.", [3]attribute.Key{"document", "operation", "result"}},
		{&e.lost, "gateway_audit_lost_events", "Events that the audit log has lost, by sink.",
			[3]attribute.Key{"sink"}},
		{&e.sinks, "gateway_log_write_failures", "Writes of the log, the audit log or the decision log that failed, by log, sink and the system's name of the error.", [3]attribute.Key{"log", "sink", "cause"}},
		{&e.answers, "gateway_response_checks", "Answers compared with an OpenAPI document, by resource and result: Valid, Invalid, or Unchecked if the body could not be read.", [3]attribute.Key{"resource", "result"}},
		{&e.departed, "gateway_response_violations", "Answers that are not what an OpenAPI document declares, by resource and kind: Code, MediaType, Header, Body or WriteOnly.", [3]attribute.Key{"resource", "kind"}},
		{&e.recorded, "gateway_kubernetes_events", "Events of Kubernetes about refusals and faults, by upstream: Sent, Failed, or Dropped because there were too many.", [3]attribute.Key{"upstream", "outcome"}},
		{&e.mirrored, "gateway_mirrored_requests", "Copies of requests for mirrors, by upstream: Sent, Failed, or Dropped because the body is not in memory or there were too many.", [3]attribute.Key{"upstream", "outcome"}},
		{&e.unlogged, "gateway_decision_log_lost_events",
			"Decisions that a sink of the decision log will never have, by sink and reason.",
			[3]attribute.Key{"sink", "reason"}},
		{&e.uploads, "gateway_decision_log_uploads", "Bodies of decisions that the service was sent: Sent if it took them, or Failed.", [3]attribute.Key{"outcome"}},
		{&e.held, "gateway_policy_folder_refused_requests", "Requests refused because the policy files that an owner has for them have errors and never came into force, by folder and owner.", [3]attribute.Key{"folder", "owner"}},
		{&e.upstream, "gateway_upstream_errors", "Requests that an upstream failed to answer, by upstream and reason.",
			[3]attribute.Key{"upstream", "reason"}},
	} {
		one.into.labels = one.labels
		if _, err := m.Int64ObservableCounter(one.name, metric.WithDescription(one.description),
			metric.WithInt64Callback(one.into.observe)); err != nil {
			return err
		}
	}
	return nil
}

// named is a counter with up to three labels. To count costs no more than to look the labels up.
type named struct {
	labels [3]attribute.Key
	known  intern[[3]string, atomic.Int64]
}

func (n *named) add(a, b string) { n.addSome(a, b, 1) }

func (n *named) addSome(a, b string, some int64) { n.addAll(a, b, "", some) }

// expect makes the counters of names. Those for which there is no room count as others.
func (n *named) expect(names []string) {
	keys := make([][3]string, len(names))
	for i, name := range names {
		keys[i][0] = name
	}
	n.known.expect(keys, maxNames, newNamed)
	for _, name := range names {
		n.addSome(name, "", 0)
	}
}

func (n *named) addAll(a, b, c string, some int64) { n.counter(a, b, c).Add(some) }

// counter returns the counter of some labels.
func (n *named) counter(a, b, c string) *atomic.Int64 {
	count := n.known.get([3]string{a, b, c}, maxNames, newNamed)
	if count == nil && c != "" {
		count = n.known.get([3]string{a, other, other}, 2*maxNames, newNamed)
	}
	if count == nil {
		count = n.known.get([3]string{other, other, other}, math.MaxInt, newNamed)
	}
	return count
}

func newNamed(values [3]string) ([3]string, *atomic.Int64) {
	return [3]string{strings.Clone(values[0]), strings.Clone(values[1]), strings.Clone(values[2])}, new(atomic.Int64)
}

// tallies returns the counts, in the order of their labels.
func (n *named) tallies() []Tally {
	all := []Tally{}
	for values, count := range n.known.all() {
		all = append(all, Tally{values[0], values[1], count.Load()})
	}
	slices.SortFunc(all,
		func(a, b Tally) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.What, b.What)) })
	return all
}

func (n *named) observe(_ context.Context, o metric.Int64Observer) error {
	for values, count := range n.known.all() {
		attributes := make([]attribute.KeyValue, 0, len(values))
		for i, label := range n.labels {
			if label != "" {
				attributes = append(attributes, label.String(values[i]))
			}
		}
		o.Observe(count.Load(), metric.WithAttributeSet(attribute.NewSet(attributes...)))
	}
	return nil
}
