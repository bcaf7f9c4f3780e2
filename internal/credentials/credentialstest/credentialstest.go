// Package credentialstest makes certificate authorities and certificates for tests.
package credentialstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates.
type Authority struct {
	Cert *x509.Certificate
	// PEM is its own certificate.
	PEM []byte
	key *ecdsa.PrivateKey
}

// Pair is a certificate and its key, both in PEM.
type Pair struct {
	Cert, Key []byte
	Leaf      *x509.Certificate
}

// NewAuthority makes an authority of that name.
func NewAuthority(t testing.TB, name string) *Authority {
	t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	pair, key := sign(t, template, nil, nil)
	return &Authority{Cert: pair.Leaf, PEM: pair.Cert, key: key}
}

// Server makes a certificate of a server with these host names and addresses; change may change it before it is signed.
func (a *Authority) Server(t testing.TB, hosts []string, change ...func(*x509.Certificate)) Pair {
	t.Helper()
	template := leaf(pkix.Name{CommonName: "server"}, x509.ExtKeyUsageServerAuth)
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	return a.sign(t, template, change)
}

// Client makes a certificate of a user and its groups; change may change it before it is signed.
func (a *Authority) Client(t testing.TB, user string, groups []string, change ...func(*x509.Certificate)) Pair {
	t.Helper()
	return a.sign(t, leaf(pkix.Name{CommonName: user, Organization: groups}, x509.ExtKeyUsageClientAuth), change)
}

// Expired makes a certificate one that was valid once.
func Expired(c *x509.Certificate) {
	c.NotBefore, c.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
}

// Pool holds the authority alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.Cert)
	return pool
}

// TLS is the pair for a tls.Config.
func (p Pair) TLS(t testing.TB) tls.Certificate {
	t.Helper()
	c, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Config is the settings of a server with the pair. What it writes at once comes as one record, up to
// the size of one.
func (p Pair) Config(t testing.TB) *tls.Config {
	t.Helper()
	return &tls.Config{Certificates: []tls.Certificate{p.TLS(t)}, DynamicRecordSizingDisabled: true}
}

// Write writes the pair to NAME.crt and NAME.key in dir.
func (p Pair) Write(t testing.TB, dir, name string) (cert, key string) {
	t.Helper()
	return WriteFile(t, dir, name+".crt", p.Cert), WriteFile(t, dir, name+".key", p.Key)
}

// WriteFile writes a file of dir anew and returns its name.
func WriteFile(t testing.TB, dir, name string, content []byte) string {
	t.Helper()
	name = filepath.Join(dir, name)
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func leaf(subject pkix.Name, usage x509.ExtKeyUsage) *x509.Certificate {
	return &x509.Certificate{
		Subject: subject, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(12 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}
}

func (a *Authority) sign(t testing.TB, template *x509.Certificate, changes []func(*x509.Certificate)) Pair {
	t.Helper()
	for _, change := range changes {
		change(template)
	}
	pair, _ := sign(t, template, a.Cert, a.key)
	return pair
}

// sign makes a key and its certificate; without a parent it signs itself.
func sign(t testing.TB, template, parent *x509.Certificate, by *ecdsa.PrivateKey) (Pair, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		t.Fatal(err)
	}
	if parent == nil {
		parent, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		Leaf: cert,
	}, key
}
