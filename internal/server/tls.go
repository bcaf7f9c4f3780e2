package server

import (
	"bytes"
	"crypto/tls"
	"errors"
	"time"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/secure"
)

// handshake puts TLS over the connection before its first request. It returns false if that ends
// the connection without an answer.
func (c *conn) handshake() bool {
	under := c.socket.Conn
	if !c.rest() {
		return false
	}
	// Tickets are the listener's. Without this each connection would have keys of its own too.
	over := secure.Server(under, &tls.Config{GetConfigForClient: c.makeFor, SessionTicketsDisabled: true})
	_ = under.SetDeadline(time.Now().Add(c.server.settings.Load().HeadTimeout))
	err := over.Handshake()
	_ = under.SetDeadline(time.Time{})
	if !c.state.wake() {
		return false
	}
	if err != nil {
		return c.handshakeFailed(err)
	}
	c.server.mu.Lock() // a shutdown closes the socket that it finds
	c.socket.putOver(over)
	c.made = c.peer.Made
	c.server.mu.Unlock()
	c.peer.Proto = "https"
	c.peer.Shown = over.ConnectionState().PeerCertificates
	return true
}

// makeFor chooses the listener for which the connection is made. A client that asks for a name that none takes learns
// so by a configuration without certificates.
func (c *conn) makeFor(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	l := c.at.Made(hello.ServerName)
	if l == nil {
		return &tls.Config{MinVersion: tls.VersionTLS12}, nil
	}
	c.peer.Made, c.peer.HasName = l, hello.ServerName != ""
	return l.TLS.Get().Config, nil
}

// handshakeFailed ends a connection, except one whose client speaks plain HTTP: it gets an answer
// that says so.
func (c *conn) handshakeFailed(err error) bool {
	c.server.settings.Load().HandshakeFailed()
	c.server.settings.Load().Log.Debug("a TLS handshake failed", "peer", c.peer.IP, "cause", err)
	var other tls.RecordHeaderError
	if !errors.As(err, &other) || other.Conn == nil || !isHTTP(other.RecordHeader[:]) {
		return false
	}
	x := c.newExchange()
	x.refuse(&message.Error{Code: 400, Message: "the client sent an HTTP request to an HTTPS server"})
	x.headOnly = bytes.HasPrefix(other.RecordHeader[:], []byte("HEAD "))
	return true
}

// isHTTP reports whether a connection that starts with these bytes starts with a method.
func isHTTP(start []byte) bool {
	for _, m := range []string{"GET /", "HEAD ", "POST ", "PUT /", "PATCH", "DELET", "OPTIO"} {
		if string(start) == m {
			return true
		}
	}
	return false
}
