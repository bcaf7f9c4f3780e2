package identity

import (
	"bytes"
	"crypto/x509"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// HeaderOptions say which proxies may tell who the user is: those that show a certificate, and those at some addresses.
type HeaderOptions struct {
	// Verify verifies the certificates that a proxy has shown by authorities that are there for proxies; nil where those
	// of the listener count.
	Verify func(shown []*x509.Certificate, now time.Time) ([]*x509.Certificate, error)
	// Names are the common names of proxies' certificates. Empty means any name that Verify is for, and without Verify
	// that no certificate makes a proxy.
	Names []string
	// Networks are the addresses of proxies that need no certificate.
	Networks TrustedProxies
}

// remote authenticates by the headers X-Remote-* of a proxy.
type remote struct{ o HeaderOptions }

// present reads the headers as Kubernetes does. From others than such a proxy they say nothing.
func (m *remote) present(r *Request) (*Principal, error) {
	if r.Remote == nil || !m.o.Networks.Trusts(r.Peer) && !m.isProxy(r.Connection, r.Now) {
		return nil, nil
	}
	u := toldBy(r.Remote)
	if u.Name == "" {
		return nil, nil
	}
	return NewPrincipal(known(u)), nil
}

// Impersonated is the user whom a client asks to act as, by the headers Impersonate-User, -Uid, -Group and -Extra-*, as a
// Kubernetes API server reads them: a service account has its groups. Its name is empty without them, and where one of them
// is empty, which that server does not pass over as it is done here.
func Impersonated(h Headers) User {
	u, empty := toldBy(h), false
	h.Each(func(name, value []byte) { empty = empty || len(value) == 0 && !hasPrefixFold(name, "extra-") })
	if namespace, _, err := serviceaccount.SplitUsername(u.Name); err == nil && len(u.Groups) == 0 {
		u.Groups = serviceaccount.MakeGroupNames(namespace)
	}
	if u.Name == AnonymousName && !slices.Contains(u.Groups, UnauthenticatedGroup) {
		u.Groups = append(u.Groups, UnauthenticatedGroup)
	}
	if u.Name == "" || empty {
		return User{}
	}
	return known(u)
}

// toldBy reads a user from header lines.
func toldBy(h Headers) (u User) {
	h.Each(func(name, value []byte) {
		switch {
		case hasPrefixFold(name, "extra-"):
			key := unescapeKey(strings.ToLower(string(name[len("extra-"):])))
			if u.Extra == nil {
				u.Extra = map[string][]string{}
			}
			u.Extra[key] = append(u.Extra[key], string(value))
		case len(value) == 0:
		case bytes.EqualFold(name, []byte("user")) && u.Name == "":
			u.Name = string(value)
		case bytes.EqualFold(name, []byte("uid")) && u.UID == "":
			u.UID = string(value)
		case bytes.EqualFold(name, []byte("group")):
			u.Groups = append(u.Groups, string(value))
		}
	})
	return u
}

func hasPrefixFold(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && bytes.EqualFold(b[:len(prefix)], []byte(prefix))
}

// unescapeKey reads the key of an extra attribute; one that is not encoded well counts as it is.
func unescapeKey(key string) string {
	if plain, err := url.PathUnescape(key); err == nil {
		return plain
	}
	return key
}
