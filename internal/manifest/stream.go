package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/quote"
)

// readJSON reads JSON objects one after another, as `kubectl apply` takes them, up to the first that does not parse.
func (r *reader) readJSON(data []byte) {
	s := jsonStream{data: data, position: position{1, 1}}
	for s.more() {
		if err := r.nextJSON(&s); err != nil {
			r.errs = append(r.errs, r.noJSON(s, err))
			r.failed++
			return
		}
	}
}

// readByContent reads JSON objects up to the first value that is not JSON, and all from there on as YAML, as kubectl
// does. JSON may hold what YAML's scanner does not take (surrogate pairs, very long keys), and YAML in braces is not
// JSON.
func (r *reader) readByContent(data []byte) {
	s := jsonStream{data: data, position: position{1, 1}}
	for s.more() {
		if err := r.nextJSON(&s); err != nil {
			// lines count from the file's beginning
			r.readYAML(append(bytes.Repeat([]byte("\n"), s.line-1), data[s.at:]...))
			return
		}
	}
}

// A jsonStream is JSON whose values before an offset were read.
type jsonStream struct {
	data     []byte
	at       int
	position // of the offset
}

// more skips white space and reports whether anything else comes.
func (s *jsonStream) more() bool {
	next := s.at
	for next < len(s.data) && strings.IndexByte(" \t\r\n", s.data[next]) >= 0 {
		next++
	}
	s.moveTo(next)
	return next < len(s.data)
}

// moveTo goes on to an offset and returns its position.
func (s *jsonStream) moveTo(offset int) position {
	passed := s.data[s.at:offset]
	if lines := bytes.Count(passed, []byte{'\n'}); lines > 0 {
		s.line, s.column = s.line+lines, 1
		passed = passed[bytes.LastIndexByte(passed, '\n')+1:]
	}
	s.column += utf8.RuneCount(passed)
	s.at = offset
	return s.position
}

// nextJSON takes the next value. It stays where it is if that is not JSON. The error is document's.
func (r *reader) nextJSON(s *jsonStream) error {
	repeated := map[int]int{}
	d, read, err := document.ParseNext(s.data[s.at:], document.Limits{
		Bytes: len(s.data), Nodes: min(len(s.data), MaxValues), Depth: maxDepth + 1,
		Repeated: func(first, again int) { repeated[again] = first },
	})
	if err != nil {
		return err
	}
	c := compacter{reader: r, stream: *s, from: s.at, repeated: repeated, lines: map[int]int{},
		text: &text{json: make([]byte, 0, compactSize(d.Root()))}}
	failed := r.failed
	c.mark(s.position)
	c.value(d.Root(), "")
	d.Release() // before the compact text is parsed
	s.moveTo(s.at + read)
	r.add(c.text, r.failed > failed)
	return nil
}

// compactSize returns about how many bytes of compact JSON a value takes. It is exact unless a key has escapes.
func compactSize(n document.Node) (size int) {
	if kind := n.Kind(); kind != document.Object && kind != document.Array {
		return len(n.Raw())
	}
	size = 2
	for m := n.First(); m.Valid(); m = m.Next() {
		if size += compactSize(m) + 1; n.Kind() == document.Object {
			size += len(m.Key()) + 3
		}
	}
	return size
}

// compacter makes compact JSON of a value, and finds the keys that stand twice.
type compacter struct {
	*reader
	*text
	stream   jsonStream
	from     int         // where the value begins
	repeated map[int]int // the offsets of keys that stand in their object already, and of the first ones
	lines    map[int]int // the lines of the keys that are repeated
}

func (c *compacter) value(n document.Node, path string) {
	isObject := n.Kind() == document.Object
	if !isObject && n.Kind() != document.Array {
		c.json = append(c.json, n.Raw()...)
		return
	}
	open, end := byte('['), byte(']')
	if isObject {
		open, end = '{', '}'
	}
	c.json = append(c.json, open)
	i := 0
	for m := n.First(); m.Valid(); m = m.Next() {
		if i > 0 {
			c.json = append(c.json, ',')
		}
		offset, _ := m.Offset()
		place := c.stream.moveTo(c.from + offset)
		c.mark(place)
		at := ""
		if len(c.repeated) > 0 {
			at = path + "[" + strconv.Itoa(i) + "]"
			if isObject {
				at = childPath(path, m.Key())
				c.unique(offset, place, at)
			}
		}
		if isObject {
			c.json = append(document.AppendString(c.json, m.Key()), ':')
		}
		c.value(m, at)
		i++
	}
	c.json = append(c.json, end)
}

// unique notes a key, which may stand in its object already.
func (c *compacter) unique(offset int, at position, path string) {
	first, again := c.repeated[offset]
	if !again {
		c.lines[offset] = at.line
		return
	}
	c.fail(at, path, "must not be set twice; it is set on line %d already", c.lines[first])
	c.lines[first] = at.line
}

// noJSON says why a value is not JSON.
func (r *reader) noJSON(s jsonStream, why error) *Error {
	var err *document.Error
	if !errors.As(why, &err) {
		return &Error{File: r.file, Line: s.line, Column: s.column, Msg: "must be valid JSON: " + why.Error()}
	}
	rest := s.data[s.at:]
	at := s.moveTo(s.at + min(err.Offset, len(rest)))
	e := &Error{File: r.file, Line: at.line, Column: at.column, Path: err.Path}
	switch {
	case err.Code == document.TooDeep:
		e.Msg = fmt.Sprintf("must be nested at most %d levels deep", maxDepth)
	case err.Code == document.TooManyNodes:
		e.Msg = tooMany
	case err.Code == document.Encoding && strings.HasPrefix(err.Msg, "keys "):
		e.Msg = "must not have a key with the character U+0000"
	default:
		e.Msg = "must be valid JSON: " + sayJSON(rest, err)
		if strings.HasSuffix(err.Msg, noComma) {
			e.Path = lastMember(rest[:err.Offset])
		}
	}
	return e
}

// lastMember returns the path of the member that an incomplete text ends with.
func lastMember(data []byte) string {
	var open []byte
	isString := false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			isString = !isString
		case isString && c == '\\':
			i++
		case isString:
		case c == '{' || c == '[':
			open = append(open, c+2) // what closes it
		case c == '}' || c == ']':
			open = open[:len(open)-1]
		}
	}
	depth := len(open)
	slices.Reverse(open)
	whole := append(bytes.Clone(data), open...)
	d, err := document.Parse(whole, limitsOf(whole))
	if err != nil {
		return "" // there is another error
	}
	defer d.Release()
	at := d.Root()
	for range depth {
		for m := at.First(); m.Valid(); m = m.Next() {
			if !m.Next().Valid() {
				at = m
				break
			}
		}
	}
	return strings.Clone(at.Path())
}

const noComma = ", ',' or '}' must stand here"

// required are the sentences about what the parser requires at a place, in its own words.
var required = []struct{ what, sentence string }{
	{", a value must stand here", "a value must not begin with %s"},
	{", a digit must stand here", "a value must not begin with %s"},
	{", a key in double quotes must stand here", "a key must be a string in double quotes, not %s"},
	{", ':' must stand here", "a key must be followed by ':', not %s"},
	{noComma, "a member must be followed by ',' or '}', not %s"},
	{", ',' or ']' must stand here", "an item must be followed by ',' or ']', not %s"},
	{"control characters in strings must be escaped",
		"a string must not have the control character %s, which must be escaped"},
}

// sayJSON words an error of the parser as one about a file.
func sayJSON(data []byte, err *document.Error) string {
	found := func(at int) string {
		if at >= len(data) {
			return "the end of the file"
		}
		c, _ := utf8.DecodeRune(data[at:])
		return strconv.QuoteRune(c)
	}
	switch {
	case err.Msg == "unexpected end of the document, a value must stand here":
		return "a value must not be missing at the end of the file"
	case err.Msg == "unexpected end of the document within a string":
		return "a string must end with a double quote"
	case err.Msg == "numbers must not have leading zeros":
		return "a value must not begin with " + found(err.Offset+1)
	case err.Offset < len(data) && data[err.Offset] == '\\':
		return fmt.Sprintf("a string must not have this escape sequence: %q",
			quote.Cut(string(data[err.Offset:]), len(`\u0000`)))
	}
	for _, r := range required {
		if strings.HasSuffix(err.Msg, r.what) {
			return fmt.Sprintf(r.sentence, found(err.Offset))
		}
	}
	return err.Msg
}
