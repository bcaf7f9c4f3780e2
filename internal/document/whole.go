package document

// AreWhole reports whether all numbers are written without a fraction and an exponent. It may report
// false because of a number that an edit has taken out.
func (d *Document) AreWhole() bool {
	for i := range d.tape {
		if meta := d.tape[i].meta; meta&kindMask == uint32(Number) && meta&flagInteger == 0 {
			return false
		}
	}
	return true
}
