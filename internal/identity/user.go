// Package identity identifies the sender of a request: the user, and the client's address.
package identity

import "slices"

const (
	// AnonymousName is the user of a request without credentials.
	AnonymousName = "system:anonymous"
	// UnauthenticatedGroup is the group of anonymous users.
	UnauthenticatedGroup = "system:unauthenticated"
	// AuthenticatedGroup is the group of all other users.
	AuthenticatedGroup = "system:authenticated"
)

// User is who sent a request, with the fields of Kubernetes' user info. It is
// not changed once made.
type User struct {
	Name   string
	UID    string
	Groups []string
	// Extra holds further attributes by lower-case key.
	Extra map[string][]string
}

// Anonymous returns the user of a request without credentials. Its groups are
// the same slice each time, so that a request costs no allocation.
func Anonymous() User {
	return User{Name: AnonymousName, Groups: unauthenticated[:]}
}

var unauthenticated = [...]string{UnauthenticatedGroup}

// IsAnonymous reports whether the user is the one of a request without
// credentials.
func (u *User) IsAnonymous() bool { return u.Name == AnonymousName }

// known returns the user of valid credentials: with the group of all known users, as kube-apiserver
// adds it.
func known(u User) User {
	if u.Name == AnonymousName || slices.Contains(u.Groups, AuthenticatedGroup) ||
		slices.Contains(u.Groups, UnauthenticatedGroup) {
		return u
	}
	u.Groups = append(slices.Clip(u.Groups), AuthenticatedGroup)
	return u
}
