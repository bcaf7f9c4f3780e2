// Package descriptors shares out the file descriptors of the process, and accepts connections while there are none.
//
// The kernel gives each new descriptor the lowest number that is free. So the number of a descriptor says how many are
// in use: connections of clients and to backends may not have the last numbers, which stay free for the admin listener,
// and the very last ones for files that are read again. No counter has to agree with what libraries open.
package descriptors

import (
	"errors"
	"math"
	"net"
	"syscall"
)

// mostReserved is how many descriptors are no connections' of clients or to backends if the limit is large: a half of
// them for what a gateway has open in any case (listeners, logs, watches), a quarter for the admin listener, and a
// quarter for files.
const mostReserved = 128

// A Budget says whose the descriptors of the process are.
type Budget struct {
	// Limit is how many may be open.
	Limit int
	// Reserved is how many of them connections of clients and to backends leave to others.
	Reserved int
}

// Now returns the budget of the process. Go raises the limit to the hard one when a process starts.
func Now() Budget {
	limit := limit()
	return Budget{Limit: limit, Reserved: min(mostReserved, limit/4)}
}

// Clients returns how many connections of clients there may be, of those that are configured, beside connections to
// backends. What does not fit is shared by halves.
func (b Budget) Clients(configured, backends int) int {
	room := b.Limit - b.Reserved
	return max(1, min(configured, room-min(backends, room/2)))
}

// forTraffic and forAdmin return from which number on a descriptor is not for connections of that kind.
func (b Budget) forTraffic() int { return b.Limit - b.Reserved/2 }
func (b Budget) forAdmin() int   { return b.Limit - b.Reserved/4 }

// MayServe reports whether the connection of a client may have its descriptor.
func MayServe(nc net.Conn) bool { return numberOf(nc) < Now().forTraffic() }

// MayAdminister reports whether a connection to the admin listener may have its descriptor.
func MayAdminister(nc net.Conn) bool { return numberOf(nc) < Now().forAdmin() }

// Control is a [net.Dialer]'s for connections to backends: one that may not have its descriptor fails as if there was
// none.
func Control(_, _ string, c syscall.RawConn) error {
	number := 0
	if err := c.Control(func(fd uintptr) { number = int(fd) }); err != nil {
		return err
	}
	if number >= Now().forTraffic() {
		return syscall.EMFILE
	}
	return nil
}

// numberOf returns the descriptor of a connection, also below TLS; 0 if it has none.
func numberOf(nc net.Conn) (number int) {
	for {
		over, is := nc.(interface{ NetConn() net.Conn })
		if !is {
			break
		}
		nc = over.NetConn()
	}
	if c, is := nc.(syscall.Conn); is {
		if raw, err := c.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { number = int(fd) }) // it fails if the connection is closed
		}
	}
	return number
}

// IsShortage reports whether an error says that the process, or the machine, has no descriptor or no memory for a
// socket.
func IsShortage(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// unlimited is the limit of a system that does not say one.
const unlimited = math.MaxInt32
