package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/backend"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/testutil"
)

const answeredDocument = `openapi: 3.0.3
info: {title: desks, version: "1"}
paths:
  /api/desks:
    post:
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Desk'}}}}
      responses: {202: {description: taken, content: {application/json: {schema: {$ref: '#/components/schemas/Desk'}}}}}
    get: {responses: {200: {description: all, content: {application/json: {schema: {type: object, properties: {items: {type: array, items: {$ref: '#/components/schemas/Desk'}}}}}}}}}
  /api/desks/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    get: {responses: {200: {description: one, content: {application/json: {schema: {$ref: '#/components/schemas/Desk'}}}}}}
    put:
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Desk'}}}}
      responses: {204: {description: done}}
    delete: {responses: {200: {description: gone, content: {application/json: {schema: {$ref: '#/components/schemas/Desk'}}}}}}
  /api/desks/{id}/reserve:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    post: {responses: {201: {description: reserved, content: {application/json: {example: {number: 12345678901234567890, state: Reserved}}}}, 409: {description: taken}}}
  /api/desks/{id}/state:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    post:
      responses:
        2XX:
          description: the state
          content:
            application/json:
              schema:
                allOf: [{$ref: '#/components/schemas/Desk'}, {type: object, required: [since, by], properties: {since: {type: string, format: date-time}, by: {type: array, minItems: 2, items: {type: string, maxLength: 2}}}}]
  /api/clear:
    post: {responses: {204: {description: done}}}
components:
  schemas:
    Desk:
      type: object
      required: [id, floor, mode]
      properties: {id: {type: string}, floor: {type: integer, minimum: 3}, mode: {type: string, enum: [Quiet, Loud]}, secret: {type: string, writeOnly: true}, next: {$ref: '#/components/schemas/Desk'}}
`

// TestDocumentedAnswers: the API in memory answers by the status codes of the document, and operations that are no
// verbs of resources by an example of it, or by what its schema requires.
func TestDocumentedAnswers(t *testing.T) {
	resolvers, successes, err := described(
		[]string{testutil.WriteFiles(t, map[string]string{"desks.yaml": answeredDocument})})
	if err != nil {
		t.Fatal(err)
	}
	said := []resource.Success(nil)
	api := backend.New(backend.Options{Described: resolvers, Successes: func() []resource.Success { return said }})
	if code := answered(api, "PUT /api/desks/z",
		`{"id":"z","floor":4,"mode":"Loud"}`).Code; code != http.StatusCreated {
		t.Errorf("before the document says anything the answer is %d", code)
	}
	said = successes // the policies were read again
	for _, c := range []struct{ request, body, want string }{
		{"POST /api/desks", `{"id":"a","floor":3,"mode":"Quiet"}`, `202 {"id":"a","floor":3,"mode":"Quiet"}`},
		{"GET /api/desks/a", "", `200 {"id":"a","floor":3,"mode":"Quiet"}`},
		{"PUT /api/desks/a", `{"id":"a","floor":4,"mode":"Loud"}`, `204 `},
		{"PUT /api/desks/b", `{"id":"b","floor":4,"mode":"Loud"}`, `204 `},
		{"GET /api/desks/a", "", `200 {"id":"a","floor":4,"mode":"Loud"}`},
		{"POST /api/desks/a/reserve", "", `201 {"number":12345678901234567890,"state":"Reserved"}`},
		{"POST /api/desks/a/state", `{}`, `200 {"by":["te","te"],"floor":3,"id":"text","mode":"Quiet","since":"2030-01-01T00:00:00Z"}`},
		{"POST /api/clear", `{}`, `204 `},
		{"DELETE /api/desks/a", "", `200 `},
		{"GET /api/desks/a", "", "404 /api/desks/a does not exist\n"},
	} {
		w := answered(api, c.request, c.body)
		if got := fmt.Sprint(w.Code, " ", w.Body); got != c.want {
			t.Errorf("%s: got %q, want %q", c.request, got, c.want)
		}
	}
}

// answered returns the answer of the API in memory to a request.
func answered(api *backend.Server, request, body string) *httptest.ResponseRecorder {
	method, path, _ := strings.Cut(request, " ")
	w := httptest.NewRecorder()
	api.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w
}

// TestDemoAnswers: the API of the demo answers as the documents among its policies say at the moment; with an error in
// them, as they said before.
func TestDemoAnswers(t *testing.T) {
	dir := t.TempDir()
	d := documentedAnswers{dir: dir}
	codes := func() string {
		for _, s := range d.now() {
			if s.Method == http.MethodPost && slices.Contains(s.Templates, "/api/desks") {
				return fmt.Sprint(s.Codes)
			}
		}
		return "none"
	}
	for _, step := range []struct{ text, want string }{
		{"", "none"},
		{answeredDocument, "[202]"},
		{strings.Replace(answeredDocument, "{202:", "{201:", 1), "[201]"},
		{"openapi: nonsense\n", "[201]"},
	} {
		if step.text != "" {
			testutil.WriteFile(t, filepath.Join(dir, "desks.yaml"), step.text)
		}
		if got := codes(); got != step.want {
			t.Errorf("got %s, want %s", got, step.want)
		}
	}
}
