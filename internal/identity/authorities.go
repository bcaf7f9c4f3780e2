package identity

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"
)

// authorities are the certificate authorities in a file, which is read again when it changes. Contents that cannot be
// used leave those that were read before.
type authorities struct {
	file string

	mu   sync.Mutex
	read time.Time
	data []byte
	pool *x509.CertPool
}

// authoritiesAge is how old what was read may be.
const authoritiesAge = 10 * time.Second

func newAuthorities(file string) (*authorities, error) {
	a := &authorities{file: file}
	if err := a.reload(); err != nil {
		return nil, err
	}
	return a, nil
}

func (a *authorities) reload() error {
	a.read = time.Now()
	data, err := os.ReadFile(a.file)
	if err != nil {
		return fmt.Errorf("the certificate authorities cannot be read: %w", err)
	}
	if bytes.Equal(data, a.data) {
		return nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return fmt.Errorf("the file '%s' must hold at least one certificate in PEM", a.file)
	}
	a.data, a.pool = data, pool
	return nil
}

// options are those to verify client certificates with.
func (a *authorities) options() (x509.VerifyOptions, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.read) >= authoritiesAge {
		_ = a.reload() // what was read before counts
	}
	return x509.VerifyOptions{Roots: a.pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, true
}
