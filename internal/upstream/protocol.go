package upstream

import (
	"errors"
	"fmt"
)

// Protocol says which version of HTTP a backend is asked in.
type Protocol uint8

// The protocols.
const (
	// HTTP1 is HTTP/1.1.
	HTTP1 Protocol = iota
	// HTTP2 is HTTP/2: agreed on by ALPN behind TLS, and known beforehand without.
	HTTP2
	// Auto is what the backend prefers by ALPN; without TLS it is HTTP/1.1.
	Auto
)

// alpn returns the names that are offered by ALPN; nil for those of the settings of TLS.
func (p Protocol) alpn() []string {
	switch p {
	case HTTP2:
		return []string{nameHTTP2}
	case Auto:
		return []string{nameHTTP2, nameHTTP1}
	}
	return nil
}

const nameHTTP1, nameHTTP2 = "http/1.1", "h2"

// errWeak is the error of a server that agrees to HTTP/2 by a cipher suite that HTTP/2 forbids (RFC 9113, 9.2.2).
var errWeak = errors.New("the server agrees to HTTP/2 by a cipher suite of TLS 1.2 that HTTP/2 forbids")

// isHTTP2 reports whether a connection is one of HTTP/2, if that name was agreed on by ALPN. secure says that there is
// TLS.
func (p Protocol) isHTTP2(agreed string, secure bool) (bool, error) {
	switch {
	case p == HTTP1 || p == Auto && !secure:
		return false, nil
	case p == HTTP2 && secure && agreed != nameHTTP2:
		return false, fmt.Errorf("the server does not agree to HTTP/2 by ALPN")
	}
	return !secure || agreed == nameHTTP2, nil
}
