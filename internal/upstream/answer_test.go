package upstream

import (
	"testing"

	"github.com/admission-gateway/gateway/internal/message"
)

// The lines of an answer keep their order and their spelling; lines that end at this hop go.
func TestAnswerAsItCame(t *testing.T) {
	const added = "Warning: 299 - \"late\"\r\n"
	for _, c := range []struct {
		name, method, answer string
		head, body           string // with a line added
	}{
		{
			"lines that repeat", "GET", "HTTP/1.1 200 Fine\r\nset-cookie: a\r\nX-B: 1\r\nSet-Cookie: b\r\nX-B: 2\r\nContent-Length: 2\r\n\r\nok",
			"HTTP/1.1 200 Fine\r\nset-cookie: a\r\nX-B: 1\r\nSet-Cookie: b\r\nX-B: 2\r\nContent-Length: 2\r\n" + added + "\r\n", "ok",
		},
		{
			"names in any case", "GET", "HTTP/1.1 503 Busy\r\nEtag: \"1\"\r\nretry-after: 1\r\nContent-Length: 0\r\n\r\n",
			"HTTP/1.1 503 Busy\r\nEtag: \"1\"\r\nretry-after: 1\r\nContent-Length: 0\r\n" + added + "\r\n", "",
		},
		{
			"lines of this hop", "POST", "HTTP/1.1 201 Created\r\nConnection: keep-alive, x-hop\r\nX-Hop: 1\r\nA: b\r\nKeep-Alive: 5\r\nContent-Length: 0\r\n\r\n",
			"HTTP/1.1 201 Created\r\nA: b\r\nContent-Length: 0\r\n" + added + "\r\n", "",
		},
		{
			"an older backend", "GET", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + added + "\r\n", "ok",
		},
		{
			"after an interim answer", "GET", "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + okReply,
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + added + "\r\n", "ok",
		},
		{"no body to a HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n",
			"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n" + added + "\r\n", ""},
		{"not modified", "GET", "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n",
			"HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n" + added + "\r\n", ""},
		{"no content", "DELETE", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 204 No Content\r\n" +
			added + "\r\n", ""},
		{"an error", "GET", "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno",
			"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n" + added + "\r\n", "no"},
		{
			"a body of unknown length", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nA: b\r\n\r\n2\r\nok\r\n0\r\n\r\n",
			"HTTP/1.1 200 OK\r\nA: b\r\n" + added + "\r\n", "ok",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := newTestClient(t, newScripted(t, c.answer, okReply), Config{})
			var resp message.Response
			if err := client.Do(request(c.method, "/a", ""), &resp); err != nil {
				t.Fatal(err)
			}
			resp.AddLines(added)
			if head, body := string(resp.Head()), string(resp.Body()); head != c.head || body != c.body {
				t.Errorf("got\n%q with %q\nwant\n%q with %q", head, body, c.head, c.body)
			}
			// The same memory takes the next answer.
			if c.method == "HEAD" {
				return // which has a body
			}
			if err := client.Do(request(c.method, "/a", ""), &resp); err != nil || string(resp.Head())+
				string(resp.Body()) != okReply {
				t.Errorf("then came %q with %q, %v", resp.Head(), resp.Body(), err)
			}
		})
	}
}
