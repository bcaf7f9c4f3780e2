package credentials

import (
	"crypto/tls"
	"strings"
)

// certificates are those of a listener, by the names that they are for. The first is the default.
type certificates struct {
	all     []*tls.Certificate
	byName  map[string][]*tls.Certificate // names in lower case
	byOwner map[string][]*tls.Certificate // of a wildcard: the name without "*."
}

// add adds a certificate that was read, so that its leaf is known.
func (c *certificates) add(one *tls.Certificate) {
	if c.byName == nil {
		c.byName, c.byOwner = map[string][]*tls.Certificate{}, map[string][]*tls.Certificate{}
	}
	c.all = append(c.all, one)
	for _, name := range one.Leaf.DNSNames {
		name = strings.ToLower(name)
		if owner, isWildcard := strings.CutPrefix(name, "*."); isWildcard {
			c.byOwner[owner] = append(c.byOwner[owner], one)
		} else {
			c.byName[name] = append(c.byName[name], one)
		}
	}
}

// choose returns the certificate for the name that a client asks for: one with that name, else one with a wildcard that
// fits, else the default. Of several for a name, such as one of RSA and one of ECDSA, it is the first that the client
// understands.
func (c *certificates) choose(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))
	_, owner, _ := strings.Cut(name, ".")
	for _, fit := range [][]*tls.Certificate{c.byName[name], c.byOwner[owner]} {
		for _, one := range fit {
			if hello.SupportsCertificate(one) == nil {
				return one, nil
			}
		}
	}
	return c.all[0], nil
}
