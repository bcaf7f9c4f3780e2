package upstream

import (
	"crypto/tls"
	"net"
	"time"

	"github.com/admission-gateway/gateway/internal/secure"
)

// dialer makes connections.
type dialer struct {
	net    net.Dialer
	secure bool
	tls    func() *tls.Config
}

// dial makes a connection to an endpoint.
func (d *dialer) dial(e *endpoint, timeout time.Duration) (*conn, error) {
	nd := d.net
	nd.Timeout = timeout
	by := time.Now().Add(timeout)
	nc, err := nd.Dial("tcp", e.Addr)
	if err != nil {
		return nil, &dialError{err}
	}
	cn := &conn{Conn: nc}
	cn.socket.open(nc)
	if d.secure {
		if err := d.handshake(cn, e.Origin.Authority, by); err != nil {
			_ = nc.Close()
			return nil, &dialError{err}
		}
	}
	return cn, nil
}

// handshake puts TLS over the connection.
func (d *dialer) handshake(cn *conn, addr string, by time.Time) error {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if d.tls != nil {
		config = d.tls()
	}
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return err
		}
		config = config.Clone()
		config.ServerName = host
	}
	if err := cn.SetDeadline(by); err != nil {
		return err
	}
	s := secure.Client(cn.Conn, config)
	if err := s.Handshake(); err != nil {
		return err
	}
	cn.Conn = s
	return cn.SetDeadline(time.Time{})
}
