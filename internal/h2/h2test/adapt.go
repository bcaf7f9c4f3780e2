package h2test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"strings"
	"testing"

	"golang.org/x/net/http2"
)

// ErrOnlyHTTP1 is the error of a request that HTTP/2 has no form for.
var ErrOnlyHTTP1 = errors.New("the request has no form in HTTP/2")

// Translate returns the fields and the body of a request of HTTP/1.1.
func Translate(request []byte) (fields []string, body []byte, err error) {
	head, rest, found := bytes.Cut(request, []byte("\r\n\r\n"))
	lines := strings.Split(string(head), "\r\n")
	line := strings.Split(lines[0], " ")
	if !found || len(line) != 3 || line[2] != "HTTP/1.1" || !strings.HasPrefix(line[1], "/") ||
		strings.ToUpper(line[0]) != line[0] {
		return nil, nil, ErrOnlyHTTP1
	}
	fields = []string{":method: " + line[0], ":scheme: http", ":path: " + line[1]}
	var others []string
	isChunked := false
	for _, l := range lines[1:] {
		name, value, _ := strings.Cut(l, ":")
		switch name, value = strings.ToLower(name), strings.TrimSpace(value); name {
		case "host":
			fields = append(fields, ":authority: "+value)
		case "transfer-encoding":
			isChunked = true
		case "connection", "upgrade", "te", "keep-alive", "expect", "proxy-connection", "http2-settings":
			return nil, nil, ErrOnlyHTTP1
		default:
			others = append(others, name+": "+value)
		}
	}
	if body = rest; isChunked {
		if body, err = io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(rest))); err != nil {
			return nil, nil, ErrOnlyHTTP1
		}
	}
	return append(fields, others...), body, nil
}

// Adapt returns a connection to which one request of HTTP/1.1 is written, whole and at once. It is sent by HTTP/2, and
// the answer comes back as one of HTTP/1.1: each frame of data is a chunk if the answer has no length.
func Adapt(t testing.TB, addr string) net.Conn {
	near, far := net.Pipe()
	c := Dial(t, addr)
	go func() {
		defer func() { _ = far.Close() }()
		if err := c.adapt(far); err != nil {
			t.Error(err)
		}
	}()
	return near
}

func (c *Client) adapt(far net.Conn) error {
	request, err := readMessage(bufio.NewReader(far))
	if err != nil {
		return err
	}
	fields, body, err := Translate(request)
	if err != nil {
		return err
	}
	isEnd := len(body) == 0
	err = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.Block(fields...), EndStream: isEnd,
		EndHeaders: true})
	for first := true; err == nil && (len(body) > 0 || first && !isEnd); first = false {
		n := min(len(body), 16<<10)
		err = c.WriteData(1, n == len(body), body[:n])
		body = body[n:]
	}
	if err != nil {
		return err
	}
	return c.relay(far, strings.HasPrefix(string(request), "HEAD "))
}

// relay writes the answer.
func (c *Client) relay(to io.Writer, isHead bool) error {
	isChunked := false
	for {
		e, err := c.Next()
		if err != nil {
			return err
		}
		var b bytes.Buffer
		switch {
		case e.Stream != 1:
			continue
		case len(e.Fields) > 0 && strings.HasPrefix(e.Fields[0], ":status: 1"):
			continue
		case len(e.Fields) > 0 && strings.HasPrefix(e.Fields[0], ":status: "):
			code := 0
			// the comparison shows what is no code
			_, _ = fmt.Sscan(strings.TrimPrefix(e.Fields[0], ":status: "), &code)
			fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", code, http.StatusText(code))
			hasLength := isHead || code == 204 || code == 304
			for _, f := range e.Fields[1:] {
				name, value, _ := strings.Cut(f, ": ")
				hasLength = hasLength || name == "content-length"
				fmt.Fprintf(&b, "%s: %s\r\n", textproto.CanonicalMIMEHeaderKey(name), value)
			}
			if isChunked = !hasLength; isChunked {
				b.WriteString("Transfer-Encoding: chunked\r\n")
			}
			b.WriteString("\r\n")
		case len(e.Data) > 0 && isChunked:
			fmt.Fprintf(&b, "%x\r\n%s\r\n", len(e.Data), e.Data)
		default:
			b.WriteString(e.Data)
		}
		if n := uint32(len(e.Data)); n > 0 {
			err = errors.Join(c.WriteWindowUpdate(0, n), c.WriteWindowUpdate(1, n))
		}
		if e.IsEnd && isChunked {
			b.WriteString("0\r\n\r\n")
		}
		if _, failed := to.Write(b.Bytes()); failed != nil {
			return nil // the test has read enough
		}
		if e.IsEnd || e.Code != 0 || err != nil {
			return err
		}
	}
}

// readMessage reads a request to its end.
func readMessage(r *bufio.Reader) ([]byte, error) {
	var b bytes.Buffer
	for !bytes.HasSuffix(b.Bytes(), []byte("\r\n\r\n")) {
		line, err := r.ReadBytes('\n')
		if b.Write(line); err != nil {
			return nil, err
		}
	}
	head := strings.ToLower(b.String())
	var length int64
	if i := strings.Index(head, "content-length:"); i >= 0 {
		_, _ = fmt.Sscan(head[i+len("content-length:"):], &length) // a length that is none is sent without a body
	}
	if strings.Contains(head, "transfer-encoding: chunked") {
		for !bytes.HasSuffix(b.Bytes(), []byte("\r\n0\r\n\r\n")) &&
			!bytes.HasSuffix(b.Bytes(), []byte("\r\n\r\n0\r\n\r\n")) {
			line, err := r.ReadBytes('\n')
			if b.Write(line); err != nil {
				return nil, err
			}
		}
	}
	_, err := io.CopyN(&b, r, length)
	return b.Bytes(), err
}
