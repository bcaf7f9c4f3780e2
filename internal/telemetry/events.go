package telemetry

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// maxNames bounds the policies, or pairs of upstream and reason, that get series of their own.
const maxNames = 1000

// events are the counters of what does not happen to every request.
type events struct {
	limited  named
	warned   named
	denied   named
	ignored  named
	audited  named
	upstream named
	refused  named
}

// RateLimited counts a request that the named RateLimitPolicy refused.
func (t *Telemetry) RateLimited(policy string) { t.events.limited.add(policy, "") }

// RateLimitWarned counts a request that the named RateLimitPolicy would have refused, were it enforced.
func (t *Telemetry) RateLimitWarned(policy string) { t.events.warned.add(policy, "") }

// AdmissionDenied counts a request that the named policy refused. A request that several policies refuse counts for each.
func (t *Telemetry) AdmissionDenied(policy string) { t.events.denied.add(policy, "") }

// PolicyIgnored counts a request that the named policy could not judge, and that was let pass as the policy asks for then.
func (t *Telemetry) PolicyIgnored(policy string) { t.events.ignored.add(policy, "") }

// AdmissionAudited counts a validation of the named policy that failed and is only noted.
func (t *Telemetry) AdmissionAudited(policy string) { t.events.audited.add(policy, "") }

// UpstreamError counts a request that the named upstream failed to answer. The reason is one CamelCase word of a small
// fixed set, such as Refused, Timeout or InvalidAnswer.
func (t *Telemetry) UpstreamError(upstream, reason string) { t.events.upstream.add(upstream, reason) }

// CredentialsRefused counts credentials that the named kind of authenticator took for invalid, or could not judge. Tokens
// that are remembered do not count again.
func (t *Telemetry) CredentialsRefused(authenticator string) { t.events.refused.add(authenticator, "") }

func (e *events) register(m metric.Meter) error {
	for _, one := range []struct {
		into              *named
		name, description string
		labels            [2]attribute.Key
	}{
		{&e.limited, "gateway_rate_limited_requests", "Requests refused with 429, by the policy that refused them.", [2]attribute.Key{"policy"}},
		{&e.warned, "gateway_rate_limit_warnings", "Requests beyond the limit of a policy that only warns, by policy.", [2]attribute.Key{"policy"}},
		{&e.denied, "gateway_admission_denials", "Requests that a policy refused, by policy.", [2]attribute.Key{"policy"}},
		{&e.ignored, "gateway_admission_ignored_failures", "Requests that a policy could not judge and let pass, by policy.", [2]attribute.Key{"policy"}},
		{&e.audited, "gateway_admission_audited_failures", "Validations that failed and were only noted, by policy.", [2]attribute.Key{"policy"}},
		{&e.refused, "gateway_credentials_refused", "Credentials that were not valid, or could not be judged, by kind of authenticator.", [2]attribute.Key{"authenticator"}},
		{&e.upstream, "gateway_upstream_errors", "Requests that an upstream failed to answer, by upstream and reason.", [2]attribute.Key{"upstream", "reason"}},
	} {
		counter, err := m.Int64Counter(one.name, metric.WithDescription(one.description))
		if err != nil {
			return err
		}
		one.into.counter, one.into.labels = counter, one.labels
	}
	return nil
}

// named is a counter with one or two labels whose attribute sets are made once.
type named struct {
	counter metric.Int64Counter
	labels  [2]attribute.Key
	known   intern[[2]string, []metric.AddOption]
}

func (n *named) add(a, b string) {
	options := n.known.get([2]string{a, b}, maxNames, n.options)
	if options == nil {
		_, options = n.options([2]string{other, other})
	}
	n.counter.Add(context.Background(), 1, *options...)
}

func (n *named) options(values [2]string) ([2]string, *[]metric.AddOption) {
	values[0], values[1] = strings.Clone(values[0]), strings.Clone(values[1])
	attributes := make([]attribute.KeyValue, 0, len(values))
	for i, label := range n.labels {
		if label != "" {
			attributes = append(attributes, label.String(values[i]))
		}
	}
	return values, &[]metric.AddOption{metric.WithAttributeSet(attribute.NewSet(attributes...))}
}
