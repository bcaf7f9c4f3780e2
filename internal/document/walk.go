package document

// Walk follows the path from member to member as far as there are such members.
// It returns the value that it came to and how many names of the path led there.
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
	for at++; ; {
		o := &d.tape[at]
		if o.hash == name.hash && o.meta&flagRemoved == 0 && d.keyIs(o, name.text) {
			return at
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
