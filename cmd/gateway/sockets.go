package main

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/handover"
	"github.com/admission-gateway/gateway/proxy"
)

// sockets are the open sockets of the gateway.
type sockets struct {
	admin  *handover.Listener
	claims handover.Claims

	opening sync.Mutex // one opening at a time
	mu      sync.Mutex
	public  []*socket // in the order of the listeners

	// closed has the addresses whose sockets cannot be opened, and why. It is nil until a socket was tried again.
	closed atomic.Pointer[map[string]error]
	// unserved has the listeners that take no requests, by their names, and why.
	unserved atomic.Pointer[map[string]string]
	isTried  bool // that sockets will be tried again; guarded by reloads.mu
}

// A socket is the socket of an address of listeners.
type socket struct {
	*handover.Listener
	address  string // as the configuration has it
	isServed bool
}

// open opens the sockets of addresses that are not open yet, and returns those addresses. If one cannot be opened, none
// is.
func (d *sockets) open(c *config.Configuration, addresses []string) (opened []string, err error) {
	d.opening.Lock()
	defer d.opening.Unlock()
	own := addressesOf(c)
	for _, a := range addresses {
		if d.find(a) != nil {
			continue
		}
		flag := "the Gateway"
		switch {
		case a == c.Listen:
			flag = "--listen"
		case slices.Contains(own, a):
			flag = "`listeners`"
		}
		l, err := listenOn(&d.claims, a, flag)
		if err != nil {
			if own := d.onPortOf(a); errors.Is(err, errInUse) && own != "" {
				err = fmt.Errorf("cannot listen on %s while the gateway listens on %s; a restart brings it into force", a, own)
			}
			d.close(opened)
			return nil, err
		}
		d.mu.Lock()
		d.public = append(d.public, &socket{Listener: l, address: a})
		d.mu.Unlock()
		opened = append(opened, a)
	}
	return opened, nil
}

// addressesOf are the addresses of a configuration's own listeners.
func addressesOf(c *config.Configuration) []string {
	var all []string
	for _, l := range c.AllListeners() {
		all = append(all, l.Listen)
	}
	return all
}

// openEach opens the sockets of addresses that are not open yet, as far as they can be. Closed says which cannot, and
// why.
func (d *sockets) openEach(c *config.Configuration, addresses []string) (opened []string, closed map[string]error) {
	closed = map[string]error{}
	for _, a := range addresses {
		one, err := d.open(c, []string{a})
		if opened = append(opened, one...); err != nil {
			closed[a] = err
		}
	}
	return opened, closed
}

func (d *sockets) find(address string) *socket {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.IndexFunc(d.public, func(one *socket) bool { return one.address == address }); i >= 0 {
		return d.public[i]
	}
	return nil
}

// onPortOf returns the address of an open socket that has the port of another address; "" if there is none.
func (d *sockets) onPortOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	for _, l := range d.offered() {
		if _, own, _ := net.SplitHostPort(l.Addr().String()); own == port {
			return l.Addr().String()
		}
	}
	return ""
}

// keep closes sockets that were opened for addresses of others, and on which nothing is served.
func (d *sockets) keep(addresses []string) {
	var others []string
	d.mu.Lock()
	for _, one := range d.public {
		if !one.isServed && !slices.Contains(addresses, one.address) {
			others = append(others, one.address)
		}
	}
	d.mu.Unlock()
	d.close(others)
}

// close closes sockets on which nothing is served.
func (d *sockets) close(addresses []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.public = slices.DeleteFunc(d.public, func(one *socket) bool {
		if !slices.Contains(addresses, one.address) {
			return false
		}
		_ = one.Close()
		return true
	})
}

// serve has a gateway serve its addresses, all of which are open, and no others.
func (d *sockets) serve(g *proxy.Gateway, failed chan<- error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	addresses := g.Addresses()
	d.public = slices.DeleteFunc(d.public, func(one *socket) bool {
		if slices.Contains(addresses, one.address) {
			return false
		}
		g.Leave(one.address)
		return true
	})
	slices.SortFunc(d.public, func(a, b *socket) int {
		return slices.Index(addresses, a.address) - slices.Index(addresses, b.address)
	})
	for _, one := range d.public {
		if one.isServed {
			continue
		}
		one.isServed = true
		serving := g.Attach(one.address, one)
		go func() {
			if err := serving(); err != nil {
				failed <- err
			}
		}()
	}
}

// offered are the sockets that a gateway which drains shares with the next one.
func (d *sockets) offered() []*handover.Listener {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := []*handover.Listener{d.admin}
	for _, one := range d.public {
		all = append(all, one.Listener)
	}
	return all
}

// text has the addresses on which clients are served.
func (d *sockets) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	text := ""
	for i, one := range d.public {
		if i > 0 {
			text += " "
		}
		text += one.Addr().String()
	}
	return text
}
