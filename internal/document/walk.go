package document

import "unsafe"

// Walk follows the path from member to member as far as there are such members. It returns the
// value that it reached and how many names of the path it followed.
func (n Node) Walk(path []Name) (Node, int) {
	if n.d == nil {
		return n, 0
	}
	at := n.i
	for i := range path {
		next := n.d.step(at, &path[i])
		if next == 0 {
			return Node{n.d, at}, i
		}
		at = next
	}
	return Node{n.d, at}, len(path)
}

// step is find for an entry of any kind. It looks at the entries of a small
// object that has not been added to directly.
func (d *Document) step(at uint32, name *Name) uint32 {
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
	tape := d.tape
	for at++; ; {
		o := &tape[at]
		if o.hash == name.hash && o.meta&flagRemoved == 0 && d.isNamed(o, name) {
			return at
		}
		if int32(o.next) <= 0 {
			return 0
		}
		at = o.next
	}
}

// isNamed is keyIs for a Name. A short key is compared as words.
func (d *Document) isNamed(o *entry, name *Name) bool {
	size := o.keyEnd - o.key
	if size > maxShort || o.meta&(flagKeyEscaped|flagSide) != 0 || int(o.key)+8 > len(d.body) {
		return d.keyIs(o, name.text)
	}
	p := unsafe.Add(unsafe.Pointer(unsafe.SliceData(d.body)), o.key)
	return int(size) == len(name.text) && (load64(p, 0)^name.first)&name.mask == 0 && (size <= 8 || load64(p, int(size)-8) == name.last)
}

// Step is the member with the name, which a walk along a path of one name reaches.
func (n Node) Step(name *Name) (Node, bool) {
	if n.d == nil {
		return n, false
	}
	next := n.d.step(n.i, name)
	return Node{n.d, next}, next != 0
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
