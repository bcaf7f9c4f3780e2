package proxy

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/wire"
)

// TLSFiles are the files of a listener that speaks TLS.
func TLSFiles(t *config.ListenerTLS) credentials.ServerFiles {
	f := credentials.ServerFiles{Cert: t.CertFile, Key: t.KeyFile, ClientCA: t.ClientCAFile, MinVersion: tls.VersionTLS12}
	if t.MinVersion == config.VersionTLS13 {
		f.MinVersion = tls.VersionTLS13
	}
	switch t.ClientCertificates {
	case config.RequestCertificates:
		// The gateway verifies what is shown itself: who shows a certificate that nobody signed is not who they say they
		// are, which the answer to their request can tell better than a handshake that fails.
		f.ClientAuth = tls.RequestClientCert
	case config.RequireCertificates:
		f.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return f
}

// clientCertificate is what the client has shown in the handshake, and what is thought of it.
type clientCertificate struct {
	shown []*x509.Certificate
	by    *credentials.Server // whose authorities were asked
	until time.Time           // when that must be thought over
	chain []*x509.Certificate
	err   error
}

// clientCertificates returns the chain from the client's own certificate, which comes first, to one of the authorities of
// tls.clientCAFile; nil where the client has shown none. The error says why the one that it has shown proves nothing; it is
// for logs. A certificate that expires, or whose authority is taken out of the file, proves nothing from then on, however
// long the connection lasts.
func (c *conn) clientCertificates() ([]*x509.Certificate, error) {
	k := &c.certificate
	if len(k.shown) == 0 {
		return nil, nil
	}
	if by, now := c.server.o.TLS.Get(), time.Now(); by != k.by || now.After(k.until) {
		k.by = by
		k.chain, k.err = by.Verify(k.shown, now)
		k.until = now.Add(time.Minute) // one that is not valid yet becomes so
		for _, one := range k.chain {
			if one.NotAfter.Before(k.until) {
				k.until = one.NotAfter
			}
		}
	}
	return k.chain, k.err
}

// handshake puts TLS over the connection, in the goroutine that serves it and before its first request. It returns false
// where that ends the connection. fasthttp takes no part in it.
func (c *conn) handshake() bool {
	socket := c.Conn
	c.state.Store(connIdle) // a shutdown does not wait for it
	if c.server.stopping.Load() {
		return false
	}
	secure := tls.Server(socket, c.server.o.TLS.Get().Config)
	_ = socket.SetDeadline(time.Now().Add(c.server.o.HeadTimeout))
	err := secure.Handshake()
	_ = socket.SetDeadline(time.Time{})
	if !c.state.CompareAndSwap(connIdle, connActive) {
		return false
	}
	if err != nil {
		return c.handshakeFailed(err)
	}
	c.server.mu.Lock() // a shutdown closes what it finds there
	c.Conn = secure
	c.server.mu.Unlock()
	c.proto = "https"
	c.certificate.shown = secure.ConnectionState().PeerCertificates
	return true
}

// handshakeFailed ends a connection, but for one whose client speaks plain HTTP: it is answered, and told so.
func (c *conn) handshakeFailed(err error) bool {
	c.server.o.HandshakeFailed()
	c.server.o.Log.Debug("a TLS handshake failed", "peer", c.peerIP, "cause", err)
	var other tls.RecordHeaderError
	if !errors.As(err, &other) || other.Conn == nil || !speaksHTTP(other.RecordHeader[:]) {
		return false
	}
	c.refuse(&wire.Error{Code: 400, Message: "the client sent an HTTP request to an HTTPS server"})
	c.headOnly = bytes.HasPrefix(other.RecordHeader[:], []byte("HEAD "))
	return true
}

// speaksHTTP tells whether the first bytes of a connection are those of a method.
func speaksHTTP(start []byte) bool {
	for _, m := range []string{"GET /", "HEAD ", "POST ", "PUT /", "PATCH", "DELET", "OPTIO"} {
		if string(start) == m {
			return true
		}
	}
	return false
}

// cut closes the connection from another goroutine, and waits for nothing.
func (c *conn) cut() {
	if secure, ok := c.Conn.(*tls.Conn); ok {
		go func() { _ = secure.Close() }() // it tells the client first, who may not listen
		return
	}
	_ = c.Conn.Close()
}

// onSecureClientClose is onClientClose for TLS. Only decryption tells the end of a connection from more bytes, so one byte
// is read; it is the first of the next request where there is one.
func (c *conn) onSecureClientClose(gone func()) (stop func()) {
	if c.r < c.w {
		return func() {}
	}
	c.setReadDeadline(time.Time{})
	done := make(chan struct{})
	var next [1]byte
	n := 0
	go func() {
		defer close(done)
		var err error
		if n, err = c.Conn.Read(next[:]); n == 0 && !isTimeout(err) {
			gone()
		}
	}()
	return func() {
		c.setReadDeadline(time.Unix(1, 0))
		<-done
		c.setReadDeadline(time.Time{})
		if n == 0 {
			return
		}
		c.borrow()
		if c.w == len(c.buf) {
			// The request fills the buffer, and is in use for as long as it is served.
			c.buf = append(make([]byte, 0, len(c.buf)+readBuffer), c.buf...)[:len(c.buf)+readBuffer]
		}
		c.buf[c.w] = next[0]
		c.w++
	}
}
