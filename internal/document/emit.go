package document

import (
	"bytes"
	"slices"
)

// AppendTo appends the document as it is now to dst. Bytes that no edit touched
// are as they were parsed, white space before and after the root included.
func (d *Document) AppendTo(dst []byte) []byte {
	if !d.edited {
		return append(dst, d.body...)
	}
	dst = slices.Grow(dst, d.Extent())
	off, end := d.rootExtent()
	dst = append(dst, d.body[:off]...)
	dst = d.emit(dst, 0)
	return append(dst, d.body[end:]...)
}

// Extent is about how many bytes the document is long as it is now, and hardly
// ever less: values that edits put in the place of others are counted with them.
func (d *Document) Extent() int { return len(d.body) + len(d.side) }

// Raw is the value's text as it is now. It shares memory with the document if nothing below the
// value has been edited, and must not be written to.
func (n Node) Raw() []byte {
	if n.d == nil {
		return nil
	}
	if n.d.tape[n.i].meta&flagDirty == 0 {
		return n.raw()
	}
	return n.AppendRaw(nil)
}

// AppendRaw appends the value's text as it is now to dst.
func (n Node) AppendRaw(dst []byte) []byte {
	if n.d == nil {
		return dst
	}
	return n.d.emit(dst, n.i)
}

// emit appends the value of the entry i. In the text of an edited container it
// copies from copied on, as late as possible, so that runs of untouched
// children are copied at once.
func (d *Document) emit(dst []byte, i uint32) []byte {
	e := &d.tape[i]
	src := d.source(e)
	if e.meta&flagDirty == 0 || Kind(e.meta&kindMask) < Object {
		return append(dst, src[e.off:e.end]...)
	}
	var (
		copied = e.off     // the text before this is printed or dropped
		pos    = e.off + 1 // the end of the last child that was in the text
		gap    []byte      // what stood before a removed child, for use by one inserted there
		any    = false     // a child was printed, or is in the run to be copied
		passed = false     // a child that was in the text has been passed
	)
	for k := d.chainFirst(i); k != 0; k = d.chainNext(k) {
		c := &d.tape[k]
		if c.meta&flagsEdited == 0 && any == passed { // most children, one after the other
			for int32(c.next) > 0 && d.tape[c.next].meta&flagsEdited == 0 {
				k = c.next
				c = &d.tape[k]
			}
			pos = c.end
			gap, any, passed = nil, true, true
			continue
		}
		if c.meta&flagInserted != 0 {
			if c.meta&flagRemoved != 0 {
				continue
			}
			if copied < pos {
				dst = append(dst, src[copied:pos]...)
				copied = pos
			}
			if c.meta&flagReplaced != 0 {
				old := &d.tape[c.next]
				gap = src[pos:old.start()]
				pos, copied = old.end, old.end
				passed = true
			}
			dst = appendGap(dst, gap, any)
			from := c.start() // what was inserted stands behind its key
			if c.meta&flagDirty != 0 {
				dst = append(dst, d.side[from:c.off]...)
				dst = d.emit(dst, k)
			} else {
				dst = append(dst, d.side[from:c.end]...)
			}
			gap, any = nil, true
			continue
		}
		if c.meta&flagRemoved != 0 {
			if c.end <= pos { // its replacement was printed
				continue
			}
			dst = append(dst, src[copied:pos]...)
			gap = src[pos:c.start()]
			pos, copied = c.end, c.end
			passed = true
			continue
		}
		if any != passed {
			dst = append(dst, src[copied:pos]...)
			copied = c.start()
			dst = appendGap(dst, src[pos:copied], any)
		}
		if c.meta&flagDirty != 0 {
			dst = append(dst, src[copied:c.off]...)
			dst = d.emit(dst, k)
			copied = c.end
		}
		pos = c.end
		gap, any, passed = nil, true, true
	}
	return append(dst, src[copied:e.end]...)
}

// flagsEdited are the flags of children that are not in the text as they were parsed.
const flagsEdited = flagInserted | flagRemoved | flagDirty

// appendGap appends what stands between two children, or before the first one:
// the white space of gap, with a comma if another child precedes.
func appendGap(dst, gap []byte, comma bool) []byte {
	if len(gap) == 0 {
		if comma {
			dst = append(dst, ',')
		}
		return dst
	}
	at := bytes.IndexByte(gap, ',')
	switch {
	case comma && at < 0:
		dst = append(dst, ',')
	case !comma && at >= 0:
		gap = gap[at+1:]
	}
	return append(dst, gap...)
}
