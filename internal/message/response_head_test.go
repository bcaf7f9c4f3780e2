package message

import (
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"testing"
)

func TestAnswer(t *testing.T) {
	type got struct {
		Status        int
		ContentLength int64
		Chunked, End  bool // End: the connection ends
		Head          string
	}
	for _, c := range []struct {
		name, head string
		want       got
	}{
		{"length", head("HTTP/1.1 200 OK", "A: 1", "content-length: 2"),
			got{200, 2, false, false, head("HTTP/1.1 200 OK", "A: 1", "content-length: 2")}},
		{"no reason", head("HTTP/1.1 404", "A: 1"), got{404, -1, false, false, head("HTTP/1.1 404", "A: 1")}},
		{"empty reason", head("HTTP/1.1 404 ", "A: 1"), got{404, -1, false, false, head("HTTP/1.1 404 ", "A: 1")}},
		{"chunked", head("HTTP/1.1 200 OK", "Transfer-Encoding: Chunked", "A: 1", "Trailer: B", "C: 2"),
			got{200, -1, true, false, head("HTTP/1.1 200 OK", "A: 1", "C: 2")}},
		{"close", head("HTTP/1.1 200 OK", "Connection: close"), got{200, -1, false, true, head("HTTP/1.1 200 OK")}},
		{"named by Connection", head("HTTP/1.1 200 OK", "A: 1", "Connection: a, Keep-Alive, content-length",
			"Content-Length: 1", "Upgrade: h2", "Keep-Alive: timeout=1"),
			got{200, 1, false, false, head("HTTP/1.1 200 OK", "Content-Length: 1")}},
		{"HTTP/1.0", head("HTTP/1.0 200 OK", "A: 1"), got{200, -1, false, true, head("HTTP/1.0 200 OK", "A: 1")}},
		{"HTTP/1.0 kept alive", head("HTTP/1.0 200 OK", "Connection: keep-alive"),
			got{200, -1, false, false, head("HTTP/1.0 200 OK")}},
		{"204 with a length", head("HTTP/1.1 204 No Content", "Content-Length: 0"),
			got{204, 0, false, false, head("HTTP/1.1 204 No Content")}},
		{"any spelling", head("HTTP/1.1 200 OK", "Etag: \"1\"", "retry-after: 2"),
			got{200, -1, false, false, head("HTTP/1.1 200 OK", "Etag: \"1\"", "retry-after: 2")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := []byte(c.head)
			var a ResponseHead
			if err := a.Parse(b); err != nil {
				t.Fatal(err)
			}
			gone := a.Compact(b)
			if g := (got{a.Status, a.ContentLength, a.Chunked, a.Close, string(b[gone:])}); g != c.want {
				t.Errorf("got %+v\nwant %+v", g, c.want)
			}
		})
	}
	for name, s := range map[string]string{
		"two lengths":               head("HTTP/1.1 200 OK", "Content-Length: 2", "Content-Length: 2"),
		"length and chunked":        head("HTTP/1.1 200 OK", "Content-Length: 2", "Transfer-Encoding: chunked"),
		"chunked twice":             head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
		"gzip, chunked":             head("HTTP/1.1 200 OK", "Transfer-Encoding: gzip, chunked"),
		"chunked on HTTP/1.0":       head("HTTP/1.0 200 OK", "Transfer-Encoding: chunked"),
		"negative length":           head("HTTP/1.1 200 OK", "Content-Length: -1"),
		"list of lengths":           head("HTTP/1.1 200 OK", "Content-Length: 2, 2"),
		"two Content-Type":          head("HTTP/1.1 200 OK", "Content-Type: a/b", "Content-Type: a/c"),
		"HTTP/2":                    head("HTTP/2.0 200 OK"),
		"HTTP/1.2":                  head("HTTP/1.2 200 OK"),
		"no status line":            head("200 OK"),
		"status of two digits":      head("HTTP/1.1 20 OK"),
		"status of four digits":     head("HTTP/1.1 2000 OK"),
		"status 099":                head("HTTP/1.1 099 OK"),
		"status 600":                head("HTTP/1.1 600 OK"),
		"NUL in the reason":         head("HTTP/1.1 200 O\x00K"),
		"bare CR in a value":        head("HTTP/1.1 200 OK", "A: b\rc"),
		"folded":                    head("HTTP/1.1 200 OK", "A: b", " c"),
		"space before the colon":    head("HTTP/1.1 200 OK", "A : b"),
		"no colon":                  head("HTTP/1.1 200 OK", "A"),
		"Connection with no tokens": head("HTTP/1.1 200 OK", "Connection: a b"),
	} {
		var a ResponseHead
		var bad *Error
		if err := a.Parse([]byte(s)); !errors.As(err, &bad) || bad.Code != 502 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever answer is accepted net/http reads in the same way.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		head("HTTP/1.1 200 OK", "Content-Length: 2"),
		head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Connection: close, a", "A: 1"),
		head("HTTP/1.0 304 Not Modified", "ETag: x"),
		head("HTTP/1.1 204", "Content-Length: 0"),
		head("HTTP/1.1 201 Created", "lOCATION: /a"),
		head("HTTP/1.1 200 OK", "Connection: Content-Location", "Content-Location: /a"),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n, _, bad := HeadEnd(b, 0)
		if bad != nil || n == 0 {
			return
		}
		b = b[:n]
		var a ResponseHead
		if a.Parse(bytes.Clone(b)) != nil {
			return
		}
		r, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(b)), &http.Request{Method: "GET"})
		if err != nil {
			t.Fatalf("net/http refuses %q: %v", b, err)
		}
		if r.StatusCode != a.Status {
			t.Fatalf("%q: net/http reads %d, this package %d", b, r.StatusCode, a.Status)
		}
		want := a.ContentLength
		if a.NoBody(false) {
			want = 0
		}
		if r.ContentLength != want {
			t.Fatalf("%q: net/http reads a length of %d, this package %d", b, r.ContentLength, want)
		}
		// What is left of it is a head again, with the same meaning.
		copied := bytes.Clone(b)
		if err := a.Parse(copied); err != nil {
			t.Fatal(err)
		}
		rest := copied[a.Compact(copied):]
		var again ResponseHead
		if err := again.Parse(bytes.Clone(rest)); err != nil {
			t.Fatalf("%q became %q: %v", b, rest, err)
		}
		for i := range again.headers {
			if again.headers[i].Dropped {
				t.Fatalf("%q became %q, without a line gone", b, rest)
			}
		}
		// No answer that names a URL passes for one that names none.
		copied = bytes.Clone(b)
		if err := a.Parse(copied); err != nil {
			t.Fatal(err)
		}
		var received Response
		received.ReceiveParsed(&a, copied)
		if names := received.Header("Location") != nil || received.Header("Content-Location") != nil; names &&
			!received.HasLocation() {
			t.Fatalf("%q names a URL", b)
		}
		if named := r.Header["Location"] != nil || r.Header["Content-Location"] != nil; named != a.HasLocation {
			t.Fatalf("%q names a URL for net/http: %v, for this package: %v", b, named, a.HasLocation)
		}
	})
}
