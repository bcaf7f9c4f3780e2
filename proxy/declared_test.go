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
		s.writes = append(s.writes,
			strings.TrimSpace(fmt.Sprintln("  backend:", r.Method, r.URL.Path, r.Header.Get("Content-Type"),
				string(body))))
	}
	_, _ = io.WriteString(w, s.object)
}

// play sends requests in lines such as 'PUT /users/1 application/json {}' by a gateway with the document, and returns
// what becomes of each: the answer, and what the backend gets.
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
			answer = []byte(strings.ReplaceAll(refusal.Message, "`", "´")) // which a text in Go can have
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

// TestServersOfOperations: an operation with servers of its own is at their paths, and nowhere else.
func TestServersOfOperations(t *testing.T) {
	const document = `
openapi: 3.0.3
info: {title: Files, version: v1}
servers: [{url: https://api.example.com/v1}]
paths:
  /files:
    get:
      parameters: [{name: limit, in: query, schema: {type: integer}}]
      responses: {'200': {description: ok}}
    post:
      servers: [{url: https://upload.example.com/upload/v1}]
      requestBody: {content: {application/json: {schema: {type: object, required: [name]}}}}
      responses: {'201': {description: ok}}
  /files/{id}:
    put:
      requestBody: {content: {application/json: {schema: {type: object, required: [name]}}}}
      responses: {'200': {description: ok}}
    delete:
      servers: [{url: /v1}]
      responses: {'204': {description: ok}}
  /login:
    get:
      servers: [{url: https://account.example.com/oauth}]
      parameters: [{name: kind, in: query, required: true, schema: {type: string}}]
      responses: {'200': {description: ok}}
`
	s := &shelf{object: `{}`}
	compareLines(t, s.play(t, document, `
		GET /v1/files?limit=a
		POST /upload/v1/files application/json {}
		GET /upload/v1/files?limit=a
		PUT /v1/files/1 application/json {}
		DELETE /v1/files/1
		GET /oauth/login
		GET /v1/login
	`), `
		GET /v1/files?limit=a
		  422 File is invalid: query.limit: Invalid value: "a": must be an integer
		POST /upload/v1/files application/json {}
		  422 the request is invalid: name: Required value
		GET /upload/v1/files?limit=a
		  200 {}
		PUT /v1/files/1 application/json {}
		  422 File "1" is invalid: name: Required value
		DELETE /v1/files/1
		  200 {}
		  backend: DELETE /v1/files/1
		GET /oauth/login
		  422 the request is invalid: query.kind: Required value
		GET /v1/login
		  200 {}
	`)
}

// TestTwins: requests that two operations match are judged by what both declare alike.
func TestTwins(t *testing.T) {
	const document = `
openapi: 3.0.3
info: {title: Files, version: v1}
paths:
  /shops/{shop}/files/{id}:
    get:
      parameters:
      - {name: shop, in: path, required: true, schema: {type: integer}}
      - {name: id, in: path, required: true, schema: {type: string, format: uuid}}
      - {name: X-Tenant, in: header, required: true, schema: {type: string}}
      - {name: part, in: query, schema: {type: integer}}
      responses: {'200': {description: ok}}
    delete:
      parameters:
      - {name: shop, in: path, required: true, schema: {type: integer}}
      - {name: id, in: path, required: true, schema: {type: string, format: uuid}}
      responses: {'200': {description: ok}}
  /shops/{store}/files/{name}:
    parameters:
    - {name: X-Tenant, in: header, required: true, schema: {type: string}}
    get:
      parameters:
      - {name: store, in: path, required: true, schema: {type: integer}}
      - {name: name, in: path, required: true, schema: {type: string}}
      - {name: part, in: query, schema: {type: string}}
      responses: {'200': {description: ok}}
`
	s := &shelf{object: `{}`}
	compareLines(t, s.play(t, document, `
		GET /shops/1/files/a.png
		GET /shops/a/files/a.png?part=first
		DELETE /shops/1/files/a.png
	`), `
		GET /shops/1/files/a.png
		  422 File "a.png" is invalid: header.X-Tenant: Required value
		GET /shops/a/files/a.png?part=first
		  422 File "a.png" is invalid: [path.shop: Invalid value: "a": must be an integer, header.X-Tenant: Required value]
		DELETE /shops/1/files/a.png
		  422 File "a.png" is invalid: path.id: Invalid value: "a.png": must be a valid 'uuid'
	`)
}

// TestNullOfDocuments: a stored null stays as it is on its way through the gateway, and a client's null where the
// document allows it, whatever the default is and however the member is patched.
func TestNullOfDocuments(t *testing.T) {
	const document = `
openapi: 3.0.3
info: {title: Notes, version: v1}
paths:
  /notes:
    get: {responses: {'200': {description: ok, content: {application/json: {schema: {type: array, items: {$ref: '#/components/schemas/Note'}}}}}}}
    post: {requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Note'}}}}, responses: {'201': {description: ok}}}
  /notes/{id}:
    get: {responses: {'200': {description: ok, content: {application/json: {schema: {$ref: '#/components/schemas/Note'}}}}}}
    put: {requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Note'}}}}, responses: {'200': {description: ok}}}
    patch:
      requestBody:
        content:
          application/json: {schema: {type: object, properties: {text: {type: string, nullable: true}, color: {type: string, nullable: true}, due: {type: string, nullable: true}, state: {type: string}, author: {type: object, properties: {mail: {type: string, nullable: true}}}}}}
          application/merge-patch+json: {schema: {type: object}}
      responses: {'200': {description: ok}}
components:
  schemas:
    Note:
      type: object
      required: [text, due]
      properties:
        id: {type: integer, readOnly: true, nullable: true}
        text: {type: string, nullable: true}
        due: {type: string}
        color: {type: string, nullable: true, default: white}
        state: {type: string, nullable: true, enum: [open, done]}
        tags: {type: array, nullable: true, items: {type: string, nullable: true}}
        author: {nullable: true, allOf: [{$ref: '#/components/schemas/Author'}]}
    Author: {type: object, required: [name], properties: {name: {type: string}, mail: {type: string, nullable: true, default: none}}}
`
	s := &shelf{object: `{"id":null,"text":null,"due":"today","color":null,"state":null,"tags":[null],"author":null}`}
	compareLines(t, s.play(t, document, `
		GET /notes/1
		POST /notes application/json {"text":null,"due":"today","color":null,"state":null,"tags":[null],"author":null}
		POST /notes application/json {"text":null,"due":null}
		PUT /notes/1 application/json {"id":null,"text":null,"due":"today","color":null,"state":null,"tags":null,"author":{"name":"ann","mail":null}}
		PUT /notes/1 application/json {"due":"today"}
		PATCH /notes/1 application/json {"due":"tomorrow"}
		PATCH /notes/1 application/json {"text":null}
		PATCH /notes/1 application/json {"color":null}
		PATCH /notes/1 application/json {"due":null}
		PATCH /notes/1 application/json {"state":null}
		PATCH /notes/1 application/json {"author":{"name":"bob","mail":null}}
		PATCH /notes/1 application/json {"author":{"name":"bob"},"color":null}
		PATCH /notes/1 application/merge-patch+json {"color":null}
		PATCH /notes/1 application/merge-patch+json {"text":null}
		PATCH /notes/1 application/merge-patch+json {"state":"done"}
		PATCH /notes/1 application/json-patch+json [{"op":"add","path":"/color","value":null}]
		PATCH /notes/1 application/json-patch+json [{"op":"add","path":"/due","value":null}]
	`), `
		GET /notes/1
		  200 {"id":null,"text":null,"due":"today","color":null,"state":null,"tags":[null],"author":null}
		POST /notes application/json {"text":null,"due":"today","color":null,"state":null,"tags":[null],"author":null}
		  200 {"id":null,"text":null,"due":"today","color":null,"state":null,"tags":[null],"author":null}
		  backend: POST /notes application/json {"text":null,"due":"today","color":null,"state":null,"tags":[null],"author":null}
		POST /notes application/json {"text":null,"due":null}
		  422 Note is invalid: due: Invalid value: "null": must be of type string
		PUT /notes/1 application/json {"id":null,"text":null,"due":"today","color":null,"state":null,"tags":null,"author":{"name":"ann","mail":null}}
		  200 {"id":null,"text":null,"due":"today","color":null,"state":null,"tags":[null],"author":null}
		  backend: PUT /notes/1 application/json {"id":null,"text":null,"due":"today","color":null,"state":null,"tags":null,"author":{"name":"ann","mail":null}}
		PUT /notes/1 application/json {"due":"today"}
		  422 Note "1" is invalid: text: Required value
		PATCH /notes/1 application/json {"due":"tomorrow"}
		  200 {"id":null,"text":null,"due":"today","color":null,"state":null,"tags":[null],"author":null}
		  backend: PATCH /notes/1 application/json {"due":"tomorrow"}
		PATCH /notes/1 application/json {"text":null}
		  200 {"id":null,"text":null,"due":"today","color":null,"state":null,"tags":[null],"author":null}
		  backend: PATCH /notes/1 application/json {"text":null}
		PATCH /notes/1 application/json {"color":null}
		  200 {"id":null,"text":null,"due":"today","color":null,"state":null,"tags":[null],"author":null}
		  backend: PATCH /notes/1 application/json {"color":null}
		PATCH /notes/1 application/json {"due":null}
		  200 {"id":null,"text":null,"due":"today","color":null,"state":null,"tags":[null],"author":null}
		  backend: PATCH /notes/1 application/json {"due":null}
		PATCH /notes/1 application/json {"state":null}
		  422 Note "1" is invalid: state: Invalid value: "null": must be of type string
		PATCH /notes/1 application/json {"author":{"name":"bob","mail":null}}
		  200 {"id":null,"text":null,"due":"today","color":null,"state":null,"tags":[null],"author":null}
		  backend: PATCH /notes/1 application/json {"author":{"name":"bob","mail":null}}
		PATCH /notes/1 application/json {"author":{"name":"bob"},"color":null}
		  200 {"id":null,"text":null,"due":"today","color":null,"state":null,"tags":[null],"author":null}
		  backend: PATCH /notes/1 application/json {"author":{"name":"bob","mail":"none"},"color":null}
		PATCH /notes/1 application/merge-patch+json {"color":null}
		  200 {"id":null,"text":null,"due":"today","color":null,"state":null,"tags":[null],"author":null}
		  backend: PATCH /notes/1 application/merge-patch+json {"color":"white"}
		PATCH /notes/1 application/merge-patch+json {"text":null}
		  422 Note "1" is invalid: text: Required value
		PATCH /notes/1 application/merge-patch+json {"state":"done"}
		  200 {"id":null,"text":null,"due":"today","color":null,"state":null,"tags":[null],"author":null}
		  backend: PATCH /notes/1 application/merge-patch+json {"state":"done"}
		PATCH /notes/1 application/json-patch+json [{"op":"add","path":"/color","value":null}]
		  200 {"id":null,"text":null,"due":"today","color":null,"state":null,"tags":[null],"author":null}
		  backend: PATCH /notes/1 application/json-patch+json [{"op":"add","path":"/color","value":null}]
		PATCH /notes/1 application/json-patch+json [{"op":"add","path":"/due","value":null}]
		  422 Note "1" is invalid: due: Invalid value: "null": must be of type string
	`)
	s.object = "[" + s.object + "]"
	compareLines(t, s.play(t, document, `
		GET /notes
	`), `
		GET /notes
		  200 [{"id":null,"text":null,"due":"today","color":null,"state":null,"tags":[null],"author":null}]
	`)
}

// TestBodiesThatAreNoObjects: a body may be null, or anything else, where its schema lets it be, and passes as it came.
func TestBodiesThatAreNoObjects(t *testing.T) {
	const document = `
openapi: 3.0.3
info: {title: Spaces, version: v1}
paths:
  /spaces:
    post:
      requestBody:
        content:
          application/json:
            schema:
              type: object
              nullable: true
              required: [name]
              properties: {id: {type: integer, readOnly: true}, name: {type: string}, size: {type: integer, default: 1}, version: {type: string}}
          application/vnd.any+json: {}
          application/vnd.untyped+json: {schema: {properties: {name: {type: string}}}}
      responses: {'201': {description: ok}}
  /spaces/{id}:
    x-admission-gateway-resource: {fields: {status: status}, storedObject: Shown}
    get: {responses: {'200': {description: ok}}}
    put:
      requestBody: {content: {application/json: {schema: {oneOf: [{type: object, required: [name]}, {type: string, maxLength: 3}]}}}}
      responses: {'200': {description: ok}}
    patch:
      requestBody: {content: {application/json: {schema: {type: object, nullable: true}}}}
      responses: {'200': {description: ok}}
  /desks/{id}:
    put:
      requestBody: {content: {application/json: {schema: {type: object}}}}
      responses: {'200': {description: ok}}
`
	s := &shelf{object: `{"name":"ann"}`}
	compareLines(t, s.play(t, document, `
		POST /spaces application/json null
		POST /spaces application/json []
		POST /spaces application/json {}
		POST /spaces application/vnd.any+json [1]
		POST /spaces application/vnd.any+json "text"
		POST /spaces application/vnd.untyped+json null
		POST /spaces application/vnd.untyped+json {"name":1}
		PUT /spaces/1 application/json "abc"
		PUT /spaces/1 application/json "abcd"
		PUT /spaces/1 application/json null
		PUT /spaces/1 application/json {"name":"a"}
		PATCH /spaces/1 application/json null
		PUT /desks/1 application/json null
		PUT /desks/1 application/json []
	`), `
		POST /spaces application/json null
		  200 {"name":"ann"}
		  backend: POST /spaces application/json null
		POST /spaces application/json []
		  400 the body must be a JSON object, not a list
		POST /spaces application/json {}
		  422 Space is invalid: name: Required value
		POST /spaces application/vnd.any+json [1]
		  200 {"name":"ann"}
		  backend: POST /spaces application/vnd.any+json [1]
		POST /spaces application/vnd.any+json "text"
		  200 {"name":"ann"}
		  backend: POST /spaces application/vnd.any+json "text"
		POST /spaces application/vnd.untyped+json null
		  200 {"name":"ann"}
		  backend: POST /spaces application/vnd.untyped+json null
		POST /spaces application/vnd.untyped+json {"name":1}
		  422 Space is invalid: name: Invalid value: "integer": must be of type string
		PUT /spaces/1 application/json "abc"
		  200 {"name":"ann"}
		  backend: PUT /spaces/1 application/json "abc"
		PUT /spaces/1 application/json "abcd"
		  422 Space "1" is invalid: [Invalid value: must match exactly one of the alternatives in 'oneOf', and matches none, Too long: must be at most 3 characters]
		PUT /spaces/1 application/json null
		  422 Space "1" is invalid: [Invalid value: must match exactly one of the alternatives in 'oneOf', and matches none, Invalid value: "null": must be of type object]
		PUT /spaces/1 application/json {"name":"a"}
		  200 {"name":"ann"}
		  backend: PUT /spaces/1 application/json {"name":"a"}
		PATCH /spaces/1 application/json null
		  200 {"name":"ann"}
		  backend: PATCH /spaces/1 application/json null
		PUT /desks/1 application/json null
		  422 Desk "1" is invalid: Invalid value: "null": must be of type object
		PUT /desks/1 application/json []
		  400 the body must be a JSON object, not a list
	`)
}

// TestUntypedBodies: a schema without a type says nothing of values of other types than its keywords are for.
func TestUntypedBodies(t *testing.T) {
	for _, version := range []string{"3.0.3", "3.1.0"} {
		document := `
openapi: ` + version + `
info: {title: Rooms, version: v1}
paths:
  /rooms:
    post:
      requestBody:
        content:
          application/vnd.members+json: {schema: {required: [name], properties: {name: {type: string}, size: {type: integer, default: 1}}}}
          application/vnd.items+json: {schema: {minItems: 2, items: {type: integer}}}
          application/vnd.merged+json: {schema: {allOf: [{required: [name]}, {maxLength: 3}]}}
          application/vnd.chosen+json: {schema: {required: [name], oneOf: [{type: object}, {type: array}]}}
      responses: {'201': {description: ok}}
  /rooms/{id}:
    get: {responses: {'200': {description: ok}}}
    put:
      requestBody: {content: {application/json: {schema: {required: [name], properties: {name: {type: string}}}}}}
      responses: {'200': {description: ok}}
`
		s := &shelf{object: `{"name":"ann"}`}
		compareLines(t, s.play(t, document, `
		POST /rooms application/vnd.members+json 0
		POST /rooms application/vnd.members+json " "
		POST /rooms application/vnd.members+json [1,{"a":2}]
		POST /rooms application/vnd.members+json {"size":2}
		POST /rooms application/vnd.members+json {"name":"a","more":true}
		POST /rooms application/vnd.items+json {"a":[1]}
		POST /rooms application/vnd.items+json "x"
		POST /rooms application/vnd.items+json [1]
		POST /rooms application/vnd.items+json [1,2]
		POST /rooms application/vnd.merged+json "abcd"
		POST /rooms application/vnd.merged+json "abc"
		POST /rooms application/vnd.merged+json {}
		POST /rooms application/vnd.chosen+json 1
		POST /rooms application/vnd.chosen+json [1]
		PUT /rooms/1 application/json true
		PUT /rooms/1 application/json {}
	`), `
		POST /rooms application/vnd.members+json 0
		  200 {"name":"ann"}
		  backend: POST /rooms application/vnd.members+json 0
		POST /rooms application/vnd.members+json " "
		  200 {"name":"ann"}
		  backend: POST /rooms application/vnd.members+json " "
		POST /rooms application/vnd.members+json [1,{"a":2}]
		  200 {"name":"ann"}
		  backend: POST /rooms application/vnd.members+json [1,{"a":2}]
		POST /rooms application/vnd.members+json {"size":2}
		  422 Room is invalid: name: Required value
		POST /rooms application/vnd.members+json {"name":"a","more":true}
		  200 {"name":"ann"}
		  backend: POST /rooms application/vnd.members+json {"name":"a","more":true,"size":1}
		POST /rooms application/vnd.items+json {"a":[1]}
		  200 {"name":"ann"}
		  backend: POST /rooms application/vnd.items+json {"a":[1]}
		POST /rooms application/vnd.items+json "x"
		  200 {"name":"ann"}
		  backend: POST /rooms application/vnd.items+json "x"
		POST /rooms application/vnd.items+json [1]
		  422 Room is invalid: Invalid value: 1: must have at least 2 items
		POST /rooms application/vnd.items+json [1,2]
		  200 {"name":"ann"}
		  backend: POST /rooms application/vnd.items+json [1,2]
		POST /rooms application/vnd.merged+json "abcd"
		  422 Room is invalid: Too long: must be at most 3 characters
		POST /rooms application/vnd.merged+json "abc"
		  200 {"name":"ann"}
		  backend: POST /rooms application/vnd.merged+json "abc"
		POST /rooms application/vnd.merged+json {}
		  422 Room is invalid: name: Required value
		POST /rooms application/vnd.chosen+json 1
		  400 the body must be a JSON object, not a number
		POST /rooms application/vnd.chosen+json [1]
		  200 {"name":"ann"}
		  backend: POST /rooms application/vnd.chosen+json [1]
		PUT /rooms/1 application/json true
		  200 {"name":"ann"}
		  backend: PUT /rooms/1 application/json true
		PUT /rooms/1 application/json {}
		  422 Room "1" is invalid: name: Required value
	`)
	}
}

// TestBodiesOfOperations: each media type has its own schema, and a body is needed only where the document says so,
// whatever the method.
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

// TestPatchesOfDocuments: the schema of its media type validates a patch, and the schema of the object its result, for
// what the patch changed.
func TestPatchesOfDocuments(t *testing.T) {
	const head = `
openapi: 3.0.3
info: {title: Users, version: v1}
paths:
  /users/{id}:
    x-admission-gateway-resource: {storedObject: Shown}
    get: {responses: {'200': {description: ok, content: {application/json: {schema: {type: object, required: [created_at], properties: {name: {type: string}, created_at: {type: string}}}}}}}}
    patch:
      responses: {'200': {description: ok}}
      requestBody:
        content:
`
	const put = `
    put:
      responses: {'200': {description: ok}}
      requestBody:
        content:
          application/json:
            schema:
              type: object
              additionalProperties: false
              minProperties: 4
              required: [name, email]
              oneOf: [{required: [a]}, {required: [b]}]
              properties:
                id: {type: string, readOnly: true}
                name: {type: string, maxLength: 10}
                email: {type: string}
                kind: {type: string, default: person}
                a: {type: integer}
                b: {type: integer, nullable: true}
                tags: {type: array, maxItems: 2, items: {type: object, properties: {n: {type: integer, maximum: 5}}}}
`
	for name, c := range map[string]struct{ document, object, requests, want string }{
		"by a schema of its own": {head + `
          application/json: {schema: {type: object, additionalProperties: false, minProperties: 1, properties: {name: {type: string, maxLength: 10}, note: {type: string, nullable: true}}}}
`, `{"name":"ann","note":"x"}`, `
		PATCH /users/1 application/json {"name":"m"}
		PATCH /users/1 application/json {"name":"waytoolongname"}
		PATCH /users/1 application/json {"zz":1}
		PATCH /users/1 application/json {}
		PATCH /users/1 application/json {"name":7}
		PATCH /users/1 application/json {"name":null}
		PATCH /users/1 application/json {"note":null}
		PATCH /users/1 application/merge-patch+json {"zz":1}
		PATCH /users/1 application/json-patch+json [{"op":"replace","path":"/name","value":"waytoolongname"}]
		PATCH /users/1 application/json-patch+json [{"op":"add","path":"/zz","value":1}]
		PATCH /users/1 application/json-patch+json [{"op":"test","path":"/name","value":"ann"}]
		PATCH /users/1 application/json-patch+json [{"op":"remove","path":"/name"}]
		PATCH /users/1 application/json []
		PATCH /users/1 text/plain x
`, `
		PATCH /users/1 application/json {"name":"m"}
		  200 {"name":"ann","note":"x"}
		  backend: PATCH /users/1 application/json {"name":"m"}
		PATCH /users/1 application/json {"name":"waytoolongname"}
		  422 User "1" is invalid: name: Too long: must be at most 10 characters
		PATCH /users/1 application/json {"zz":1}
		  422 User "1" is invalid: zz: Invalid value: "zz": may not be set: the schema allows no other properties than its own
		PATCH /users/1 application/json {}
		  422 User "1" is invalid: Invalid value: 0: must have at least 1 property
		PATCH /users/1 application/json {"name":7}
		  422 User "1" is invalid: name: Invalid value: "integer": must be of type string
		PATCH /users/1 application/json {"name":null}
		  422 User "1" is invalid: name: Invalid value: "null": must be of type string
		PATCH /users/1 application/json {"note":null}
		  200 {"name":"ann","note":"x"}
		  backend: PATCH /users/1 application/json {"note":null}
		PATCH /users/1 application/merge-patch+json {"zz":1}
		  422 User "1" is invalid: zz: Invalid value: "zz": may not be set: the schema allows no other properties than its own
		PATCH /users/1 application/json-patch+json [{"op":"replace","path":"/name","value":"waytoolongname"}]
		  422 User "1" is invalid: name: Too long: must be at most 10 characters
		PATCH /users/1 application/json-patch+json [{"op":"add","path":"/zz","value":1}]
		  422 User "1" is invalid: zz: Invalid value: "zz": may not be set: the schema allows no other properties than its own
		PATCH /users/1 application/json-patch+json [{"op":"test","path":"/name","value":"ann"}]
		  200 {"name":"ann","note":"x"}
		  backend: PATCH /users/1 application/json-patch+json [{"op":"test","path":"/name","value":"ann"}]
		PATCH /users/1 application/json-patch+json [{"op":"remove","path":"/name"}]
		  200 {"name":"ann","note":"x"}
		  backend: PATCH /users/1 application/json-patch+json [{"op":"remove","path":"/name"}]
		PATCH /users/1 application/json []
		  422 User "1" is invalid: Invalid value: "array": must be of type object
		PATCH /users/1 text/plain x
		  415 the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/json
`},
		"by its media types": {head + `
          application/merge-patch+json: {schema: {type: object, required: [name], properties: {name: {type: string, nullable: true}, note: {type: string}, in: {type: object, properties: {n: {type: integer}}}}}}
          application/json-patch+json: {schema: {type: array, maxItems: 1, items: {type: object, required: [op, path], properties: {op: {type: string, enum: [replace]}}}}}
          application/json: {schema: {type: array, items: {type: object, required: [set]}}}
          application/vnd.note+json: {schema: {type: object, properties: {note: {type: string, maxLength: 3}}}}
`, `{"name":"ann","note":"x"}`, `
		PATCH /users/1 application/merge-patch+json {"name":null,"note":null,"in":{"n":null}}
		PATCH /users/1 application/merge-patch+json {"note":null}
		PATCH /users/1 application/json-patch+json [{"op":"replace","path":"/name","value":"bob"}]
		PATCH /users/1 application/json-patch+json [{"op":"remove","path":"/name"}]
		PATCH /users/1 application/json-patch+json [{"op":"replace","path":"/name","value":"bob"},{"op":"replace","path":"/note","value":"y"}]
		PATCH /users/1 application/json [{"set":1}]
		PATCH /users/1 application/json []
		PATCH /users/1 application/json [{}]
		PATCH /users/1 application/json {"name":"bob"}
		PATCH /users/1 application/vnd.note+json {"note":"long"}
		PATCH /users/1 application/vnd.note+json {"note":"new"}
`, `
		PATCH /users/1 application/merge-patch+json {"name":null,"note":null,"in":{"n":null}}
		  200 {"name":"ann","note":"x"}
		  backend: PATCH /users/1 application/merge-patch+json {"name":null,"note":null,"in":{"n":null}}
		PATCH /users/1 application/merge-patch+json {"note":null}
		  422 User "1" is invalid: name: Required value
		PATCH /users/1 application/json-patch+json [{"op":"replace","path":"/name","value":"bob"}]
		  200 {"name":"ann","note":"x"}
		  backend: PATCH /users/1 application/json-patch+json [{"op":"replace","path":"/name","value":"bob"}]
		PATCH /users/1 application/json-patch+json [{"op":"remove","path":"/name"}]
		  422 User "1" is invalid: [0].op: Unsupported value: "remove": supported values: "replace"
		PATCH /users/1 application/json-patch+json [{"op":"replace","path":"/name","value":"bob"},{"op":"replace","path":"/note","value":"y"}]
		  422 User "1" is invalid: Too many: 2: must have at most 1 item
		PATCH /users/1 application/json [{"set":1}]
		  200 {"name":"ann","note":"x"}
		  backend: PATCH /users/1 application/json [{"set":1}]
		PATCH /users/1 application/json []
		  200 {"name":"ann","note":"x"}
		  backend: PATCH /users/1 application/json []
		PATCH /users/1 application/json [{}]
		  422 User "1" is invalid: [0].set: Required value
		PATCH /users/1 application/json {"name":"bob"}
		  422 User "1" is invalid: Invalid value: "object": must be of type array
		PATCH /users/1 application/vnd.note+json {"note":"long"}
		  422 User "1" is invalid: note: Too long: must be at most 3 characters
		PATCH /users/1 application/vnd.note+json {"note":"new"}
		  200 {"name":"ann","note":"x"}
		  backend: PATCH /users/1 application/vnd.note+json {"note":"new"}
`},
		"by members that the patch alone has": {head + `
          application/json: {schema: {type: object, properties: {state: {type: string, enum: [closed]}, in: {type: object, properties: {n: {type: integer}}}, list: {type: array, items: {type: object, properties: {m: {type: integer}}}}}}}
  /users:
    post:
      responses: {'201': {description: ok}}
      requestBody: {content: {application/json: {schema: {type: object, additionalProperties: false, properties: {name: {type: string}, in: {type: object, additionalProperties: false}, list: {type: array, items: {type: object, additionalProperties: false}}}}}}}
`, `{"name":"ann"}`, `
		PATCH /users/1 application/json {"state":"closed"}
		PATCH /users/1 application/json {"state":"open"}
		PATCH /users/1 application/json {"in":{"n":1},"list":[{"m":1}]}
		PATCH /users/1 application/json {"in":{"x":1},"list":[{"x":1}]}
		PATCH /users/1 application/json {"zz":1}
		PATCH /users/1 application/json-patch+json [{"op":"add","path":"/state","value":"closed"}]
`, `
		PATCH /users/1 application/json {"state":"closed"}
		  200 {"name":"ann"}
		  backend: PATCH /users/1 application/json {"state":"closed"}
		PATCH /users/1 application/json {"state":"open"}
		  422 User "1" is invalid: state: Unsupported value: "open": supported values: "closed"
		PATCH /users/1 application/json {"in":{"n":1},"list":[{"m":1}]}
		  200 {"name":"ann"}
		  backend: PATCH /users/1 application/json {"in":{"n":1},"list":[{"m":1}]}
		PATCH /users/1 application/json {"in":{"x":1},"list":[{"x":1}]}
		  422 User "1" is invalid: [in: Invalid value: "x": may not be set: the schema allows no other properties than its own, list[0]: Invalid value: "x": may not be set: the schema allows no other properties than its own]
		PATCH /users/1 application/json {"zz":1}
		  422 User "1" is invalid: zz: Invalid value: "zz": may not be set: the schema allows no other properties than its own
		PATCH /users/1 application/json-patch+json [{"op":"add","path":"/state","value":"closed"}]
		  200 {"name":"ann"}
		  backend: PATCH /users/1 application/json-patch+json [{"op":"add","path":"/state","value":"closed"}]
`},
		"for what it changed": {head + `
          application/json: {schema: {type: object}}
` + put, `{"id":"1","name":"a very long name","extra":{"x":1},"kind":"person","tags":[{"n":9},{"n":1},{"n":2}]}`, `
		PATCH /users/1 application/json {"kind":"robot"}
		PATCH /users/1 application/json {"name":"another long name"}
		PATCH /users/1 application/json {"name":"ann"}
		PATCH /users/1 application/json {"name":null}
		PATCH /users/1 application/json {"more":1}
		PATCH /users/1 application/json {"extra":{"x":2}}
		PATCH /users/1 application/json {"extra":null}
		PATCH /users/1 application/json {"a":1,"b":1}
		PATCH /users/1 application/json {"a":"x"}
		PATCH /users/1 application/json {"a":1}
		PATCH /users/1 application/json {"tags":[{"n":1},{"n":9}]}
		PATCH /users/1 application/json {"tags":[{"n":8}]}
		PATCH /users/1 application/json {"tags":[{"n":9},{"n":1},{"n":2},{"n":3}]}
		PATCH /users/1 application/json {"id":"2","email":"e"}
		PATCH /users/1 application/json-patch+json [{"op":"add","path":"/tags/0","value":{"n":3}},{"op":"remove","path":"/tags/2"}]
`, `
		PATCH /users/1 application/json {"kind":"robot"}
		  200 {"id":"1","name":"a very long name","extra":{"x":1},"kind":"person","tags":[{"n":9},{"n":1},{"n":2}]}
		  backend: PATCH /users/1 application/json {"kind":"robot"}
		PATCH /users/1 application/json {"name":"another long name"}
		  422 User "1" is invalid: name: Too long: must be at most 10 characters
		PATCH /users/1 application/json {"name":"ann"}
		  200 {"id":"1","name":"a very long name","extra":{"x":1},"kind":"person","tags":[{"n":9},{"n":1},{"n":2}]}
		  backend: PATCH /users/1 application/json {"name":"ann"}
		PATCH /users/1 application/json {"name":null}
		  422 User "1" is invalid: name: Required value
		PATCH /users/1 application/json {"more":1}
		  422 User "1" is invalid: more: Invalid value: "more": may not be set: the schema allows no other properties than its own
		PATCH /users/1 application/json {"extra":{"x":2}}
		  422 User "1" is invalid: extra: Invalid value: "extra": may not be set: the schema allows no other properties than its own
		PATCH /users/1 application/json {"extra":null}
		  200 {"id":"1","name":"a very long name","extra":{"x":1},"kind":"person","tags":[{"n":9},{"n":1},{"n":2}]}
		  backend: PATCH /users/1 application/json {"extra":null}
		PATCH /users/1 application/json {"a":1,"b":1}
		  422 User "1" is invalid: Invalid value: must have exactly one of ´a´ and ´b´, and has 2
		PATCH /users/1 application/json {"a":"x"}
		  422 User "1" is invalid: a: Invalid value: "string": must be of type integer
		PATCH /users/1 application/json {"a":1}
		  200 {"id":"1","name":"a very long name","extra":{"x":1},"kind":"person","tags":[{"n":9},{"n":1},{"n":2}]}
		  backend: PATCH /users/1 application/json {"a":1}
		PATCH /users/1 application/json {"tags":[{"n":1},{"n":9}]}
		  200 {"id":"1","name":"a very long name","extra":{"x":1},"kind":"person","tags":[{"n":9},{"n":1},{"n":2}]}
		  backend: PATCH /users/1 application/json {"tags":[{"n":1},{"n":9}]}
		PATCH /users/1 application/json {"tags":[{"n":8}]}
		  422 User "1" is invalid: tags[0].n: Invalid value: 8: must be less than or equal to 5
		PATCH /users/1 application/json {"tags":[{"n":9},{"n":1},{"n":2},{"n":3}]}
		  422 User "1" is invalid: tags: Too many: 4: must have at most 2 items
		PATCH /users/1 application/json {"id":"2","email":"e"}
		  warning: 299 - "read-only field \"id\" is not taken: the API itself sets it"
		  200 {"id":"1","name":"a very long name","extra":{"x":1},"kind":"person","tags":[{"n":9},{"n":1},{"n":2}]}
		  backend: PATCH /users/1 application/json {"email":"e"}
		PATCH /users/1 application/json-patch+json [{"op":"add","path":"/tags/0","value":{"n":3}},{"op":"remove","path":"/tags/2"}]
		  200 {"id":"1","name":"a very long name","extra":{"x":1},"kind":"person","tags":[{"n":9},{"n":1},{"n":2}]}
		  backend: PATCH /users/1 application/json-patch+json [{"op":"add","path":"/tags/0","value":{"n":3}},{"op":"remove","path":"/tags/2"}]
`},
	} {
		t.Run(name, func(t *testing.T) {
			s := &shelf{object: c.object}
			compareLines(t, s.play(t, c.document, c.requests), c.want)
		})
	}
}

// TestReplacementsAreJudgedWhole: a PUT puts all that it has in the place of the object, so that what the stored object
// lacks too counts.
func TestReplacementsAreJudgedWhole(t *testing.T) {
	const text = `
openapi: 3.0.3
info: {title: Todos, version: v1}
paths:
  /todos/{id}:
    get: {responses: {'200': {description: ok}}}
    put:
      responses: {'200': {description: ok}}
      requestBody: {required: true, content: {application/json: {schema: {type: object, required: [title], properties: {title: {type: string, minLength: 3}, due: {type: string, format: date}}}}}}
`
	s := &shelf{object: `{"due":"never"}`}
	compareLines(t, s.play(t, text, `
		PUT /todos/1 application/json {}
		PUT /todos/1 application/json {"due":"never"}
		PUT /todos/1 application/json {"title":"one"}
`), `
		PUT /todos/1 application/json {}
		  422 Todo "1" is invalid: title: Required value
		PUT /todos/1 application/json {"due":"never"}
		  422 Todo "1" is invalid: [title: Required value, due: Invalid value: "never": must be a valid 'date']
		PUT /todos/1 application/json {"title":"one"}
		  200 {"due":"never"}
		  backend: PUT /todos/1 application/json {"title":"one"}
`)
}

// TestRenames: another name in the body than in the URL is a rename, unless the document says that it is the name.
func TestRenames(t *testing.T) {
	const document = `
openapi: 3.0.3
info: {title: Users, version: v1}
x-admission-gateway-resource: {storedObject: Shown}
components: {schemas: {Key: {type: object, properties: {id: {type: string, readOnly: true}}}}}
paths:
  /user/{username}:
    put: {requestBody: {content: {application/json: {schema: {type: object, properties: {username: {type: string}}}}}}, responses: {'200': {description: ok}}}
    patch: {requestBody: {content: {application/json: {schema: {type: object}}}}, responses: {'200': {description: ok}}}
  /keys/{id}:
    put: {requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Key'}}}}, responses: {'200': {description: ok}}}
    patch: {requestBody: {content: {application/json: {schema: {type: object}}}}, responses: {'200': {description: ok}}}
  /teams/{id}:
    x-admission-gateway-resource: {fields: {name: id}}
    put: {requestBody: {content: {application/json: {schema: {type: object, properties: {id: {type: string}}}}}}, responses: {'200': {description: ok}}}
`
	s := &shelf{object: `{"id":"1","username":"ann"}`}
	compareLines(t, s.play(t, document, `
		PUT /user/ann application/json {"username":"eve"}
		PUT /user/ann application/json {"username":7}
		PATCH /user/ann application/json {"username":"eve"}
		PUT /keys/1 application/json {"id":"2"}
		PATCH /keys/1 application/json {"id":"2"}
		PATCH /keys/other application/json {"more":1}
		PUT /teams/1 application/json {"id":"2"}
		PUT /teams/1 application/json {"id":"1"}
	`), `
		PUT /user/ann application/json {"username":"eve"}
		  200 {"id":"1","username":"ann"}
		  backend: PUT /user/ann application/json {"username":"eve"}
		PUT /user/ann application/json {"username":7}
		  422 User "ann" is invalid: username: Invalid value: "integer": must be of type string
		PATCH /user/ann application/json {"username":"eve"}
		  200 {"id":"1","username":"ann"}
		  backend: PATCH /user/ann application/json {"username":"eve"}
		PUT /keys/1 application/json {"id":"2"}
		  400 the name of the object (2) does not match the name on the URL (1)
		PATCH /keys/1 application/json {"id":"2"}
		  400 the name of the object (2) does not match the name on the URL (1)
		PATCH /keys/other application/json {"more":1}
		  200 {"id":"1","username":"ann"}
		  backend: PATCH /keys/other application/json {"more":1}
		PUT /teams/1 application/json {"id":"2"}
		  400 the name of the object (2) does not match the name on the URL (1)
		PUT /teams/1 application/json {"id":"1"}
		  200 {"id":"1","username":"ann"}
		  backend: PUT /teams/1 application/json {"id":"1"}
	`)
}

// TestAlternativesOfBodies: a body may be an object or a list, each by its own schema.
func TestAlternativesOfBodies(t *testing.T) {
	const document = `
openapi: 3.0.3
info: {title: Synonyms, version: v1}
components: {schemas: {One: {type: object, required: [id], properties: {id: {type: string, maxLength: 3}}}}}
paths:
  /synonyms:
    get: {responses: {'200': {description: ok}}}
    post:
      requestBody: {required: true, content: {application/json: {schema: {oneOf: [{$ref: '#/components/schemas/One'}, {type: array, maxItems: 2, items: {$ref: '#/components/schemas/One'}}]}}}}
      responses: {'201': {description: ok}}
  /synonyms/{id}:
    put:
      requestBody: {content: {application/json: {schema: {anyOf: [{type: object, required: [id]}, {type: array}]}}}}
      responses: {'200': {description: ok}}
    patch:
      requestBody: {content: {application/json: {schema: {oneOf: [{type: object, required: [id]}, {type: array, items: {type: integer}}]}}}}
      responses: {'200': {description: ok}}
`
	s := &shelf{object: `{"id":"1"}`}
	compareLines(t, s.play(t, document, `
		POST /synonyms application/json {"id":"one"}
		POST /synonyms application/json {"id":"three"}
		POST /synonyms application/json [{"id":"one"},{"id":"two"}]
		POST /synonyms application/json []
		POST /synonyms application/json [{"id":"three"}]
		POST /synonyms application/json 7
		PUT /synonyms/1 application/json {}
		PUT /synonyms/1 application/json [1]
		PATCH /synonyms/1 application/json {"no":1}
		PATCH /synonyms/1 application/json {"id":"1","no":1}
		PATCH /synonyms/1 application/json [1]
		PATCH /synonyms/1 application/json ["a"]
	`), `
		POST /synonyms application/json {"id":"one"}
		  200 {"id":"1"}
		  backend: POST /synonyms application/json {"id":"one"}
		POST /synonyms application/json {"id":"three"}
		  422 Synonym is invalid: [Invalid value: must match exactly one of the alternatives in 'oneOf', and matches none, id: Too long: must be at most 3 characters]
		POST /synonyms application/json [{"id":"one"},{"id":"two"}]
		  200 {"id":"1"}
		  backend: POST /synonyms application/json [{"id":"one"},{"id":"two"}]
		POST /synonyms application/json []
		  200 {"id":"1"}
		  backend: POST /synonyms application/json []
		POST /synonyms application/json [{"id":"three"}]
		  422 Synonym is invalid: [Invalid value: must match exactly one of the alternatives in 'oneOf', and matches none, [0].id: Too long: must be at most 3 characters]
		POST /synonyms application/json 7
		  422 Synonym is invalid: [Invalid value: must match exactly one of the alternatives in 'oneOf', and matches none, Invalid value: "integer": must be of type object]
		PUT /synonyms/1 application/json {}
		  422 Synonym "1" is invalid: [Invalid value: must match at least one of the alternatives in 'anyOf', id: Required value]
		PUT /synonyms/1 application/json [1]
		  200 {"id":"1"}
		  backend: PUT /synonyms/1 application/json [1]
		PATCH /synonyms/1 application/json {"no":1}
		  422 Synonym "1" is invalid: [Invalid value: must match exactly one of the alternatives in 'oneOf', and matches none, id: Required value]
		PATCH /synonyms/1 application/json {"id":"1","no":1}
		  200 {"id":"1"}
		  backend: PATCH /synonyms/1 application/json {"id":"1","no":1}
		PATCH /synonyms/1 application/json [1]
		  200 {"id":"1"}
		  backend: PATCH /synonyms/1 application/json [1]
		PATCH /synonyms/1 application/json ["a"]
		  422 Synonym "1" is invalid: [Invalid value: must match exactly one of the alternatives in 'oneOf', and matches none, [0]: Invalid value: "string": must be of type integer]
	`)
}
