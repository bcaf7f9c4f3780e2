package ingress

import (
	"net/netip"
	"strings"
)

// intersection returns the hosts that two of them have in common, which is the narrower one: a name, "*." before the
// end of names, or "" for all.
func intersection(a, b string) (host string, both bool) {
	switch {
	case a == b || b == "":
		return a, true
	case a == "":
		return b, true
	case covers(a, b):
		return b, true
	case covers(b, a):
		return a, true
	}
	return "", false
}

// covers reports whether a host is one with "*." that has all hosts of another one.
func covers(wide, host string) bool {
	end, isWild := strings.CutPrefix(wide, "*")
	return isWild && len(host) > len(end) && strings.HasSuffix(host, end)
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}
