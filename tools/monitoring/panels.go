package main

import "strings"

// rows are the dashboard from the top down. SELECTED is the choice of the reader, RATE the width of rates that Grafana
// finds best for the time that is shown.
var rows = []row{
	{title: "Overview", height: 4, width: 4, graphs: []graph{
		number("Instances up", "Gateways that report metrics.", "short", `count(gateway_build_info{SELECTED})`),
		number("Requests per second", "", "reqps", `sum(rate(gateway_requests_total{SELECTED}[RATE]))`),
		number("Error rate", "Share of requests answered with a code of 500 or more.", "percentunit",
			`sum(rate(gateway_requests_total{SELECTED,code=~"5.."}[RATE])) / sum(rate(gateway_requests_total{SELECTED}[RATE]))`),
		number("p99 latency", "Without watches and upgraded connections.", "s",
			`histogram_quantile(0.99, sum by (le) (rate(gateway_request_duration_seconds_bucket{SELECTED}[RATE])))`),
		number("Policy versions in force", "More than 1 while replicas have not all read a change.", "short",
			`count(count by (hash) (gateway_policy_info{SELECTED}))`),
		number("Version", "", "short", `count by (version) (gateway_build_info{SELECTED})`).named("{{version}}"),
	}},
	{title: "Traffic", height: 8, width: 8, graphs: []graph{
		rate("Requests per second by code", "Code 499 is a client that left before its answer, 101 a connection that went on in another protocol.", "reqps",
			"gateway_requests_total", "code").stacked(),
		rate("Requests per second by verb", "", "reqps", "gateway_requests_total", "verb").stacked(),
		rate("Requests per second by resource", "Requests that no policy file describes count as other.", "reqps",
			"gateway_requests_total", "resource", "group").stacked(),
		{title: "Latency percentiles", about: "From a request's first byte to its answer's last. Watches and upgraded connections are left out.", unit: "s",
			queries: []query{quantile("0.5", ""), quantile("0.9", ""), quantile("0.99", "")}},
		{title: "p99 latency of reads and writes", unit: "s", queries: []query{quantile("0.99", "kind")}},
		{title: "In-flight requests", about: "Requests that are served now, that wait for their turn, and connections that went on in another protocol.", unit: "short",
			queries: []query{
				{`sum(gateway_requests_in_flight{SELECTED})`, "served"},
				{`sum(gateway_requests_waiting{SELECTED})`, "waiting"},
				{`sum(gateway_upgraded_connections{SELECTED})`, "upgraded"},
			}},
		{title: "Errors by code", about: "Requests answered with a code of 500 or more.", unit: "reqps",
			isStacked: true,
			queries:   []query{{`sum by (code) (rate(gateway_requests_total{SELECTED,code=~"5.."}[RATE]))`, "{{code}}"}}},
		{title: "Error rate, 5 minutes", about: "As the alerts see it.", unit: "percentunit",
			queries: []query{{`job:gateway_errors:ratio_rate5m{job=~"$job"}`, "{{job}}"}}},
		{title: "Latency, 5 minutes", about: "As the alerts see it.", unit: "s", queries: []query{
			{`job:gateway_request_duration_seconds:p50_rate5m{job=~"$job"}`, "{{job}} p50"},
			{`job:gateway_request_duration_seconds:p99_rate5m{job=~"$job"}`, "{{job}} p99"},
		}},
	}},
	{title: "Rejections", height: 8, width: 8, graphs: []graph{
		{title: "Rejected by code", about: "A schema or a policy refuses with 422, a limit with 429.", unit: "reqps",
			isStacked: true,
			queries:   []query{{`sum by (code) (rate(gateway_requests_total{SELECTED,code=~"4..",code!="499"}[RATE]))`, "{{code}}"}}},
		{title: "Rejected by resource and verb", unit: "reqps", isStacked: true,
			queries: []query{{`sum by (resource, verb) (rate(gateway_requests_total{SELECTED,code=~"4..",code!="499"}[RATE]))`, "{{verb}} {{resource}}"}}},
		{title: "Rejection rate", about: "Share of requests answered with a code between 400 and 498: 499 is a client that left.", unit: "percentunit", queries: []query{{
			`sum(rate(gateway_requests_total{SELECTED,code=~"4..",code!="499"}[RATE])) / sum(rate(gateway_requests_total{SELECTED}[RATE]))`, "rejected"}}},
		rate("Denials by policy, resource and reason", "", "reqps", "gateway_admission_denials_total", "policy",
			"resource", "reason"),
		rate("Schema errors by resource and cause", "What is wrong with objects by their schema.", "reqps",
			"gateway_schema_refusals_total", "resource", "cause"),
		rate("Rate limited (429) by limit", "", "reqps", "gateway_rate_limited_requests_total", "policy"),
		rate("Over a limit that only warns, by limit", "", "reqps", "gateway_rate_limit_warnings_total", "policy"),
		rate("Failed authentication by authenticator", "", "reqps", "gateway_credentials_refused_total",
			"authenticator"),
		rate("Refused for policy files with errors, by owner",
			"Requests that an owner's files may concern, none of which were ever in force.", "reqps",
			"gateway_policy_folder_refused_requests_total", "owner"),
	}},
	{title: "Policies", height: 8, width: 8, graphs: []graph{
		rate("Policy decisions by verdict", "", "reqps", "gateway_policy_verdicts_total", "verdict").stacked(),
		rate("Policy errors, fail open, by policy",
			"The policy could not judge a request, and its failurePolicy is Ignore.", "reqps",
			"gateway_admission_ignored_failures_total", "policy"),
		rate("Policy errors, fail closed, by policy",
			"The policy could not judge a request, and its failurePolicy is Fail.", "reqps",
			"gateway_admission_errors_total", "policy"),
		rate("Audited violations by policy", "The binding's action is Audit.", "reqps",
			"gateway_admission_audited_failures_total", "policy"),
		rate("Policy cost by policy", "Units of CEL's cost.", "short", "gateway_policy_cost_units_total", "policy"),
		{title: "Policy reloads", unit: "ops", queries: []query{
			{`sum(rate(gateway_policy_reload_success_total{SELECTED}[RATE]))`, "succeeded"},
			{`sum(rate(gateway_policy_reload_failure_total{SELECTED}[RATE]))`, "failed"},
		}},
		{title: "Time since last successful policy reload",
			about: "Grows beyond a minute while files are refused or cannot be read.", unit: "s",
			queries: []query{{`time() - gateway_policy_reload_last_success_timestamp_seconds{SELECTED}`,
				"{{instance}}"}}},
		{title: "Owners with failing policy files", about: "1 for each folder of policy files with errors.",
			unit:    "short",
			queries: []query{{`max by (folder, owner) (gateway_policy_folder_failing_since_timestamp_seconds{SELECTED} > bool 0)`, "{{owner}} {{folder}}"}}},
		{title: "Stuck policy reloads", about: "1 while a reading takes more than a minute.", unit: "short",
			queries: []query{{`gateway_policy_reload_overdue{SELECTED}`, "{{instance}}"}}},
		{title: "Bundle age", about: "Since the server last said that the version in force is the newest.", unit: "s",
			queries: []query{{`max by (bundle) (gateway_bundle_age_seconds{SELECTED})`, "{{bundle}}"}}},
		{title: "State age", about: "Since the stored objects that policies compare with were last known to be right.", unit: "s",
			queries: []query{{`max by (path) (gateway_state_age_seconds{SELECTED})`, "{{path}}"}}},
		{title: "Restart needed", about: "Changed keys of the configuration that need a restart.", unit: "short",
			queries: []query{{`count(gateway_config_restart_needed{SELECTED}) or vector(0)`, "keys"}}},
	}},
	{title: "Backends", height: 8, width: 8, graphs: []graph{
		{title: "Backend p99 latency", about: "Time in which backends were asked for a request.", unit: "s",
			queries: []query{{
				`histogram_quantile(0.99, sum by (le, upstream) (rate(gateway_upstream_request_duration_seconds_bucket{SELECTED}[RATE])))`, "{{upstream}}"}}},
		rate("Backend errors by reason", "Requests that a backend failed to answer.", "reqps",
			"gateway_upstream_errors_total", "upstream", "reason"),
		gauges("Endpoints by status", "Servers that are Ejected or Unhealthy are passed over.",
			"gateway_upstream_endpoints", "upstream", "status"),
		gauges("Circuit breakers", "1 for the state that each one is in.", "gateway_upstream_circuit", "upstream",
			"state"),
		gauges("Connection pool", "", "gateway_upstream_connections", "upstream", "state"),
		gauges("Requests waiting for a connection", "", "gateway_upstream_pending_requests", "upstream"),
		{title: "Retries and ejections", about: "Requests sent once more, and servers passed over because they failed.",
			unit: "ops", queries: []query{
				{`sum by (upstream) (rate(gateway_upstream_retries_total{SELECTED}[RATE]))`, "{{upstream}} retries"},
				{`sum by (upstream) (rate(gateway_upstream_ejections_total{SELECTED}[RATE]))`,
					"{{upstream}} ejections"},
			}},
	}},
	{title: "Redis, TLS and credentials", height: 8, width: 8, graphs: []graph{
		rate("Shared limit decisions by outcome", "", "ops", "gateway_shared_limit_decision_duration_seconds_count",
			"outcome"),
		{title: "Redis p99 latency", about: "Of decisions on shared limits.", unit: "s", queries: []query{{
			`histogram_quantile(0.99, sum by (le) (rate(gateway_shared_limit_decision_duration_seconds_bucket{SELECTED}[RATE])))`, "p99"}}},
		{title: "Redis servers down", unit: "short",
			queries: []query{{`gateway_shared_limit_unavailable_servers{SELECTED}`, "{{instance}}"}}},
		{title: "Certificate expiry",
			about: "Time until certificates, and authorities that the gateway trusts, expire.", unit: "s",
			queries: []query{{`min by (name) (gateway_tls_certificate_expiry_timestamp_seconds{SELECTED}) - time()`, "{{name}}"}}},
		{title: "TLS handshake errors", unit: "ops",
			queries: []query{{`sum by (instance) (rate(gateway_tls_handshake_failures_total{SELECTED}[RATE]))`,
				"{{instance}}"}}},
		{title: "Certificate, key and token reloads", unit: "ops", queries: []query{
			{`sum(rate(gateway_credentials_reload_success_total{SELECTED}[RATE]))`, "succeeded"},
			{`sum(rate(gateway_credentials_reload_failure_total{SELECTED}[RATE]))`, "failed"},
		}},
	}},
	{title: "Logs", height: 8, width: 8, graphs: []graph{
		{title: "Dropped log lines", about: "Lines that were dropped because the log is read too slowly, or cannot be written.", unit: "ops",
			queries: []query{{`sum by (instance) (rate(gateway_log_dropped_lines_total{SELECTED}[RATE]))`,
				"{{instance}}"}}},
		rate("Lost audit events", "Events that the log's file or its webhook will never have.", "ops",
			"gateway_audit_lost_events_total", "sink"),
		rate("Lost decisions", "Decisions that a sink of the decision log will never have.", "ops",
			"gateway_decision_log_lost_events_total", "sink", "reason"),
		rate("Log write errors", "Of the log, the audit log and the decision log; they are tried again.", "ops",
			"gateway_log_write_failures_total", "log", "sink", "cause"),
	}},
	{title: "Runtime", height: 8, width: 8, graphs: []graph{
		{title: "Memory", about: "Resident memory beside the limit that Go's collector keeps to.", unit: "bytes",
			queries: []query{
				{`process_resident_memory_bytes{SELECTED} and on (job, instance) gateway_build_info`, "{{instance}} RSS"},
				{`go_memstats_heap_inuse_bytes{SELECTED} and on (job, instance) gateway_build_info`, "{{instance}} heap"},
				{`go_gc_gomemlimit_bytes{SELECTED} < 1e15 and on (job, instance) gateway_build_info`, "{{instance}} GOMEMLIMIT"},
			}},
		{title: "Memory of request bodies", about: "Bounded by limits.bodiesInFlightBytes.", unit: "bytes",
			queries: []query{{`gateway_request_bodies_in_flight_bytes{SELECTED}`, "{{instance}}"}}},
		{title: "CPU usage", about: "Cores.", unit: "short",
			queries: []query{{`rate(process_cpu_seconds_total{SELECTED}[RATE]) and on (job, instance) gateway_build_info`, "{{instance}}"}}},
		{title: "GC pauses", about: "The longest of each time.", unit: "s",
			queries: []query{{`go_gc_duration_seconds{SELECTED,quantile=~"1([.]0)?"} and on (job, instance) gateway_build_info`, "{{instance}}"}}},
		{title: "Goroutines", unit: "short",
			queries: []query{{`go_goroutines{SELECTED} and on (job, instance) gateway_build_info`, "{{instance}}"}}},
		{title: "Open file descriptors", unit: "short",
			queries: []query{{`process_open_fds{SELECTED} and on (job, instance) gateway_build_info`, "{{instance}}"}}},
	}},
}

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
	by, name := "le", map[string]string{"0.5": "p50", "0.9": "p90", "0.99": "p99"}[q]
	if label != "" {
		by, name = "le, "+label, "{{"+label+"}}"
	}
	return query{"histogram_quantile(" + q + ", sum by (" + by +
		") (rate(gateway_request_duration_seconds_bucket{SELECTED}[RATE])))", name}
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
