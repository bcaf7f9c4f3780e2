package server

import (
	"crypto/x509"
	"net"
	"net/netip"
	"time"

	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/listeners"
)

// A Peer is the other end of a connection: a client, or a proxy that speaks for clients. Only the
// handler of the connection's request may use it.
type Peer struct {
	Addr netip.Addr
	IP   string // Addr as text
	// IsTrusted reports whether the peer may say who the client is.
	IsTrusted bool
	Proto     string // http or https
	// Shown are the certificates that the peer has shown by TLS, its own first.
	Shown []*x509.Certificate
	// At is what the peer has connected to.
	At *listeners.Socket
	// Made is the listener for which TLS was made on the connection; nil without TLS. HasName is set if the peer has
	// asked for a name (SNI).
	Made    *listeners.Listener
	HasName bool
	// Kept is the handler's own, for as long as the connection lasts.
	Kept any

	verdict verdict
}

// A verdict says what Shown proves, for a while.
type verdict struct {
	by    *credentials.Server // whose authorities were asked
	until time.Time
	chain []*x509.Certificate
	err   error
}

func peerOf(nc net.Conn, at *listeners.Socket) Peer {
	p := Peer{Proto: "http", At: at}
	if addr, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		p.is(addr.AddrPort().Addr())
	}
	return p
}

// is notes the address of the peer.
func (p *Peer) is(addr netip.Addr) {
	p.Addr = addr.Unmap().WithZone("")
	p.IP = p.Addr.String()
}

// HasTLS reports whether the connection has TLS.
func (p *Peer) HasTLS() bool { return p.Made != nil }

// Chain returns the chain from the peer's own certificate, which comes first, to one of the
// authorities of the listener; nil if the peer has shown none. The error says why the certificate
// proves nothing; it is for logs. A certificate that expires, or whose authority is taken out of
// the file, proves nothing from then on, however long the connection lasts.
func (p *Peer) Chain() ([]*x509.Certificate, error) {
	if len(p.Shown) == 0 {
		return nil, nil
	}
	v := &p.verdict
	if by, now := p.Made.TLS.Get(), time.Now(); by != v.by || now.After(v.until) {
		v.by = by
		v.chain, v.err = by.Verify(p.Shown, now)
		v.until = now.Add(time.Minute) // a certificate that is not valid yet becomes so
		for _, one := range v.chain {
			if one.NotAfter.Before(v.until) {
				v.until = one.NotAfter
			}
		}
	}
	return v.chain, v.err
}
