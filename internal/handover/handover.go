// Package handover lets a process listen on an address on which another one still does, if that one
// offers it: a gateway that drains serves on, and the next one begins meanwhile. An address that no
// process offers is in use, as ever.
//
// The kernel gives each new connection to one of the two processes, which both serve. Both have to be of the same user,
// in one network namespace of Linux. Elsewhere nothing can be offered.
package handover

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
)

// A Listener listens on a TCP address, which can be offered to another process.
type Listener struct {
	*net.TCPListener

	mu sync.Mutex
	// claim is held by the process that took an address over, until it offers the address itself;
	// nil if none is.
	claim io.Closer
}

// Claims are what a process has taken over. Several addresses of a port have one claim. The zero value is that of a
// process that has taken nothing over yet.
type Claims struct {
	mu   sync.Mutex
	held map[string]*claim // by the port
}

// A claim is held as long as one of its addresses is.
type claim struct {
	io.Closer
	of      *Claims
	port    string
	holders int
}

// hold takes the claim of a port, which this process may have already.
func (c *Claims) hold(port string, take func() (io.Closer, error)) (io.Closer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.held[port]
	if one == nil {
		taken, err := take()
		if err != nil {
			return nil, err
		}
		if c.held == nil {
			c.held = map[string]*claim{}
		}
		one = &claim{Closer: taken, of: c, port: port}
		c.held[port] = one
	}
	one.holders++
	return one, nil
}

// Close gives up the claim for one of its addresses.
func (c *claim) Close() error {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.holders--; c.holders > 0 {
		return nil
	}
	delete(c.of.held, c.port)
	return c.Closer.Close()
}

// Listen listens on a TCP address that is free or offered.
func (c *Claims) Listen(address string) (*Listener, error) {
	l, err := net.Listen("tcp", address)
	if err == nil {
		return &Listener{TCPListener: l.(*net.TCPListener)}, nil
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		if l, claim := c.takeOver(address); l != nil {
			return &Listener{TCPListener: l, claim: claim}, nil
		}
	}
	return nil, err
}

// Offer lets one other process of the same user listen on the address too, from now on.
func (l *Listener) Offer() error {
	if err := share(l.TCPListener); err != nil {
		return err
	}
	l.unclaim()
	return nil
}

// Close stops listening.
func (l *Listener) Close() error {
	err := l.TCPListener.Close()
	l.unclaim()
	return err
}

func (l *Listener) unclaim() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.claim != nil {
		_ = l.claim.Close()
		l.claim = nil
	}
}
