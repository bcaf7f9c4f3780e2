package identity

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Principal is a user with the headers that backends get. It is not changed once made, and shared
// by all requests of the user's token or connection.
type Principal struct {
	User
	remote, impersonate string
	untold              error
}

// NewPrincipal returns the principal of a user.
func NewPrincipal(u User) *Principal {
	p := &Principal{User: u}
	if p.untold = u.untold(); p.untold == nil {
		p.remote, p.impersonate = u.headers("X-Remote-"), u.headers("Impersonate-")
	}
	return p
}

// AppendRemote appends the header lines X-Remote-User, -Uid, -Group and -Extra-*, by which a front
// proxy names the user to a Kubernetes API server. An error means that no header can carry a name
// of the user as it is.
func (p *Principal) AppendRemote(dst []byte) ([]byte, error) {
	return append(dst, p.remote...), p.untold
}

// AppendImpersonate appends the header lines Impersonate-User, -Uid, -Group and -Extra-*, by which an account asks a
// Kubernetes API server to act as another user. An error means that no header can carry a name of the user as it is.
func (p *Principal) AppendImpersonate(dst []byte) ([]byte, error) {
	return append(dst, p.impersonate...), p.untold
}

// headers writes the user as header lines whose names begin with prefix.
func (u *User) headers(prefix string) string {
	var b strings.Builder
	line := func(name, value string) { b.WriteString(prefix + name + ": " + value + "\r\n") }
	line("User", u.Name)
	if u.UID != "" {
		line("Uid", u.UID)
	}
	for _, g := range u.Groups {
		if g != "" { // which API servers do not read
			line("Group", g)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(u.Extra)) {
		for _, value := range u.Extra[key] {
			line("Extra-"+escapeKey(key), value)
		}
	}
	return b.String()
}

// untold is the error of a user that headers cannot express. Readers of headers cut spaces off
// values: ' admin' would become another user.
func (u *User) untold() error {
	switch {
	case !carriable(u.Name):
		return untoldError("name")
	case !carriable(u.UID):
		return untoldError("UID")
	case slices.ContainsFunc(u.Groups, func(g string) bool { return !carriable(g) }):
		return untoldError("group")
	}
	for _, values := range u.Extra {
		if slices.ContainsFunc(values, func(v string) bool { return !carriable(v) }) {
			return untoldError("extra attribute")
		}
	}
	return nil
}

func untoldError(what string) error {
	return fmt.Errorf("the user has a %s with characters that no header can carry, so that the backend cannot be told who asks", what)
}

// carriable reports whether a header value reaches its reader unchanged.
func carriable(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return value == strings.Trim(value, " \t")
}

// escapeKey writes the key of an extra attribute as the end of a header's name: what cannot stand there is encoded by
// '%', as Kubernetes' clients do and its servers read. Capital letters are, too: names are compared without their case.
func escapeKey(key string) string {
	var b strings.Builder
	for i := range len(key) {
		if c := key[i]; c == '%' || c >= 'A' && c <= 'Z' || !token(c) {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// token reports whether a character may be in the name of a header (RFC 9110, 5.6.2).
func token(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}
