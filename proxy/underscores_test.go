package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/policies/policiestest"
)

// TestDeclaredUnderscores: a header with '_' in its name reaches an operation whose document declares it, and no other.
// It never does if it is, read with '-', one that the gateway reads or sets, or another header of the request.
func TestDeclaredUnderscores(t *testing.T) {
	const pets = `
openapi: 3.0.3
info: {title: Pets, version: v1}
paths:
  /pets:
    get: {responses: {'200': {description: ok}}}
    post:
      security: [{key: []}, {}]
      requestBody: {content: {application/json: {schema: {type: object, properties: {id: {type: string}}}}}}
      responses: {'201': {description: ok}}
  /pets/{id}:
    get:
      parameters: [{name: x_remote_user, in: header, schema: {type: string}}, {name: content_type, in: header, schema: {type: string}}]
      responses: {'200': {description: ok}}
    delete:
      parameters: [{name: api_key, in: header, schema: {type: string, maxLength: 3}}]
      responses: {'204': {description: ok}}
components: {securitySchemes: {key: {type: apiKey, in: header, name: Api_Key}}}
`
	var sent []string
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, r.Method+" "+strings.Join(r.Header["Api_key"], ","))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"7"}`)
	}))
	defer backend.Close()
	address := startGateway(t, gatewayFor(t, policiestest.Write(t, pets), strings.TrimPrefix(backend.URL, "http://"),
		nil))
	for _, c := range []struct{ request, headers, code, sent, says string }{
		{"DELETE /pets/7", "api_key: k", "200", "DELETE k", ""},
		{"DELETE /pets/7", "API_KEY: k", "200", "DELETE k", ""},
		{"DELETE /pets/7", "api_key: long", "422", "", "header.api_key"},
		{"DELETE /pets/7", "api_key: k\r\nother_key: k", "400", "", "'other_key': a header name must not contain '_'"},
		{"DELETE /pets/7", "api_key: k\r\napi-key: l", "400", "",
			"the headers 'api_key' and 'api-key', which many servers take for one"},
		{"DELETE /pets/7", "api_key: k\r\nApi_Key: l", "400", "", "the headers 'api_key' and 'Api_Key'"},
		{"GET /pets/7", "api_key: k", "400", "", "'api_key': a header name must not contain '_'"},
		{"GET /pets/7", "x_remote_user: root", "400", "", "'x_remote_user': a header name must not contain '_'"},
		{"GET /pets/7", "content_type: text/html", "400", "", "'content_type': a header name must not contain '_'"},
		{"POST /pets", "api_key: k\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", "200", "POST k",
			""},
		{"GET /elsewhere", "api_key: k", "200", "GET k", ""},
	} {
		sent = nil
		end := "\r\n\r\n"
		if strings.Contains(c.headers, "\r\n\r\n") {
			end = ""
		}
		answer := string(exchangeRaw(t, address,
			[]byte(c.request+" HTTP/1.1\r\nHost: pets.example.com\r\nConnection: close\r\n"+c.headers+end)))
		if !strings.HasPrefix(answer, "HTTP/1.1 "+c.code) || !strings.Contains(answer, c.says) ||
			strings.Join(sent, "\n") != c.sent {
			t.Errorf("%s with %q: the backend got %q, the answer is %s", c.request, c.headers, sent, answer)
		}
	}
}
