package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// Server holds the certificate that a TLS listener shows, and the authority for clients' certificates.
type Server struct {
	// Config is for handshakes.
	Config *tls.Config
	// ClientCAs are the authorities that sign the certificates of clients; nil if none are asked
	// for.
	ClientCAs *x509.CertPool
}

// ServerFiles name its files.
type ServerFiles struct {
	// Cert and Key are a PEM file with a certificate and the intermediate ones after it, and one with its key.
	Cert, Key string
	// More are further certificates, for the names that they have.
	More []CertFiles
	// ClientCA is a PEM file with the authorities that sign the certificates of clients; empty asks for none.
	ClientCA string
	// ClientAuth is how clients are asked for a certificate.
	ClientAuth tls.ClientAuthType
	// MinVersion is the least version of TLS.
	MinVersion uint16
	// HasHTTP2 offers HTTP/2 beside HTTP/1.1.
	HasHTTP2 bool
}

// CertFiles name a PEM file with a certificate and the intermediate ones after it, and one with its key.
type CertFiles struct{ Cert, Key string }

// ServerPEM is what the files of a listener hold.
type ServerPEM struct {
	// Certificates are chains with their keys. The first is the default.
	Certificates []CertPEM
	// ClientCAs are the authorities that sign the certificates of clients; none asks for no certificate.
	ClientCAs  []byte
	ClientAuth tls.ClientAuthType
	MinVersion uint16
	HasHTTP2   bool
}

// CertPEM is a certificate with the intermediate ones after it, and its key.
type CertPEM struct{ Chain, Key []byte }

// WatchServer reads the files of a listener and keeps what they make up to date.
func WatchServer(w *Watcher, name string, f ServerFiles) (*Value[*Server], error) {
	files := []string{f.ClientCA, f.Cert, f.Key}
	for _, one := range f.More {
		files = append(files, one.Cert, one.Key)
	}
	return Watch(w, name, files, func(contents [][]byte) (*Server, error) {
		held := ServerPEM{ClientCAs: contents[0], ClientAuth: f.ClientAuth, MinVersion: f.MinVersion,
			HasHTTP2: f.HasHTTP2}
		for i := 1; i < len(files); i += 2 {
			held.Certificates = append(held.Certificates, CertPEM{contents[i], contents[i+1]})
		}
		return held.server(f.ClientCA != "", func(i int) string {
			return fmt.Sprintf("the certificate in '%s' and the key in '%s'", files[2*i+1], files[2*i+2])
		}, fmt.Sprintf("the authorities in '%s'", f.ClientCA))
	})
}

// NewServer returns what a listener shows whose certificates are in no files. It never changes; the Watcher knows when
// they expire.
func NewServer(w *Watcher, name string, held *ServerPEM) (*Value[*Server], error) {
	s, err := held.server(len(held.ClientCAs) > 0,
		func(i int) string { return fmt.Sprintf("certificate %d and its key", i+1) }, "the authorities of clients")
	if err != nil {
		return nil, err
	}
	chains := [][]byte{held.ClientCAs}
	for _, one := range held.Certificates {
		chains = append(chains, one.Chain)
	}
	return hold(w, name, s, chains), nil
}

// server makes a Server. The words name a certificate, and the authorities, in errors.
func (p *ServerPEM) server(hasClientCAs bool, certificate func(i int) string, authorities string) (*Server, error) {
	var certs certificates
	for i, one := range p.Certificates {
		pair, err := tls.X509KeyPair(one.Chain, one.Key)
		if err != nil {
			return nil, fmt.Errorf("%s cannot be used: %w", certificate(i), err)
		}
		certs.add(&pair)
	}
	if len(certs.all) == 0 {
		return nil, errors.New("there is no certificate")
	}
	config := &tls.Config{
		GetCertificate: certs.choose,
		MinVersion:     p.MinVersion,
		NextProtos:     []string{"http/1.1"},
		ClientAuth:     p.ClientAuth,
		// Small records would show the first bytes sooner; but clients read JSON only as a
		// whole, and each is a system call.
		DynamicRecordSizingDisabled: true,
	}
	// Tickets are of this listener's own keys: a session that another listener has begun, which may ask for no
	// certificate, is not resumed.
	config.WrapSession = config.EncryptTicket
	config.UnwrapSession = config.DecryptTicket
	if p.HasHTTP2 {
		config.NextProtos = []string{"h2", "http/1.1"}
	}
	s := &Server{Config: config}
	if hasClientCAs {
		var err error
		if s.ClientCAs, err = ParsePool(p.ClientCAs); err != nil {
			return nil, fmt.Errorf("%s cannot be used: %w", authorities, err)
		}
		config.ClientCAs = s.ClientCAs
	}
	return s, nil
}

// ParsePool makes a pool of the certificates in PEM. Other than x509.CertPool.AppendCertsFromPEM it leaves none out
// that cannot be read: an authority that is missing is found when the file is, not when a client of its is refused.
func ParsePool(text []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	n := 0
	for len(text) > 0 {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", n+1, err)
		}
		pool.AddCert(c)
		n++
	}
	if n == 0 {
		return nil, errors.New("must hold at least one certificate in PEM")
	}
	return pool, nil
}

// Verify returns the chain from the certificate that a client has shown, which comes first, to one of the authorities.
// The client has proved by the handshake that it has the key.
func (s *Server) Verify(shown []*x509.Certificate, at time.Time) ([]*x509.Certificate, error) {
	if len(shown) == 0 {
		return nil, nil
	}
	o := x509.VerifyOptions{Roots: s.ClientCAs, CurrentTime: at, Intermediates: x509.NewCertPool(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if o.Roots == nil {
		o.Roots = x509.NewCertPool() // not the system's
	}
	for _, c := range shown[1:] {
		o.Intermediates.AddCert(c)
	}
	chains, err := shown[0].Verify(o)
	if err != nil {
		return nil, err
	}
	return chains[0], nil
}
