package identity

import (
	"bytes"
	"crypto/x509"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/admission-gateway/gateway/internal/status"
)

// HeaderOptions say which proxies may say who the user is: by the certificates that they show, and
// by their addresses.
type HeaderOptions struct {
	// Verify verifies the certificates that a proxy has shown by authorities that are there for
	// proxies; nil if the listener's authorities count.
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
	if r.RemoteNamed {
		return nil, status.BadRequest("the header 'Connection' must not name headers 'X-Remote-…': the proxy would not tell all of the user")
	}
	u, twice := readUser(r.Remote)
	if twice != "" {
		return nil, repeated("X-Remote-", twice)
	}
	if u.Name == "" {
		return nil, nil
	}
	return NewPrincipal(known(u)), nil
}

// repeated is the error of a header that is there twice and means one thing: of two lines, one the client's and one the
// proxy's, each reader would take its own.
func repeated(prefix, name string) *status.Error {
	return status.BadRequest("the request has the header '%s%s' more than once", prefix, name)
}

// Impersonated is the user whom a client asks to act as, by the headers Impersonate-User, -Uid,
// -Group and -Extra-*, as a Kubernetes API server reads them: a service account has its groups. Its
// name is empty without them, and if one of them is empty, which that server does not skip as we
// do. An error means that the user is there twice (400).
func Impersonated(h Headers) (User, error) {
	u, twice := readUser(h)
	if twice != "" {
		return User{}, repeated("Impersonate-", twice)
	}
	empty := false
	h.Each(func(name, value []byte) { empty = empty || len(value) == 0 && !hasPrefixFold(name, "extra-") })
	if namespace, _, err := serviceaccount.SplitUsername(u.Name); err == nil && len(u.Groups) == 0 {
		u.Groups = serviceaccount.MakeGroupNames(namespace)
	}
	if u.Name == AnonymousName && !slices.Contains(u.Groups, UnauthenticatedGroup) {
		u.Groups = append(u.Groups, UnauthenticatedGroup)
	}
	if u.Name == "" || empty {
		return User{}, nil
	}
	return known(u), nil
}

// readUser reads a user from header lines. Groups and extra attributes may have several lines;
// twice is User or Uid if one of these has.
func readUser(h Headers) (u User, twice string) {
	users, uids := 0, 0
	h.Each(func(name, value []byte) {
		switch {
		case bytes.EqualFold(name, []byte("user")):
			users++
			u.Name = string(value)
		case bytes.EqualFold(name, []byte("uid")):
			uids++
			u.UID = string(value)
		case hasPrefixFold(name, "extra-"):
			key := unescapeKey(strings.ToLower(string(name[len("extra-"):])))
			if u.Extra == nil {
				u.Extra = map[string][]string{}
			}
			u.Extra[key] = append(u.Extra[key], string(value))
		case len(value) > 0 && bytes.EqualFold(name, []byte("group")):
			u.Groups = append(u.Groups, string(value))
		}
	})
	switch {
	case users > 1:
		twice = "User"
	case uids > 1:
		twice = "Uid"
	}
	return u, twice
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
