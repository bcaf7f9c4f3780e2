// Package origin reads the origins of web pages, and patterns of them, as browsers write them in the header Origin
// (URL Standard, "serialization of an origin": SCHEME://HOST, and :PORT if it is not the scheme's own).
//
// What is written in any other way is no origin. Nothing is repaired, folded or decoded: a text that two readers could
// take for two hosts must not be granted what is meant for one of them.
package origin

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// An Origin is the origin of a page.
type Origin struct {
	// Scheme is in lower case, such as "https".
	Scheme string
	// Host is a name in lower case, or an address; of version 6 it is in brackets.
	Host string
	// Port is 0 if it is the scheme's own.
	Port uint16
}

// Parse reads an origin. It reports false if a browser would not write one so.
func Parse(text string) (o Origin, ok bool) {
	scheme, authority, found := strings.Cut(text, "://")
	if !found || !isScheme(scheme) {
		return Origin{}, false
	}
	o = Origin{Scheme: scheme, Host: authority}
	if at := portAt(authority); at >= 0 {
		o.Host = authority[:at]
		if o.Port, ok = parsePort(authority[at+1:]); !ok || o.Port == ownPort(scheme) {
			return Origin{}, false
		}
	}
	if !isHost(o.Host) {
		return Origin{}, false
	}
	return o, true
}

// portAt returns the index of the colon before a port; -1 if there is none.
func portAt(authority string) int {
	after := strings.LastIndexByte(authority, ']') + 1
	if at := strings.IndexByte(authority[after:], ':'); at >= 0 {
		return after + at
	}
	return -1
}

// isScheme reports whether a text is a scheme in lower case (RFC 3986, 3.1).
func isScheme(s string) bool {
	for i := range len(s) {
		c := s[i]
		isLetter := 'a' <= c && c <= 'z'
		if !isLetter && (i == 0 || !isDigit(c) && c != '+' && c != '-' && c != '.') {
			return false
		}
	}
	return s != ""
}

// parsePort reads a port as it is written: without zeros before it.
func parsePort(s string) (uint16, bool) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != s {
		return 0, false
	}
	return uint16(n), true
}

// ownPort is the port that is not written after a scheme (URL Standard, "special scheme"); 0 if
// there is none.
func ownPort(scheme string) uint16 {
	switch scheme {
	case "http", "ws":
		return 80
	case "https", "wss":
		return 443
	case "ftp":
		return 21
	}
	return 0
}

// isHost reports whether a text is a name or an address in the only form that browsers write.
func isHost(s string) bool {
	if strings.HasPrefix(s, "[") {
		a, err := netip.ParseAddr(strings.TrimSuffix(s[1:], "]"))
		return err == nil && a.Is6() && a.Zone() == "" && s == "["+written(a)+"]"
	}
	if !isName(strings.TrimSuffix(s, ".")) {
		return false
	}
	if !endsInNumber(s) {
		return true
	}
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4() && a.String() == s
}

// written is an address of version 6 as the URL Standard writes it: also the end of a mapped address in hexadecimal.
func written(a netip.Addr) string {
	if !a.Is4In6() {
		return a.String()
	}
	b := a.As16()
	return fmt.Sprintf("::ffff:%x:%x", uint16(b[12])<<8|uint16(b[13]), uint16(b[14])<<8|uint16(b[15]))
}

// maxName and maxLabel bound names and their labels in bytes, as DNS does.
const (
	maxName  = 253
	maxLabel = 63
)

// isName reports whether a text is a name of labels: letters in lower case, digits, hyphens and underscores. The URL
// Standard lets other characters pass too, such as a backtick, which no name in DNS of a page has and readers of URLs
// disagree about.
func isName(s string) bool {
	if len(s) > maxName {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > maxLabel {
			return false
		}
		for i := range len(label) {
			if c := label[i]; (c < 'a' || c > 'z') && !isDigit(c) && c != '-' && c != '_' {
				return false
			}
		}
	}
	return true
}

// endsInNumber reports whether a browser takes a name for an address of version 4 (URL Standard, "ends in a number").
func endsInNumber(name string) bool {
	name = strings.TrimSuffix(name, ".")
	last := name[strings.LastIndexByte(name, '.')+1:]
	if digits, isHex := strings.CutPrefix(last, "0x"); isHex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// A Pattern is an origin, or every host below one.
type Pattern struct {
	origin Origin
	below  bool
	any    bool // whatever the host
}

// wild begins the host of a pattern that matches every host below the rest.
const wild = "*."

// ParsePattern reads an origin such as https://shop.example.com, or a pattern such as https://*.example.com.
func ParsePattern(text string) (Pattern, bool) {
	p := Pattern{}
	if scheme, rest, found := strings.Cut(text, "://"+wild); found {
		p.below, text = true, scheme+"://"+rest
	}
	var ok bool
	p.origin, ok = Parse(text)
	if p.below && (strings.HasPrefix(p.origin.Host, "[") || ok && endsInNumber(p.origin.Host)) {
		return Pattern{}, false // nothing is below an address
	}
	return p, ok
}

// ParseWidePattern reads a pattern as Gateway API has it: in any case, with the port that the scheme has anyway or
// without it, and https://* for every host.
func ParseWidePattern(text string) (Pattern, bool) {
	scheme, authority, found := strings.Cut(strings.ToLower(text), "://")
	if !found {
		return Pattern{}, false
	}
	authority = strings.TrimSuffix(authority, ":"+strconv.Itoa(int(ownPort(scheme))))
	rest, isAny := strings.CutPrefix(authority, "*")
	if isAny = isAny && (rest == "" || rest[0] == ':'); isAny {
		authority = "any" + rest
	}
	p, ok := ParsePattern(scheme + "://" + authority)
	p.any = isAny
	return p, ok
}

// Matches reports whether the pattern matches an origin: the scheme and the port are the same, and
// so is the host, or it is one or more labels before it.
func (p Pattern) Matches(o Origin) bool {
	if o.Scheme != p.origin.Scheme || o.Port != p.origin.Port {
		return false
	}
	if p.any {
		return true
	}
	if !p.below {
		return o.Host == p.origin.Host
	}
	above, isBelow := strings.CutSuffix(o.Host, "."+p.origin.Host)
	return isBelow && above != ""
}
