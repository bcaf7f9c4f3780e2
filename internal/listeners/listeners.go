// Package listeners finds the listener that takes a connection and each request on it: by the address that the client
// has connected to, the name that it asks for by TLS (SNI), and the Host of the request.
package listeners

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/admission-gateway/gateway/internal/credentials"
)

// A Listener takes the requests for hosts on addresses. It is immutable once it is in a Set.
type Listener struct {
	// Name identifies it, also among the listeners of the Sets before and after its own.
	Name string
	// Routes is the number of its routes: 0 for those of the configuration, which all its listeners share, and one more
	// than its index for a listener of a routing.Table.
	Routes int
	// Addresses are hosts and ports on which it listens. Listeners may share an address.
	Addresses []string
	// Hosts are names in lower case, "*." before the end of names with any labels in its place; none is any.
	Hosts []string
	// TLS has its certificates; nil is plain HTTP.
	TLS *credentials.Value[*credentials.Server]
	// Certificate identifies the one certificate that it shows; "" for several.
	Certificate string
	// Clients identifies how it asks clients for certificates; "" if it asks for none. A connection that was made in
	// one way serves no listener that asks in another.
	Clients string
	// Proxies are the peers that begin connections with the PROXY protocol.
	Proxies []netip.Prefix
	// ServesHalf says that clients may close their end of a connection, and still wait for answers.
	ServesHalf bool
	// Redirect sends clients elsewhere by https; nil serves them.
	Redirect *Redirect
	// StrictTransport is the value of Strict-Transport-Security in its answers; "" is none.
	StrictTransport string
}

// A Redirect is to the same host and path by https.
type Redirect struct {
	Code int
	Port int
}

// isConfigured reports whether the listener shares its routes with others.
func (l *Listener) isConfigured() bool { return l.Routes == 0 }

// serves reports whether a connection that was made for one listener can carry requests for another.
func (l *Listener) serves(made *Listener) bool {
	return l == made || l.Name == made.Name && l.Clients == made.Clients && (l.TLS == nil) == (made.TLS == nil)
}

// A Set is all listeners of a process at a time. It never changes.
type Set struct {
	sockets   map[string]*Socket
	addresses []string // in their order
}

// A Socket is an address with the listeners that share it.
type Socket struct {
	set     *Set
	address string
	all     []*Listener
	own     hosts
	// taken has, beside the listeners of own, those of other sockets to whom requests for their hosts must come.
	taken *hosts
	// needsNoName is set if requests on connections that have asked for no name (SNI) may be for any listener.
	needsNoName bool
}

// A Conflict is why a listener cannot share an address with those before it.
type Conflict struct {
	Listener *Listener
	reason   string
}

func (c *Conflict) Error() string {
	return "the listener '" + c.Listener.Name + "' " + c.reason
}

// New returns the set of listeners. One that cannot share an address with those before it takes nothing there.
func New(all []*Listener) (*Set, []*Conflict) {
	s := &Set{sockets: map[string]*Socket{}}
	var conflicts []*Conflict
	asksClients := false
	for _, l := range all {
		asksClients = asksClients || l.Clients != ""
		for _, a := range l.Addresses {
			if reason := s.add(l, a); reason != "" {
				conflicts = append(conflicts, &Conflict{l, reason})
			}
		}
	}
	for _, at := range s.sockets {
		at.needsNoName = !asksClients && at.all[0].Certificate != ""
		for _, l := range at.all {
			at.needsNoName = at.needsNoName && l.Certificate == at.all[0].Certificate
		}
		at.guard(all)
	}
	return s, conflicts
}

// Any is the set of one listener, for any host, on whatever address it is served.
func Any(tls *credentials.Value[*credentials.Server]) *Set {
	s, _ := New([]*Listener{{Name: "any", Addresses: []string{""}, TLS: tls}})
	return s
}

// add has a listener take its hosts on an address, or says why it cannot.
func (s *Set) add(l *Listener, address string) (conflict string) {
	at := s.sockets[address]
	if at == nil {
		at = &Socket{set: s, address: address}
		s.sockets[address], s.addresses = at, append(s.addresses, address)
	} else if first := at.all[0]; (first.TLS == nil) != (l.TLS == nil) {
		return fmt.Sprintf("cannot share the address '%s' with '%s': one of them has TLS", address, first.Name)
	}
	names := l.Hosts
	if len(names) == 0 {
		names = []string{""}
	}
	at.all = append(at.all, l)
	for _, name := range names {
		if before := at.own.add(name, l); before != nil {
			return fmt.Sprintf("cannot take the host '%s' on the address '%s': '%s' does", name, address, before.Name)
		}
	}
	return ""
}

// guard keeps requests away that a listener elsewhere takes with certificates of clients: the listeners of the
// configuration share their routes, so that a client without a certificate would get by another listener what it must
// not get.
func (at *Socket) guard(all []*Listener) {
	at.taken = &at.own
	if !at.all[0].isConfigured() {
		return
	}
	for _, l := range all {
		if !l.isConfigured() || l.Clients == "" || at.has(l) {
			continue
		}
		if at.taken == &at.own {
			at.taken = at.own.copy()
		}
		for _, name := range l.Hosts {
			at.taken.add(name, l)
		}
	}
}

func (at *Socket) has(l *Listener) bool {
	for _, one := range at.all {
		if one == l {
			return true
		}
	}
	return false
}

// Addresses are those on which to listen, in the order of the listeners.
func (s *Set) Addresses() []string { return s.addresses }

// Socket returns the listeners of an address; nil if there are none.
func (s *Set) Socket(address string) *Socket { return s.sockets[address] }

// Keeps reports whether a connection may go on that has come to an address, and was made for a listener, which is nil
// without TLS.
func (s *Set) Keeps(address string, made *Listener) bool {
	at := s.sockets[address]
	if at == nil {
		return false
	}
	if made == nil {
		return true
	}
	for _, l := range at.all {
		if l.serves(made) {
			return true
		}
	}
	return false
}

// Address is the host and port.
func (at *Socket) Address() string { return at.address }

// HasTLS reports whether the listeners speak TLS.
func (at *Socket) HasTLS() bool { return at.all[0].TLS != nil }

// Proxies are the peers that begin connections with the PROXY protocol; nil if none may.
func (at *Socket) Proxies() []netip.Prefix { return at.all[0].Proxies }

// ServesHalf reports whether a client that has closed its end of a connection may still wait for an answer: by
// HTTP/1.1, before its request is read, a connection may be for any listener of the address.
func (at *Socket) ServesHalf() bool { return slices.ContainsFunc(at.all, (*Listener).servesHalf) }

func (l *Listener) servesHalf() bool { return l.ServesHalf }

// Made returns the listener for which a connection is made whose client asks for a name by TLS; "" is none. It is nil
// if no listener takes the name.
func (at *Socket) Made(name string) *Listener {
	if name != "" {
		return at.own.find([]byte(name))
	}
	if l := at.own.any; l != nil {
		return l
	}
	return at.all[0]
}

// A Taking says whether a listener takes a request.
type Taking uint8

// What there is.
const (
	Taken Taking = iota
	// Misdirected is a request that another listener takes than the one for which its connection was made.
	Misdirected
	// Unknown is a request that no listener takes.
	Unknown
)

// Take returns the listener of a request by its Host. Its connection has come to the socket of this Set or one before,
// was made for a listener, which is nil without TLS, and asked for a name by TLS or not. It does not allocate.
func (s *Set) Take(at *Socket, made *Listener, hasName bool, host []byte) (*Listener, Taking) {
	if at.set != s {
		if at = s.sockets[at.address]; at == nil {
			return nil, Misdirected
		}
	}
	l := at.taken.find(host)
	switch {
	case l == nil && s.Keeps(at.address, made):
		return nil, Unknown
	case l == nil:
		return nil, Misdirected
	case at.taken != &at.own:
		own := at.own.find(host)
		if own != l && (own == nil || own.Redirect == nil) {
			return nil, Misdirected
		}
		l = own
	}
	switch {
	case made == nil && l.TLS == nil, made != nil && l.serves(made):
		return l, Taken
	case made != nil && l.TLS != nil && !hasName && made.Clients == "" && at.needsNoName:
		return l, Taken
	}
	return nil, Misdirected
}
