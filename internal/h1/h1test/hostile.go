package h1test

import (
	"bytes"
	"crypto/tls"
	"io"
	"strconv"
	"strings"
	"testing"
)

// A HostileCase has the bytes that a client sends on a connection of its own, the answer, and every
// byte that the backend gets.
type HostileCase struct {
	name string
	Send string
	// half closes the client's side for writing after that.
	half bool
	// codes are the statuses of the answers, in order. After them the connection must be closed if
	// closes is set, else it must serve a further request.
	codes  []int
	closes bool
	// backend has the bytes that arrive there; {our} stands for the lines that the gateway adds
	// for a client at 127.0.0.1 that asked for the host gw.
	backend string
}

const OurLines = "X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: gw\r\nVia: 1.1 admission-gateway\r\n"

// Lines joins lines with CR LF; an empty last one ends a head.
func Lines(l ...string) string { return strings.Join(l, "\r\n") + "\r\n" }

const Body7 = `{"a":1}`

// refusedHeads are header lines (or a whole request line) that make a request
// refused before a byte of it is forwarded.
func refusedHeads() []HostileCase {
	post := func(name string, code int, header ...string) HostileCase {
		l := append([]string{"POST /v2/orders HTTP/1.1", "Host: gw", "Content-Type: application/json"}, header...)
		// What follows the head is a separate request for a reader that reads the framing in
		// another way.
		return HostileCase{
			name: name, Send: Lines(append(l, "", "7", Body7, "0", "", "GET /v2/smuggled HTTP/1.1", "Host: gw", "")...),
			codes: []int{code}, closes: true,
		}
	}
	get := func(name string, code int, l ...string) HostileCase {
		return HostileCase{name: name, Send: Lines(append(l, "")...), codes: []int{code}, closes: true}
	}
	cases := []HostileCase{
		post("two equal Content-Length", 400, "Content-Length: 7", "Content-Length: 7"),
		post("two different Content-Length", 400, "Content-Length: 7", "Content-Length: 8"),
		post("Content-Length 2, 2", 400, "Content-Length: 2, 2"),
		post("Content-Length +2", 400, "Content-Length: +2"),
		post("Content-Length -2", 400, "Content-Length: -2"),
		post("Content-Length 0x2", 400, "Content-Length: 0x2"),
		post("Content-Length 07", 400, "Content-Length: 07"),
		post("Content-Length 7 7", 400, "Content-Length: 7 7"),
		post("Content-Length empty", 400, "Content-Length: "),
		post("Content-Length over int64", 400, "Content-Length: 9223372036854775808"),
		post("Content-Length with many digits", 400, "Content-Length: 100000000000000000007"),
		post("Content-Length then Transfer-Encoding", 400, "Content-Length: 7", "Transfer-Encoding: chunked"),
		post("Transfer-Encoding then Content-Length", 400, "Transfer-Encoding: chunked", "Content-Length: 7"),
		post("Transfer-Encoding identity", 400, "Transfer-Encoding: identity"),
		post("Transfer-Encoding twice", 400, "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
		post("Transfer-Encoding gzip, chunked", 400, "Transfer-Encoding: gzip, chunked"),
		post("Transfer-Encoding xchunked", 400, "Transfer-Encoding: xchunked"),
		post("Transfer-Encoding chunked,", 400, "Transfer-Encoding: chunked,"),
		post("Transfer-Encoding empty", 400, "Transfer-Encoding:"),
		post("Transfer-Encoding after a vertical tab", 400, "Transfer-Encoding:\vchunked"),
		post("Transfer-Encoding before a vertical tab", 400, "Transfer-Encoding: chunked\v"),
		post("space before the colon of Transfer-Encoding", 400, "Transfer-Encoding : chunked"),
		post("space before the colon of Content-Length", 400, "Content-Length : 7"),
		post("space inside a name", 400, "Content Length: 38"),
		post("folded header", 400, "X-A: 1", " folded"),
		post("folded Transfer-Encoding", 400, "Transfer-Encoding:", " chunked"),
		post("folded first header", 400, " X-A: 1"),
		post("bare CR in a value", 400, "X-A: 1\rX-B: 2"),
		post("NUL in a value", 400, "X-A: 1\x002"),
		post("DEL in a value", 400, "X-A: 1\x7f"),
		post("empty name", 400, ": 1"),
		post("no colon", 400, "X-A"),
		post("NUL in a name", 400, "X\x00A: 1"),
		post("byte outside ASCII in a name", 400, "X-\xc3\xa4: 1"),
		post("two Host", 400, "Host: gw"),
		post("two Content-Type", 400, "Content-Type: application/json"),
		post("two Authorization", 400, "Authorization: Bearer a", "authorization: Bearer b"),
		post("name with an underscore", 400, "X_Remote_User: admin"),
		post("Content_Length", 400, "Content_Length: 7"),
		post("X-HTTP-Method-Override", 400, "X-HTTP-Method-Override: DELETE"),
		post("x-http-method", 400, "x-http-method: DELETE"),
		post("X-METHOD-OVERRIDE", 400, "X-METHOD-OVERRIDE: DELETE"),
		post("Impersonate-User", 400, "Impersonate-User: admin"),
		post("Impersonate-User in another case", 400, "imPERSONATE-user: admin"),
		post("Impersonate-Extra", 400, "Impersonate-Extra-Scopes: all"),
		post("Impersonate-User with '_'", 400, "Impersonate_User: admin"),
		post("Impersonate-User named by Connection", 400, "Impersonate-User: admin", "Connection: Impersonate-User"),
		post("Connection names Impersonate-Group", 400, "Connection: close, impersonate-group"),
		post("impersonate-extra-*", 400, "impersonate-eXtra-scope: x"),
		post("Expect of something else", 417, "Content-Length: 7", "Expect: 200-ok"),
		post("Connection that is no list of names", 400, "Connection: \"close\""),
		post("too many headers", 431, strings.Split(strings.Repeat("A: b\n", 200), "\n")[:199]...),
		post("head too large", 431, "X-A: "+strings.Repeat("a", 17<<10)),
		get("no Host", 400, "GET /v2/orders HTTP/1.1"),
		get("empty Host", 400, "GET /v2/orders HTTP/1.1", "Host: "),
		get("Host with a path", 400, "GET /v2/orders HTTP/1.1", "Host: x/b"),
		get("Host with a comma", 400, "GET /v2/orders HTTP/1.1", "Host: x,y"),
		get("Host with a user", 400, "GET /v2/orders HTTP/1.1", "Host: a:b@x"),
		get("Host with a space", 400, "GET /v2/orders HTTP/1.1", "Host: x y"),
		get("Host with a port that is no number", 400, "GET /v2/orders HTTP/1.1", "Host: x:8a"),
		get("absolute target of another host", 400, "GET http://other/v2/orders HTTP/1.1", "Host: gw"),
		get("absolute target with a user", 400, "GET http://u:p@gw/v2/orders HTTP/1.1", "Host: gw"),
		get("absolute target with a user and Host alike", 400, "GET http://u:p@gw/ HTTP/1.1", "Host: u:p@gw"),
		get("absolute target of another scheme", 400, "GET ftp://gw/v2/orders HTTP/1.1", "Host: gw"),
		get("absolute target without Host", 400, "GET http://gw/v2/orders HTTP/1.1"),
		get("HTTP/1.2", 505, "GET /v2/orders HTTP/1.2", "Host: gw"),
		get("HTTP/0.9", 505, "GET /v2/orders HTTP/0.9", "Host: gw"),
		get("HTTP/2 in a head", 505, "GET /v2/orders HTTP/2.0", "Host: gw"),
		get("no version", 400, "GET /v2/orders", "Host: gw"),
		get("version in lower case", 400, "GET /v2/orders http/1.1", "Host: gw"),
		get("version with more digits", 400, "GET /v2/orders HTTP/1.10", "Host: gw"),
		get("method in lower case", 400, "get /v2/orders HTTP/1.1", "Host: gw"),
		get("CONNECT", 405, "CONNECT gw:443 HTTP/1.1", "Host: gw:443"),
		get("TRACE", 405, "TRACE /v2/orders HTTP/1.1", "Host: gw"),
		get("target *", 400, "OPTIONS * HTTP/1.1", "Host: gw"),
		get("target without a slash", 400, "GET v2/orders HTTP/1.1", "Host: gw"),
		get("two spaces in the request line", 400, "GET  /v2/orders HTTP/1.1", "Host: gw"),
		get("tab in the request line", 400, "GET\t/v2/orders HTTP/1.1", "Host: gw"),
		get("space in the target", 400, "GET /v2/or ders HTTP/1.1", "Host: gw"),
		get("NUL in the target", 400, "GET /v2/\x00 HTTP/1.1", "Host: gw"),
		get("target too long", 414, "GET /"+strings.Repeat("a", 9<<10)+" HTTP/1.1", "Host: gw"),
		get("target larger than any head", 414, "GET /"+strings.Repeat("a", 40<<10)+" HTTP/1.1", "Host: gw"),
		get("empty line first", 400, "", "GET /v2/orders HTTP/1.1", "Host: gw"),
		get("TLS on the plain port", 400, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
		get("GET with a body", 400, "GET /v2/orders HTTP/1.1", "Host: gw", "Content-Length: 7"),
		get("GET with a chunked body", 400, "GET /v2/orders HTTP/1.1", "Host: gw", "Transfer-Encoding: chunked"),
		get("HEAD with a body", 400, "HEAD /v2/orders HTTP/1.1", "Host: gw", "Content-Length: 7"),
		get("Transfer-Encoding on HTTP/1.0", 400, "POST /v2/orders HTTP/1.0", "Host: gw",
			"Content-Type: application/json", "Transfer-Encoding: chunked"),
		{name: "bare LF after a header", Send: "GET /v2/orders HTTP/1.1\r\nHost: gw\nX-A: 1\r\n\r\n", codes: []int{400},
			closes: true},
		{name: "bare LF after the request line", Send: "GET /v2/orders HTTP/1.1\nHost: gw\r\n\r\n", codes: []int{400},
			closes: true},
		{name: "bare LFs alone", Send: "GET /v2/orders HTTP/1.1\nHost: gw\n\n", codes: []int{400}, closes: true},
		{name: "bare LF as the empty line", Send: "GET /v2/orders HTTP/1.1\r\nHost: gw\r\n\nGET /v2/smuggled HTTP/1.1\r\nHost: gw\r\n\r\n", codes: []int{400}, closes: true},
		{name: "CR CR LF", Send: "GET /v2/orders HTTP/1.1\r\nHost: gw\r\r\n\r\n", codes: []int{400}, closes: true},
	}
	return cases
}

// refusedBodies are bodies that end a request before a byte of it is forwarded.
func refusedBodies() []HostileCase {
	chunked := func(name, body string) HostileCase {
		return HostileCase{
			name: name,
			Send: Lines("POST /v2/orders HTTP/1.1", "Host: gw", "Content-Type: application/json",
				"Transfer-Encoding: chunked", "") + body,
			codes: []int{400}, closes: true,
		}
	}
	end := "\r\n" + Body7 + "\r\n0\r\n\r\n"
	truncated := chunked("chunks that end too early", "7\r\n{\"a\"")
	truncated.half = true
	open := chunked("chunks without the last", "7\r\n"+Body7+"\r\n")
	open.half = true
	noTrailerEnd := chunked("last chunk without its empty line", "7\r\n"+Body7+"\r\n0\r\n")
	noTrailerEnd.half = true
	trailers := chunked("trailers without end", "7\r\n"+Body7+"\r\n0\r\n"+strings.Repeat("X-A: b\r\n", 2000))
	trailers.codes = []int{431}
	return []HostileCase{
		chunked("chunk size 0x7", "0x7"+end),
		chunked("chunk size with a space before it", " 7"+end),
		chunked("chunk size with a space after it", "7 "+end),
		chunked("chunk size +7", "+7"+end),
		chunked("chunk size empty", end),
		chunked("chunk size that overflows", "10000000000000007"+end),
		chunked("chunk size over int64", "ffffffffffffffff"+end),
		chunked("chunk size with a bare LF", "7\n"+Body7+"\r\n0\r\n\r\n"),
		chunked("chunk size with CR CR LF", "7\r\r\n"+Body7+"\r\n0\r\n\r\n"),
		chunked("LF in a chunk extension", "7;a\nb"+end),
		chunked("CR in a chunk extension", "7;a\rb"+end),
		chunked("NUL in a chunk extension", "7;a\x00"+end),
		chunked("chunk extensions without end", "7;"+strings.Repeat("a", 20<<10)+end),
		chunked("chunk longer than its size", "6"+end),
		chunked("chunk with a bare LF after it", "7\r\n"+Body7+"\n0\r\n\r\n"),
		chunked("bare LF after the last chunk", "7\r\n"+Body7+"\r\n0\n\n"),
		chunked("trailer without a colon", "7\r\n"+Body7+"\r\n0\r\nX-A\r\n\r\n"),
		chunked("trailer with a space in its name", "7\r\n"+Body7+"\r\n0\r\nX A: b\r\n\r\n"),
		chunked("trailer with a bare LF", "7\r\n"+Body7+"\r\n0\r\nX-A: b\n\r\n"),
		trailers, truncated, open, noTrailerEnd,
		{
			name: "body that ends too early",
			Send: Lines("POST /v2/orders HTTP/1.1", "Host: gw", "Content-Type: application/json", "Content-Length: 8",
				"") + Body7,
			half: true, codes: []int{400}, closes: true,
		},
		{
			name: "body that is declared too large",
			Send: Lines("POST /v2/orders HTTP/1.1", "Host: gw", "Content-Type: application/json",
				"Content-Length: 99999999", "") + Body7,
			codes: []int{413}, closes: true,
		},
		{
			name: "body that is declared too large and waited for",
			Send: Lines("POST /v2/orders HTTP/1.1", "Host: gw", "Content-Type: application/json",
				"Content-Length: 99999999", "Expect: 100-continue", ""),
			// No 100 comes before it.
			codes: []int{413}, closes: true,
		},
		{
			name: "chunk that is too large",
			Send: Lines("POST /v2/orders HTTP/1.1", "Host: gw", "Content-Type: application/json",
				"Transfer-Encoding: chunked", "") +
				"5f5e0ff\r\n{",
			codes: []int{413}, closes: true,
		},
	}
}

// forwarded are requests that are served, and what arrives of them.
func forwarded() []HostileCase {
	ok := []int{200}
	get := func(name string, send, arrive []string) HostileCase {
		return HostileCase{
			name:    name,
			Send:    Lines(append(append([]string{"GET /v2/orders HTTP/1.1", "Host: gw"}, send...), "")...),
			backend: Lines(append(append([]string{"GET /v2/orders HTTP/1.1", "Host: gw"}, arrive...), "{our}")...),
			codes:   ok,
		}
	}
	target := func(target string) HostileCase {
		return HostileCase{
			name: "target " + target, Send: Lines("GET "+target+" HTTP/1.1", "Host: gw", ""), codes: ok,
			backend: Lines("GET "+target+" HTTP/1.1", "Host: gw", "{our}"),
		}
	}
	post := func(name string, header []string, body string, arrive []string, arriveBody string) HostileCase {
		head := []string{"POST /v2/orders HTTP/1.1", "Host: gw", "Content-Type: application/json"}
		return HostileCase{
			name: name, codes: ok,
			Send: Lines(append(append(head[:3:3], header...), "")...) + body,
			backend: strings.TrimSuffix(Lines(append(append(head[:3:3], arrive...), "{our}")...), "\r\n") +
				"Content-Length: " + strconv.Itoa(len(arriveBody)) + "\r\n\r\n" + arriveBody,
		}
	}
	upgrade := func(name string, header ...string) HostileCase {
		c := get(name, append(header, "Sec-WebSocket-Key: x"), []string{"Sec-WebSocket-Key: x"})
		c.Send += "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Lines("GET /v2/smuggled HTTP/1.1", "Host: gw", "")
		c.closes = true
		return c
	}
	closing := get("Connection: close", []string{"connection: Close"}, nil)
	closing.closes = true
	cases := []HostileCase{
		get("order and spelling of names", []string{"x-b: 2", "X-A:1", "X-a: \t3 \t", "COOKIE: a=1; b=\"2\"",
			"cookie: c=3", "Accept: a", "Accept: b", "User-Agent:"},
			[]string{"x-b: 2", "X-A: 1", "X-a: 3", "COOKIE: a=1; b=\"2\"", "cookie: c=3", "Accept: a", "Accept: b",
				"User-Agent: "}),
		get("value outside ASCII", []string{"X-A: \xc3\xa4\xff"}, []string{"X-A: \xc3\xa4\xff"}),
		get("hop-by-hop headers",
			[]string{"Keep-Alive: timeout=5", "Proxy-Connection: keep-alive", "TE: trailers", "Trailer: X-A",
				"Proxy-Authorization: Basic x", "Proxy-Authenticate: Basic", "X-A: 1"},
			[]string{"X-A: 1"}),
		get("headers that Connection names", []string{"X-A: 1", "Connection: X-Remote-User, x-a,X-Forwarded-For",
			"x-A: 2", "X-B: 3"}, []string{"X-B: 3"}),
		get("several Connection lines", []string{"Connection: keep-alive", "X-A: 1", "X-B: 2", "CONNECTION: x-b",
			"X-C: 3", "Connection: X-C, Host"}, []string{"X-A: 1"}),
		get("identity headers", []string{"X-Remote-User: admin", "x-remote-group: system:masters",
			"X-REMOTE-EXTRA-a: b", "X-Remote-User: root", "X-A: 1"}, []string{"X-A: 1"}),
		get("forwarding headers of a client", []string{"X-Forwarded-For: 10.0.0.1", "x-forwarded-proto: https",
			"X-Forwarded-Host: evil", "X-Forwarded-Port: 1", "Forwarded: for=1.2.3.4", "X-Real-IP: 1.2.3.4",
			"Via: 1.0 other"},
			[]string{"Via: 1.0 other"}),
		upgrade("Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c",
			"HTTP2-Settings: AAMAAABkAAQAAP__"),
		upgrade("HTTP2-Settings alone", "HTTP2-Settings: AAMAAABkAAQAAP__"),
		upgrade("Upgrade: websocket", "Connection: upgrade", "Upgrade: websocket"),
		closing,
		target("/a?"),
		target("/a?x=%2f&&y"),
		target("/a?x=/../..//%2e"),
		target("/v2/orders?a=b?c=d&e=%2a"),
		target("/v2/orders?q={\"a\":[1]}|^`"),
		target("/a!$&'()*+,=:@-._~b"),
		{
			name: "absolute target", Send: Lines("GET http://GW/v2/orders?a=b HTTP/1.1", "Host: gw", ""), codes: ok,
			backend: Lines("GET /v2/orders?a=b HTTP/1.1", "Host: gw", "{our}"),
		},
		{
			name: "HTTP/1.0", Send: Lines("GET /v2/orders HTTP/1.0", "Host: gw", ""), codes: ok, closes: true,
			backend: Lines("GET /v2/orders HTTP/1.1", "Host: gw", strings.Replace(OurLines, "Via: 1.1", "Via: 1.0", 1)),
		},
		{
			name: "HTTP/1.0 with keep-alive",
			Send: Lines("GET /v2/orders HTTP/1.0", "Host: gw", "Connection: Keep-Alive", ""), codes: ok,
			backend: Lines("GET /v2/orders HTTP/1.1", "Host: gw", strings.Replace(OurLines, "Via: 1.1", "Via: 1.0", 1)),
		},
		{
			name: "two requests at once", Send: strings.Repeat(Lines("GET /v2/orders HTTP/1.1", "Host: gw", ""), 2),
			codes:   []int{200, 200},
			backend: strings.Repeat(Lines("GET /v2/orders HTTP/1.1", "Host: gw", "{our}"), 2),
		},
		post("body", []string{"Content-Length: 7"}, Body7, nil, Body7),
		post("chunked body", []string{"Transfer-Encoding: Chunked"}, "3\r\n{\"a\r\n04;x=\"y\"\r\n\":1}\r\n0\r\n\r\n",
			nil, Body7),
		post("chunked body with trailers", []string{"Trailer: X-Remote-User", "Transfer-Encoding: chunked"},
			"7\r\n"+Body7+"\r\n0\r\nX-Remote-User: admin\r\nImpersonate-User: admin\r\nContent-Length: 3\r\nX-A: 1\r\n\r\n", nil, Body7),
		post("Connection that names Content-Length",
			[]string{"Content-Length: 7", "Connection: Content-Length, Transfer-Encoding"}, Body7, nil, Body7),
		post("Expect with the body right after it", []string{"Content-Length: 7", "Expect: 100-Continue"}, Body7, nil,
			Body7),
	}
	// Two at once, the first with a body: what follows it is the next request.
	both := post("request right after a body", []string{"Content-Length: 7"}, Body7, nil, Body7)
	both.Send += Lines("GET /v2/orders HTTP/1.1", "Host: gw", "")
	both.backend += Lines("GET /v2/orders HTTP/1.1", "Host: gw", "{our}")
	both.codes = []int{200, 200}
	return append(cases, both)
}

// HostileCases is the whole table.
func HostileCases() []HostileCase {
	return append(append(refusedHeads(), refusedBodies()...), forwarded()...)
}

// RunHostile plays the table against a gateway that forwards everything to the
// backend.
func RunHostile(t *testing.T, gateway string, backend *Recorder) {
	for _, c := range HostileCases() {
		t.Run(c.name, func(t *testing.T) {
			backend.Take()
			nc, br := Dial(t, gateway)
			defer func() { _ = nc.Close() }()
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				// The gateway may answer and close before it has read all of it.
				_, _ = io.WriteString(nc, c.Send)
				if c.half {
					_ = nc.(interface{ CloseWrite() error }).CloseWrite()
				}
			}()
			for i, code := range c.codes {
				got, closes := ReadAnswer(t, br, strings.HasPrefix(c.Send, "HEAD"))
				if got.StatusCode != code {
					t.Fatalf("answer %d is %d %q, want %d", i, got.StatusCode, got.Content, code)
				}
				if last := i == len(c.codes)-1; closes != (last && c.closes) {
					t.Errorf("answer %d: Connection: close is %v", i, closes)
				}
				if code >= 400 && !bytes.Contains(got.Content, []byte(`"kind":"Status"`)) &&
					!strings.HasPrefix(c.Send, "HEAD") {
					t.Errorf("answer %d is no Status: %s", i, got.Content)
				}
			}
			<-sent
			want := strings.ReplaceAll(c.backend, "{our}", OurLines)
			if _, ok := nc.(*tls.Conn); ok {
				want = strings.ReplaceAll(want, "X-Forwarded-Proto: http\r", "X-Forwarded-Proto: https\r")
			}
			if got := backend.Take(); got != want {
				t.Errorf("the backend got\n%q\nwant\n%q", got, want)
			}
			if c.closes {
				if rest, err := io.ReadAll(br); err != nil && !IsReset(err) || len(rest) > 0 {
					t.Errorf("after the answers came %q, %v", rest, err)
				}
				if got := backend.Take(); got != "" {
					t.Errorf("the backend got afterwards\n%q", got)
				}
				return
			}
			_, _ = io.WriteString(nc, Lines("GET /v2/next HTTP/1.1", "Host: gw", ""))
			if got, _ := ReadAnswer(t, br, false); got.StatusCode != 200 {
				t.Errorf("the next request is answered %d %q", got.StatusCode, got.Content)
			}
			if got := backend.Take(); !strings.HasPrefix(got, "GET /v2/next HTTP/1.1\r\n") {
				t.Errorf("of the next request the backend got %q", got)
			}
		})
	}
}
