package mutation

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/admission-gateway/gateway/internal/document"
)

// A step of a location leads to a member of an object, or to items of a list.
type step struct {
	list bool
	// name is the member's, or the key that identifies items.
	name   string
	member document.Name
	each   bool // every item
	// The value of the item's key: a string, or an integer if isInt is set.
	text  string
	isInt bool
	value int64
}

// key is the value of the item's key as JSON.
func (s *step) key() []byte {
	if s.isInt {
		return strconv.AppendInt(nil, s.value, 10)
	}
	return document.AppendString(nil, s.text)
}

// selects reports whether an item has the value of the key.
func (s *step) selects(item document.Node) bool {
	n, ok := item.Lookup(s.member)
	if !ok || !s.isInt {
		return ok && n.Is(s.text)
	}
	value, ok := n.Int64()
	return ok && n.IsInteger() && value == s.value
}

// same reports whether two steps lead to the same.
func (s *step) same(o *step) bool {
	return s.list == o.list && s.name == o.name && s.each == o.each && s.isInt == o.isInt && s.text == o.text &&
		s.value == o.value
}

// String writes the step as locations have it.
func (s *step) String() string {
	switch {
	case !s.list:
		return quoted(s.name)
	case s.each:
		return "[" + quoted(s.name) + ": *]"
	case s.isInt:
		return "[" + quoted(s.name) + ": " + strconv.FormatInt(s.value, 10) + "]"
	}
	return "[" + quoted(s.name) + ": " + quoted(s.text) + "]"
}

// textOf writes the first steps of a location.
func textOf(steps []step) string {
	var b strings.Builder
	for i := range steps {
		if i > 0 && !steps[i].list {
			b.WriteByte('.')
		}
		b.WriteString(steps[i].String())
	}
	return b.String()
}

func quoted(name string) string {
	plain := name != "" && (name[0] < '0' || name[0] > '9')
	for i := range len(name) {
		plain = plain && isNameByte(name[i])
	}
	if plain {
		return name
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
}

func isNameByte(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// parsePath reads a location such as `spec.containers[name: "a"].image`.
func parsePath(text string) ([]step, error) {
	p := pathParser{text: text}
	var steps []step
	p.space()
	for p.at < len(text) {
		name, err := p.name("the name of a field")
		if err != nil {
			return nil, err
		}
		steps = append(steps, step{name: name, member: document.NewName(name)})
		if p.take('[') {
			item, err := p.item()
			if err != nil {
				return nil, err
			}
			steps = append(steps, item)
		}
		switch {
		case p.at == len(text):
			return steps, nil
		case !p.take('.'):
			return nil, p.fail("'.' or the end")
		case p.at == len(text):
			return nil, p.fail("the name of a field")
		}
	}
	return steps, nil
}

// pathParser reads a location token by token. Space between tokens means nothing.
type pathParser struct {
	text string
	at   int
}

func (p *pathParser) fail(expected string) error {
	if p.at == len(p.text) {
		return fmt.Errorf("must have %s at its end", expected)
	}
	return fmt.Errorf("must have %s at character %d, at '%s'", expected, utf8.RuneCountInString(p.text[:p.at])+1,
		p.text[p.at:])
}

func (p *pathParser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// take goes over a character, and the space after it, if it comes next.
func (p *pathParser) take(c byte) bool {
	if p.at == len(p.text) || p.text[p.at] != c {
		return false
	}
	p.at++
	p.space()
	return true
}

// item reads what follows '['.
func (p *pathParser) item() (s step, err error) {
	s.list = true
	if s.name, err = p.name("the name of a key"); err != nil {
		return s, err
	}
	s.member = document.NewName(s.name)
	if !p.take(':') {
		return s, p.fail("':'")
	}
	switch {
	case p.take('*'):
		s.each = true
	case p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9':
		s.isInt = true
		if s.value, err = p.integer(); err != nil {
			return s, err
		}
	default:
		if s.text, err = p.name("the value of the key, or '*'"); err != nil {
			return s, err
		}
	}
	if !p.take(']') {
		return s, p.fail("']'")
	}
	return s, nil
}

func (p *pathParser) integer() (int64, error) {
	from := p.at
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
	}
	digits := p.text[from:p.at]
	p.space()
	value, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("must not have the number %s, which is too large", digits)
	}
	return value, nil
}

// name reads a name, which is in quotes if there is anything special in it.
func (p *pathParser) name(what string) (string, error) {
	if p.at < len(p.text) && (p.text[p.at] == '"' || p.text[p.at] == '\'') {
		return p.quoted()
	}
	from := p.at
	if from < len(p.text) && p.text[from] >= '0' && p.text[from] <= '9' {
		return "", p.fail(what)
	}
	for p.at < len(p.text) && isNameByte(p.text[p.at]) {
		p.at++
	}
	if p.at == from {
		return "", p.fail(what)
	}
	name := p.text[from:p.at]
	p.space()
	return name, nil
}

func (p *pathParser) quoted() (string, error) {
	quote := p.text[p.at]
	var b strings.Builder
	for i := p.at + 1; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == quote:
			p.at = i + 1
			p.space()
			return b.String(), nil
		case c == '\\' && i+1 < len(p.text):
			i++
			b.WriteByte(p.text[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", fmt.Errorf("must end the quotes that begin at character %d", utf8.RuneCountInString(p.text[:p.at])+1)
}
