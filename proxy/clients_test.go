package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
)

// echoing is a backend whose answers name their request.
func echoing(t *testing.T) *recorder {
	t.Helper()
	r := newRecorder(t)
	r.Reply = func(_ int, head, body string) (string, bool) {
		line, _, _ := strings.Cut(head, " HTTP/")
		method, path, _ := strings.Cut(line, " ")
		code, answer := "200 OK", fmt.Sprintf(`{"of":"%s","body":%d}`, line, len(body))
		if strings.Contains(path, "missing") {
			code = "404 Not Found"
		}
		head = fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: application/json\r\nETag: \"1\"\r\nContent-Length: %d\r\n\r\n", code, len(answer))
		if method == "HEAD" {
			answer = ""
		}
		return head + answer, true
	}
	return r
}

// TestGatewayDeadlines shows that the deadlines of the configuration hold for connections.
func TestGatewayDeadlines(t *testing.T) {
	t.Parallel()
	backend := newRecorder(t)
	c, err := config.Load("", config.Flags{Upstream: backend.URL(), Dialect: "Kubernetes"})
	if err != nil {
		t.Fatal(err)
	}
	c.Timeouts.HeaderDeadlineSeconds, c.Timeouts.BodyDeadlineSeconds, c.Timeouts.IdleTimeoutSeconds = 1, 1, 1
	set := noPolicies()
	g := newTestGateway(t, c, func() *policies.Set { return set })
	address := startGateway(t, g)
	t.Run("connections", func(t *testing.T) {
		for _, one := range []struct {
			name, send string
			code       int // 0 for none
		}{
			{"nothing", "", 0},
			{"half a head", getHead, 408},
			{"half a body", postHead + "Content-Length: 100\r\n\r\n{", 408},
			{"half a large body", postHead + "Content-Length: 100000\r\n\r\n" + strings.Repeat(" ", 50_000), 408},
			{"half a chunk", postHead + "Transfer-Encoding: chunked\r\n\r\n5\r\n{", 408},
		} {
			t.Run(one.name, func(t *testing.T) {
				t.Parallel()
				nc, br := dial(t, address)
				send(t, nc, one.send)
				if one.code != 0 {
					if got, closes := readAnswer(t, br, false); got.StatusCode != one.code || !closes ||
						!strings.Contains(string(got.Content), `"kind":"Status"`) {
						t.Errorf("answered %d, close %v: %s", got.StatusCode, closes, got.Content)
					}
				}
				expectEnd(t, br)
			})
		}
	})
	if got := backend.Take(); got != "" {
		t.Errorf("the backend got %q", got)
	}
	testutil.Eventually(t, "all memory of bodies is given back",
		func() bool { return g.BodyBytesInFlight() == 0 && g.server.Open() == 0 })
}

// TestPipelined sends many requests at once, good and bad ones in turn: the answers come in their order, each with its
// own body, on one connection.
func TestPipelined(t *testing.T) {
	backend := echoing(t)
	address := startGateway(t,
		gatewayFor(t, t.TempDir(), backend.Addr().String(), []string{"policies=widgets", "kubernetes"}))
	type request struct {
		message, answer string // the body has a part of it
		code            int
	}
	head := func(method, target string) string {
		return method + " " + target + " HTTP/1.1\r\nHost: gw\r\nContent-Type: application/json\r\n"
	}
	with := func(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }
	kinds := []func(i int) request{
		func(i int) request {
			return request{head("GET", fmt.Sprint("/v2/orders/o", i)) + "\r\n",
				fmt.Sprintf(`{"of":"GET /v2/orders/o%d","body":0}`, i), 200}
		},
		func(i int) request {
			return request{head("POST", fmt.Sprint("/v2/orders?i=", i)) + with(body7),
				fmt.Sprintf(`{"of":"POST /v2/orders?i=%d","body":7}`, i), 200}
		},
		func(i int) request {
			body := "[" + strings.Repeat(" ", 30_000) + "]"
			return request{head("POST", fmt.Sprint("/v2/orders?i=", i)) + "Transfer-Encoding: chunked\r\n\r\n" +
				chunks(body, 1000+i), fmt.Sprintf(`{"of":"POST /v2/orders?i=%d","body":30002}`, i), 200}
		},
		func(i int) request { return request{head("HEAD", fmt.Sprint("/v2/orders/o", i)) + "\r\n", "", 200} },
		func(i int) request { return request{head("HEAD", fmt.Sprint("/missing/o", i)) + "\r\n", "", 404} },
		func(i int) request { return request{head("HEAD", widgetsPath+"/w/frob/x") + "\r\n", "", 404} },
		func(i int) request {
			return request{head("GET", fmt.Sprint("/missing/o", i)) + "\r\n", `"code":404`, 404}
		},
		func(i int) request {
			return request{head("POST", widgetsPath) + with(`{"metadata":{"name":"w"},"spec":{"size":0}}`),
				`"reason":"Invalid"`, 422}
		},
		func(i int) request {
			return request{head("POST", widgetsPath) + with(`{`), `"reason":"BadRequest"`, 400}
		},
		func(i int) request {
			return request{strings.Replace(head("POST", widgetsPath), "json", "xml", 1) + with(`{}`), `"code":415`, 415}
		},
		func(i int) request { return request{head("POST", widgetsPath+"/w") + with(body7), `"code":405`, 405} },
		func(i int) request { return request{head("GET", "/a/../b") + "\r\n", `"code":400`, 400} },
		func(i int) request { return request{head("OPTIONS", widgetsPath) + with(body7), "", 204} },
	}
	nc, br := dial(t, address)
	var requests []request
	var all strings.Builder
	for i := range 5 * len(kinds) {
		r := kinds[(i*7)%len(kinds)](i)
		requests = append(requests, r)
		all.WriteString(r.message)
	}
	go func() { _, _ = io.WriteString(nc, all.String()) }()
	for i, r := range requests {
		got, closes := readAnswer(t, br, strings.HasPrefix(r.message, "HEAD"))
		if got.StatusCode != r.code || closes || !strings.Contains(string(got.Content), r.answer) {
			t.Fatalf("answer %d is %d, close %v, %.300s; want %d %s for %.60q", i, got.StatusCode, closes, got.Content,
				r.code, r.answer, r.message)
		}
	}
	_ = nc.(*net.TCPConn).CloseWrite()
	if rest, err := io.ReadAll(br); len(rest) > 0 || err != nil {
		t.Errorf("after the answers came %q, %v", rest, err)
	}
}

// TestHEAD shows that no answer to HEAD has a body, whether the gateway's or the backend's, and
// that the connection goes on if it would after a GET.
func TestHEAD(t *testing.T) {
	backend := echoing(t)
	address := startGateway(t,
		gatewayFor(t, t.TempDir(), backend.Addr().String(),
			[]string{"policies=widgets", "policies=limit", "kubernetes"}))
	for _, c := range []struct {
		name, target, version, header string
		code                          int
		closes                        bool
	}{
		{"passed", "/v2/x", "1.1", "", 200, false},
		{"HTTP/1.0", "/v2/x", "1.0", "", 200, true},
		{"HTTP/1.0, keep-alive", "/v2/x", "1.0", "Connection: keep-alive\r\n", 200, false},
		{"an error of the backend", "/missing", "1.1", "", 404, false},
		{"an error of the backend, HTTP/1.0", "/missing", "1.0", "", 404, true},
		{"a path that is refused", "/a/../b", "1.1", "", 400, false},
		{"no such subresource", widgetsPath + "/w/frob", "1.1", "", 404, false},
		{"a target that is too long", "/" + strings.Repeat("a", 9000), "1.1", "", 414, true},
		{"a head that is refused", "/v2/x", "1.1", "X_A: 1\r\n", 400, true},
		{"a head with a bare LF", "/v2/x", "1.1", "X-A: 1\nX-B: 2\r\n", 400, true},
		{"a head that is too large", "/v2/x", "1.1", "X-A: " + strings.Repeat("a", 17<<10) + "\r\n", 431, true},
		{"a version that is refused", "/v2/x", "1.2", "", 505, true},
		{"a body", "/v2/x", "1.1", "Content-Length: 7\r\n", 400, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			nc, br := dial(t, address)
			send(t, nc, "HEAD "+c.target+" HTTP/"+c.version+"\r\nHost: gw\r\n"+c.header+"\r\n")
			got, closes := readAnswer(t, br, true)
			if got.StatusCode != c.code || closes != c.closes || got.Header.Get("Content-Type") != "application/json" ||
				got.ContentLength <= 0 {
				t.Errorf("answered %d, close %v, %v", got.StatusCode, closes, got.Header)
			}
			if !c.closes {
				send(t, nc, "GET /v2/next HTTP/1.1\r\nHost: gw\r\nConnection: close\r\n\r\n")
				if got, _ := readAnswer(t, br, false); got.StatusCode != 200 ||
					!strings.Contains(string(got.Content), "GET /v2/next") {
					t.Errorf("the next request is answered %d %s", got.StatusCode, got.Content)
				}
			}
			expectEnd(t, br)
		})
	}
}

// TestHalfClosed has clients that send no more after their request: they get their answers, small and large.
func TestHalfClosed(t *testing.T) {
	large := strings.Repeat("0123456789", 100_000)
	backend := newRecorder(t)
	backend.Reply = func(_ int, head, body string) (string, bool) {
		if strings.HasPrefix(head, "GET /large") {
			return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s",
				len(large), large), true
		}
		return smallReply, true
	}
	address := startGateway(t, gatewayFor(t, t.TempDir(), backend.Addr().String(), []string{"kubernetes"}))
	for _, c := range []struct{ request, want string }{
		{getHead + "\r\n", "{}"},
		{postHead + "Content-Length: 7\r\n\r\n" + body7, "{}"},
		{postHead + "Transfer-Encoding: chunked\r\n\r\n" + chunks(body7, 2), "{}"},
		{"GET /large HTTP/1.1\r\nHost: gw\r\n\r\n", large},
	} {
		nc, br := dial(t, address)
		send(t, nc, c.request)
		if err := nc.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, _ := readAnswer(t, br, false); got.StatusCode != 200 || string(got.Content) != c.want {
			t.Errorf("answered %d with %d bytes to %.60q", got.StatusCode, len(got.Content), c.request)
		}
		if rest, err := io.ReadAll(br); len(rest) > 0 || err != nil {
			t.Errorf("then came %q, %v", rest, err)
		}
	}
}

// TestClientsLeave has clients that go away in the middle of a head, a body or an answer: nothing of an incomplete
// request reaches the backend, the backend's connection is not used again for what is half read, and all memory comes
// back.
func TestClientsLeave(t *testing.T) {
	ended := make(chan struct{})
	faulty, _ := newFaultyBackend(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1000000000\r\n\r\n")
		part := make([]byte, 64<<10)
		for {
			if _, err := c.Write(part); err != nil {
				close(ended)
				return
			}
		}
	})
	g := gatewayFor(t, t.TempDir(), faulty, []string{"kubernetes"})
	address := startGateway(t, g)
	nc, br := dial(t, address)
	send(t, nc, getHead+"\r\n")
	if _, err := io.CopyN(io.Discard, br, 1<<20); err != nil {
		t.Fatal(err)
	}
	_ = nc.Close()
	<-ended
	testutil.Eventually(t, "the connections are closed", func() bool {
		open, _ := g.routes.backends[0].client.Conns()
		return open == 0 && g.server.Open() == 0
	})

	backend := newRecorder(t)
	g = gatewayFor(t, t.TempDir(), backend.Addr().String(), []string{"kubernetes"})
	address = startGateway(t, g)
	for _, message := range []string{
		getHead, getHead + "\r", postHead + "Content-Length: 100\r\n\r\n{",
		postHead + "Content-Length: 1000000\r\n\r\n" + strings.Repeat(" ", 500_000),
		postHead + "Transfer-Encoding: chunked\r\n\r\n7\r\n" + body7 + "\r\n0\r\n",
		postHead + "Transfer-Encoding: chunked\r\n\r\n7\r\n" + body7 + "\r\n0\r\nX-A: 1\r\n",
		postHead + "Transfer-Encoding: chunked\r\n\r\n" + strings.TrimSuffix(chunks(strings.Repeat(" ", 500_000), 1000),
			"0\r\n\r\n"),
	} {
		for _, reset := range []bool{false, true} {
			nc, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(nc, message)
			if reset {
				_ = nc.(*net.TCPConn).SetLinger(0)
			}
			_ = nc.Close()
		}
	}
	testutil.Eventually(t, "all is given back",
		func() bool { return g.server.Open() == 0 && g.BodyBytesInFlight() == 0 })
	if got := backend.Take(); got != "" {
		t.Errorf("the backend got %.200q", got)
	}
}

// TestHTTP10 shows answers to clients of HTTP/1.0, which know neither chunks nor, unasked, persistent connections.
func TestHTTP10(t *testing.T) {
	backend := newRecorder(t)
	backend.Reply = func(_ int, head, _ string) (string, bool) {
		if strings.HasPrefix(head, "GET /chunked") {
			return "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks(strings.Repeat("x", 300_000), 1000), true
		}
		return smallReply, true
	}
	address := startGateway(t, gatewayFor(t, t.TempDir(), backend.Addr().String(), []string{"kubernetes"}))
	for _, c := range []struct {
		request string
		code    int
		length  int
		closes  bool
	}{
		{"GET /v2/x HTTP/1.0\r\n\r\n", 200, 2, true}, // no Host
		{"GET /v2/x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200, 2, false},
		{"GET /chunked HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200, 300_000, true},
		{"GET /a/../b HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 400, -1, false},
		{"POST /v2/x HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", 200, 2, true},
		{"POST /v2/x HTTP/1.0\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, -1, true},
	} {
		nc, br := dial(t, address)
		send(t, nc, c.request)
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Errorf("%q: %v", c.request, err)
		}
		_ = resp.Body.Close()
		keeps := strings.EqualFold(resp.Header.Get("Connection"), "keep-alive")
		if resp.StatusCode != c.code || c.length >= 0 && len(body) != c.length || len(resp.TransferEncoding) > 0 ||
			keeps == c.closes {
			t.Errorf("%q is answered %d with %d bytes, %v %v", c.request, resp.StatusCode, len(body),
				resp.TransferEncoding, resp.Header)
		}
		if c.closes {
			expectEnd(t, br)
		}
	}
}

func expectEnd(t *testing.T, br *bufio.Reader) {
	t.Helper()
	if rest, err := io.ReadAll(br); len(rest) > 0 || err != nil && !isReset(err) {
		t.Errorf("then came %q, %v", rest, err)
	}
}
