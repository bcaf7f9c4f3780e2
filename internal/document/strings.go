package document

import (
	"bytes"
	"unicode/utf8"
	"unsafe"

	"github.com/admission-gateway/gateway/internal/octets"
	"github.com/admission-gateway/gateway/internal/quote"
)

// viewString is b as a string, without a copy.
func viewString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// isASCII reports whether all bytes of s are ASCII.
func isASCII(s string) bool {
	p, n := unsafe.Pointer(unsafe.StringData(s)), len(s)
	if n <= 8 {
		return shortWord(p, n)&octets.Highs == 0
	}
	all := load64(p, n-8)
	for i := 0; i < n-8; i += 8 {
		all |= load64(p, i)
	}
	return all&octets.Highs == 0
}

// scanString checks a string from the byte after its opening quotation mark. It
// returns the offset of the closing one, or of the offending byte with a message.
func scanString(src []byte, i int) (at int, flags uint32, code ErrorCode, msg string) {
	base := unsafe.Pointer(unsafe.SliceData(src))
	for {
		for i+8 <= len(src) {
			if marks := specialOrWide(load64(base, i)); marks != 0 {
				i += firstMarked(marks)
				break
			}
			i += 8
		}
		if i >= len(src) {
			return i, flags, Syntax, "unexpected end of the document within a string"
		}
		switch c := src[i]; {
		case c == '"':
			return i, flags, 0, ""
		case c == '\\':
			size, isNUL, code, msg := scanEscape(src[i:])
			if msg != "" {
				return i, flags, code, msg
			}
			flags |= flagEscaped
			if isNUL {
				flags |= flagNUL
			}
			i += size
		case c < ' ':
			return i, flags, Syntax, "control characters in strings must be escaped"
		case c < utf8.RuneSelf:
			i++
		default:
			if i = skipWide(src, i); i < len(src) && src[i] >= utf8.RuneSelf {
				return i, flags, Encoding, "strings must be valid UTF-8"
			}
		}
	}
}

// skipWide returns the offset of the next byte from i that is ASCII, or begins no valid character.
func skipWide(src []byte, i int) int {
	base := unsafe.Pointer(unsafe.SliceData(src))
	for i < len(src) && src[i] >= utf8.RuneSelf {
		if i+4 <= len(src) {
			word := load32(base, i)
			if word&0xc0e0 == 0x80c0 && word&0x1e != 0 { // two bytes, and no less would do
				i += 2
				if word >>= 16; word&0xc0e0 == 0x80c0 && word&0x1e != 0 { // again
					i += 2
				}
				continue
			}
			if word&0xc0c0f0 == 0x8080e0 { // three bytes; neither would less do, nor is it a surrogate
				if least := word & 0x200f; least != 0 && least != 0x200d {
					i += 3
					continue
				}
			}
		}
		r, size := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		i += size
	}
	return i
}

// scanEscape checks the escape that b begins with. Surrogates must come in pairs.
func scanEscape(b []byte) (size int, isNUL bool, code ErrorCode, msg string) {
	if len(b) < 2 {
		return 0, false, Syntax, "unexpected end of the document within a string"
	}
	switch {
	case isShortEscape(b[1]):
		return 2, false, 0, ""
	case b[1] != 'u':
		return 0, false, Syntax, `a backslash in a string must be followed by one of '"\/bfnrtu'`
	}
	r := hex4(b)
	if r < 0 {
		return 0, false, Syntax, `'\u' must be followed by four hexadecimal digits`
	}
	if r < 0xd800 || r > 0xdfff {
		return 6, r == 0, 0, ""
	}
	if r <= 0xdbff && len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
		if low := hex4(b[6:]); low >= 0xdc00 && low <= 0xdfff {
			return 12, false, 0, ""
		}
	}
	return 0, false, Encoding, "escapes of surrogates must come in pairs"
}

// isShortEscape reports whether a backslash and c are an escape of one character.
func isShortEscape(c byte) bool {
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	}
	return false
}

// hex4 reads the digits of '\uXXXX', -1 without four of them.
func hex4(b []byte) rune {
	if len(b) < 6 {
		return -1
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c-'0' <= 9:
			c -= '0'
		case c|0x20-'a' <= 5:
			c = c | 0x20 - 'a' + 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// decodeEscape decodes the escape that b, once accepted by the parser, begins with.
func decodeEscape(b []byte) (r rune, size int) {
	switch b[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r = hex4(b)
		if r < 0xd800 || r > 0xdfff {
			return r, 6
		}
		return (r-0xd800)<<10 | (hex4(b[6:]) - 0xdc00) + 0x10000, 12
	}
	return rune(b[1]), 2
}

// appendDecoded appends what stands between the quotation marks of an accepted
// string, its escapes decoded.
func appendDecoded(dst, raw []byte) []byte {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:i]...)
		r, size := decodeEscape(raw[i:])
		dst = utf8.AppendRune(dst, r)
		raw = raw[i+size:]
	}
}

// decodedIs reports whether raw, which has escapes, decodes to s.
func decodedIs(raw []byte, s string) bool {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return string(raw) == s
		}
		if len(s) < i || s[:i] != string(raw[:i]) {
			return false
		}
		r, size := decodeEscape(raw[i:])
		raw, s = raw[i+size:], s[i:]
		var buf [utf8.UTFMax]byte
		enc := utf8.AppendRune(buf[:0], r)
		if len(s) < len(enc) || s[:len(enc)] != string(enc) {
			return false
		}
		s = s[len(enc):]
	}
}

// sameKey compares the decoded keys of two members whose keys are in src.
func sameKey(src []byte, a, b *entry) bool {
	ka, kb := src[a.key:a.keyEnd], src[b.key:b.keyEnd]
	switch {
	case a.meta&flagKeyEscaped == 0 && b.meta&flagKeyEscaped == 0:
		return bytes.Equal(ka, kb)
	case a.meta&flagKeyEscaped == 0:
		return decodedIs(kb, viewString(ka))
	case b.meta&flagKeyEscaped == 0:
		return decodedIs(ka, viewString(kb))
	}
	return decodedIs(ka, string(appendDecoded(nil, kb)))
}

func msgDuplicate(src []byte, t *entry) string {
	key := src[t.key:t.keyEnd]
	if t.meta&flagKeyEscaped != 0 {
		key = appendDecoded(nil, key)
	}
	return "duplicate key '" + abbreviate(string(key)) + "'"
}

// AppendString appends s as a JSON string. Bytes that are not UTF-8 become
// U+FFFD, and nothing is escaped that need not be.
func AppendString(dst []byte, s string) []byte { return quote.AppendJSON(dst, s) }
