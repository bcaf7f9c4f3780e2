package proxy

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/policies/policiestest"
)

const shelves = `
openapi: 3.0.3
info: {title: Shelves, version: v1}
x-admission-gateway-resource: {group: shelves.example.com, version: v1, concurrency: BestEffort, readDefaults: Fill, storedObject: Shown}
paths:
  /shelves:
    get: {responses: {'200': {description: ok}}}
    post: {requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Shelf'}}}}, responses: {'201': {description: ok}}}
  /shelves/{id}:
    get: {responses: {'200': {description: ok}}}
    put: {requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Shelf'}}}}, responses: {'200': {description: ok}}}
components:
  schemas: {Shelf: {type: object, properties: {id: {type: string}, wide: {type: integer, default: 7}, owner: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}}}}
`

// TestEncodedAnswers: a backend that encodes its answers although it was asked not to is read all the same.
func TestEncodedAnswers(t *testing.T) {
	const items = 20_000
	var list strings.Builder
	list.WriteString(`[{"id":"0"}`)
	for i := 1; i < items; i++ {
		_, _ = fmt.Fprintf(&list, `,{"id":"%d"}`, i)
	}
	list.WriteString("]")
	for _, coding := range []string{"gzip", "deflate", "br", "zstd", "x-odd", "gzip of nothing", "half a gzip"} {
		written := ""
		backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text := `{"id":"7","owner":"me"}`
			if r.URL.Path == "/shelves" {
				text = list.String()
			}
			if r.Method == http.MethodPut {
				b, _ := io.ReadAll(r.Body)
				written = string(b)
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("ETag", `"1"`)
			switch coding {
			case "gzip of nothing":
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = io.WriteString(w, text)
			case "half a gzip":
				w.Header().Set("Content-Encoding", "gzip")
				whole := encoded(t, "gzip", text)
				_, _ = io.WriteString(w, whole[:len(whole)-10])
			default:
				w.Header().Set("Content-Encoding", coding)
				_, _ = io.WriteString(w, encoded(t, coding, text))
			}
		}))
		url := "http://" + startGateway(t,
			gatewayFor(t, policiestest.Write(t, shelves), strings.TrimPrefix(backend.URL, "http://"), nil))
		ask := func(method, path, body string) (*http.Response, string, error) {
			r, _ := http.NewRequest(method, url+path, strings.NewReader(body))
			r.Header.Set("Accept-Encoding", "identity")
			if body != "" {
				r.Header.Set("Content-Type", "application/json")
			}
			resp, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			b, err := io.ReadAll(resp.Body)
			return resp, string(b), err
		}
		good := !strings.Contains(coding, " ") && coding != "x-odd"
		resp, body, err := ask("GET", "/shelves/7", "")
		if good && (body != `{"id":"7","owner":"me","wide":7}` || resp.Header.Get("Content-Encoding") != "" ||
			unrevised.ReplaceAllString(resp.Header.Get("ETag"), "${1}*") != `"1-gateway-*"`) ||
			!good && resp.StatusCode != 502 && err == nil {
			t.Errorf("%s: an object: %d %s, %v", coding, resp.StatusCode, body, err)
		}
		resp, body, err = ask("GET", "/shelves", "")
		want := strings.ReplaceAll(list.String(), "}", `,"wide":7}`)
		if good && (body != want || err != nil) || !good && resp.StatusCode != 502 && err == nil {
			t.Errorf("%s: a list: %d, %d bytes, want %d, %v", coding, resp.StatusCode, len(body), len(want), err)
		}
		if resp, body, err = ask("HEAD", "/shelves/7", ""); resp.StatusCode != 200 && good || body != "" || err != nil {
			t.Errorf("%s: a head: %d %q, %v", coding, resp.StatusCode, body, err)
		}
		resp, body, _ = ask("PUT", "/shelves/7", `{"id":"7","owner":"you"}`)
		if good && (resp.StatusCode != 422 || !strings.Contains(body, "owner")) || !good && resp.StatusCode != 502 ||
			written != "" {
			t.Errorf("%s: a change of what may not change: %d %s, written %s", coding, resp.StatusCode, body, written)
		}
		backend.Close()
	}
}
