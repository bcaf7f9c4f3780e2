package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// peerBuffer is the read and write buffer of the Go peers, in bytes; it holds a whole request or answer.
const peerBuffer = 16 << 10

// servePeer runs one of the servers that this program brings itself, in a process of its own. It returns only with an
// error.
func servePeer(name, listen, backend, certificate string) error {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	switch name {
	case "backend":
		return serveBackend(listener)
	case "backend-tls":
		return serveSecureBackend(listener)
	case "backend-grpc":
		return serveGRPCBackend(listener)
	case "fasthttp":
		return serveFasthttp(listener, backend, atOnce)
	case "fasthttp-turns":
		return serveFasthttp(listener, backend, inTurn())
	case "net-http":
		return serveNetHTTP(listener, backend, certificate)
	}
	return fmt.Errorf("no peer is named %q", name)
}

// atOnce lets exchanges come as the clients ask for them.
func atOnce(exchange func()) { exchange() }

// inTurn returns a function that lets exchanges come one after the other.
func inTurn() func(exchange func()) {
	var turn sync.Mutex
	return func(exchange func()) {
		turn.Lock()
		defer turn.Unlock()
		exchange()
	}
}

// serveFasthttp is the smallest proxy that fasthttp allows: one client, the request and the answer passed through. It
// calls lead with each exchange with the backend. A proxy whose writes to one object may not meet has them come in
// turn.
func serveFasthttp(listener net.Listener, backend string, lead func(exchange func())) error {
	client := fasthttp.HostClient{
		Addr: backend, MaxConns: 1024, ReadBufferSize: peerBuffer, WriteBufferSize: peerBuffer,
		MaxIdemponentCallAttempts: 1, NoDefaultUserAgentHeader: true,
	}
	server := fasthttp.Server{
		ReadBufferSize: peerBuffer, WriteBufferSize: peerBuffer, NoDefaultServerHeader: true,
		Handler: func(ctx *fasthttp.RequestCtx) {
			lead(func() {
				if err := client.Do(&ctx.Request, &ctx.Response); err != nil {
					ctx.Error(err.Error(), fasthttp.StatusBadGateway)
				}
			})
		},
	}
	return server.Serve(listener)
}

// serveNetHTTP is the standard library's reverse proxy with enough idle connections and pooled buffers. Its clients may
// speak HTTP/2. With the name of a certificate's files it speaks TLS.
func serveNetHTTP(listener net.Listener, backend, certificate string) error {
	target := &url.URL{Scheme: "http", Host: backend}
	proxy := &httputil.ReverseProxy{
		Rewrite:    func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:  &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true},
		BufferPool: &bufferPool{},
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	server := http.Server{Handler: proxy, ReadHeaderTimeout: time.Minute, Protocols: protocols}
	if certificate != "" {
		return server.ServeTLS(listener, certificate+".crt", certificate+".key")
	}
	return server.Serve(listener)
}

// bufferPool lends the reverse proxy its copy buffers.
type bufferPool struct{ pool sync.Pool }

func (p *bufferPool) Get() []byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, 32<<10)
}

func (p *bufferPool) Put(b []byte) { p.pool.Put(&b) }

// serveBackend answers as cheaply as Go can, since it is not measured: a GET gets the benchmark's
// object by the name that the path asks for, a POST gets its body back with 201, a PUT or PATCH
// with 200. The object is always of the same version, and what is written of the next, but for the one
// object that many write at the same time, which is kept. It understands the requests of the proxies
// here and no others.
func serveBackend(listener net.Listener) error {
	return answerConnections(listener, map[string][]byte{})
}

// answerConnections answers GETs that ask for no other form with the benchmark's object.
func answerConnections(listener net.Listener, forms map[string][]byte) error {
	kept := &contested{version: 1, body: bytes.Replace(workloadJSON, []byte(objectName), []byte(contestedName), 1)}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer func() { _ = conn.Close() }()
			// The error is the end of the connection: the client sees it too.
			_ = answerRequests(conn, forms, kept)
		}()
	}
}

// beforeName and afterName are the benchmark's object without its name.
var beforeName, afterName, _ = bytes.Cut(workloadJSON, []byte(objectName))

// contested is the object that many write at the same time.
type contested struct {
	mu      sync.Mutex
	version int
	body    []byte
}

// answer carries out a request, and appends the answer. Without a body it is a GET.
func (c *contested) answer(to []byte, a *asked, body []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if body != nil {
		if len(a.match) > 0 && string(a.match) != strconv.Quote(strconv.Itoa(c.version)) {
			return appendHead(to, http.StatusPreconditionFailed, c.version, 0)
		}
		c.version++
		c.body = append(c.body[:0], body...)
	}
	return append(appendHead(to, http.StatusOK, c.version, len(c.body)), c.body...)
}

// An asked has what matters of a request's head.
type asked struct {
	code   int    // of the answer
	length int    // of the request's body; -1 without one
	form   string // of the answer
	name   []byte // of the object
	match  []byte // If-Match
}

func answerRequests(conn net.Conn, forms map[string][]byte, kept *contested) error {
	in := bufio.NewReaderSize(conn, 256<<10)
	var out []byte
	var a asked
	for {
		if err := a.readHead(in); err != nil {
			return err
		}
		if a.length < 0 && a.form != "" {
			if _, err := conn.Write(forms[a.form]); err != nil {
				return err
			}
			continue
		}
		isKept := string(a.name) == contestedName
		if isKept && a.length < 0 {
			out = kept.answer(out[:0], &a, nil)
		} else if a.length < 0 {
			out = appendHead(out[:0], a.code, 1, len(beforeName)+len(a.name)+len(afterName))
			out = append(append(append(out, beforeName...), a.name...), afterName...)
		} else {
			out = appendHead(out[:0], a.code, 2, a.length)
			start := len(out)
			out = slices.Grow(out, a.length)[:start+a.length]
			if _, err := io.ReadFull(in, out[start:]); err != nil {
				return err
			}
			if isKept {
				out = kept.answer(nil, &a, out[start:])
			}
		}
		if _, err := conn.Write(out); err != nil {
			return err
		}
	}
}

// readHead reads a request's head.
func (a *asked) readHead(in *bufio.Reader) error {
	a.code, a.length, a.form, a.match = 0, -1, "", a.match[:0]
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if a.code == 0 {
			a.readLine(line)
			continue
		}
		if len(line) <= 2 {
			return nil
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		switch {
		case !ok:
		case bytes.EqualFold(name, []byte("Content-Length")):
			if a.length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		case bytes.EqualFold(name, []byte("If-Match")):
			a.match = append(a.match, bytes.TrimSpace(value)...)
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			return errors.New("the benchmark's backend reads no chunked bodies")
		}
	}
}

// readLine reads the first line of a request. A path without a name asks for the object as it is.
func (a *asked) readLine(line []byte) {
	if bytes.Contains(line, []byte("form=")) {
		a.form = formOf(line)
	}
	if a.code = http.StatusOK; bytes.HasPrefix(line, []byte("POST ")) {
		a.code = http.StatusCreated
	}
	a.name = append(a.name[:0], objectName...)
	if _, rest, ok := bytes.Cut(line, []byte(collection+"/")); ok {
		if end := bytes.IndexAny(rest, " ?/"); end > 0 {
			a.name = append(a.name[:0], rest[:end]...)
		}
	}
}

func appendHead(to []byte, code, version, length int) []byte {
	return fmt.Appendf(to, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nETag: \"%d\"\r\nContent-Length: %d\r\n\r\n",
		code, http.StatusText(code), version, length)
}
