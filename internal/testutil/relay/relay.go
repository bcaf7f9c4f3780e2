// Package relay has a relay of TCP that can stop to carry what is sent, as a load balancer or a NAT does that has lost
// its entry: neither end learns of it.
package relay

import (
	"net"
	"sync"
	"testing"
)

// A Relay relays connections to an address.
type Relay struct {
	to       string
	listener net.Listener

	mu    sync.Mutex
	pairs []*pair
}

// pair is a connection and the one that it is relayed to.
type pair struct {
	ends [2]net.Conn

	mu       sync.Mutex // held while something is passed on
	isFrozen bool
}

// New starts a relay to an address. It ends with the test.
func New(t testing.TB, to string) *Relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{to: to, listener: l}
	var running sync.WaitGroup
	running.Go(func() { r.accept(&running) })
	t.Cleanup(func() {
		_ = l.Close()
		r.mu.Lock()
		for _, p := range r.pairs {
			_, _ = p.ends[0].Close(), p.ends[1].Close()
		}
		r.mu.Unlock()
		running.Wait()
	})
	return r
}

// Address is where the relay listens.
func (r *Relay) Address() string { return r.listener.Addr().String() }

// Connections returns how many connections were relayed.
func (r *Relay) Connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pairs)
}

// Freeze stops to carry the connections that there are, and returns how many that are. Both ends stay connected, and
// what they send is taken and lost, the end of it included. Connections that are made later are carried.
func (r *Relay) Freeze() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pairs {
		p.mu.Lock()
		if !p.isFrozen {
			p.isFrozen = true
			n++
		}
		p.mu.Unlock()
	}
	return n
}

func (r *Relay) accept(running *sync.WaitGroup) {
	for {
		from, err := r.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", r.to)
		if err != nil {
			_ = from.Close()
			continue
		}
		p := &pair{ends: [2]net.Conn{from, to}}
		r.mu.Lock()
		r.pairs = append(r.pairs, p)
		r.mu.Unlock()
		running.Go(func() { p.carry(from, to) })
		running.Go(func() { p.carry(to, from) })
	}
}

// carry carries what one end sends to the other.
func (p *pair) carry(from, to net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		if !p.isFrozen {
			if _, failed := to.Write(buffer[:n]); err == nil {
				err = failed
			}
			if err != nil {
				_ = to.(*net.TCPConn).CloseWrite()
			}
		}
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}
