package proxy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/rollout"
	"github.com/admission-gateway/gateway/internal/testutil/scenario"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// TestTriedCounts: what a description that is only tried would have refused is counted by operation and reason, without
// a value of the client's, and clients do not learn of it if it only observes. The share for which it is enforced is
// refused.
func TestTriedCounts(t *testing.T) {
	const file = "apiVersion: admission-gateway.io/v1alpha1\nkind: APIResource\nmetadata: {name: tasks}\nspec:\n  version: v1\n  names: {plural: tasks, kind: Task}\n" +
		"  paths: {collection: /v1/tasks, item: '/v1/tasks/{name}'}\n  rollout: {%s}\n" +
		"  schema: {openAPIV3Schema: {type: object, required: [size], properties: {size: {type: integer, maximum: 9}, card: {type: string, maxLength: 4}}}}\n"
	const secret = "4111111111111111"
	for _, c := range []struct {
		rollout          string
		enforced, warned bool
	}{
		{"mode: Observe", false, false}, {"mode: Warn", false, true}, {"percent: 0", false, true},
		{"percent: 100", true, false}, {"mode: Observe, percent: 100", true, false},
		{"warnUntil: '2999-01-01T00:00:00Z'", false, true},
		{"mode: Observe, warnUntil: '1999-01-01T00:00:00Z'", true, false},
	} {
		t.Run(c.rollout, func(t *testing.T) {
			dir := policiestest.Write(t, fmt.Sprintf(file, c.rollout))
			answer := "HTTP/1.1 201 Created\nContent-Type: application/json\nContent-Length: 2\n\n{}\n"
			backend := scenario.NewBackend(t, listenBackend(t),
				[][]byte{[]byte(answer), []byte(answer), []byte(answer), []byte(answer)})
			g := gatewayFor(t, dir, backend.Address, nil)
			address := startGateway(t, g)
			for i, body := range []string{`{"size":3}`, `{"card":"` + secret + `"}`, `{"card":"` + secret + `"}`,
				`{"size":30}`} {
				raw := string(exchangeRaw(t, address, fmt.Appendf(nil, "POST /v1/tasks HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)))
				if isRefused := strings.HasPrefix(raw, "HTTP/1.1 422 "); isRefused != (c.enforced && i > 0) ||
					!isRefused && !strings.HasPrefix(raw, "HTTP/1.1 201 ") {
					t.Errorf("%s is answered with\n%s", body, raw)
				}
				if isWarned := strings.Contains(raw, "\nWarning: "); isWarned != (c.warned && i > 0) {
					t.Errorf("%s is answered with\n%s", body, raw)
				}
			}
			count := g.policies().Terms().Rollouts[0].Count()
			got, numbers := count.Operations(), count.Numbers()
			if c.enforced {
				if got != nil || numbers.Tried != 0 {
					t.Errorf("%+v of %+v was tried", got, numbers)
				}
				return
			}
			for i := range got {
				for j := range got[i].Examples {
					got[i].Examples[j].Last = time.Time{}
				}
			}
			want := []rollout.OperationNumbers{{Method: "POST", Path: "/v1/tasks", Would: 3, Tried: 4,
				Examples: []rollout.Example{
					{Code: 422, Reason: "Invalid", Fields: []string{"size", "card"}, Count: 2},
					{Code: 422, Reason: "Invalid", Fields: []string{"size"}, Count: 1},
				}}}
			if !reflect.DeepEqual(got, want) || numbers.Would != 3 || numbers.Tried != 4 {
				t.Errorf("got %+v, %+v\nwant %+v", got, numbers, want)
			}
		})
	}
}

// TestTriedUnjudged: a body that would have to be read to its end before anything is sent passes, and is not judged;
// one that is too long passes, and would be refused.
func TestTriedUnjudged(t *testing.T) {
	dir := policiestest.Write(t, "apiVersion: admission-gateway.io/v1alpha1\nkind: APIResource\nmetadata: {name: tasks}\nspec:\n  version: v1\n  names: {plural: tasks, kind: Task}\n"+
		"  paths: {collection: /v1/tasks}\n  rollout: {mode: Observe}\n  schema: {openAPIV3Schema: {type: object}}\n")
	answer := []byte("HTTP/1.1 201 Created\nContent-Type: application/json\nContent-Length: 2\n\n{}\n")
	backend := scenario.NewBackend(t, listenBackend(t), [][]byte{answer, answer})
	g := gatewayFor(t, dir, backend.Address, nil)
	address := startGateway(t, g)
	long := strings.Repeat("a", 4<<20)
	for _, request := range []string{
		"POST /v1/tasks HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		fmt.Sprintf("POST /v1/tasks HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(long), long),
	} {
		if raw := string(exchangeRaw(t, address, []byte(request))); !strings.HasPrefix(raw, "HTTP/1.1 201 ") {
			t.Errorf("the answer is\n%s", raw)
		}
	}
	got := g.policies().Terms().Rollouts[0].Count().Operations()
	if len(got) != 1 || got[0].Tried != 2 || got[0].Would != 1 || got[0].Unjudged != 1 ||
		got[0].Examples[0].Code != 413 {
		t.Errorf("got %+v", got)
	}
}

const triedDocument = `
openapi: 3.1.0
info: {title: Shop, version: "1"}
x-admission-gateway-resource: {rollout: {mode: Observe}}
paths:
  /items: {get: {parameters: [{name: limit, in: query, schema: {type: integer, maximum: 50}}]}, post: {requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Item'}}}}}}
  /items/{id}: {get: {}, put: {requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Item'}}}}}, delete: {security: [{key: []}]}}
  /items/{id}/buy: {post: {parameters: [{name: X-Shop, in: header, required: true, schema: {type: string}}], requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Item'}}}}}}
components:
  securitySchemes: {key: {type: http, scheme: bearer}}
  schemas:
    Item: {type: object, required: [name], properties: {name: {type: string, maxLength: 3}, size: {type: integer, default: 1}}}
`

// TestTrialsOfDocument: a document that is only observed changes no request, no answer and nothing for the client. Each
// request is counted by its operation, and by the reason for which it would be refused, in metrics and in the report.
func TestTrialsOfDocument(t *testing.T) {
	backend := newRecorder(t)
	w := watch(t, backend, policiestest.Write(t, triedDocument))
	for _, c := range []struct{ line, body, headers string }{
		{"GET /items?limit=10", "", ""},
		{"GET /items?limit=51", "", ""},
		{"POST /items", ` {"name": "tea"} `, ""}, // no default is filled in
		{"POST /items", `{"name":"coffee"}`, ""},
		{"POST /items", `{"name":"coffee","size":"s"}`, ""},
		{"POST /items", `{"name":"coffee","size":"t"}`, ""},
		{"POST /items", `{"name":"a","name":"b"}`, ""},
		{"POST /items", `name: tea`, "Content-Type: text/plain\r\n"},
		{"POST /items", ``, ""},
		{"PUT /items/1", `{"name":"tea"}`, ""},
		{"PUT /items/1", `{}`, ""},
		{"DELETE /items/1", "", ""},
		{"DELETE /items/1", "", "Authorization: Bearer x\r\n"},
		{"POST /items/1/buy", `{"name":"tea"}`, "X-Shop: a\r\n"},
		{"POST /items/1/buy", `{"name":"tea"}`, ""},
		{"GET /elsewhere", "", ""},
	} {
		headers := c.headers
		if c.body != "" && headers != "Content-Type: text/plain\r\n" {
			headers += "Content-Type: application/json\r\n"
		}
		if c.body != "" {
			headers += fmt.Sprintf("Content-Length: %d\r\n", len(c.body))
		}
		backend.Take()
		answer := string(exchangeRaw(t, w.address, []byte(c.line+" HTTP/1.1\r\nHost: a\r\n"+headers+"\r\n"+c.body)))
		if !strings.HasPrefix(answer, "HTTP/1.1 20") || strings.Contains(answer, "\nWarning: ") {
			t.Errorf("%s %s is answered with\n%s", c.line, c.body, answer)
		}
		got := backend.Take()
		_, got, _ = strings.Cut("\r\n\r\n"+got, "\r\n\r\n"+c.line) // behind a question of the gateway's own
		if !strings.HasPrefix(got, " HTTP/1.1\r\n") || !strings.HasSuffix(got, "\r\n\r\n"+c.body) {
			t.Errorf("%s %s: the backend got %q", c.line, c.body, got)
		}
	}
	metrics := httptest.NewRecorder()
	w.metrics.Handler().ServeHTTP(metrics, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	var got []string
	for line := range strings.Lines(metrics.Body.String()) {
		if strings.HasPrefix(line, "gateway_contract_") || strings.HasPrefix(line, "gateway_admission_") ||
			strings.HasPrefix(line, "gateway_schema_") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	trial := func(operation, result string, times int) string {
		return fmt.Sprintf(`gateway_contract_trials_total{document="OpenAPI/Shop",operation=%q,result=%q} %d`, operation, result, times)
	}
	want := []string{
		`gateway_admission_would_deny_total{policy="OpenAPI/Shop"} 10`,
		trial("DELETE /items/{id}", "Admitted", 1), trial("DELETE /items/{id}", "Unauthorized", 1),
		trial("GET /items", "Admitted", 1), trial("GET /items", "Invalid", 1),
		trial("POST /items", "Admitted", 1), trial("POST /items", "BadRequest", 2), trial("POST /items", "Invalid", 3),
		trial("POST /items", "UnsupportedMediaType", 1),
		trial("POST /items/{id}/buy", "Admitted", 1), trial("POST /items/{id}/buy", "Invalid", 1),
		trial("PUT /items/{id}", "Admitted", 1), trial("PUT /items/{id}", "Invalid", 1),
	}
	if !slices.Equal(got, want) {
		t.Errorf("the metrics have\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var report []string
	for _, o := range w.policies().Terms().Rollouts[0].Count().Operations() {
		report = append(report, fmt.Sprintf("%s %s: %d of %d", o.Method, o.Path, o.Would, o.Tried))
		for _, e := range o.Examples {
			report = append(report, fmt.Sprintf("  %d %s %v %d times", e.Code, e.Reason, e.Fields, e.Count))
		}
	}
	wantReport := []string{
		"POST /items: 6 of 7", "  400 BadRequest [] 2 times", "  422 Invalid [name size] 2 times",
		"  415 UnsupportedMediaType [] 1 times", "  422 Invalid [name] 1 times",
		"GET /items: 1 of 2", "  422 Invalid [query.limit] 1 times", "DELETE /items/{id}: 1 of 2",
		"  401 Unauthorized [] 1 times",
		"PUT /items/{id}: 1 of 2", "  422 Invalid [name] 1 times", "POST /items/{id}/buy: 1 of 2",
		"  422 Invalid [header.X-Shop] 1 times",
	}
	if !slices.Equal(report, wantReport) {
		t.Errorf("the report is\n%s\nwant\n%s", strings.Join(report, "\n"), strings.Join(wantReport, "\n"))
	}
}
