package document

// Fields are the names of members that an object may have. They find these members, and others whose
// keys differ from one of the names in case alone, in one pass. Fields are immutable.
type Fields struct {
	names    Names
	variants *FoldSet
}

// NewFields makes the Fields of the names, which must differ.
func NewFields(names ...string) *Fields {
	return &Fields{names: NewNames(names), variants: NewFoldSet(names...)}
}

// In finds members of an object. found gets the members that have the names, each at the place of its
// name, as far as there is room for them; the others are left as they are. variant is the first member
// whose key is a case variant of a name, and invalid if there is none; members behind it are not looked
// at.
func (f *Fields) In(object Node, found []Node) (variant Node, name string) {
	if object.Kind() != Object {
		return Node{}, ""
	}
	d := object.d
	tape := d.entries()
	for i := d.firstOf(tape, object.i); int32(i) > 0; {
		e := entryOf(tape, i)
		if e.meta&flagRemoved == 0 {
			if place := f.names.find(d, e); place >= 0 {
				if place < len(found) {
					found[place] = Node{d, i}
				}
			} else if name, ok := f.variants.Variant(d.keyOf(e)); ok {
				return Node{d, i}, name
			}
		}
		i = e.next
	}
	return Node{}, ""
}
