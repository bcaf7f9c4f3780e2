package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/httpconv"
)

// scrape returns the lines of /metrics that are the gateway's own, without comments and without
// lines that vary by machine.
func scrape(t *testing.T, tel *Telemetry) []string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("GET /metrics answered %d: %s", w.Code, w.Body)
	}
	var lines []string
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "gateway_") && !strings.HasPrefix(line, "gateway_build_info") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

func newTelemetry(t testing.TB) *Telemetry {
	t.Helper()
	tel, err := New(Options{Version: "v0.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tel.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return tel
}

// request has the parts of a record that matter here.
type request struct {
	Verb, Group, Resource string
	Registered            bool
	Code                  int
	Took                  time.Duration
}

func (r request) record() *Record {
	return &Record{
		Resource: ResourceRef{Verb: r.Verb, Group: r.Group, Resource: r.Resource, IsDescribed: r.Registered},
		Outcome:  Outcome{Code: r.Code}, Usage: Usage{Took: r.Took},
	}
}

func equalLines(t *testing.T, got, want []string) {
	t.Helper()
	g, w := strings.Join(got, "\n"), strings.Join(want, "\n")
	if g != w {
		t.Errorf("metrics are\n%s\nwant\n%s", g, w)
	}
}

func TestMetricsBeforeAnyRequest(t *testing.T) {
	equalLines(t, scrape(t, newTelemetry(t)), []string{
		`gateway_config_reload_failure_total 0`,
		`gateway_config_reload_success_total 0`,
		`gateway_credentials_reload_failure_total 0`,
		`gateway_credentials_reload_success_total 0`,
		`gateway_http2_floods_total 0`,
		`gateway_log_dropped_lines_total 0`,
		`gateway_metrics_push_failures_total 0`,
		`gateway_policy_reload_failure_total 0`,
		`gateway_policy_reload_overdue 0`,
		`gateway_policy_reload_success_total 0`,
		`gateway_proxy_protocol_errors_total 0`,
		`gateway_request_bodies_in_flight_bytes 0`,
		`gateway_requests_in_flight 0`,
		`gateway_requests_waiting 0`,
		`gateway_shared_limit_unavailable_servers 0`,
		`gateway_slow_readers_cut_total 0`,
		`gateway_tls_handshake_failures_total 0`,
		`gateway_tracing_lost_spans_total 0`,
		`gateway_upgraded_connections 0`,
	})
}

func TestRequestDone(t *testing.T) {
	tel := newTelemetry(t)
	tel.RequestDone(request{Verb: "create", Group: "example.com", Resource: "widgets", Registered: true, Code: 201,
		Took: 3 * time.Millisecond}.record(), nil)
	tel.RequestDone(request{Verb: "create", Group: "example.com", Resource: "widgets", Registered: true, Code: 201,
		Took: 90 * time.Second}.record(), nil)
	// Neither an unregistered resource nor an odd verb or code makes a series of its own.
	tel.RequestDone(request{Verb: "get", Group: "a.example", Resource: "b", Code: 404}.record(), nil)
	tel.RequestDone(request{Verb: "get", Group: "c.example", Resource: "d", Code: 404}.record(), nil)
	tel.RequestDone(request{Verb: "brew", Code: 1000}.record(), nil)

	var counts, create []string
	for _, line := range scrape(t, tel) {
		switch {
		case strings.HasPrefix(line, "gateway_requests_total"):
			counts = append(counts, line)
		case strings.Contains(line, `kind="write",resource="widgets"`):
			create = append(create, strings.Replace(line,
				`group="example.com",kind="write",resource="widgets",route="",upstream=""`, "…", 1))
		}
	}
	equalLines(t, counts, []string{
		`gateway_requests_total{code="0",group="other",resource="other",route="",upstream="",verb="other"} 1`,
		`gateway_requests_total{code="201",group="example.com",resource="widgets",route="",upstream="",verb="create"} 2`,
		`gateway_requests_total{code="404",group="other",resource="other",route="",upstream="",verb="get"} 2`,
	})
	equalLines(t, create, []string{
		`gateway_request_duration_seconds_bucket{…,le="0.001"} 0`,
		`gateway_request_duration_seconds_bucket{…,le="0.005"} 1`,
		`gateway_request_duration_seconds_bucket{…,le="0.025"} 1`,
		`gateway_request_duration_seconds_bucket{…,le="0.1"} 1`,
		`gateway_request_duration_seconds_bucket{…,le="0.5"} 1`,
		`gateway_request_duration_seconds_bucket{…,le="2.5"} 1`,
		`gateway_request_duration_seconds_bucket{…,le="10"} 1`,
		`gateway_request_duration_seconds_bucket{…,le="+Inf"} 2`,
		`gateway_request_duration_seconds_sum{…} 90.003`,
		`gateway_request_duration_seconds_count{…} 2`,
	})
}

// A resource has at most 60 series, whatever clients and policies do.
func TestSeriesOfAResource(t *testing.T) {
	tel := newTelemetry(t)
	for code := range 600 {
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete",
			"deletecollection"} {
			tel.RequestDone(request{Verb: verb, Group: "example.com", Resource: "widgets", Registered: true,
				Code: code}.record(), nil)
		}
	}
	for i := range 100 {
		tel.SchemaRefused("widgets", fmt.Sprintf("Cause%d", i))
	}
	for _, cause := range []string{"FieldValueInvalid", "FieldValueRequired", "FieldValueNotSupported",
		"FieldValueTypeInvalid", "FieldValueDuplicate", "FieldValueForbidden", "FieldValueTooLong"} {
		tel.SchemaRefused("widgets", cause)
	}
	n, total := 0, 0
	for _, line := range scrape(t, tel) {
		if strings.Contains(line, `resource="widgets"`) {
			n++
		}
		if name, value, _ := strings.Cut(line, "} "); strings.HasPrefix(name, "gateway_requests_total") {
			count, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			total += count
		}
	}
	if n > 60 || total != 600*8 {
		t.Errorf("a resource has %d series, want at most 60; %d requests are counted, want %d", n, total, 600*8)
	}
}

// Buckets show a trace of a request in them, in OpenMetrics.
func TestExemplars(t *testing.T) {
	tel := newTelemetry(t)
	r := request{Verb: "create", Group: "example.com", Resource: "widgets", Registered: true, Code: 201,
		Took: 2 * time.Millisecond}.record()
	r.Trace = Trace{ID: [16]byte{15: 1}, Span: [8]byte{7: 2}, Sampled: true}
	tel.RequestDone(r, nil)
	w := httptest.NewRecorder()
	get := httptest.NewRequest("GET", "/metrics", nil)
	get.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	tel.Handler().ServeHTTP(w, get)
	// The library writes the labels of an exemplar in any order.
	const trace, span = `trace_id="00000000000000000000000000000001"`, `span_id="0000000000000002"`
	want := regexp.MustCompile(`gateway_request_duration_seconds_bucket\{[^}]*le="0.005"\} 1 # ` +
		`\{(` + trace + "," + span + "|" + span + "," + trace + `)\} 0.002 `)
	if !want.MatchString(w.Body.String()) {
		t.Errorf("no exemplar in\n%s", w.Body)
	}
}

func TestSemanticNames(t *testing.T) {
	tel, err := New(Options{AreNamesSemantic: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tel.Shutdown(context.Background()) }()
	r := request{Verb: "create", Group: "example.com", Resource: "widgets", Registered: true, Code: 201,
		Took: 2 * time.Millisecond}.record()
	r.Request.Method, r.Request.Scheme, r.Resource.Template, r.Usage.Backend = "POST", "https", "/widgets/{name}",
		time.Millisecond
	series := new(Series)
	tel.RequestDone(r, series)
	r.Request.Scheme = "http" // the same operation, by another way
	tel.RequestDone(r, series)
	r.Outcome.Code = 503
	tel.RequestDone(r, series)
	r.Outcome.Code, r.Request.Method = 499, "BREW"
	tel.RequestDone(r, series)
	tel.PolicyDecided("p", "Deny", 7)
	backend := ExchangesWith(tel, "orders", "https://orders.internal")
	backend.Add([]byte("PUT"), 200, "", time.Millisecond)
	backend.Add([]byte("PUT"), 409, "", time.Millisecond)
	backend.Add([]byte("PUT"), 0, "Timeout", time.Millisecond)
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	const place = `gateway_group="example.com",gateway_resource="widgets",gateway_route="",gateway_upstream=""`
	const orders = `gateway_upstream="orders",http_request_method="PUT"`
	const there = `server_address="orders.internal",server_port="443"`
	for _, want := range []string{
		`gateway_requests_total{` + place + `,gateway_verb="create",http_response_status_code="201"} 2`,
		`gateway_requests_total{` + place + `,gateway_verb="create",http_response_status_code="499"} 1`,
		`http_server_request_duration_seconds_count{` + place + `,http_request_method="POST",http_response_status_code="201",http_route="/widgets/{name}",url_scheme="https"} 1`,
		`http_server_request_duration_seconds_count{` + place + `,http_request_method="POST",http_response_status_code="201",http_route="/widgets/{name}",url_scheme="http"} 1`,
		`http_server_request_duration_seconds_count{error_type="503",` + place + `,http_request_method="POST",http_response_status_code="503",http_route="/widgets/{name}",url_scheme="http"} 1`,
		`http_server_request_duration_seconds_count{error_type="client_left",` + place + `,http_request_method="_OTHER",http_response_status_code="499",http_route="/widgets/{name}",url_scheme="http"} 1`,
		`http_client_request_duration_seconds_count{` + orders + `,http_response_status_code="200",` + there + `} 1`,
		`http_client_request_duration_seconds_count{error_type="409",` + orders + `,http_response_status_code="409",` +
			there + `} 1`,
		`http_client_request_duration_seconds_count{error_type="Timeout",` + orders + `,` + there + `} 1`,
		"gateway_requests_in_flight 0",
		`gateway_policy_cost_units_total{policy="p"} 7`,
	} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("no line %s in\n%s", want, w.Body)
		}
	}
}

// Names and attributes are those of the semantic conventions, and each metric has the attributes that they require.
func TestSemanticConventions(t *testing.T) {
	n := names{areSemantic: true}
	for got, want := range map[string]string{
		n.metric("gateway_request_duration"):          httpconv.ServerRequestDuration{}.Name(),
		n.metric("gateway_upstream_request_duration"): httpconv.ClientRequestDuration{}.Name(),
	} {
		if got != want {
			t.Errorf("a metric is named %s, want %s", got, want)
		}
	}
	for _, m := range methods[1:] {
		if methods[methodNamed(m)] != m {
			t.Errorf("the method %s counts as %s", m, methods[methodNamed(m)])
		}
	}
	if got := methods[methodNamed("get")]; got != semconv.HTTPRequestMethodOther.Value.AsString() {
		t.Errorf("an unknown method counts as %s", got)
	}
	served, left, odd := shape{code: 503, template: "/a", method: 1}, shape{code: 499, method: 1}, shape{method: 1}
	client, failed := exchange{code: 404, method: 1}, exchange{failure: "Timeout", method: 1}
	_, backend := newExchanges(server{"a", "http://a:9000"})
	for name, c := range map[string]struct {
		has  attribute.Set
		want []attribute.Key
	}{
		"served": {served.attributes(nil), []attribute.Key{semconv.HTTPRequestMethodKey, semconv.URLSchemeKey,
			semconv.HTTPRouteKey, semconv.HTTPResponseStatusCodeKey, semconv.ErrorTypeKey}},
		"left": {left.attributes(nil), []attribute.Key{semconv.HTTPRequestMethodKey, semconv.URLSchemeKey,
			semconv.HTTPResponseStatusCodeKey, semconv.ErrorTypeKey}},
		"odd": {odd.attributes(nil), []attribute.Key{semconv.HTTPRequestMethodKey, semconv.URLSchemeKey,
			semconv.ErrorTypeKey}},
		"client": {client.attributes(backend.server.ToSlice()),
			[]attribute.Key{"gateway.upstream", semconv.HTTPRequestMethodKey, semconv.ServerAddressKey,
				semconv.ServerPortKey, semconv.HTTPResponseStatusCodeKey, semconv.ErrorTypeKey}},
		"failed": {failed.attributes(backend.server.ToSlice()),
			[]attribute.Key{"gateway.upstream", semconv.HTTPRequestMethodKey, semconv.ServerAddressKey,
				semconv.ServerPortKey, semconv.ErrorTypeKey}},
	} {
		for _, key := range c.want {
			if !c.has.HasValue(key) {
				t.Errorf("%s: there is no %s", name, key)
			}
		}
		if c.has.Len() != len(c.want) {
			t.Errorf("%s: there are %v, want %v", name, c.has.ToSlice(), c.want)
		}
	}
	attributes := served.attributes(nil)
	if code, _ := attributes.Value(semconv.HTTPResponseStatusCodeKey); code.AsInt64() != 503 {
		t.Errorf("the code is %v, want the number 503", code)
	}
}

// Clients cannot make series without end, whatever they send and backends answer.
func TestSemanticSeriesAreBounded(t *testing.T) {
	tel, err := New(Options{AreNamesSemantic: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tel.Shutdown(context.Background()) }()
	backend := ExchangesWith(tel, "orders", "http://orders:9000")
	for code := range 700 {
		for _, m := range []string{"GET", "POST", fmt.Sprintf("M%d", code)} {
			r := request{Verb: "get", Group: "example.com", Resource: "widgets", Registered: true, Code: code,
				Took: time.Millisecond}.record()
			r.Request.Method = m
			tel.RequestDone(r, nil)
			backend.Add([]byte(m), code, "", time.Millisecond)
		}
	}
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, metric := range []string{"http_server_request_duration_seconds_count",
		"http_client_request_duration_seconds_count"} {
		total, n := 0, 0
		for line := range strings.Lines(w.Body.String()) {
			if strings.HasPrefix(line, metric+"{") {
				count, err := strconv.Atoi(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]))
				if err != nil {
					t.Fatal(err)
				}
				total, n = total+count, n+1
			}
		}
		if total < 2000 || n > maxShapes+1 {
			t.Errorf("%s has %d series with %d requests", metric, n, total)
		}
	}
}

// A request whose series are known costs no memory, with the names of either.
func TestSemanticSeriesAllocateNothing(t *testing.T) {
	tel, err := New(Options{AreNamesSemantic: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tel.Shutdown(context.Background()) }()
	r := request{Verb: "create", Group: "example.com", Resource: "widgets", Registered: true, Code: 201,
		Took: time.Millisecond}.record()
	r.Request.Method, r.Resource.Template = "POST", "/widgets"
	series, backend, put := new(Series), ExchangesWith(tel, "orders", "http://orders:9000"), []byte("PUT")
	if n := testing.AllocsPerRun(100, func() {
		tel.RequestDone(r, series)
		backend.Add(put, 200, "", time.Millisecond)
		tel.AdmissionDenied("p", "widgets", "Invalid")
	}); n > 0 {
		t.Errorf("a request allocates %.0f times", n)
	}
}

// The strings of a request may be views of a buffer that the next request overwrites.
func TestRequestDoneKeepsNoBorrowedStrings(t *testing.T) {
	tel := newTelemetry(t)
	buffer := []byte("widgets")
	tel.RequestDone(request{Verb: "get", Group: "example.com", Resource: unsafe.String(&buffer[0], len(buffer)),
		Registered: true, Code: 200}.record(), nil)
	copy(buffer, "xxxxxxx")
	tel.RequestDone(request{Verb: "get", Group: "example.com", Resource: "widgets", Registered: true,
		Code: 200}.record(), nil)
	want := `gateway_requests_total{code="200",group="example.com",resource="widgets",route="",upstream="",verb="get"} 2`
	if got := strings.Join(scrape(t, tel), "\n"); !strings.Contains(got, want) {
		t.Errorf("metrics are\n%s\nwant among them\n%s", got, want)
	}
}

func TestSeriesAreBounded(t *testing.T) {
	tel := newTelemetry(t)
	for i := range maxResources + 500 {
		tel.RequestDone(request{Verb: "get", Group: "example.com", Resource: fmt.Sprintf("r%d", i), Registered: true,
			Code: 200}.record(), nil)
	}
	for i := range 2*maxNames + 500 {
		tel.AdmissionDenied(fmt.Sprintf("policy-%d", i), "widgets", "Invalid")
	}
	lines := strings.Join(scrape(t, tel), "\n")
	if got := strings.Count(lines, "\ngateway_requests_total{"); got != maxResources+1 {
		t.Errorf("%d request series, want %d and one for the rest", got, maxResources)
	}
	for _, want := range []string{
		`gateway_requests_total{code="200",group="other",resource="other",route="other",upstream="other",verb="get"} 500`,
		`gateway_admission_denials_total{policy="policy-999",reason="Invalid",resource="widgets"} 1`,
		`gateway_admission_denials_total{policy="policy-1000",reason="other",resource="other"} 1`, // its policy is known still
		`gateway_admission_denials_total{policy="other",reason="other",resource="other"} 500`,
	} {
		if !strings.Contains(lines, want) {
			t.Errorf("no line %s", want)
		}
	}
}

func TestPolicyMetrics(t *testing.T) {
	tel := newTelemetry(t)
	tel.ConfigurationLoaded("1111", []string{"listen"}, time.UnixMilli(1_700_000_000_000))
	tel.ConfigurationRejected()
	tel.ConfigurationLoaded("2222", []string{"redis", "tls"}, time.UnixMilli(1_700_000_050_250))
	tel.PoliciesLoaded(1, "aaaa", time.UnixMilli(1_700_000_000_000))
	tel.PoliciesRejected()
	tel.PoliciesCompiled([]PolicyStage{{"read", time.Second}, {"gone", time.Second}})
	tel.PoliciesCompiled([]PolicyStage{{"read", 30 * time.Millisecond}, {"take", 2 * time.Second}})
	tel.PoliciesLoaded(2, "bbbb", time.UnixMilli(1_700_000_000_001))
	tel.PoliciesSeen(time.UnixMilli(1_700_000_060_250))
	tel.PolicyFolders([]PolicyFolder{{"a", "team-a", "", time.UnixMilli(1_700_000_060_250)},
		{"b", "team-b", "x", time.Time{}}})
	// The old set's hash is gone: two hashes at once would read as a drift between replicas.
	equalLines(t, scrape(t, tel), []string{
		`gateway_config_info{hash="2222"} 1`,
		`gateway_config_reload_failure_total 1`,
		`gateway_config_reload_last_success_timestamp_seconds 1.70000005025e+09`,
		`gateway_config_reload_success_total 2`,
		`gateway_config_restart_needed{key="redis"} 1`,
		`gateway_config_restart_needed{key="tls"} 1`,
		`gateway_credentials_reload_failure_total 0`,
		`gateway_credentials_reload_success_total 0`,
		`gateway_http2_floods_total 0`,
		`gateway_log_dropped_lines_total 0`,
		`gateway_metrics_push_failures_total 0`,
		`gateway_policy_folder_failing_since_timestamp_seconds{folder="a",owner="team-a"} 1.70000006025e+09`,
		`gateway_policy_folder_failing_since_timestamp_seconds{folder="b",owner="team-b"} 0`,
		`gateway_policy_folder_info{folder="a",hash="",owner="team-a"} 1`,
		`gateway_policy_folder_info{folder="b",hash="x",owner="team-b"} 1`,
		`gateway_policy_generation 2`,
		`gateway_policy_info{hash="bbbb"} 1`,
		`gateway_policy_load_stage_seconds{stage="read"} 0.03`,
		`gateway_policy_load_stage_seconds{stage="take"} 2`,
		`gateway_policy_reload_failure_total 1`,
		`gateway_policy_reload_last_success_timestamp_seconds 1.70000006025e+09`,
		`gateway_policy_reload_overdue 0`,
		`gateway_policy_reload_success_total 2`,
		`gateway_proxy_protocol_errors_total 0`,
		`gateway_request_bodies_in_flight_bytes 0`,
		`gateway_requests_in_flight 0`,
		`gateway_requests_waiting 0`,
		`gateway_shared_limit_unavailable_servers 0`,
		`gateway_slow_readers_cut_total 0`,
		`gateway_tls_handshake_failures_total 0`,
		`gateway_tracing_lost_spans_total 0`,
		`gateway_upgraded_connections 0`,
	})
	for _, end := range []func(){
		func() { tel.PoliciesLoaded(3, "cccc", time.UnixMilli(1_700_000_090_000)) }, tel.PoliciesRejected,
	} {
		tel.PoliciesOverdue()
		if lines := strings.Join(scrape(t, tel), "\n"); !strings.Contains(lines, "gateway_policy_reload_overdue 1") {
			t.Errorf("metrics while a reading takes too long are\n%s", lines)
		}
		if end(); !strings.Contains(strings.Join(scrape(t, tel), "\n"), "gateway_policy_reload_overdue 0") {
			t.Error("a reading that has ended still takes too long")
		}
	}
	if lines := strings.Join(scrape(t, tel), "\n"); strings.Contains(lines, "bbbb") ||
		!strings.Contains(lines, `gateway_policy_info{hash="cccc"} 1`) {
		t.Errorf("metrics are\n%s\nwant the hash cccc alone", lines)
	}
}

func TestGaugesAndEvents(t *testing.T) {
	tel := newTelemetry(t)
	tel.RequestStarted()
	tel.RequestStarted()
	tel.RequestEnded()
	tel.ObserveBodyBytes(func() int64 { return 4000 })
	tel.RateLimitWarned("not-yet")
	tel.WaitStarted()
	tel.WaitStarted()
	tel.WaitEnded()
	tel.RateLimited("per-client")
	tel.RateLimited("per-client")
	tel.AdmissionDenied("replica-limit", "widgets", "Forbidden")
	tel.UpgradeStarted()
	tel.UpgradeStarted()
	tel.UpgradeEnded()
	tel.UpstreamError("orders", "Refused")
	tel.UpstreamError("orders", "Timeout")
	tel.HandshakeFailed()
	tel.HandshakeFailed()
	tel.CredentialsRead(true)
	tel.CredentialsRead(false)
	equalLines(t, scrape(t, tel), []string{
		`gateway_admission_denials_total{policy="replica-limit",reason="Forbidden",resource="widgets"} 1`,
		`gateway_config_reload_failure_total 0`,
		`gateway_config_reload_success_total 0`,
		`gateway_credentials_reload_failure_total 1`,
		`gateway_credentials_reload_success_total 1`,
		`gateway_http2_floods_total 0`,
		`gateway_log_dropped_lines_total 0`,
		`gateway_metrics_push_failures_total 0`,
		`gateway_policy_reload_failure_total 0`,
		`gateway_policy_reload_overdue 0`,
		`gateway_policy_reload_success_total 0`,
		`gateway_proxy_protocol_errors_total 0`,
		`gateway_rate_limit_warnings_total{policy="not-yet"} 1`,
		`gateway_rate_limited_requests_total{policy="per-client"} 2`,
		`gateway_request_bodies_in_flight_bytes 4000`,
		`gateway_requests_in_flight 1`,
		`gateway_requests_waiting 1`,
		`gateway_shared_limit_unavailable_servers 0`,
		`gateway_slow_readers_cut_total 0`,
		`gateway_tls_handshake_failures_total 2`,
		`gateway_tracing_lost_spans_total 0`,
		`gateway_upgraded_connections 1`,
		`gateway_upstream_errors_total{reason="Refused",upstream="orders"} 1`,
		`gateway_upstream_errors_total{reason="Timeout",upstream="orders"} 1`,
	})
}

func TestRecordingAllocatesNothing(t *testing.T) {
	tel := newTelemetry(t)
	r := request{Verb: "create", Group: "example.com", Resource: "widgets", Registered: true, Code: 201,
		Took: time.Millisecond}.record()
	if n := testing.AllocsPerRun(1000, func() {
		tel.RequestStarted()
		tel.RequestDone(r, nil)
		tel.RateLimited("per-client")
		tel.AdmissionDenied("replica-limit", "widgets", "Forbidden")
		tel.UpstreamError("orders", "Timeout")
		tel.RequestEnded()
	}); n != 0 {
		t.Errorf("recording allocates %v times, want none", n)
	}
}

func TestRecordingWhileScraping(t *testing.T) {
	tel := newTelemetry(t)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 500 {
				tel.RequestDone(request{Verb: "get", Group: "example.com", Resource: fmt.Sprintf("r%d", (i+w)%50),
					Registered: true, Code: 200}.record(), nil)
				tel.PoliciesLoaded(int64(i), "h", time.Unix(1, 0))
			}
		})
	}
	for range 5 {
		scrape(t, tel)
	}
	wg.Wait()
	lines := strings.Join(scrape(t, tel), "\n")
	for i := range 50 {
		if want := fmt.Sprintf(`resource="r%d",route="",upstream="",verb="get"} 40`, i); !strings.Contains(lines,
			want) {
			t.Errorf("no line with %s", want)
		}
	}
}

func TestNewLogger(t *testing.T) {
	for _, c := range []struct{ level, format, want, err string }{
		{"", "", "level=INFO msg=info a=1\nlevel=WARN msg=warn a=1\n", ""},
		{"warn", "text", "level=WARN msg=warn a=1\n", ""},
		{"Info", "JSON", `{"level":"INFO","msg":"info","a":1}` + "\n" + `{"level":"WARN","msg":"warn","a":1}` + "\n",
			""},
		{"loud", "", "", "log level 'loud' must be one of 'Debug', 'Info', 'Warn', 'Error'"},
		{"", "xml", "", "log format 'xml' must be one of 'Text', 'JSON'"},
	} {
		var out bytes.Buffer
		log, err := NewLogger(&out, c.level, LogFormat(c.format))
		if err != nil {
			if err.Error() != c.err {
				t.Errorf("%q, %q: error %q, want %q", c.level, c.format, err, c.err)
			}
			continue
		}
		log.Info("info", "a", 1)
		log.Warn("warn", "a", 1)
		var got strings.Builder
		for line := range strings.Lines(out.String()) {
			// The time is the record's first attribute.
			if i := strings.Index(line, "level="); i > 0 {
				line = line[i:]
			} else if i := strings.Index(line, `"level"`); i > 0 {
				line = "{" + line[i:]
			}
			got.WriteString(line)
		}
		if got.String() != c.want {
			t.Errorf("%q, %q: log is %q, want %q", c.level, c.format, got.String(), c.want)
		}
	}
}

func BenchmarkRequestDone(b *testing.B) {
	tel := newTelemetry(b)
	for i := range 200 {
		tel.RequestDone(request{Verb: "get", Group: "example.com", Resource: fmt.Sprintf("r%d", i), Registered: true,
			Code: 200}.record(), nil)
	}
	r := request{Verb: "create", Group: "example.com", Resource: "widgets", Registered: true, Code: 201,
		Took: time.Millisecond}.record()
	b.ReportAllocs()
	for b.Loop() {
		tel.RequestStarted()
		tel.RequestDone(r, nil)
		tel.RequestEnded()
	}
}

func BenchmarkRateLimited(b *testing.B) {
	tel := newTelemetry(b)
	b.ReportAllocs()
	for b.Loop() {
		tel.RateLimited("per-client")
	}
}

// TestExpect: counters of rare failures are there before the first failure, and count on from there.
func TestExpect(t *testing.T) {
	tel := newTelemetry(t)
	expected := func(want ...string) {
		t.Helper()
		var got []string
		for _, line := range scrape(t, tel) {
			if strings.HasPrefix(line, "gateway_audit_lost_events_total") ||
				strings.HasPrefix(line, "gateway_admission_ignored_failures_total") {
				got = append(got, line)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("the counters are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	expected()
	tel.Expect([]string{"log", "webhook"}, []string{"sizes"})
	expected(`gateway_admission_ignored_failures_total{policy="sizes"} 0`,
		`gateway_audit_lost_events_total{sink="log"} 0`, `gateway_audit_lost_events_total{sink="webhook"} 0`)
	tel.AuditLost("webhook", 3)
	tel.PolicyIgnored("sizes")
	tel.Expect(nil, []string{"sizes", "prices"}) // files that were read again
	expected(`gateway_admission_ignored_failures_total{policy="prices"} 0`,
		`gateway_admission_ignored_failures_total{policy="sizes"} 1`,
		`gateway_audit_lost_events_total{sink="log"} 0`, `gateway_audit_lost_events_total{sink="webhook"} 3`)
	if got, want := tel.Totals().LostEvents, []Tally{{"log", "", 0}, {"webhook", "", 3}}; !slices.Equal(got, want) {
		t.Errorf("lost events are %v, want %v", got, want)
	}
	tel.PolicyDecided("sizes", "Deny", 1)
	tel.PolicyDecided("sizes", "Allow", 1)
	tel.PolicyDecided("prices", "Deny", 1)
	tel.PolicyDecided("sizes", "Deny", 1)
	if got, want := tel.Totals().Verdicts,
		[]Tally{{"prices", "Deny", 1}, {"sizes", "Allow", 1}, {"sizes", "Deny", 2}}; !slices.Equal(got, want) {
		t.Errorf("verdicts are %v, want %v", got, want)
	}
}

// TestSeriesIsWhereItIsLookedUp: what an operation remembers is counted where each request would be counted by itself.
func TestSeriesIsWhereItIsLookedUp(t *testing.T) {
	pages := make([]string, 2)
	for i := range pages {
		tel, in := newTelemetry(t), (*Series)(nil)
		if i == 1 {
			in = new(Series)
		}
		for n := range 40 {
			r := request{Verb: "create", Group: "example.com", Resource: "widgets", Registered: true,
				Code: []int{201, 422, 201, 409, 0, 1000}[n%6], Took: time.Duration(n) * time.Millisecond}.record()
			r.Usage.Backend = time.Duration(n%3) * time.Millisecond
			tel.RequestDone(r, in)
		}
		w := httptest.NewRecorder()
		tel.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		for line := range strings.Lines(w.Body.String()) {
			if strings.HasPrefix(line, "gateway_request") || strings.HasPrefix(line, "gateway_backend") ||
				strings.HasPrefix(line, "gateway_upstream") {
				pages[i] += line
			}
		}
	}
	if pages[0] != pages[1] || !strings.Contains(pages[0], `code="422"`) {
		t.Errorf("with what is remembered:\n%s\nwithout:\n%s", pages[1], pages[0])
	}
}
