package main

import "strings"

// rows are the dashboard from the top down. SELECTED is the choice of the reader, RATE the width of rates that Grafana finds
// best for the time that is shown.
var rows = []row{
	{title: "Overview", height: 4, width: 4, graphs: []graph{
		number("Gateways", "Instances that report metrics.", "short", `count(gateway_build_info{SELECTED})`),
		number("Requests", "Requests answered in a second.", "reqps", `sum(rate(gateway_requests_total{SELECTED}[RATE]))`),
		number("Server errors", "Share of requests answered with a code of 500 or more.", "percentunit",
			`sum(rate(gateway_requests_total{SELECTED,code=~"5.."}[RATE])) / sum(rate(gateway_requests_total{SELECTED}[RATE]))`),
		number("99 of 100 requests take at most", "Watches and upgraded connections aside.", "s",
			`histogram_quantile(0.99, sum by (le) (rate(gateway_request_duration_seconds_bucket{SELECTED,`+answered+`}[RATE])))`),
		number("Sets of policies in force", "More than 1 while replicas have not all read a change.", "short",
			`count(count by (hash) (gateway_policy_info{SELECTED}))`),
		number("Version", "", "short", `count by (version) (gateway_build_info{SELECTED})`).named("{{version}}"),
	}},
	{title: "Requests", height: 8, width: 8, graphs: []graph{
		rate("By code", "Code 0 is a client that left before its answer, 101 a connection that went on in another protocol.", "reqps",
			"gateway_requests_total", "code").stacked(),
		rate("By verb", "", "reqps", "gateway_requests_total", "verb").stacked(),
		rate("By resource", "Requests that no policy file describes count as other.", "reqps",
			"gateway_requests_total", "resource", "group").stacked(),
		{title: "Duration", about: "From a request's first byte to its answer's last. Watches and upgraded connections are left out.", unit: "s",
			queries: []query{quantile("0.5", ""), quantile("0.9", ""), quantile("0.99", "")}},
		{title: "Duration of 99 of 100, by verb", unit: "s", queries: []query{quantile("0.99", "verb")}},
		{title: "In flight", about: "Requests that are served now, that wait for their turn, and connections that went on in another protocol.", unit: "short",
			queries: []query{
				{`sum(gateway_requests_in_flight{SELECTED})`, "served"},
				{`sum(gateway_requests_waiting{SELECTED})`, "waiting"},
				{`sum(gateway_upgraded_connections{SELECTED})`, "upgraded"},
			}},
	}},
	{title: "Refusals", height: 8, width: 8, graphs: []graph{
		{title: "Refused by code", about: "A schema or a policy refuses with 422, a limit with 429.", unit: "reqps", isStacked: true,
			queries: []query{{`sum by (code) (rate(gateway_requests_total{SELECTED,code=~"4.."}[RATE]))`, "{{code}}"}}},
		{title: "Refused by resource and verb", unit: "reqps", isStacked: true,
			queries: []query{{`sum by (resource, verb) (rate(gateway_requests_total{SELECTED,code=~"4.."}[RATE]))`, "{{verb}} {{resource}}"}}},
		{title: "Share that is refused", unit: "percentunit", queries: []query{{
			`sum(rate(gateway_requests_total{SELECTED,code=~"4.."}[RATE])) / sum(rate(gateway_requests_total{SELECTED}[RATE]))`, "refused"}}},
	}},
	{title: "Policies", height: 8, width: 8, graphs: []graph{
		rate("Denials by policy", "", "reqps", "gateway_admission_denials_total", "policy"),
		rate("Failures that were let pass, by policy", "The policy could not judge a request, and its failurePolicy is Ignore.", "reqps",
			"gateway_admission_ignored_failures_total", "policy"),
		rate("Failures that were noted, by policy", "The binding's action is Audit.", "reqps", "gateway_admission_audited_failures_total", "policy"),
		rate("429 by limit", "", "reqps", "gateway_rate_limited_requests_total", "policy"),
		rate("Beyond a limit that only warns, by limit", "", "reqps", "gateway_rate_limit_warnings_total", "policy"),
		rate("Refused credentials by authenticator", "", "reqps", "gateway_credentials_refused_total", "authenticator"),
		{title: "Readings of policy files", unit: "ops", queries: []query{
			{`sum(rate(gateway_policy_reload_success_total{SELECTED}[RATE]))`, "in force"},
			{`sum(rate(gateway_policy_reload_failure_total{SELECTED}[RATE]))`, "refused"},
		}},
		{title: "Since the last good reading", about: "Grows beyond a minute while files are refused or cannot be read.", unit: "s",
			queries: []query{{`time() - gateway_policy_reload_last_success_timestamp_seconds{SELECTED}`, "{{instance}}"}}},
		{title: "Owners whose newest files are refused", about: "1 for each folder of policy files with errors.", unit: "short",
			queries: []query{{`max by (folder, owner) (gateway_policy_folder_failing_since_timestamp_seconds{SELECTED} > bool 0)`, "{{owner}} {{folder}}"}}},
		rate("Refused for policy files with errors, by owner", "Requests that an owner's files may concern, none of which were ever in force.", "reqps", "gateway_policy_folder_refused_requests_total", "owner"),
		{title: "Readings that take too long", about: "1 while a reading takes more than a minute.", unit: "short",
			queries: []query{{`gateway_policy_reload_overdue{SELECTED}`, "{{instance}}"}}},
	}},
	{title: "Backends", height: 8, width: 8, graphs: []graph{
		rate("Failures by reason", "Requests that a backend failed to answer.", "reqps", "gateway_upstream_errors_total", "upstream", "reason"),
		gauges("Servers by status", "Servers that are Ejected or Unhealthy are passed over.", "gateway_upstream_endpoints", "upstream", "status"),
		gauges("Circuit breakers", "1 for the state that each one is in.", "gateway_upstream_circuit", "upstream", "state"),
		gauges("Connections", "", "gateway_upstream_connections", "upstream", "state"),
		gauges("Requests that wait for a connection", "", "gateway_upstream_pending_requests", "upstream"),
		{title: "Retries and ejections", about: "Requests sent once more, and servers passed over because they failed.", unit: "ops", queries: []query{
			{`sum by (upstream) (rate(gateway_upstream_retries_total{SELECTED}[RATE]))`, "{{upstream}} retries"},
			{`sum by (upstream) (rate(gateway_upstream_ejections_total{SELECTED}[RATE]))`, "{{upstream}} ejections"},
		}},
	}},
	{title: "Redis, TLS and credentials", height: 8, width: 8, graphs: []graph{
		rate("Shared decisions by outcome", "", "ops", "gateway_shared_limit_decision_duration_seconds_count", "outcome"),
		{title: "Duration of shared decisions", unit: "s", queries: []query{{
			`histogram_quantile(0.99, sum by (le) (rate(gateway_shared_limit_decision_duration_seconds_bucket{SELECTED}[RATE])))`, "99 of 100"}}},
		{title: "Servers of Redis that do not answer", unit: "short",
			queries: []query{{`gateway_shared_limit_unavailable_servers{SELECTED}`, "{{instance}}"}}},
		{title: "TLS handshakes that failed", unit: "ops",
			queries: []query{{`sum by (instance) (rate(gateway_tls_handshake_failures_total{SELECTED}[RATE]))`, "{{instance}}"}}},
		{title: "Changed certificates, keys and tokens", unit: "ops", queries: []query{
			{`sum(rate(gateway_credentials_reload_success_total{SELECTED}[RATE]))`, "in use"},
			{`sum(rate(gateway_credentials_reload_failure_total{SELECTED}[RATE]))`, "refused"},
		}},
	}},
	{title: "Process", height: 8, width: 8, graphs: []graph{
		{title: "Memory", about: "Resident memory beside the limit that Go's collector keeps to.", unit: "bytes", queries: []query{
			{`process_resident_memory_bytes{SELECTED} and on (job, instance) gateway_build_info`, "{{instance}} resident"},
			{`go_memstats_heap_inuse_bytes{SELECTED} and on (job, instance) gateway_build_info`, "{{instance}} heap"},
			{`go_gc_gomemlimit_bytes{SELECTED} < 1e15 and on (job, instance) gateway_build_info`, "{{instance}} limit"},
		}},
		{title: "Memory of requests", about: "Bounded by limits.bodiesInFlightBytes.", unit: "bytes",
			queries: []query{{`gateway_request_bodies_in_flight_bytes{SELECTED}`, "{{instance}}"}}},
		{title: "Processors", unit: "short",
			queries: []query{{`rate(process_cpu_seconds_total{SELECTED}[RATE]) and on (job, instance) gateway_build_info`, "{{instance}}"}}},
		{title: "Goroutines", unit: "short",
			queries: []query{{`go_goroutines{SELECTED} and on (job, instance) gateway_build_info`, "{{instance}}"}}},
		{title: "Dropped lines of the log", about: "Lines that were dropped because the log is read too slowly.", unit: "ops",
			queries: []query{{`sum by (instance) (rate(gateway_log_dropped_lines_total{SELECTED}[RATE]))`, "{{instance}}"}}},
		rate("Lost audit events", "Events that the log's file or its webhook will never have.", "ops", "gateway_audit_lost_events_total", "sink"),
		{title: "Open files", unit: "short",
			queries: []query{{`process_open_fds{SELECTED} and on (job, instance) gateway_build_info`, "{{instance}}"}}},
		{title: "Pauses of the collector", about: "The longest of each time.", unit: "s",
			queries: []query{{`go_gc_duration_seconds{SELECTED,quantile=~"1([.]0)?"} and on (job, instance) gateway_build_info`, "{{instance}}"}}},
	}},
}

// answered leaves out what lasts as long as its client wants.
const answered = `verb!="watch",code!="101"`

// fill puts what Grafana knows into an expression.
var fill = strings.NewReplacer("SELECTED", `job=~"$job",instance=~"$instance"`, "RATE", "$__rate_interval")

// number is a panel with one large number.
func number(title, about, unit, expr string) graph {
	return graph{title: title, about: about, unit: unit, isNumber: true, queries: []query{{expr: expr}}}
}

// rate is a panel with the rate of a counter by some of its labels.
func rate(title, about, unit, counter string, labels ...string) graph {
	return graph{title: title, about: about, unit: unit, queries: []query{{
		"sum by (" + strings.Join(labels, ", ") + ") (rate(" + counter + "{SELECTED}[RATE]))", legend(labels)}}}
}

// gauges is a panel with the sums of a gauge by some of its labels.
func gauges(title, about, name string, labels ...string) graph {
	return graph{title: title, about: about, unit: "short", queries: []query{{
		"sum by (" + strings.Join(labels, ", ") + ") (" + name + "{SELECTED})", legend(labels)}}}
}

func legend(labels []string) string {
	return "{{" + strings.Join(labels, "}} {{") + "}}"
}

// quantile is a quantile of the duration of requests, by a label or in all.
func quantile(q, label string) query {
	by, name := "le", q
	if label != "" {
		by, name = "le, "+label, "{{"+label+"}}"
	}
	return query{"histogram_quantile(" + q + ", sum by (" + by + ") (rate(gateway_request_duration_seconds_bucket{SELECTED," + answered + "}[RATE])))", name}
}

func (g graph) stacked() graph {
	g.isStacked = true
	return g
}

// named shows the legend of the values in place of the values.
func (g graph) named(legend string) graph {
	g.showsName, g.queries[0].legend = true, legend
	return g
}
