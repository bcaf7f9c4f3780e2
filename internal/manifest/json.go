package manifest

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// readJSON reads JSON objects one after another, as `kubectl apply` takes them, up to the first that does not parse.
func (r *reader) readJSON(data []byte) {
	p := &jsonParser{reader: r, data: string(data), line: 1}
	for {
		p.space()
		if p.at == len(p.data) {
			return
		}
		before := r.failed
		v, ok := p.value("", 0)
		if !ok {
			return
		}
		r.add(v, r.failed > before)
	}
}

// jsonParser is a strict reader of RFC 8259 that keeps line numbers. It stops at the first syntax error and goes on
// after a duplicate key.
type jsonParser struct {
	*reader
	data string
	at   int
	line int
}

func (p *jsonParser) syntax(path, format string, args ...any) (*value, bool) {
	p.fail(p.line, path, "must be valid JSON: %s", fmt.Sprintf(format, args...))
	return nil, false
}

func (p *jsonParser) space() {
	for ; p.at < len(p.data); p.at++ {
		switch p.data[p.at] {
		case '\n':
			p.line++
		case ' ', '\t', '\r':
		default:
			return
		}
	}
}

// next skips space and takes c if it comes next.
func (p *jsonParser) next(c byte) bool {
	p.space()
	if p.at < len(p.data) && p.data[p.at] == c {
		p.at++
		return true
	}
	return false
}

// found describes what stands at the current place, for messages.
func (p *jsonParser) found() string {
	if p.at >= len(p.data) {
		return "the end of the file"
	}
	c, _ := utf8.DecodeRuneInString(p.data[p.at:])
	return strconv.QuoteRune(c)
}

func (p *jsonParser) value(path string, depth int) (*value, bool) {
	if depth > maxDepth {
		p.fail(p.line, path, "must be nested at most %d levels deep", maxDepth)
		return nil, false
	}
	p.space()
	v := &value{line: p.line}
	ok := false
	if p.at < len(p.data) {
		switch c := p.data[p.at]; {
		case c == '{':
			v.kind = object
			ok = p.object(v, path, depth)
		case c == '[':
			v.kind = array
			ok = p.array(v, path, depth)
		case c == '"':
			v.kind = str
			v.text, v.raw, ok = p.string(path)
		default:
			ok = p.literal(v) || p.number(v)
			if !ok {
				return p.syntax(path, "a value must not begin with %s", p.found())
			}
		}
	} else {
		return p.syntax(path, "a value must not be missing at the end of the file")
	}
	if !ok {
		return nil, false
	}
	v.measure()
	return v, true
}

func (p *jsonParser) literal(v *value) bool {
	for _, word := range []string{"null", "true", "false"} {
		if strings.HasPrefix(p.data[p.at:], word) {
			p.at += len(word)
			v.text = word
			return true
		}
	}
	return false
}

func (p *jsonParser) number(v *value) bool {
	start := p.at
	digits := func() bool {
		from := p.at
		for p.at < len(p.data) && p.data[p.at] >= '0' && p.data[p.at] <= '9' {
			p.at++
		}
		return p.at > from
	}
	take := func(any string) bool {
		if p.at < len(p.data) && strings.IndexByte(any, p.data[p.at]) >= 0 {
			p.at++
			return true
		}
		return false
	}
	take("-")
	ok := take("0") || digits()
	if ok && take(".") {
		ok = digits()
	}
	if ok && take("eE") {
		take("+-")
		ok = digits()
	}
	// "01" and "1x" are not a number followed by something else.
	if ok && p.at < len(p.data) && !strings.ContainsRune(" \t\r\n,]}", rune(p.data[p.at])) {
		ok = false
	}
	v.text = p.data[start:p.at]
	return ok
}

func (p *jsonParser) array(v *value, path string, depth int) bool {
	p.at++
	if p.next(']') {
		return true
	}
	for {
		p.space()
		line := p.line
		item, ok := p.value(path+"["+strconv.Itoa(len(v.members))+"]", depth+1)
		if !ok {
			return false
		}
		v.members = append(v.members, member{line: line, value: item})
		if p.next(']') {
			return true
		}
		if !p.next(',') {
			p.syntax(path, "an item must be followed by ',' or ']', not %s", p.found())
			return false
		}
	}
}

func (p *jsonParser) object(v *value, path string, depth int) bool {
	p.at++
	if p.next('}') {
		return true
	}
	seen := map[string]int{}
	for {
		p.space()
		line := p.line
		if p.at >= len(p.data) || p.data[p.at] != '"' {
			p.syntax(path, "a key must be a string in double quotes, not %s", p.found())
			return false
		}
		key, _, ok := p.string(path)
		if !ok {
			return false
		}
		memberPath := childPath(path, key)
		if strings.Contains(key, "\x00") {
			p.fail(line, path, "must not have a key with the character U+0000")
			return false
		}
		if first, twice := seen[key]; twice {
			p.fail(line, memberPath, "must not be set twice; it is set on line %d already", first)
		}
		seen[key] = line
		if !p.next(':') {
			p.syntax(memberPath, "a key must be followed by ':', not %s", p.found())
			return false
		}
		memberValue, ok := p.value(memberPath, depth+1)
		if !ok {
			return false
		}
		v.members = append(v.members, member{key: key, line: line, value: memberValue})
		if p.next('}') {
			return true
		}
		if !p.next(',') {
			p.syntax(memberPath, "a member must be followed by ',' or '}', not %s", p.found())
			return false
		}
	}
}

// string takes a string; raw is its spelling in the file.
func (p *jsonParser) string(path string) (text, raw string, ok bool) {
	start := p.at
	var b strings.Builder
	for p.at++; p.at < len(p.data); {
		switch c := p.data[p.at]; {
		case c == '"':
			p.at++
			return b.String(), p.data[start:p.at], true
		case c < 0x20:
			p.syntax(path, "a string must not have the control character %s, which must be escaped", p.found())
			return "", "", false
		case c != '\\':
			b.WriteByte(c)
			p.at++
		case !p.escape(&b):
			p.syntax(path, "a string must not have this escape sequence: %q", clip(p.data[p.at:]))
			return "", "", false
		}
	}
	p.syntax(path, "a string must end with a double quote")
	return "", "", false
}

// escape takes an escape sequence; it leaves the place where it is if there is none that means a character.
func (p *jsonParser) escape(b *strings.Builder) bool {
	if p.at+1 >= len(p.data) {
		return false
	}
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	if i := strings.IndexByte(from, p.data[p.at+1]); i >= 0 {
		b.WriteByte(to[i])
		p.at += 2
		return true
	}
	c, ok := hexEscape(p.data[p.at:])
	if !ok {
		return false
	}
	size := 6
	if utf16.IsSurrogate(c) {
		low, ok := hexEscape(p.data[p.at+6:])
		if c = utf16.DecodeRune(c, low); !ok || c == utf8.RuneError {
			return false
		}
		size = 12
	}
	b.WriteRune(c)
	p.at += size
	return true
}

// hexEscape reads `\uXXXX`.
func hexEscape(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	c, err := strconv.ParseUint(s[2:6], 16, 16)
	return rune(c), err == nil
}

func clip(s string) string {
	if len(s) > 6 {
		s = strings.ToValidUTF8(s[:6], "")
	}
	return s
}
