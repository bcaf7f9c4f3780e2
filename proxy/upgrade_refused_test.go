package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// denyExec is a policy that lets no client into pods.
const denyExec = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-exec}
spec:
  matchConstraints: {resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*/*"]}]}
  validations: [{expression: "request.operation != 'CONNECT'", message: may not be entered, reason: Forbidden}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-exec}
spec: {policyName: no-exec, validationActions: [Deny]}
`

// TestUpgradeRefused checks what happens to upgrades that are refused: one answer, the end of the
// connection, and nothing served of what was sent behind the request.
func TestUpgradeRefused(t *testing.T) {
	for _, test := range []struct {
		name, policy, request, backend string
		reached                        int // how many requests the backend gets
		want                           string
	}{
		{"a policy denies", denyExec, askUpgrade("GET", execPath, "websocket"), agree("websocket"), 0,
			`403 pods "web" is forbidden: ValidatingAdmissionPolicy 'no-exec' with binding 'no-exec' denied request: may not be entered`},
		{"a body", "", askUpgrade("POST", execPath, "SPDY/3.1", "Content-Length: 5") + "hello", agree("SPDY/3.1"), 0,
			"400 a request that asks for an upgrade may not have a body"},
		{"chunks", "", askUpgrade("POST", execPath, "SPDY/3.1", "Transfer-Encoding: chunked") + "0\r\n\r\n",
			agree("SPDY/3.1"), 0, "400 a request that asks for an upgrade may not have a body"},
		{"a body with GET", "", askUpgrade("GET", execPath, "websocket", "Content-Length: 5") + "hello",
			agree("websocket"), 0, "400 a GET request may not have a body"},
		{"the server refuses", "", askUpgrade("GET", execPath, "websocket"),
			"HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n" +
				`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"not allowed","code":403}`[:100], 1, ""},
		{"the server answers", "", askUpgrade("GET", execPath, "websocket"),
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 1, "200 ok"},
		{"the server answers without an end", "", askUpgrade("GET", execPath, "websocket"), "HTTP/1.1 200 OK\r\n\r\nok",
			1, "200 ok"},
		{"another protocol", "", askUpgrade("GET", execPath, "websocket"), agree("SPDY/3.1"), 1,
			"502 the backend gave an answer that is not valid HTTP: the answer switches to another protocol than the request asked for"},
		{"two protocols", "", askUpgrade("GET", execPath, "websocket"), agree("websocket\r\nUpgrade: websocket"), 1,
			"502 the backend gave an answer that is not valid HTTP: the answer switches to another protocol without saying to which one"},
		{"no protocol", "", askUpgrade("GET", execPath, "websocket"),
			"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n", 1,
			"502 the backend gave an answer that is not valid HTTP: the answer switches to another protocol without saying to which one"},
		{"no Connection", "", askUpgrade("GET", execPath, "websocket"),
			"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n", 1,
			"502 the backend gave an answer that is not valid HTTP: the answer switches to another protocol without saying to which one"},
		{"a body in the agreement", "", askUpgrade("GET", execPath, "websocket"), "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n\r\n", 1,
			"502 the backend gave an answer that is not valid HTTP: the answer switches to another protocol and announces a body"},
		{"nobody asked", "", "GET /api/v1/pods HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n",
			agree("websocket"), 1,
			"502 the backend gave an answer that is not valid HTTP: the answer switches to another protocol, which the request did not ask for"},
		{"the backend closes at once", "", askUpgrade("POST", execPath, "SPDY/3.1"), "", 1,
			"502 the backend closed the connection before its answer was complete"},
		{"an answer that breaks off", "", askUpgrade("POST", execPath, "SPDY/3.1"), "HTTP/1.1 101 Switching", 1,
			"502 the backend closed the connection before its answer was complete"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var reached atomic.Int32
			g, address := upgradeGateway(t, nil, test.policy, func(c net.Conn) {
				r := bufio.NewReader(c)
				if _, err := readHead(r); err != nil {
					return
				}
				reached.Add(1)
				_, _ = io.WriteString(c, test.backend)
			})
			c, r := dialTCP(t, address)
			if _, err := io.WriteString(c,
				test.request+"GET /api/v1/secrets HTTP/1.1\r\nHost: gateway\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(r, &http.Request{Method: http.MethodGet})
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(answer.Body)
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("%d %s", answer.StatusCode, body)
			if _, rest, found := bytes.Cut(body, []byte(`"message":"`)); found {
				message, _, _ := strings.Cut(strings.ReplaceAll(string(rest), `\"`, "'"), `"`)
				got = fmt.Sprintf("%d %s", answer.StatusCode, message)
			}
			if want := strings.ReplaceAll(test.want, `"`, "'"); want != "" && got != want {
				t.Errorf("the client got %s\nwant %s", got, want)
			}
			if rest, err := io.ReadAll(r); len(rest) > 0 || err != nil && !isReset(err) {
				t.Errorf("behind the answer came %q, %v", rest, err)
			}
			if n := int(reached.Load()); n != test.reached {
				t.Errorf("the backend got %d requests, want %d", n, test.reached)
			}
			testutil.Eventually(t, "the backend's connection to be given up", func() bool {
				open, idle := g.routes.backends[0].client.Conns()
				return open == idle
			})
		})
	}
}
