package proxy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
)

// enforcedProof shows what a row of the table says of a document.
type enforcedProof struct {
	document string // without its head, if it begins with 'paths:'
	cases    []documentedCase
	says     []string // of the findings about the document, with all notes; none if it has none
}

const (
	asJSON   = "|Content-Type: application/json"
	asFields = "|Content-Type: application/x-www-form-urlencoded"
	asParts  = "|Content-Type: multipart/form-data; boundary=b"
)

// doing is a document with a POST that is no verb of a resource, and what is said there besides its path.
func doing(said string) string { return "paths:\n  /do/{id}/now:\n    post: {" + said + "}\n" }

// taking is the same with a body of JSON and its schema.
func taking(schema string) string {
	return doing("requestBody: {content: {application/json: {schema: " + schema + "}}}")
}

const now = "POST /do/1/now"

// enforcedProofs has a proof for each row, by its first cell.
var enforcedProofs = map[string]enforcedProof{
	"operations of GET, HEAD, POST, PUT, PATCH, DELETE and QUERY, and of `additionalOperations`": {
		document: `paths:
  /do/{id}/now:
    parameters: [{name: n, in: query, schema: {type: integer}}]
    get: {}
    head: {}
    post: {}
    put: {}
    patch: {}
    delete: {}
    query: {}
    additionalOperations: {COPY: {}}
`,
		cases: []documentedCase{
			{"GET /do/1/now?n=x", "", "422"}, {"HEAD /do/1/now?n=x", "", "422"}, {"POST /do/1/now?n=x", "", "422"},
			{"PUT /do/1/now?n=x", "", "422"},
			{"PATCH /do/1/now?n=x", "", "422"}, {"DELETE /do/1/now?n=x", "", "422"}, {"QUERY /do/1/now?n=x", "", "422"},
			{"COPY /do/1/now?n=x", "", "422"},
			{"QUERY /do/1/now?n=1", "", "passes"}, {"COPY /do/1/now?n=1", "", "passes"},
		},
	},
	"operations of OPTIONS and TRACE": {
		document: "paths:\n  /do/{id}/now:\n    parameters: [{name: n, in: query, schema: {type: integer}}]\n    options: {description: asks}\n    trace: {description: traces}\n",
		cases:    []documentedCase{{"OPTIONS /do/1/now?n=x", "", "passes"}, {"TRACE /do/1/now?n=x", "", "405"}},
		says: []string{"options: note: is not enforced: browsers ask by it",
			"trace: note: is not enforced: TRACE is refused"},
	},
	"two operations whose paths match the same requests": {
		document: "paths:\n  /do/{id}/now: {get: {parameters: [{name: n, in: query, schema: {type: integer}}, {name: m, in: query, schema: {type: integer}}]}}\n" +
			"  /do/{name}/now: {get: {parameters: [{name: n, in: query, schema: {type: integer}}]}}\n",
		cases: []documentedCase{{"GET /do/1/now?n=x", "", "422"}, {"GET /do/1/now?m=x", "", "passes"}},
		says:  []string{"warning: the parameter 'm' is not enforced: the same requests match '/do/{name}/now'", "warning: is not enforced: the same requests match '/do/{id}/now'"},
	},
	"`servers`": {
		document: "servers: [{url: 'https://api.example.com/v1'}]\npaths:\n  /do/{id}/now: {get: {parameters: [{name: n, in: query, schema: {type: integer}}]}}\n",
		cases:    []documentedCase{{"GET /v1/do/1/now?n=x", "", "422"}, {"GET /do/1/now?n=x", "", "passes"}},
	},
	"parameters in path, query, header and cookie": {
		document: doing("parameters: [{name: id, in: path, required: true, schema: {type: integer}}, {name: n, in: query, schema: {type: integer}}, {name: X-N, in: header, schema: {type: integer}}, {name: c, in: cookie, schema: {type: integer}}, " +
			"{name: o, in: query, style: deepObject, schema: {type: object, properties: {p: {type: integer}}, additionalProperties: {type: integer}}}]"),
		cases: []documentedCase{
			{now + "?o[p]=1&o[q]=2", "", "passes"}, {now + "?o[p]=1&o[q]=x", "", "422"},
			{now + "?n=1|X-N: 1|Cookie: c=1", "", "passes"},
			{"POST /do/x/now", "", "422"}, {now + "?n=x", "", "422"}, {now + "|X-N: x", "", "422"},
			{now + "|Cookie: c=x", "", "422"},
		},
	},
	"parameters in `querystring`, or of the style `cookie`": {
		document: doing("parameters: [{name: q, in: querystring, content: {application/json: {schema: {type: object}}}}, {name: c, in: cookie, style: cookie, schema: {type: integer}}]"),
		cases:    []documentedCase{{now + "?[]|Cookie: c=x", "", "passes"}},
		says:     []string{"note: is not enforced: the gateway does not read the whole query as one value", "note: is not enforced: the gateway does not read parameters of the style 'cookie' here"},
	},
	"parameters that are lists within lists or objects within objects": {
		document: doing("parameters: [{name: q, in: query, schema: {type: array, items: {type: array, items: {type: integer}}}}, {name: o, in: query, style: deepObject, schema: {type: object, properties: {p: {type: object, properties: {n: {type: integer}}}}}}]"),
		cases:    []documentedCase{{now + "?q=x", "", "passes"}, {now + "?o[p][n]=x", "", "passes"}},
		says: []string{"note: is not enforced: the gateway reads no lists and objects within lists",
			"note: is not enforced: the gateway reads no lists and objects within 'p'"},
	},
	"parameters that may be a list, an object or a text": {
		document: doing("parameters: [{name: q, in: query, schema: {type: [array, integer]}}, {name: o, in: query, schema: {type: [object, integer]}}]"),
		cases:    []documentedCase{{now + "?q=x", "", "passes"}, {now + "?o=x", "", "passes"}},
		says: []string{"note: is not enforced: a parameter that may be a list or not",
			"note: is not enforced: a parameter that may be an object or not"},
	},
	"`allowReserved`": {
		document: doing("parameters: [{name: q, in: query, allowReserved: true, schema: {type: string, maxLength: 3}}]"),
		cases: []documentedCase{{now + "?q=a/b", "", "passes"}, {now + "?q=a%2Fb", "", "passes"},
			{now + "?q=a%2Fbc", "", "422"}},
		says: []string{"note: is not enforced: reserved characters pass, encoded or not"},
	},
	"whether a body is `required`": {
		document: "paths:\n  /do/{id}/now: {post: {requestBody: {required: true, content: {application/json: {schema: {type: object}}}}}, put: {requestBody: {content: {application/json: {schema: {type: object}}}}}}\n",
		cases:    []documentedCase{{now, "", "400"}, {"PUT /do/1/now", "", "passes"}},
	},
	"the media type of a body": {
		document: doing("requestBody: {content: {application/json: {schema: {type: object}}, image/png: {}}}"),
		cases: []documentedCase{{now + "|Content-Type: image/png", "x", "passes"},
			{now + "|Content-Type: text/plain", "x", "415"}},
	},
	"bodies in JSON": {
		document: taking("{type: object, required: [a], properties: {a: {type: integer}}}"),
		cases: []documentedCase{{now + asJSON, `{"a":1}`, "passes"}, {now + asJSON, `{"a":"x"}`, "422"},
			{now + asJSON, `{`, "400"}},
	},
	"bodies in forms": {
		document: doing("requestBody: {content: {application/x-www-form-urlencoded: {schema: {type: object, properties: {a: {type: integer}}, additionalProperties: {type: integer}}}, multipart/form-data: {schema: {type: object, properties: {a: {type: integer}}}}}}"),
		cases: []documentedCase{
			{now + asFields, "a=1&b=2", "passes"}, {now + asFields, "a=1&b=x", "422"},
			{now + asFields, "a=1", "passes"}, {now + asFields, "a=x", "422"},
			{now + asParts, part("a", "1"), "passes"}, {now + asParts, part("a", "x"), "422"},
		},
	},
	"a field of a form that has no way to be written": {
		document: doing("requestBody: {content: {application/x-www-form-urlencoded: {schema: {type: object, properties: {a: {type: array, items: {type: object}}, b: {type: integer}}, additionalProperties: {type: array, items: {type: array}}}}}}"),
		cases: []documentedCase{{now + asFields, "b=1", "passes"}, {now + asFields, "a=x", "422"},
			{now + asFields, "c=x", "422"}},
		says: []string{
			"a: warning: is refused in forms of application/x-www-form-urlencoded: the gateway reads no lists and objects within lists",
			"additionalProperties: warning: is refused in forms of application/x-www-form-urlencoded: the gateway reads no lists and objects within lists",
		},
	},
	"`headers` in `encoding`": {
		document: doing("requestBody: {content: {multipart/form-data: {schema: {type: object, properties: {a: {type: integer}}}, encoding: {a: {headers: {X-N: {required: true, schema: {type: integer}}}}}}}}"),
		cases:    []documentedCase{{now + asParts, part("a", "1"), "passes"}},
		says:     []string{"note: is not enforced: headers of parts are not enforced"},
	},
	"`itemSchema`": {
		document: doing("requestBody: {content: {application/jsonl: {itemSchema: {type: object}}}}"),
		cases:    []documentedCase{{now + "|Content-Type: application/jsonl", "1\n2\n", "passes"}},
		says:     []string{"note: is not enforced: the gateway does not read the items of a sequence"},
	},
	"`prefixEncoding`, `itemEncoding`": {
		document: doing("requestBody: {content: {multipart/mixed: {prefixEncoding: [{contentType: image/png}], itemEncoding: {contentType: image/png}}}}"),
		cases:    []documentedCase{{now + "|Content-Type: multipart/mixed; boundary=b", part("a", "1"), "passes"}},
		says: []string{"prefixEncoding: note: is not enforced: the gateway reads the parts",
			"itemEncoding: note: is not enforced: the gateway reads the parts"},
	},
	"bodies in XML and all other types": {
		document: doing("requestBody: {content: {application/xml: {schema: {type: object, xml: {name: a}, properties: {a: {type: integer}}}}}}"),
		cases:    []documentedCase{{now + "|Content-Type: application/xml", "<a>x</a>", "passes"}},
		says:     []string{"note: is not enforced: the gateway reads no XML"},
	},
	"credentials of the types apiKey, http, oauth2 and openIdConnect": {
		document: "paths:\n  /do/a/now: {post: {security: [{a: []}]}}\n  /do/h/now: {post: {security: [{h: []}]}}\n  /do/o/now: {post: {security: [{o: []}]}}\n  /do/c/now: {post: {security: [{c: []}]}}\n" +
			"components: {securitySchemes: {a: {type: apiKey, in: header, name: X-Key}, h: {type: http, scheme: basic}, o: {type: oauth2, flows: {}}, c: {type: openIdConnect, openIdConnectUrl: 'https://a'}}}\n",
		cases: []documentedCase{
			{"POST /do/a/now", "", "401"}, {"POST /do/h/now", "", "401"}, {"POST /do/o/now", "", "401"},
			{"POST /do/c/now", "", "401"}, {"POST /do/h/now|Authorization: Bearer x", "", "401"},
			{"POST /do/a/now|X-Key: wrong", "", "passes"}, {"POST /do/h/now|Authorization: Basic eA==", "", "passes"},
			{"POST /do/o/now|Authorization: Bearer x", "", "passes"},
			{"POST /do/c/now|Authorization: Bearer x", "", "passes"},
		},
	},
	"scopes": {
		document: doing("security: [{o: [write]}]") + "components: {securitySchemes: {o: {type: oauth2, flows: {}}}}\n",
		cases:    []documentedCase{{now + "|Authorization: Bearer x", "", "passes"}},
		says:     []string{"note: is not enforced: the API itself knows which scopes its credentials have"},
	},
	"credentials of the type mutualTLS": {
		document: doing("security: [{m: []}]") + "components: {securitySchemes: {m: {type: mutualTLS}}}\n",
		cases:    []documentedCase{{now, "", "passes"}},
		says:     []string{"note: is not enforced: the gateway looks for an apiKey, and for credentials of the header Authorization"},
	},
	"`callbacks` and `webhooks`": {
		document: doing("callbacks: {done: {'{$request.body#/url}': {post: {}}}}") + "webhooks: {done: {post: {}}}\n",
		cases:    []documentedCase{{now, "", "passes"}},
		says: []string{"callbacks: note: is not enforced: callbacks go from the API",
			"webhooks: note: is not enforced: webhooks go from the API"},
	},
	"`links`": {
		document: doing("responses: {'200': {description: ok, links: {next: {operationId: a}}}}"),
		cases:    []documentedCase{{now, "", "passes"}},
		says:     []string{"links: note: is not enforced: links are not followed"},
	},
	"`responses`": {
		document: doing("responses: {'201': {description: ok, content: {application/json: {schema: {type: object}}}}}"),
		cases:    []documentedCase{{now, "", "passes"}},
		says:     []string{"content: note: is not enforced: answers pass as they come"},
	},
	"`readOnly`": {
		document: "paths:\n  /things: {post: {requestBody: {content: {application/json: {schema: {type: object, required: [a], properties: {a: {type: integer, readOnly: true}, b: {type: integer}}}}}}}}\n",
		cases: []documentedCase{{"POST /things" + asJSON, `{"b":1}`, "passes"},
			{"POST /things" + asJSON, `{"a":1,"b":1}`, `sends {"b":1}`}},
	},
	"`readOnly` within alternatives": {
		document: "paths:\n  /things: {post: {requestBody: {content: {application/json: {schema: {type: object, oneOf: [{required: [b], properties: {a: {type: integer, readOnly: true}}}, {required: [c]}]}}}}}}\n",
		cases:    []documentedCase{{"POST /things" + asJSON, `{"a":1,"b":1}`, "passes"}},
		says:     []string{"note: is not enforced within alternatives"},
	},
	"`writeOnly` of requests": {
		document: "paths:\n  /things: {post: {requestBody: {content: {application/json: {schema: {type: object, required: [a], properties: {a: {type: integer, writeOnly: true}}}}}}}}\n",
		cases:    []documentedCase{{"POST /things" + asJSON, `{"a":1}`, "passes"}, {"POST /things" + asJSON, `{}`, "422"}},
		says:     []string{"note: is not enforced in answers: they pass as they come"},
	},
	"the keywords of JSON Schema 2020-12": {
		document: taking("{type: object, if: {required: [a]}, then: {required: [b]}, dependentRequired: {c: [d]}, unevaluatedProperties: false, properties: {a: {}, b: {}, c: {}, d: {type: array, prefixItems: [{type: integer}], contains: {const: 2}}}}"),
		cases: []documentedCase{
			{now + asJSON, `{"a":1,"b":1,"c":1,"d":[1,2]}`, "passes"},
			{now + asJSON, `{"a":1}`, "422"}, {now + asJSON, `{"c":1}`, "422"}, {now + asJSON, `{"e":1}`, "422"},
			{now + asJSON, `{"d":["x",2]}`, "422"}, {now + asJSON, `{"d":[1]}`, "422"},
		},
	},
	"a `format` of JSON Schema": {
		document: taking("{type: object, properties: {a: {type: string, format: idn-email}, b: {type: string, format: duration}, c: {type: string, format: uri-reference}, d: {type: string, format: regex}}}"),
		cases: []documentedCase{
			{now + asJSON, `{"a":"josé@example.com","b":"PT1H","c":"/a","d":"^a"}`, "passes"},
			{now + asJSON, `{"a":"x"}`, "422"}, {now + asJSON, `{"b":"1h"}`, "422"},
			{now + asJSON, `{"c":"a b"}`, "422"}, {now + asJSON, `{"d":"("}`, "422"},
		},
	},
	"a `format` of another name": {
		document: taking("{type: object, properties: {a: {type: string, format: moon}}}"),
		cases:    []documentedCase{{now + asJSON, `{"a":"x"}`, "passes"}},
		says:     []string{"note: the format 'moon' is not enforced"},
	},
	"a `pattern` that looks ahead or refers back": {
		document: taking(`{type: object, properties: {a: {type: string, pattern: '^(?=b)'}, c: {type: string, pattern: '(d)\1'}}}`),
		cases:    []documentedCase{{now + asJSON, `{"a":"x","c":"x"}`, "passes"}},
		says: []string{"a.pattern: note: is not enforced, because the expression is not one of RE2",
			"c.pattern: note: is not enforced, because the expression is not one of RE2"},
	},
	"`contentEncoding`, `contentSchema`": {
		document: taking("{type: object, properties: {a: {type: string, contentEncoding: base64, contentSchema: {type: object}}}}"),
		cases:    []documentedCase{{now + asJSON, `{"a":"~"}`, "passes"}},
		says: []string{"contentEncoding: note: is not enforced: the gateway does not look into texts",
			"contentSchema: note: is not enforced: the gateway does not look into texts"},
	},
	"`discriminator`": {
		document: taking("{oneOf: [{$ref: '#/components/schemas/Cat'}, {$ref: '#/components/schemas/Dog'}], discriminator: {propertyName: is}}") +
			"components: {schemas: {Cat: {type: object, properties: {is: {type: string}, a: {type: integer}}}, Dog: {type: object, properties: {is: {type: string}, a: {type: string}}}}}\n",
		cases: []documentedCase{{now + asJSON, `{"is":"Cat","a":1}`, "passes"},
			{now + asJSON, `{"is":"Dog","a":1}`, "422"}, {now + asJSON, `{"is":"Cow"}`, "422"}},
	},
	"`defaultMapping` of a `discriminator`": {
		document: taking("{oneOf: [{$ref: '#/components/schemas/Cat'}, {$ref: '#/components/schemas/Dog'}], discriminator: {propertyName: is, defaultMapping: Cat}}") +
			"components: {schemas: {Cat: {type: object, required: [a], properties: {is: {type: string}, a: {type: integer}}}, Dog: {type: object, required: [b], properties: {is: {type: string}, b: {type: string}}}}}\n",
		cases: []documentedCase{{now + asJSON, `{"b":"x"}`, "passes"}, {now + asJSON, `{"is":"Cat","b":"x"}`, "passes"},
			{now + asJSON, `{}`, "422"}},
		says: []string{"the alternatives are told apart by their schemas, whatever the discriminator names"},
	},
	"keywords beside a `$ref` in OpenAPI 3.0": {
		document: "openapi: 3.0.3\n" + taking("{type: object, properties: {a: {$ref: '#/components/schemas/A', maxLength: 1}}}") + "components: {schemas: {A: {type: string}}}\n",
		cases:    []documentedCase{{now + asJSON, `{"a":"xyz"}`, "passes"}, {now + asJSON, `{"a":1}`, "422"}},
		says:     []string{"warning: does not count beside '$ref' in OpenAPI 3.0"},
	},
	"a `default`": {
		document: "paths:\n  /things: {post: {requestBody: {content: {application/json: {schema: {type: object, properties: {a: {type: integer, default: 1}}}}}}}}\n",
		cases:    []documentedCase{{"POST /things" + asJSON, `{}`, `sends {"a":1}`}},
		says:     []string{"note: 1 default of a schema is filled in"},
	},
	"`$self`, `jsonSchemaDialect`": {
		document: "$self: https://example.com/a\njsonSchemaDialect: https://example.com/b\n" +
			taking("{type: object, properties: {a: {type: integer}}}"),
		cases: []documentedCase{{now + asJSON, `{"a":"x"}`, "422"}},
		says:  []string{"$self: note: is not enforced", "jsonSchemaDialect: note: is not enforced"},
	},
	"lists that are separated by tabs in Swagger 2.0": {
		document: "swagger: '2.0'\npaths:\n  /do/{id}/now: {post: {parameters: [{name: id, in: path, required: true, type: string}, {name: q, in: query, type: array, collectionFormat: tsv, items: {type: integer}}], responses: {'200': {description: ok}}}}\n",
		cases:    []documentedCase{{now + "?q=x%091", "", "passes"}},
		says:     []string{"note: is not enforced: lists that are separated by tabs are not read"},
	},
	"what OpenAPI does not have": {
		document: "odd: 1\n" + doing("odd: 1, requestBody: {odd: 1, content: {application/json: {odd: 1, schema: {odd: 1, type: object}}}}"),
		cases:    []documentedCase{{now + asJSON, `{}`, "passes"}},
		says: []string{"odd: warning: the keyword 'odd' is not enforced",
			"post.odd: warning: the keyword 'odd' is not enforced",
			"schema.odd: warning: the keyword 'odd' is not enforced"},
	},
}

// part is a form of one part.
func part(name, text string) string {
	return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + text + "\r\n--b--\r\n"
}

// TestEnforced: each row of the page's table about what is enforced is so. What is not enforced passes and is named.
func TestEnforced(t *testing.T) {
	page, err := os.ReadFile("../docs/policies/openapi.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## What is and is not enforced\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := regexp.MustCompile(`(?m)^\| (.+?) \| (yes|no|in part) \|`).FindAllStringSubmatch(section, -1)
	proven := map[string]bool{}
	for _, row := range rows {
		proof, found := enforcedProofs[row[1]]
		if !found {
			t.Errorf("no proof of the row %s", row[1])
			continue
		}
		proven[row[1]] = true
		t.Run(row[1], func(t *testing.T) { proof.check(t, row[2]) })
	}
	for name := range enforcedProofs {
		if !proven[name] {
			t.Errorf("no row of the page is %s", name)
		}
	}
}

// check proves what a row says: yes, no or in part.
func (p *enforcedProof) check(t *testing.T, says string) {
	file := p.document
	if !strings.Contains(file, "openapi:") && !strings.Contains(file, "swagger:") {
		file = "openapi: 3.2.0\n" + file
	}
	file = "info: {title: Proof, version: '1'}\n" + file
	passes, refused, changes := false, false, false
	for _, one := range p.cases {
		isRefused := one.want[0] == '4'
		changes = changes || strings.HasPrefix(one.want, "sends")
		passes, refused = passes || !isRefused, refused || isRefused
	}
	switch {
	case says == "yes" && !refused && !changes, says == "in part" && !(passes && refused), says == "no" &&
		len(p.says) == 0:
		t.Errorf("the proof does not show %s", says)
	}
	dir := t.TempDir()
	testutil.WriteFile(t, filepath.Join(dir, "api.yaml"), file)
	_, found := policies.Load([]string{dir})
	var all strings.Builder
	for _, f := range found {
		if f.Severity == policies.Error {
			t.Errorf("%s", f.String())
		}
		all.WriteString(f.String() + "\n")
	}
	for _, text := range p.says {
		if !strings.Contains(all.String(), text) {
			t.Errorf("no finding has %q:\n%s", text, all.String())
		}
	}
	if says == "yes" && len(p.says) == 0 && strings.Contains(all.String(), "is not enforced") &&
		!strings.Contains(all.String(), "which nearly every") {
		t.Errorf("what is enforced is named:\n%s", all.String())
	}
	backend, address := documentsGateway(t, file, config.PassUndescribed)
	playDocumented(t, backend, address, p.cases)
}
