package defaults

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/merge"
	"github.com/admission-gateway/gateway/internal/quote"
)

// A Path names a field of objects, or several:
//
//	spec.replicas                        a member of a member
//	metadata.labels[example.com/tier]    a key of a map; quotes allow any: ['a]b']
//	spec.containers[*].imagePullPolicy   the field of every item, or of every value of a map
//	spec.ports[name=http].port           the field of the item with the key
//	spec.ports[name=http,protocol=TCP]   the item with the keys itself
//
// It is immutable.
type Path struct {
	text  string
	steps []step
	empty document.Node // an object without members
}

// step is one step of a path: to a member, to every item or member, or to the items with the keys.
type step struct {
	kind   stepKind
	name   string // of the member
	member document.Name
	keys   []key
}

type stepKind uint8

const (
	toMember stepKind = iota
	toEach
	toItem
)

// key is a member by which a path identifies items.
type key struct {
	name    string
	member  document.Name
	value   string
	literal document.Node // the value as a number or truth value; invalid if it is neither, or in quotes
}

// maxSteps is the depth to which documents are read at most.
const maxSteps = document.DefaultDepth

// ParsePath reads a path. The error says what the text must be.
func ParsePath(text string) (*Path, error) {
	r := pathReader{text: text}
	p := &Path{text: text, empty: constant("{}")}
	for {
		s, err := r.step(len(p.steps) == 0)
		if err != nil {
			return nil, err
		}
		p.steps = append(p.steps, s)
		if r.at == len(text) {
			break
		}
		if len(p.steps) == maxSteps {
			return nil, fmt.Errorf("must be a path of at most %d steps", maxSteps)
		}
	}
	switch first, last := p.steps[0].kind, p.steps[len(p.steps)-1].kind; {
	case first != toMember:
		return nil, r.fail(0, "the name of a field")
	case last == toEach:
		return nil, fmt.Errorf("must name a field of the items after '[*]'")
	}
	return p, nil
}

// String is the path as it was written.
func (p *Path) String() string { return p.text }

// constant is a value that lives as long as the program needs it; invalid for text that is not JSON.
func constant(text string) document.Node {
	d, err := document.Parse([]byte(text), document.Limits{})
	if err != nil {
		return document.Node{}
	}
	return d.Root()
}

// pathReader reads a path step by step.
type pathReader struct {
	text string
	at   int
}

func (r *pathReader) fail(at int, what string) error {
	if at >= len(r.text) {
		return fmt.Errorf("must have %s at its end", what)
	}
	return fmt.Errorf("must have %s at character %d, at '%s'", what, utf8.RuneCountInString(r.text[:at])+1, r.text[at:])
}

func (r *pathReader) next() byte {
	if r.at == len(r.text) {
		return 0
	}
	return r.text[r.at]
}

// take goes over a character if it comes next.
func (r *pathReader) take(c byte) bool {
	if r.next() != c {
		return false
	}
	r.at++
	return true
}

func (r *pathReader) step(first bool) (step, error) {
	if r.take('[') {
		s, err := r.selector()
		if err == nil && !r.take(']') {
			err = r.fail(r.at, "']'")
		}
		return s, err
	}
	if !first && !r.take('.') {
		return step{}, r.fail(r.at, "'.' or '['")
	}
	begin := r.at
	name := r.bare(".[")
	if name == "" || !plainName(name) {
		return step{}, r.fail(begin, "the name of a field")
	}
	return memberStep(name), nil
}

func memberStep(name string) step {
	return step{kind: toMember, name: name, member: document.NewName(name)}
}

// selector reads what is within brackets.
func (r *pathReader) selector() (step, error) {
	if strings.HasPrefix(r.text[r.at:], "*]") {
		r.at++
		return step{kind: toEach}, nil
	}
	begin := r.at
	name, quoted, err := r.word("=,]")
	switch {
	case err != nil:
		return step{}, err
	case r.next() == '=':
		return r.keyed(name)
	case name == "":
		return step{}, r.fail(begin, "'*', the key of a map or the key of an item")
	case !quoted && strings.Trim(name, "0123456789") == "":
		return step{}, fmt.Errorf("must not have the index '[%s]': which item it is of can change; the key of a map stands in quotes", name)
	}
	return memberStep(name), nil
}

// keyed reads the keys of an item after the name of the first.
func (r *pathReader) keyed(name string) (step, error) {
	s := step{kind: toItem}
	for {
		begin := r.at
		if name == "" || !r.take('=') {
			return s, r.fail(begin, "a key with its value, such as name=http")
		}
		for _, k := range s.keys {
			if k.name == name {
				return s, r.fail(begin, "every key once")
			}
		}
		value, quoted, err := r.word(",]")
		if err != nil {
			return s, err
		}
		k := key{name: name, member: document.NewName(name), value: value}
		if !quoted {
			k.literal = scalar(value)
		}
		s.keys = append(s.keys, k)
		if !r.take(',') {
			return s, nil
		}
		if name, _, err = r.word("=,]"); err != nil {
			return s, err
		}
	}
}

// scalar is the number or truth value that a text is.
func scalar(text string) document.Node {
	n := constant(text)
	if k := n.Kind(); k != document.Number && k != document.Bool {
		return document.Node{}
	}
	return n
}

// bare reads up to one of the characters.
func (r *pathReader) bare(until string) string {
	rest := r.text[r.at:]
	if end := strings.IndexAny(rest, until); end >= 0 {
		rest = rest[:end]
	}
	r.at += len(rest)
	return rest
}

// word reads what may be in quotes, in which a backslash takes the meaning from what comes after it.
func (r *pathReader) word(until string) (word string, quoted bool, err error) {
	quote := r.next()
	if quote != '\'' && quote != '"' {
		return r.bare(until), false, nil
	}
	begin := r.at
	r.at++
	var b strings.Builder
	for r.at < len(r.text) {
		switch {
		case r.take(quote):
			return b.String(), true, nil
		case r.next() == '\\' && r.at+1 < len(r.text):
			r.at++
		}
		b.WriteByte(r.text[r.at])
		r.at++
	}
	return "", true, r.fail(begin, "a closing quote")
}

// plainName reports whether a name needs no brackets and quotes.
func plainName(name string) bool {
	return !strings.ContainsAny(name, "]'\"=,* \t\n") && utf8.ValidString(name)
}

// NamesItem reports whether the path leads to items of lists, whose values are
// objects.
func (p *Path) NamesItem() bool { return p.steps[len(p.steps)-1].kind == toItem }

// In is the type of the field in objects of the type. The error says why there is
// no such field, or why it cannot be set.
func (p *Path) In(t *merge.Type) (*merge.Type, error) {
	for i := range p.steps {
		if t == nil || t == merge.Deduced() || t == merge.Opaque() {
			return merge.Deduced(), nil
		}
		s := &p.steps[i]
		switch {
		case s.kind == toMember && t.Object == nil, s.kind == toEach && t.Object == nil && t.List == nil,
			s.kind == toItem && t.List == nil:
			return nil, fmt.Errorf("must not lead into `%s`, which is no %s", p.before(i), wanted[s.kind])
		case s.kind == toItem && !s.addable(t.List):
			return nil, s.unaddable(p.before(i), t.List)
		case s.kind == toEach && t.List == nil:
			if t = t.Object.Rest; t == nil {
				return nil, fmt.Errorf("must not lead into every member of `%s`, which is no map", p.before(i))
			}
			continue
		}
		if t = s.typeWithin(t); t == nil {
			return nil, fmt.Errorf("must not name the field `%s`, which there is not", p.before(i+1))
		}
	}
	return t, nil
}

var wanted = [...]string{toMember: "object", toEach: "list or map", toItem: "list"}

// before is the path up to a step.
func (p *Path) before(i int) string {
	var b strings.Builder
	for n := range p.steps[:i] {
		switch s := &p.steps[n]; s.kind {
		case toEach:
			b.WriteString("[*]")
		case toItem:
			b.WriteString("[" + s.selected() + "]")
		default:
			switch {
			case !plainName(s.name) || strings.Contains(s.name, "."):
				b.WriteString("[" + s.name + "]")
			case n > 0:
				b.WriteString("." + s.name)
			default:
				b.WriteString(s.name)
			}
		}
	}
	return b.String()
}

func (s *step) selected() string {
	keys := make([]string, 0, len(s.keys))
	for _, k := range s.keys {
		keys = append(keys, k.name+"="+k.value)
	}
	return strings.Join(keys, ",")
}

// unaddable says why an item with the keys cannot be added to a list.
func (s *step) unaddable(path string, l *merge.List) error {
	names := make([]string, 0, len(s.keys))
	for i := range s.keys {
		k := &s.keys[i]
		if keyOf(l, k.name) != nil && !k.fits(l.Items, k.name) {
			return fmt.Errorf("must give the key '%s' of `%s` as a %s, not '%s'", k.name, path,
				scalarNames[scalarOf(l.Items, k.name)], k.value)
		}
		names = append(names, k.name)
	}
	return fmt.Errorf("must not tell the items of `%s` apart by %s: %s", path, quote.Names(names), keysOf(l))
}

var scalarNames = [...]string{merge.None: "value", merge.Numeric: "number", merge.Text: "string",
	merge.Boolean: "truth value", merge.Any: "value"}

// keysOf says which keys identify the items of a list.
func keysOf(l *merge.List) string {
	if l.Relation != merge.Associative || len(l.Keys) == 0 {
		return "its schema gives no keys by which they are (x-kubernetes-list-type: map)"
	}
	names := make([]string, 0, len(l.Keys))
	for _, k := range l.Keys {
		names = append(names, k.Name.String())
	}
	return "they are by " + quote.Names(names)
}
