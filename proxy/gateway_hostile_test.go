package proxy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/internal/h1/h1test"
)

// TestHostileInputGateway plays the rows "Framing and headers" and "Identity" against the whole way of a request.
func TestHostileInputGateway(t *testing.T) {
	backend := newRecorder(t)
	g := gatewayFor(t, t.TempDir(), backend.Addr().String(), []string{"kubernetes"})
	h1test.RunHostile(t, startGateway(t, g), backend)
}

const widgetsPath = "/apis/example.com/v1/namespaces/team-a/widgets"

// widget is a valid object with more after its spec.
func widget(more string) string {
	return `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w1"},"spec":{"size":5}` + more + `}`
}

// TestHostileRequests are the rows "Paths", "JSON" and "Media types and encodings": what is refused leaves the backend
// without a byte, and is answered with a Status.
func TestHostileRequests(t *testing.T) {
	const jsonBody = "Content-Type: application/json\r\n"
	deep := strings.Repeat("[", 65) + strings.Repeat("]", 65)
	cases := []struct {
		name, method, target, head, body string
		code                             int
	}{
		// Paths
		{"encoded dot-dot", "GET", "/pub/..%2Fadmin", "", "", 400},
		{"dot-dot", "GET", "/pub/../admin", "", "", 400},
		{"encoded dots", "GET", "/pub/%2e%2e/admin", "", "", 400},
		{"dot", "GET", "/pub/./admin", "", "", 400},
		{"encoded slash", "GET", "/a%2Fb/c", "", "", 400},
		{"encoded backslash", "GET", "/a%5Cb", "", "", 400},
		{"encoded NUL", "GET", "/a%00", "", "", 400},
		{"double slash", "GET", "//evil/x", "", "", 400},
		{"double slash inside", "GET", "/apis//example.com/v1", "", "", 400},
		{"backslash", "GET", `/a\b`, "", "", 400},
		{"semicolon", "GET", "/a;b", "", "", 400},
		{"fragment", "GET", "/a#b", "", "", 400},
		{"bad percent", "GET", "/a%zz", "", "", 400},
		{"cut percent", "GET", "/a%4", "", "", 400},
		{"not ASCII", "GET", "/\xc3\xa4", "", "", 400},
		{"control character", "GET", "/a\x01", "", "", 400},
		{"encoded letter", "GET", "/%61pis/example.com/v1/namespaces/team-a/widgets", "", "", 400},
		{"encoded percent", "GET", widgetsPath + "/a%25b", "", "", 400},
		{"trailing slash", "GET", widgetsPath + "/", "", "", 400},
		{"segments after a subresource", "GET", widgetsPath + "/w1/status/more", "", "", 404},
		{"unknown subresource", "GET", widgetsPath + "/w1/frob", "", "", 404},
		{"old watch prefix", "GET", "/apis/example.com/v1/watch/namespaces/team-a/widgets", "", "", 400},
		{"repeated option", "GET", widgetsPath + "?watch=true&watch=false", "", "", 400},
		{"encoded option", "GET", widgetsPath + "?%77atch=true", "", "", 400},
		{"method in the query", "GET", widgetsPath + "?_method=DELETE", "", "", 400},
		{"POST to an item", "POST", widgetsPath + "/w1", jsonBody, widget(""), 405},
		{"namespaced resource without namespace", "POST", "/apis/example.com/v1/widgets", jsonBody, widget(""), 404},
		// JSON
		{"duplicate key", "POST", widgetsPath, jsonBody, widget(`,"spec":{"size":6}`), 400},
		{"duplicate key by escape", "POST", widgetsPath, jsonBody, widget(`,"ki\u006ed":"Gadget"`), 400},
		{"duplicate key deep inside", "POST", widgetsPath, jsonBody, widget(`,"x":[{"a":{"b":1,"b":2}}]`), 400},
		{"case variant of kind", "POST", widgetsPath, jsonBody, widget(`,"Kind":"Gadget"`), 400},
		{"case variant of status", "POST", widgetsPath, jsonBody, widget(`,"STATUS":{"phase":"Ready"}`), 400},
		{"Kelvin sign in kind", "POST", widgetsPath, jsonBody, widget(`,"` + "\u212a" + `ind":"Gadget"`), 400},
		{"long s in status", "POST", widgetsPath, jsonBody, widget(`,"` + "\u017f" + `tatus":{"phase":"Ready"}`), 400},
		{"case variant in spec", "POST", widgetsPath, jsonBody, `{"metadata":{"name":"w1"},"spec":{"size":5,"Max":9}}`,
			400},
		{"case variant in metadata", "POST", widgetsPath, jsonBody,
			`{"metadata":{"name":"w1","Namespace":"team-b"},"spec":{"size":5}}`, 400},
		{"invalid UTF-8", "POST", widgetsPath, jsonBody, widget(`,"a":"` + "\xff" + `"`), 400},
		{"lone surrogate", "POST", widgetsPath, jsonBody, widget(`,"a":"\ud800"`), 400},
		{"byte order mark", "POST", widgetsPath, jsonBody, "\xef\xbb\xbf" + widget(""), 400},
		{"UTF-16", "POST", widgetsPath, jsonBody, "\xff\xfe{\x00}\x00", 400},
		{"NUL in a key", "POST", widgetsPath, jsonBody, widget(`,"a\u0000":1`), 400},
		{"NUL in a name", "POST", widgetsPath, jsonBody, `{"metadata":{"name":"w\u0000"},"spec":{"size":5}}`, 400},
		{"too deep", "POST", widgetsPath, jsonBody, widget(`,"a":` + deep), 400},
		{"trailing data", "POST", widgetsPath, jsonBody, widget("") + "x", 400},
		{"two objects", "POST", widgetsPath, jsonBody, "{}{}", 400},
		{"empty", "POST", widgetsPath, jsonBody, "", 400},
		{"null", "POST", widgetsPath, jsonBody, "null", 400},
		{"list", "POST", widgetsPath, jsonBody, "[]", 400},
		{"integer beyond 64 bits", "POST", widgetsPath, jsonBody,
			`{"metadata":{"name":"w1"},"spec":{"size":5,"max":9223372036854775808}}`, 422},
		// Media types and encodings
		{"unknown Content-Type", "POST", widgetsPath, "Content-Type: application/x-thing\r\n", widget(""), 415},
		{"text", "POST", widgetsPath, "Content-Type: text/plain\r\n", widget(""), 415},
		{"XML", "POST", widgetsPath, "Content-Type: application/xml\r\n", "<kind>Widget</kind>", 415},
		{"CBOR", "POST", widgetsPath, "Content-Type: application/cbor\r\n", "\xff", 400},
		{"protobuf", "POST", widgetsPath, "Content-Type: application/vnd.kubernetes.protobuf\r\n", "k8s\x00", 415},
		{"another charset", "POST", widgetsPath, "Content-Type: application/json;charset=utf-16\r\n", widget(""), 415},
		{"two types in one", "POST", widgetsPath, "Content-Type: application/json, text/plain\r\n", widget(""), 415},
		{"gzip", "POST", widgetsPath, jsonBody + "Content-Encoding: gzip\r\n", "\x1f\x8b", 415},
		{"PATCH with JSON", "PATCH", widgetsPath + "/w1", jsonBody, "{}", 415},
		{"PATCH without a type", "PATCH", widgetsPath + "/w1", "", "{}", 415},
		{"server-side apply as JSON", "PATCH", widgetsPath + "/w1", "Content-Type: application/apply-patch+json\r\n",
			"{}", 415},
		{"a body on GET", "GET", widgetsPath, jsonBody, "{}", 400},
		{"a body on HEAD", "HEAD", widgetsPath, jsonBody, "{}", 400},
		{"a body on DELETE that is no JSON", "DELETE", widgetsPath + "/w1", jsonBody, "x", 400},
		{"a body on DELETE of another type", "DELETE", widgetsPath + "/w1", "Content-Type: text/plain\r\n", "{}", 415},
		// Sizes
		{"target too long", "GET", "/a?" + strings.Repeat("x", 9<<10), "", "", 414},
		{"head too large", "GET", "/a", "X-Long: " + strings.Repeat("x", 17<<10) + "\r\n", "", 431},
		{"body too large", "PUT", widgetsPath + "/w1", jsonBody + "Content-Length: 3145729\r\n", "", 413},
	}
	backend := newRecorder(t)
	address := startGateway(t,
		gatewayFor(t, t.TempDir(), backend.Addr().String(), []string{"policies=widgets", "kubernetes"}))
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			request := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: gw\r\n%s", c.method, c.target, c.head)
			if c.body != "" || c.method == "POST" {
				request += fmt.Sprintf("Content-Length: %d\r\n", len(c.body))
			}
			raw := string(exchangeRaw(t, address, []byte(request+"\r\n"+c.body)))
			if want := fmt.Sprintf("HTTP/1.1 %d ", c.code); !strings.HasPrefix(raw, want) {
				t.Errorf("answered %.300q, want %q", raw, want)
			}
			_, body, _ := strings.Cut(raw, "\r\n\r\n")
			var s metav1.Status
			if c.method != "HEAD" && (json.Unmarshal([]byte(body), &s) != nil || s.Kind != "Status" ||
				s.APIVersion != "v1" || s.Status != "Failure" ||
				int(s.Code) != c.code || s.Message == "") {
				t.Errorf("the body is no Status (ERR-1): %s", body)
			}
			if got := backend.Take(); got != "" {
				t.Errorf("the backend got %q", got)
			}
		})
	}
}

// TestPathAdmittedIsPathForwarded shows the property behind the path rules, on what is accepted.
func TestPathAdmittedIsPathForwarded(t *testing.T) {
	backend := newRecorder(t)
	address := startGateway(t,
		gatewayFor(t, t.TempDir(), backend.Addr().String(), []string{"policies=widgets", "kubernetes"}))
	for _, target := range []string{
		"/", "/?", "/a?", "/a?x=%2f&&y", "/v2/orders/a%20b", "/a~b!c$d&e'f(g)h*i+j,k=l:m@n",
		widgetsPath + "?pretty=5&x=a%3Db",
		widgetsPath + "/w1?pretty", "/api", "/apis", "/openapi/v3?hash=A%2FB",
	} {
		exchangeRaw(t, address, []byte("GET "+target+" HTTP/1.1\r\nHost: gw\r\n\r\n"))
		if got, want := backend.Take(), "GET "+target+" HTTP/1.1\r\n"; !strings.HasPrefix(got, want) {
			t.Errorf("of %s the backend got %.100q", target, got)
		}
	}
}
