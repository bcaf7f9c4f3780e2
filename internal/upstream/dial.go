package upstream

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/admission-gateway/gateway/internal/secure"
	"github.com/admission-gateway/gateway/internal/upstream/h2conn"
)

// dialer makes connections.
type dialer struct {
	config *Config
	net    net.Dialer
	secure bool
	tls    func() *tls.Config
	memory h2conn.Memory
}

// mayBeHTTP2 reports whether connections may be of HTTP/2.
func (d *dialer) mayBeHTTP2() bool {
	return d.config.Protocol == HTTP2 || d.config.Protocol == Auto && d.secure
}

// scheme returns that of requests.
func (d *dialer) scheme() string {
	if d.secure {
		return "https"
	}
	return "http"
}

// dial makes a connection to an endpoint. It is either one of HTTP/1.1 or one of HTTP/2.
func (d *dialer) dial(ctx context.Context, e *endpoint, timeout time.Duration,
	protocol Protocol) (*conn, *h2conn.Conn, error) {
	nd := d.net
	nd.Timeout = timeout
	by := time.Now().Add(timeout)
	nc, err := nd.DialContext(ctx, "tcp", e.Addr)
	if err != nil {
		return nil, nil, &dialError{err}
	}
	defer context.AfterFunc(ctx, func() { _ = nc.Close() })()
	cn := &conn{Conn: nc}
	cn.openSocket()
	multiplexed, err := d.agree(cn, e.Origin.Authority, protocol, by)
	if err != nil {
		_ = nc.Close()
		return nil, nil, &dialError{err}
	}
	if multiplexed != nil {
		return nil, multiplexed, nil
	}
	return cn, nil, nil
}

// agree puts TLS over the connection, and HTTP/2 if it is one of that.
func (d *dialer) agree(cn *conn, addr string, protocol Protocol, by time.Time) (*h2conn.Conn, error) {
	agreed := ""
	if d.secure {
		var err error
		if agreed, err = d.handshake(cn, addr, protocol.alpn(), by); err != nil {
			return nil, err
		}
	}
	isHTTP2, err := protocol.isHTTP2(agreed, d.secure)
	if !isHTTP2 || err != nil {
		return nil, err
	}
	return h2conn.New(cn.Conn, h2conn.Config{
		HeadBytes: d.config.HeadBytes, Ping: d.config.Timeouts.Ping, PingTimeout: d.config.Timeouts.PingAnswer,
		AsksSilent: d.config.Watches != nil, Write: d.config.Timeouts.Body,
		Memory: &d.memory,
	}, by)
}

// handshake puts TLS over the connection, and returns what was agreed on by ALPN.
func (d *dialer) handshake(cn *conn, addr string, alpn []string, by time.Time) (agreed string, err error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if d.tls != nil {
		config = d.tls()
	}
	if config.ServerName == "" || alpn != nil {
		config = config.Clone()
	}
	if config.ServerName == "" {
		if config.ServerName, _, err = net.SplitHostPort(addr); err != nil {
			return "", err
		}
	}
	if alpn != nil {
		config.NextProtos = alpn
	}
	if err := cn.SetDeadline(by); err != nil {
		return "", err
	}
	s := secure.Client(cn.Conn, config)
	if err := s.Handshake(); err != nil {
		return "", err
	}
	cn.Conn = s
	agreed = s.ConnectionState().NegotiatedProtocol
	if agreed == nameHTTP2 && !s.MayCarryHTTP2() {
		return "", errWeak
	}
	return agreed, cn.SetDeadline(time.Time{})
}
