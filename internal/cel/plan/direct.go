package plan

import (
	"slices"
	"unicode/utf8"

	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// What rules mostly do is to read a string, a number or a truth along a path and to compare it with a literal. That is
// done here without making a value of what is read. Whatever is not as expected is left to the general way, which
// starts from the beginning.

// plain is the part as a path to what is seen as kind, or in plain JSON; nil if it is not one.
// kindInvalid is any kind.
func (k code) plain(kind value.TypeKind) *chain {
	c := k.chain
	if c == nil || !c.direct() || c.test || c.optional || c.typ != nil && c.typ.Kind != kind &&
		kind != value.KindInvalid {
		return nil
	}
	asked := *c
	asked.units++ // what is done with it
	return &asked
}

// text reads a string along a path.
func (c *chain) text(f *Machine) (string, bool) {
	n, ok := c.node(f)
	if !ok {
		return c.word(f)
	}
	s, ok := n.Text()
	if ok {
		f.Arena.Charge(int64(len(s)) / value.BytesPerUnit)
	}
	return s, ok
}

// word is the string that a local variable is, such as the name of a member.
func (c *chain) word(f *Machine) (string, bool) {
	if c.local < 0 || len(c.links) > 0 {
		return "", false
	}
	v := &f.locals[f.run.localsBase+c.local]
	if v.Kind != ValString {
		return "", false
	}
	f.Arena.Charge(c.units)
	return v.Str(), true
}

// onText is a test of a string that is read along a path.
func onText(a code, is func(string) bool, otherwise test) test {
	c := a.plain(value.KindString)
	if c == nil {
		return otherwise
	}
	return func(f *Machine) verdict {
		if s, ok := c.text(f); ok {
			return truthOf(is(s))
		}
		return otherwise(f)
	}
}

// isText compares a string that is read along a path with a literal one.
func isText(a code, want string, equal bool, otherwise test) test {
	c := a.plain(value.KindString)
	if c == nil {
		return otherwise
	}
	return func(f *Machine) verdict {
		if n, ok := c.node(f); !ok {
			if s, ok := c.word(f); ok {
				return truthOf((s == want) == equal)
			}
		} else if n.Kind() == document.String {
			f.Arena.Charge(int64(len(want)) / value.BytesPerUnit)
			return truthOf(n.Is(want) == equal)
		}
		return otherwise(f)
	}
}

// isAmong looks for a string that is read along a path among literal ones.
func isAmong(a code, words []string, otherwise test) test {
	c := a.plain(value.KindString)
	if c == nil {
		return otherwise
	}
	return func(f *Machine) verdict {
		if n, ok := c.node(f); !ok {
			if s, ok := c.word(f); ok {
				return truthOf(slices.Contains(words, s))
			}
		} else if n.Kind() == document.String {
			return truthOf(slices.ContainsFunc(words, n.Is))
		}
		return otherwise(f)
	}
}

// isSameText compares two strings that are read along paths.
func isSameText(a, b *chain, equal bool, otherwise test) test {
	return func(f *Machine) verdict {
		if s, ok := a.text(f); ok {
			if t, ok := b.text(f); ok {
				return truthOf((s == t) == equal)
			}
		}
		return otherwise(f)
	}
}

// isOrdered compares an integer that is read along a path, or counted, with a literal one.
func isOrdered(a code, to int64, pick [3]verdict, otherwise test) test {
	count := a.count
	if c := a.plain(value.KindInteger); c != nil {
		count = c.int
	}
	if count == nil {
		return otherwise
	}
	return func(f *Machine) verdict {
		if i, ok := count(f); ok {
			return pick[1+order(i, to)]
		}
		return otherwise(f)
	}
}

// isOrderedPair compares two integers that are read along paths.
func isOrderedPair(a, b *chain, pick [3]verdict, otherwise test) test {
	return func(f *Machine) verdict {
		if i, ok := a.int(f); ok {
			if j, ok := b.int(f); ok {
				return pick[1+order(i, j)]
			}
		}
		return otherwise(f)
	}
}

// int reads an integer along a path.
func (c *chain) int(f *Machine) (int64, bool) {
	n, ok := c.node(f)
	if !ok || c.typ == nil && !n.IsInteger() {
		return 0, false
	}
	return n.Int64()
}

// size counts along a path what size() counts.
func (c *chain) size(f *Machine) (int64, bool) {
	n, ok := c.node(f)
	if !ok {
		s, ok := c.word(f)
		return int64(utf8.RuneCountInString(s)), ok
	}
	switch n.Kind() {
	case document.String:
		if s, ok := n.Text(); ok && (c.typ == nil || c.typ.Kind == value.KindString) {
			f.Arena.Charge(int64(len(s)) / value.BytesPerUnit)
			return int64(utf8.RuneCountInString(s)), true
		}
	case document.Object:
		return int64(n.Len()), c.typ == nil || c.typ.Kind == value.KindObject
	case document.Array:
		return int64(n.Len()), c.typ == nil || c.typ.Kind == value.KindList || c.typ.Kind == value.KindUnorderedList
	}
	return 0, false
}

// isSo is a truth that is read along a path.
func isSo(c *chain, otherwise test) test {
	return func(f *Machine) verdict {
		if n, ok := c.node(f); ok && n.Kind() == document.Bool {
			return truthOf(n.Bool())
		}
		return otherwise(f)
	}
}

// isThere tests for the last member of a path.
func isThere(c *chain) test {
	if !c.direct() || c.optional {
		return c.truth
	}
	last := len(c.path) - 1
	return func(f *Machine) verdict {
		if n, far, ok := c.lead(f); ok {
			switch kind := n.Kind(); {
			case far > last && c.typ.Includes(kind):
				f.Arena.Charge(c.units)
				return IsTrue
			case far == last && kind == document.Object:
				f.Arena.Charge(c.units)
				return IsFalse
			}
		}
		return c.truth(f)
	}
}
