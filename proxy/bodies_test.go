package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	brotli "github.com/molecule-man/go-brrr"

	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// libraryAPI is a document whose operations take bodies of many kinds.
const libraryAPI = `
openapi: 3.0.3
info: {title: Library, version: v1}
x-admission-gateway-resource: {group: library.example.com, version: v1}
paths:
  /books:
    get: {responses: {'200': {description: ok}}}
    post:
      requestBody:
        required: true
        content:
          application/json: {schema: {$ref: '#/components/schemas/Book'}}
          application/vnd.book+json: {schema: {$ref: '#/components/schemas/Book'}}
          application/x-www-form-urlencoded:
            schema: {$ref: '#/components/schemas/Book'}
            encoding: {near: {style: deepObject, explode: true}, size: {contentType: application/json}}
          multipart/form-data:
            schema:
              type: object
              required: [title, cover]
              additionalProperties: false
              properties:
                title: {type: string, minLength: 2}
                pages: {type: integer, maximum: 100}
                tags: {type: array, items: {type: string}, maxItems: 2}
                near: {type: object, required: [x], properties: {x: {type: integer}}}
                cover: {type: string, format: binary, maxLength: 8}
                scans: {type: array, items: {type: string, format: binary, maxLength: 8}, maxItems: 2}
            encoding: {cover: {contentType: 'image/*'}}
          text/csv: {schema: {type: string}}
          image/*: {}
      responses: {'201': {description: ok}}
  /books/{id}:
    get: {responses: {'200': {description: ok}}}
    put:
      requestBody: {content: {application/octet-stream: {schema: {type: string, format: binary}}}}
      responses: {'200': {description: ok}}
  /books/{id}/scan:
    post:
      x-admission-gateway-operation: scan
      parameters: [{name: dpi, in: query, required: true, schema: {type: integer, maximum: 600}}]
      security: [{key: []}]
      requestBody: {required: true, content: {application/x-www-form-urlencoded: {schema: {type: object, additionalProperties: false, properties: {page: {type: integer}}}}}}
      responses: {'200': {description: ok}}
components:
  securitySchemes: {key: {type: apiKey, in: header, name: X-Key}}
  schemas:
    Book:
      type: object
      required: [title]
      properties:
        id: {type: string, readOnly: true}
        title: {type: string, minLength: 2}
        pages: {type: integer, maximum: 100, default: 1}
        lent: {type: boolean}
        tags: {type: array, items: {type: string}, maxItems: 2}
        near: {type: object, required: [x], properties: {x: {type: integer}, y: {type: array, items: {type: integer}}}}
        size: {type: object, properties: {w: {type: number}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: books}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [library.example.com], apiVersions: [v1], operations: [CREATE], resources: [books]}]}
  validations: [{expression: "object == null || object.title != 'banned'", message: "is banned"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: books}
spec: {policyName: books, validationActions: [Deny]}
`

// A bodyKeeper is a backend that keeps the request that it got last.
type bodyKeeper struct {
	sync.Mutex
	body, contentType, coding string
	count                     int
}

func (k *bodyKeeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	k.Lock()
	k.body, k.contentType, k.coding = string(b), r.Header.Get("Content-Type"), r.Header.Get("Content-Encoding")
	k.count++
	k.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, "{}")
}

func (k *bodyKeeper) take() (body, contentType, coding string, count int) {
	k.Lock()
	defer k.Unlock()
	body, contentType, coding, count = k.body, k.contentType, k.coding, k.count
	k.count = 0
	return
}

// libraryFor starts a gateway in front of a backend that keeps what it gets.
func libraryFor(t *testing.T, document string) (url string, backend *bodyKeeper) {
	t.Helper()
	backend = &bodyKeeper{}
	s := httptest.NewServer(backend)
	t.Cleanup(s.Close)
	dir := policiestest.Write(t, document)
	return "http://" + startGateway(t, gatewayFor(t, dir, strings.TrimPrefix(s.URL, "http://"), nil)), backend
}

func inParts(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		head, content, _ := strings.Cut(p, "|")
		name, media, _ := strings.Cut(head, "#")
		_, _ = fmt.Fprintf(&b, "--b\r\nContent-Disposition: form-data; name=%s\r\n", name)
		if media != "" {
			_, _ = fmt.Fprintf(&b, "Content-Type: %s\r\n", media)
		}
		_, _ = fmt.Fprintf(&b, "\r\n%s\r\n", content)
	}
	return b.String() + "--b--\r\n"
}

// TestDeclaredBodies: operations take the media types that their document declares, and validate
// forms by their schemas; what is sent on are the client's own bytes.
func TestDeclaredBodies(t *testing.T) {
	url, backend := libraryFor(t, libraryAPI)
	const (
		form  = "application/x-www-form-urlencoded"
		parts = "multipart/form-data; boundary=b"
		cover = `"cover"; filename="a.png"#image/png|` + "\x89PNG\x00"
	)
	for _, c := range []struct {
		name, method, path, contentType, body string
		code                                  int
		says                                  string
	}{
		{"JSON", "POST", "/books", "application/json", `{"title":"ab","pages":2}`, 200, ""},
		{"JSON by another name", "POST", "/books", "application/vnd.book+json", `{"title":"ab","pages":2}`, 200, ""},
		{"bad JSON by another name", "POST", "/books", "application/vnd.book+json", `{"title":"a"}`, 422,
			"title: Invalid value"},
		{"undeclared", "POST", "/books", "application/xml", `<a/>`, 415, "application/json, application/vnd.book+json, application/x-www-form-urlencoded, multipart/form-data, text/csv, image/*"},
		{"undeclared JSON", "PUT", "/books/7", "application/json", `{"title":"ab"}`, 415,
			"accepted media types include: application/octet-stream"},
		{"bytes", "PUT", "/books/7", "application/octet-stream", "\x00\xff\xfe{", 200, ""},
		{"text", "POST", "/books", "text/csv; header=present", "a,b\r\n", 200, ""},
		{"a range", "POST", "/books", "image/png", "\x89PNG", 200, ""},
		{"two types in one", "POST", "/books", "text/csv, application/json", "a", 415, "accepted"},

		{"a form", "POST", "/books", form, "title=a%20b&pages=7&lent=true&tags=x&tags=y&near[x]=1&near%5By%5D=2&size=%7B%22w%22%3A1.5%7D&more=1", 200, ""},
		{"a form in UTF-8", "POST", "/books", form + "; charset=UTF-8", "title=ab", 200, ""},
		{"a form with faults", "POST", "/books", form, "title=a&pages=x&lent=1&tags=a&tags=b&tags=c&near[y]=q",
			422, `pages: Invalid value: "x": must be an integer|lent: Invalid value: "1": must be 'true' or 'false'|title: Invalid value: "a": |tags: Too many: 3: |near.y[0]: Invalid value: "q": must be an integer`},
		{"a form without what is required", "POST", "/books", form, "pages=101", 422,
			"title: Required value|pages: Invalid value: 101"},
		{"a form that sets what the API sets", "POST", "/books", form, "title=ab&id=7", 422,
			"id: Forbidden: may not be set: the API itself sets it"},
		{"a field twice", "POST", "/books", form, "title=ab&title=cd", 422,
			`title: Invalid value: "ab": must be given once`},
		{"a form that a policy denies", "POST", "/books", form, "title=banned", 422, "is banned"},
		{"an ambiguous form", "POST", "/books", form, "title=ab;pages=3", 400,
			"a form that can be read in one way only"},
		{"a form with half an escape", "POST", "/books", form, "title=ab%2", 400, "two hexadecimal digits"},
		{"a form that is no UTF-8", "POST", "/books", form, "title=%ff%fe", 422, "must be text in UTF-8"},

		{"parts", "POST", "/books", parts,
			inParts(`"title"|ab`, `"pages"|7`, `"tags"|x`, `"tags"|y`, `"near"#application/json|{"x":1}`, cover), 200,
			""},
		{"parts with faults", "POST", "/books", parts,
			inParts(`"title"|a`, `"pages"|seven`, `"near"|{"x":"1"}`,
				`"cover"; filename="a.exe"#application/x-dosexec|MZ`),
			422, `title: Invalid value: "a"|pages: Invalid value: "seven": must be an integer|near.x: Invalid value|cover: Invalid value: "a.exe": must have one of the media types image/*`},
		{"parts without a file", "POST", "/books", parts,
			inParts(`"title"|ab`, `"cover"; filename=""#application/octet-stream|`), 422, "cover: Required value"},
		{"a large file", "POST", "/books", parts,
			inParts(`"title"|ab`, `"cover"; filename="a.png"#image/png|123456789`), 422, "too many bytes"},
		{"files with long names", "POST", "/books", parts,
			inParts(`"title"|ab`, cover, `"scans"; filename="the-first-page.png"#image/png|1`,
				`"scans"; filename="the-second-page.png"#image/png|12345678`), 200, ""},
		{"a large file of several", "POST", "/books", parts,
			inParts(`"title"|ab`, cover, `"scans"; filename="a.png"#image/png|1`,
				`"scans"; filename="b.png"#image/png|123456789`), 422,
			"scans: Invalid value: \"b.png\": must be smaller: the file has too many bytes"},
		{"too many files", "POST", "/books", parts,
			inParts(`"title"|ab`, cover, `"scans"; filename="a.png"#image/png|1`,
				`"scans"; filename="b.png"#image/png|2`, `"scans"; filename="c.png"#image/png|3`), 422,
			"scans: Too many: 3: must have at most 2 items"},
		{"a file for a text", "POST", "/books", parts, inParts(`"title"; filename="t"|ab`, cover), 422,
			"title: Invalid value: \"\": must be a value, and not a file"},
		{"an unknown part", "POST", "/books", parts, inParts(`"title"|ab`, `"admin"|true`, cover), 422,
			"admin: Forbidden: must not be set: the form has no such field"},
		{"parts without an end", "POST", "/books", parts, strings.TrimSuffix(inParts(`"title"|ab`), "--\r\n"), 400,
			"must begin and end with the boundary"},
		{"a boundary in a part", "POST", "/books", parts, inParts(`"title"|ab`, `"tags"|x--b`), 400,
			"must begin and end with the boundary"},
		{"two names", "POST", "/books", parts, inParts(`"title"; name="pages"|ab`), 400, "Content-Disposition"},
		{"an encoded part", "POST", "/books", parts, "--b\r\nContent-Disposition: form-data; name=\"title\"\r\nContent-Transfer-Encoding: base64\r\n\r\nYWI=\r\n--b--\r\n", 400, "Content-Transfer-Encoding"},
		{"no boundary", "POST", "/books", "multipart/form-data", inParts(`"title"|ab`), 400, "boundary"},

		{"an operation", "POST", "/books/7/scan?dpi=300", form, "page=3", 200, ""},
		{"an operation with faults", "POST", "/books/7/scan?dpi=700", form, "page=x&y=1", 422, `query.dpi: Invalid value: 700|page: Invalid value: "x": must be an integer|y: Forbidden`},
		{"an operation without credentials", "POST", "/books/7/scan?dpi=300", form, "page=3", 401, "credentials"},
	} {
		t.Run(c.name, func(t *testing.T) {
			backend.take()
			r, _ := http.NewRequest(c.method, url+c.path, strings.NewReader(c.body))
			r.Header.Set("Content-Type", c.contentType)
			if c.code != 401 {
				r.Header.Set("X-Key", "1")
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != c.code {
				t.Fatalf("%d %s", resp.StatusCode, answer)
			}
			said := strings.ReplaceAll(string(answer), `\"`, `"`)
			for one := range strings.SplitSeq(c.says, "|") {
				if !strings.Contains(said, one) {
					t.Errorf("the answer does not say %q: %s", one, said)
				}
			}
			body, contentType, _, count := backend.take()
			if c.code == 200 && (body != c.body || contentType != c.contentType) {
				t.Errorf("the backend got %q as %q, want the client's own bytes", body, contentType)
			}
			if c.code != 200 && count > 0 {
				t.Errorf("the backend got %q", body)
			}
		})
	}
}

// encoded returns a text in a coding.
func encoded(t *testing.T, coding, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch coding {
	case "gzip", "x-gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "br":
		w, err = brotli.NewWriter(&b, 4)
	case "zstd":
		w, err = zstd.NewWriter(&b)
	default:
		return text
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestUploadsOfAnyMedia: a file whose schema has the contentMediaType of arbitrary bytes, as FastAPI writes it, may be
// of any media type; one with another contentMediaType may not.
func TestUploadsOfAnyMedia(t *testing.T) {
	url, _ := libraryFor(t, `openapi: 3.1.0
info: {title: Uploads, version: '1'}
paths:
  /upload:
    post:
      requestBody:
        required: true
        content:
          multipart/form-data:
            schema:
              type: object
              required: [file]
              properties:
                file: {type: string, contentMediaType: application/octet-stream}
                cover: {type: string, contentMediaType: image/png}
`)
	const (
		parts = "multipart/form-data; boundary=b"
		file  = `"file"; filename="a.png"#image/png|ab`
	)
	for _, c := range []struct {
		body string
		code int
		says string
	}{
		{inParts(file), 200, ""},
		{inParts(`"file"; filename="a"|ab`), 200, ""},
		{inParts(file, `"cover"; filename="b.png"#image/png|ab`), 200, ""},
		{inParts(file, `"cover"; filename="b.txt"#text/plain|ab`), 422, "must have one of the media types image/png"},
	} {
		answer, err := http.Post(url+"/upload", parts, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != c.code || !strings.Contains(string(said), c.says) {
			t.Errorf("%q: %d %s, %v, want %d %s", c.body, answer.StatusCode, said, err, c.code, c.says)
		}
	}
}

// TestEncodedBodies: a body that is encoded is decoded, admitted and sent on as it was admitted.
func TestEncodedBodies(t *testing.T) {
	url, backend := libraryFor(t, libraryAPI)
	send := func(contentType, coding, body string) (*http.Response, string) {
		r, _ := http.NewRequest("POST", url+"/books", strings.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Content-Encoding", coding)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		answer, _ := io.ReadAll(resp.Body)
		return resp, string(answer)
	}
	for _, coding := range []string{"gzip", "x-gzip", "deflate", "br", "zstd"} {
		resp, answer := send("application/json", coding, encoded(t, coding, `{"title":"ab","pages":7}`))
		if body, _, got, _ := backend.take(); resp.StatusCode != 200 || body != `{"title":"ab","pages":7}` ||
			got != "" {
			t.Errorf("%s: %d %s, the backend got %q encoded as %q", coding, resp.StatusCode, answer, body, got)
		}
		resp, answer = send("application/json", coding, encoded(t, coding, `{"title":"a"}`))
		if resp.StatusCode != 422 || !strings.Contains(answer, "title") {
			t.Errorf("%s: %d %s", coding, resp.StatusCode, answer)
		}
		bomb := encoded(t, coding, `{"title":"`+strings.Repeat("a", testutil.Amount(64<<20, 8<<20))+`"}`)
		if resp, answer = send("application/json", coding, bomb); resp.StatusCode != 413 {
			t.Errorf("%s: a bomb of %d bytes: %d %.200s", coding, len(bomb), resp.StatusCode, answer)
		}
		whole := encoded(t, coding, `{"title":"abcdefghijkl"}`)
		for _, bad := range []string{whole[:len(whole)/2], "{}", ""} {
			if resp, answer = send("application/json", coding, bad); resp.StatusCode != 400 {
				t.Errorf("%s: %q: %d %s", coding, bad, resp.StatusCode, answer)
			}
		}
		backend.take()
		if resp, answer = send("image/png", coding, "\x89PNG"); resp.StatusCode != 200 {
			t.Errorf("%s: %d %s", coding, resp.StatusCode, answer)
		}
		if body, _, got, _ := backend.take(); body != "\x89PNG" || got != coding {
			t.Errorf("the backend got %q encoded as %q: nobody reads these bytes", body, got)
		}
	}
	for _, coding := range []string{"compress", "gzip, gzip", "gzip;q=1"} {
		if resp, answer := send("application/json", coding, "x"); resp.StatusCode != 415 ||
			resp.Header.Get("Accept-Encoding") != "gzip, deflate, br, zstd" {
			t.Errorf("%s: %d %s, Accept-Encoding %q", coding, resp.StatusCode, answer,
				resp.Header.Get("Accept-Encoding"))
		}
	}
}

// TestFailuresInArrays: what is wrong with a body that is an array names the item, and nothing that no reader of the
// API knows.
func TestFailuresInArrays(t *testing.T) {
	url, backend := libraryFor(t, `
openapi: 3.1.0
info: {title: Alerts, version: v1}
x-admission-gateway-resource: {group: alerts.example.com, version: v1, items: Each}
paths:
  /alerts:
    get: {responses: {'200': {description: ok}}}
    post:
      requestBody:
        content:
          application/json:
            schema: {type: array, maxItems: 2, items: {type: object, required: [name], properties: {name: {type: string}, n: {type: integer}, share: {type: integer}}}}
      responses: {'200': {description: ok}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: shares}
spec:
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: [alerts.example.com], apiVersions: [v1], operations: [CREATE], resources: [alerts]}]}
  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: "add", path: "/share", value: 100 / object.n}]'}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: shares}
spec: {policyName: shares}
`)
	for body, want := range map[string]string{
		`[{"name":"a","n":1},{"name":"b","n":0}]`:                            `"message":"[1]: `,
		`[{"name":"a","n":1},{"n":1}]`:                                       `"field":"[1].name"`,
		`[{"name":"a","n":1},{"name":"a","n":1},{"name":"a","n":1}]`:         `"Alert.alerts.example.com is invalid: Too many: 3: must have at most 2 items"`,
		`[{"name":"a","n":1},{"name":"a","n":1},{"name":"a","n":1},{"n":1}]`: `"field":"[3].name"`,
	} {
		resp, err := http.Post(url+"/alerts", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if !strings.Contains(string(answer), want) || strings.Contains(string(answer), "nil") {
			t.Errorf("%s: %d %s, want %s", body, resp.StatusCode, answer, want)
		}
		if _, _, _, count := backend.take(); count > 0 {
			t.Errorf("%s: the backend got it", body)
		}
	}
}

// notesAPI is a document whose objects are patched by forms.
const notesAPI = `
openapi: 3.0.3
info: {title: Notes, version: v1}
x-admission-gateway-resource: {group: notes.example.com, version: v1, readDefaults: Fill}
paths:
  /notes/{id}:
    get: {responses: {'200': {content: {application/json: {schema: {$ref: '#/components/schemas/Note'}}}}}}
    put:
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Note'}}}}
      responses: {'200': {description: ok}}
    patch:
      requestBody:
        content:
          application/x-www-form-urlencoded: {schema: {$ref: '#/components/schemas/Note'}, encoding: {near: {style: deepObject, explode: true}}}
          multipart/form-data:
            schema:
              type: object
              required: [scan]
              additionalProperties: false
              properties: {title: {type: string, maxLength: 4}, scan: {type: string, format: binary, maxLength: 8}}
          text/csv: {schema: {type: string}}
      responses: {'200': {description: ok}}
components:
  schemas:
    Note:
      type: object
      required: [title, pages]
      properties:
        id: {type: string, readOnly: true}
        title: {type: string, minLength: 2}
        pages: {type: integer, maximum: 100}
        scan: {type: string}
        color: {type: string, default: white}
        near: {type: object, required: [x], properties: {x: {type: integer}, y: {type: integer}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: notes}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [notes.example.com], apiVersions: [v1], operations: [UPDATE], resources: [notes]}]}
  validations: [{expression: "object.pages >= oldObject.pages && object.color == 'white'", message: "may not shrink"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: notes}
spec: {policyName: notes, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: drafts}
spec:
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: [notes.example.com], apiVersions: [v1], operations: [UPDATE], resources: [notes]}]}
  matchConditions: [{name: draft, expression: "object.title == 'draft'"}]
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{pages: 100}"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: drafts}
spec: {policyName: drafts}
`

// storedNote has a member that the document does not know, and lacks the color that it has a default for.
const storedNote = `{"id":"7","title":"old","pages":9,"near":{"x":1},"kept":true}`

// TestPatchesInForms: a form that patches an object is validated as a part of one, the result by
// the object's schema and by policies, and the backend gets the client's own bytes.
func TestPatchesInForms(t *testing.T) {
	var backend bodyKeeper
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "GET" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, storedNote)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	gateway := func(document string) string {
		return "http://" + startGateway(t,
			gatewayFor(t, policiestest.Write(t, document), strings.TrimPrefix(s.URL, "http://"), nil))
	}
	validated := gateway(notesAPI)
	emulated := gateway(strings.Replace(notesAPI, "readDefaults: Fill}\npaths",
		"readDefaults: Fill, backend: {patch: Emulated}}\npaths", 1))
	const (
		form    = "application/x-www-form-urlencoded"
		parts   = "multipart/form-data; boundary=b"
		patches = "application/json-patch+json, application/merge-patch+json, application/json"
		all     = patches + ", application/x-www-form-urlencoded, multipart/form-data"
	)
	for _, c := range []struct {
		name, url, contentType, body string
		code                         int
		says, accepted               string
	}{
		{"a number that is none", validated, form, "title=new&pages=%2B12", 422,
			`pages: Invalid value: "+12": must be an integer`, ""},
		{"fields", validated, form, "title=new%20one&pages=12", 200, "", ""},
		{"a part of an object in it", validated, form, "near%5By%5D=2", 200, "", ""},
		{"an object in it that lacks its member", validated, form, "near%5By%5D=q", 422,
			`near.y: Invalid value: "q": must be an integer`, ""},
		{"a charset", validated, form + "; charset=utf-8", "title=new", 200, "", ""},
		{"faults", validated, form, "title=n&pages=101", 422, `title: Invalid value: "n"|pages: Invalid value: 101`,
			""},
		{"what a policy denies", validated, form, "pages=8", 422, "may not shrink", ""},
		{"what the API sets", validated, form, "title=new&id=8", 400, "does not match", ""},
		{"what a policy changes", validated, form, "title=draft", 415,
			"the body must be JSON: policies or versions change the object", all},
		{"an ambiguous form", validated, form, "title=new;pages=3", 400, "a form that can be read in one way only", ""},
		{"parts", validated, parts, inParts(`"title"|new`, `"scan"; filename="a.png"#image/png|12345678`), 200, "", ""},
		{"parts without a file", validated, parts, inParts(`"title"|new`), 200, "", ""},
		{"a large file", validated, parts, inParts(`"scan"; filename="a.png"#image/png|123456789`), 422,
			"too many bytes", ""},
		{"what the form does not have", validated, parts, inParts(`"title"|newer`, `"pages"|7`), 422,
			"title: Too long|pages: Forbidden: must not be set: the form has no such field", ""},
		{"undeclared", validated, "text/csv", "a,b", 415, "accepted media types include: " + all, all},
		{"two types in one", validated, form + ", " + form, "title=new", 415, "accepted media types include: " + all,
			all},
		{"a PUT of the result", emulated, form, "title=new", 415, "accepted media types include: " + patches, patches},
		{"JSON", validated, "application/json", `{"title":"new","color":"white"}`, 200, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			backend.take()
			r, _ := http.NewRequest("PATCH", c.url+"/notes/7", strings.NewReader(c.body))
			r.Header.Set("Content-Type", c.contentType)
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if got := resp.Header.Get("Accept-Patch"); resp.StatusCode != c.code || got != c.accepted {
				t.Fatalf("%d, Accept-Patch %q, want %d and %q: %s", resp.StatusCode, got, c.code, c.accepted, answer)
			}
			said := strings.ReplaceAll(string(answer), `\"`, `"`)
			for one := range strings.SplitSeq(c.says, "|") {
				if !strings.Contains(said, one) {
					t.Errorf("the answer does not say %q: %s", one, said)
				}
			}
			body, contentType, _, count := backend.take()
			if c.code == 200 && (body != c.body || contentType != c.contentType) {
				t.Errorf("the backend got %q as %q, want the client's own bytes", body, contentType)
			}
			if c.code != 200 && count > 0 {
				t.Errorf("the backend got %q", body)
			}
		})
	}
}
