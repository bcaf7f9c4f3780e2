package h2

import (
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"

	"github.com/admission-gateway/gateway/internal/message"
)

// block encodes fields, each "name: value", by the library.
func block(fields ...string) []byte {
	var b strings.Builder
	e := hpack.NewEncoder(&b)
	for _, f := range fields {
		i := strings.Index(f[1:], ": ") + 1
		_ = e.WriteField(hpack.HeaderField{Name: f[:i], Value: f[i+2:]}) // a strings.Builder fails never
	}
	return []byte(b.String())
}

func TestRequests(t *testing.T) {
	get := []string{":method: GET", ":scheme: https", ":path: /a?b", ":authority: api.example.com"}
	with := func(more ...string) []string { return append(append([]string{}, get...), more...) }
	const line = "GET /a?b HTTP/1.1\r\nhost: api.example.com\r\n"
	for name, test := range map[string]struct {
		fields  []string
		hasBody bool
		text    string // without the empty line
		bad     string
	}{
		"get":         {with("accept: */*"), false, line + "accept: */*\r\n", ""},
		"only pseudo": {get, false, line, ""},
		"body":        {with("x: y"), true, line + "x: y\r\ntransfer-encoding: chunked\r\n", ""},
		"length":      {with("content-length: 5"), true, line + "content-length: 5\r\n", ""},
		"crumbs":      {with("cookie: a=b", "x: y", "cookie: c=d"), false, line + "x: y\r\ncookie: a=b; c=d\r\n", ""},
		"host alone": {[]string{":method: GET", ":scheme: http", ":path: /", "host: a"}, false,
			"GET / HTTP/1.1\r\nhost: a\r\n", ""},
		"host as well": {with("host: API.example.com"), false, line, ""},
		"another host": {with("host: b"), false, "", "the request has a header 'host' that is not its ':authority'"},
		"te trailers":  {with("te: trailers"), false, line + "te: trailers\r\n", ""},
		"te gzip":      {with("te: gzip"), false, "", "the request has a header 'te' that is not 'trailers'"},
		"value edge":   {with("x:  y"), false, "", "the request has a header value with a space at its start or end"},
		"value CR":     {with("x: a\r\ny: b"), false, "", "the request has a header value with a control character"},
		"value LF":     {with("x: a\nb"), false, "", "the request has a header value with a control character"},
		"value NUL":    {with("x: a\x00b"), false, "", "the request has a header value with a control character"},
		"capital":      {with("X: a"), false, "", "the request has a header name with a capital letter"},
		"name with colon": {with("a:b: c"), false, "",
			"the request has a header name with a character that may not be in one"},
		"name with space": {with("a b: c"), false, "",
			"the request has a header name with a character that may not be in one"},
		"connection": {with("connection: close"), false, "",
			"the request has the header 'connection', which HTTP/2 does not have"},
		"chunked": {with("transfer-encoding: chunked"), true, "",
			"the request has the header 'transfer-encoding', which HTTP/2 does not have"},
		"upgrade": {with("upgrade: h2c"), false, "",
			"the request has the header 'upgrade', which HTTP/2 does not have"},
		"twice": {with(":path: /b"), false, "", "the request has the pseudo header field ':path' more than once"},
		"late": {
			[]string{":method: GET", ":scheme: https", "x: y", ":path: /"}, false, "",
			"the request has no pseudo header field ':path'",
		},
		"late too": {with("x: y", ":protocol: a"), false, "",
			"the request has the pseudo header field ':protocol' after a header"},
		"unknown": {append([]string{":status: 200"}, get...), false, "",
			"the request has a pseudo header field that requests do not have"},
		"empty": {[]string{":method: GET", ":scheme: https", ":path: "}, false, "",
			"the request has an empty pseudo header field ':path'"},
		"no method": {[]string{":scheme: https", ":path: /"}, false, "",
			"the request has no pseudo header field ':method'"},
		"no scheme": {[]string{":method: GET", ":path: /"}, false, "",
			"the request has no pseudo header field ':scheme'"},
		"no path": {[]string{":method: GET", ":scheme: https"}, false, "",
			"the request has no pseudo header field ':path'"},
		"another scheme": {[]string{":method: GET", ":scheme: ftp", ":path: /"}, false, "",
			"the request has a ':scheme' that is neither 'http' nor 'https'"},
		"absolute": {[]string{":method: GET", ":scheme: http", ":path: http://a/"}, false, "",
			"the request has a ':path' that does not start with '/'"},
		"path of two":   {[]string{":method: GET", ":scheme: http", ":path: / HTTP/1.1\r\nX: y"}, false, "", "the request has a pseudo header field ':path' with a space or a control character"},
		"method of two": {[]string{":method: GET /x", ":scheme: http", ":path: /"}, false, "", "the request has a pseudo header field ':method' with a space or a control character"},
		"user": {[]string{":method: GET", ":scheme: http", ":path: /", ":authority: a@b"}, false, "",
			"the request has an ':authority' with a user"},
		"CONNECT": {[]string{":method: CONNECT", ":authority: a:443"}, true,
			"CONNECT a:443 HTTP/1.1\r\nhost: a:443\r\ntransfer-encoding: chunked\r\n", ""},
		"CONNECT, path": {[]string{":method: CONNECT", ":authority: a:443", ":path: /"}, false, "",
			"a CONNECT request must have ':authority', and neither ':scheme' nor ':path'"},
		"protocol": {with(":protocol: websocket"), false, "", "the request has the pseudo header field ':protocol' although its method is not 'CONNECT'"},
		"another protocol": {[]string{":method: CONNECT", ":protocol: a", ":scheme: http", ":path: /", ":authority: a"},
			true, "", "the only protocol that a request can ask for by ':protocol' is 'websocket'"},
		"large": {with("x: " + strings.Repeat("a", 900)), false, "", "the head of the request is too large"},
		"long path": {[]string{":method: GET", ":scheme: http", ":path: /" + strings.Repeat("a", 2000)}, false,
			"", "the head of the request is too large"},
	} {
		r := NewRequestReader()
		r.Begin(nil, 800, false, test.hasBody)
		b := block(test.fields...)
		if err := r.Write(b); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text, bad, err := r.End()
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case bad != nil || test.bad != "":
			if bad == nil || bad.Error() != test.bad {
				t.Errorf("%s: refused for %v, want %q", name, bad, test.bad)
			}
		case string(text) != test.text+"\r\n":
			t.Errorf("%s: the head is %q, want %q", name, text, test.text+"\r\n")
		}
	}
}

func TestExtendedConnect(t *testing.T) {
	r := NewRequestReader()
	r.Begin(nil, 800, false, true)
	if err := r.Write(block(":method: CONNECT", ":protocol: websocket", ":scheme: https", ":path: /chat",
		":authority: a", "sec-websocket-key: mine", "sec-websocket-version: 13")); err != nil {
		t.Fatal(err)
	}
	text, bad, err := r.End()
	if err != nil || bad != nil {
		t.Fatal(bad, err)
	}
	var head message.Head
	if err := head.Parse(text, &message.Options{}); err != nil {
		t.Fatal(err)
	}
	key, _ := head.Lookup("Sec-WebSocket-Key")
	if string(head.Method) != "GET" || string(head.Upgrade) != "websocket" || head.HasBody() || len(key) != 24 ||
		r.Protocol() != "websocket" {
		t.Errorf("the head is %q", text)
	}
}

// TestTableStaysRight reads a block after one that was refused: its fields are in the table all the same.
func TestTableStaysRight(t *testing.T) {
	var b strings.Builder
	e := hpack.NewEncoder(&b)
	write := func(fields ...string) []byte {
		b.Reset()
		for _, f := range fields {
			i := strings.Index(f[1:], ": ") + 1
			if err := e.WriteField(hpack.HeaderField{Name: f[:i], Value: f[i+2:]}); err != nil {
				t.Fatal(err)
			}
		}
		return []byte(b.String())
	}
	r := NewRequestReader()
	for i, bad := range []bool{true, false} {
		fields := []string{":method: GET", ":scheme: http", ":path: /", ":authority: a", "x-kept: in the table"}
		if bad {
			fields = append(fields[:4:4], "X-Bad: y", "x-kept: in the table", "x-long: "+strings.Repeat("a", 300))
		}
		most := 200
		r.Begin(nil, most, false, false)
		if err := r.Write(write(fields...)); err != nil {
			t.Fatal(err)
		}
		text, refused, err := r.End()
		if err != nil || (refused != nil) != bad {
			t.Fatalf("block %d: %q, %v, %v", i, text, refused, err)
		}
		if !bad && !strings.Contains(string(text), "x-kept: in the table\r\n") {
			t.Errorf("the head is %q", text)
		}
	}
}

// FuzzRequest checks that no block makes a head with a line that no field of it said, and that none is read in two
// ways: what the strict reader finds in the text is what the library finds in the block.
func FuzzRequest(f *testing.F) {
	f.Add(block(":method: GET", ":scheme: http", ":path: /", ":authority: a", "x: y"), false)
	f.Add(block(":method: POST", ":scheme: https", ":path: /a?b=c", "host: a", "content-length: 3", "cookie: a",
		"cookie: b"), true)
	f.Add(block(":method: GET", ":scheme: http", ":path: / HTTP/1.1\r\nx: y", ":authority: a"), false)
	f.Add([]byte{0x82, 0x86, 0x84, 0x41, 0x01, 'a'}, false)
	f.Fuzz(func(t *testing.T, b []byte, hasBody bool) {
		var fields []hpack.HeaderField
		d := hpack.NewDecoder(HeaderTable, func(f hpack.HeaderField) { fields = append(fields, f) })
		_, failed := d.Write(b)
		if failed == nil {
			failed = d.Close()
		}
		r := NewRequestReader()
		r.Begin(nil, message.DefaultHeadBytes, false, hasBody)
		err := r.Write(b)
		var text []byte
		var bad error
		if err == nil {
			text, bad, err = r.End()
		}
		if (err != nil) != (failed != nil) {
			t.Fatalf("the block is %v, by the library %v", err, failed)
		}
		var head message.Head
		if err != nil || bad != nil || head.Parse(text, &message.Options{Underscores: message.PassUnderscores}) != nil {
			return
		}
		var want, got []string
		var crumbs []string
		for _, f := range fields {
			switch {
			case f.Name == "cookie":
				crumbs = append(crumbs, f.Value)
			case f.Name == ":authority":
				want = append(want, "host: "+f.Value)
			case f.Name == "host" && len(want) > 0 && strings.HasPrefix(want[0], "host: "):
			case f.Name == ":path" && f.Value != string(head.Target) || f.Name == ":method" &&
				f.Value != string(head.Method):
				t.Errorf("%s %q is read as %s %s", f.Name, f.Value, head.Method, head.Target)
			case f.Name[0] != ':':
				want = append(want, f.Name+": "+f.Value)
			}
		}
		if crumbs != nil {
			want = append(want, "cookie: "+strings.Join(crumbs, "; "))
		}
		for _, l := range head.Headers() {
			if l.Field != message.FieldTransferEncoding {
				got = append(got, string(l.Name)+": "+string(l.Value))
			}
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("the fields\n%s\nare read as\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
		}
	})
}
