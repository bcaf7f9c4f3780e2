package apis

import (
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/admission-gateway/gateway/e2e/apis/testutil"
)

var update = flag.Bool("update", false, "write the golden files of spans and metrics")

const tracedPolicies = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: small}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: ["*"], operations: [CREATE], resources: [widgets]}]}
  validations: [{expression: "object.spec.size <= 50"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: small-everywhere}
spec: {policyName: small, validationActions: [Deny]}
---
apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: two-creates}
spec: {match: {verbs: [create], resources: [widgets]}, key: ClientAddress, requests: 2, periodSeconds: 3600}
`

// observed is a gateway that reports to a collector and to Prometheus.
type observed struct {
	*program
	admin string
}

func startObserved(t *testing.T, telemetry string, environment ...string) *observed {
	t.Helper()
	var stored atomic.Value // the one widget
	stored.Store([]byte(nil))
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost || r.Method == http.MethodPut {
			body, _ := io.ReadAll(r.Body)
			stored.Store(body)
		}
		body := stored.Load().([]byte)
		w.Header().Set("Etag", fmt.Sprintf(`"%x"`, crc32.ChecksumIEEE(body)))
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusCreated)
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(backend.Close)
	dir := t.TempDir()
	config, policies := filepath.Join(dir, "gateway.yaml"), filepath.Join(dir, "policies.yaml")
	write(t, policies, tracedPolicies)
	write(t, config, "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\ndrainSeconds: 0\nshutdownDeadlineSeconds: 1\n"+telemetry)
	o := &observed{admin: testutil.FreeAddress(t)}
	o.program = start(t, "http://"+o.admin+"/readyz", func(address string) *exec.Cmd {
		cmd := exec.Command(gatewayProgram, "serve", "--listen", address, "--admin", o.admin, "--config", config,
			"--upstream", backend.URL, "--dialect", "Plain", "--policies", policies)
		cmd.Env = append(os.Environ(), append([]string{"OTEL_BSP_SCHEDULE_DELAY=100", "OTEL_RESOURCE_ATTRIBUTES="},
			environment...)...)
		return cmd
	})
	return o
}

// post creates a widget of a size, in a trace that is sampled.
func (o *observed) post(t *testing.T, size int) int {
	t.Helper()
	return o.send(t, http.MethodPost, "", "application/json",
		fmt.Sprintf(`{"metadata":{"name":"w1"},"spec":{"size":%d}}`, size))
}

// send sends a body to widgets, or to the path below them.
func (o *observed) send(t *testing.T, method, path, mediaType, body string) int {
	t.Helper()
	r, err := http.NewRequest(method, o.url()+"/apis/example.com/v1/namespaces/a/widgets"+path+"?access_token=secret",
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", mediaType)
	r.Header.Set("User-Agent", "test")
	r.Header.Set("X-Request-Id", "r1")
	r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// OpenTelemetry's collector gets whole spans and metrics, by both protocols, by the file or by the environment alone.
func TestOTLP(t *testing.T) {
	for _, protocol := range []string{"HTTP", "GRPC", "environment"} {
		t.Run(protocol, func(t *testing.T) {
			c := startCollector(t, protocol)
			telemetry, environment := "",
				[]string{"OTEL_METRIC_EXPORT_INTERVAL=200", "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.url,
					"OTEL_SERVICE_NAME=mine"}
			if protocol != "environment" {
				telemetry = fmt.Sprintf("telemetry:\n  tracing: {endpoint: %q, protocol: %s}\n  metrics: {push: {endpoint: %[1]q, protocol: %[2]s, periodSeconds: 1}}\n", c.url, protocol)
				environment = nil
			}
			g := startObserved(t, telemetry, environment...)
			codes := []int{
				g.post(t, 5),
				g.post(t, 70),
				g.send(t, http.MethodPatch, "/w1", "application/merge-patch+json", `{"spec":{"size":6}}`),
				g.post(t, 5),
			}
			if want := []int{201, 422, 200, 429}; !slices.Equal(codes, want) {
				t.Fatalf("answered %d, want %d", codes, want)
			}
			const spans = 10 // of four requests, three admissions, and an exchange of the first and two of the third
			arrives(t, "spans.txt", protocol, c.spansText, func() bool { return c.traces.SpanCount() >= spans })
			arrives(t, "metrics.txt", protocol, c.metricsText,
				func() bool { return strings.Contains(c.metricsText(), "code=429 ") })
		})
	}
}

// arrives compares a text with a golden file until they are equal. The golden file is written when all has come.
func arrives(t *testing.T, file, protocol string, text func() string, isAll func() bool) {
	t.Helper()
	file = filepath.Join("testdata", file)
	if *update && protocol == "HTTP" {
		if !eventually(isAll, nil) {
			t.Errorf("got only\n%s", text())
		}
		write(t, file, text())
	}
	golden, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := string(golden)
	if protocol == "environment" {
		want = strings.ReplaceAll(want, "service.name=admission-gateway\n", "service.name=mine\n")
	}
	if !eventually(func() bool { return isAll() && text() == want }, nil) {
		t.Errorf("%s is\n%s\nwant\n%s", file, text(), want)
	}
}

// A real Prometheus reads the metrics, and the traces that they lead to.
func TestPrometheusReads(t *testing.T) {
	file, dir := debian(t, "prometheus"), t.TempDir()
	c := startCollector(t, "HTTP")
	g := startObserved(t, fmt.Sprintf("telemetry:\n  tracing: {endpoint: %q}\n", c.url))
	write(t, filepath.Join(dir, "prometheus.yml"), "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs: [{job_name: gateway, static_configs: [{targets: ['"+g.admin+"']}]}]\n")
	p := start(t, "/-/ready", func(address string) *exec.Cmd {
		return exec.Command(file, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+
			filepath.Join(dir, "data"),
			"--web.listen-address="+address, "--enable-feature=exemplar-storage")
	})
	g.post(t, 5)
	g.post(t, 70)
	for query, want := range map[string]string{
		`up{job="gateway"}`: `"1"`,
		`gateway_requests_total{code="422",group="example.com",resource="widgets",verb="create",upstream="default"}`:    `"1"`,
		`sum by (le) (gateway_request_duration_seconds_bucket{kind="write",resource="widgets",le="+Inf"})`:              `"2"`,
		`gateway_upstream_request_duration_seconds_count{upstream="default"}`:                                           `"1"`,
		`gateway_policy_verdicts_total{policy="small",verdict="Deny"}`:                                                  `"1"`,
		`gateway_policy_cost_units_total{policy="small"} > bool 0`:                                                      `"1"`,
		`count({resource="widgets",job="gateway"}) <= bool 60`:                                                          `"1"`,
		`count({__name__=~"gateway_.*"}) > bool 30`:                                                                     `"1"`,
		`gateway_log_dropped_lines_total`:                                                                               `"0"`,
		`histogram_quantile(0.99, sum by (le) (gateway_request_duration_seconds_bucket{resource="widgets"})) < bool 10`: `"1"`,
		`gateway_build_info * on(instance) group_left(hash) gateway_policy_info`:                                        `"1"`,
	} {
		var answer string
		if !eventually(func() bool {
			answer = get(t, p.url()+"/api/v1/query?query="+url.QueryEscape(query))
			var result struct {
				Data struct {
					Result []struct{ Value [2]json.RawMessage }
				}
			}
			return json.Unmarshal([]byte(answer), &result) == nil && len(result.Data.Result) == 1 &&
				string(result.Data.Result[0].Value[1]) == want
		}, nil) {
			t.Errorf("%s: want %s, got %s", query, want, answer)
		}
	}
	var answer string
	if !eventually(func() bool {
		answer = get(t, p.url()+"/api/v1/query_exemplars?start=0&end=9999999999&query=gateway_request_duration_seconds_bucket")
		return strings.Contains(answer, `"trace_id":"0af7651916cd43dd8448eb211c80319c"`)
	}, nil) {
		t.Errorf("no exemplar in %s", answer)
	}
}

func get(t *testing.T, target string) string {
	t.Helper()
	answer, err := http.Get(target)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
