package h1test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// A Recorder is a backend that notes every byte that it receives. It answers
// what looks like a request with reply, which each test may set.
type Recorder struct {
	net.Listener
	scheme string
	mu     sync.Mutex
	got    bytes.Buffer
	// Reply answers the n-th request of a connection; what it returns is
	// written, and the connection is closed unless keep is set. The default is
	// a small JSON object.
	Reply func(n int, head, body string) (answer string, keep bool)
}

// SmallReply is the answer of a backend that has nothing to say.
const SmallReply = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"

// NewRecorder starts a backend that answers as Reply says.
func NewRecorder(t testing.TB) *Recorder {
	t.Helper()
	ln := ListenBackend(t)
	r := &Recorder{Listener: ln, scheme: BackendScheme(t),
		Reply: func(int, string, string) (string, bool) { return SmallReply, true }}
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			go r.serve(nc)
		}
	}()
	t.Cleanup(func() { _ = ln.Close() })
	return r
}

// URL returns the address of the backend.
func (r *Recorder) URL() string { return r.scheme + r.Addr().String() }

// Take returns what arrived since the last call, without ids that a gateway has made up for requests.
func (r *Recorder) Take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.got.Reset()
	return testutil.WithoutMadeIDs(r.got.String())
}

func (r *Recorder) serve(nc net.Conn) {
	defer func() { _ = nc.Close() }()
	br := bufio.NewReader(noted{nc, r})
	for n := 0; ; n++ {
		var head strings.Builder
		length := 0
		for {
			line, err := br.ReadString('\n')
			head.WriteString(line)
			if err != nil {
				return
			}
			if v, ok := strings.CutPrefix(line, "Content-Length: "); ok {
				length, _ = strconv.Atoi(strings.TrimSpace(v))
			}
			if line == "\r\n" {
				break
			}
		}
		var body []byte
		var err error
		if strings.Contains(head.String(), "\r\nTransfer-Encoding: chunked\r\n") {
			body, err = io.ReadAll(httputil.NewChunkedReader(br))
			_, _ = br.ReadString('\n') // the empty line behind the last chunk
		} else {
			body = make([]byte, length)
			_, err = io.ReadFull(br, body)
		}
		if err != nil {
			return
		}
		answer, keep := r.Reply(n, head.String(), string(body))
		if _, err := io.WriteString(nc, answer); err != nil || !keep {
			return
		}
	}
}

// noted is a connection whose bytes are noted as they are read.
type noted struct {
	net.Conn
	r *Recorder
}

func (c noted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.r.mu.Lock()
	c.r.got.Write(p[:n])
	c.r.mu.Unlock()
	return n, err
}

// Driven starts a backend whose connections the test itself drives.
func Driven(t *testing.T) (url string, conns chan net.Conn) {
	t.Helper()
	ln := ListenBackend(t)
	conns = make(chan net.Conn, 8)
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			_ = nc.SetDeadline(time.Now().Add(testutil.Patience))
			conns <- nc
		}
	}()
	t.Cleanup(func() { _ = ln.Close() })
	return BackendScheme(t) + ln.Addr().String(), conns
}

// Accept takes the next connection of the gateway and the request on it.
func Accept(t *testing.T, conns chan net.Conn) (net.Conn, *bufio.Reader) {
	t.Helper()
	nc := <-conns
	t.Cleanup(func() { _ = nc.Close() })
	br := bufio.NewReader(nc)
	if _, err := http.ReadRequest(br); err != nil {
		t.Fatal(err)
	}
	return nc, br
}

// Replying starts a backend that answers whatever comes with the same bytes and
// allocates nothing.
func Replying(b *testing.B, answer string) (url string) {
	b.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = nc.Close() }()
				buf, out := make([]byte, 64<<10), []byte(answer)
				for {
					if _, err := nc.Read(buf); err != nil {
						return
					}
					if _, err := nc.Write(out); err != nil {
						return
					}
				}
			}()
		}
	}()
	return "http://" + ln.Addr().String()
}
