package proxy

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/h2/h2test"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// agreed101 agrees to a WebSocket; {ACCEPT} is the proof that the backend has read the request.
const agreed101 = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {ACCEPT}\r\n\r\n"

// acceptOf answers to the nonce in a handshake (RFC 6455, 4.2.2).
func acceptOf(head string) string {
	_, rest, _ := strings.Cut(strings.ToLower(head), "\r\nsec-websocket-key: ")
	at := len(head) - len(rest)
	key, _, _ := strings.Cut(head[at:], "\r\n")
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// TestExtendedConnect (RFC 8441): a WebSocket asked for by HTTP/2 is opened by a backend that agrees, and only then is
// the answer a 2xx. What the backend sends in one segment with its agreement reaches the client.
func TestExtendedConnect(t *testing.T) {
	const notOpened = "the handshake of WebSocket was answered %d, which opens none"
	for _, test := range []struct {
		name, path string
		more       []string // fields of the request
		answer     string   // of the backend
		want       string   // status and message, or what follows the agreement
		counted    string   // the code that is counted
		isAsked    bool     // the backend
	}{
		{"agreed", "/live", nil, agreed101 + "hello", "200 hello", "101", true},
		{"agreed after an interim answer", "/live", nil, "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + agreed101 +
			"hello", "200 hello", "101", true},
		{"more than the window of a stream", "/live", nil, agreed101 + strings.Repeat("0123456789", 20_000),
			"200 " + strings.Repeat("0123456789", 20_000), "101", true},
		{"nothing behind the head", "/live", nil, agreed101, "200 ", "101", true},
		{"into a pod", execPath, nil, agreed101 + "hello", "200 hello", "101", true},
		{"by the media type of gRPC", "/live", []string{"content-type: application/grpc"}, agreed101 + "hello",
			"200 hello", "101", true},
		{"without proof", "/live", nil, strings.Replace(agreed101, "{ACCEPT}", "AAAAAAAAAAAAAAAAAAAAAAAAAAA=", 1) +
			"hello",
			"502 the backend's answer to the handshake of WebSocket does not fit the request", "502", true},
		{"answered 200", "/live", nil, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
			"502 " + fmt.Sprintf(notOpened, 200), "502", true},
		{"answered 200 by a stream", "/live", nil, "HTTP/1.1 200 OK\r\n\r\n{}", "502 " + fmt.Sprintf(notOpened, 200),
			"502", true},
		{"answered 204", "/live", nil, "HTTP/1.1 204 No Content\r\n\r\n", "502 " + fmt.Sprintf(notOpened, 204), "502",
			true},
		{"answered 200 in gRPC's media type", "/live", []string{"content-type: application/grpc"},
			"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
			"502 " + fmt.Sprintf(notOpened, 200), "502", true},
		{"redirected", "/live", nil, "HTTP/1.1 307 Temporary Redirect\r\nLocation: /other\r\nContent-Length: 2\r\n\r\n{}", "307 {}", "307", true},
		{"refused by the backend", "/live", nil, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
			"404 the backend answered 404 Not Found", "404", true},
		{"refused in gRPC's media type", "/api/v1/namespaces/a/configmaps/a",
			[]string{"content-type: application/grpc"}, "",
			"400 an upgrade to the protocol 'websocket' is not allowed for the path '/api/v1/namespaces/a/configmaps/a'", "400", false},
		{"another protocol", "/live", nil, strings.Replace(agreed101, "Upgrade: websocket", "Upgrade: SPDY/3.1", 1),
			"502 the backend gave an answer that is not valid HTTP: the answer switches to another protocol than the request asked for", "502", true},
		{"a path of an object", "/api/v1/namespaces/a/configmaps/a", nil, "",
			"400 an upgrade to the protocol 'websocket' is not allowed for the path '/api/v1/namespaces/a/configmaps/a'", "400", false},
		{"a watch", "/api/v1/namespaces/a/configmaps?watch=true", nil, "",
			"400 an upgrade to the protocol 'websocket' is not allowed for the path '/api/v1/namespaces/a/configmaps'", "400", false},
		{"a pod's proxy, which is not listed", "/api/v1/namespaces/a/pods/web/proxy/", nil, "",
			"400 an upgrade to the protocol 'websocket' is not allowed for the path '/api/v1/namespaces/a/pods/web/proxy/'", "400", false},
		{"a path that is not listed", "/other", nil, "", "400 an upgrade to the protocol 'websocket' is not allowed for the path '/other'", "400", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			asked := make(chan struct{}, 1)
			g, address := upgradeGateway(t, func(c *config.Configuration) {
				c.Upstreams[0].Upgrades = append(c.Upstreams[0].AllowedUpgrades(), "/live")
			}, "", func(c net.Conn) {
				head, err := readHead(bufio.NewReader(c))
				if err != nil {
					return
				}
				asked <- struct{}{}
				_, _ = io.WriteString(c, strings.Replace(test.answer, "{ACCEPT}", acceptOf(head), 1))
			})
			client := h2test.Dial(t, address)
			fields := []string{":method: CONNECT", ":protocol: websocket", ":scheme: http", ":path: " + test.path,
				":authority: gw"}
			client.Head(t, 1, false, append(fields, test.more...)...)
			answer := client.Read(t, 1)[1]
			_ = client.Conn.Close()
			got := answer.Status() + " " + answer.Body
			var refusal metav1.Status
			if json.Unmarshal([]byte(answer.Body), &refusal) == nil && refusal.Message != "" {
				got = answer.Status() + " " + refusal.Message
			}
			if got != test.want || len(asked) > 0 != test.isAsked {
				t.Errorf("answered %.200q, want %.200q; the backend was asked %d times", got, test.want, len(asked))
			}
			testutil.Becomes(t, test.counted, func() string {
				page := httptest.NewRecorder()
				g.metrics.Handler().ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
				_, line, _ := strings.Cut(page.Body.String(), "\ngateway_requests_total{code=\"")
				code, _, _ := strings.Cut(line, `"`)
				return code
			})
		})
	}
}
