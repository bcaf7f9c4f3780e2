package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// pieces make up hostile heads.
var pieces = struct{ lines, values, bodies []string }{
	lines: []string{
		"Content-Length: 7", "Content-Length: 0", "Content-Length: 70", "content-length:7", "Content-Length: 7\t",
		"Content-Length: 07", "Content-Length: +7",
		"Transfer-Encoding: chunked", "transfer-encoding:chunked", "Transfer-Encoding: identity",
		"Transfer-Encoding: chunked, chunked", "Transfer-Encoding:\n chunked",
		"Transfer-Encoding : chunked", "Connection: close", "Connection: keep-alive", "Connection: Content-Length",
		"Connection: transfer-encoding, host",
		"Expect: 100-continue", "Expect: 200-ok", "Upgrade: h2c", "HTTP2-Settings: AAA", "Trailer: Content-Length",
		"TE: trailers", "Host: other", "Host: gw",
		"X-A: 1", "X-A: \x00", "X_A: 1", "X A: 1", " X-A: 1", ": 1", "X-HTTP-Method-Override: DELETE",
		"If-Match: \"1\"", "Content-Encoding: identity",
		"Range: bytes=0-1", "Accept-Encoding: gzip", "Cookie: a=b", "X-Forwarded-For: 1.1.1.1", "Via: 1.1 x",
		"Content-Type: application/json", "X-A: 1\rX-B: 2",
	},
	values: []string{"\r\n", "\n", "\r", " ", "\t", "\x00", "\x0b", "\x7f", "\xff", ":", ";", ",", "0", "%", "/", "..",
		"?", "#", "HTTP/1.1", "HTTP/1.0", "GET ", "POST "},
	bodies: []string{
		body7, "7\r\n" + body7 + "\r\n0\r\n\r\n", "7;a=b\r\n" + body7 + "\r\n0\r\nX-A: 1\r\n\r\n", "07\r\n" + body7 +
			"\r\n0\r\n\r\n", "0x7\r\n" + body7 + "\r\n0\r\n\r\n",
		"7\n" + body7 + "\n0\n\n", "7\r\n" + body7 + "0\r\n\r\n", "0\r\n\r\n", "", "[]", "{", "-1\r\n",
		"ffffffffffffffff\r\n" + body7,
	},
}

// mutated is a request that may be good or bad, and another behind it that only who reads the framing of the first in
// another way than the gateway finds.
func mutated(r *rand.Rand) string {
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	method := pick([]string{"POST", "POST", "POST", "GET", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"})
	head := []string{method + " /v2/orders/x HTTP/1.1", "Host: gw"}
	if method != "GET" && method != "HEAD" {
		head = append(head, "Content-Type: application/json")
	}
	body := ""
	switch r.IntN(3) {
	case 0:
		head, body = append(head, "Content-Length: 7"), body7
	case 1:
		head, body = append(head, "Transfer-Encoding: chunked"), pieces.bodies[1]
	}
	for range r.IntN(3) {
		at := 1 + r.IntN(len(head))
		head = append(head[:at], append([]string{pick(pieces.lines)}, head[at:]...)...)
	}
	if r.IntN(4) == 0 {
		body = pick(pieces.bodies)
	}
	message := h1test.Lines(append(head, "")...) + body
	for range r.IntN(3) {
		at := r.IntN(len(message))
		switch r.IntN(4) {
		case 0: // a byte less
			message = message[:at] + message[at+1:]
		case 1: // something more
			message = message[:at] + pick(pieces.values) + message[at:]
		case 2: // another byte
			message = message[:at] + string(rune(r.IntN(128))) + message[at+1:]
		case 3: // a part twice
			end := at + r.IntN(len(message)-at)
			message = message[:end] + message[at:end] + message[end:]
		}
	}
	return message + h1test.Lines("GET /v2/smuggled HTTP/1.1", "Host: gw", "")
}

// TestMutatedRequests sends requests with random faults. Of whatever arrives, net/http reads as many
// requests as the gateway forwarded. None has a body within a body, or names that a client may not
// send. Every answer that refuses the framing is the last of its connection.
func TestMutatedRequests(t *testing.T) {
	const rounds = 1500
	var forwarded, refused int
	backend := newRecorder(t)
	backend.Reply = func(_ int, head, _ string) (string, bool) {
		reply := strings.Replace(smallReply, "\r\n", "\r\nX-Backend: yes\r\n", 1)
		if strings.HasPrefix(head, "HEAD") {
			reply = strings.TrimSuffix(reply, "{}")
		}
		return reply, true
	}
	address := startGateway(t, gatewayFor(t, t.TempDir(), backend.Addr().String(), []string{"kubernetes"}))
	for seed := range uint64(rounds) {
		message := mutated(rand.New(rand.NewPCG(seed, 1)))
		backend.Take()
		got := play(t, address, message)
		arrived := backend.Take()
		n, err := readRequests(arrived)
		if err != nil {
			t.Fatalf("seed %d: the backend got what net/http does not read: %v\n%q\nof\n%q", seed, err, arrived,
				message)
		}
		admitted := 0
		for i, a := range got {
			if a.Header.Get("X-Backend") != "" {
				admitted++
			}
			if a.StatusCode == 400 && !a.Close && !bytes.Contains(a.Content, []byte(`"kind":"Status"`)) &&
				a.Request.Method != "HEAD" {
				t.Errorf("seed %d: answer %d is no Status: %q of\n%q", seed, i, a.Content, message)
			}
			if a.Close && i != len(got)-1 {
				t.Errorf("seed %d: an answer follows the one that closes the connection, of\n%q", seed, message)
			}
		}
		if n != admitted {
			t.Errorf("seed %d: the backend got %d requests and answered %d\n%q\nof\n%q", seed, n, admitted, arrived,
				message)
		}
		if len(got) > strings.Count(message, "HTTP/1.")+1 {
			t.Errorf("seed %d: %d answers to\n%q", seed, len(got), message)
		}
		forwarded += n
		refused += len(got) - n
	}
	t.Logf("%d requests were forwarded, %d refused", forwarded, refused)
	if forwarded < rounds/4 || refused < rounds/4 {
		t.Errorf("%d requests were forwarded and %d refused: one of both is hardly tested", forwarded, refused)
	}
}

// play sends a message and reads answers until the connection ends.
func play(t *testing.T, address, message string) []answer {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	_ = nc.SetDeadline(time.Now().Add(testutil.Patience))
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.WriteString(nc, message) // the gateway may have closed the connection before
		_ = nc.(*net.TCPConn).CloseWrite()
	}()
	defer func() { <-sent }()
	br := bufio.NewReader(nc)
	var got []answer
	// Of a request with a fault the gateway may not know the method.
	method, _, _ := strings.Cut(message, " ")
	for {
		resp, err := http.ReadResponse(br, &http.Request{Method: method})
		if err != nil {
			if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) && !isReset(err) {
				t.Errorf("no answer as net/http reads them: %v to\n%q", err, message)
			}
			return got
		}
		if resp.StatusCode < 200 {
			continue
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil && !isReset(err) {
			t.Errorf("an answer breaks off: %v after %q, to\n%q", err, body, message)
		}
		got = append(got, answer{Response: resp, Content: body})
		method = "GET"
	}
}

// readRequests reads what the backend got as a strict backend would, and counts the requests.
func readRequests(raw string) (n int, err error) {
	br := bufio.NewReader(strings.NewReader(raw))
	for {
		if _, err := br.Peek(1); err == io.EOF {
			return n, nil
		}
		r, err := http.ReadRequest(br)
		if err != nil {
			return n, err
		}
		body, err := io.ReadAll(r.Body)
		switch {
		case err != nil:
			return n, err
		case len(r.TransferEncoding) > 0:
			return n, fmt.Errorf("it has Transfer-Encoding")
		case r.URL.Path == "/v2/smuggled" && len(body) > 0:
			return n, fmt.Errorf("the request behind has a body")
		}
		for name := range r.Header {
			if strings.ContainsAny(name, "_ ") || strings.HasPrefix(name, "X-Remote") || name == "Upgrade" ||
				name == "Expect" || name == "Trailer" || name == "Connection" {
				return n, fmt.Errorf("it has the header %s", name)
			}
		}
		n++
	}
}
