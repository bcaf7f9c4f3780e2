package apis

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A conversation has all that a client sends on one connection, as it stands here, and the methods of its requests.
type conversation struct {
	name    string
	methods string // by which the ends of answers are known
	sent    string
}

// talk sends all of it at once and returns the answers; a server that closes the connection ends them.
func (c *conversation) talk(address string) ([]*answer, error) {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	if err := connection.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	go func() {
		// a server may answer before it has read all
		_, _ = io.WriteString(connection, strings.ReplaceAll(c.sent, "\n", "\r\n"))
	}()
	var all []*answer
	from := bufio.NewReader(connection)
	for method := range strings.FieldsSeq(c.methods) {
		for isLast := false; !isLast; {
			response, err := http.ReadResponse(from, &http.Request{Method: method})
			if err != nil {
				return all, fmt.Errorf("answer %d: %w", len(all)+1, err)
			}
			body, err := io.ReadAll(response.Body)
			if err != nil {
				return all, fmt.Errorf("the body of answer %d: %w", len(all)+1, err)
			}
			// Who has the body already need not ask for it by a 100.
			if isLast = response.StatusCode >= http.StatusOK; isLast {
				all = append(all, &answer{response.StatusCode, response.Header, string(body)})
			}
		}
	}
	return all, nil
}

const host = "Host: api.example\n"

// conversations are with the server of express.mjs.
func conversations() []conversation {
	read := "GET /api/v1/users/1 HTTP/1.1\n" + host + "\n"
	return []conversation{
		{"pipelined", "GET HEAD GET GET", read + "HEAD /api/v1/users/1 HTTP/1.1\n" + host + "\n" +
			"GET /api/v1/users/99 HTTP/1.1\n" + host + "\n" + read},
		{"pipelined-after-a-body", "POST GET", "POST /api/v1/login HTTP/1.1\n" + host +
			"Content-Type: application/json\nContent-Length: 14\n\n{\"user\":\"ann\"}" + read},
		{"chunks-with-extensions-and-trailers", "POST GET", "POST /api/v1/login HTTP/1.1\n" + host +
			"Content-Type: application/json\nTransfer-Encoding: chunked\nTrailer: X-Sum\n\n" +
			"5;a=b\n{\"use\n9;c=\"d\"\nr\":\"ann\"}\n0\nX-Sum: 1\n\n" + read},
		{"continue", "PUT GET", "PUT /blobs/c HTTP/1.1\n" + host +
			"Content-Type: text/plain\nExpect: 100-continue\nContent-Length: 5\n\nhello" + read},
		{"an-old-client", "GET", "GET /api/v1/users/1 HTTP/1.0\n" + host + "\n"},
		{"an-old-client-that-stays", "GET GET",
			strings.Repeat("GET /api/v1/users/1 HTTP/1.0\n"+host+"Connection: keep-alive\n\n", 2)},
		{"absolute-form", "GET", "GET http://api.example/api/v1/users/1 HTTP/1.1\n" + host + "Connection: close\n\n"},
		{"blanks-around-values", "GET", "GET /api/v1/users/1 HTTP/1.1\nHost:api.example\nAccept:\t application/json \t\nConnection: close\n\n"},
		{"a-list-in-lines", "GET", "GET /api/v1/users/1 HTTP/1.1\n" + host +
			"Accept: text/html;q=0.1\nAccept: application/json\n\n"},
		{"a-body-with-a-get", "GET GET", "GET /api/v1/users/1 HTTP/1.1\n" + host +
			"Content-Type: text/plain\nContent-Length: 5\n\nhello" + read},
		{"an-empty-chunked-body", "POST GET", "POST /api/v1/users/1/activate HTTP/1.1\n" + host +
			"Transfer-Encoding: chunked\n\n0\n\n" + read},
		{"not-modified", "GET GET", "GET /api/v1/users/1 HTTP/1.1\n" + host + "If-None-Match: *\n\n" + read},
		{"no-content", "DELETE GET", "DELETE /api/v1/users/1 HTTP/1.1\n" + host + "\n" + read},
	}
}

// TestNodeOnTheWire: what clients may write in HTTP/1.1 and few do is answered by Node.js through the gateway as
// without it, and every answer belongs to its request. Heads that the gateway refuses whoever is behind it are tried in
// internal/message.
func TestNodeOnTheWire(t *testing.T) {
	direct, gateway := startTwice(t, func() *program { return startExpress(t) })
	for _, c := range conversations() {
		prove(t, c.name, func(t *proof) {
			a, wrong := c.talk(direct)
			b, alsoWrong := c.talk(gateway)
			if wrong != nil || alsoWrong != nil {
				t.Fatalf("direct: %v; through the gateway: %v", wrong, alsoWrong)
			}
			if len(a) != len(b) {
				t.Fatalf("%d answers directly, %d through the gateway", len(a), len(b))
			}
			for i := range a {
				if rows := differences(a[i], b[i], varying()); len(rows) > 0 {
					t.Errorf("answer %d:\n%s", i+1, table(rows))
				}
			}
		})
	}
}
