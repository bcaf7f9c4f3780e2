package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
)

// CertificateOptions say which client certificates count.
type CertificateOptions struct {
	// AuthorityFile has the certificates of the authorities in PEM. It is read again when it changes.
	AuthorityFile string
}

// Connection is what a connection is remembered to have proved. The zero value but for the certificates is that of a
// new one. Only the goroutine that serves the connection may use it.
type Connection struct {
	// Certificates are those that the client presented, its own first.
	Certificates []*x509.Certificate

	proofs []proof
}

// proof is what one method found in the certificates of a connection.
type proof struct {
	made      bool
	principal *Principal
	err       error
	until     time.Time
}

// proofTTL is how long the certificates of a connection are not looked at again: authorities may go, and certificates expire.
const proofTTL = 10 * time.Second

// proof returns what the method at that place finds in the certificates.
func (c *Connection) proof(at int, now time.Time, prove func([]*x509.Certificate) (*Principal, error)) *proof {
	for len(c.proofs) <= at {
		c.proofs = append(c.proofs, proof{})
	}
	p := &c.proofs[at]
	if !p.made || !now.Before(p.until) {
		*p = proof{made: true, until: now.Add(proofTTL)}
		if end := c.Certificates[0].NotAfter; end.After(now) && end.Before(p.until) {
			p.until = end
		}
		p.principal, p.err = prove(c.Certificates)
	}
	return p
}

// certificates authenticates by client certificates: the common name is the user, organizations are the groups. It is
// Kubernetes' own reading, asked once in a while for each connection.
type certificates struct {
	authenticator *x509request.Authenticator
}

func newCertificates(o *CertificateOptions) (*certificates, error) {
	a, err := newAuthorities(o.AuthorityFile)
	if err != nil {
		return nil, err
	}
	return &certificates{x509request.NewDynamic(a.options, x509request.CommonNameUserConversion)}, nil
}

func (c *certificates) present(r *Request, at int) (*Principal, error) {
	if r.Connection == nil || len(r.Connection.Certificates) == 0 {
		return nil, nil
	}
	p := r.Connection.proof(at, r.Now, c.prove)
	return p.principal, p.err
}

func (c *certificates) prove(chain []*x509.Certificate) (*Principal, error) {
	response, ok, err := c.authenticator.AuthenticateRequest(requestWith(chain))
	if err != nil || !ok {
		return nil, err
	}
	return NewPrincipal(known(userOf(response.User))), nil
}

// requestWith is a request as Kubernetes' authenticators by certificate take it.
func requestWith(chain []*x509.Certificate) *http.Request {
	return &http.Request{TLS: &tls.ConnectionState{PeerCertificates: chain}}
}

// userOf is a user of Kubernetes' library.
func userOf(info user.Info) User {
	return User{Name: info.GetName(), UID: info.GetUID(), Groups: info.GetGroups(), Extra: info.GetExtra()}
}

// holder verifies that a connection is that of a certain holder of a certificate.
type holder struct{ authenticator authenticator.Request }

// newHolder returns one for certificates of the authorities in a file, with one of the common names if there are any.
func newHolder(file string, names []string) (*holder, error) {
	a, err := newAuthorities(file)
	if err != nil {
		return nil, err
	}
	yes := authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) { return nil, true, nil })
	return &holder{x509request.NewDynamicCAVerifier(a.options, yes, x509request.StaticStringSlice(names))}, nil
}

func (h *holder) prove(chain []*x509.Certificate) (*Principal, error) {
	_, ok, err := h.authenticator.AuthenticateRequest(requestWith(chain))
	if err == nil && !ok {
		err = errors.New("no certificate")
	}
	return nil, err
}
