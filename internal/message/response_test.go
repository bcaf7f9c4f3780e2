package message

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// pending is a Stream that is not read in these tests.
type pending struct {
	Stream
	length int64
	closed bool
}

func (p *pending) Length() int64 { return p.length }

func (p *pending) Close() error {
	p.closed = true
	return errors.New("the connection is dead")
}

// received is an answer of a backend.
func received(head, body string) *Response {
	r := new(Response)
	r.Receive(200, []byte(head))
	copy(r.Extend(len(body)), body)
	return r
}

const plainHead = "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 2\r\nX-A: 1\r\nDigest: d\r\nx-a: 2\r\n\r\n"

// What is sent of an answer in memory after each kind of change.
func TestResponseMessage(t *testing.T) {
	for _, c := range []struct {
		name     string
		change   func(r *Response)
		headOnly bool
		line     string
		want     string
	}{
		{name: "untouched", want: plainHead + "ok"},
		{name: "read", change: func(r *Response) { r.Header("x-a") }, want: plainHead + "ok"},
		{
			name: "the connection ends", line: "Connection: close\r\n",
			want: strings.TrimSuffix(plainHead, "\r\n") + "Connection: close\r\n\r\nok",
		},
		{
			name:   "lines are added",
			change: func(r *Response) { r.Add("Warning", "a"); r.AddLines("B: 1\r\nC: 2\r\n") },
			want:   strings.TrimSuffix(plainHead, "\r\n") + "Warning: a\r\nB: 1\r\nC: 2\r\n\r\nok",
		},
		{
			name: "lines are removed", change: func(r *Response) { r.Remove("X-A", "DIGEST", "none") },
			want: "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 2\r\n\r\nok",
		},
		{
			name:   "a line is replaced, and added to",
			change: func(r *Response) { r.Add("B", "1"); r.Set("X-A", "3"); r.Remove("b"); r.Add("B", "2") },
			want:   "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 2\r\nDigest: d\r\nX-A: 3\r\nB: 2\r\n\r\nok",
		},
		{
			name: "another body", change: func(r *Response) { r.Add("B", "1"); r.SetBody([]byte("longer")) },
			want: "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nX-A: 1\r\nDigest: d\r\nx-a: 2\r\nB: 1\r\nContent-Length: 6\r\n\r\nlonger",
		},
		{
			name: "no body any more", change: func(r *Response) { r.SetBody(nil) },
			want: "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nX-A: 1\r\nDigest: d\r\nx-a: 2\r\nContent-Length: 0\r\n\r\n",
		},
		{
			name: "the answer to a HEAD", headOnly: true, change: func(r *Response) { r.SetBody([]byte("longer")) },
			want: "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nX-A: 1\r\nDigest: d\r\nx-a: 2\r\nContent-Length: 6\r\n\r\n",
		},
		{
			name:   "a body too large to be copied",
			change: func(r *Response) { r.SetBody(bytes.Repeat([]byte("a"), joined+1)) },
			want:   "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nX-A: 1\r\nDigest: d\r\nx-a: 2\r\nContent-Length: 32769\r\n\r\n" + strings.Repeat("a", joined+1),
		},
	} {
		r := received(plainHead, "ok")
		if c.change != nil {
			c.change(r)
		}
		first, rest := r.Message(c.headOnly, c.line)
		if got := string(first) + string(rest); got != c.want {
			t.Errorf("%s: got\n%.300q\nwant\n%.300q", c.name, got, c.want)
		}
		if c.name == "untouched" && (len(rest) > 0 || r.isIndexed) {
			t.Error("an answer that nobody touched is parsed, or sent in two parts")
		}
	}
}

// Header lines are found whatever their case, after changes too.
func TestResponseHeaders(t *testing.T) {
	r := received(plainHead, "ok")
	check := func(name, want string) {
		t.Helper()
		if got := strings.Join(r.Headers(name), " "); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		if first, _, _ := strings.Cut(want, " "); string(r.Header(name)) != first {
			t.Errorf("%s: the first is %q", name, r.Header(name))
		}
	}
	check("X-a", "1 2")
	check("ETag", `"1"`)
	check("None", "")
	r.Add("X-A", "3")
	check("x-a", "1 2 3")
	r.Set("X-A", "4")
	check("x-a", "4")
	if got := string(r.Head()); !strings.HasSuffix(got, "x-a: 2\r\n\r\n") && strings.Contains(got, "X-A: 1") {
		t.Errorf("the head is %q", got)
	}
	check("x-a", "4")
	if string(r.Body()) != "ok" {
		t.Errorf("the body is %q", r.Body())
	}
}

// An answer of the gateway leaves the bytes of the backend's, which a document may still point into.
func TestResponseStart(t *testing.T) {
	r := received(plainHead, "ok")
	body := r.Body()
	for range 2 {
		r.Start(404)
		r.Add("Content-Type", "text/plain")
		r.SetBody([]byte("none"))
	}
	first, _ := r.Message(false, "")
	head, rest, _ := strings.Cut(string(first), "\r\nDate: ")
	_, rest, _ = strings.Cut(rest, "\r\n")
	if head != "HTTP/1.1 404 Not Found" || rest != "Content-Type: text/plain\r\nContent-Length: 4\r\n\r\nnone" ||
		r.Status() != 404 {
		t.Errorf("got %q", first)
	}
	if string(body) != "ok" {
		t.Errorf("the backend's body is %q", body)
	}
	r.Start(204)
	r.Add("Allow", "GET")
	if first, rest := r.Message(false, ""); strings.Contains(string(first), "Content-Length") || len(rest) > 0 {
		t.Errorf("got %q, %q", first, rest)
	}
}

// The heads of streams, by what is known of their length and how they are sent.
func TestResponseStreamHead(t *testing.T) {
	const known = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nA: b\r\n\r\n"
	const unknown = "HTTP/1.1 200 OK\r\nA: b\r\n\r\n"
	for _, c := range []struct {
		head                string
		length              int64
		isEdited, isChunked bool
		want                string
	}{
		{known, 9, false, false, known},
		{known, 9, true, true, "HTTP/1.1 200 OK\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{known, 9, true, false, unknown},
		{unknown, -1, false, true, "HTTP/1.1 200 OK\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{unknown, -1, false, false, unknown},
	} {
		r := received(c.head, "")
		r.SetStream(&pending{length: c.length})
		if got := string(r.StreamHead(c.isEdited, c.isChunked, "")); got != c.want {
			t.Errorf("%d, %v, %v: got %q, want %q", c.length, c.isEdited, c.isChunked, got, c.want)
		}
	}
}

// A stream is closed when its answer is not passed on, and goes along when it is detached.
func TestResponseStreams(t *testing.T) {
	for name, forget := range map[string]func(r *Response){
		"Start":   func(r *Response) { r.Start(500) },
		"Receive": func(r *Response) { r.Receive(200, []byte(plainHead)) },
		"Discard": (*Response).Discard,
		"Reset":   func(r *Response) { r.Reset(0) },
	} {
		r, p := received(plainHead, ""), &pending{length: -1}
		r.SetStream(p)
		if !r.IsStream() || r.Body() != nil {
			t.Errorf("%s: the body %q is no stream", name, r.Body())
		}
		if forget(r); !p.closed || r.IsStream() {
			t.Errorf("%s leaves the stream open", name)
		}
	}
	r, p := received(plainHead, ""), &pending{length: -1}
	r.SetStream(p)
	d := r.Detach()
	r.Reset(1 << 20)
	r.Receive(201, []byte("HTTP/1.1 201 Created\r\n\r\n"))
	if p.closed || d.Stream() != Stream(p) || string(d.Head()) != plainHead || d.Status() != 200 {
		t.Errorf("detached: %q, closed %v", d.Head(), p.closed)
	}
	if _, is := d.Stream().(io.Reader); !is {
		t.Error("the stream cannot be read")
	}
}

// A copy is independent of the answer that it is of.
func TestResponseCopyFrom(t *testing.T) {
	original := received(plainHead, "ok")
	var r Response
	r.CopyFrom(original)
	original.Receive(200, []byte("HTTP/1.1 299 Other\r\n\r\n"))
	copy(original.Extend(2), "no")
	first, _ := r.Message(false, "")
	if want := "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nX-A: 1\r\nDigest: d\r\nx-a: 2\r\nContent-Length: 2\r\n\r\nok"; string(first) != want {
		t.Errorf("got %q, want %q", first, want)
	}
}

// Once its memory has grown, an answer takes no more: unchanged, with a line added, or with another
// body.
func TestResponseAllocatesNothing(t *testing.T) {
	var r Response
	head, body, edited := []byte(plainHead), []byte("ok"), make([]byte, 0, 100)
	if n := testing.AllocsPerRun(100, func() {
		r.Receive(200, head)
		copy(r.Extend(len(body)), body)
		r.AddLines("Warning: a\r\n")
		_, _ = r.Message(false, "")
		r.Remove("Digest")
		edited = r.SetBody(append(edited[:0], "other"...))
		_, _ = r.Message(false, "Connection: close\r\n")
		r.Reset(1 << 10)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
