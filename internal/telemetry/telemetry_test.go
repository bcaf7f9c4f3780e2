package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"
)

// scrape returns the lines of /metrics that are the gateway's own, without comments, those that vary by machine left out.
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

func equalLines(t *testing.T, got, want []string) {
	t.Helper()
	g, w := strings.Join(got, "\n"), strings.Join(want, "\n")
	if g != w {
		t.Errorf("metrics are\n%s\nwant\n%s", g, w)
	}
}

func TestMetricsBeforeAnyRequest(t *testing.T) {
	equalLines(t, scrape(t, newTelemetry(t)), []string{
		`gateway_credentials_reload_failure_total 0`,
		`gateway_credentials_reload_success_total 0`,
		`gateway_policy_reload_failure_total 0`,
		`gateway_policy_reload_success_total 0`,
		`gateway_request_bodies_in_flight_bytes 0`,
		`gateway_requests_in_flight 0`,
		`gateway_requests_waiting 0`,
		`gateway_shared_limit_unavailable_servers 0`,
		`gateway_tls_handshake_failures_total 0`,
		`gateway_upgraded_connections 0`,
	})
}

func TestRequestDone(t *testing.T) {
	tel := newTelemetry(t)
	tel.RequestDone(Request{Verb: "create", Group: "example.com", Resource: "widgets", Registered: true, Code: 201, Took: 3 * time.Millisecond})
	tel.RequestDone(Request{Verb: "create", Group: "example.com", Resource: "widgets", Registered: true, Code: 201, Took: 90 * time.Second})
	// Neither an unregistered resource nor an odd verb or code makes a series of its own.
	tel.RequestDone(Request{Verb: "get", Group: "a.example", Resource: "b", Code: 404})
	tel.RequestDone(Request{Verb: "get", Group: "c.example", Resource: "d", Code: 404})
	tel.RequestDone(Request{Verb: "brew", Code: 1000})

	var counts, create []string
	for _, line := range scrape(t, tel) {
		switch {
		case strings.HasPrefix(line, "gateway_requests_total"):
			counts = append(counts, line)
		case strings.Contains(line, `verb="create"`):
			create = append(create, strings.Replace(line, `code="201",group="example.com",resource="widgets",verb="create"`, "…", 1))
		}
	}
	equalLines(t, counts, []string{
		`gateway_requests_total{code="0",group="other",resource="other",verb="other"} 1`,
		`gateway_requests_total{code="201",group="example.com",resource="widgets",verb="create"} 2`,
		`gateway_requests_total{code="404",group="other",resource="other",verb="get"} 2`,
	})
	equalLines(t, create, []string{
		`gateway_request_duration_seconds_bucket{…,le="0.00025"} 0`,
		`gateway_request_duration_seconds_bucket{…,le="0.0005"} 0`,
		`gateway_request_duration_seconds_bucket{…,le="0.001"} 0`,
		`gateway_request_duration_seconds_bucket{…,le="0.0025"} 0`,
		`gateway_request_duration_seconds_bucket{…,le="0.005"} 1`,
		`gateway_request_duration_seconds_bucket{…,le="0.01"} 1`,
		`gateway_request_duration_seconds_bucket{…,le="0.025"} 1`,
		`gateway_request_duration_seconds_bucket{…,le="0.05"} 1`,
		`gateway_request_duration_seconds_bucket{…,le="0.1"} 1`,
		`gateway_request_duration_seconds_bucket{…,le="0.25"} 1`,
		`gateway_request_duration_seconds_bucket{…,le="0.5"} 1`,
		`gateway_request_duration_seconds_bucket{…,le="1"} 1`,
		`gateway_request_duration_seconds_bucket{…,le="2.5"} 1`,
		`gateway_request_duration_seconds_bucket{…,le="5"} 1`,
		`gateway_request_duration_seconds_bucket{…,le="10"} 1`,
		`gateway_request_duration_seconds_bucket{…,le="30"} 1`,
		`gateway_request_duration_seconds_bucket{…,le="60"} 1`,
		`gateway_request_duration_seconds_bucket{…,le="+Inf"} 2`,
		`gateway_request_duration_seconds_sum{…} 90.003`,
		`gateway_request_duration_seconds_count{…} 2`,
	})
}

// The strings of a request may be views of a buffer that the next request overwrites.
func TestRequestDoneKeepsNoBorrowedStrings(t *testing.T) {
	tel := newTelemetry(t)
	buffer := []byte("widgets")
	tel.RequestDone(Request{Verb: "get", Group: "example.com", Resource: unsafe.String(&buffer[0], len(buffer)), Registered: true, Code: 200})
	copy(buffer, "xxxxxxx")
	tel.RequestDone(Request{Verb: "get", Group: "example.com", Resource: "widgets", Registered: true, Code: 200})
	want := `gateway_requests_total{code="200",group="example.com",resource="widgets",verb="get"} 2`
	if got := strings.Join(scrape(t, tel), "\n"); !strings.Contains(got, want) {
		t.Errorf("metrics are\n%s\nwant among them\n%s", got, want)
	}
}

func TestSeriesAreBounded(t *testing.T) {
	tel := newTelemetry(t)
	for i := range maxSeries + 500 {
		tel.RequestDone(Request{Verb: "get", Group: "example.com", Resource: fmt.Sprintf("r%d", i), Registered: true, Code: 200})
	}
	for i := range maxNames + 500 {
		tel.AdmissionDenied(fmt.Sprintf("policy-%d", i))
	}
	lines := strings.Join(scrape(t, tel), "\n")
	if got := strings.Count(lines, "\ngateway_requests_total{"); got != maxSeries+1 {
		t.Errorf("%d request series, want %d and one for the rest", got, maxSeries)
	}
	for _, want := range []string{
		`gateway_requests_total{code="200",group="other",resource="other",verb="get"} 500`,
		`gateway_admission_denials_total{policy="other"} 500`,
	} {
		if !strings.Contains(lines, want) {
			t.Errorf("no line %s", want)
		}
	}
}

func TestPolicyMetrics(t *testing.T) {
	tel := newTelemetry(t)
	tel.PoliciesLoaded(1, "aaaa", time.UnixMilli(1_700_000_000_000))
	tel.PoliciesRejected()
	tel.PoliciesLoaded(2, "bbbb", time.UnixMilli(1_700_000_060_250))
	// The old set's hash is gone: two hashes at once would read as a drift between replicas.
	equalLines(t, scrape(t, tel), []string{
		`gateway_credentials_reload_failure_total 0`,
		`gateway_credentials_reload_success_total 0`,
		`gateway_policy_generation 2`,
		`gateway_policy_info{hash="bbbb"} 1`,
		`gateway_policy_reload_failure_total 1`,
		`gateway_policy_reload_last_success_timestamp_seconds 1.70000006025e+09`,
		`gateway_policy_reload_success_total 2`,
		`gateway_request_bodies_in_flight_bytes 0`,
		`gateway_requests_in_flight 0`,
		`gateway_requests_waiting 0`,
		`gateway_shared_limit_unavailable_servers 0`,
		`gateway_tls_handshake_failures_total 0`,
		`gateway_upgraded_connections 0`,
	})
	tel.PoliciesLoaded(3, "cccc", time.UnixMilli(1_700_000_090_000))
	if lines := strings.Join(scrape(t, tel), "\n"); strings.Contains(lines, "bbbb") || !strings.Contains(lines, `gateway_policy_info{hash="cccc"} 1`) {
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
	tel.AdmissionDenied("replica-limit")
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
		`gateway_admission_denials_total{policy="replica-limit"} 1`,
		`gateway_credentials_reload_failure_total 1`,
		`gateway_credentials_reload_success_total 1`,
		`gateway_policy_reload_failure_total 0`,
		`gateway_policy_reload_success_total 0`,
		`gateway_rate_limit_warnings_total{policy="not-yet"} 1`,
		`gateway_rate_limited_requests_total{policy="per-client"} 2`,
		`gateway_request_bodies_in_flight_bytes 4000`,
		`gateway_requests_in_flight 1`,
		`gateway_requests_waiting 1`,
		`gateway_shared_limit_unavailable_servers 0`,
		`gateway_tls_handshake_failures_total 2`,
		`gateway_upgraded_connections 1`,
		`gateway_upstream_errors_total{reason="Refused",upstream="orders"} 1`,
		`gateway_upstream_errors_total{reason="Timeout",upstream="orders"} 1`,
	})
}

func TestRecordingAllocatesNothing(t *testing.T) {
	tel := newTelemetry(t)
	r := Request{Verb: "create", Group: "example.com", Resource: "widgets", Registered: true, Code: 201, Took: time.Millisecond}
	if n := testing.AllocsPerRun(1000, func() {
		tel.RequestStarted()
		tel.RequestDone(r)
		tel.RateLimited("per-client")
		tel.AdmissionDenied("replica-limit")
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
				tel.RequestDone(Request{Verb: "get", Group: "example.com", Resource: fmt.Sprintf("r%d", (i+w)%50), Registered: true, Code: 200})
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
		if want := fmt.Sprintf(`resource="r%d",verb="get"} 40`, i); !strings.Contains(lines, want) {
			t.Errorf("no line with %s", want)
		}
	}
}

func TestNewLogger(t *testing.T) {
	for _, c := range []struct{ level, format, want, err string }{
		{"", "", "level=INFO msg=info a=1\nlevel=WARN msg=warn a=1\n", ""},
		{"warn", "text", "level=WARN msg=warn a=1\n", ""},
		{"Info", "JSON", `{"level":"INFO","msg":"info","a":1}` + "\n" + `{"level":"WARN","msg":"warn","a":1}` + "\n", ""},
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
		tel.RequestDone(Request{Verb: "get", Group: "example.com", Resource: fmt.Sprintf("r%d", i), Registered: true, Code: 200})
	}
	r := Request{Verb: "create", Group: "example.com", Resource: "widgets", Registered: true, Code: 201, Took: time.Millisecond}
	b.ReportAllocs()
	for b.Loop() {
		tel.RequestStarted()
		tel.RequestDone(r)
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
