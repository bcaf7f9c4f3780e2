package h1

import (
	"bytes"
	"io"
	"net/http/httputil"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/message"
)

// decode reads a chunked body that arrives in pieces of so many bytes. It
// returns the data and the number of bytes used.
func decode(b []byte, piece int) (data []byte, used int, done bool, err *message.Flaw) {
	var c Chunked
	for used < len(b) && !c.Done() {
		end := min(used+piece, len(b))
		if left := c.Left(); left > 0 {
			n := int(min(left, int64(end-used)))
			data = append(data, b[used:used+n]...)
			c.Take(int64(n))
			used += n
			continue
		}
		n, err := c.Next(b[used:end])
		used += n
		if err != nil {
			return data, used, false, err
		}
	}
	return data, used, c.Done(), nil
}

func TestChunked(t *testing.T) {
	for body, want := range map[string]string{
		"0\r\n\r\n":             "",
		"000\r\n\r\nrest":       "",
		"3\r\nabc\r\n0\r\n\r\n": "abc",
		"1\r\na\r\n00000000002\r\nbc\r\n0\r\n\r\n": "abc",
		"A\r\n0123456789\r\n0\r\n\r\n":             "0123456789",
		"3;a=b;c=\"d e\"\r\nabc\r\n0;x\r\n\r\n":    "abc",
		"3\r\n\r\n\r\r\n0\r\nA: b\r\nC:\r\n\r\n":   "\r\n\r",
	} {
		for piece := 1; piece < 8; piece++ {
			data, used, done, err := decode([]byte(body), piece)
			if err != nil || !done || string(data) != want || used != len(strings.TrimSuffix(body, "rest")) {
				t.Errorf("%q in pieces of %d: %q, used %d, %v, %v", body, piece, data, used, done, err)
			}
		}
	}
}

func TestChunkedExcess(t *testing.T) {
	// A byte in each chunk is a poor way to send a body, but no attack.
	fine := strings.Repeat("1\r\na\r\n", 100_000) + "0\r\n\r\n"
	if data, _, done, err := decode([]byte(fine), 4096); err != nil || !done || len(data) != 100_000 {
		t.Errorf("one byte in each chunk: %d, %v, %v", len(data), done, err)
	}
	bad := strings.Repeat("1;"+strings.Repeat("a", 100)+"\r\na\r\n", 1000) + "0\r\n\r\n"
	if _, used, _, err := decode([]byte(bad), 4096); err == nil || used > 64<<10 {
		t.Errorf("extensions without end are read up to %d: %v", used, err)
	}
}

// A flaw in the framing is the fault of its sender: of a client 400, or 431 if the trailers are too
// long, and of a backend always 502.
func TestFlaws(t *testing.T) {
	for _, c := range []struct {
		body, message string
		code          int
	}{
		{"2 \r\n", "the body has a chunk size that is not a hexadecimal number", 400},
		{"11111111111111111\r\n", "the body has a chunk size that is too large", 400},
		{"1;\x01\r\n", "the body has a control character in a chunk extension", 400},
		{"1\ra", "the body has a chunk size whose line does not end in CR LF", 400},
		{"1\r\naa", "the body has a chunk that is longer than its size", 400},
		{"0\r\n:a\r\n\r\n", "the body has a trailer without a valid name", 400},
		{"0\r\nA: b\n", "the body has a control character in a trailer", 400},
		{"0\r\n\ra", "the body has a last line that does not end in CR LF", 400},
		{"0\r\nA: " + strings.Repeat("b", maxTrailerBytes) + "\r\n\r\n", "the body has trailers that are too long",
			431},
	} {
		_, _, _, flaw := decode([]byte(c.body), 4096)
		if flaw == nil {
			t.Errorf("%.50q has no flaw", c.body)
			continue
		}
		if got, want := *flaw.OfRequest(), (message.Error{Code: c.code, Message: c.message}); got != want {
			t.Errorf("%.50q of a client: %+v, want %+v", c.body, got, want)
		}
		if got, want := *flaw.OfAnswer(), (message.Error{Code: 502, Message: c.message}); got != want {
			t.Errorf("%.50q of a backend: %+v, want %+v", c.body, got, want)
		}
	}
	if _, _, flaw := message.HeadEnd([]byte("HTTP/1.1 200 OK\n\n"), 0); flaw == nil || flaw.OfAnswer().Code != 502 ||
		flaw.OfRequest().Code != 400 {
		t.Errorf("a bare LF: %v", flaw)
	}
}

// Whatever is decoded net/http decodes to the same data, in whatever pieces it
// arrives.
func FuzzChunked(f *testing.F) {
	for _, s := range []string{"0\r\n\r\n", "3;a=b\r\nabc\r\n0\r\nA: b\r\n\r\n", "00a\r\n0123456789\r\n0\r\n\r\n",
		"1\n a", "ffffffffffffffff\r\n"} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, b []byte, piece uint8) {
		data, used, done, err := decode(b, int(piece)+1)
		data2, used2, done2, err2 := decode(b, 1<<20)
		if !bytes.Equal(data, data2) || used != used2 || done != done2 || (err == nil) != (err2 == nil) {
			t.Fatalf("%q in pieces of %d: %q %d %v %v; whole: %q %d %v %v", b, piece, data, used, done, err, data2,
				used2, done2, err2)
		}
		if !done {
			return
		}
		want, rerr := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(b)))
		if rerr != nil {
			t.Fatalf("net/http refuses %q: %v", b, rerr)
		}
		if !bytes.Equal(data, want) {
			t.Fatalf("%q: net/http decodes %q, this package %q", b, want, data)
		}
	})
}
