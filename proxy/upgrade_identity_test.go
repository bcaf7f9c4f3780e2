package proxy

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/config"
)

// TestUpgradeBySubprotocolToken holds the user that policies on CONNECT see of a browser's WebSocket to the one that
// kube-apiserver reads from its protocols.
func TestUpgradeBySubprotocolToken(t *testing.T) {
	const policy = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: shells}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CONNECT], resources: [pods/exec]}]}
  validations:
  - {expression: "request.userInfo.username != 'builder'", message: "no shells for bots"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: shells}
spec: {policyName: shells, validationActions: [Deny]}
`
	token := func(s string) string {
		return "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(s))
	}
	const protocols = "Sec-WebSocket-Protocol: "
	for _, test := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"nobody", []string{protocols + "v5.channel.k8s.io"}, "101"},
		{"a user", []string{protocols + token("of-runner") + ", v5.channel.k8s.io"}, "101"},
		{"a user whom the policy denies", []string{protocols + token("of-builder") + ", v5.channel.k8s.io"}, "422"},
		{"in a second line", []string{protocols + "v5.channel.k8s.io", protocols + token("of-builder")}, "422"},
		{"a token that is not valid", []string{protocols + token("made-up") + ", v5.channel.k8s.io"}, "401"},
		{"not encoded", []string{protocols + "base64url.bearer.authorization.k8s.io.!, v5.channel.k8s.io"}, "400"},
		{"two tokens", []string{protocols + token("of-runner") + "," + token("of-builder")}, "400"},
		{"a token beside another one", []string{"Authorization: Bearer of-runner", protocols + token("of-builder") +
			", v5.channel.k8s.io"}, "400"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, address := upgradeGateway(t, func(c *config.Configuration) {
				c.Identity = &config.Identity{
					Anonymous: config.AllowAnonymous,
					Authenticators: []config.Authenticator{
						{TokenReview: &config.TokenReview{Upstream: c.Upstreams[0].Name}}},
				}
			}, policy, func(c net.Conn) {
				r := bufio.NewReader(c)
				for {
					q, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					if q.URL.Path != tokenReviewTarget {
						_, _ = io.WriteString(c, agree("websocket"))
						return
					}
					question, _ := io.ReadAll(q.Body)
					answer := `{"kind":"TokenReview","status":{"authenticated":false}}`
					for _, user := range []string{"builder", "runner"} {
						if strings.Contains(string(question), `"token":"of-`+user+`"`) {
							answer = `{"kind":"TokenReview","status":{"authenticated":true,"user":{"username":"` +
								user + `"}}}`
						}
					}
					_, _ = fmt.Fprintf(c, "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)
				}
			})
			c, r := dialTCP(t, address)
			send(t, c, askUpgrade("GET", execPath, "websocket", test.lines...))
			head, err := readHead(r)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Fields(head)[1]; got != test.want {
				t.Errorf("the client got %s, want %s", got, test.want)
			}
		})
	}
}

// TestRefusedUpgradeWithholdsTokens keeps the token of a WebSocket that is not made from a backend
// to which the gateway names the user (ERR-2).
func TestRefusedUpgradeWithholdsTokens(t *testing.T) {
	seen := make(chan string, 1)
	_, address := upgradeGateway(t, func(c *config.Configuration) {
		c.Identity = &config.Identity{Anonymous: config.AllowAnonymous}
		c.Upstreams[0].Credentials = config.ImpersonateCredentials
	}, "", func(c net.Conn) {
		head, _ := readHead(bufio.NewReader(c))
		seen <- headerOf(head, webSocketProtocols)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	})
	c, r := dialTCP(t, address)
	send(t, c, askUpgrade("GET", "/api/v1/namespaces/team-a/pods", "websocket", webSocketProtocols+
		": base64url.bearer.authorization.k8s.io.dA, v5.channel.k8s.io"))
	if _, err := readHead(r); err != nil {
		t.Fatal(err)
	}
	if got, want := <-seen, "v5.channel.k8s.io"; got != want {
		t.Errorf("the backend got %q, want %q", got, want)
	}
}
