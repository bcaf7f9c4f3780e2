package proxy

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/admission-gateway/gateway/policies/policiestest"
)

// volumesAPI is a document of volumes, which have a default, and take patches and forms.
const volumesAPI = `
openapi: 3.0.3
info: {title: Volumes, version: v1}
x-admission-gateway-resource: {group: volumes.example.com, version: v1, readDefaults: Fill}
paths:
  /volumes:
    get: {responses: {'200': {content: {application/json: {schema: {type: object, properties: {items: {type: array, items: {$ref: '#/components/schemas/Volume'}}}}}}}}}
    post:
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Volume'}}, application/x-www-form-urlencoded: {schema: {$ref: '#/components/schemas/Volume'}}}}
      responses: {'201': {description: ok}}
  /volumes/{id}:
    get: {responses: {'200': {content: {application/json: {schema: {$ref: '#/components/schemas/Volume'}}}}}}
    put:
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Volume'}}}}
      responses: {'200': {description: ok}}
    patch:
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Volume'}}, application/x-www-form-urlencoded: {schema: {$ref: '#/components/schemas/Volume'}}}}
      responses: {'200': {description: ok}}
    delete: {responses: {'204': {description: ok}}}
components:
  schemas:
    Volume: {type: object, properties: {id: {type: string}, size: {type: integer}, class: {type: string, default: slow}}}
`

// unrevised matches what depends on the policy files in an ETag.
var unrevised = regexp.MustCompile(`(-gateway-)[0-9a-f]{8}`)

// digests are headers that speak of the very bytes of a body.
var digests = []string{"Content-Digest", "Repr-Digest", "Digest", "Content-Md5"}

// A digestKeeper keeps which digests its requests have.
type digestKeeper struct {
	sync.Mutex
	seen map[string]string // by the method
	// answer is the body of answers, in a coding.
	answer, coding string
}

func (k *digestKeeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	k.Lock()
	defer k.Unlock()
	k.seen[r.Method] = digestsIn(r.Header)
	h := w.Header()
	for _, name := range digests {
		h.Set(name, "x=:AAAA:")
	}
	h.Set("Content-Type", "application/json")
	h.Set("ETag", `"7"`)
	h.Set("Accept-Ranges", "bytes")
	if k.coding != "" {
		h.Set("Content-Encoding", k.coding)
	}
	_, _ = io.WriteString(w, k.answer)
}

// digestsIn reports whether a head has all digests, none or some.
func digestsIn(h http.Header) string {
	n := 0
	for _, name := range digests {
		n += len(h.Values(name))
	}
	return map[int]string{0: "none", len(digests): "all"}[n]
}

func digestGateway(t *testing.T, answer, coding string) (url string, k *digestKeeper) {
	t.Helper()
	k = &digestKeeper{seen: map[string]string{}, answer: answer, coding: coding}
	s := httptest.NewServer(k)
	t.Cleanup(s.Close)
	return "http://" + startGateway(t,
		gatewayFor(t, policiestest.Write(t, volumesAPI), strings.TrimPrefix(s.URL, "http://"), nil)), k
}

// TestDigestsOfRequests: a digest of the client's own bytes goes on with them, and with nothing else.
func TestDigestsOfRequests(t *testing.T) {
	url, backend := digestGateway(t, `{"id":"a","size":1,"class":"fast"}`, "")
	const form, whole = "application/x-www-form-urlencoded", `{"id":"a","size":2,"class":"fast"}`
	for _, c := range []struct {
		name, method, path, contentType, coding, body string
		want                                          map[string]string
	}{
		{"undescribed", "POST", "/else", "text/plain", "", "hello", map[string]string{"POST": "all"}},
		{"undescribed and large", "POST", "/else", "text/plain", "", strings.Repeat("hello", 100<<10),
			map[string]string{"POST": "all"}},
		{"undescribed and encoded", "POST", "/else", "text/plain", "gzip", encoded(t, "gzip", "hello"),
			map[string]string{"POST": "all"}},
		{"without a body", "GET", "/volumes/a", "", "", "", map[string]string{"GET": "all"}},
		{"as it came", "POST", "/volumes", "application/json", "", whole, map[string]string{"POST": "all"}},
		{"decoded", "POST", "/volumes", "application/json", "gzip", encoded(t, "gzip", whole),
			map[string]string{"POST": "none"}},
		{"defaulted", "POST", "/volumes", "application/json", "", `{"id":"a"}`, map[string]string{"POST": "none"}},
		{"replaced as it came", "PUT", "/volumes/a", "application/json", "", whole, map[string]string{"PUT": "all"}},
		{"replaced and defaulted", "PUT", "/volumes/a", "application/json", "", `{"id":"a"}`,
			map[string]string{"PUT": "none"}},
		{"a form", "POST", "/volumes", form, "", "size=2", map[string]string{"POST": "all"}},
		{"a form that is decoded", "POST", "/volumes", form, "br", encoded(t, "br", "size=2"),
			map[string]string{"POST": "none"}},
		{"a patch", "PATCH", "/volumes/a", "application/json", "", `{"size":2}`,
			map[string]string{"GET": "none", "PATCH": "all"}},
		{"a patch that is changed", "PATCH", "/volumes/a", "application/merge-patch+json", "", `{"class":null}`,
			map[string]string{"GET": "none", "PATCH": "none"}},
		{"a patch in a form", "PATCH", "/volumes/a", form, "", "size=2",
			map[string]string{"GET": "none", "PATCH": "all"}},
		{"a patch that is decoded", "PATCH", "/volumes/a", "application/json", "zstd", encoded(t, "zstd", `{"size":2}`),
			map[string]string{"GET": "none", "PATCH": "none"}},
		{"a deletion", "DELETE", "/volumes/a", "", "", "", map[string]string{"DELETE": "all"}},
		{"a deletion with options", "DELETE", "/volumes/a", "application/json", "", "{}",
			map[string]string{"DELETE": "all"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			clear(backend.seen)
			r, _ := http.NewRequest(c.method, url+c.path, strings.NewReader(c.body))
			for name, value := range map[string]string{"Content-Type": c.contentType, "Content-Encoding": c.coding} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
			for _, name := range digests {
				r.Header.Set(name, "x=:AAAA:")
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			backend.Lock()
			defer backend.Unlock()
			if resp.StatusCode != 200 || !maps.Equal(backend.seen, c.want) {
				t.Errorf("%d %s: the backend got %v of the digests, want %v", resp.StatusCode, answer, backend.seen,
					c.want)
			}
		})
	}
}

// TestDigestsOfAnswers: what an answer says of its very bytes goes on with them, and with nothing else. The ETag of
// other bytes is another one.
func TestDigestsOfAnswers(t *testing.T) {
	name := strings.Repeat("a", 2000) // that makes it worth to be encoded
	whole, bare := `{"id":"`+name+`","class":"fast"}`, `{"id":"`+name+`"}`
	const own, edited = `"7"`, `"7-gateway-*"`
	for _, c := range []struct {
		name, answer, coding, method, path, accepts string
		digests, etag, got                          string
	}{
		{"undescribed", bare, "", "GET", "/else", "", "all", own, ""},
		{"undescribed, encoded by the backend", bare, "gzip", "GET", "/else", "gzip", "all", own, "gzip"},
		{"as it came", whole, "", "GET", "/volumes/a", "", "all", own, ""},
		{"edited", bare, "", "GET", "/volumes/a", "", "none", edited, ""},
		{"edited and encoded", bare, "", "GET", "/volumes/a", "br", "none", `"7-gateway-*-br"`, "br"},
		{"encoded", whole, "", "GET", "/volumes/a", "zstd", "none", `"7-gateway-zstd"`, "zstd"},
		{"decoded", whole, "gzip", "GET", "/volumes/a", "", "none", edited, ""},
		{"decoded and encoded", whole, "gzip", "GET", "/volumes/a", "br", "none", `"7-gateway-*-br"`, "br"},
		{"the head of what may be edited", bare, "", "HEAD", "/volumes/a", "", "none", edited, ""},
		{"a list", `{"items":[` + bare + `]}`, "", "GET", "/volumes", "", "none", edited, ""},
		{"a large list", `{"items":[` + bare + strings.Repeat(","+bare, 100) + `]}`, "", "GET", "/volumes", "", "none",
			edited, ""},
		{"no JSON that could be completed", `{"items":[]}`, "", "GET", "/volumes", "", "all", own, ""},
		{"a write", bare, "", "DELETE", "/volumes/a", "", "all", own, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := c.answer
			if c.coding != "" {
				answer = encoded(t, c.coding, answer)
			}
			url, _ := digestGateway(t, answer, c.coding)
			r, _ := http.NewRequest(c.method, url+c.path, nil)
			r.Header.Set("Accept-Encoding", cmp.Or(c.accepts, "identity"))
			resp, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			h := resp.Header
			got := fmt.Sprint(resp.StatusCode, digestsIn(h), slices.Clone(h["Accept-Ranges"]), h["Content-Encoding"],
				unrevised.ReplaceAllString(h.Get("ETag"), "${1}*"))
			ranges, coding := []string{"bytes"}, []string{c.got}
			if c.digests == "none" {
				ranges = nil
			}
			if c.got == "" {
				coding = nil
			}
			if want := fmt.Sprint(200, c.digests, ranges, coding, c.etag); got != want {
				t.Errorf("answered %s, want %s", got, want)
			}
		})
	}
}
