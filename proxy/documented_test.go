package proxy

import (
	"bufio"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/testutil"
)

const documentedFile = `
openapi: 3.1.0
info: {title: Items, version: "1"}
paths:
  /: {get: {parameters: [{name: lang, in: query, schema: {enum: [en, de]}}]}}
  /items: {get: {}, post: {requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Item'}}}}}}
  /items/{id}: {get: {}, put: {requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Item'}}}}}}
  /items/{id}/buy:
    parameters: [{name: id, in: path, required: true, schema: {type: string, pattern: '^[a-z/]+$'}}]
    post:
      parameters: [{name: X-Shop, in: header, required: true, schema: {type: string}}]
      requestBody:
        content:
          application/json: {schema: {$ref: '#/components/schemas/Order'}}
          application/x-www-form-urlencoded: {schema: {type: object, required: [count], properties: {count: {type: integer, maximum: 9}}}}
          image/png: {}
  /items/{id}/photo: {patch: {requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Order'}}}}}}
  /search: {get: {requestBody: {content: {application/json: {schema: {type: object, maxProperties: 1}}}}}}
  /reports/{day}.{format}:
    get:
      parameters:
      - {name: day, in: path, required: true, schema: {type: string, format: date}}
      - {name: format, in: path, required: true, schema: {enum: [csv, json]}}
  /secret: {get: {security: [{key: []}]}}
  /old/: {x-admission-gateway-resource: {trailingSlash: Redirect}, get: {parameters: [{name: n, in: query, schema: {type: integer}}]}}
  /plain/{x}: {get: {}}
components:
  securitySchemes: {key: {type: http, scheme: bearer}}
  schemas:
    Item: {type: object, properties: {name: {type: string, maxLength: 3}}}
    Order: {type: object, required: [count], additionalProperties: false, properties: {count: {type: integer, minimum: 1}, note: {type: string, default: none}}}
---
apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: graph}
spec:
  version: v1
  names: {plural: queries, kind: Query}
  operations: [{path: /graphql, schema: {openAPIV3Schema: {type: object, required: [query], properties: {query: {type: string}}}}}]
`

// documentedGateway is a gateway before an API whose document has operations that are no verbs of resources.
func documentedGateway(t *testing.T, undescribed config.Undescribed) (backend *recorder, address string) {
	t.Helper()
	return documentsGateway(t, documentedFile, undescribed)
}

// documentsGateway is a gateway before an API, with a policy file.
func documentsGateway(t *testing.T, file string, undescribed config.Undescribed) (backend *recorder, address string) {
	t.Helper()
	backend = newRecorder(t)
	dir := t.TempDir()
	testutil.WriteFile(t, filepath.Join(dir, "api.yaml"), file)
	g := gatewayFor(t, dir, backend.Addr().String(), nil)
	for i := range g.routes.table {
		g.routes.table[i].undescribed = undescribed
	}
	return backend, startGateway(t, g)
}

// TestDocumented: the document validates each of its operations, at paths of resources and at all others,
// and what it allows passes byte for byte.
func TestDocumented(t *testing.T) {
	backend, address := documentedGateway(t, config.PassUndescribed)
	const json, shop = "Content-Type: application/json", "X-Shop: a"
	playDocumented(t, backend, address, []documentedCase{
		{"GET /", "", "passes"},
		{"GET /?lang=fr", "", `422 the request is invalid: query.lang: Unsupported value: "fr": supported values: "en", "de"`},
		{"POST /items/tea/buy|" + shop + "|" + json, ` {"count": 1} `, "passes"},
		{"POST /items/tea/buy/|" + shop + "|" + json, `{"count":1}`, "passes"},
		{"POST /items/a%2Fb/buy|" + shop + "|" + json, `{"count":1}`, "passes"},
		{"POST /items/%2e%2e%2Fb/buy|" + shop + "|" + json, `{"count":1}`, "400 the value '%2e%2e%2Fb' in the request path must not contain '.', '..' or nothing between slashes"},
		{"POST /items/a%252Fb/buy|" + shop + "|" + json, `{"count":1}`, "400 the request path must not be encoded twice: 'a%252Fb' would be decoded again"},
		{"POST /items/tea/buy|" + json, `{"count":0,"x":1}`,
			`422 the request is invalid: [header.X-Shop: Required value, count: Invalid value: 0: must be greater than or equal to 1, x: Invalid value: "x": may not be set: the schema allows no other properties than its own]`},
		{"POST /items/7/buy|" + shop, "", `422 the request is invalid: path.id: Invalid value: "7": must match the regular expression '^[a-z/]+$'`},
		{"POST /items/tea/buy|" + shop, "", "passes"},
		{"POST /items/tea/buy|" + shop + "|" + json, `{"count":1,"count":2}`, `400 the body must be JSON that can be read in one way only: count: duplicate key 'count' at offset 11`},
		{"POST /items/tea/buy|" + shop + "|Content-Type: text/plain", "x", "415 the body of the request was in an unknown format - accepted media types include: application/json, application/x-www-form-urlencoded, image/png"},
		{"POST /items/tea/buy|" + shop + "|Content-Type: application/x-www-form-urlencoded", "count=3", "passes"},
		{"POST /items/tea/buy|" + shop + "|Content-Type: application/x-www-form-urlencoded", "count=10", "422 the request is invalid: count: Invalid value: 10: must be less than or equal to 9"},
		{"POST /items/tea/buy|" + shop + "|Content-Type: image/png", "\x89PNG", "passes"},
		{"PATCH /items/tea/photo|" + json, `{"count":"a"}`, `422 the request is invalid: count: Invalid value: "string": must be of type integer`},
		{"PATCH /items/tea/photo", "", "400 the body must not be empty"},
		{"PATCH /items/tea/photo|" + json, `{"count":2}`, "passes"},
		{"GET /search|" + json, `{"a":1,"b":2}`,
			"422 the request is invalid: Too many: 2: must have at most 1 property"},
		{"GET /search|" + json, `{"a":1}`, "passes"},
		{"GET /reports/2026-01-02.csv", "", "passes"},
		{"GET /reports/yesterday.xml", "", `422 the request is invalid: [path.day: Invalid value: "yesterday": must be a valid 'date', path.format: Unsupported value: "xml": supported values: "csv", "json"]`},
		{"GET /secret", "", "401 the request must have the credentials that the API's document asks for"},
		{"GET /secret|Authorization: Bearer x", "", "passes"},
		{"GET /plain/%41", "", "passes"},
		{"GET /plain/a%2Fb", "", "passes"},
		// No operation documents the collection that the objects' path would have.
		{"POST /plain|" + json, "{not JSON", "passes"},
		{"GET /plain", "", "passes"},
		{"DELETE /plain/", "", "passes"},
		{"PATCH /plain/a|" + json, "{not JSON", "passes"},
		{"GET /graphql", "", "passes"},
		{"PUT /graphql", "", "passes"},
		{"POST /graphql|" + json, "{}", "422 Query is invalid: query: Required value"},
		{"DELETE /items/tea/buy", "", "passes"},
		{"POST /Items/tea/buy|" + shop + "|" + json, `{"count":0}`, "404 the path '/Items/tea/buy' is not spelled as the path of a resource that it could be taken for"},
		{"POST /items/tea|" + json, "{}", `405 POST is not supported on resources of kind "items"`},
		{"PUT /items|" + json, "{}", `405 PUT is not supported on resources of kind "items"`},
		{"REPORT /items/tea", "", `405 REPORT is not supported on resources of kind "items"`},
		{"OPTIONS /items/tea/buy", "", "passes"},
	})
}

// TestOtherMethods: operations of QUERY and of an author's own methods are checked as all others. What the document
// does not have for such a method is undescribed: it passes, or is refused.
func TestOtherMethods(t *testing.T) {
	const file = `
openapi: 3.2.0
info: {title: Files, version: "1"}
paths:
  /files: {get: {}, query: {requestBody: {required: true, content: {application/json: {schema: {type: object, required: [where], properties: {where: {type: string, maxLength: 3}}}}}}}}
  /files/{id}:
    get: {}
    put: {requestBody: {content: {application/json: {schema: {type: object, properties: {size: {type: integer}}}}}}}
    additionalOperations: {COPY: {parameters: [{name: To, in: header, required: true, schema: {type: string, maxLength: 3}}]}}
  /named/{name}/state: {query: {parameters: [{name: n, in: query, schema: {type: integer}}]}, additionalOperations: {MOVE: {}}}
`
	const json = "Content-Type: application/json"
	for undescribed, cases := range map[config.Undescribed][]documentedCase{
		config.PassUndescribed: {{"QUERY /elsewhere", "", "passes"}, {"LINK /named/a/state", "", "passes"}},
		config.DenyUndescribed: {
			{"QUERY /elsewhere", "", "404 the path '/elsewhere' is not described, and only described paths are served here"},
			{"LINK /named/a/state", "", "405 LINK is not described for the path '/named/a/state', and only what is described is served here"},
		},
	} {
		backend, address := documentsGateway(t, file, undescribed)
		playDocumented(t, backend, address, append(cases, []documentedCase{
			{"QUERY /files|" + json, ` {"where": "a"} `, "passes"},
			{"QUERY /files/|" + json, `{"where":"a"}`, "passes"},
			{"QUERY /files|" + json, `{"where":"long"}`,
				"422 the request is invalid: where: Too long: must be at most 3 characters"},
			{"QUERY /files|" + json, `{}`, "422 the request is invalid: where: Required value"},
			{"QUERY /files", "", "400 the body must not be empty"},
			{"QUERY /files|Content-Type: text/plain", "x", "415 the body of the request was in an unknown format - accepted media types include: application/json"},
			{"QUERY /Files|" + json, `{}`, "404 the path '/Files' is not spelled as the path of a resource that it could be taken for"},
			{"QUERY /files/%2e%2e/files|" + json, `{}`,
				"400 the request path must not contain '.' or '..' as a segment, encoded or not"},
			{"COPY /files/a|To: b", "", "passes"},
			{"COPY /files/a", "", "422 the request is invalid: header.To: Required value"},
			{"COPY /files/a|To: long", "",
				"422 the request is invalid: header.To: Too long: must be at most 3 characters"},
			{"copy /files/a|To: long", "", "400 the request line must start with a method in capital letters"},
			{"COPY /files", "", `405 COPY is not supported on resources of kind "files"`},
			{"LINK /files/a", "", `405 LINK is not supported on resources of kind "files"`},
			{"QUERY /named/a/state?n=x", "",
				`422 the request is invalid: query.n: Invalid value: "x": must be an integer`},
			{"MOVE /named/a/state", "", "passes"},
		}...))
		nc, br := dial(t, address)
		send(t, nc, "LINK /files/a HTTP/1.1\r\nHost: a\r\n\r\n")
		a, _ := readAnswer(t, br, false)
		_ = nc.Close()
		if got, want := a.Header.Get("Allow"), "GET, HEAD, PUT, OPTIONS, COPY"; got != want {
			t.Errorf("%s: Allow: %s, want %s", undescribed, got, want)
		}
	}
}

// A documentedCase is a request for what a document describes.
type documentedCase struct {
	request string // method, target and header lines
	body    string
	// want is the code and the message, or the code alone; "passes" if the backend gets the request as it is, and
	// "sends" with a body if it gets that.
	want string
}

// playDocumented sends the requests, and compares what becomes of them.
func playDocumented(t *testing.T, backend *recorder, address string, cases []documentedCase) {
	t.Helper()
	for _, test := range cases {
		head, lines, _ := strings.Cut(test.request, "|")
		text := head + " HTTP/1.1\r\nHost: api\r\n"
		if lines != "" {
			text += strings.ReplaceAll(lines, "|", "\r\n") + "\r\n"
		}
		if test.body != "" {
			text += fmt.Sprintf("Content-Length: %d\r\n", len(test.body))
		}
		nc, br := dial(t, address)
		send(t, nc, text+"\r\n"+test.body)
		got := ""
		if strings.HasPrefix(head, "HEAD ") {
			a, _ := readAnswer(t, br, true)
			got = fmt.Sprint(a.StatusCode, " ")
		} else {
			got = answerIn(t, br)
		}
		_ = nc.Close()
		sent := backend.Take()
		_, target, _ := strings.Cut(head, " ")
		if strings.HasPrefix(sent, head+" HTTP/1.1\r\n") && strings.HasSuffix(sent, "\r\n\r\n"+test.body) &&
			strings.Contains(sent, target) {
			got = "passes"
		} else if body, has := strings.CutPrefix(test.want, "sends "); has && strings.HasSuffix(sent, "\r\n\r\n"+body) {
			got = test.want
		} else if sent != "" {
			t.Errorf("%s %s: the backend got %q", test.request, test.body, sent)
		}
		if got != test.want && !(len(test.want) == len("422") && strings.HasPrefix(got, test.want)) {
			t.Errorf("%s %s:\n got %s\nwant %s", test.request, test.body, got, test.want)
		}
	}
}

// answerIn returns the code and the message of an answer.
func answerIn(t *testing.T, br *bufio.Reader) string {
	t.Helper()
	a, _ := readAnswer(t, br, false)
	_, message, _ := strings.Cut(string(a.Content), `"message":"`)
	message, _, _ = strings.Cut(message, `","reason"`)
	return fmt.Sprint(a.StatusCode, " ", strings.ReplaceAll(message, `\"`, `"`))
}

// TestDocumentedUpgrades: a path of which one method is described goes on in another protocol by the others.
func TestDocumentedUpgrades(t *testing.T) {
	backend, address := documentedGateway(t, config.PassUndescribed)
	const upgrade = " HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
	for path, passes := range map[string]bool{"/graphql": true, "/search": true, "/items/tea": false} {
		nc, br := dial(t, address)
		send(t, nc, "GET "+path+upgrade)
		readAnswer(t, br, false)
		_ = nc.Close()
		if sent := backend.Take(); strings.Contains(sent, "Upgrade: websocket") != passes {
			t.Errorf("%s: the backend got %q", path, sent)
		}
	}
}

// TestRedirectedSlash: a path that differs by the slash at its end is answered with the described one, its query with
// it.
func TestRedirectedSlash(t *testing.T) {
	backend, address := documentedGateway(t, config.PassUndescribed)
	nc, br := dial(t, address)
	defer func() { _ = nc.Close() }()
	send(t, nc, "GET /old?n=x HTTP/1.1\r\nHost: a\r\n\r\n")
	a, _ := readAnswer(t, br, false)
	if a.StatusCode != http.StatusPermanentRedirect || a.Header.Get("Location") != "/old/?n=x" || backend.Take() != "" {
		t.Errorf("got %d %v", a.StatusCode, a.Header)
	}
	send(t, nc, "GET /old/?n=x HTTP/1.1\r\nHost: a\r\n\r\n")
	if got, want := answerIn(t, br),
		`422 the request is invalid: query.n: Invalid value: "x": must be an integer`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestClosedMethods: a route that refuses what is not described refuses other methods of described paths, and
// says which ones there are.
func TestClosedMethods(t *testing.T) {
	for undescribed, want := range map[config.Undescribed]map[string]string{
		config.DenyUndescribed: {
			"GET /plain/a": "200", "DELETE /plain/a": "405 GET, HEAD, OPTIONS", "GET /graphql": "405 POST, OPTIONS",
			"PUT /items/tea/buy": "405 POST", "GET /other": "404", "DELETE /items/tea": "405 GET, HEAD, PUT, OPTIONS",
		},
		config.DenyWrites: {
			"GET /plain/a": "200", "DELETE /plain/a": "405 GET, HEAD, OPTIONS", "GET /graphql": "200",
			"PUT /graphql": "405 GET, HEAD, POST, OPTIONS", "GET /other": "200", "PUT /other": "405 GET, HEAD, OPTIONS",
		},
	} {
		_, address := documentedGateway(t, undescribed)
		for request, answer := range want {
			nc, br := dial(t, address)
			send(t, nc, request+" HTTP/1.1\r\nHost: a\r\n\r\n")
			a, _ := readAnswer(t, br, false)
			_ = nc.Close()
			if got := strings.TrimSpace(fmt.Sprint(a.StatusCode, " ", a.Header.Get("Allow"))); got != answer {
				t.Errorf("%s: %s: got %s, want %s", undescribed, request, got, answer)
			}
		}
	}
}
