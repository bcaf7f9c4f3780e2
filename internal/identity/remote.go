package identity

import (
	"bytes"
	"net/netip"
	"net/url"
	"strings"
)

// HeaderOptions say which proxies may tell who the user is.
type HeaderOptions struct {
	// AuthorityFile has the authorities of the proxies' client certificates in PEM, Names the common names that one
	// of them must have; no names are any. Empty means that no certificate makes a proxy.
	AuthorityFile string
	Names         []string
	// Networks are the addresses of proxies that need no certificate.
	Networks []netip.Prefix
}

// remote authenticates by the headers X-Remote-* of a proxy that is known by its certificate or its address.
type remote struct {
	holder   *holder // nil where no certificate makes a proxy
	networks TrustedProxies
}

func newRemote(o *HeaderOptions) (*remote, error) {
	r := &remote{networks: TrustedProxies{networks: o.Networks}}
	if o.AuthorityFile == "" {
		return r, nil
	}
	var err error
	r.holder, err = newHolder(o.AuthorityFile, o.Names)
	return r, err
}

// present reads the headers as Kubernetes does. From others than such a proxy they say nothing.
func (m *remote) present(r *Request, at int) (*Principal, error) {
	if r.Headers == nil || !m.trusts(r, at) {
		return nil, nil
	}
	var u User
	r.Headers.EachRemote(func(name, value []byte) {
		switch field := name[len("X-Remote-"):]; {
		case len(value) == 0 && !hasPrefixFold(field, "extra-"):
		case bytes.EqualFold(field, []byte("user")) && u.Name == "":
			u.Name = string(value)
		case bytes.EqualFold(field, []byte("uid")) && u.UID == "":
			u.UID = string(value)
		case bytes.EqualFold(field, []byte("group")):
			u.Groups = append(u.Groups, string(value))
		case hasPrefixFold(field, "extra-"):
			key := unescapeKey(strings.ToLower(string(field[len("extra-"):])))
			if u.Extra == nil {
				u.Extra = map[string][]string{}
			}
			u.Extra[key] = append(u.Extra[key], string(value))
		}
	})
	if u.Name == "" {
		return nil, nil
	}
	return NewPrincipal(known(u)), nil
}

// trusts tells whether the peer is a proxy that may tell who the user is.
func (m *remote) trusts(r *Request, at int) bool {
	if m.networks.Trusts(r.Peer) {
		return true
	}
	if m.holder == nil || r.Connection == nil || len(r.Connection.Certificates) == 0 {
		return false
	}
	return r.Connection.proof(at, r.Now, m.holder.prove).err == nil
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
