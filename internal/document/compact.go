package document

// Compact gives back the memory that the document has beyond its need. It is for
// documents that are kept; one that is soon released costs less without.
func (d *Document) Compact() {
	d.tape = exactly(d.tape)
	d.side = exactly(d.side)
	d.index = exactly(d.index)
	d.own = nil // a clone's body stays in body
}

func exactly[T any](s []T) []T {
	switch {
	case len(s) == 0:
		return nil
	case cap(s)-len(s) <= len(s)/8:
		return s
	}
	exact := make([]T, len(s))
	copy(exact, s)
	return exact
}
