package h2

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/message"
)

// TestAppendRequest reads by the library what is made of the heads of requests.
func TestAppendRequest(t *testing.T) {
	for _, c := range []struct {
		head, scheme string
		want         []string
	}{
		{
			"GET /a?b=c HTTP/1.1\r\nHost: b.example:80\r\nAccept: */*\r\nX-A:  b  \r\nCookie: a=1; b=2\r\n\r\n", "http",
			[]string{":method: GET", ":scheme: http", ":path: /a?b=c", ":authority: b.example:80", "accept: */*",
				"x-a: b", "cookie: a=1; b=2"},
		},
		{
			"POST / HTTP/1.1\r\nhost: b\r\nContent-Length: 5\r\nX-B: 1\r\nx-b: 2\r\nExpect: \r\n\r\n", "https",
			[]string{":method: POST", ":scheme: https", ":path: /", ":authority: b", "content-length: 5", "x-b: 1",
				"x-b: 2", "expect: "},
		},
		{
			"OPTIONS * HTTP/1.1\r\nHost: \r\nConnection: x, upgrade\r\nUpgrade: h2c\r\nKeep-Alive: 1\r\nProxy-Connection: a\r\n" +
				"Transfer-Encoding: chunked\r\nHTTP2-Settings: a\r\nTE: gzip\r\nVia: 1.1 a\r\n\r\n", "http",
			[]string{":method: OPTIONS", ":scheme: http", ":path: *", "via: 1.1 a"},
		},
		{
			"PATCH /x HTTP/1.1\r\nX-A: 1\r\nTE: trailers\r\nHost: b\r\n\r\n", "http",
			[]string{":method: PATCH", ":scheme: http", ":path: /x", ":authority: b", "x-a: 1", "te: trailers"},
		},
	} {
		var got []string
		for _, f := range decoded(t, AppendRequest([]byte("kept"), []byte(c.head), c.scheme)[len("kept"):]) {
			got = append(got, f.Name+": "+f.Value)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q becomes\n%q, want\n%q", c.head, got, c.want)
		}
	}
}

// answerOf reads a block in two parts.
func answerOf(r *ResponseReader, block []byte, isTrailer bool) (text string, bad, err error) {
	r.Begin(nil, isTrailer)
	for _, part := range [][]byte{block[:len(block)/2], block[len(block)/2:]} {
		if err := r.Write(part); err != nil {
			return "", nil, err
		}
	}
	b, bad, err := r.End()
	return string(b), bad, err
}

// TestAnswers makes heads of blocks. What a block of HTTP/2 must not have is refused; what no head may have is left to
// the reader of heads.
func TestAnswers(t *testing.T) {
	const most = 200
	for _, c := range []struct {
		fields    []string
		isTrailer bool
		text, bad string
	}{
		{[]string{":status: 200", "a: b", "a: c"}, false, "HTTP/1.1 200 OK\r\na: b\r\na: c\r\n\r\n", ""},
		{[]string{":status: 599"}, false, "HTTP/1.1 599 \r\n\r\n", ""},
		{[]string{":status: 200", "content-length: x", "set-cookie: a", "set-cookie: b"}, false,
			"HTTP/1.1 200 OK\r\ncontent-length: x\r\nset-cookie: a\r\nset-cookie: b\r\n\r\n", ""},
		{[]string{"grpc-status: 0", "a: "}, true, "grpc-status: 0\r\na: \r\n\r\n", ""},
		{nil, true, "\r\n", ""},
		{nil, false, "", "the answer has no pseudo header field ':status'"},
		{[]string{"a: b", ":status: 200"}, false, "",
			"the answer has no pseudo header field ':status' before its headers"},
		{[]string{":status: 200", ":status: 200"}, false, "",
			"the answer has the pseudo header field ':status' more than once"},
		{[]string{":status: 200", "a: b", ":status: 200"}, false, "",
			"the answer has the pseudo header field ':status' more than once"},
		{[]string{":status: 200", ":scheme: http"}, false, "",
			"the answer has a pseudo header field that answers do not have"},
		{[]string{":status: 0200"}, false, "",
			"the answer has a pseudo header field ':status' that is not three digits"},
		{[]string{":status: +20"}, false, "",
			"the answer has a pseudo header field ':status' that is not three digits"},
		{[]string{":status: 200", "A: b"}, false, "", "the answer has a header name with a capital letter"},
		{[]string{":status: 200", "a b: c"}, false, "",
			"the answer has a header name with a character that may not be in one"},
		{[]string{":status: 200", "a: b\nc"}, false, "", "the answer has a header value with a control character"},
		{[]string{":status: 200", "a: b "}, false, "",
			"the answer has a header value with a space at its start or end"},
		{[]string{":status: 200", "keep-alive: 1"}, false, "",
			"the answer has the header 'keep-alive', which HTTP/2 does not have"},
		{[]string{":status: 200"}, true, "", "the answer has a pseudo header field among its trailers"},
		{[]string{":status: 200", "a: " + strings.Repeat("x", most)}, false, "", "the head of the answer is too large"},
	} {
		r := NewResponseReader(most)
		text, bad, err := answerOf(r, block(c.fields...), c.isTrailer)
		switch {
		case err != nil:
			t.Errorf("%q: %v", c.fields, err)
		case c.bad == "" && (bad != nil || text != c.text):
			t.Errorf("%q: %q, %v; want %q", c.fields, text, bad, c.text)
		case c.bad != "" && (bad == nil || bad.Error() != c.bad):
			t.Errorf("%q: %v, want %q", c.fields, bad, c.bad)
		}
		// The table is right after a block that was refused.
		if text, bad, err := answerOf(r, []byte{0x88}, false); err != nil || bad != nil ||
			text != "HTTP/1.1 200 OK\r\n\r\n" {
			t.Errorf("%q: the next block is %q, %v, %v", c.fields, text, bad, err)
		}
	}
}

// FuzzAnswerBlock reads any block. What comes out is a head as the reader of heads takes heads, or it is refused.
func FuzzAnswerBlock(f *testing.F) {
	f.Add(block(":status: 200", "content-length: 2", "a: b"), false)
	f.Add(block("grpc-status: 0"), true)
	f.Add([]byte{0x88, 0x00, 0x01, 'A', 0x01, '\r'}, false)
	f.Fuzz(func(t *testing.T, b []byte, isTrailer bool) {
		text, bad, err := answerOf(NewResponseReader(1<<10), b, isTrailer)
		if err != nil || bad != nil {
			return
		}
		if isTrailer {
			if _, err := message.ParseTrailers([]byte(text)); err != nil {
				t.Errorf("the trailers %q: %v", text, err)
			}
			return
		}
		if n, _, flaw := message.HeadEnd([]byte(text), 0); n != len(text) || flaw != nil {
			t.Errorf("the head %q ends at %d, %v", text, n, flaw)
		}
		var a message.ResponseHead
		if a.Parse([]byte(text)) == nil &&
			(a.Chunked || a.Close || a.Upgrade != nil || !bytes.HasPrefix([]byte(text), []byte("HTTP/1.1 "))) {
			t.Errorf("the head %q is about a connection", text)
		}
	})
}
