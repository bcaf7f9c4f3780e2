package main

import "strings"

// runbooks is the page that has a section for each alert.
const runbooks = "https://github.com/admission-gateway/gateway/blob/main/docs/runbooks.md"

// An alert is raised if its expression has a value for so long.
type alert struct {
	name     string
	severity string // critical: page the operator; warning: look at it today
	during   string // how long it must hold; empty is at once
	expr     string
	summary  string
	detail   string
}

// A record is an expression that Prometheus keeps the values of, by the name that its convention has for it:
// the labels that are left, the metric, and what was done with it.
type record struct{ name, expr string }

// records are what alerts compare with the past, and what longer times are looked at by.
var records = []record{
	{"job:gateway_requests:rate5m", `sum by (job) (rate(gateway_requests_total[5m]))`},
	{"job_code:gateway_requests:rate5m", `sum by (job, code) (rate(gateway_requests_total[5m]))`},
	{"job:gateway_errors:ratio_rate5m", `(sum by (job) (rate(gateway_requests_total{code=~"5.."}[5m])) or 0 * sum by (job) (rate(gateway_requests_total[5m])))
  / sum by (job) (rate(gateway_requests_total[5m]))`},
	{"job:gateway_request_duration_seconds:p50_rate5m", `histogram_quantile(0.5, sum by (job, le) (rate(gateway_request_duration_seconds_bucket[5m])))`},
	{"job:gateway_request_duration_seconds:p99_rate5m", `histogram_quantile(0.99, sum by (job, le) (rate(gateway_request_duration_seconds_bucket[5m])))`},
	{"job_policy:gateway_admission_denials:rate5m", `sum by (job, policy) (rate(gateway_admission_denials_total[5m]))`},
	{"job_policy:gateway_rate_limited_requests:rate5m",
		`sum by (job, policy) (rate(gateway_rate_limited_requests_total[5m]))`},
}

// alerts are in the order of docs/runbooks.md. Their expressions keep the label job, so that each names the deployment
// of the gateway that it concerns, whatever its name is. increase() does not see the event by which a series appears:
// the gateway makes the counters of rare events at its start.
var alerts = []alert{{
	name: "GatewayAbsent", severity: "critical", during: "5m",
	expr:    `absent(gateway_build_info)`,
	summary: "No gateway reports metrics",
	detail:  "No gateway has been scraped for 5 minutes: none runs, or Prometheus does not reach its admin listener.",
}, {
	name: "GatewayInstanceDown", severity: "warning", during: "5m",
	expr:    `up == 0 and on (job) count by (job) (last_over_time(gateway_build_info[1h]))`,
	summary: "A gateway does not answer Prometheus",
	detail:  "{{ $labels.instance }} of {{ $labels.job }} has not been scraped for 5 minutes, while others were within the last hour.",
}, {
	name: "GatewayRestarts", severity: "warning",
	expr:    `changes(process_start_time_seconds[1h]) > 3 and on (job, instance) gateway_build_info`,
	summary: "A gateway restarts again and again",
	detail:  "{{ $labels.instance }} of {{ $labels.job }} started {{ $value }} times within an hour.",
}, {
	name: "GatewayErrors", severity: "critical", during: "5m",
	expr: `sum by (job) (rate(gateway_requests_total{code=~"5.."}[5m]))
  / sum by (job) (rate(gateway_requests_total[5m])) > 0.05`,
	summary: "Many requests are answered with server errors",
	detail:  "{{ $labels.job }} answers {{ $value | humanizePercentage }} of its requests with a code of 500 or more.",
}, {
	name: "GatewayErrorsSpike", severity: "warning", during: "5m",
	expr: `job:gateway_errors:ratio_rate5m > 0.01
  and job:gateway_errors:ratio_rate5m > 5 * avg_over_time(job:gateway_errors:ratio_rate5m[6h] offset 15m)
  and job:gateway_requests:rate5m > 1`,
	summary: "Far more requests than before are answered with server errors",
	detail:  "{{ $labels.job }} answers {{ $value | humanizePercentage }} of its requests with a code of 500 or more, at least 5 times what it was in the 6 hours before.",
}, {
	name: "GatewaySlow", severity: "warning", during: "10m",
	expr:    `job:gateway_request_duration_seconds:p99_rate5m > 2.5`,
	summary: "Requests take long",
	detail:  "One in a hundred requests of {{ $labels.job }} takes longer than {{ $value | humanizeDuration }}, watches aside.",
}, {
	name: "GatewayRequestsWait", severity: "warning", during: "10m",
	expr:    `min_over_time(gateway_requests_waiting[5m]) > 0`,
	summary: "Requests wait for their turn all the time",
	detail:  "{{ $value }} or more requests of {{ $labels.instance }} wait until a limit in flight lets them be served.",
}, {
	name: "GatewayMemory", severity: "warning", during: "10m",
	expr:    `process_resident_memory_bytes / go_gc_gomemlimit_bytes > 0.98 and on (job, instance) gateway_build_info`,
	summary: "A gateway has used up its memory",
	detail:  "{{ $labels.instance }} of {{ $labels.job }} uses {{ $value | humanizePercentage }} of its memory limit for Go.",
}, {
	name: "GatewayDescriptors", severity: "warning", during: "5m",
	expr:    `process_open_fds / process_max_fds > 0.85 and on (job, instance) gateway_build_info`,
	summary: "A gateway has almost no file descriptors left",
	detail:  "{{ $labels.instance }} of {{ $labels.job }} has {{ $value | humanizePercentage }} of the file descriptors open that it may open.",
}, {
	name: "GatewayUpstreamDown", severity: "critical", during: "1m",
	expr:    `sum by (job, upstream) (gateway_upstream_endpoints{status="Ready"}) == 0`,
	summary: "No server of a backend is used",
	detail:  "Every server of the upstream {{ $labels.upstream }} of {{ $labels.job }} is passed over.",
}, {
	name: "GatewayCircuitOpen", severity: "critical", during: "1m",
	expr:    `sum by (job, upstream) (gateway_upstream_circuit{state!="Closed"}) > 0`,
	summary: "The circuit breaker of a backend is open",
	detail:  "{{ $labels.job }} answers requests for the upstream {{ $labels.upstream }} with 503 without asking it.",
}, {
	name: "GatewayUpstreamEndpointsPassedOver", severity: "warning", during: "15m",
	expr:    `sum by (job, upstream) (gateway_upstream_endpoints{status!="Ready"}) > 0`,
	summary: "Servers of a backend are passed over",
	detail:  "{{ $value }} servers of the upstream {{ $labels.upstream }} fail, as {{ $labels.job }} sees them.",
}, {
	name: "GatewayUpstreamErrors", severity: "warning", during: "5m",
	expr:    `sum by (job, upstream, reason) (rate(gateway_upstream_errors_total[5m])) > 0.1`,
	summary: "A backend does not answer",
	detail:  "The upstream {{ $labels.upstream }} of {{ $labels.job }} fails {{ $value | humanize }} requests in a second: {{ $labels.reason }}.",
}, {
	name: "GatewayUpstreamConnectionsUsedUp", severity: "warning", during: "5m",
	expr:    `min_over_time(gateway_upstream_pending_requests[5m]) > 0`,
	summary: "All connections to a backend are in use",
	detail:  "{{ $value }} or more requests of {{ $labels.instance }} wait for a connection to the upstream {{ $labels.upstream }}.",
}, {
	name: "GatewayPoliciesRejected", severity: "warning", during: "5m",
	expr: `increase(gateway_policy_reload_failure_total[5m]) > 0
  or time() - gateway_policy_reload_last_success_timestamp_seconds > 600`,
	summary: "Policy files are not in force",
	detail:  "{{ $labels.instance }} of {{ $labels.job }} cannot read its policy files, or refuses them; the last good set is in force.",
}, {
	name: "GatewayPolicyFolderRefused", severity: "warning", during: "5m",
	expr:    `gateway_policy_folder_failing_since_timestamp_seconds > 0`,
	summary: "Policy files of an owner are not in force",
	detail:  "{{ $labels.instance }} of {{ $labels.job }} refuses the newest policy files of {{ $labels.owner }} in {{ $labels.folder }}.",
}, {
	name: "GatewayPolicyFolderHeld", severity: "critical", during: "1m",
	expr:    `gateway_policy_folder_info{hash=""} == 1`,
	summary: "Requests are refused because policy files of an owner have errors",
	detail:  "{{ $labels.instance }} of {{ $labels.job }} has no policy files of {{ $labels.owner }} in force, and refuses what {{ $labels.folder }} concerns with 503.",
}, {
	name: "GatewayPoliciesOverdue", severity: "warning",
	expr:    `gateway_policy_reload_overdue == 1`,
	summary: "Reading policy files takes too long",
	detail:  "{{ $labels.instance }} of {{ $labels.job }} has been reading its policy files for more than a minute.",
}, {
	name: "GatewayPoliciesDiffer", severity: "warning", during: "10m",
	expr:    `count by (job) (count by (job, hash) (gateway_policy_info)) > 1`,
	summary: "Replicas do not agree about policies",
	detail:  "The replicas of {{ $labels.job }} have {{ $value }} different sets of policies in force.",
}, {
	name: "GatewayDenialsSpike", severity: "warning", during: "5m",
	// A policy that never refused anything before has no past to be compared with.
	expr: `job_policy:gateway_admission_denials:rate5m > 0.1
  unless job_policy:gateway_admission_denials:rate5m < 5 * avg_over_time(job_policy:gateway_admission_denials:rate5m[6h] offset 15m)`,
	summary: "A policy refuses far more requests than before",
	detail:  "The policy {{ $labels.policy }} of {{ $labels.job }} refuses {{ $value | humanize }} requests in a second, at least 5 times what it was in the 6 hours before.",
}, {
	name: "GatewayStateStale", severity: "warning", during: "5m",
	expr:    `gateway_state_age_seconds > 300`,
	summary: "Policies judge by stored objects that are old",
	detail:  "{{ $labels.instance }} of {{ $labels.job }} last read {{ $labels.path }} {{ $value | humanizeDuration }} ago.",
}, {
	name: "GatewayBundleStale", severity: "warning", during: "5m",
	expr:    `gateway_bundle_age_seconds > 1800`,
	summary: "A bundle of policies is old",
	detail:  "{{ $labels.instance }} of {{ $labels.job }} last heard {{ $value | humanizeDuration }} ago that its version of the bundle {{ $labels.bundle }} is the newest.",
}, {
	name: "GatewayClusterStale", severity: "warning", during: "1m",
	// While the API server can be asked it is at most 45 seconds.
	expr:    `gateway_cluster_age_seconds > 120`,
	summary: "Routes and policies of the cluster are old",
	detail:  "{{ $labels.instance }} of {{ $labels.job }} last knew {{ $value | humanizeDuration }} ago that its objects of the kind {{ $labels.kind }} are those of the cluster.",
}, {
	name: "GatewayPolicyCannotJudge", severity: "warning",
	expr:    `sum by (job, policy) (increase(gateway_admission_ignored_failures_total[10m])) > 0`,
	summary: "A policy lets requests pass that it cannot judge",
	detail:  "The policy {{ $labels.policy }} of {{ $labels.job }} failed, and lets requests pass because its failurePolicy is Ignore.",
}, {
	name: "GatewayPolicyErrs", severity: "warning",
	expr:    `sum by (job, policy) (increase(gateway_admission_errors_total[10m])) > 0`,
	summary: "Requests are refused because a policy fails",
	detail:  "The policy {{ $labels.policy }} of {{ $labels.job }} failed, and refuses what it cannot judge because its failurePolicy is Fail.",
}, {
	name: "GatewayCredentialsRejected", severity: "warning",
	expr:    `increase(gateway_credentials_reload_failure_total[15m]) > 0`,
	summary: "A changed certificate, key or token cannot be used",
	detail:  "{{ $labels.instance }} of {{ $labels.job }} goes on with the former file; it fails when that expires.",
}, {
	name: "GatewayCertificateExpires", severity: "warning", during: "15m",
	expr:    `gateway_tls_certificate_expiry_timestamp_seconds - time() < 7 * 86400`,
	summary: "A certificate expires within a week",
	detail:  "{{ $labels.name }} of {{ $labels.instance }} of {{ $labels.job }} has a certificate that expires in {{ $value | humanizeDuration }}.",
}, {
	name: "GatewayCertificateExpiresNow", severity: "critical", during: "5m",
	expr:    `gateway_tls_certificate_expiry_timestamp_seconds - time() < 86400`,
	summary: "A certificate expires within a day, or has expired",
	detail:  "{{ $labels.name }} of {{ $labels.instance }} of {{ $labels.job }} has a certificate that expires in {{ $value | humanizeDuration }}.",
}, {
	name: "GatewaySharedLimitsUnavailable", severity: "warning", during: "5m",
	expr:    `gateway_shared_limit_unavailable_servers > 0`,
	summary: "Redis does not answer",
	detail:  "{{ $labels.instance }} of {{ $labels.job }} decides shared limits as whenStoreUnavailable says.",
}, {
	name: "GatewaySharedLimitsSlow", severity: "warning", during: "2m",
	// A server that answers too late now and then is available in between.
	expr: `sum by (job) (rate(gateway_shared_limit_decision_duration_seconds_count{outcome=~"Timeout|Open|Error"}[5m]))
  / sum by (job) (rate(gateway_shared_limit_decision_duration_seconds_count[5m])) > 0.01`,
	summary: "Redis often does not answer in time",
	detail:  "{{ $labels.job }} decides {{ $value | humanizePercentage }} of the requests with shared limits without Redis, as whenStoreUnavailable says.",
}, {
	name: "GatewayLogDropsLines", severity: "warning", during: "5m",
	expr:    `rate(gateway_log_dropped_lines_total[5m]) > 0`,
	summary: "Lines of the log are lost",
	detail:  "{{ $labels.instance }} of {{ $labels.job }} drops {{ $value | humanize }} lines in a second, because its log is read too slowly, or cannot be written.",
}, {
	name: "GatewayAuditLosesEvents", severity: "critical",
	expr:    `sum by (job, sink) (increase(gateway_audit_lost_events_total[10m])) > 0`,
	summary: "The audit log has gaps",
	detail:  "{{ $labels.job }} has lost events of the audit log that were for its {{ $labels.sink }}.",
}, {
	name: "GatewayDecisionLogLosesDecisions", severity: "warning",
	// The first loss makes the series, which increase() does not see.
	expr: `sum by (job, sink, reason) (increase(gateway_decision_log_lost_events_total[10m])) > 0
  or sum by (job, sink, reason) (gateway_decision_log_lost_events_total unless gateway_decision_log_lost_events_total offset 10m) > 0`,
	summary: "The decision log has gaps",
	detail:  "{{ $labels.job }} has lost decisions that were for its {{ $labels.sink }}: {{ $labels.reason }}.",
}, {
	name: "GatewayLogNotWritten", severity: "warning", during: "1m",
	expr:    `sum by (job, log, sink, cause) (increase(gateway_log_write_failures_total[5m])) > 0`,
	summary: "The log, the audit log or the decision log cannot be written",
	detail:  "{{ $labels.job }} cannot write its {{ $labels.log }} to its {{ $labels.sink }}: {{ $labels.cause }}.",
}, {
	name: "GatewayTelemetryLost", severity: "warning", during: "10m",
	expr: `sum by (job) (rate(gateway_tracing_lost_spans_total[5m])) > 0
  or sum by (job) (rate(gateway_metrics_push_failures_total[5m])) > 0`,
	summary: "Spans or metrics do not reach their collector",
	detail:  "{{ $labels.job }} loses spans, or cannot send metrics, because the collector of OTLP does not take them.",
}}

// prometheusRule is the object of Prometheus' operator.
type prometheusRule struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   metadata `yaml:"metadata"`
	Spec       groups   `yaml:"spec"`
}

type metadata struct {
	Name string `yaml:"name"`
}

// groups is a file of rules as Prometheus reads it.
type groups struct {
	Groups []group `yaml:"groups"`
}

type group struct {
	Name  string `yaml:"name"`
	Rules []rule `yaml:"rules"`
}

type rule struct {
	Record      string            `yaml:"record,omitempty"`
	Alert       string            `yaml:"alert,omitempty"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

// ruleGroups returns the records and the alerts as a file of rules has them.
func ruleGroups() groups {
	kept := group{Name: "gateway-records"}
	for _, r := range records {
		kept.Rules = append(kept.Rules, rule{Record: r.name, Expr: r.expr})
	}
	g := group{Name: "gateway"}
	for _, a := range alerts {
		g.Rules = append(g.Rules, rule{
			Alert: a.name, Expr: a.expr, For: a.during,
			Labels: map[string]string{"severity": a.severity},
			Annotations: map[string]string{
				"summary": a.summary, "description": a.detail,
				"runbook_url": runbooks + "#" + strings.ToLower(a.name),
			},
		})
	}
	return groups{[]group{kept, g}}
}
