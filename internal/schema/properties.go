package schema

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/admission-gateway/gateway/internal/document"
)

// A foldedName is the name of a property without its case.
type foldedName struct {
	hash uint64
	at   int // index into properties
}

// index makes properties, which are sorted, findable.
func (s *Shape) index() {
	names := make([]string, len(s.properties))
	for i := range s.properties {
		p := &s.properties[i]
		p.key = document.NewName(p.Name)
		names[i] = p.Name
		s.folded = append(s.folded, foldedName{hash: foldHash(p.Name), at: i})
	}
	s.names = document.NewNames(names)
	slices.SortFunc(s.folded, func(a, b foldedName) int {
		if c := cmp.Compare(a.hash, b.hash); c != 0 {
			return c
		}
		return a.at - b.at
	})
}

// property is the property that the member is, or nil.
func (s *Shape) property(m document.Node) *Property {
	if i := s.names.Member(m); i >= 0 {
		return &s.properties[i]
	}
	return nil
}

// Property is the named member with this name, or nil.
func (s *Shape) Property(name string) *Property {
	if i := s.names.Index(name); i >= 0 {
		return &s.properties[i]
	}
	return nil
}

// variant is a property whose name differs from this one in case alone, or nil. What is one case away is what Go's
// encoding/json takes for the same field: simple Unicode folding, so 'K' (U+212A) is a 'k'.
func (s *Shape) variant(name string) *Property {
	folded := s.folded
	if len(folded) == 0 {
		return nil
	}
	hash := foldHash(name)
	i, _ := slices.BinarySearchFunc(folded, hash, func(f foldedName, h uint64) int { return cmp.Compare(f.hash, h) })
	for ; i < len(folded) && folded[i].hash == hash; i++ {
		if p := &s.properties[folded[i].at]; strings.EqualFold(p.Name, name) {
			return p
		}
	}
	return nil
}

// foldHash is equal for names that strings.EqualFold holds equal. The names of a schema are few and its author's, so
// that it need not withstand prepared collisions: they only cost comparisons with those few.
func foldHash(name string) uint64 {
	const prime = 0x100000001b3
	h := uint64(0xcbf29ce484222325)
	for i := 0; i < len(name); {
		c := name[i]
		if c < utf8.RuneSelf {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			h = (h ^ uint64(c)) * prime
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(name[i:])
		i += size
		h = (h ^ uint64(foldRune(r))) * prime
	}
	return h
}

// foldRune is one rune for each set of runes that fold into each other; lower case for ASCII letters.
func foldRune(r rune) rune {
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		if next < least {
			least = next
		}
	}
	if 'A' <= least && least <= 'Z' {
		least += 'a' - 'A'
	}
	return least
}
