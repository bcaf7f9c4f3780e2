package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/policies/policiestest"
)

// A shelf is an API that has one object at every path, and keeps the writes that it gets.
type shelf struct {
	sync.Mutex
	object string
	writes []string
}

func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.Lock()
	defer s.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Method != http.MethodGet {
		s.writes = append(s.writes, strings.TrimSpace(fmt.Sprintln("  backend:", r.Method, r.URL.Path, r.Header.Get("Content-Type"), string(body))))
	}
	_, _ = io.WriteString(w, s.object)
}

// play sends requests in lines such as 'PUT /users/1 application/json {}' by a gateway with the document, and returns what
// becomes of each: the answer, and what the backend gets.
func (s *shelf) play(t *testing.T, document, requests string) string {
	t.Helper()
	backend := httptest.NewServer(s)
	t.Cleanup(backend.Close)
	dir := policiestest.Write(t, document)
	url := "http://" + startGateway(t, gatewayFor(t, dir, strings.TrimPrefix(backend.URL, "http://"), nil))
	var told strings.Builder
	for line := range strings.Lines(requests) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		words := strings.SplitN(line+"   ", " ", 4)
		body := strings.TrimSpace(words[3])
		r, err := http.NewRequest(words[0], url+words[1], strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if words[2] != "" {
			r.Header.Set("Content-Type", words[2])
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		_, _ = fmt.Fprintln(&told, line)
		for _, warning := range resp.Header.Values("Warning") {
			_, _ = fmt.Fprintln(&told, "  warning:", warning)
		}
		var refusal metav1.Status
		if resp.StatusCode >= 400 && json.Unmarshal(answer, &refusal) == nil {
			answer = []byte(refusal.Message)
		}
		_, _ = fmt.Fprintf(&told, "  %d %s\n", resp.StatusCode, answer)
		s.Lock()
		for _, write := range s.writes {
			_, _ = fmt.Fprintln(&told, " ", write)
		}
		s.writes = nil
		s.Unlock()
	}
	return told.String()
}

// compare compares what became of requests with what should, line by line.
func compareLines(t *testing.T, got, want string) {
	t.Helper()
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(want)) {
		lines = append(lines, strings.TrimPrefix(strings.TrimRight(line, "\n"), "\t\t"))
	}
	if want = strings.Join(lines, "\n"); strings.TrimSpace(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestBodiesOfOperations: each media type has its own schema, and a body is needed only where the document says so, whatever
// the method.
func TestBodiesOfOperations(t *testing.T) {
	const document = `
openapi: 3.0.3
info: {title: Users, version: v1}
paths:
  /users:
    get: {responses: {'200': {description: ok}}}
    post:
      requestBody:
        content:
          application/json: {schema: {type: object, required: [name], properties: {name: {type: string, maxLength: 4}, role: {type: string, default: reader}}}}
          application/vnd.import+json: {schema: {type: array, maxItems: 2, items: {type: object, required: [name]}}}
          application/*: {schema: {type: object, required: [other]}}
      responses: {'201': {description: ok}}
  /users/{id}:
    get: {responses: {'200': {description: ok}}}
    put:
      requestBody: {content: {application/json: {schema: {type: object, required: [name]}}, application/vnd.short+json: {}}}
      responses: {'200': {description: ok}}
    patch:
      requestBody: {content: {application/json: {schema: {type: object, properties: {name: {type: string}}}}}}
      responses: {'200': {description: ok}}
    delete:
      requestBody: {required: true, content: {application/json: {schema: {type: object, required: [reason], properties: {reason: {type: string}}}}, text/plain: {}}}
      responses: {'204': {description: ok}}
  /users/{id}/stars/{star}:
    get: {responses: {'204': {description: ok}}}
    put: {responses: {'204': {description: ok}}}
    delete: {responses: {'204': {description: ok}}}
  /pins/{id}:
    put:
      requestBody: {required: true, content: {application/json: {schema: {type: object}}}}
      responses: {'200': {description: ok}}
`
	s := &shelf{object: `{"name":"ann"}`}
	compareLines(t, s.play(t, document, `
		POST /users application/json {"name":"annabel"}
		POST /users application/json {"name":"ann"}
		POST /users application/vnd.import+json [{"name":"annabel"}]
		POST /users application/vnd.import+json [{},{},{}]
		POST /users application/vnd.import+json {"name":"ann"}
		POST /users application/vnd.other+json {"name":"ann"}
		POST /users
		PUT /users/1 application/json {"name":7}
		PUT /users/1 application/json {}
		PUT /users/1 application/vnd.short+json {}
		PUT /users/1
		PATCH /users/1
		DELETE /users/1 application/json {"reason":"gone","kind":"Deployment"}
		DELETE /users/1 application/json {"reason":7}
		DELETE /users/1 application/json [
		DELETE /users/1 text/plain because
		DELETE /users/1 application/xml because
		DELETE /users/1
		PUT /users/1/stars/2
		PUT /users/1/stars/2 application/json {"any":"thing"}
		PUT /users/1/stars/2 text/plain thing
		DELETE /users/1/stars/2
		PUT /pins/1
	`), `
		POST /users application/json {"name":"annabel"}
		  422 User is invalid: name: Too long: must be at most 4 characters
		POST /users application/json {"name":"ann"}
		  200 {"name":"ann"}
		  backend: POST /users application/json {"name":"ann","role":"reader"}
		POST /users application/vnd.import+json [{"name":"annabel"}]
		  200 {"name":"ann"}
		  backend: POST /users application/vnd.import+json [{"name":"annabel"}]
		POST /users application/vnd.import+json [{},{},{}]
		  422 User is invalid: [Too many: 3: must have at most 2 items, [0].name: Required value, [1].name: Required value, [2].name: Required value]
		POST /users application/vnd.import+json {"name":"ann"}
		  warning: 299 - "unknown field \"name\""
		  422 User is invalid: Invalid value: "object": must be of type array
		POST /users application/vnd.other+json {"name":"ann"}
		  422 User is invalid: other: Required value
		POST /users
		  200 {"name":"ann"}
		  backend: POST /users
		PUT /users/1 application/json {"name":7}
		  200 {"name":"ann"}
		  backend: PUT /users/1 application/json {"name":7}
		PUT /users/1 application/json {}
		  422 User "1" is invalid: name: Required value
		PUT /users/1 application/vnd.short+json {}
		  200 {"name":"ann"}
		  backend: PUT /users/1 application/vnd.short+json {}
		PUT /users/1
		  200 {"name":"ann"}
		  backend: PUT /users/1
		PATCH /users/1
		  200 {"name":"ann"}
		  backend: PATCH /users/1
		DELETE /users/1 application/json {"reason":"gone","kind":"Deployment"}
		  200 {"name":"ann"}
		  backend: DELETE /users/1 application/json {"reason":"gone","kind":"Deployment"}
		DELETE /users/1 application/json {"reason":7}
		  422 User "1" is invalid: reason: Invalid value: "integer": must be of type string
		DELETE /users/1 application/json [
		  400 the body must be JSON that can be read in one way only: unexpected end of the document, a value must stand here at offset 1
		DELETE /users/1 text/plain because
		  200 {"name":"ann"}
		  backend: DELETE /users/1 text/plain because
		DELETE /users/1 application/xml because
		  415 the body of the request was in an unknown format - accepted media types include: application/json, text/plain
		DELETE /users/1
		  400 the body must not be empty
		PUT /users/1/stars/2
		  200 {"name":"ann"}
		  backend: PUT /users/1/stars/2
		PUT /users/1/stars/2 application/json {"any":"thing"}
		  200 {"name":"ann"}
		  backend: PUT /users/1/stars/2 application/json {"any":"thing"}
		PUT /users/1/stars/2 text/plain thing
		  200 {"name":"ann"}
		  backend: PUT /users/1/stars/2 text/plain thing
		DELETE /users/1/stars/2
		  200 {"name":"ann"}
		  backend: DELETE /users/1/stars/2
		PUT /pins/1
		  400 the body must not be empty
	`)
}
