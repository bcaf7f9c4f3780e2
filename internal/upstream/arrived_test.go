package upstream

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/h1/h1test"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// begin sends a request for which the backend answers with a head and a body, and then does something else with the
// connection.
func begin(t *testing.T, client *Client, conns chan net.Conn, head, body string,
	then func(net.Conn)) *message.Response {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		nc, _ := h1test.Accept(t, conns)
		_, _ = io.WriteString(nc, head+body)
		then(nc)
	}()
	var resp message.Response
	if err := client.Do(request("GET", "/", ""), &resp); err != nil || !resp.IsStream() {
		t.Fatalf("no stream: %v", err)
	}
	<-done
	return &resp
}

// TestReadReady: behind a read that has filled the buffer over the connection, what else has arrived is read without a
// wait.
func TestReadReady(t *testing.T) {
	url, conns := h1test.Driven(t)
	client, err := New(Config{Endpoints: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	const size = 100_000
	testutil.Eventually(t, "more than a buffer to be read at once", func() bool {
		resp := begin(t, client, conns, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 100000\r\n\r\n",
			strings.Repeat("x", size), func(net.Conn) {})
		defer resp.Close()
		body, p := resp.Stream(), make([]byte, size)
		first, err := body.Read(p)
		if err != nil {
			t.Fatal(err)
		}
		more, err := body.ReadReady(p[first:])
		if err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(body); err != nil || first+more+len(rest) != size {
			t.Fatalf("%d, %d and %d bytes, %v", first, more, len(rest), err)
		}
		return more > 0
	})
}

// TestLongBody: a body whose length is not known takes no memory of its own if too much of it has come for a small one.
func TestLongBody(t *testing.T) {
	url, conns := h1test.Driven(t)
	client, err := New(Config{Endpoints: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	want := strings.Repeat("x", 100_000)
	testutil.Eventually(t, "a body to come at once", func() bool {
		resp := begin(t, client, conns, "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n",
			h1test.Chunks(want, len(want)), func(net.Conn) {})
		defer resp.Close()
		body := resp.Stream().(*Body)
		isAtOnce := body.from.hasMore()
		if isAtOnce && body.prefix != nil {
			t.Errorf("%d bytes were copied", len(body.prefix))
		}
		if got, err := io.ReadAll(body); string(got) != want || err != nil {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
		return isAtOnce
	})
}

// TestReadyReset: a read that does not wait keeps the error that it meets for the next: a body that the end of the
// connection ends is not whole if a reset does.
func TestReadyReset(t *testing.T) {
	url, conns := h1test.Driven(t)
	client, err := New(Config{Endpoints: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	const head = "HTTP/1.1 200 OK\r\n\r\n"
	p := make([]byte, client.config.HeadBytes)
	inBuffer := len(p) - len(head)
	for range 50 {
		resp := begin(t, client, conns, head, strings.Repeat("x", inBuffer+len(p)), func(nc net.Conn) {
			_ = nc.(*net.TCPConn).SetLinger(0)
			_ = nc.Close()
		})
		body, n := resp.Stream(), 0
		var failed error
		for failed == nil {
			var m int
			if m, failed = body.Read(p); failed == nil {
				n += m
				time.Sleep(10 * time.Microsecond)
				m, failed = body.ReadReady(p)
			}
			n += m
		}
		if errors.Is(failed, io.EOF) {
			t.Fatalf("the body is whole after %d bytes", n)
		}
		resp.Close()
	}
}
