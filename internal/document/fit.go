package document

import "slices"

// Fit drops the memory that the document has for more than it holds. It is for documents that are kept, and not edited.
func (d *Document) Fit() {
	if cap(d.tape) > len(d.tape)+len(d.tape)/8 {
		d.tape = slices.Clone(d.tape)
	}
	if len(d.side) == 0 {
		d.side = nil
	}
}
