package document

// room is the tape with all of its capacity.
func (d *Document) room() []entry { return d.tape[:cap(d.tape)] }

// grow makes room for more entries on a full tape, nil if there may be no more, for the reason that
// code says. A long tape grows by an estimate from the text read so far, so that it is neither
// copied often nor much too large in the end.
func (d *Document) grow(tape []entry, read, end, most int) (longer []entry, code ErrorCode) {
	n := len(tape)
	d.tape = tape
	if n >= most {
		return nil, TooManyNodes
	}
	size := 2 * n
	if n >= firstEntries {
		expected := int(float64(n) * 1.0625 * float64(end) / float64(read))
		size = max(expected, n+n/2)
	}
	// No value takes less than two bytes, its separator included.
	size = min(size, n+(end-read)/2+2, most)
	if tape = extend(d, tape, size-n, entryBytes); tape == nil {
		return nil, NoMemory
	}
	return tape[:min(cap(tape), most)], 0
}
