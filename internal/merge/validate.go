package merge

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/quote"
)

// A ValidationError says which values do not have the type that they are merged
// by, in the words of sigs.k8s.io/structured-merge-diff.
type ValidationError struct {
	problems []problem
	more     int
}

type problem struct{ path, text string }

// maxProblems bounds what an error says, whatever an object holds.
const maxProblems = 20

// Error names each value and what is wrong with it.
func (e *ValidationError) Error() string {
	if len(e.problems) == 1 && e.more == 0 {
		return e.problems[0].String()
	}
	var b strings.Builder
	b.WriteString("errors:")
	for _, p := range e.problems {
		b.WriteString("\n  " + p.String())
	}
	if e.more > 0 {
		b.WriteString("\n  and " + strconv.Itoa(e.more) + " more")
	}
	return b.String()
}

func (p problem) String() string {
	if p.path == "" {
		return p.text
	}
	return p.path + ": " + p.text
}

// checker finds values that do not have their types.
type checker struct {
	path     []byte // of the value that is looked at
	original bool   // it was not merged yet
	err      *ValidationError
}

// Check checks a value against the type: fields that it does not name are wrong, and values of
// other types. The error is a [*ValidationError].
func (t *Type) Check(n document.Node) error { return t.check(n, false) }

// checkOriginal checks an object that was not merged yet against its type: items may have the same
// keys, and objects of types that grow may have members that the type does not name.
func (t *Type) checkOriginal(n document.Node) error { return t.check(n, true) }

func (t *Type) check(n document.Node, original bool) error {
	c := checker{original: original}
	c.value(t, n)
	if c.err != nil {
		return c.err
	}
	return nil
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = &ValidationError{}
	}
	if len(c.err.problems) == maxProblems {
		c.err.more++
		return
	}
	c.err.problems = append(c.err.problems, problem{string(c.path), fmt.Sprintf(format, args...)})
}

// value checks a value against the forms that its type allows. A type that allows none of that form
// fails as the first form that it does allow would.
func (c *checker) value(t *Type, n document.Node) {
	kind := n.Kind()
	switch {
	case kind == document.Null:
	case kind == document.Object && t.Object != nil:
		c.object(t.Object, n)
	case kind == document.Array && t.List != nil:
		c.list(t.List, n)
	case kind < document.Object && t.Scalar.allows(kind):
	case t.Object != nil:
		c.fail("expected map, got %s", shown(n))
	case t.Scalar != None:
		c.fail("expected %s, got %s", t.Scalar, shown(n))
	default:
		c.fail("expected list, got %s", shown(n))
	}
}

func (s Scalar) allows(k document.Kind) bool {
	switch s {
	case Any:
		return true
	case Numeric:
		return k == document.Number
	case Text:
		return k == document.String
	case Boolean:
		return k == document.Bool
	}
	return false
}

// String is the name of the scalar in errors.
func (s Scalar) String() string {
	switch s {
	case Numeric:
		return "numeric (int or float)"
	case Text:
		return "string"
	case Boolean:
		return "boolean"
	case Any:
		return "any scalar"
	}
	return "nothing"
}

func (c *checker) object(o *Object, n document.Node) {
	length := len(c.path)
	for m := n.First(); m.Valid(); m = m.Next() {
		c.path = appendName(c.path[:length], m.Key())
		t := o.member(m)
		if t == nil {
			if c.original && o.Grows {
				continue
			}
			c.fail("field not declared in schema")
			break
		}
		c.value(t, m)
	}
	c.path = c.path[:length]
}

func (c *checker) list(l *List, n document.Node) {
	length, position := len(c.path), 0
	var seen map[string]struct{}
	if l.Relation == Associative && !c.original {
		seen = make(map[string]struct{}, n.Len())
	}
	var id []byte
	for item := n.First(); item.Valid(); item = item.Next() {
		c.path = c.path[:length]
		if l.Relation == Associative {
			if why := l.unkeyable(item); why != "" {
				c.fail("element %d: %s", position, why)
				return
			}
			if seen != nil {
				id, _ = identity(id[:0], l.Keys, item)
				if _, found := seen[string(id)]; found {
					c.fail("duplicate entries for key %s", l.pathStep(nil, item))
				}
				seen[string(id)] = struct{}{}
			}
			c.path = l.pathStep(c.path, item)
		} else {
			c.path = append(strconv.AppendInt(append(c.path, '['), int64(position), 10), ']')
		}
		c.value(l.Items, item)
		position++
	}
	c.path = c.path[:length]
}

// unkeyable says why an item cannot be distinguished from others; empty if it can.
func (l *List) unkeyable(item document.Node) string {
	kind := item.Kind()
	if len(l.Keys) == 0 {
		switch kind {
		case document.Object:
			return "associative list without keys has an element that's a map type"
		case document.Array:
			return "not supported: associative list with lists as elements"
		case document.Null:
			return "associative list without keys has an element that's an explicit null"
		}
		return ""
	}
	switch kind {
	case document.Object:
	case document.Null:
		return "associative list with keys may not have a null element"
	default:
		return "associative list with keys may not have non-map elements"
	}
	for i := range l.Keys {
		if l.Keys[i].of(item).Valid() {
			return ""
		}
	}
	names := make([]string, len(l.Keys))
	for i := range l.Keys {
		names[i] = l.Keys[i].Name.String()
	}
	return fmt.Sprintf("associative list with keys has an element that omits all key fields %q (and doesn't have default values for any key fields)", names)
}

// appendName writes the step to a member.
func appendName(dst []byte, name string) []byte {
	return append(append(dst, '.'), clip(name)...)
}

// shown is a value as errors show it.
func shown(n document.Node) string {
	switch n.Kind() {
	case document.Object:
		return "map"
	case document.Array:
		return "list"
	}
	return clip(string(n.Raw()))
}

func clip(s string) string { return quote.Clip(s, quote.MaxName) }
