package document

import "unicode/utf8"

// A Spelling finds at a glance that no key of a whole document is a case variant of one of a set of names, wherever the
// names belong: it passes over the entries of the document in their order, and asks a table about each key. It is
// immutable.
type Spelling struct {
	names   Names // the names that no other one differs from in case alone
	folds   Names // what each of the names has in common with its variants
	near    foldFilter
	longest int // bytes of a fold
	// begins has by the size of a fold which bits a first character may end with: those of a letter are the same for
	// both cases.
	begins []uint32
}

// NewSpelling makes the Spelling of a set of names; nil if they are more than MaxNames.
func NewSpelling(names []string) *Spelling {
	if len(names) > MaxNames {
		return nil
	}
	byFold := make(map[string]string, len(names))
	twins := map[string]bool{}
	s := &Spelling{}
	folds := make([]string, 0, len(names))
	for _, name := range names {
		fold := string(appendFolded(nil, name))
		if other, found := byFold[fold]; !found {
			byFold[fold] = name
			folds, s.longest = append(folds, fold), max(s.longest, len(fold))
		} else if other != name {
			twins[fold] = true
		}
	}
	alone := make([]string, 0, len(folds))
	for _, fold := range folds {
		if !twins[fold] {
			alone = append(alone, byFold[fold])
		}
	}
	s.names, s.folds, s.near = NewNames(alone), NewNames(folds), newFoldFilter(folds)
	s.begins = make([]uint32, s.longest+1)
	for _, fold := range folds {
		s.begins[len(fold)] |= beginOf(fold)
	}
	return s
}

// beginOf is the bit of a key's first character in Spelling.begins. An empty key has all.
func beginOf(key string) uint32 {
	if key == "" {
		return ^uint32(0)
	}
	return 1 << (key[0] & 31)
}

// IsKept reports whether every key of the document is one of the names, or neither one of them nor a case variant of
// one. It is false too if the document has a name that another name differs from in case alone: which of the two
// belongs in its place, only a walk by places can say. Members that were removed count.
func (s *Spelling) IsKept(d *Document) bool {
	isPlain := !d.alike // no key has escapes, or other characters than those of ASCII
	for i := range d.tape {
		e := &d.tape[i]
		if e.meta&flagMember == 0 || s.names.find(d, e) >= 0 {
			continue
		}
		key := d.keyOf(e)
		if isPlain && (len(key) > s.longest || s.begins[len(key)]&beginOf(key) == 0) {
			continue // a variant in ASCII has the size of the name, and the same first letter
		}
		if s.isNear(key) {
			return false
		}
	}
	return true
}

// isNear reports whether a key is one of the names or a case variant of one.
func (s *Spelling) isNear(key string) bool {
	if len(key) > utf8.UTFMax*s.longest || !s.near.mayHave(key) {
		return false
	}
	var buf [64]byte
	return s.folds.Index(viewString(appendFolded(buf[:0], key))) >= 0
}
