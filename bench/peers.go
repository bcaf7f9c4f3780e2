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
func servePeer(name, listen, backend string) error {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	switch name {
	case "backend":
		return serveBackend(listener)
	case "backend-tls":
		return serveSecureBackend(listener)
	case "fasthttp":
		return serveFasthttp(listener, backend)
	case "net-http":
		return serveNetHTTP(listener, backend)
	}
	return fmt.Errorf("no peer is named %q", name)
}

// serveFasthttp is the smallest proxy that fasthttp allows: one client, the request and the answer passed through.
func serveFasthttp(listener net.Listener, backend string) error {
	client := fasthttp.HostClient{
		Addr: backend, MaxConns: 1024, ReadBufferSize: peerBuffer, WriteBufferSize: peerBuffer,
		MaxIdemponentCallAttempts: 1, NoDefaultUserAgentHeader: true,
	}
	server := fasthttp.Server{
		ReadBufferSize: peerBuffer, WriteBufferSize: peerBuffer, NoDefaultServerHeader: true,
		Handler: func(ctx *fasthttp.RequestCtx) {
			if err := client.Do(&ctx.Request, &ctx.Response); err != nil {
				ctx.Error(err.Error(), fasthttp.StatusBadGateway)
			}
		},
	}
	return server.Serve(listener)
}

// serveNetHTTP is the standard library's reverse proxy with enough idle connections and pooled buffers.
func serveNetHTTP(listener net.Listener, backend string) error {
	target := &url.URL{Scheme: "http", Host: backend}
	proxy := &httputil.ReverseProxy{
		Rewrite:    func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:  &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true},
		BufferPool: &bufferPool{},
	}
	server := http.Server{Handler: proxy, ReadHeaderTimeout: time.Minute}
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

// serveBackend answers as cheaply as Go can, since it is not what is measured: a GET gets the benchmark's object, a
// POST gets its body back with 201 and a PUT with 200. The object is always of the same version, and what is written of the
// next. It understands what the proxies here send and nothing else.
func serveBackend(listener net.Listener) error {
	return answerConnections(listener, map[string][]byte{})
}

// answerConnections answers GETs that ask for no other form with the benchmark's object.
func answerConnections(listener net.Listener, forms map[string][]byte) error {
	forms[""] = append(appendHead(nil, http.StatusOK, 1, len(workloadJSON)), workloadJSON...)
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer func() { _ = conn.Close() }()
			// The error is the end of the connection: whoever opened it sees it too.
			_ = answerRequests(conn, forms)
		}()
	}
}

func answerRequests(conn net.Conn, forms map[string][]byte) error {
	in := bufio.NewReaderSize(conn, 256<<10)
	var out []byte
	for {
		code, length, form, err := readHead(in)
		if err != nil {
			return err
		}
		if length < 0 {
			if _, err := conn.Write(forms[form]); err != nil {
				return err
			}
			continue
		}
		out = appendHead(out[:0], code, 2, length)
		start := len(out)
		out = slices.Grow(out, length)[:start+length]
		if _, err := io.ReadFull(in, out[start:]); err != nil {
			return err
		}
		if _, err := conn.Write(out); err != nil {
			return err
		}
	}
}

// readHead reads a request's head and returns the code of its answer, the length of its body, or -1 without one, and the form
// that it asks for.
func readHead(in *bufio.Reader) (code, length int, form string, err error) {
	length = -1
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return 0, 0, "", err
		}
		if code == 0 {
			if bytes.Contains(line, []byte("form=")) {
				form = formOf(line)
			}
			if code = http.StatusOK; bytes.HasPrefix(line, []byte("POST ")) {
				code = http.StatusCreated
			}
			continue
		}
		if len(line) <= 2 {
			return code, length, form, nil
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		switch {
		case !ok:
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, 0, "", err
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			return 0, 0, "", errors.New("the benchmark's backend reads no chunked bodies")
		}
	}
}

func appendHead(to []byte, code, version, length int) []byte {
	return fmt.Appendf(to, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nETag: \"%d\"\r\nContent-Length: %d\r\n\r\n",
		code, http.StatusText(code), version, length)
}
