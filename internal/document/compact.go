package document

// Compact gives back the memory that the document has beyond its need, for the next document. It is for
// documents that are kept; one that is soon released costs less without.
func (d *Document) Compact() {
	spare := &Document{}
	d.tape, spare.tape = exactly(d.tape)
	d.index, spare.index = exactly(d.index)
	d.side, _ = exactly(d.side) // strings that were read may be in the memory before
	d.own = nil                 // a clone's body stays in body
	if spare.tape != nil {
		spare.Release()
	}
}

// exactly returns a slice without more room than it needs, and the memory that it had if it has moved.
func exactly[T any](s []T) (exact, spare []T) {
	switch {
	case len(s) == 0:
		return nil, s
	case cap(s)-len(s) <= len(s)/8:
		return s, nil
	}
	exact = make([]T, len(s))
	copy(exact, s)
	return exact, s
}
