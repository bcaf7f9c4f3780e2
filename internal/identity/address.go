package identity

import (
	"fmt"
	"net/netip"
	"strings"
)

// TrustedProxies are the networks of the proxies whose word on the client is believed. The zero value
// trusts no address.
type TrustedProxies struct {
	networks []netip.Prefix
}

// ParseTrustedProxies reads addresses ("192.0.2.1") and networks
// ("10.0.0.0/8", "2001:db8::/32").
func ParseTrustedProxies(cidrs []string) (TrustedProxies, error) {
	t := TrustedProxies{networks: make([]netip.Prefix, 0, len(cidrs))}
	for _, s := range cidrs {
		network, err := netip.ParsePrefix(s)
		if err != nil {
			address, err := netip.ParseAddr(s)
			if err != nil || address.Zone() != "" {
				return TrustedProxies{}, fmt.Errorf("'%s' must be an IP address or a network such as '10.0.0.0/8'", s)
			}
			network = netip.PrefixFrom(address, address.BitLen())
		}
		if a := network.Addr(); a.Is4In6() {
			if network.Bits() < 96 {
				return TrustedProxies{}, fmt.Errorf("'%s' must be written as an IPv4 network", s)
			}
			network = netip.PrefixFrom(a.Unmap(), network.Bits()-96)
		}
		t.networks = append(t.networks, network.Masked())
	}
	return t, nil
}

// Trusts reports whether the address is a trusted proxy's.
func (t *TrustedProxies) Trusts(a netip.Addr) bool {
	a = plain(a)
	for _, n := range t.networks {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

// Client returns the address of the client: the peer, or if the peer is a trusted proxy the last
// address in the X-Forwarded-For lines that is not one. The lines are in the order of the request
// and walked from their end, because only what a trusted proxy appended is known to be true: an
// entry that is no address ends the walk at the proxy that sent it. IPv4 addresses mapped to IPv6
// are returned as IPv4, and zones are dropped.
func (t *TrustedProxies) Client(peer netip.Addr, forwardedFor ...string) netip.Addr {
	client := plain(peer)
	for i := len(forwardedFor) - 1; i >= 0; i-- {
		line := forwardedFor[i]
		for more := true; more; {
			if !t.Trusts(client) {
				return client
			}
			entry := line
			at := strings.LastIndexByte(line, ',')
			if more = at >= 0; more {
				entry, line = line[at+1:], line[:at]
			}
			a, ok := parseForwarded(strings.Trim(entry, " \t"))
			if !ok {
				return client
			}
			client = a
		}
	}
	return client
}

// parseForwarded reads an entry of X-Forwarded-For: an address, with a port
// as some proxies write it, IPv6 in brackets or not.
func parseForwarded(s string) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(s); err == nil {
		return plain(a), true
	}
	if p, err := netip.ParseAddrPort(s); err == nil {
		return plain(p.Addr()), true
	}
	if len(s) > 2 && s[0] == '[' && s[len(s)-1] == ']' {
		if a, err := netip.ParseAddr(s[1 : len(s)-1]); err == nil {
			return plain(a), true
		}
	}
	return netip.Addr{}, false
}

func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }
