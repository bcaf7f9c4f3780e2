package document

import "unsafe"

// Step finds the member with the name, as Get does.
func (n Node) Step(name *Name) (Node, bool) {
	next := n.d.step(n.i, name)
	return Node{n.d, next}, next != 0
}

// step is find for an entry of any kind. It looks at the entries of a small
// object that has not been added to directly.
func (d *Document) step(at uint32, name *Name) uint32 {
	if d == nil {
		return 0
	}
	e := &d.tape[at]
	if e.meta&(kindMask|flagIndexed|flagHead) != uint32(Object) {
		if Kind(e.meta&kindMask) != Object {
			return 0
		}
		return d.find(at, name.text, name.hash)
	}
	if e.last == 0 {
		return 0
	}
	tape := d.entries()
	for at++; ; {
		o := entryOf(tape, at)
		if o.hash == name.hash {
			size := o.keyEnd - o.key
			if o.meta&(flagKeyEscaped|flagSide|flagRemoved) == 0 && size-1 < maxShort && int(o.key)+8 <= len(d.body) {
				key := unsafe.Add(unsafe.Pointer(unsafe.SliceData(d.body)), o.key)
				if int(size) == len(name.text) && (load64(key, 0)^name.first)&name.mask == 0 &&
					(size <= 8 || load64(key, int(size)-8) == name.last) {
					return at
				}
			} else if o.meta&flagRemoved == 0 && d.keyIs(o, name.text) {
				return at
			}
		}
		if int32(o.next) <= 0 {
			return 0
		}
		at = o.next
	}
}

// Text is the value of a string without escapes, which is found as it stands;
// not ok for everything else.
func (n Node) Text() (s string, ok bool) {
	if n.d == nil {
		return "", false
	}
	e := &n.d.tape[n.i]
	if e.meta&(kindMask|flagEscaped) != uint32(String) {
		return "", false
	}
	return viewString(n.d.source(e)[e.off+1 : e.end-1]), true
}
