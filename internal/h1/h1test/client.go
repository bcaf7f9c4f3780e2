package h1test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// The heads that most tests send and get.
const (
	GetHead     = "GET /v2/orders HTTP/1.1\r\nHost: gw\r\n"
	PostHead    = "POST /v2/orders HTTP/1.1\r\nHost: gw\r\nContent-Type: application/json\r\n"
	ChunkedHead = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)

// Dial connects to the gateway. The deadline is a guard against hanging.
func Dial(t testing.TB, addr string) (net.Conn, *bufio.Reader) {
	t.Helper()
	addr, secure := strings.CutPrefix(addr, SecureScheme)
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if secure {
		nc = tls.Client(nc, &tls.Config{InsecureSkipVerify: true})
	}
	t.Cleanup(func() { _ = nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(testutil.Patience)); err != nil {
		t.Fatal(err)
	}
	return nc, bufio.NewReader(nc)
}

// Send writes to a connection.
func Send(t testing.TB, w io.Writer, s string) {
	t.Helper()
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
}

// Chunks returns a body in chunks of a size.
func Chunks(body string, size int) string {
	var b strings.Builder
	for body != "" {
		n := min(size, len(body))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	return b.String() + "0\r\n\r\n"
}

// Expect reads exactly want.
func Expect(t *testing.T, r io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(r, got); err != nil || string(got) != want {
		t.Fatalf("got %q, %v; want %q", got[:n], err, want)
	}
}

// IsReset reports whether an error says that the other end broke the connection.
func IsReset(err error) bool { return strings.Contains(err.Error(), "reset by peer") }

// A Response is the answer to a request, whole.
type Response struct {
	*http.Response
	Content []byte
}

// ReadAnswer reads one answer and reports whether it announces the end of the connection.
func ReadAnswer(t testing.TB, br *bufio.Reader, head bool) (Response, bool) {
	t.Helper()
	req := &http.Request{Method: "GET"}
	if head {
		req.Method = "HEAD"
	}
	resp, err := http.ReadResponse(br, req)
	if err != nil {
		t.Fatalf("reading an answer: %v", err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("reading the body of an answer: %v", err)
	}
	return Response{resp, body}, resp.Close
}
