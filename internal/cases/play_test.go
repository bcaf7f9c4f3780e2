package cases

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

// serve answers connections in order with the given bytes and returns the address and the requests received.
func serve(t *testing.T, answers ...string) (address string, requests <-chan string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	received := make(chan string, len(answers))
	go func() {
		for _, answer := range answers {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			received <- readRequest(conn)
			_, _ = io.WriteString(conn, answer)
			_ = conn.Close()
		}
	}()
	return listener.Addr().String(), received
}

// readRequest returns the head and the body of one request as they came.
func readRequest(conn net.Conn) string {
	in := bufio.NewReader(conn)
	var all strings.Builder
	length := 0
	for {
		line, err := in.ReadString('\n')
		all.WriteString(line)
		if v, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			for _, c := range strings.TrimSpace(v) {
				length = length*10 + int(c-'0')
			}
		}
		if line == "\r\n" || err != nil {
			break
		}
	}
	body := make([]byte, length)
	n, _ := io.ReadFull(in, body)
	return all.String() + string(body[:n])
}

func answer(code, contentType, body string, headers ...string) string {
	return "HTTP/1.1 " + code + "\r\nContent-Type: " + contentType + "\r\nConnection: close\r\n" +
		strings.Join(append(headers, ""), "\r\n") + "\r\n" + body
}

func TestPlay(t *testing.T) {
	const json = "application/json"
	address, requests := serve(t,
		answer("201 Created", json, `{"kind":"Namespace"}`),
		answer("201 Created", json, `{"metadata":{"resourceVersion":"17","uid":"u1"}}`),
		answer("422 Unprocessable Entity", json,
			`{"kind":"Status","status":"Failure","reason":"Invalid","message":"m","details":{"causes":[{"reason":"r","message":"c","field":"spec.x"}]}}`,
			`Warning: 299 - "a"`, `Warning: 299 - "b"`),
		answer("404 Not Found", "text/plain; charset=utf-8", "404 page not found\n"),
	)
	c := Case{
		ID:         "a",
		Namespaces: map[string]map[string]string{"x": {"team": "a"}},
		Setup:      []Request{{Method: "POST", Path: "/a", ContentType: json, Body: []byte(`{"a": 1}`)}},
		Request: Request{
			Method: "FOO", Path: "/a//../%77?x=$RV", ContentType: "Application/JSON",
			RawBody: ptr(`{"rv":"$RV","uid":"$UID"}`),
			Headers: map[string]string{"Accept": "image/png"}, User: &User{Name: "alice"},
		},
		Follow: []Request{{Method: "GET", Path: "http://evil.example/b"}},
		Expect: Response{
			Code: 422, Reason: ptr("Invalid"), Message: "m", Causes: []Cause{{Field: "spec.x"}},
			Warnings: []string{`299 - "b"`, `299 - "a"`},
			Follow:   []Response{{Code: 404, RawBody: ptr("404 page not found\n")}},
		},
	}
	player := Player{Address: address, Identify: func(u User) []Header { return []Header{{"X-Remote-User", u.Name}} }}
	result, err := player.Play(&c)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Differences) != 0 {
		t.Error(result.Explain(Aspects()...))
	}
	if len(result.Setup) != 1 || result.Setup[0].Code != 201 {
		t.Errorf("setup: got %+v", result.Setup)
	}
	want := Response{
		Code: 422, ContentType: json, Reason: ptr("Invalid"), Message: "m", Causes: []Cause{{"r", "c", "spec.x"}},
		Warnings: []string{`299 - "a"`, `299 - "b"`},
		Follow:   []Response{{Code: 404, ContentType: "text/plain; charset=utf-8", RawBody: ptr("404 page not found\n")}},
	}
	if !reflect.DeepEqual(result.Got, want) {
		t.Errorf("got  %+v\nwant %+v", result.Got, want)
	}
	head := " HTTP/1.1\r\nHost: " + address + "\r\nConnection: close\r\n"
	for _, want := range []string{
		"POST /api/v1/namespaces" + head + "Content-Type: application/json\r\nContent-Length: 84\r\n\r\n" +
			`{"apiVersion":"v1","kind":"Namespace","metadata":{"labels":{"team":"a"},"name":"x"}}`,
		"POST /a" + head + "Content-Type: application/json\r\nContent-Length: 8\r\n\r\n" + `{"a": 1}`,
		"FOO /a//../%77?x=17" + head + "Content-Type: Application/JSON\r\nAccept: image/png\r\nX-Remote-User: alice\r\nContent-Length: 22\r\n\r\n" + `{"rv":"17","uid":"u1"}`,
		"GET http://evil.example/b" + head + "\r\n",
	} {
		if got := <-requests; got != want {
			t.Errorf("the server received\n%q, want\n%q", got, want)
		}
	}
}

func TestPlayVersionFromETag(t *testing.T) {
	for etag, want := range map[string]string{`"7"`: "7", `W/"7-a"`: "7-a", ``: ""} {
		s := session{}
		s.remember(http.Header{"Etag": {etag}}, []byte(`[]`))
		if s.resourceVersion != want {
			t.Errorf("ETag %s: got %q, want %q", etag, s.resourceVersion, want)
		}
	}
}

func TestPlayWithoutAnswer(t *testing.T) {
	address, _ := serve(t, "", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\ncut")
	player := Player{Address: address}
	c := Case{Request: Request{Method: "GET", Path: "/"}, Expect: Response{Code: 0}}
	result, err := player.Play(&c)
	if err != nil || len(result.Differences) != 0 {
		t.Errorf("a closed connection: got %+v, %v", result, err)
	}
	if result, err := player.Play(&c); err == nil {
		t.Errorf("a body cut off: got %+v", result)
	}
}

func TestPlayServerDoesNotAnswer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	player := Player{Address: listener.Addr().String(), Timeout: 50 * time.Millisecond}
	if result, err := player.Play(&Case{Request: Request{Method: "GET", Path: "/"}}); err == nil {
		t.Errorf("got %+v", result)
	}
}
