package proxy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestRouteLimits: each route has its own bound of bodies, and its own patience with the backend.
func TestRouteLimits(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hasty/slow" {
			<-release
		}
		_ = http.NewResponseController(w).EnableFullDuplex()
		n := 0
		for buf := make([]byte, 1<<10); ; {
			m, err := r.Body.Read(buf)
			if n += m; err != nil {
				break
			}
		}
		_, _ = fmt.Fprintf(w, "%d bytes", n)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	g, address := configured(t, fmt.Sprintf(`
upstreams:
- {name: api, endpoints: ['%s'], dialect: Plain, responseTimeoutSeconds: 30}
routes:
- {pathPrefix: /small, upstream: api, bodyBytes: 20000}
- {pathPrefix: /large, upstream: api, bodyBytes: 4000000}
- {pathPrefix: /open, upstream: api}
- {pathPrefix: /hasty, upstream: api, responseTimeoutSeconds: 1}
limits: {bodyBytes: 100000}
`, server.URL), strings.ReplaceAll(usersOf("a", "cart", ""), "/users", "/small/users"), strings.ReplaceAll(usersOf("b", "cart", ""), "/users", "/large/users"),
		strings.ReplaceAll(usersOf("c", "cart", ""), "/users", "/open/users"))
	object := func(n int) string { return `{"cart":"` + strings.Repeat("x", n-len(`{"cart":""}`)) + `"}` }
	for _, tt := range []struct {
		method, path, body string
		chunked            bool
		code               int
		want               string // part of the answer
	}{
		{"POST", "/small/users", object(20000), false, 200, "20000 bytes"},
		{"POST", "/small/users", object(20001), false, 413, ""},
		{"POST", "/large/users", object(3000000), false, 200, "3000000 bytes"},
		{"POST", "/open/users", object(100000), false, 200, "100000 bytes"},
		{"POST", "/open/users", object(100001), false, 413, ""},
		{"POST", "/small/x", object(20000), false, 200, "20000 bytes"},
		{"POST", "/small/x", object(20001), false, 413, "the body must be at most 20000 bytes"},
		{"POST", "/small/x", object(20000), true, 200, "20000 bytes"},
		{"POST", "/small/x", object(200001), true, 413, "the body must be at most 20000 bytes"},
		{"POST", "/open/x", object(5000000), true, 200, "5000000 bytes"},
		{"GET", "/hasty/slow", "", false, 504, ""},
	} {
		nc, br := dial(t, address)
		head, body := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: gw\r\n", tt.method, tt.path), tt.body
		switch {
		case tt.chunked:
			head, body = head+"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n",
				fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
		case body != "":
			head += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
		}
		go func() { _, _ = nc.Write([]byte(head + "\r\n" + body)) }()
		if a, _ := readAnswer(t, br, false); a.StatusCode != tt.code || !strings.Contains(string(a.Content), tt.want) {
			t.Errorf("%s %s of %d bytes, chunked %v: answered %d %.300s", tt.method, tt.path, len(tt.body), tt.chunked,
				a.StatusCode, a.Content)
		}
		_ = nc.Close()
	}
	testutil.Eventually(t, "all memory to be back", func() bool { return g.BodyBytesInFlight() == 0 })
}
