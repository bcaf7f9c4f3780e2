package identity

import (
	"errors"
	"net/netip"
	"strings"
)

// ErrForwarded is the error of a Forwarded header that is not written as RFC 7239 has it. A client could let what a
// proxy appends to it look like a part of its own text.
var ErrForwarded = errors.New("the header 'Forwarded' must be a list of elements such as 'for=192.0.2.1;proto=https', as RFC 7239 has them")

// An Origin is what trusted proxies say of a request as the client sent it.
type Origin struct {
	Client netip.Addr
	// Proto and Host are empty if no proxy says them.
	Proto, Host string
}

// An element says how one proxy got the request.
type element struct{ node, proto, host string }

// Forwarded returns what the Forwarded lines of a request say (RFC 7239). As in [TrustedProxies.Client] only what a
// trusted proxy appended counts, and an element without an address, such as 'for=unknown' or 'for=_hidden', ends the
// walk at the proxy that sent it.
func (t *TrustedProxies) Forwarded(peer netip.Addr, lines ...string) (Origin, error) {
	var elements []element
	for _, line := range lines {
		var err error
		if elements, err = appendElements(elements, line); err != nil {
			return Origin{}, err
		}
	}
	o := Origin{Client: plain(peer)}
	for i := len(elements) - 1; i >= 0 && t.Trusts(o.Client); i-- {
		e := &elements[i]
		if e.proto != "" {
			o.Proto = e.proto
		}
		if e.host != "" {
			o.Host = e.host
		}
		client, isAddress := parseNode(e.node)
		if !isAddress {
			break
		}
		o.Client = client
	}
	return o, nil
}

// parseNode reads the address of a node, whose port may be an obfuscated one ('192.0.2.1:_port').
func parseNode(s string) (netip.Addr, bool) {
	if i := strings.LastIndex(s, ":_"); i > 0 {
		s = s[:i]
	}
	return parseForwarded(s)
}

// appendElements appends the elements of a line. Empty ones are left out, as in any list of HTTP.
func appendElements(to []element, line string) ([]element, error) {
	rest := line
	for {
		var e element
		var hasNode, hasProto, hasHost, isEmpty = false, false, false, true
		for {
			rest = strings.TrimLeft(rest, " \t")
			if rest == "" || rest[0] == ',' {
				break
			}
			if rest[0] == ';' {
				rest = rest[1:]
				continue
			}
			name, value, after, isRead := pairOf(rest)
			if !isRead {
				return nil, ErrForwarded
			}
			rest, isEmpty = after, false
			var at *string
			var has *bool
			switch {
			case strings.EqualFold(name, "for"):
				at, has = &e.node, &hasNode
			case strings.EqualFold(name, "proto"):
				at, has = &e.proto, &hasProto
			case strings.EqualFold(name, "host"):
				at, has = &e.host, &hasHost
			default:
				continue
			}
			if *has {
				return nil, ErrForwarded // each parameter occurs once in an element
			}
			*at, *has = value, true
		}
		if !isScheme(e.proto) || !isAuthority(e.host) {
			return nil, ErrForwarded
		}
		if !isEmpty {
			to = append(to, e)
		}
		if rest == "" {
			return to, nil
		}
		rest = rest[1:] // the comma
	}
}

// pairOf reads a parameter and its value from the start of a text. What follows is empty, or begins with a comma or a
// semicolon.
func pairOf(s string) (name, value, rest string, isRead bool) {
	end := tokenLength(s, "")
	if end == 0 || end == len(s) || s[end] != '=' {
		return "", "", "", false
	}
	name, rest = s[:end], s[end+1:]
	if strings.HasPrefix(rest, `"`) {
		value, rest, isRead = quotedText(rest)
		if !isRead {
			return "", "", "", false
		}
	} else {
		// Many proxies leave out the quotes of IPv6 addresses and ports.
		end = tokenLength(rest, ":[]")
		value, rest = rest[:end], rest[end:]
	}
	rest = strings.TrimLeft(rest, " \t")
	return name, value, rest, value != "" && (rest == "" || rest[0] == ',' || rest[0] == ';')
}

// quotedText reads a text in quotes from the start of s.
func quotedText(s string) (text, rest string, isRead bool) {
	var plain strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return plain.String(), s[i+1:], true
		case '\\':
			if i++; i == len(s) {
				return "", "", false
			}
		}
		plain.WriteByte(s[i])
	}
	return "", "", false
}

// tokenLength returns how many bytes at the start of a text are of a token of HTTP, or among others.
func tokenLength(s, others string) int {
	for i := range len(s) {
		if c := s[i]; !isLetter(c) && !isDigit(c) && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 &&
			strings.IndexByte(others, c) < 0 {
			return i
		}
	}
	return len(s)
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isScheme reports whether a text is the name of a protocol, or empty.
func isScheme(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isLetter(c) && (i == 0 || !isDigit(c) && c != '+' && c != '-' && c != '.') {
			return false
		}
	}
	return true
}

// isAuthority reports whether a text may be the value of Host, or is empty.
func isAuthority(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isLetter(c) && !isDigit(c) && strings.IndexByte("-._~!$&'()*+=:[]%", c) < 0 {
			return false
		}
	}
	return true
}
