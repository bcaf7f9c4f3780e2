package apis

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	collectmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collecttraces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

var update = flag.Bool("update", false, "write the golden files of spans")

// collector receives OTLP by gRPC and by HTTP, as the collector of OpenTelemetry does.
type collector struct {
	collecttraces.UnimplementedTraceServiceServer

	mutex   sync.Mutex
	spans   []*tracepb.Span
	service string // of the spans
	metrics map[string]bool
}

// Export implements the service of traces.
func (c *collector) Export(_ context.Context, r *collecttraces.ExportTraceServiceRequest) (*collecttraces.ExportTraceServiceResponse, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, of := range r.ResourceSpans {
		for _, a := range of.Resource.Attributes {
			if a.Key == "service.name" {
				c.service = a.Value.GetStringValue()
			}
		}
		for _, scope := range of.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
	return &collecttraces.ExportTraceServiceResponse{}, nil
}

// metricsService is the other service of the collector.
type metricsService struct {
	collectmetrics.UnimplementedMetricsServiceServer
	*collector
}

// Export implements the service of metrics.
func (s metricsService) Export(_ context.Context, r *collectmetrics.ExportMetricsServiceRequest) (*collectmetrics.ExportMetricsServiceResponse, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, of := range r.ResourceMetrics {
		for _, scope := range of.ScopeMetrics {
			for _, m := range scope.Metrics {
				s.metrics[m.Name] = true
			}
		}
	}
	return &collectmetrics.ExportMetricsServiceResponse{}, nil
}

// startCollector returns the URL of a collector for a protocol of the configuration.
func startCollector(t *testing.T, protocol string) (*collector, string) {
	t.Helper()
	c := &collector{metrics: map[string]bool{}}
	if protocol == "GRPC" {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		collecttraces.RegisterTraceServiceServer(server, c)
		collectmetrics.RegisterMetricsServiceServer(server, metricsService{collector: c})
		go func() { _ = server.Serve(ln) }()
		t.Cleanup(server.Stop)
		return c, "http://" + ln.Addr().String()
	}
	receive := func(request proto.Message, export func() (proto.Message, error)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err == nil {
				proto.Reset(request)
				err = proto.Unmarshal(body, request)
			}
			if err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" {
				http.Error(w, fmt.Sprint(err), http.StatusBadRequest)
				return
			}
			answer, err := export()
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			text, _ := proto.Marshal(answer)
			w.Header().Set("Content-Type", "application/x-protobuf")
			_, _ = w.Write(text)
		}
	}
	traces, metrics := new(collecttraces.ExportTraceServiceRequest), new(collectmetrics.ExportMetricsServiceRequest)
	mux := http.NewServeMux()
	mux.Handle("POST /v1/traces", receive(traces, func() (proto.Message, error) { return c.Export(t.Context(), traces) }))
	mux.Handle("POST /v1/metrics", receive(metrics, func() (proto.Message, error) { return metricsService{collector: c}.Export(t.Context(), metrics) }))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return c, server.URL
}

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
`

// observed is a gateway that tells a collector and Prometheus what it does.
type observed struct {
	*program
	admin string
}

func startObserved(t *testing.T, telemetry string, environment ...string) *observed {
	t.Helper()
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusCreated)
		}
		_, _ = io.WriteString(w, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w1","namespace":"a"},"spec":{"size":5}}`)
	}))
	t.Cleanup(backend.Close)
	dir := t.TempDir()
	config, policies := filepath.Join(dir, "gateway.yaml"), filepath.Join(dir, "policies.yaml")
	write(t, policies, tracedPolicies)
	write(t, config, "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\ndrainSeconds: 0\nshutdownDeadlineSeconds: 1\n"+telemetry)
	o := &observed{admin: freeAddress(t)}
	o.program = start(t, "http://"+o.admin+"/readyz", func(address string) *exec.Cmd {
		cmd := exec.Command(gatewayProgram, "serve", "--listen", address, "--admin", o.admin, "--config", config, "--upstream", backend.URL, "--dialect", "Plain", "--policies", policies)
		cmd.Env = append(os.Environ(), append([]string{"OTEL_BSP_SCHEDULE_DELAY=100"}, environment...)...)
		return cmd
	})
	return o
}

// post creates a widget of a size, in a trace that is sampled.
func (o *observed) post(t *testing.T, size int) int {
	t.Helper()
	r, err := http.NewRequest("POST", o.url()+"/apis/example.com/v1/namespaces/a/widgets?access_token=secret",
		strings.NewReader(fmt.Sprintf(`{"metadata":{"name":"w1"},"spec":{"size":%d}}`, size)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
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

// Collectors get whole spans and metrics, by both protocols, by the file or by the environment alone.
func TestOTLP(t *testing.T) {
	for _, protocol := range []string{"HTTP", "GRPC", "environment"} {
		t.Run(protocol, func(t *testing.T) {
			c, address := startCollector(t, protocol)
			telemetry, environment := "", []string{"OTEL_METRIC_EXPORT_INTERVAL=200", "OTEL_EXPORTER_OTLP_ENDPOINT=" + address, "OTEL_SERVICE_NAME=mine"}
			service := "mine"
			if protocol != "environment" {
				telemetry = fmt.Sprintf("telemetry:\n  tracing: {endpoint: %q, protocol: %s}\n  metrics: {push: {endpoint: %[1]q, protocol: %[2]s, periodSeconds: 1}}\n", address, protocol)
				environment, service = nil, "admission-gateway"
			}
			g := startObserved(t, telemetry, environment...)
			if admitted, denied := g.post(t, 5), g.post(t, 70); admitted != 201 || denied != 422 {
				t.Fatalf("answered %d and %d", admitted, denied)
			}
			var got string
			const spans = 6 // of two requests, their admissions, and an exchange of one, with the object that is read behind it
			all := eventually(func() bool {
				c.mutex.Lock()
				defer c.mutex.Unlock()
				got = spansOf(c.spans)
				return len(c.spans) >= spans && c.metrics["gateway_requests"] && c.metrics["gateway_request_duration"]
			}, nil)
			golden := filepath.Join("testdata", "spans.txt")
			if *update {
				write(t, golden, got)
			}
			want, err := os.ReadFile(golden)
			if !all || err != nil || got != string(want) || c.service != service {
				t.Errorf("%v: the service %q sent\n%s\nwant of %q\n%s\nmetrics %v\n%s", err, c.service, got, service, want, c.metrics, g.log)
			}
		})
	}
}

var volatileSpan = regexp.MustCompile(`(127\.0\.0\.1:|server\.port=)[0-9]+`)

// spansOf writes spans as a tree, without ids and times.
func spansOf(spans []*tracepb.Span) string {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b *tracepb.Span) int { return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano)) })
	var b strings.Builder
	attributes := func(indent string, of []*common.KeyValue) {
		for _, a := range of {
			value := a.Value.GetStringValue()
			if _, isText := a.Value.Value.(*common.AnyValue_StringValue); !isText {
				value = fmt.Sprint(a.Value.GetIntValue())
			}
			fmt.Fprintf(&b, "%s%s=%s\n", indent, a.Key, value)
		}
	}
	var tree func(parent, indent string)
	tree = func(parent, indent string) {
		for _, s := range spans {
			if string(s.ParentSpanId) != parent {
				continue
			}
			fmt.Fprintf(&b, "%s%s %s %s of trace %x\n", indent, s.Name, s.Kind, s.Status.GetCode(), s.TraceId)
			attributes(indent+"  ", s.Attributes)
			for _, e := range s.Events {
				fmt.Fprintf(&b, "%s  event %s\n", indent, e.Name)
				attributes(indent+"    ", e.Attributes)
			}
			tree(string(s.SpanId), indent+"  ")
		}
	}
	tree("\xb7\xad\x6b\x71\x69\x20\x33\x31", "") // the client's span
	return volatileSpan.ReplaceAllString(b.String(), "$1*")
}

// A real Prometheus reads the metrics, and the traces that they lead to.
func TestPrometheusReads(t *testing.T) {
	file, dir := debian(t, "prometheus"), t.TempDir()
	_, address := startCollector(t, "HTTP")
	g := startObserved(t, fmt.Sprintf("telemetry:\n  tracing: {endpoint: %q}\n", address))
	write(t, filepath.Join(dir, "prometheus.yml"), "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs: [{job_name: gateway, static_configs: [{targets: ['"+g.admin+"']}]}]\n")
	p := start(t, "/-/ready", func(address string) *exec.Cmd {
		return exec.Command(file, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
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
			return json.Unmarshal([]byte(answer), &result) == nil && len(result.Data.Result) == 1 && string(result.Data.Result[0].Value[1]) == want
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
