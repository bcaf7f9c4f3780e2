package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// page is the origin of scripts, stranger an origin that is not allowed.
const page, stranger = "https://shop.example.com", "https://evil.example.org"

// granting answers as servers with CORS do: page may read, with credentials.
func granting(_ int, head, _ string) (string, bool) {
	origin, grant := "", ""
	if _, rest, found := strings.Cut(head, "\r\nOrigin: "); found {
		origin, _, _ = strings.Cut(rest, "\r\n")
	}
	if origin == page {
		grant = "Access-Control-Allow-Origin: " + page +
			"\r\nAccess-Control-Allow-Credentials: true\r\nVary: Origin\r\n"
	}
	if strings.HasPrefix(head, "OPTIONS ") {
		if grant != "" {
			grant += "Access-Control-Allow-Methods: GET,PUT\r\nAccess-Control-Allow-Headers: content-type\r\nAccess-Control-Max-Age: 5\r\n"
		}
		return "HTTP/1.1 204 No Content\r\nAllow: GET, OPTIONS\r\n" + grant + "\r\n", true
	}
	if grant != "" {
		grant += "Access-Control-Expose-Headers: X-Total, etag\r\n"
	}
	return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + grant + "Content-Length: 2\r\n\r\n{}", true
}

// sharing starts a gateway in front of a backend that lets scripts read, with a limit of two reads
// in an hour.
func sharing(t *testing.T, c *config.CORS, words ...string) (*recorder, string) {
	t.Helper()
	backend := newRecorder(t)
	backend.Reply = granting
	dir := t.TempDir()
	testutil.WriteFile(t, filepath.Join(dir, "limit.yaml"), "apiVersion: admission-gateway.io/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: few}\n"+
		"spec: {match: {verbs: [get], apiGroups: [shop.example.com], resources: [orders]}, key: ClientAddress, requests: 2, periodSeconds: 3600}\n")
	g := gatewayFor(t, dir, backend.Addr().String(), append(words, "policies=orders"))
	for i := range g.routes.table {
		g.routes.table[i].cors = newCORS(c)
	}
	return backend, startGateway(t, g)
}

var (
	unequal = regexp.MustCompile(`(Date|Retry-After|RateLimit): .*\r\n`)
	newline = strings.NewReplacer("\r\n", "\n")
)

// headOf sends a request and returns the head of the answer, without what no two answers have the same.
func headOf(t *testing.T, address, method, target string, lines ...string) string {
	t.Helper()
	nc, br := dial(t, address)
	defer func() { _ = nc.Close() }()
	send(t, nc, method+" "+target+" HTTP/1.1\r\nHost: gw\r\n"+strings.Join(append(lines, "\r\n"), "\r\n"))
	return linesOfHead(t, br)
}

func linesOfHead(t *testing.T, br *bufio.Reader) string {
	t.Helper()
	var head strings.Builder
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			t.Fatalf("after %q: %v", head.String(), err)
		}
		if line == "\r\n" {
			break
		}
		head.WriteString(line)
	}
	return newline.Replace(unequal.ReplaceAllString(testutil.WithoutMadeIDs(head.String()), "$1: …\r\n"))
}

func expectHead(t *testing.T, what, got string, want ...string) {
	t.Helper()
	if text := strings.Join(want, "\n") + "\n"; got != text {
		t.Errorf("%s: answered\n%swant\n%s", what, got, text)
	}
}

const (
	fromPage     = "Origin: " + page
	fromStranger = "Origin: " + stranger
	typeJSON     = "Content-Type: application/json"
	exposesOwn   = "Retry-After, RateLimit, RateLimit-Policy, Warning, ETag, Location"
)

// invalid is an order that the schema refuses, in a request's lines.
func invalid(more ...string) []string {
	return append(more, typeJSON, "Content-Length: 11", "", `{"id": 100}`)
}

// TestPreflightReachesBackend: OPTIONS is the plain API's own, on described paths too.
func TestPreflightReachesBackend(t *testing.T) {
	backend, address := sharing(t, nil)
	for _, path := range []string{"/v2/orders", "/v2/orders/o1", "/other/path"} {
		got := headOf(t, address, "OPTIONS", path, fromPage, "Access-Control-Request-Method: PUT",
			"Access-Control-Request-Headers: content-type")
		expectHead(t, path, got, "HTTP/1.1 204 No Content", "Allow: GET, OPTIONS", "Access-Control-Allow-Origin: "+page,
			"Access-Control-Allow-Credentials: true", "Vary: Origin", "Access-Control-Allow-Methods: GET,PUT",
			"Access-Control-Allow-Headers: content-type",
			"Access-Control-Max-Age: 5")
		if sent := backend.Take(); !strings.HasPrefix(sent, "OPTIONS "+path+" HTTP/1.1\r\nHost: gw\r\nOrigin: "+page+
			"\r\nAccess-Control-Request-Method: PUT\r\n") {
			t.Errorf("%s: the backend got %q", path, sent)
		}
		expectHead(t, path, headOf(t, address, "OPTIONS", path), "HTTP/1.1 204 No Content", "Allow: GET, OPTIONS")
		backend.Take()
	}
}

// TestRefusalIsShared: a script reads what the gateway says itself if the backend lets it read its own answers,
// which is asked once.
func TestRefusalIsShared(t *testing.T) {
	backend, address := sharing(t, nil)
	problem := []string{"HTTP/1.1 422 Unprocessable Entity", "Date: …", "Content-Type: application/json",
		"Content-Length: LENGTH", "Cache-Control: no-cache, private"}
	of := func(length int, more ...string) []string {
		all := slices.Concat(problem, more)
		all[3] = fmt.Sprint("Content-Length: ", length)
		return all
	}
	post := func(lines ...string) string { return headOf(t, address, "POST", "/v2/orders", invalid(lines...)...) }
	length := contentLength(t, post())
	expectHead(t, "no script", post(), of(length)...)
	if sent := backend.Take(); sent != "" {
		t.Errorf("without an origin the backend got %q", sent)
	}
	grant := []string{"Access-Control-Allow-Origin: " + page, "Access-Control-Allow-Credentials: true",
		"Access-Control-Expose-Headers: " + exposesOwn, "Vary: Origin"}
	expectHead(t, "first", post(fromPage, "X-Csrf: 1", "Cookie: a=b"), of(length, grant...)...)
	want := "OPTIONS /v2/orders HTTP/1.1\r\nHost: gw\r\nOrigin: " + page +
		"\r\nAccess-Control-Request-Method: POST\r\n" +
		"Access-Control-Request-Headers: content-type,x-csrf\r\nAccept: */*\r\n\r\n"
	if sent := backend.Take(); sent != want {
		t.Errorf("the backend got %q, want %q", sent, want)
	}
	expectHead(t, "again", post(fromPage), of(length, grant...)...)
	expectHead(t, "stranger", post(fromStranger), of(length)...)
	backend.Take()
	expectHead(t, "stranger again", post(fromStranger), of(length)...)
	expectHead(t, "two origins", post(fromPage, fromStranger), of(length)...)
	expectHead(t, "no origin", post("Origin: *"), of(length)...)
	if sent := backend.Take(); sent != "" {
		t.Errorf("what is known was asked again: %q", sent)
	}
}

func contentLength(t *testing.T, head string) (n int) {
	t.Helper()
	_, rest, _ := strings.Cut(head, "Content-Length: ")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		t.Fatalf("%v in %q", err, head)
	}
	return n
}

// TestGrantIsRemembered: what the backend's own answers let a script read holds for a refusal at the same
// place, without a question; at another place it is asked for.
func TestGrantIsRemembered(t *testing.T) {
	backend, address := sharing(t, nil)
	for range 2 {
		head := headOf(t, address, "GET", "/v2/orders/o1", fromPage)
		expectHead(t, "passed", unrevised.ReplaceAllString(head, "${1}*"), "HTTP/1.1 200 OK",
			"Content-Type: application/json",
			"Access-Control-Allow-Origin: "+page, "Access-Control-Allow-Credentials: true", "Vary: Origin",
			"Access-Control-Expose-Headers: X-Total, etag",
			"RateLimit-Policy: \"few\";q=2;w=3600", "RateLimit: …",
			"Access-Control-Expose-Headers: RateLimit, RateLimit-Policy",
			`ETag: "gw-RBNvo1WzZ4oRRq0W9-hknpT7T8If536D-gateway-*"`, "Content-Length: 18")
	}
	backend.Take()
	got := headOf(t, address, "GET", "/v2/orders/o2", fromPage)
	expectHead(t, "refused", got, "HTTP/1.1 429 Too Many Requests", "Date: …", "Content-Type: application/json",
		fmt.Sprint("Content-Length: ", contentLength(t, got)), "Cache-Control: no-cache, private", "Retry-After: …",
		"RateLimit-Policy: \"few\";q=2;w=3600", "RateLimit: …", "Access-Control-Allow-Origin: "+page,
		"Access-Control-Allow-Credentials: true",
		"Access-Control-Expose-Headers: X-Total, etag, RateLimit, RateLimit-Policy, Retry-After, Warning, Location", "Vary: Origin")
	if sent := backend.Take(); sent != "" {
		t.Errorf("what is known was asked again: %q", sent)
	}
}

// TestNoGrantIsMadeUp: whatever goes wrong with the question, no script reads an answer without a
// grant.
func TestNoGrantIsMadeUp(t *testing.T) {
	for name, reply := range map[string]string{
		"silent":   "HTTP/1.1 204 No Content\r\n\r\n",
		"refused":  "HTTP/1.1 403 Forbidden\r\nAccess-Control-Allow-Origin: " + page + "\r\nContent-Length: 0\r\n\r\n",
		"another":  "HTTP/1.1 204 No Content\r\nAccess-Control-Allow-Origin: https://shop.example.net\r\n\r\n",
		"broken":   "HTTP/1.1 204 No",
		"everyone": "HTTP/1.1 204 No Content\r\nAccess-Control-Allow-Origin: *\r\nAccess-Control-Allow-Credentials: true\r\n\r\n",
		"redirected": "HTTP/1.1 302 Found\r\nAccess-Control-Allow-Origin: " + page +
			"\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			backend, address := sharing(t, nil)
			backend.Reply = func(int, string, string) (string, bool) { return reply, false }
			got := headOf(t, address, "POST", "/v2/orders", invalid(fromPage)...)
			_, lines, _ := strings.Cut(got, "Cache-Control: no-cache, private\n")
			want := ""
			if name == "everyone" {
				// and no credentials
				want = "Access-Control-Allow-Origin: *\nAccess-Control-Expose-Headers: " + exposesOwn + "\n"
			}
			if lines != want {
				t.Errorf("answered %q, want at the end %q", got, want)
			}
		})
	}
}

// TestRouteTakesOver: with a policy of the route the gateway answers preflights, and nothing that the backend says
// of CORS remains.
func TestRouteTakesOver(t *testing.T) {
	c := &config.CORS{
		AllowOrigins: []string{"https://app.example.com", "https://*.example.net"},
		AllowMethods: []string{"GET", "PUT"},
		AllowHeaders: []string{"Content-Type", "X-One"}, ExposeHeaders: []string{"X-Total"}, AllowCredentials: true,
		MaxAgeSeconds: 60,
	}
	backend, address := sharing(t, c)
	const ours, below = "https://app.example.com", "https://a.b.example.net"
	grant := func(origin string) []string {
		return []string{"Access-Control-Allow-Origin: " + origin, "Access-Control-Allow-Credentials: true",
			"Access-Control-Expose-Headers: X-Total, " + exposesOwn, "Vary: Origin"}
	}
	for _, path := range []string{"/v2/orders/o1", "/other"} {
		for _, origin := range []string{ours, below} {
			expectHead(t, "preflight",
				headOf(t, address, "OPTIONS", path, "Origin: "+origin, "Access-Control-Request-Method: PUT",
					"Access-Control-Request-Headers: x-one, x-two"),
				slices.Concat([]string{"HTTP/1.1 204 No Content", "Date: …", "Access-Control-Allow-Methods: PUT",
					"Access-Control-Allow-Headers: x-one",
					"Access-Control-Max-Age: 60",
					"Vary: Access-Control-Request-Method, Access-Control-Request-Headers"}, grant(origin))...)
		}
		for _, origin := range []string{page, "https://example.net", "https://evil.com:443.example.net",
			"http://a.example.net", "https://app.example.com.evil.org", "null"} {
			expectHead(t, "preflight of "+origin,
				headOf(t, address, "OPTIONS", path, "Origin: "+origin, "Access-Control-Request-Method: PUT"),
				"HTTP/1.1 204 No Content", "Date: …", "Vary: Origin")
		}
	}
	if sent := backend.Take(); sent != "" {
		t.Errorf("the backend got %q", sent)
	}
	expectHead(t, "the backend's page", headOf(t, address, "GET", "/other", fromPage), "HTTP/1.1 200 OK",
		"Content-Type: application/json", "Vary: Origin", "Content-Length: 2")
	expectHead(t, "no page", headOf(t, address, "GET", "/other"), "HTTP/1.1 200 OK", "Content-Type: application/json",
		"Content-Length: 2", "Vary: Origin")
	expectHead(t, "our page", headOf(t, address, "GET", "/other", "Origin: "+ours),
		slices.Concat([]string{"HTTP/1.1 200 OK", "Content-Type: application/json", "Content-Length: 2"},
			grant(ours))...)
	backend.Take()
	got := headOf(t, address, "POST", "/v2/orders", invalid("Origin: "+ours)...)
	expectHead(t, "refused", got,
		slices.Concat([]string{"HTTP/1.1 422 Unprocessable Entity", "Date: …", "Content-Type: application/json",
			fmt.Sprint("Content-Length: ", contentLength(t, got)), "Cache-Control: no-cache, private"}, grant(ours))...)
	if sent := backend.Take(); sent != "" {
		t.Errorf("the backend got %q", sent)
	}
}

// TestPreflightHasNoCredentials: browsers send none with a preflight, so that one needs none. The backend gets
// nothing else of the request, and is asked without identity only this.
func TestPreflightHasNoCredentials(t *testing.T) {
	backend, address := sharing(t, nil, "identity=Deny")
	got := headOf(t, address, "OPTIONS", "/v2/orders", fromPage, "Access-Control-Request-Method: PUT",
		"Access-Control-Request-Headers: content-type", "X-More: 1", "Cookie: a=b")
	expectHead(t, "preflight", got, "HTTP/1.1 204 No Content", "Date: …", "Access-Control-Allow-Origin: "+page,
		"Access-Control-Allow-Credentials: true",
		"Access-Control-Allow-Methods: GET,PUT", "Access-Control-Allow-Headers: content-type",
		"Access-Control-Max-Age: 5", "Vary: Origin")
	want := "OPTIONS /v2/orders HTTP/1.1\r\nHost: gw\r\nOrigin: " + page +
		"\r\nAccess-Control-Request-Method: PUT\r\n" +
		"Access-Control-Request-Headers: content-type\r\nAccept: */*\r\n\r\n"
	if sent := backend.Take(); sent != want {
		t.Errorf("the backend got %q, want %q", sent, want)
	}
	for _, lines := range [][]string{{fromPage}, {"Access-Control-Request-Method: PUT"},
		{fromPage, "Access-Control-Request-Method: PUT", "Authorization: Bearer x"}} {
		if got := headOf(t, address, "OPTIONS", "/v2/orders", lines...); !strings.HasPrefix(got, "HTTP/1.1 401 ") {
			t.Errorf("%q: answered %s", lines, got)
		}
	}
	got = headOf(t, address, "GET", "/v2/orders", fromPage)
	if !strings.HasPrefix(got, "HTTP/1.1 401 ") || !strings.Contains(got, "Access-Control-Allow-Origin: "+page+"\n") {
		t.Errorf("a script cannot read that it is not known:\n%s", got)
	}
}

// TestGrantOfStream: an answer of the backend that streams keeps what it grants, and is remembered.
func TestGrantOfStream(t *testing.T) {
	backend, address := sharing(t, nil)
	backend.Reply = func(int, string, string) (string, bool) {
		return "HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks(strings.Repeat("x", 1000), 100), false
	}
	r, _ := http.NewRequest("PURGE", "http://"+address+"/live/feed", nil)
	r.Header.Set("Origin", page)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || len(body) != 1000 || resp.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("answered %d bytes, %v, %v", len(body), err, resp.Header)
	}
}

// TestBadHeadIsShared: a script reads why its request was refused before anything was known of the route, as far as
// the route says so or the backend did. The backend is not asked about a head that cannot be read.
func TestBadHeadIsShared(t *testing.T) {
	const twice = "Content-Length: 1\r\nContent-Length: 2"
	grant := []string{"Access-Control-Allow-Origin: " + page, "Access-Control-Allow-Credentials: true"}
	for name, c := range map[string]*config.CORS{"the backend's word": nil,
		"the route's word": {AllowOrigins: []string{page}, AllowCredentials: true}} {
		t.Run(name, func(t *testing.T) {
			backend, address := sharing(t, c)
			for _, target := range []string{"/v2/orders/o1", "/other/a"} {
				headOf(t, address, "GET", target, fromPage)
			}
			backend.Take()
			for _, head := range [][]string{
				{"GET", "/v2/orders/o2", fromPage, twice}, {"GET", "/other/a/b", twice, fromPage},
				{"GET", "/v2/orders/o2", fromPage, "Cookie: " + strings.Repeat("c", 20<<10)},
			} {
				got := headOf(t, address, head[0], head[1], head[2:]...)
				if !strings.HasPrefix(got, "HTTP/1.1 4") || !strings.Contains(got, strings.Join(grant, "\n")) ||
					!strings.Contains(got, "Connection: close") {
					t.Errorf("%.100q is answered %s", head, got)
				}
				got = headOf(t, address, head[0], head[1],
					strings.ReplaceAll(strings.Join(head[2:], "\r\n"), page, stranger))
				if strings.Contains(got, "Access-Control-Allow-Origin") {
					t.Errorf("a stranger's %.100q is answered %s", head, got)
				}
			}
			if sent := backend.Take(); sent != "" {
				t.Errorf("the backend got %q", sent)
			}
		})
	}
}

// TestFailureIsShared: a script reads that the gateway failed.
func TestFailureIsShared(t *testing.T) {
	g, address, _ := filledGateway(t)
	g.routes.table[0].cors = newCORS(&config.CORS{AllowOrigins: []string{page}})
	panicIn(g, 0)
	got := headOf(t, address, "GET", widgetsPath+"/w1", fromPage)
	if !strings.HasPrefix(got, "HTTP/1.1 500 ") || !strings.Contains(got, "Access-Control-Allow-Origin: "+page) ||
		!strings.Contains(got, "Connection: close") {
		t.Errorf("answered %s", got)
	}
}

// TestErrorFormat: the configuration says how refusals are written, for an upstream or a route of it, and a file for
// its resource. A client that asks for problem details gets them in any case.
func TestErrorFormat(t *testing.T) {
	backend := newRecorder(t)
	c, err := config.Load("", config.Flags{Upstream: backend.URL(), Dialect: "Plain"})
	if err != nil {
		t.Fatal(err)
	}
	c.Upstreams[0].ErrorFormat, c.Upstreams[0].Undescribed = config.ProblemErrors, config.DenyUndescribed
	name := c.Upstreams[0].Name
	c.Routes = []config.Route{{PathPrefix: "/", Upstream: name},
		{Host: "status", PathPrefix: "/", Upstream: name, ErrorFormat: config.StatusErrors}}
	const file = "apiVersion: admission-gateway.io/v1alpha1\nkind: APIResource\nmetadata: {name: %s}\nspec:\n  version: v1\n  names: {plural: %[1]s, kind: A%[1]s}\n" +
		"  paths: {collection: /%[1]s, item: '/%[1]s/{name}'}\n%s"
	set := policiestest.LoadFiles(t,
		policiestest.Write(t, fmt.Sprintf(file, "as", "")+"---\n"+fmt.Sprintf(file, "bs", "  errorFormat: Status\n")+
			"---\n"+fmt.Sprintf(file, "cs", "  errorFormat: Problem\n")))
	address := startGateway(t, newTestGateway(t, c, func() *policies.Set { return set }))
	for request, want := range map[string]string{
		"GET /other HTTP/1.1\r\nHost: a":                                           "application/problem+json",
		"GET /other HTTP/1.1\r\nHost: status":                                      "application/json",
		"PURGE /as/a HTTP/1.1\r\nHost: a":                                          "application/problem+json",
		"PURGE /as/a HTTP/1.1\r\nHost: status":                                     "application/json",
		"PURGE /bs/a HTTP/1.1\r\nHost: a":                                          "application/json",
		"PURGE /cs/a HTTP/1.1\r\nHost: status":                                     "application/problem+json",
		"PURGE /bs/a HTTP/1.1\r\nHost: status\r\nAccept: application/problem+json": "application/problem+json",
	} {
		nc, br := dial(t, address)
		send(t, nc, request+"\r\n\r\n")
		a, _ := readAnswer(t, br, false)
		if a.StatusCode < 400 || a.Header.Get("Content-Type") != want {
			t.Errorf("%q is answered %d in %s, want %s", request, a.StatusCode, a.Header.Get("Content-Type"), want)
		}
		_ = nc.Close()
	}
}
