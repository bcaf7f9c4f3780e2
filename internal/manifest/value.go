package manifest

import (
	"strings"
)

// kind is the JSON type of a value.
type kind uint8

const (
	other kind = iota // null, a boolean or a number: its JSON text is all there is to know
	str
	object
	array
)

// value is a JSON value with its place in the file. A value that an alias repeats is one value with several parents.
type value struct {
	kind    kind
	line    int
	size    int      // length of its JSON, at most maxExpandedBytes+1
	text    string   // the string, or the JSON of other scalars
	raw     string   // a string's JSON as it stands in a JSON file, or empty
	letter  string   // of a boolean that is written as a letter, or empty
	members []member // of objects and arrays
}

// member is a member of an object or, with an empty key, an item of an array.
type member struct {
	key   string
	line  int // where the key or the item begins
	value *value
}

func (v *value) member(key string) (member, bool) {
	if v.kind == object {
		for _, m := range v.members {
			if m.key == key {
				return m, true
			}
		}
	}
	return member{}, false
}

func (v *value) get(key string) (*value, bool) {
	m, ok := v.member(key)
	return m.value, ok
}

// stringMember returns a member that is a string, or "".
func (v *value) stringMember(key string) string {
	if m, ok := v.get(key); ok && m.kind == str {
		return m.text
	}
	return ""
}

// withType returns an object with apiVersion and kind where v has none.
func (v *value) withType(apiVersion, kind string) *value {
	typed := *v
	typed.members = nil
	for _, m := range []member{{key: "apiVersion", value: &value{kind: str, text: apiVersion}}, {key: "kind", value: &value{kind: str, text: kind}}} {
		if _, ok := v.get(m.key); !ok {
			m.line, m.value.line = v.line, v.line
			typed.members = append(typed.members, m)
		}
	}
	typed.members = append(typed.members, v.members...)
	return &typed
}

// measure sets the size from the parts, which are complete. It saturates, so that aliases cannot make it overflow.
func (v *value) measure() {
	size := 2
	switch v.kind {
	case other:
		size = len(v.text)
	case str:
		size = len(v.text) + 2 // an estimate: escapes come on top
		if v.raw != "" {
			size = len(v.raw)
		}
	default:
		for _, m := range v.members {
			size += m.value.size + 1
			if v.kind == object {
				size += len(m.key) + 3
			}
			if size > maxExpandedBytes {
				size = maxExpandedBytes + 1
				break
			}
		}
	}
	v.size = size
}

// appendJSON appends v as compact JSON.
func (v *value) appendJSON(dst []byte) []byte {
	switch v.kind {
	case str:
		if v.raw != "" {
			return append(dst, v.raw...)
		}
		return appendString(dst, v.text)
	case object:
		dst = append(dst, '{')
		for i, m := range v.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, m.key), ':')
			dst = m.value.appendJSON(dst)
		}
		return append(dst, '}')
	case array:
		dst = append(dst, '[')
		for i, m := range v.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = m.value.appendJSON(dst)
		}
		return append(dst, ']')
	default:
		return append(dst, v.text...)
	}
}

// appendString appends s, which is valid UTF-8, as a JSON string. Only what JSON demands is escaped.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for len(s) > 0 {
		plain := strings.IndexFunc(s, func(c rune) bool { return c < 0x20 || c == '"' || c == '\\' })
		if plain < 0 {
			dst = append(dst, s...)
			break
		}
		dst = append(dst, s[:plain]...)
		switch c := s[plain]; c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		s = s[plain+1:]
	}
	return append(dst, '"')
}
