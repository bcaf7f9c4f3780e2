package admin_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/admin"
	"github.com/admission-gateway/gateway/internal/explanation"
	"github.com/admission-gateway/gateway/internal/status"
)

// asked is a playground that notes what it is asked.
type asked struct{ questions chan string }

func (a *asked) options() *admin.Playground {
	return &admin.Playground{
		Ask: func(_ context.Context, question []byte) (*explanation.Explanation, error) {
			a.questions <- string(question)
			if string(question) == "{}" {
				return nil, status.TooManyRequests("the playground judges one question at a time", 1)
			}
			return &explanation.Explanation{Kind: explanation.Kind, Request: explanation.Request{Method: "POST",
				Path: "/<script>"},
				Answer: explanation.Response{Decision: explanation.Refused, Code: 422}}, nil
		},
		Examples: func() (any, error) { return []string{"an example"}, nil },
	}
}

// post sends a question with further lines of its head.
func (c client) post(question string, head ...string) answer {
	c.t.Helper()
	if len(head) == 0 {
		head = []string{"Content-Type: application/json"}
	}
	text := "POST /playground/ask HTTP/1.1\r\nHost: 127.0.0.1:8081\r\nConnection: close\r\n" +
		strings.Join(head, "\r\n") +
		fmt.Sprintf("\r\nContent-Length: %d\r\n\r\n%s", len(question), question)
	got, header := c.send("POST", text)
	got.ContentType = header.Get("Content-Type")
	return got
}

// announce sends the head of a question of so many bytes alone.
func (c client) announce(length int, head ...string) answer {
	c.t.Helper()
	got, _ := c.send("POST", fmt.Sprintf("POST /playground/ask HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\nContent-Length: %d\r\n\r\n", strings.Join(head, "\r\n"), length))
	return got
}

// asks reports whether a question has come.
func (a *asked) asks() bool {
	select {
	case <-a.questions:
		return true
	default:
		return false
	}
}

// TestPlayground: questions are answered as JSON, or as a part of the page, in which every value is text.
func TestPlayground(t *testing.T) {
	a := &asked{make(chan string, 64)}
	c := serve(t, admin.New(admin.Options{Playground: a.options()}))
	got, header := c.send("GET", "GET /playground HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	policy := header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'sha256-", "style-src 'sha256-",
		"connect-src 'self'", "form-action 'none'", "base-uri 'none'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy of the page is %q, without %s", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") || got.Code != 200 || strings.Count(got.Body, "<script") != 1 ||
		strings.Contains(got.Body, "//cdn") || header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("the page is answered with %d, %v", got.Code, header)
	}
	if got := c.get("GET", "/playground/examples"); got.Code != 200 || !strings.Contains(got.Body, "an example") {
		t.Errorf("the examples are %+v", got)
	}
	if got := c.post(`{"a":1}`); got.Code != 200 || !strings.HasPrefix(got.ContentType, "application/json") ||
		!strings.Contains(got.Body, `"kind": "Explanation"`) {
		t.Errorf("the answer is %+v", got)
	}
	if got := c.post(`{"a":1}`, "Content-Type: application/json; charset=utf-8", "Accept: text/html",
		"Origin: http://127.0.0.1:8081", "Sec-Fetch-Site: same-origin"); got.Code != 200 ||
		!strings.HasPrefix(got.ContentType, "text/html") || strings.Contains(got.Body, "<script>") ||
		!strings.Contains(got.Body, "/&lt;script&gt;") {
		t.Errorf("the answer for the page is %+v", got)
	}
	if got := c.post(`{}`); got.Code != 429 || !strings.Contains(got.Body, "one question at a time") {
		t.Errorf("a refusal is %+v", got)
	}
	if got := c.get("GET", "/playground/ask"); got.Code != 405 {
		t.Errorf("GET is answered with %+v", got)
	}
	if got := serve(t, admin.New(admin.Options{})).post("{}"); got.Code != 404 {
		t.Errorf("without a playground it is %+v", got)
	}
}

// TestPlaygroundFromElsewhere: no page of another origin can ask, whatever credentials the browser adds.
func TestPlaygroundFromElsewhere(t *testing.T) {
	a := &asked{make(chan string, 64)}
	const token = "secret"
	c := serve(t, admin.New(admin.Options{Playground: a.options(), Token: func() string { return token }}))
	const credentials, asJSON = "Authorization: Bearer secret", "Content-Type: application/json"
	for _, head := range [][]string{
		{credentials, asJSON, "Origin: http://attacker.example"},
		{credentials, asJSON, "Origin: null"},
		{credentials, asJSON, "Origin: http://127.0.0.1:8082"},
		{credentials, asJSON, "Origin: http://127.0.0.1:8081.attacker.example"},
		{credentials, asJSON, "Origin: http://127.0.0.1:8081", "Origin: http://attacker.example"},
		{credentials, asJSON, "Sec-Fetch-Site: cross-site"},
		{credentials, asJSON, "Sec-Fetch-Site: same-site"},
		{credentials, "Content-Type: text/plain"},
		{credentials, "Content-Type: application/x-www-form-urlencoded"},
		{credentials, "Content-Type: text/plain; application/json"},
		{credentials, "Content-Type:"},
		{asJSON}, {asJSON, "Authorization: Bearer other"}, {asJSON, "Authorization: Basic c2VjcmV0Og=="},
	} {
		if got := c.post(`{"a":1}`, head...); got.Code != 403 && got.Code != 415 && got.Code != 401 || a.asks() {
			t.Errorf("%q is answered with %+v", head, got)
		}
	}
	for _, host := range []string{"attacker.example", "attacker.example:8081"} {
		for _, method := range []string{"GET", "POST"} {
			if got := c.getFrom(method, host, "/playground/ask"); got.Code != 421 || a.asks() {
				t.Errorf("%s of '%s' is answered with %+v", method, host, got)
			}
		}
	}
	if got := c.getFrom("OPTIONS", "127.0.0.1:8081", "/playground/ask"); got.Code != 401 {
		t.Errorf("a preflight is answered with %+v", got)
	}
	if got := c.post(`{"a":1}`, credentials, asJSON); got.Code != 200 || !a.asks() {
		t.Errorf("with the token it is answered with %+v", got)
	}
}

// TestPlaygroundAway: without a token the playground is for a listener on loopback alone.
func TestPlaygroundAway(t *testing.T) {
	a := &asked{make(chan string, 64)}
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	c := serveOn(t, admin.New(admin.Options{Playground: a.options()}), l)
	c.address = fmt.Sprintf("127.0.0.1:%d", l.Addr().(*net.TCPAddr).Port)
	for what, got := range map[string]answer{"the page": c.get("GET", "/playground"),
		"the examples": c.get("GET", "/playground/examples"), "a question": c.post(`{"a":1}`)} {
		if got.Code != 403 || !strings.Contains(got.Body, "admin.tokenFile") || a.asks() {
			t.Errorf("%s is answered with %+v", what, got)
		}
	}
	if got := c.announce(20<<10, "Content-Type: application/json"); got.Code != 413 {
		t.Errorf("a long question is answered with %+v", got)
	}
}

// TestPlaygroundBounds: questions are bounded, and longer than other bodies for those alone who may ask.
func TestPlaygroundBounds(t *testing.T) {
	a := &asked{make(chan string, 64)}
	c := serve(t, admin.New(admin.Options{Playground: a.options(), Token: func() string { return "secret" }}))
	const credentials, asJSON = "Authorization: Bearer secret", "Content-Type: application/json"
	if got := c.post(strings.Repeat(" ", 128<<10), credentials, asJSON); got.Code != 200 || !a.asks() {
		t.Errorf("the longest question is answered with %+v", got)
	}
	if got := c.announce(128<<10+1, credentials, asJSON); got.Code != 413 || a.asks() {
		t.Errorf("a longer question is answered with %+v", got)
	}
	if got := c.announce(16<<10+1, asJSON); got.Code != 413 || a.asks() {
		t.Errorf("a question without the token is answered with %+v", got)
	}
	for _, target := range []string{"/playground/ask?", "/playground//ask", "/livez", "/playground"} {
		head := "POST " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + credentials +
			"\r\nContent-Length: 16385\r\n\r\n"
		if got, _ := c.send("POST", head); got.Code != 413 {
			t.Errorf("a long body of %s is answered with %+v", target, got)
		}
	}
	chunked := "POST /playground/ask HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + credentials + "\r\n" +
		asJSON + "\r\nTransfer-Encoding: chunked\r\n\r\n" +
		strings.Repeat("1000\r\n"+strings.Repeat(" ", 4096)+"\r\n", 33) + "0\r\n\r\n"
	if got, _ := c.send("POST", chunked); got.Code != 413 || a.asks() {
		t.Errorf("a longer question in chunks is answered with %+v", got)
	}
}

// TestPlaygroundLeft: a question ends if its client leaves.
func TestPlaygroundLeft(t *testing.T) {
	begun, ended := make(chan bool), make(chan error, 1)
	c := serve(t, admin.New(admin.Options{Playground: &admin.Playground{
		Ask: func(ctx context.Context, _ []byte) (*explanation.Explanation, error) {
			close(begun)
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			ended <- ctx.Err()
			return nil, status.TooManyRequests("late", 1)
		},
		Examples: func() (any, error) { return nil, nil },
	}}))
	conn, err := net.Dial("tcp", c.address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("POST /playground/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")); err != nil {
		t.Fatal(err)
	}
	<-begun
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("the question went on for a minute")
	}
}
