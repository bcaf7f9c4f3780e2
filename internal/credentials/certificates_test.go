package credentials

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"
)

func selfSigned(t *testing.T, isRSA bool, names ...string) *tls.Certificate {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: names}
	c := &tls.Certificate{}
	var der []byte
	var err error
	if isRSA {
		key, failed := rsa.GenerateKey(rand.Reader, 2048)
		if failed != nil {
			t.Fatal(failed)
		}
		c.PrivateKey = key
		der, err = x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	} else {
		key, failed := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if failed != nil {
			t.Fatal(failed)
		}
		c.PrivateKey = key
		der, err = x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	}
	if err == nil {
		c.Leaf, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Certificate = [][]byte{der}
	return c
}

// TestChoose: clients get the certificate for the name that they ask for, by real handshakes: the name itself before a
// wildcard, and of two for one name the one whose key the client understands.
func TestChoose(t *testing.T) {
	var c certificates
	named := map[string]*tls.Certificate{}
	for _, one := range []struct {
		key   string
		isRSA bool
		names []string
	}{
		{"default", false, []string{"default.example.com"}},
		{"wild", false, []string{"*.example.com"}},
		{"exact", false, []string{"api.example.com", "Other.Example.org"}},
		{"rsa", true, []string{"both.example.net"}},
		{"ecdsa", false, []string{"both.example.net"}},
	} {
		named[one.key] = selfSigned(t, one.isRSA, one.names...)
		c.add(named[one.key])
	}
	for _, test := range []struct {
		name   string
		suites []uint16
		want   string
	}{
		{"api.example.com", nil, "exact"}, {"API.example.com", nil, "exact"}, {"www.example.com", nil, "wild"},
		{"a.b.example.com", nil, "default"},
		{"example.com", nil, "default"}, {"other.example.org", nil, "exact"}, {"unknown.example", nil, "default"},
		{"", nil, "default"},
		{"default.example.com", nil, "default"}, {"both.example.net", nil, "rsa"},
		{"both.example.net", []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}, "ecdsa"},
	} {
		near, far := net.Pipe()
		go func() {
			_ = tls.Server(far, &tls.Config{GetCertificate: c.choose}).Handshake() // the client shows what fails
		}()
		config := &tls.Config{ServerName: test.name, InsecureSkipVerify: true, CipherSuites: test.suites}
		if test.suites != nil {
			config.MaxVersion = tls.VersionTLS12
		}
		client := tls.Client(near, config)
		if err := client.Handshake(); err != nil {
			t.Errorf("%q: %v", test.name, err)
			continue
		}
		if got := client.ConnectionState().PeerCertificates[0]; !got.Equal(named[test.want].Leaf) {
			t.Errorf("%q gets the certificate of %v, want %s", test.name, got.DNSNames, test.want)
		}
		_ = near.Close()
	}
}
