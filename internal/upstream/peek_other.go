//go:build !unix

package upstream

// canPeek tells whether peekAt can look.
const canPeek = false

// peekAt knows no way to look; the connection is taken as it is.
func (cn *conn) peekAt(uintptr) { cn.stirred = false }

// at leaves all to an ordinary write.
func (t *turn) at(uintptr) bool { return true }
