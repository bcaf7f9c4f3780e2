package proxy

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/h2/h2test"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/telemetry/tracing"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// watched is a gateway whose log is kept.
type watched struct {
	*Gateway
	address string
	log     *telemetry.Log
	out     bytes.Buffer
}

// watch starts a gateway that logs all requests and all messages.
func watch(t *testing.T, backend *recorder, files string, words ...string) *watched {
	t.Helper()
	w := &watched{}
	var err error
	w.log, err = telemetry.OpenLog(&w.out,
		telemetry.LogOptions{Level: "Debug", Access: telemetry.AccessOptions{Refused: true, OneIn: 1}})
	if err != nil {
		t.Fatal(err)
	}
	w.Gateway = gatewayFor(t, files, backend.Addr().String(), words)
	w.Gateway.log, w.observers.access, w.observers.answers.Log = w.log.Messages, w.log.Access, w.log.Messages
	w.address = startGateway(t, w.Gateway)
	return w
}

// lines returns the log, without what no two runs have the same.
func (w *watched) lines(t *testing.T) string {
	t.Helper()
	if err := w.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := w.log.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	return unlike.ReplaceAllString(w.out.String(), "$1=…")
}

var unlike = regexp.MustCompile(`\b(time|http\.request\.id|gateway\.duration|gateway\.upstream\.duration|gateway\.configuration\.hash|gateway\.policies\.hash|server\.address)=\S+`)

func (w *watched) ask(t *testing.T, method, target, body string, header ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+w.address+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("User-Agent", "test")
	if body != "" && !slices.Contains(header, "Content-Type") {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer
}

const observedPolicies = `
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
metadata: {name: few-reads}
spec: {match: {verbs: [get], apiGroups: [example.com], resources: [widgets]}, requests: 1, periodSeconds: 60}
`

// TestVersionInLog: each version has one spelling, whether the request was served or refused, by which part of the
// gateway it may be.
func TestVersionInLog(t *testing.T) {
	w := watch(t, newRecorder(t), t.TempDir(), "kubernetes")
	for _, version := range []string{"1.0", "1.1", "1.2", "2.0", "3.0"} {
		nc, br := dial(t, w.address)
		send(t, nc, "GET /v"+version+" HTTP/"+version+"\r\nHost: gw\r\nConnection: close\r\n\r\n")
		readAnswer(t, br, false)
	}
	c := h2test.Dial(t, w.address)
	c.Head(t, 1, true, h2test.Get("/served")...)
	c.Head(t, 3, true, append(h2test.Get("/refused"), "Capital", "x")...)
	c.Read(t, 1, 3)
	log := w.lines(t)
	var got []string
	for _, m := range regexp.MustCompile(
		`http\.response\.status_code=(\d+).*?(?: network\.protocol\.version=(\S+)|\n)`).FindAllStringSubmatch(log, -1) {
		got = append(got, m[1]+" "+m[2])
	}
	slices.Sort(got)
	if want := []string{"200 ", "200 1.0", "200 2", "400 2", "505 1.2", "505 2", "505 3"}; !slices.Equal(got, want) {
		t.Errorf("the log has %q, want %q:\n%s", got, want, log)
	}
}

// The log has who was refused what, and by which rule.
func TestAccessLog(t *testing.T) {
	backend := newRecorder(t)
	w := watch(t, backend, policiestest.Write(t, observedPolicies), "policies=widgets")
	w.ask(t, "POST", widgetsPath+"?access_token=x", widget(""))
	w.ask(t, "POST", widgetsPath, strings.Replace(widget(""), `"size":5`, `"size":70`, 1))
	w.ask(t, "POST", widgetsPath, strings.Replace(widget(""), `"size":5`, `"size":-1`, 1))
	w.ask(t, "GET", widgetsPath+"/w1", "")
	w.ask(t, "GET", widgetsPath+"/w1", "")
	w.ask(t, "GET", "/else", "")
	got := w.lines(t)
	lines := strings.SplitAfter(got, "\n")
	slices.Sort(lines) // a line is written after its answer
	got = strings.Join(lines, "")
	const golden = "testdata/access.txt"
	if *isUpdate {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || got != string(want) {
		t.Errorf("%v: the log has\n%s\nwant\n%s", err, got, want)
	}
}

// The backend learns by what the request is named, and so does a client that the gateway refuses.
func TestRequestID(t *testing.T) {
	const nowhere = widgetsPath + "/w1/status/more"
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := make(chan http.Header, 1)
	backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case seen <- r.Header:
		default:
		}
	}))
	t.Cleanup(backend.Close)
	for _, tt := range []struct {
		name   string
		shown  config.RequestIDs
		target string
		own    []string // of the client
		backed []string // what the backend sees; nil if it sees nothing, "*" is a new one
		answer []string
	}{
		{name: "new", target: "/x", backed: []string{"*"}},
		{name: "the client's", target: "/x", own: []string{"abc 1"}, backed: []string{"abc 1"}},
		{name: "several", target: "/x", own: []string{"a", "b"}, backed: []string{"a", "b"}},
		{name: "empty", target: "/x", own: []string{""}, backed: []string{"", "*"}},
		{name: "refused", target: nowhere, answer: []string{"*"}},
		{name: "refused, the client's", target: nowhere, own: []string{"abc"}, answer: []string{"abc"}},
		{name: "on all answers", shown: config.IDsOnAnswers, target: "/x", own: []string{"abc"},
			backed: []string{"abc"}, answer: []string{"abc"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := gatewayFor(t, "testdata/policies/widgets.yaml", strings.TrimPrefix(backend.URL, "http://"), nil)
			g.observers.isIDShown = tt.shown == config.IDsOnAnswers
			w := &watched{Gateway: g, address: startGateway(t, g)}
			var header []string
			for _, id := range tt.own {
				header = append(header, "X-Request-Id", id)
			}
			answer := w.ask(t, "GET", tt.target, "", header...)
			check := func(where string, got, want []string) {
				for i := range want {
					if want[i] == "*" && i < len(got) && uuid.MatchString(got[i]) {
						want[i] = got[i]
					}
				}
				if strings.Join(got, "|") != strings.Join(want, "|") {
					t.Errorf("%s: X-Request-Id is %q, want %q", where, got, want)
				}
			}
			check("answer", answer.Header["X-Request-Id"], tt.answer)
			if tt.backed != nil {
				check("backend", (<-seen)["X-Request-Id"], tt.backed)
			}
		})
	}
}

// planted are secrets that no output may have, in whatever form.
const planted = "hunter2-planted"

const secretPolicies = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: noted}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: ["*"], operations: ["*"], resources: [secrets]}]}
  validations:
  - {expression: "object.data.password == 'x'"}
  - {expression: "object.stringData.password == 'x'", messageExpression: "'not ' + object.stringData.password"}
  auditAnnotations: [{key: password, valueExpression: "string(object.stringData.password)"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: noted}
spec: {policyName: noted, validationActions: [Audit, Warn]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: refused}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: ["*"], operations: [CREATE], resources: [secrets]}]}
  matchConditions: [{name: b, expression: "request.namespace == 'b'"}]
  validations: [{expression: "object.data.password == 'x'"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: refused}
spec: {policyName: refused, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: broken}
spec:
  failurePolicy: Ignore
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: ["*"], operations: ["*"], resources: [secrets]}]}
  validations: [{expression: "int(object.stringData.password) > 0"}, {expression: "timestamp(object.stringData.password) == timestamp('2026-01-01T00:00:00Z')"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: broken}
spec: {policyName: broken, validationActions: [Deny]}
---
apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: curious}
spec:
  credentialHeaders: Shown
  validationActions: [Audit]
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: ["*"], operations: ["*"], resources: [secrets]}]}
  rego: |
    package curious
    deny contains input.review.object.stringData.password
    deny contains input.attributes.request.http.headers.authorization
    deny contains input.request.http.headers.cookie
    deny contains input.http.headers["x-api-key"][0]
    deny contains input.parsed_query.token[0]
    deny contains input.parsed_body.data.password
---
apiVersion: admission-gateway.io/v1alpha1
kind: RegoPolicy
metadata: {name: failing}
spec:
  failurePolicy: Ignore
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: ["*"], operations: ["*"], resources: [secrets]}]}
  rego: |
    package failing
    deny contains "no" if to_number(input.review.object.stringData.password) > 0
`

// No output has credentials, cookies, queries or data of a Secret.
func TestOutputsHaveNoSecrets(t *testing.T) {
	backend := newRecorder(t)
	w := watch(t, backend, policiestest.Write(t, secretPolicies), "kubernetes")
	kept := w.traced(t, 1_000_000)
	decided := w.decided(t)
	encoded := base64.StdEncoding.EncodeToString([]byte(planted))
	secret := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"password":"` + encoded + `"},"stringData":{"password":"` + planted + `"}}`
	credentials := []string{
		"Authorization", "Bearer " + planted, "Cookie", "session=" + planted, "X-Api-Key", planted,
		"Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io." + planted,
	}
	for _, target := range []string{"/api/v1/namespaces/a/secrets", "/api/v1/namespaces/b/secrets"} {
		w.ask(t, "POST", target+"?token="+planted, secret, credentials...)
		w.ask(t, "POST", target, strings.Replace(secret, `"kind"`, `"kind":"`+planted+`","kind"`, 1), credentials...)
	}
	w.ask(t, "GET", "/x?access_token="+planted, "", credentials...)
	w.ask(t, "GET", "/a%00?access_token="+planted, "", credentials...)
	metrics := httptest.NewRecorder()
	w.metrics.Handler().ServeHTTP(metrics, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	outputs := map[string]string{"metrics": metrics.Body.String(), "log": w.lines(t)}
	if err := w.observers.tracer.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	outputs["spans"] = spansText(kept.GetSpans())
	outputs["decisions"] = decided()
	for _, expected := range []string{`"path":"curious/deny"`, `"violations":4`, `"message":"(withheld)"`} {
		if !strings.Contains(outputs["decisions"], expected) {
			t.Errorf("the decision log does not have %s:\n%s", expected, outputs["decisions"])
		}
	}
	if !strings.Contains(outputs["spans"], "gateway.policy=refused") {
		t.Errorf("the spans are\n%s", outputs["spans"])
	}
	for name, text := range outputs {
		if strings.Contains(text, planted) || strings.Contains(text, encoded) {
			t.Errorf("%s have a secret:\n%s", name, text)
		}
	}
	for _, expected := range []string{"audit annotations", "a policy failed and is set to be ignored",
		"gateway.policy=refused"} {
		if !strings.Contains(outputs["log"], expected) {
			t.Errorf("the log does not have %q:\n%s", expected, outputs["log"])
		}
	}
}

// spansText writes spans as a tree, without ids and times.
func spansText(spans tracetest.SpanStubs) string {
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	var b strings.Builder
	var write func(parent trace.SpanID, indent string)
	write = func(parent trace.SpanID, indent string) {
		for _, s := range spans {
			if s.Parent.SpanID() != parent {
				continue
			}
			fmt.Fprintf(&b, "%s%s (%s) %s\n", indent, s.Name, s.SpanKind, s.Status.Code)
			for _, a := range s.Attributes {
				fmt.Fprintf(&b, "%s  %s=%s\n", indent, a.Key, a.Value.String())
			}
			for _, e := range s.Events {
				fmt.Fprintf(&b, "%s  event %s", indent, e.Name)
				for _, a := range e.Attributes {
					fmt.Fprintf(&b, " %s=%s", a.Key, a.Value.String())
				}
				b.WriteString("\n")
			}
			write(s.SpanContext.SpanID(), indent+"  ")
		}
	}
	parents := map[trace.SpanID]bool{}
	for _, s := range spans {
		if !slices.ContainsFunc(spans,
			func(o tracetest.SpanStub) bool { return o.SpanContext.SpanID() == s.Parent.SpanID() }) &&
			!parents[s.Parent.SpanID()] {
			parents[s.Parent.SpanID()] = true
			write(s.Parent.SpanID(), "")
		}
	}
	return ports.ReplaceAllString(b.String(), "$1*")
}

var ports = regexp.MustCompile(`(127\.0\.0\.1:|server\.port=|x-request-id=|\.hash=)[0-9a-f-]+`)

// traced gives the gateway a tracer whose spans are kept.
func (w *watched) traced(t *testing.T, perMillion int32) *tracetest.InMemoryExporter {
	t.Helper()
	tracer, kept := newTracer(t, perMillion)
	w.observers.tracer = tracer
	return kept
}

// newTracer returns a tracer whose spans are kept.
func newTracer(t *testing.T, perMillion int32) (*tracing.Tracer, *tracetest.InMemoryExporter) {
	t.Helper()
	kept := tracetest.NewInMemoryExporter()
	tracer, err := tracing.New(context.Background(), tracing.Options{Exporter: kept, Endpoint: "http://127.0.0.1:1",
		PerMillion: perMillion})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tracer.Shutdown(context.Background()) })
	return tracer, kept
}

// A request that is traced has spans for itself, its admission and each exchange, and the backend learns of them.
func TestSpans(t *testing.T) {
	backend := newRecorder(t)
	w := watch(t, backend, policiestest.Write(t, observedPolicies), "policies=widgets")
	kept := w.traced(t, 0)
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	w.ask(t, "POST", widgetsPath+"?access_token=x", widget(""), "traceparent", parent, "tracestate", "a=b")
	seen := backend.Take()
	w.ask(t, "POST", widgetsPath, strings.Replace(widget(""), `"size":5`, `"size":70`, 1), "traceparent", parent)
	if err := w.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := w.observers.tracer.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	spans := kept.GetSpans()
	got := spansText(spans)
	const golden = "testdata/spans.txt"
	if *isUpdate {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || got != string(want) {
		t.Errorf("%v: the spans are\n%s\nwant\n%s", err, got, want)
	}
	isSent := false
	for _, s := range spans {
		if s.SpanContext.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("the span %s is of the trace %s", s.Name, s.SpanContext.TraceID())
		}
		line := "traceparent: 00-0af7651916cd43dd8448eb211c80319c-" + s.SpanContext.SpanID().String() + "-01\r\n"
		isSent = isSent || s.SpanKind == trace.SpanKindClient && strings.Contains(seen, line)
	}
	if !isSent || strings.Count(strings.ToLower(seen), "traceparent") != 2 ||
		!strings.Contains(seen, "Tracestate: a=b\r\n") {
		t.Errorf("the backend got\n%s", seen)
	}
}

// What is not sampled has no spans, and the backend learns that too. A client's own word stays.
func TestUnsampled(t *testing.T) {
	backend := newRecorder(t)
	w := watch(t, backend, policiestest.Write(t, observedPolicies), "policies=widgets")
	kept := w.traced(t, 0)
	const unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	for _, tt := range []struct{ own, want string }{
		{unsampled, `(?m)^Traceparent: ` + unsampled + `\r$`},
		{"", `(?m)^traceparent: 00-[0-9a-f]{32}-[0-9a-f]{16}-00\r$`},
		{"wrong", `(?m)^traceparent: 00-[0-9a-f]{32}-[0-9a-f]{16}-00\r$`},
	} {
		var header []string
		if tt.own != "" {
			header = []string{"Traceparent", tt.own, "Tracestate", "a=b"}
		}
		w.ask(t, "GET", "/x", "", header...)
		seen := backend.Take()
		if !regexp.MustCompile(tt.want).MatchString(seen) || strings.Count(strings.ToLower(seen), "traceparent") != 1 ||
			strings.Contains(seen, "a=b") != (tt.own == unsampled) {
			t.Errorf("%q: the backend got\n%s", tt.own, seen)
		}
	}
	if err := w.observers.tracer.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	if spans := kept.GetSpans(); len(spans) > 0 {
		t.Errorf("%d spans", len(spans))
	}
}

// With the names of OpenTelemetry each request and each exchange with a backend is measured, by what the conventions
// ask for.
func TestExchangesAreMeasured(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/cut" {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	defer backend.Close()
	c, err := config.Load("", config.Flags{Upstream: backend.URL, Dialect: "Plain"})
	if err != nil {
		t.Fatal(err)
	}
	c.Telemetry.Metrics.Names = config.MetricNames(config.OpenTelemetryNames)
	g := newTestGateway(t, c, noPolicies)
	address := startGateway(t, g)
	for _, path := range []string{"/tea", "/cut"} {
		exchangeRaw(t, address, []byte("POST "+path+" HTTP/1.1\r\nHost: gateway\r\nContent-Length: 0\r\n\r\n"))
	}
	if err := g.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	g.metrics.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	host, port, _ := strings.Cut(strings.TrimPrefix(backend.URL, "http://"), ":")
	for _, want := range []string{
		`http_server_request_duration_seconds_count\{gateway_group="other",gateway_resource="other",.*http_request_method="POST",http_response_status_code="418",url_scheme="http"\} 1`,
		`http_server_request_duration_seconds_count\{error_type="502",.*http_response_status_code="502",url_scheme="http"\} 1`,
		`http_client_request_duration_seconds_count\{error_type="418",.*http_request_method="POST",http_response_status_code="418",server_address="` + host + `",server_port="` + port + `"\} 1`,
		`http_client_request_duration_seconds_count\{error_type="[A-Za-z_]+",.*http_request_method="POST",server_address="` + host + `",server_port="` + port + `"\} 1`,
	} {
		if !regexp.MustCompile(`(?m)^` + want + `$`).MatchString(w.Body.String()) {
			t.Errorf("no line %s in\n%s", want, w.Body)
		}
	}
}
