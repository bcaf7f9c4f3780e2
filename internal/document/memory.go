package document

import "slices"

// room is the tape with all of its capacity.
func (d *Document) room() []entry { return d.tape[:cap(d.tape)] }

// grow makes room for more entries on a full tape, nil if there may be no more.
// A long tape grows by what the text read so far lets expect, so that it is
// neither copied often nor much too large in the end.
func (d *Document) grow(tape []entry, read, end, most int) []entry {
	n := len(tape)
	d.tape = tape
	if n >= most {
		return nil
	}
	size := 2 * n
	if n >= firstEntries {
		expected := int(float64(n) * 1.0625 * float64(end) / float64(read))
		size = max(expected, n+n/2)
	}
	// No value takes less than two bytes, its separator included.
	size = min(size, n+(end-read)/2+2, most)
	tape = slices.Grow(tape, size-n)
	return tape[:min(cap(tape), most)]
}
