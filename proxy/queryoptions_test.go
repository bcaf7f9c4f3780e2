package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/policies/policiestest"
)

// TestQueryOptions: the query parameters that Kubernetes has for every resource are an ordinary API's own. They are
// checked as its document declares them, and reach it untouched, unless a file says that they are Kubernetes'.
func TestQueryOptions(t *testing.T) {
	const runs = `
openapi: 3.0.3
info: {title: Runs, version: v1}
x-admission-gateway-resource: {group: runs.example.com, version: v1SETTING}
paths:
  /runs:
    parameters:
    - {name: dryRun, in: query, schema: {type: boolean}}
    - {name: limit, in: query, schema: {type: array, items: {type: string}}}
    - {name: timeout, in: query, schema: {type: integer}}
    - {name: watch, in: query, schema: {enum: [prices, news]}}
    get: {responses: {'200': {description: ok}}}
    post: {requestBody: {content: {application/json: {schema: {type: object, properties: {id: {type: string}}}}}}, responses: {'201': {description: ok}}}
  /runs/{id}:
    parameters:
    - {name: dryRun, in: query, schema: {type: boolean}}
    get: {responses: {'200': {description: ok}}}
    put: {requestBody: {content: {application/json: {schema: {type: object, properties: {id: {type: string}}}}}}, responses: {'200': {description: ok}}}
    patch: {requestBody: {content: {application/json: {schema: {type: object, properties: {id: {type: string}}}}}}, responses: {'200': {description: ok}}}
    delete: {responses: {'204': {description: ok}}}
  /runs/{id}/stop:
    post:
      x-admission-gateway-operation: stop
      parameters: [{name: dryRun, in: query, schema: {type: boolean}}]
      responses: {'200': {description: ok}}
`
	const own, kubernetes, emulated = "", ", queryOptions: Kubernetes", ", backend: {dryRun: Emulated}"
	for _, c := range []struct {
		setting, request string
		code             int
		sent             string // to the backend by a method that is not GET, or by a GET of the client's
		says             string
	}{
		{own, "POST /runs?dryRun=true", 200, "POST /runs?dryRun=true", ""},
		{own, "POST /runs?dryRun=All", 422, "", "query.dryRun: Invalid value: \\\"All\\\": must be 'true' or 'false'"},
		{own, "POST /runs?fieldValidation=none&fieldManager=%00&propagationPolicy=", 200,
			"POST /runs?fieldValidation=none&fieldManager=%00&propagationPolicy=", ""},
		{own, "PUT /runs/7?dryRun=true&pretty=1&pretty=2", 200, "PUT /runs/7?dryRun=true&pretty=1&pretty=2", ""},
		{own, "PATCH /runs/7?dryRun=false&force=maybe", 200, "PATCH /runs/7?dryRun=false&force=maybe", ""},
		{own, "DELETE /runs/7?dryRun=true&gracePeriodSeconds=soon", 200,
			"DELETE /runs/7?dryRun=true&gracePeriodSeconds=soon", ""},
		{own, "GET /runs?limit=a&limit=b&watch=news&timeout=5&continue=x", 200,
			"GET /runs?limit=a&limit=b&watch=news&timeout=5&continue=x", ""},
		{own, "GET /runs?watch=true", 422, "", "query.watch"},
		{own, "POST /runs/7/stop?dryRun=true", 200, "POST /runs/7/stop?dryRun=true", ""},
		{own, "POST /runs?_method=PUT", 400, "", "_method"},
		{kubernetes, "POST /runs?dryRun=true", 422, "", `CreateOptions.meta.k8s.io \"\" is invalid: dryRun`},
		{kubernetes, "POST /runs/7/stop?dryRun=true", 422, "", `CreateOptions.meta.k8s.io \"\" is invalid: dryRun`},
		{kubernetes, "GET /runs?limit=a&limit=b", 400, "",
			"the query parameter 'limit' may not be given more than once"},
		{emulated, "PUT /runs/7?dryRun=true", 422, "", `UpdateOptions.meta.k8s.io \"\" is invalid: dryRun`},
		{", backend: {dryRun: Emulated}, queryOptions: Backend", "PUT /runs/7?dryRun=true", 200,
			"PUT /runs/7?dryRun=true", ""},
	} {
		var sent []string
		backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sent = append(sent, r.Method+" "+r.RequestURI)
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("ETag", `"1"`)
			_, _ = io.WriteString(w, `{"id":"7"}`)
		}))
		dir := policiestest.Write(t, strings.ReplaceAll(runs, "SETTING", c.setting))
		url := "http://" + startGateway(t, gatewayFor(t, dir, strings.TrimPrefix(backend.URL, "http://"), nil))
		method, target, _ := strings.Cut(c.request, " ")
		body := ""
		if slices.Contains([]string{"POST", "PUT", "PATCH"}, method) && !strings.Contains(target, "stop") {
			body = `{"id":"7"}`
		}
		r, err := http.NewRequest(method, url+target, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		sent = slices.DeleteFunc(sent, func(s string) bool { return method != "GET" && strings.HasPrefix(s, "GET ") })
		if resp.StatusCode != c.code || strings.Join(sent, "\n") != c.sent || !strings.Contains(string(text), c.says) {
			t.Errorf("%s %s: %d %s, the backend got %q, want %d, %q", c.setting, c.request, resp.StatusCode, text, sent,
				c.code, c.sent)
		}
		backend.Close()
	}
}
