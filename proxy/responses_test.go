package proxy

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

const declaredAnswers = `
openapi: 3.1.0
info: {title: Users, version: "1"}
x-admission-gateway-resource: {responses: Warn, readDefaults: Fill, concurrency: BestEffort, queryOptions: Kubernetes}
paths:
  /users:
    get:
      responses:
        '200': {description: all, content: {application/json: {schema: {type: array, items: {$ref: '#/components/schemas/User'}}}}}
    post:
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/User'}}}}
      responses:
        '201': {description: created, content: {application/json: {schema: {$ref: '#/components/schemas/User'}}}}
        '4XX': {description: wrong, content: {application/problem+json: {schema: {type: object, required: [title]}}}}
  /users/{id}:
    get:
      responses:
        '200':
          description: one
          headers:
            X-Limit: {required: true, schema: {type: integer, maximum: 9}}
            Set-Cookie: {schema: {type: string}}
            Content-Type: {required: true, schema: {type: integer}}
          content:
            application/json: {schema: {$ref: '#/components/schemas/User'}}
            text/*: {schema: {type: string}}
        '404': {$ref: '#/components/responses/Missing'}
        '5xx': {description: failed}
        '502': {description: failed elsewhere, content: {application/json: {schema: {type: [string, 'null'], maxLength: 3}}}}
    put:
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/User'}}}}
      responses: {'200': {description: replaced, content: {application/json: {schema: {$ref: '#/components/schemas/User'}}}}}
    delete: {responses: {default: {description: gone}}}
  /accounts/{id}:
    x-admission-gateway-resource: {backend: {patch: Emulated}}
    get: {responses: {'200': {description: one, content: {application/json: {schema: {$ref: '#/components/schemas/Account'}}}}}}
    put:
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Account'}}}}
      responses: {'200': {description: replaced, content: {application/json: {schema: {$ref: '#/components/schemas/Account'}}}}}
  /users/{id}/activate:
    post:
      x-admission-gateway-operation: activate
      responses: {'202': {description: accepted}}
  /notes/{id}:
    x-admission-gateway-resource: {responses: Ignore}
    get: {responses: {'200': {description: one, content: {application/json: {schema: {$ref: '#/components/schemas/User'}}}}}}
components:
  responses: {Missing: {description: missing, content: {application/json: {schema: {type: object, properties: {code: {const: 404}}}}}}}
  schemas:
    User:
      type: object
      required: [id, name, secret]
      properties:
        id: {type: integer, readOnly: true}
        name: {type: string, maxLength: 5}
        state: {type: string, default: new}
        secret: {type: string, writeOnly: true}
        keys: {type: object, additionalProperties: {type: object, properties: {pin: {type: integer, writeOnly: true}}}}
        other: {oneOf: [{type: object, properties: {b: {type: string, writeOnly: true}}}, {type: string}]}
        way: {oneOf: [{type: object, required: [a], properties: {a: {type: string}, b: {type: string, writeOnly: true}}}, {type: 'null'}]}
      x-kubernetes-validations: [{rule: "self.name != 'root'", message: nobody is called so}]
    Account: {type: object, properties: {size: {type: integer, maximum: 9}}}
`

// answerOf returns an answer with a body.
func answerOf(code int, lines, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\n%sContent-Length: %d\r\n\r\n%s", code, http.StatusText(code), lines,
		len(body), body)
}

// said are the lines of the log about answers.
func (w *watched) said(t *testing.T) string {
	t.Helper()
	var said []string
	for line := range strings.Lines(w.lines(t)) {
		if _, about, found := strings.Cut(line, `msg="an answer is not `); found {
			said = append(said, about)
		}
	}
	return strings.Join(said, "")
}

// counted are the counters of answers.
func (w *watched) counted() string {
	page := httptest.NewRecorder()
	w.metrics.Handler().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	var lines []string
	for line := range strings.Lines(page.Body.String()) {
		if name, found := strings.CutPrefix(line, "gateway_response_"); found {
			lines = append(lines, strings.TrimSpace(name))
		}
	}
	return strings.Join(lines, "\n")
}

// TestDeclaredAnswers: answers that are not what the document declares are counted and logged, and pass as they come.
func TestDeclaredAnswers(t *testing.T) {
	const isJSON, limit = "Content-Type: application/json; charset=utf-8\r\n", "X-Limit: 3\r\n"
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(`{"id":1,"name":"longer"}`))
	_ = z.Close()
	large := `{"id":1,"name":"` + strings.Repeat("x", 100<<10) + `"}`
	valid, invalid := `checks_total{resource="users",result="Valid"} 1`,
		`checks_total{resource="users",result="Invalid"} 1`
	unchecked := `checks_total{resource="users",result="Unchecked"} 1`
	violated := func(kinds ...string) string {
		text := invalid
		for _, kind := range kinds {
			text += "\n" + `violations_total{kind="` + kind + `",resource="users"} 1`
		}
		return text
	}
	const declared, users = "what the API's document declares\" upstream=default resource=", "users verb="
	for _, test := range []struct {
		name, request, answer string
		counted, said         string
		passes                string // the body that the client gets; the answer's if it is empty
	}{
		{"a good one", "GET /users/1",
			answerOf(200, isJSON+limit, `{"id":1,"name":"ann","state":"new","way":null,"more":[null]}`), valid, "", ""},
		{"one that the gateway completes", "GET /users/1", answerOf(200, isJSON+limit, `{"id":1,"name":"ann"}`), valid,
			"", `{"id":1,"name":"ann","state":"new"}`},
		{"no body in the head alone", "HEAD /users/1", "HTTP/1.1 200 OK\r\n" + isJSON + limit +
			"Content-Length: 9\r\n\r\n", valid, "", "-"},
		{
			"another code", "GET /users/1", answerOf(203, isJSON, `{}`), violated("Code"),
			declared + users + "get code=203 kind=Code field=\"\" cause=\"must be declared\" more=0 times=1\n",
			`{"state":"new"}`,
		},
		{"a code of HTTP itself", "GET /users/1", "HTTP/1.1 304 Not Modified\r\n\r\n", valid, "", "-"},
		{"a range of codes", "GET /users/1", answerOf(503, "Content-Type: text/html\r\n", "down"), valid, "", ""},
		{"a code goes before its range, and may stand for a text", "GET /users/1", answerOf(502, isJSON, `"abcd"`),
			violated("Body"),
			declared + users + "get code=502 kind=Body field=\"\" cause=\"Too long: must be at most 3 characters\" more=0 times=1\n", ""},
		{"null where it may be", "GET /users/1", answerOf(502, isJSON, `null`), valid, "", ""},
		{"all others", "DELETE /users/1", answerOf(418, "Content-Type: text/html\r\n", "no"), valid, "", ""},
		{"by reference", "GET /users/1", answerOf(404, isJSON, `{"code":405}`), violated("Body"),
			declared + users + "get code=404 kind=Body field=code cause=\"Unsupported value: supported values: \\\"404\\\"\" more=0 times=1\n", ""},
		{"another media type", "GET /users/1", answerOf(200, "Content-Type: application/xml\r\n"+limit, `<a/>`),
			violated("MediaType"),
			declared + users + "get code=200 kind=MediaType field=\"\" cause=\"must be one of 'application/json', 'text/*'\" more=0 times=1\n", ""},
		{"a range of media types", "GET /users/1", answerOf(200, "Content-Type: text/plain\r\n"+limit, `1`), valid, "",
			""},
		{"no media type", "GET /users/1", answerOf(200, limit, `{}`), violated("MediaType"),
			declared + users + "get code=200 kind=MediaType field=\"\" cause=\"must be named by a Content-Type\" more=0 times=1\n", ""},
		{"no body", "GET /users/1", answerOf(200, limit, ""), violated("Body"),
			declared + users + "get code=200 kind=Body field=\"\" cause=\"must not be missing\" more=0 times=1\n", "-"},
		{"headers", "GET /users/1", answerOf(200, isJSON+"Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n",
			`{"id":1,"name":"ann","state":"a"}`), violated("Header"),
			declared + users + "get code=200 kind=Header field=header.X-Limit cause=\"Required value\" more=0 times=1\n", ""},
		{"values of headers", "GET /users/1",
			answerOf(200, isJSON+"x-limit: 10\r\n", `{"id":1,"name":"ann","state":"a"}`), violated("Header"),
			declared + users + "get code=200 kind=Header field=header.X-Limit cause=\"Invalid value: must be less than or equal to 9\" more=0 times=1\n", ""},
		{
			"fields", "GET /users", answerOf(200, isJSON, `[{"id":1,"name":"ann"},{"name":null,"secret":"x","keys":{"k":{"pin":"1"}},"way":{"a":"","b":""},"other":{"b":""}}]`),
			violated("Body", "WriteOnly"),
			declared + users + "list code=200 kind=Body field=[1].id cause=\"Required value\" more=4 times=1\n" +
				declared + users + "list code=200 kind=WriteOnly field=[1].keys.k.pin cause=\"must not be shown: it is writeOnly\" more=2 times=1\n",
			`[{"id":1,"name":"ann","state":"new"},{"name":null,"secret":"x","keys":{"k":{"pin":"1"}},"way":{"a":"","b":""},"other":{"b":""},"state":"new"}]`,
		},
		{"a rule", "GET /users", answerOf(200, isJSON, `[{"id":1,"name":"root"}]`), violated("Body"),
			declared + users + "list code=200 kind=Body field=[0] cause=\"Invalid value: nobody is called so\" more=0 times=1\n", `[{"id":1,"name":"root","state":"new"}]`},
		{"no JSON", "GET /users/1", answerOf(404, isJSON, `{"code":404,"code":404}`), violated("Body"),
			declared + users + "get code=404 kind=Body field=\"\" cause=\"must be JSON that can be read in one way only\" more=0 times=1\n", ""},
		{"an encoded one", "GET /users/1", answerOf(502, isJSON+"Content-Encoding: gzip\r\n", packed.String()),
			violated("Body"),
			declared + users + "get code=502 kind=Body field=\"\" cause=\"Invalid value: must be of type string\" more=0 times=1\n", ""},
		{"one that is not encoded as it says", "GET /users/1", answerOf(502, isJSON+"Content-Encoding: gzip\r\n", "{}"),
			violated("Body"),
			declared + users + "get code=502 kind=Body field=\"\" cause=\"must be encoded as its Content-Encoding says\" more=0 times=1\n", ""},
		{"an encoding that nobody knows", "GET /users/1", answerOf(502, isJSON+"Content-Encoding: x-own\r\n", "{}"),
			unchecked,
			"held to the API's document\" upstream=default resource=users verb=get code=502 cause=\"the body is encoded in a way that the gateway does not know\" times=1\n", ""},
		{"a stream", "POST /users", answerOf(201, isJSON, large), violated("Body"),
			declared + users + "create code=201 kind=Body field=name cause=\"Too long: must be at most 5 characters\" more=1 times=1\n", ""},
		{"a stream in chunks that is completed", "GET /users/1", "HTTP/1.1 200 OK\r\n" + isJSON + limit +
			"Transfer-Encoding: chunked\r\n\r\n" +
			fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(large), large), violated("Body"),
			declared + users + "get code=200 kind=Body field=name cause=\"Too long: must be at most 5 characters\" more=1 times=1\n",
			strings.TrimSuffix(large, "}") + `,"state":"new"}`},
		{"an error of a write", "POST /users", answerOf(400, "Content-Type: application/problem+json\r\n", `{}`),
			violated("Body"),
			declared + users + "create code=400 kind=Body field=title cause=\"Required value\" more=0 times=1\n", ""},
		{"a refusal of the gateway", "POST /users?fieldValidation=Strict", "", "", "", "*"},
		{"a PUT that the gateway made of a PATCH", "PATCH /accounts/1", answerOf(200, isJSON, `{"size":10}`),
			"checks_total{resource=\"accounts\",result=\"Invalid\"} 1\nviolations_total{kind=\"Body\",resource=\"accounts\"} 1",
			declared + "accounts verb=patch code=200 kind=Body field=size cause=\"Invalid value: must be less than or equal to 9\" more=0 times=1\n", ""},
		{"an operation", "POST /users/1/activate", answerOf(200, isJSON, `{}`),
			"checks_total{resource=\"users/activate\",result=\"Invalid\"} 1\nviolations_total{kind=\"Code\",resource=\"users/activate\"} 1",
			declared + "users/activate verb=create code=200 kind=Code field=\"\" cause=\"must be declared\" more=0 times=1\n", ""},
		{"another resource", "GET /notes/1", answerOf(418, isJSON, `{}`), "", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			backend := newRecorder(t)
			backend.Reply = func(_ int, head, _ string) (string, bool) {
				if strings.HasPrefix(test.request, "HEAD") { // the gateway asks for the object, to make an ETag of it
					return answerOf(200, isJSON+limit, `{"id":1,"name":"ann","state":"new"}`), true
				}
				if strings.HasPrefix(test.request, "PATCH") && strings.HasPrefix(head, "GET") {
					return answerOf(200, isJSON, `{"size":100}`), true // which no client gets
				}
				return test.answer, true
			}
			w := watch(t, backend, policiestest.Write(t, declaredAnswers))
			method, target, _ := strings.Cut(test.request, " ")
			body := ""
			switch {
			case strings.Contains(target, "Strict"):
				body = `{"id":1,"name":"ann","secret":"x"}`
			case method == "POST":
				body = `{"name":"ann","secret":"x"}`
			case method == "PATCH":
				body = `{"size":1}`
			}
			got := w.askWhole(t, method, target, body)
			testutil.Becomes(t, test.counted, w.counted)
			_, sent, _ := strings.Cut(test.answer, "\r\n\r\n")
			switch {
			case test.passes == "*" && !strings.Contains(got, `"code":422`):
				t.Errorf("the client gets %.200q, want a refusal of the gateway", got)
			case test.passes == "*":
			case test.passes == "-" && got != "", test.passes != "" && test.passes != "-" && got != test.passes,
				test.passes == "" && got != sent:
				t.Errorf("the client gets %.200q of %.200q", got, sent)
			}
			if said := w.said(t); said != test.said {
				t.Errorf("the log has\n%s\nwant\n%s", said, test.said)
			}
			testutil.Eventually(t, "all memory is given back", func() bool { return w.BodyBytesInFlight() == 0 })
		})
	}
}

// askWhole sends a request and returns the body of the answer.
func (w *watched) askWhole(t *testing.T, method, target, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, "http://"+w.address+target,
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "identity")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
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
