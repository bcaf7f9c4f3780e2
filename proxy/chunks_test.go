package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/admission-gateway/gateway/internal/credentials/credentialstest"
	"github.com/admission-gateway/gateway/internal/h1/h1test"
)

// TestChunksOfTLS counts in how many chunks and writes a body comes out of the gateway that a backend sends by TLS:
// about as many as the records that it came in, however small, and fewer if many of them have arrived at once. The
// bytes are the backend's.
func TestChunksOfTLS(t *testing.T) {
	const watch = widgetsPath + "?watch=true"
	noise := make([]byte, 1<<20)
	if _, err := io.ReadFull(rand.NewChaCha8([32]byte{}), noise); err != nil {
		t.Fatal(err)
	}
	event := func(size int) string {
		return `{"type":"ADDED","object":{"kind":"Widget","apiVersion":"example.com/v1","spec":{"size":1,"max":2,"mode":"` + strings.Repeat("x", size) + `"}}}` + "\n"
	}
	list := `{"kind":"WidgetList","apiVersion":"example.com/v1","items":[` + strings.Repeat(wholeWidget+",", 10_000) +
		wholeWidget + "]}"
	const typed = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	for _, c := range []struct {
		name, target, head, body string
		chunk                    int // size of the backend's chunks
	}{
		{"chunks of 64 KiB", "/api/v1/secrets", chunkedHead, string(noise), 64 << 10},
		{"one chunk", "/api/v1/secrets", chunkedHead, string(noise), 1 << 20},
		{"chunks of 4 KiB", "/api/v1/secrets", chunkedHead, string(noise), 4 << 10},
		{"gzip", "/api/v1/secrets", typed + "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n",
			string(noise), 128 << 10},
		{"protobuf", "/metrics", "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.kubernetes.protobuf\r\nTransfer-Encoding: chunked\r\n\r\n", string(noise), 32 << 10},
		{"known length", "/api/v1/secrets", typed + "Content-Length: " + strconv.Itoa(len(noise)) + "\r\n\r\n",
			string(noise), 0},
		{"until the connection ends", "/api/v1/secrets", typed + "\r\n", string(noise), 0},
		{"log", "/api/v1/namespaces/team-a/pods/web/log?follow=true", chunkedHead, string(noise), 32 << 10},
		{"event of 30 KB", "/api/v1/secrets?watch=true", chunkedHead, event(30_000), 1 << 20},
		{"event of 900 KB", "/api/v1/secrets?watch=true", chunkedHead, event(900_000), 1 << 20},
		{"event of 100 KB, with defaults", watch, chunkedHead, event(100_000), 1 << 20},
		{"LIST, with defaults", widgetsPath, chunkedHead, list, 64 << 10},
	} {
		for _, burst := range []bool{false, true} {
			name := c.name
			if burst {
				name += ", at once"
			}
			t.Run(name, func(t *testing.T) {
				answer := c.head + c.body
				if c.chunk > 0 {
					answer = c.head + chunks(c.body, c.chunk)
				}
				records := answerByTLS(t, answer, burst)
				words := []string{"tls", "policies=widgets"}
				if !strings.Contains(c.target, "widgets") {
					words = []string{"tls", "kubernetes"}
				}
				g := gatewayFor(t, t.TempDir(), records.address, words)
				counted := &countingListener{}
				address := serveGateway(t, g, counted)
				nc, br := dial(t, h1test.SecureScheme+address)
				var raw bytes.Buffer
				if err := nc.(*tls.Conn).Handshake(); err != nil {
					t.Fatal(err)
				}
				before := counted.writes.Load()
				send(t, nc, "GET "+c.target+" HTTP/1.1\r\nHost: gw\r\n\r\n")
				r, err := http.ReadResponse(bufio.NewReader(io.TeeReader(br, &raw)), nil)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(r.Body)
				if at := bytes.LastIndex(body, []byte(`,"metadata":{"continue":""`)); at > 0 {
					body = append(body[:at], '}') // which the gateway adds to a LIST
				}
				if err != nil || string(body) != c.body {
					t.Fatalf("%d bytes came, %v; want %d", len(body), err, len(c.body))
				}
				_, framed, _ := bytes.Cut(raw.Bytes(), []byte("\r\n\r\n"))
				got := countChunks(framed, r.ContentLength < 0)
				writes := int(counted.writes.Load() - before)
				t.Logf("%d bytes in %d records of the backend: %d chunks, %d writes", len(c.body), records.count.Load(),
					got, writes)
				// Records of the gateway begin small on a connection, which makes a dozen more of them.
				if most := int(records.count.Load()) + 2; got > most || writes > 2*most+20 {
					t.Errorf("%d chunks and %d writes for %d records", got, writes, records.count.Load())
				}
				if most := len(c.body)/(16<<10) + 8; burst && got > most {
					t.Errorf("%d chunks of a body of %d bytes that arrived at once, want at most %d", got, len(c.body),
						most)
				}
			})
		}
	}
}

// countChunks counts the chunks of a body.
func countChunks(framed []byte, chunked bool) (n int) {
	if !chunked {
		return 1
	}
	for {
		line, rest, _ := bytes.Cut(framed, []byte("\r\n"))
		size, err := strconv.ParseInt(string(line), 16, 64)
		if err != nil || size == 0 {
			return n
		}
		framed = rest[size+2:]
		n++
	}
}

// recordCount counts the records that a backend sends by TLS.
type recordCount struct {
	address string
	count   atomic.Int64
}

// recording is a socket beneath TLS, which writes each record by itself. In a burst they are kept until all are there.
type recording struct {
	net.Conn
	count *atomic.Int64
	burst bool
	kept  []byte
}

func (c *recording) Write(p []byte) (int, error) {
	c.count.Add(1)
	if !c.burst {
		return c.Conn.Write(p)
	}
	c.kept = append(c.kept, p...)
	return len(p), nil
}

// answerByTLS is a backend that answers one request of each connection, and counts the records of the answer.
func answerByTLS(t *testing.T, answer string, burst bool) *recordCount {
	t.Helper()
	r := &recordCount{}
	pair := credentialstest.NewAuthority(t, "backends").Server(t, []string{"127.0.0.1"}).TLS(t)
	r.address = serveConns(t, func(socket net.Conn) {
		under := &recording{Conn: socket, count: &r.count}
		c := tls.Server(under, &tls.Config{Certificates: []tls.Certificate{pair}})
		if _, err := readHead(bufio.NewReader(c)); err != nil {
			return
		}
		r.count.Store(0)
		under.burst = burst
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
		_, _ = socket.Write(under.kept)
		under.burst = false
		_ = c.CloseWrite()
		_, _ = io.Copy(io.Discard, c)
	})
	return r
}

// countingListener counts the writes to the connections of a gateway.
type countingListener struct {
	net.Listener
	writes atomic.Int64
}

func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countedConn{c, l}, nil
}

type countedConn struct {
	net.Conn
	of *countingListener
}

func (c *countedConn) Write(p []byte) (int, error) {
	c.of.writes.Add(1)
	return c.Conn.Write(p)
}
