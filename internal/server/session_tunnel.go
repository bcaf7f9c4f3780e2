package server

import (
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"io"
	"net"
	"time"

	"github.com/admission-gateway/gateway/internal/message"
)

// SendTunnel implements Exchange: a WebSocket goes on in the data of the stream (RFC 8441). The
// backend has answered to the handshake of HTTP/1.1.
func (x *streamExchange) SendTunnel(head, early []byte, backend net.Conn, closeBackend func()) bool {
	s := x.session
	answer, isRight := x.tunnelHead(head)
	if !isRight {
		closeBackend()
		var m message.Response
		m.StartBody(502, "text/plain",
			[]byte("the backend's answer to the handshake of WebSocket does not fit the request"))
		x.Send(&m)
		return false
	}
	x.answered = true
	client := &streamConn{x}
	t := tunnel{
		client: client, closeClient: client.abort, backend: backend, closeBackend: closeBackend,
		buffers: &s.server.buffers,
		idle:    s.server.settings.Load().UpgradeIdleTimeout, start: time.Now(),
	}
	x.sending.setTunnel(t.end)
	if s.server.flows(x) {
		t.end()
	}
	s.mu.Lock()
	x.sendHead(answer, nil, false)
	s.flush()
	s.mu.Unlock()
	t.run(nil, early)
	return true
}

// unopened puts an error in the place of an answer that a client would take for an open tunnel: to an extended CONNECT
// any 2xx means that (RFC 8441, 5).
func (x *streamExchange) unopened(m *message.Response) {
	if x.isExtended && m.Status()/100 == 2 {
		m.StartBody(502, "text/plain", []byte("the handshake of WebSocket was answered without opening one"))
	}
}

// websocketGUID is what a server adds to the nonce of a handshake (RFC 6455, 1.3).
const websocketGUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

// tunnelHead makes of the backend's answer the one to an extended CONNECT, without what belongs to the
// handshake of HTTP/1.1. It reports whether the backend has proved that it has read the request.
func (x *streamExchange) tunnelHead(head []byte) (answer []byte, isRight bool) {
	key, _ := x.request.Head.Lookup("Sec-WebSocket-Key")
	sum := sha1.Sum(append(bytes.Clone(key), websocketGUID...))
	want := base64.StdEncoding.EncodeToString(sum[:])
	answer = append(answer, "HTTP/1.1 200 OK\r\n"...)
	_, rest, _ := bytes.Cut(head, []byte("\r\n"))
	for {
		var line []byte
		if line, rest, _ = bytes.Cut(rest, []byte("\r\n")); len(line) == 0 {
			return append(answer, "\r\n"...), isRight
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if bytes.EqualFold(name, []byte("Sec-WebSocket-Accept")) {
			isRight = string(bytes.TrimSpace(value)) == want
			continue
		}
		answer = append(append(answer, line...), "\r\n"...)
	}
}

// A streamConn is a stream as a connection: its data are the bytes. It implements net.Conn but for deadlines,
// which a tunnel sets on sockets alone.
type streamConn struct{ exchange *streamExchange }

// Wait waits until a Read would not.
func (c *streamConn) Wait() error {
	x := c.exchange
	x.session.mu.Lock()
	defer x.session.mu.Unlock()
	for b := &x.body; b.read == len(b.bytes); x.changed.Wait() {
		switch {
		case b.err != nil:
			return b.err
		case x.isBodyOver:
			return io.EOF
		}
	}
	return nil
}

// Read implements net.Conn.
func (c *streamConn) Read(p []byte) (int, error) {
	if err := c.Wait(); err != nil {
		return 0, err
	}
	x := c.exchange
	x.session.mu.Lock()
	defer x.session.mu.Unlock()
	return x.readBody(p), nil
}

// Write implements net.Conn.
func (c *streamConn) Write(p []byte) (int, error) {
	s := c.exchange.session
	s.mu.Lock()
	defer s.mu.Unlock()
	err := c.exchange.sendData(p, false)
	s.flush()
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// CloseWrite ends the stream for the way to the client.
func (c *streamConn) CloseWrite() error {
	s := c.exchange.session
	s.mu.Lock()
	defer s.mu.Unlock()
	err := c.exchange.sendData(nil, true)
	s.flush()
	return err
}

// Close implements net.Conn. The stream ends when its handler returns.
func (c *streamConn) Close() error {
	s := c.exchange.session
	s.mu.Lock()
	defer s.mu.Unlock()
	c.exchange.giveUp()
	return nil
}

// abort closes the stream from another goroutine, without waiting.
func (c *streamConn) abort() {
	go func() { _ = c.Close() }()
}

// LocalAddr implements net.Conn.
func (c *streamConn) LocalAddr() net.Addr { return c.exchange.session.conn.socket.LocalAddr() }

// RemoteAddr implements net.Conn.
func (c *streamConn) RemoteAddr() net.Addr { return c.exchange.session.conn.socket.RemoteAddr() }

// SetDeadline implements net.Conn.
func (c *streamConn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (c *streamConn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (c *streamConn) SetWriteDeadline(time.Time) error { return nil }
