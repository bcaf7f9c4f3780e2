package apis

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/admission-gateway/gateway/e2e/apis/programs"
)

// nodeDir makes a folder in which Node.js finds our servers and the packages of npm; the test is skipped without them.
func nodeDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	need(t, programs.Node(dir))
	return dir
}

// startNode runs a server of Node.js on a free port. It is ready when the path answers 200.
func startNode(t testing.TB, dir, ready string, args func(port string) []string) *program {
	t.Helper()
	return start(t, ready, func(address string) *exec.Cmd {
		_, port, _ := net.SplitHostPort(address)
		cmd := exec.Command("node", args(port)...)
		cmd.Dir = dir
		// json-server 1 otherwise reads its file again beside its own writes, and may lose one.
		cmd.Env = append(os.Environ(), "NODE_ENV=production")
		return cmd
	})
}

// startTwice runs two servers of a kind, and the gateway without any file before the second.
func startTwice(t *testing.T, server func() *program) (direct, gateway string) {
	t.Helper()
	return server().address, startGateway(t, server().url()).address
}

func startFastify(t *testing.T) *program {
	t.Helper()
	return startNode(t, nodeDir(t), "/openapi.json",
		func(port string) []string { return []string{"fastify.mjs", port} })
}

func startExpress(t *testing.T) *program {
	t.Helper()
	return startNode(t, nodeDir(t), "/api/v1/users",
		func(port string) []string { return []string{"express.mjs", port} })
}

const jsonServerData = `{"posts":[{"id":"1","title":"one","views":100},{"id":"2","title":"two","views":200}],"comments":[],"profile":{"name":"ann"}}`

func startJSONServer(t *testing.T, script ...string) *program {
	t.Helper()
	dir := nodeDir(t)
	write(t, filepath.Join(dir, "db.json"), jsonServerData)
	if err := os.MkdirAll(filepath.Join(dir, "public"), 0o755); err != nil { // which json-server 1 serves
		t.Fatal(err)
	}
	script[0] = filepath.Join("node_modules", script[0])
	return startNode(t, dir, "/posts", func(port string) []string { return append(script, "--port", port, "db.json") })
}

// Requests with a JSON body, and without any.
func withJSON(name, method, target, body string) request {
	return request{name: name, method: method, target: target, header: []string{"Content-Type: application/json"},
		body: body}
}

func without(name, method, target string, header ...string) request {
	return request{name: name, method: method, target: target, header: header}
}

const multipartBody = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\nContent-Type: application/octet-stream\r\n\r\n\x00\x01\xff\r\n--b--\r\n"

var preflight = []string{"Origin: http://app.example", "Access-Control-Request-Method: PATCH",
	"Access-Control-Request-Headers: content-type"}

func TestFastifyWithoutFiles(t *testing.T) {
	direct, gateway := startTwice(t, func() *program { return startFastify(t) })
	origin := "Origin: http://app.example"
	proveEqual(t, direct, gateway, varying(), []request{
		without("document", "GET", "/openapi.json"),
		withJSON("login", "POST", "/v1/login", `{"user":"ann"}`),
		withJSON("login-refused", "POST", "/v1/login", `{"user":"bob"}`),
		withJSON("login-invalid", "POST", "/v1/login", `{}`),
		without("preflight", "OPTIONS", "/v1/books/1", preflight...),
		withJSON("create", "POST", "/v1/books", `{"title":"one"}`),
		withJSON("create-invalid", "POST", "/v1/books", `{"title":"","price_cents":-1}`),
		withJSON("create-broken", "POST", "/v1/books", `{"title":`),
		without("create-without-body", "POST", "/v1/books"),
		{name: "create-text", method: "POST", target: "/v1/books", header: []string{"Content-Type: text/csv"},
			body: "a,b"},
		without("list", "GET", "/v1/books?limit=5", origin),
		without("list-invalid", "GET", "/v1/books?limit=x", origin),
		without("read", "GET", "/v1/books/1", origin),
		without("head", "HEAD", "/v1/books/1"),
		without("read-missing", "GET", "/v1/books/99", origin),
		without("read-invalid", "GET", "/v1/books/x"),
		withJSON("update", "PUT", "/v1/books/1", `{"title":"two","tags":["a"]}`),
		withJSON("update-missing", "PUT", "/v1/books/99", `{"title":"two"}`),
		withJSON("patch", "PATCH", "/v1/books/1", `{"price_cents":300}`),
		withJSON("patch-invalid", "PATCH", "/v1/books/1", `{"price_cents":"x"}`),
		without("publish", "POST", "/v1/books/1/publish"),
		without("publish-missing", "POST", "/v1/books/99/publish"),
		{name: "upload", method: "POST", target: "/v1/covers",
			header: []string{"Content-Type: multipart/form-data; boundary=b"}, body: multipartBody},
		without("delete", "DELETE", "/v1/books/1"),
		without("delete-missing", "DELETE", "/v1/books/1"),
		without("no-such-route", "GET", "/nothing/here"),
		without("method-not-there", "PATCH", "/v1/books"),
	})
}

func TestExpressWithoutFiles(t *testing.T) {
	direct, gateway := startTwice(t, func() *program { return startExpress(t) })
	proveEqual(t, direct, gateway, varying(`/tmp/[^<&:)]*`), []request{
		without("list", "GET", "/api/v1/users?page=1"),
		without("read", "GET", "/api/v1/users/1"),
		without("read-missing", "GET", "/api/v1/users/99"),
		withJSON("create", "POST", "/api/v1/users", `{"user_name":"bob","status":"banned"}`),
		withJSON("create-invalid", "POST", "/api/v1/users", `{}`),
		withJSON("bulk", "POST", "/api/v1/users/bulk", `[{"user_name":"x"},{"user_name":"y"}]`),
		withJSON("patch", "PATCH", "/api/v1/users/1", `{"balance":2.50}`),
		without("activate", "POST", "/api/v1/users/1/activate"),
		without("delete", "DELETE", "/api/v1/users/2"),
		withJSON("login", "POST", "/api/v1/login", `{"user":"ann"}`),
		{name: "login-form", method: "POST", target: "/api/v1/login",
			header: []string{"Content-Type: application/x-www-form-urlencoded"}, body: "user=ann"},
		without("logout", "POST", "/api/v1/logout", "Cookie: sid=abc"),
		without("redirect", "GET", "/api/v1/old"),
		without("who-are-you", "GET", "/api/v1/me"),
		without("exception", "GET", "/api/v1/fail"),
		without("encoded-slash", "GET", "/files/a%2Fb"),
		without("semicolon", "GET", "/files/a;v=1"),
		without("trailing-slash", "GET", "/folder/"),
		without("not-modified", "GET", "/api/v1/me", `If-None-Match: W/"x"`),
		without("options", "OPTIONS", "/api/v1/users"),
		without("no-such-route", "DELETE", "/nothing"),
	})
}

func TestJSONServer0WithoutFiles(t *testing.T) {
	direct, gateway := startTwice(t, func() *program {
		return startJSONServer(t, "json-server-0/lib/cli/bin.js", "--host", "127.0.0.1", "--quiet")
	})
	proveEqual(t, direct, gateway, varying(), jsonServerRequests())
}

func TestJSONServer1WithoutFiles(t *testing.T) {
	direct, gateway := startTwice(t,
		func() *program { return startJSONServer(t, "json-server-1/lib/bin.js", "--host", "127.0.0.1") })
	proveEqual(t, direct, gateway, varying(), jsonServerRequests())
}

func jsonServerRequests() []request {
	return []request{
		without("list", "GET", "/posts"),
		without("page", "GET", "/posts?_page=1&_limit=1&_sort=-views"),
		without("filter", "GET", "/posts?views_gte=150"),
		without("read", "GET", "/posts/1"),
		without("read-gzip", "GET", "/posts/1", "Accept-Encoding: gzip"),
		without("read-missing", "GET", "/posts/99", "Origin: http://app.example"),
		without("singleton", "GET", "/profile"),
		withJSON("singleton-put", "PUT", "/profile", `{"name":"bob"}`),
		withJSON("singleton-patch", "PATCH", "/profile", `{"name":"cleo"}`),
		without("preflight", "OPTIONS", "/posts/1", preflight...),
		withJSON("create", "POST", "/posts", `{"id":"3","title":"three","views":1.10}`),
		withJSON("update", "PUT", "/posts/1", `{"id":"1","title":"uno"}`),
		withJSON("patch", "PATCH", "/posts/2", `{"views":12345678901234567}`),
		withJSON("patch-missing", "PATCH", "/posts/99", `{"views":2}`),
		withJSON("broken", "POST", "/posts", `{"id":`),
		without("delete", "DELETE", "/posts/3"),
		without("delete-missing", "DELETE", "/posts/99"),
		without("database", "GET", "/db"),
		without("page-of-html", "GET", "/"),
		without("page-missing", "GET", "/nothing/here.html"),
	}
}
