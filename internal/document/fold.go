package document

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A FoldSet finds keys that differ from one of a set of names in case only.
// Backends that read keys without regard to case would take them for the name.
// Two strings differ in case only if strings.EqualFold holds for them, which
// includes U+212A (Kelvin sign) for k and U+017F (long s) for s. A FoldSet is
// safe for concurrent use.
type FoldSet struct {
	names   []foldedName // sorted by their folds; of those that have the same one, as given
	near    foldFilter
	longest int // bytes of a name
}

// foldedName is a name, and what it has in common with its variants.
type foldedName struct{ fold, name string }

// NewFoldSet makes the set of names.
func NewFoldSet(names ...string) *FoldSet {
	s := &FoldSet{names: make([]foldedName, len(names))}
	var buf [64]byte
	for i, name := range names {
		fold := name
		if folded := appendFolded(buf[:0], name); string(folded) != name {
			fold = string(folded)
		}
		s.names[i] = foldedName{fold, name}
		s.longest = max(s.longest, len(name))
	}
	slices.SortStableFunc(s.names, func(a, b foldedName) int { return strings.Compare(a.fold, b.fold) })
	folds := make([]string, len(s.names))
	for i, n := range s.names {
		folds[i] = n.fold
	}
	s.near = newFoldFilter(folds)
	return s
}

// A foldFilter says at a glance of most keys that they are no case variants of a set of names. It
// has a bit for each value of some bits of a hash that variants share.
type foldFilter struct {
	bits  []uint64
	shift uint8
}

// newFoldFilter makes the filter of names, given by what their variants have in common.
func newFoldFilter(folds []string) foldFilter {
	size := 6 // the logarithm of the number of bits
	for 1<<size < 16*len(folds) {
		size++
	}
	f := foldFilter{bits: make([]uint64, 1<<(size-6)), shift: uint8(64 - size)}
	for _, fold := range folds {
		at := coarseOf(fold) >> f.shift
		f.bits[at>>6] |= 1 << (at & 63)
	}
	return f
}

// mayHave reports whether the key may be a case variant of one of the names, or one of them.
func (f *foldFilter) mayHave(key string) bool {
	if !isASCII(key) {
		return true
	}
	at := coarseOf(key) >> (f.shift & 63)
	return f.bits[at>>6]&(1<<(at&63)) != 0
}

// Variant returns the name that the key is a case variant of, if the key is not
// itself one of the names.
func (s *FoldSet) Variant(key string) (name string, ok bool) {
	if len(key) > utf8.UTFMax*s.longest || !s.near.mayHave(key) {
		return "", false
	}
	var buf [64]byte
	fold := appendFolded(buf[:0], key)
	first, end := 0, len(s.names)
	for first < end { // slices.BinarySearchFunc would let buf escape
		if middle := int(uint(first+end) / 2); s.names[middle].fold < string(fold) {
			first = middle + 1
		} else {
			end = middle
		}
	}
	if first == len(s.names) || s.names[first].fold != string(fold) {
		return "", false
	}
	for _, n := range s.names[first:] {
		if n.fold != s.names[first].fold {
			break
		}
		if n.name == key {
			return "", false
		}
	}
	return s.names[first].name, true
}

// appendFolded appends s with each character replaced by the representative of all its case
// variants: the least of them, in lower case within ASCII.
func appendFolded(dst []byte, s string) []byte {
	for _, r := range s {
		if r < utf8.RuneSelf {
			if 'A' <= r && r <= 'Z' {
				r += 'a' - 'A'
			}
			dst = append(dst, byte(r))
			continue
		}
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		if 'A' <= least && least <= 'Z' {
			least += 'a' - 'A'
		}
		dst = utf8.AppendRune(dst, least)
	}
	return dst
}
