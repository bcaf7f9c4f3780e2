package contract

import (
	"bytes"
	"strings"
	"sync"
	"unsafe"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/quote"
	"github.com/admission-gateway/gateway/internal/resource"
)

// A reader reads the parameters of one request, or the fields of one form.
type reader struct {
	parameters []Parameter
	found      []occurrence
	texts      []string // of the value at hand
	json       []byte   // the object of all values
	text       []byte   // of the value at hand, decoded
	failures   field.ErrorList
	in         Place // of the value at hand
	isDecoded  bool  // the texts are not percent-encoded
}

// A spot is the place of a value, for failures.
type spot struct {
	of     *Parameter
	member string
	index  int // of an item in a list; -1 if not in one
}

func (s spot) path() *field.Path {
	at := s.of.path()
	switch {
	case s.member == "":
	case s.of.Keys != KeysSpread:
		at = at.Child(shown(s.member))
	case s.of.In == InBody:
		at = field.NewPath(shown(s.member))
	default:
		at = field.NewPath(s.of.In.String()).Child(shown(s.member))
	}
	if s.index >= 0 {
		at = at.Index(s.index)
	}
	return at
}

// An occurrence is a text that a request has for a parameter, or for a member of one, as it was
// received.
type occurrence struct {
	parameter    int
	member, text string
}

var readers = sync.Pool{New: func() any { return new(reader) }}

// keptBytes bounds the memory that a reader keeps for the next request, keptTexts how many texts.
const (
	keptBytes = 8 << 10
	keptTexts = 256
)

func (r *reader) release() {
	clear(r.found)
	clear(r.texts)
	*r = reader{found: r.found[:0], texts: r.texts[:0], json: r.json[:0], text: r.text[:0]}
	if cap(r.json) <= keptBytes && cap(r.text) <= keptBytes && cap(r.found) <= keptTexts && cap(r.texts) <= keptTexts {
		readers.Put(r)
	}
}

// path finds the parameters of the path by their places in it.
func (r *reader) path(path string) {
	path = strings.TrimSuffix(path, "/") // which a described path may have, or not
	for k := range r.parameters {
		p := &r.parameters[k]
		if p.In != InPath {
			return
		}
		rest := path
		for range p.Segment {
			if at := strings.LastIndexByte(rest, '/'); at >= 0 {
				rest = rest[:at]
			}
		}
		text := rest[strings.LastIndexByte(rest, '/')+1:]
		if p.Literals != nil {
			text, _ = resource.VariableIn(p.Literals, text, p.Variable)
		}
		r.found = append(r.found, occurrence{parameter: k, text: text})
	}
}

// query finds the parameters of the query, which is read once.
func (r *reader) query(query string) {
	if !r.has(InQuery) {
		return
	}
	for rest := query; rest != ""; {
		var pair string
		pair, rest, _ = strings.Cut(rest, "&")
		key, value, _ := strings.Cut(pair, "=")
		if strings.ContainsAny(key, "%+") {
			key = string(r.decode(key, true))
		}
		r.find(InQuery, key, value)
	}
}

// headers finds the parameters in headers and cookies.
func (r *reader) headers(head *message.Head) {
	hasHeaders, hasCookies := r.has(InHeader), r.has(InCookie)
	if !hasHeaders && !hasCookies {
		return
	}
	lines := head.Headers()
	for k := range lines {
		l := &lines[k]
		switch {
		case l.Dropped:
		case hasCookies && l.Field == message.FieldCookie:
			r.cookies(str(l.Value))
		case hasHeaders:
			for at := range r.parameters {
				if p := &r.parameters[at]; p.In == InHeader && strings.EqualFold(p.Name, str(l.Name)) {
					r.found = append(r.found, occurrence{parameter: at, text: str(bytes.TrimSpace(l.Value))})
				}
			}
		}
	}
}

func (r *reader) cookies(line string) {
	for one := range strings.SplitSeq(line, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(one), "=")
		r.find(InCookie, name, value)
	}
}

// has reports whether there are parameters of a place.
func (r *reader) has(in Place) bool {
	for k := range r.parameters {
		if r.parameters[k].In == in {
			return true
		}
	}
	return false
}

// find notes a text if it is one of a parameter, and reports whether it is.
func (r *reader) find(in Place, name, text string) bool {
	for k := range r.parameters {
		if p := &r.parameters[k]; p.In == in && p.Name == name && !p.isScattered() {
			r.found = append(r.found, occurrence{parameter: k, text: text})
			return true
		}
	}
	for k := range r.parameters {
		if p := &r.parameters[k]; p.In == in && p.isScattered() {
			if member, ok := p.memberIn(name); ok {
				r.found = append(r.found, occurrence{k, member, text})
				return true
			}
		}
	}
	return false
}

// isScattered reports whether the members of an object are parameters of their own.
func (p *Parameter) isScattered() bool { return p.Shape == Object && p.Keys >= KeysSpread }

// memberIn returns the member of an object that a name of a request refers to.
func (p *Parameter) memberIn(name string) (member string, ok bool) {
	if p.Keys == KeysDeep {
		rest, ok := strings.CutPrefix(name, p.Name+"[")
		if member, closed := strings.CutSuffix(rest, "]"); closed {
			return member, ok
		}
		return "[" + rest, ok // which is refused: some servers would take it for a member
	}
	for k := range p.Members {
		if p.Members[k].Name == name {
			return name, true
		}
	}
	return name, p.Others != nil
}

// fail notes what is wrong with a text.
func (r *reader) fail(at spot, text, why string) {
	if len(r.failures) < maxFailures {
		r.failures = append(r.failures, field.Invalid(at.path(), shown(text), why))
	}
}

// shown is a text as messages repeat it.
func shown(text string) string {
	return strings.ToValidUTF8(strings.Clone(quote.Clip(text, quote.MaxValue)), "\uFFFD")
}

// maxFailures bounds how many failures are kept.
const maxFailures = 256

// str views bytes as a string. They must not change while it is in use.
func str(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// decoded returns a text without the encoding of its place. It is valid until the next one.
func (r *reader) decoded(text string) string {
	plus := r.in == InQuery || r.in == InBody
	switch {
	case r.isDecoded:
	case r.in == InHeader:
		return strings.TrimSpace(text)
	case strings.IndexByte(text, '%') >= 0, plus && strings.IndexByte(text, '+') >= 0:
		return str(r.decode(text, plus))
	}
	return text
}

// decode decodes a text of a URL or a form; plus reports whether a '+' is a blank. A '%' without digits, which no
// resource's query may have, stays.
func (r *reader) decode(text string, plus bool) []byte {
	r.text = r.text[:0]
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '+' && plus:
			c = ' '
		case c == '%' && i+2 < len(text) && unhex(text[i+1]) >= 0 && unhex(text[i+2]) >= 0:
			c = byte(unhex(text[i+1])<<4 | unhex(text[i+2]))
			i += 2
		}
		r.text = append(r.text, c)
	}
	return r.text
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
