package upstream

import (
	"net"
	"sync"
)

// Tunnel is a connection to the backend that both ends agreed to use for something else than HTTP. It is never used for
// another request, and counts among the backend's connections until it is closed.
type Tunnel struct {
	// Conn is the connection, without deadlines.
	Conn net.Conn
	// Head is the head of the 101 (Switching Protocols), without the lines that end at this hop and without the empty
	// line at its end.
	Head []byte
	// Early are bytes of the new protocol that came with the head.
	Early []byte

	once  sync.Once
	close func()
}

// Close closes the connection. It may be called more than once, and while the connection is read from and written to.
func (t *Tunnel) Close() { t.once.Do(t.close) }
