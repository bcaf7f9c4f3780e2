package identity

import (
	"crypto/x509"
	"errors"
	"slices"
	"time"

	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Connection holds the certificates that the client has shown by TLS, and the user that they name. Only the goroutine
// that serves the connection may use it.
type Connection struct {
	// Shown are the certificates that the client has shown, its own first.
	Shown []*x509.Certificate
	// Chain returns the chain from the client's own certificate, which comes first, to one of the
	// listener's authorities; nil if the client has shown none. It returns the same chain until
	// something changes.
	Chain func() ([]*x509.Certificate, error)

	first     *x509.Certificate // of the chain that the principal was made of
	principal *Principal
	err       error

	proxyUntil time.Time // when the verdict on the proxy must be thought over
	proxyErr   error
}

// certificates authenticates by client certificates as Kubernetes does: the common name is the user, organizations are
// the groups.
type certificates struct{}

func (certificates) present(r *Request) (*Principal, error) {
	c := r.Connection
	if c == nil {
		return nil, nil
	}
	chain, err := c.Chain()
	if err != nil || len(chain) == 0 {
		return nil, err
	}
	if c.first != chain[0] {
		c.first = chain[0]
		c.principal, c.err = ofChain(chain)
	}
	return c.principal, c.err
}

func ofChain(chain []*x509.Certificate) (*Principal, error) {
	response, ok, err := x509request.CommonNameUserConversion.User(chain)
	if err != nil || !ok {
		return nil, err
	}
	return NewPrincipal(known(userOf(response.User))), nil
}

// userOf is a user of Kubernetes' library.
func userOf(info user.Info) User {
	return User{Name: info.GetName(), UID: info.GetUID(), Groups: info.GetGroups(), Extra: info.GetExtra()}
}

// proxyTTL is how long a proxy is believed on a connection without its certificate being looked at again: authorities
// may go, and certificates expire.
const proxyTTL = 10 * time.Second

var errOtherName = errors.New("the certificate has none of the names of proxies")

// isProxy reports whether the client has shown a certificate of a proxy that may name the user.
func (m *remote) isProxy(c *Connection, now time.Time) bool {
	if c == nil || len(c.Shown) == 0 || m.o.Verify == nil && len(m.o.Names) == 0 {
		return false
	}
	if m.o.Verify == nil {
		chain, err := c.Chain()
		return err == nil && len(chain) > 0 && slices.Contains(m.o.Names, chain[0].Subject.CommonName)
	}
	if !now.Before(c.proxyUntil) {
		c.proxyUntil = now.Add(proxyTTL)
		if end := c.Shown[0].NotAfter; end.After(now) && end.Before(c.proxyUntil) {
			c.proxyUntil = end
		}
		_, c.proxyErr = m.o.Verify(c.Shown, now)
		if c.proxyErr == nil && len(m.o.Names) > 0 && !slices.Contains(m.o.Names, c.Shown[0].Subject.CommonName) {
			c.proxyErr = errOtherName
		}
	}
	return c.proxyErr == nil
}
