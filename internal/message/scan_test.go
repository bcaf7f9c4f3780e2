package message

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

// slowHeader is scanHeader byte by byte, of a line without its CR LF. It is the judge of the fast one.
func slowHeader(line []byte, h *Header) (underscore bool, problem string) {
	if len(line) == 0 {
		return false, "has a header line that does not end"
	}
	if line[0] == ' ' || line[0] == '\t' {
		return false, "has a header line that is folded over several lines"
	}
	colon := bytes.IndexByte(line, ':')
	if colon < 0 {
		return false, "has a header line without a colon"
	}
	if colon == 0 {
		return false, "has a header line without a name"
	}
	for _, c := range line[:colon] {
		if !strings.ContainsRune("!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
			rune(c)) {
			return false, "has a header name with a character that may not be in one"
		}
		underscore = underscore || c == '_'
	}
	value := trim(line[colon+1:])
	if !slowValue(value) {
		return false, "has a header value with a control character"
	}
	h.Name, h.Value, h.Field, h.Dropped = line[:colon], value, FieldOf(line[:colon]), false
	return underscore, ""
}

func slowValue(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// slowIs is is byte by byte.
func slowIs(name []byte, lower string) bool {
	if len(name) != len(lower) {
		return false
	}
	for i := range name {
		if name[i]|0x20 != lower[i] {
			return false
		}
	}
	return true
}

// slowTarget says whether a target has nothing that is refused, byte by byte.
func slowTarget(t []byte) bool {
	path := true
	for i, c := range t {
		switch {
		case c <= ' ' || c == 0x7f:
			return false
		case c == '?':
			path = false
		case c == '%' && path && (i+2 >= len(t) || !hex(t[i+1]) || !hex(t[i+2])):
			return false
		}
	}
	return true
}

// FuzzScan compares what looks at eight bytes at a time with what looks at one.
func FuzzScan(f *testing.F) {
	for _, s := range []string{
		"Host: a", "Content-Type:application/json", "a_b:\t\xff\x80 \t", " folded", "none", ": 1", "a b: 1",
		"A: 1234567\x7f", "A: 12345678\x1f9",
		"X-Remote-User: \t\t\t\t\t\t\t\t\tx", "A: \x00", "A: b\r", "A\r: b", "/a%2Fb/%c3%bc/01234567?%", "/0123456 ",
		"/0123456%2", "Accept-Encoding: gzip\xa0\x9f",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, want := validValue(b), slowValue(b); got != want {
			t.Fatalf("%q is valid as a value: %v, want %v", b, got, want)
		}
		if len(b) > 0 && b[0] == '/' {
			h := Head{Method: []byte("GET"), Target: b}
			if _, err := h.target(); (err == nil) != slowTarget(b) {
				t.Fatalf("the target %q: %v", b, err)
			}
		}
		if lower := strings.ToLower(string(b)); hasTokenBytes([]byte(lower)) &&
			!strings.ContainsAny(lower, "^_`!#$%&'*+.|~") {
			for i := range len(b) {
				other := bytes.Clone(b)
				other[i] ^= 1
				if !is(b, lower) || is(other, lower) != slowIs(other, lower) {
					t.Fatalf("%q and %q", b, other)
				}
			}
		}
		if bytes.IndexByte(b, '\n') >= 0 {
			return
		}
		var got, want Header
		line := append(append(bytes.Clone(b), "\r\n"...), "Next: line\r\n"...)
		size, underscore, problem := scanHeader(line, &got)
		wantUnderscore, wantProblem := slowHeader(b, &want)
		if problem != wantProblem || underscore != wantUnderscore && problem == "" || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q\ngot  %+v %v %q\nwant %+v %v %q", b, got, underscore, problem, want, wantUnderscore,
				wantProblem)
		}
		if problem == "" && size != len(b)+len("\r\n") {
			t.Fatalf("%q has %d bytes", b, size)
		}
	})
}

// FuzzRead compares the reading of a head in one go with the search for its end and the reading of the whole.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		head("POST /a HTTP/1.1", "Host: a", "Content-Length: 4") + "a: b", head("GET / HTTP/1.1", "Host: a"),
		"GET / HTTP/1.1\r\nHost: a\r\n", "GET / HTTP/1.1\r\nHost: a\n\r\n", "GET / HTTP/1.1\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n\r",
		head("GET / HTTP/1.1", "Host: a", "Connection: close, a_b", "a_b: 1"),
		head("HTTP/1.1 200 OK", "Content-Length: 2") + "{}",
		head("HTTP/1.1 200 OK", "Trailer: a", "Trailer: b", "Connection: a"), "HTTP/1.1 200 OK\r\n",
		"HTTP/1.1 200 OK\n\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		end, _, flaw := HeadEnd(b, 0)
		isWhole := flaw == nil && end > 0
		o := Options{Underscores: DropUnderscores}
		var got, want Head
		n := got.Read(b, &o)
		if isWhole && want.Parse(b[:end], &o) == nil {
			if n != end || !reflect.DeepEqual(got, want) {
				t.Fatalf("%q: %d of %d\ngot  %+v\nwant %+v", b, n, end, got, want)
			}
		} else if n != 0 || len(got.Headers()) > 0 || got.Method != nil || got.Target != nil {
			t.Fatalf("%q: %d, %+v", b, n, got)
		}
		var one, other ResponseHead
		n = one.Read(b)
		if isWhole && other.Parse(b[:end]) == nil {
			if n != end || !reflect.DeepEqual(one, other) {
				t.Fatalf("%q: %d of %d\ngot  %+v\nwant %+v", b, n, end, one, other)
			}
		} else if n != 0 {
			t.Fatalf("%q: %d", b, n)
		}
	})
}
