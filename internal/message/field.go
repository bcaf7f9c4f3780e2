package message

import "github.com/admission-gateway/gateway/internal/octets"

// Field names a header field that the gateway itself looks at. Field names
// are compared without regard to case once, when the head is scanned.
type Field uint8

// The fields that are known; every other name is FieldOther.
const (
	FieldOther Field = iota
	FieldAccept
	FieldAcceptEncoding
	FieldAuthorization
	FieldClientAddress // fields of foreign that identify the client
	FieldConnection
	FieldContentEncoding
	FieldContentLength
	FieldContentType
	FieldCookie
	FieldDate
	FieldDigest // Content-Digest, Repr-Digest, Digest, Content-MD5
	FieldExpect
	FieldForwarded
	FieldHost
	FieldHTTP2Settings
	FieldIfMatch
	FieldIfModifiedSince
	FieldIfNoneMatch
	FieldIfRange
	FieldIfUnmodifiedSince
	FieldImpersonate // every name that starts with Impersonate-
	FieldKeepAlive
	FieldMethodOverride // X-HTTP-Method-Override, X-HTTP-Method, X-Method-Override
	FieldOrigin
	FieldProxyAuthenticate
	FieldProxyAuthorization
	FieldProxyConnection
	FieldRange
	FieldTE
	FieldTargetOverride // fields of foreign that name another path
	FieldTraceparent
	FieldTracestate
	FieldTrailer
	FieldTransferEncoding
	FieldUpgrade
	FieldUserAgent
	FieldVia
	FieldXForwarded // X-Forwarded-* other than the three below
	FieldXForwardedFor
	FieldXForwardedHost
	FieldXForwardedProto
	FieldXRealIP
	FieldXRemote // every name that starts with X-Remote-
	FieldXRequestID
	FieldAuditID
	FieldXAdmissionExplain // asks the gateway for an explanation
)

// FieldSet is a set of known fields.
type FieldSet uint64

// Fields returns the set of the given fields.
func Fields(fields ...Field) FieldSet {
	var s FieldSet
	for _, f := range fields {
		s |= 1 << f
	}
	return s
}

// Has reports whether f is in the set.
func (s FieldSet) Has(f Field) bool { return s&(1<<f) != 0 }

// hopByHop are the fields that end at each hop whatever Connection says.
// Proxy-Authorization is among them: the gateway is no forward proxy, and
// credentials meant for one are not the backend's to see.
const hopByHop FieldSet = 1<<FieldConnection | 1<<FieldHTTP2Settings | 1<<FieldKeepAlive |
	1<<FieldProxyAuthenticate | 1<<FieldProxyAuthorization | 1<<FieldProxyConnection | 1<<FieldTE |
	1<<FieldTrailer | 1<<FieldTransferEncoding | 1<<FieldUpgrade

// single are the request fields that must not have a second line: each reader
// would take another one of the two.
const single FieldSet = 1<<FieldAuthorization | 1<<FieldContentEncoding | 1<<FieldContentLength |
	1<<FieldContentType | 1<<FieldExpect | 1<<FieldHost | 1<<FieldTransferEncoding

// FieldOf returns the known field of that name.
func FieldOf(name []byte) Field {
	switch len(name) {
	case 2:
		if is(name, "te") {
			return FieldTE
		}
	case 3:
		if is(name, "via") {
			return FieldVia
		}
	case 4:
		switch name[0] | 0x20 {
		case 'h':
			if is(name, "host") {
				return FieldHost
			}
		case 'd':
			if is(name, "date") {
				return FieldDate
			}
		}
	case 5:
		if is(name, "range") {
			return FieldRange
		}
	case 6:
		switch name[0] | 0x20 {
		case 'a':
			if is(name, "accept") {
				return FieldAccept
			}
		case 'd':
			if is(name, "digest") {
				return FieldDigest
			}
		case 'c':
			if is(name, "cookie") {
				return FieldCookie
			}
		case 'e':
			if is(name, "expect") {
				return FieldExpect
			}
		case 'o':
			if is(name, "origin") {
				return FieldOrigin
			}
		}
	case 7:
		switch name[0] | 0x20 {
		case 't':
			if is(name, "trailer") {
				return FieldTrailer
			}
		case 'u':
			if is(name, "upgrade") {
				return FieldUpgrade
			}
		}
	case 8:
		switch {
		case is(name, "audit-id"):
			return FieldAuditID
		case is(name, "if-match"):
			return FieldIfMatch
		case is(name, "if-range"):
			return FieldIfRange
		}
	case 9:
		switch {
		case is(name, "forwarded"):
			return FieldForwarded
		case is(name, "x-real-ip"):
			return FieldXRealIP
		}
	case 10:
		switch name[0] | 0x20 {
		case 'c':
			if is(name, "connection") {
				return FieldConnection
			}
		case 'u':
			if is(name, "user-agent") {
				return FieldUserAgent
			}
		case 'k':
			if is(name, "keep-alive") {
				return FieldKeepAlive
			}
		case 't':
			if is(name, "tracestate") {
				return FieldTracestate
			}
		}
	case 11:
		switch {
		case is(name, "traceparent"):
			return FieldTraceparent
		case is(name, "content-md5"), is(name, "repr-digest"):
			return FieldDigest
		}
	case 12:
		switch {
		case is(name, "content-type"):
			return FieldContentType
		case is(name, "x-request-id"):
			return FieldXRequestID
		}
	case 13:
		switch {
		case is(name, "authorization"):
			return FieldAuthorization
		case is(name, "if-none-match"):
			return FieldIfNoneMatch
		case is(name, "x-http-method"):
			return FieldMethodOverride
		}
	case 14:
		switch {
		case is(name, "content-length"):
			return FieldContentLength
		case is(name, "content-digest"):
			return FieldDigest
		case is(name, "http2-settings"):
			return FieldHTTP2Settings
		}
	case 15:
		switch {
		case is(name, "accept-encoding"):
			return FieldAcceptEncoding
		case is(name, "x-forwarded-for"):
			return FieldXForwardedFor
		}
	case 16:
		switch {
		case is(name, "content-encoding"):
			return FieldContentEncoding
		case is(name, "x-forwarded-host"):
			return FieldXForwardedHost
		case is(name, "proxy-connection"):
			return FieldProxyConnection
		}
	case 17:
		switch {
		case is(name, "transfer-encoding"):
			return FieldTransferEncoding
		case is(name, "if-modified-since"):
			return FieldIfModifiedSince
		case is(name, "x-forwarded-proto"):
			return FieldXForwardedProto
		case is(name, "x-method-override"):
			return FieldMethodOverride
		}
	case 18:
		if is(name, "proxy-authenticate") {
			return FieldProxyAuthenticate
		}
	case 19:
		switch {
		case is(name, "if-unmodified-since"):
			return FieldIfUnmodifiedSince
		case is(name, "proxy-authorization"):
			return FieldProxyAuthorization
		case is(name, "x-admission-explain"):
			return FieldXAdmissionExplain
		}
	case 22:
		if is(name, "x-http-method-override") {
			return FieldMethodOverride
		}
	}
	return fieldByPrefix(name)
}

func fieldByPrefix(name []byte) Field {
	if len(name) < 9 {
		return foreignField(name)
	}
	switch name[0] | 0x20 {
	case 'x':
		switch {
		case is(name[:9], "x-remote-"):
			return FieldXRemote
		case len(name) > 12 && is(name[:12], "x-forwarded-"):
			return FieldXForwarded
		}
	case 'i':
		if len(name) >= 12 && is(name[:12], "impersonate-") {
			return FieldImpersonate
		}
	}
	return foreignField(name)
}

// is reports whether name, a token, is lower without regard to case. lower
// holds letters, digits and dashes only: setting bit 5 maps no other token
// character onto one of them.
func is(name []byte, lower string) bool {
	n := len(lower)
	if len(name) != n {
		return false
	}
	if n < 8 {
		for i := range n {
			if name[i]|0x20 != lower[i] {
				return false
			}
		}
		return true
	}
	for i := 0; i < n-8; i += 8 {
		if !isWord(name[i:], lower[i:]) {
			return false
		}
	}
	return isWord(name[n-8:], lower[n-8:]) // which may have been looked at in part already
}

// isWord compares the first eight bytes as is does.
func isWord(name []byte, lower string) bool {
	return octets.Word(name)|0x20*octets.Ones == octets.WordOf(lower)
}

// equalFold compares two tokens without regard to ASCII case.
func equalFold(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i, c := range a {
		if lower(c) != lower(b[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}
