package message

import "bytes"

// ContentType is a Content-Type that every reader of bodies reads alike: a media type, and at most one parameter, which
// can only say that the text is UTF-8. The zero value is any other Content-Type, which is no type at all.
type ContentType struct {
	media []byte
	// Charset: it has that parameter.
	Charset bool
}

// ParseContentType reads the value of a header Content-Type.
func ParseContentType(value []byte) ContentType {
	media, parameter, parameterized := bytes.Cut(value, []byte(";"))
	media = trim(media)
	major, minor, _ := bytes.Cut(media, []byte("/"))
	if !isToken(major) || !isToken(minor) || parameterized && !isUTF8(trim(parameter)) {
		return ContentType{}
	}
	return ContentType{media, parameterized}
}

// Is reports whether media, in lower case, is the media type.
func (c ContentType) Is(media string) bool { return equalFold(c.media, []byte(media)) }

// isUTF8 reports whether a parameter is charset=utf-8 or charset="utf-8". A quoted string with escapes says the same
// in too many ways.
func isUTF8(parameter []byte) bool {
	name, value, _ := bytes.Cut(parameter, []byte("="))
	if len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' {
		value = value[1 : len(value)-1]
	}
	return equalFold(name, []byte("charset")) && equalFold(value, []byte("utf-8"))
}

// A MediaType is a Content-Type with any parameters.
type MediaType struct {
	// Name is the type in lower case.
	Name string
	// Boundary is the parameter of that name, if it is the only one.
	Boundary string
}

// ParseMediaType reads the value of a header Content-Type; ok is false if it cannot be read in one way only.
func ParseMediaType(value []byte) (m MediaType, ok bool) {
	if string(value) == "application/json" { // as nearly all requests with an object have it
		return MediaType{Name: "application/json"}, true
	}
	media, rest, _ := bytes.Cut(value, []byte(";"))
	major, minor, _ := bytes.Cut(trim(media), []byte("/"))
	if !isToken(major) || !isToken(minor) {
		return m, false
	}
	parameters := 0
	for rest = trim(rest); len(rest) > 0; parameters++ {
		name, after, _ := bytes.Cut(rest, []byte("="))
		text, behind, closed := bytes.Cut(after, []byte(";"))
		if len(after) > 0 && after[0] == '"' {
			if text, behind, closed = bytes.Cut(after[1:], []byte(`"`)); !closed || bytes.IndexByte(text, '\\') >= 0 {
				return m, false
			}
			if behind = trim(behind); len(behind) > 0 && behind[0] != ';' {
				return m, false
			}
			closed, behind = len(behind) > 0, bytes.TrimPrefix(behind, []byte(";"))
		} else if !isToken(trim(text)) {
			return m, false
		}
		if rest = trim(behind); !isToken(name) || closed && len(rest) == 0 {
			return m, false
		}
		if equalFold(name, []byte("boundary")) {
			m.Boundary = string(trim(text))
		}
	}
	if parameters > 1 {
		m.Boundary = ""
	}
	m.Name = string(bytes.ToLower(trim(media)))
	return m, true
}
