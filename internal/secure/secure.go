// Package secure speaks TLS on connections that are waited for without a buffer, and read without
// waiting.
//
// A connection of crypto/tls can do neither: to learn that something has come is to read it, and a
// read waits until something comes. A proxy needs both. It waits for hours on connections that are
// silent, and then takes all that has arrived at once, for each read becomes a write of its own.
package secure

import (
	"crypto/tls"
	"io"
	"net"
)

// Conn is a connection with TLS on it. One goroutine at a time may read from it or wait.
type Conn struct {
	*tls.Conn
	gate gate
	// first is a byte that Wait or Buffered has read ahead of the next Read, if isAhead is set.
	first   [1]byte
	isAhead bool
}

// Client returns the client's end of TLS on a socket.
func Client(socket net.Conn, config *tls.Config) *Conn {
	c := &Conn{gate: gate{Conn: socket}}
	c.Conn = tls.Client(&c.gate, config)
	return c
}

// Server returns the server's end of TLS on a socket.
func Server(socket net.Conn, config *tls.Config) *Conn {
	c := &Conn{gate: gate{Conn: socket}}
	c.Conn = tls.Server(&c.gate, config)
	return c
}

// MayCarryHTTP2 reports whether version and cipher suite are ones that HTTP/2 may use: of TLS 1.2 those with ephemeral
// keys and authenticated encryption alone (RFC 9113, 9.2).
func (c *Conn) MayCarryHTTP2() bool {
	s := c.ConnectionState()
	if s.Version != tls.VersionTLS12 {
		return s.Version >= tls.VersionTLS13
	}
	switch s.CipherSuite {
	case tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256:
		return true
	}
	return false
}

// NetConn returns the socket.
func (c *Conn) NetConn() net.Conn { return c.gate.Conn }

// Wait waits until a Read would return bytes at once. Its error is the error of a Read: the end of
// the connection, the deadline, or what broke it.
func (c *Conn) Wait() error {
	if c.isAhead {
		return nil
	}
	n, err := c.Conn.Read(c.first[:])
	if c.isAhead = n > 0; c.isAhead {
		return nil
	}
	return err
}

// Read waits for bytes. After a Wait it reads all that have arrived, as far as there is room.
func (c *Conn) Read(p []byte) (int, error) {
	if c.isAhead {
		return c.ReadArrived(p)
	}
	return c.Conn.Read(p)
}

// ReadArrived reads what TLS has taken off the socket already, and does not ask the socket. It
// returns 0 and no error if there is nothing.
func (c *Conn) ReadArrived(p []byte) (n int, err error) {
	if c.isAhead && len(p) > 0 {
		c.isAhead = false
		n = copy(p, c.first[:])
	}
	for n < len(p) {
		m, err := c.readShut(p[n:])
		if n += m; err != nil && n == 0 {
			return 0, err
		}
		if m == 0 {
			break // an error behind bytes comes again with the next read
		}
	}
	return n, nil
}

// Buffered reports whether TLS has taken bytes off the socket that were not read yet. The error is
// the end of the connection, if TLS knows of it, or what broke it.
func (c *Conn) Buffered() (bool, error) {
	if c.isAhead {
		return true, nil
	}
	n, err := c.readShut(c.first[:])
	c.isAhead = n > 0
	return c.isAhead, err
}

// readShut reads what TLS has, with the gate to the socket shut.
func (c *Conn) readShut(p []byte) (int, error) {
	c.gate.shut = true
	n, err := c.Conn.Read(p)
	c.gate.shut = false
	if err == errShut {
		err = nil
	}
	return n, err
}

// HasEnded reports whether the other end has ended the connection, or broken it, as far as what has arrived shows: an
// end behind bytes that were not read yet does not. It takes what has arrived off the socket by a function that does
// not wait.
func (c *Conn) HasEnded(arrived func(p []byte) (n int, waits bool, err error)) bool {
	if c.isAhead {
		return false
	}
	c.gate.arrived = arrived
	n, err := c.Conn.Read(c.first[:])
	c.gate.arrived = nil
	c.isAhead = n > 0
	return err != nil && err != errShut
}

// gate is the socket as TLS sees it. While it is shut there seems to be nothing to read. While it has a function for
// what has arrived, that alone is read.
type gate struct {
	net.Conn
	shut    bool
	arrived func(p []byte) (n int, waits bool, err error)
}

func (g *gate) Read(p []byte) (int, error) {
	switch {
	case g.shut:
		return 0, errShut
	case g.arrived != nil:
		n, waits, err := g.arrived(p)
		switch {
		case waits:
			return 0, errShut
		case err == nil && n == 0:
			return 0, io.EOF
		}
		return n, err
	}
	return g.Conn.Read(p)
}

// errShut is the error of reads through a gate that is shut. TLS reads on after an error that is
// temporary; any other ends the connection.
var errShut net.Error = shutError{}

type shutError struct{}

func (shutError) Error() string   { return "nothing has arrived" }
func (shutError) Timeout() bool   { return true }
func (shutError) Temporary() bool { return true }
