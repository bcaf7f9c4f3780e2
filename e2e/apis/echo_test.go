package apis

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// What a proxy may add to a request, and how it frames the body, whose bytes are compared. What says who a client is
// (X-Remote-User, Forwarded and the like) is the gateway's own to say: docs/identity.md.
var addedByProxies = append([]string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Request-Id",
	"Content-Length"}, hopByHop...)

// An echo is a backend that notes each request as it came, and answers with its body or as its path says.
type echo struct {
	*httptest.Server
	seen chan string
}

func startEcho(t testing.TB) *echo {
	e := &echo{seen: make(chan string, 16)}
	e.Server = httptest.NewServer(http.HandlerFunc(e.serve))
	t.Cleanup(e.Close)
	return e
}

func (e *echo) address() string { return e.Listener.Addr().String() }

// isQuestion answers the gateway's own question whether a backend is an API server, if the request is that.
func isQuestion(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != "/version" || r.UserAgent() != "admission-gateway" {
		return false
	}
	http.NotFound(w, r)
	return true
}

// serve answers without a mux, which would clean paths.
func (e *echo) serve(w http.ResponseWriter, r *http.Request) {
	if isQuestion(w, r) {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		body = []byte("the body broke off: " + err.Error())
	}
	e.seen <- describe(r, body)
	if a, has := answers[r.URL.Path]; has {
		a.write(w)
		return
	}
	w.Header().Set("Content-Type", "application/x-echo")
	w.Header().Set("X-Echo", "yes")
	_, _ = w.Write(body)
}

// describe returns everything of a request that a proxy has no business with.
func describe(r *http.Request, body []byte) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", r.Method, r.RequestURI)
	var lines []string
	for name, values := range r.Header {
		if !slices.Contains(addedByProxies, name) {
			lines = append(lines, fmt.Sprintf("%s: %s\n", name, strings.Join(values, " | ")))
		}
	}
	slices.Sort(lines)
	shown := string(body)
	if len(shown) > 200 {
		shown = shown[:200] + "…"
	}
	fmt.Fprintf(&b, "%sa body of %d bytes, %x: %q", strings.Join(lines, ""), len(body), sha256.Sum256(body), shown)
	return b.String()
}

// next returns what the backend saw of the exchange that has just ended.
func (e *echo) next() string {
	select {
	case s := <-e.seen:
		return s
	default:
		return "nothing: the request did not arrive"
	}
}

// proveUnchanged sends a request directly and through the gateway: the backend must see the same, and so must the
// client.
func proveUnchanged(t *testing.T, e *echo, gateway string, r *request) {
	prove(t, r.name, func(t *proof) {
		direct := r.mustSend(t, e.address())
		wanted := e.next()
		through, err := r.send(gateway)
		if err != nil {
			t.Fatalf("%s %s through the gateway: %v", r.method, r.target, err)
		}
		if got := e.next(); strings.ReplaceAll(got, gateway, "ADDRESS") != strings.ReplaceAll(wanted, e.address(),
			"ADDRESS") {
			t.Errorf("%s %s: the backend got\n%s\ninstead of\n%s", r.method, r.target, got, wanted)
		}
		if rows := differences(direct, through, varying()); len(rows) > 0 {
			t.Errorf("%s %s:\n%s", r.method, r.target, table(rows))
		}
	})
}

// TestUndescribedRequestsPass: what no file describes reaches the backend as it came, and its answer the client.
func TestUndescribedRequestsPass(t *testing.T) {
	e := startEcho(t)
	g := startGateway(t, e.URL)
	for _, r := range slices.Concat(methodRequests(), bodyRequests(), pathRequests(), headerRequests(),
		answerRequests()) {
		proveUnchanged(t, e, g.address, &r)
	}
}

func methodRequests() []request {
	var list []request
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE", "PROPFIND",
		"MKCOL",
		"REPORT", "QUERY", "SEARCH", "LINK", "COPY", "LOCK", "M-SEARCH", "BREW"} {
		list = append(list, request{name: method + "/empty", method: method, target: "/things/1"})
		if method != "HEAD" {
			list = append(list,
				request{name: method + "/length0", method: method, target: "/things",
					header: []string{"Content-Length: 0"}},
				request{name: method + "/json", method: method, target: "/things/1",
					header: []string{"Content-Type: application/json"}, body: `{"a":1}`},
				request{name: method + "/chunked", method: method, target: "/things/1",
					header: []string{"Content-Type: text/plain", "Transfer-Encoding: chunked"},
					bare:   true, body: "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"})
		}
	}
	return list
}

func bodyRequests() []request {
	multipart := "--b\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nx\r\n--b\r\nContent-Disposition: form-data; name=\"doc\"; filename=\"a.bin\"\r\n" +
		"Content-Type: application/octet-stream\r\n\r\n\x00\xff\r\n--b--\r\n"
	var list []request
	for _, c := range []struct{ name, contentType, encoding, body string }{
		{"form", "application/x-www-form-urlencoded", "", "query=up&time=1"},
		{"multipart", "multipart/form-data; boundary=b", "", multipart},
		{"octets", "application/octet-stream", "", "\x00\x01\xfe\xff"},
		{"text", "text/plain; charset=utf-8", "", "hello"},
		{"xml", "text/xml", "", "<a/>"},
		{"none", "", "", "hello"},
		{"json-of-no-type", "", "", `{"a":1}`},
		{"text-json", "text/json", "", `{"a":1}`},
		{"vendor-json", "application/vnd.api+json", "", `{"data":{}}`},
		{"ndjson", "application/x-ndjson", "", "{}\n{}\n"},
		{"graphql", "application/graphql", "", "{me{id}}"},
		{"protobuf", "application/x-protobuf", "", "\x0a\x01a"},
		{"kubernetes-protobuf", "application/vnd.kubernetes.protobuf", "", "k8s\x00"},
		{"yaml", "application/yaml", "", "a: 1\n"},
		{"merge-patch", "application/merge-patch+json", "", `{"a":null}`},
		{"json-patch", "application/json-patch+json", "", `[{"op":"remove","path":"/a"}]`},
		{"strategic-patch", "application/strategic-merge-patch+json", "", `{"a":null}`},
		{"array", "application/json", "", `[{"a":1},{"a":2}]`},
		{"scalar", "application/json", "", `42`},
		{"charset", "application/json; charset=ISO-8859-1", "", "{\"a\":\"\xe4\"}"},
		{"broken-json", "application/json", "", `{"a":`},
		{"duplicate-keys", "application/json", "", `{"a":1,"a":2}`},
		{"odd-type", "nonsense", "", `x`},
		{"gzip", "application/json", "gzip", gzipped(`{"a":1}`)},
		{"brotli", "application/json", "br", "\x0b\x03\x80{\"a\":1}\x03"},
		{"two-encodings", "application/json", "gzip, br", "xx"},
		{"4-MiB", "application/json", "", `"` + strings.Repeat("x", 4<<20) + `"`},
	} {
		var header []string
		if c.contentType != "" {
			header = append(header, "Content-Type: "+c.contentType)
		}
		if c.encoding != "" {
			header = append(header, "Content-Encoding: "+c.encoding)
		}
		for _, method := range []string{"POST", "PUT", "PATCH"} {
			list = append(list, request{name: "body/" + c.name + "/" + method, method: method, target: "/things",
				header: header, body: c.body})
		}
	}
	return list
}

func gzipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, s)
	_ = w.Close()
	return b.String()
}

func pathRequests() []request {
	var list []request
	for _, c := range []struct{ name, target string }{
		{"root", "/"},
		{"encoded-slash", "/repos/group%2Fproject/issues"},
		{"encoded-slash-small", "/@scope%2fpackage"},
		{"semicolon", "/things;v=1/a;b=c"},
		{"trailing-slash", "/things/"},
		{"double-slash", "//things//1"},
		{"dot", "/things/./1"},
		{"dots", "/things/x/../1"},
		{"encoded-dots", "/things/%2e%2e/1"},
		{"backslash", "/things/a%5Cb"},
		{"encoded-letter", "/%74hings/1"},
		{"blank", "/things/a%20b"},
		{"plus", "/things/a+b"},
		{"colon", "/things/1:activate"},
		{"at", "/@user"},
		{"tilde", "/~user"},
		{"star", "/things/*"},
		{"utf-8", "/things/%C3%A4"},
		{"latin-1", "/things/%E4"},
		{"quote", "/things('1')/$value"},
		{"deep", "/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t/u/v/w/x/y/z"},
		{"extension", "/things/1.json"},
		{"api", "/api"},
		{"api-slash", "/api/"},
		{"api-v1", "/api/v1"},
		{"api-underscore", "/api/v1/query_range?query=up"},
		{"api-dot", "/api/v1.2/x"},
		{"api-deep", "/api/v1/repos/o/r/issues/1"},
		{"api-trailing-slash", "/api/v1/users/"},
		{"api-watch", "/api/v1/watch/1"},
		{"api-watch-query", "/api/v1/pods?watch=true"},
		{"api-namespaces", "/api/v1/namespaces/Bad_Name/pods/x"},
		{"api-kubernetes-form", "/api/v1/namespaces/default/pods/x"},
		{"api-collections", "/api/collections/_superusers/auth-with-password"},
		{"api-capitals", "/API/v1/users"},
		{"apis", "/apis/shop/Orders/1"},
		{"apis-deep", "/apis/a/b/c/d/e/f/g/h"},
		{"query-odd", "/things?a=1&a=2&&b&=c&q=100%"},
		{"query-kubernetes", "/things?dryRun=Some&fieldManager=%00&fieldValidation=x&limit=y"},
		{"query-method", "/things?_method=DELETE"},
		{"query-empty", "/things?"},
		{"query-slash", "/things?u=http://x/%2F;y?z"},
		{"query-4-KB", "/things?q=" + strings.Repeat("x", 4096)},
	} {
		list = append(list,
			request{name: "path/" + c.name + "/GET", method: "GET", target: c.target},
			request{name: "path/" + c.name + "/POST", method: "POST", target: c.target,
				header: []string{"Content-Type: application/json"}, body: `{"a":1}`},
			request{name: "path/" + c.name + "/POST-empty", method: "POST", target: c.target},
			request{name: "path/" + c.name + "/PATCH", method: "PATCH", target: c.target,
				header: []string{"Content-Type: application/json"}, body: `{"a":1}`},
			request{name: "path/" + c.name + "/DELETE", method: "DELETE", target: c.target},
		)
	}
	return list
}

func headerRequests() []request {
	var list []request
	for _, c := range []struct{ name, line string }{
		{"original-url", "X-Original-URL: /admin"},
		{"rewrite-url", "X-Rewrite-URL: /admin"},
		{"original-uri", "X-Original-Uri: /admin"},
		{"method-override", "X-HTTP-Method-Override: DELETE"},
		{"http-method", "X-HTTP-Method: PATCH"},
		{"short-method-override", "X-Method-Override: PUT"},
		{"authorization", "Authorization: Bearer abc"},
		{"basic", "Authorization: Basic YTpi"},
		{"cookies", "Cookie: a=1; b=\"2\"; c=\xe4"},
		{"12-KB-cookie", "Cookie: a=" + strings.Repeat("x", 12<<10)},
		{"csrf", "X-CSRF-Token: t"},
		{"request-id", "X-Request-Id: abc"},
		{"traceparent", "Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		{"range", "Range: bytes=0-3"},
		{"if-match", `If-Match: W/"1"`},
		{"if-none-match", `If-None-Match: "1", W/"2"`},
		{"accept-encoding", "Accept-Encoding: gzip, br;q=0.5"},
		{"accept", "Accept: application/json;as=Table;g=meta.k8s.io;v=v1, text/html"},
		{"origin", "Origin: http://app.example"},
		{"max-forwards", "Max-Forwards: 3"},
		{"empty", "X-Empty:"},
	} {
		list = append(list,
			request{name: "header/" + c.name + "/GET", method: "GET", target: "/things/1", header: []string{c.line}},
			request{name: "header/" + c.name + "/POST", method: "POST", target: "/things",
				header: []string{c.line, "Content-Type: application/json"}, body: `{"a":1}`})
	}
	list = append(list, request{name: "header/preflight", method: "OPTIONS", target: "/things/1", header: []string{
		"Origin: http://app.example", "Access-Control-Request-Method: PATCH",
		"Access-Control-Request-Headers: content-type"}})
	return list
}

// A canned is an answer that the backend gives at a path.
type canned struct {
	code   int
	header []string // name, value, name, value, …
	body   string
}

func (c *canned) write(w http.ResponseWriter) {
	for i := 0; i < len(c.header); i += 2 {
		w.Header().Add(c.header[i], c.header[i+1])
	}
	w.WriteHeader(c.code)
	_, _ = io.WriteString(w, c.body)
}

const bareError = `{"error": {"code":"E1", "message":"human text", "fields":{"a":["must be x"]}}}`

// answers has what an ordinary backend may say.
var answers = map[string]canned{
	"/answer/200-gzip": {200, []string{"Content-Type", "application/json", "Content-Encoding", "gzip", "ETag",
		`W/"1"`, "Vary", "Accept-Encoding"}, gzipped(`{"a":1}`)},
	"/answer/200-status": {200, []string{"Content-Type", "application/json"},
		`{"kind":"Status","apiVersion":"v1","status":"Failure","code":404}`},
	"/answer/200-broken": {200, []string{"Content-Type", "application/json"}, `{"a":`},
	"/answer/201":        {201, []string{"Location", "/things/5", "Content-Type", "application/json"}, `{"id":5}`},
	"/answer/202-empty":  {202, nil, ""},
	"/answer/204":        {204, []string{"Set-Cookie", "a=; Max-Age=0", "X-Request-Id", "r"}, ""},
	"/answer/206":        {206, []string{"Content-Range", "bytes 0-1/5", "Content-Type", "text/plain"}, "he"},
	"/answer/301":        {301, []string{"Location", "https://elsewhere.example/x"}, ""},
	"/answer/302":        {302, []string{"Location", "/login?next=%2F", "Set-Cookie", "a=1"}, "see there"},
	"/answer/304":        {304, []string{"ETag", `"1"`, "Cache-Control", "max-age=60"}, ""},
	"/answer/307":        {307, []string{"Location", "../up"}, ""},
	"/answer/400": {400, []string{"Content-Type", "application/json; charset=utf-8", "X-Request-Id", "abc",
		"Access-Control-Allow-Origin", "*"}, bareError},
	"/answer/400-plain": {400, []string{"Content-Type", "text/plain"}, "no"},
	"/answer/400-empty": {400, nil, ""},
	"/answer/400-gzip": {400, []string{"Content-Type", "application/json", "Content-Encoding", "gzip"},
		gzipped(bareError)},
	"/answer/401": {401, []string{"WWW-Authenticate", `Basic realm="x"`, "WWW-Authenticate",
		`Bearer realm="y"`, "Set-Cookie", "csrf=1", "Set-Cookie", "b=2", "Content-Type", "application/json"},
		bareError},
	"/answer/402":      {402, []string{"Content-Type", "application/json"}, bareError},
	"/answer/403-html": {403, []string{"Content-Type", "text/html", "Cache-Control", "no-store"}, "<h1>no</h1>"},
	"/answer/404-problem": {404, []string{"Content-Type", "application/problem+json", "Content-Language", "en"},
		`{"type":"https://x/y","title":"gone","status":404,"detail":"d"}`},
	"/answer/405": {405, []string{"Allow", "GET, REPORT", "Content-Type", "application/json"}, bareError},
	"/answer/407": {407, []string{"Content-Type", "application/json"}, bareError},
	"/answer/408": {408, []string{"Content-Type", "application/json"}, bareError},
	"/answer/409": {409, []string{"Location", "/existing/1", "ETag", `"9"`, "Content-Type",
		"application/json"}, bareError},
	"/answer/410": {410, []string{"Content-Type", "application/json"}, bareError},
	"/answer/412": {412, []string{"ETag", `"9"`, "Content-Type", "application/json"}, bareError},
	"/answer/413": {413, []string{"Content-Type", "application/json"}, bareError},
	"/answer/415": {415, []string{"Accept-Post", "text/csv", "Content-Type", "application/json"}, bareError},
	"/answer/416": {416, []string{"Content-Range", "bytes */5"}, ""},
	"/answer/418": {418, []string{"Content-Type", "application/json"}, bareError},
	"/answer/422": {422, []string{"Content-Type", "application/json"}, `{"code":400,"message":"Failed to create record.","data":{"title":{"code":"validation_required"}}}`},
	"/answer/422-problem": {422, []string{"Content-Type", "application/problem+json"},
		`{"type":"https://x/y","title":"bad","status":422,"errors":[{"pointer":"#/a"}]}`},
	"/answer/423": {423, []string{"Content-Type", "application/json"}, bareError},
	"/answer/426": {426, []string{"Content-Type", "application/json"}, bareError},
	"/answer/428": {428, []string{"Content-Type", "application/json"}, bareError},
	"/answer/429": {429, []string{"Retry-After", "120", "X-RateLimit-Remaining", "0", "Content-Type",
		"application/json"}, bareError},
	"/answer/429-date": {429, []string{"Retry-After", "Wed, 01 Jan 2031 00:00:00 GMT"}, bareError},
	"/answer/431":      {431, []string{"Content-Type", "application/json"}, bareError},
	"/answer/451":      {451, []string{"Link", `<http://x>; rel="blocked-by"`}, ""},
	"/answer/499":      {499, []string{"Content-Type", "application/json"}, bareError},
	"/answer/500":      {500, []string{"Content-Type", "application/json"}, `{"error":"boom","trace_id":"t1"}`},
	"/answer/500-status": {500, []string{"Content-Type", "application/json"},
		`{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}`},
	"/answer/501":    {501, []string{"Content-Type", "application/json"}, bareError},
	"/answer/502":    {502, []string{"Content-Type", "text/html"}, "<h1>bad gateway</h1>"},
	"/answer/503":    {503, []string{"Retry-After", "7", "Content-Type", "text/html"}, "<h1>later</h1>"},
	"/answer/504":    {504, []string{"Content-Type", "application/json"}, bareError},
	"/answer/507":    {507, []string{"Content-Type", "application/json"}, bareError},
	"/answer/511":    {511, []string{"Content-Type", "text/html"}, "<a href=/login>log in</a>"},
	"/answer/599":    {599, []string{"Content-Type", "application/json"}, bareError},
	"/api/v1/answer": {404, []string{"Content-Type", "application/json"}, bareError},
	"/answer/many-headers": {200, []string{"Server", "x/1", "X-Powered-By", "y", "Link", "</a>; rel=next", "Link",
		"</b>; rel=last", "X-Total-Count", "25", "Warning", `299 - "old"`, "Strict-Transport-Security", "max-age=1",
		"Alt-Svc", "clear"}, "x"},
	"/answer/cors": {200, []string{"Access-Control-Allow-Origin", "http://app.example",
		"Access-Control-Allow-Credentials", "true", "Access-Control-Expose-Headers", "Link", "Vary", "Origin"}, "x"},
	"/answer/event-stream": {200, []string{"Content-Type", "text/event-stream", "Cache-Control", "no-cache"},
		"id: 1\ndata: {}\n\n"},
	"/answer/no-type": {200, []string{"Content-Type", ""}, "x"},
	"/answer/download": {200, []string{"Content-Disposition", `attachment; filename="a.bin"`, "Content-Type",
		"application/octet-stream", "Accept-Ranges", "bytes", "Last-Modified", "Wed, 01 Jan 2025 00:00:00 GMT"},
		"\x00\x01"},
	"/answer/invalid-status": {222, []string{"Content-Type", "application/json"}, `{"a":1}`},
}

func answerRequests() []request {
	var list []request
	for target := range answers {
		name := "answer/" + strings.TrimPrefix(strings.TrimPrefix(target, "/"), "answer/")
		list = append(list,
			request{name: name + "/GET", method: "GET", target: target},
			request{name: name + "/HEAD", method: "HEAD", target: target},
			request{name: name + "/POST", method: "POST", target: target,
				header: []string{"Content-Type: application/json"}, body: `{"a":1}`},
		)
	}
	slices.SortFunc(list, func(a, b request) int { return strings.Compare(a.name, b.name) })
	return list
}

// TestOldClient: a client of HTTP/1.0 gets its answer, and the end of the connection.
func TestOldClient(t *testing.T) {
	e := startEcho(t)
	g := startGateway(t, e.URL)
	prove(t, "GET", func(t *proof) {
		connection, err := net.Dial("tcp", g.address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = connection.Close() }()
		_ = connection.SetDeadline(time.Now().Add(patience))
		_, _ = io.WriteString(connection, "GET /things HTTP/1.0\r\nHost: a.example\r\n\r\n")
		got, err := io.ReadAll(connection)
		if err != nil || !bytes.Contains(got, []byte(" 200 OK\r\n")) || !strings.HasPrefix(e.next(), "GET /things\n") {
			t.Errorf("%q, %v", got, err)
		}
	})
}
