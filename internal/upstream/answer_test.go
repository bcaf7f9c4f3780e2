package upstream

import (
	"testing"

	"github.com/valyala/fasthttp"
)

// An answer that nobody has anything to change in keeps its lines, their order and their spelling; what ends at this hop goes.
func TestVerbatim(t *testing.T) {
	const added = "Warning: 299 - \"late\"\r\n"
	for _, c := range []struct {
		name, method, answer string
		want                 string // with a line added; "" where the response gets the answer
	}{
		{
			"lines that repeat", "GET", "HTTP/1.1 200 Fine\r\nset-cookie: a\r\nX-B: 1\r\nSet-Cookie: b\r\nX-B: 2\r\nContent-Length: 2\r\n\r\nok",
			"HTTP/1.1 200 Fine\r\nset-cookie: a\r\nX-B: 1\r\nSet-Cookie: b\r\nX-B: 2\r\nContent-Length: 2\r\n" + added + "\r\nok",
		},
		{
			"lines of this hop", "POST", "HTTP/1.1 201 Created\r\nConnection: keep-alive, x-hop\r\nX-Hop: 1\r\nA: b\r\nKeep-Alive: 5\r\nContent-Length: 0\r\n\r\n",
			"HTTP/1.1 201 Created\r\nA: b\r\nContent-Length: 0\r\n" + added + "\r\n",
		},
		{
			"an older backend", "GET", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + added + "\r\nok",
		},
		{"after an interim answer", "GET", "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + okReply, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + added + "\r\nok"},
		{"no body to a HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n" + added + "\r\n"},
		{"not modified", "GET", "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n" + added + "\r\n"},
		{"no content", "DELETE", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 204 No Content\r\n" + added + "\r\n"},
		{"an error", "GET", "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", ""},
		{"a body of unknown length", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := newTestClient(t, newScripted(t, c.answer, okReply), Config{})
			var v Answer
			for _, answer := range []string{c.want, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + added + "\r\nok"} {
				var resp fasthttp.Response
				req := request(c.method, "/a", "")
				req.Verbatim = &v
				if c.method == "HEAD" && answer != c.want {
					return // the second answer has a body
				}
				if err := client.Do(req, &resp); err != nil {
					t.Fatal(err)
				}
				if answer == "" {
					if v.Status != 0 || len(resp.Body()) == 0 {
						t.Errorf("kept as it came: %q; the response has %q", v.Bytes, resp.Body())
					}
					continue
				}
				v.AddLine(added)
				if got := string(v.Bytes); got != answer || v.Status == 0 {
					t.Errorf("%d\n%q\nwant\n%q", v.Status, got, answer)
				}
			}
		})
	}
}
