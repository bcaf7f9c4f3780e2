package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
)

// A Peer says how a server is known by TLS, and what is shown to it. What is in PEM is in memory, and not read again.
type Peer struct {
	// ServerName is asked for by SNI, and has to be in the certificate unless Names are given. Empty is the host of the
	// address.
	ServerName string
	// CAs are the authorities, in PEM; none is the system's.
	CAs []byte
	// Names are names of DNS and URIs of which the certificate must have one.
	Names []string
	// Chain and Key are the certificate that is shown, in PEM; none shows nothing.
	Chain, Key []byte
}

// ClientTLS returns how connections to the server are made.
func (p *Peer) ClientTLS() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: p.ServerName, NextProtos: []string{"http/1.1"},
		DynamicRecordSizingDisabled: true}
	if len(p.CAs) > 0 {
		var err error
		if c.RootCAs, err = ParsePool(p.CAs); err != nil {
			return nil, fmt.Errorf("the authorities of the backend cannot be used: %w", err)
		}
	}
	if len(p.Chain) > 0 {
		own, err := tls.X509KeyPair(p.Chain, p.Key)
		if err != nil {
			return nil, fmt.Errorf("the certificate for the backend cannot be used: %w", err)
		}
		c.Certificates = []tls.Certificate{own}
	}
	if len(p.Names) > 0 {
		c.InsecureSkipVerify = true // the chain and the names are verified below, the name of SNI is not
		c.VerifyConnection = func(s tls.ConnectionState) error { return p.verify(s.PeerCertificates, c.RootCAs) }
	}
	return c, nil
}

// verify returns an error unless a chain leads to an authority and the certificate has one of the names.
func (p *Peer) verify(shown []*x509.Certificate, roots *x509.CertPool) error {
	if len(shown) == 0 {
		return errors.New("the server shows no certificate")
	}
	o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, c := range shown[1:] {
		o.Intermediates.AddCert(c)
	}
	if _, err := shown[0].Verify(o); err != nil {
		return err
	}
	for _, name := range p.Names {
		if shown[0].VerifyHostname(name) == nil ||
			slices.ContainsFunc(shown[0].URIs, func(u *url.URL) bool { return u.String() == name }) {
			return nil
		}
	}
	return fmt.Errorf("the certificate of the server has none of the names %q", p.Names)
}
