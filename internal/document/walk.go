package document

// Walk follows the path from member to member as far as there are such members.
// It returns the value that it came to and how many names of the path led there.
func (n Node) Walk(path []Name) (Node, int) {
	if n.d == nil {
		return n, 0
	}
	d, at := n.d, n.i
	for i := range path {
		if Kind(d.tape[at].meta&kindMask) != Object {
			return Node{d, at}, i
		}
		next := d.find(at, path[i].text, path[i].hash)
		if next == 0 {
			return Node{d, at}, i
		}
		at = next
	}
	return Node{d, at}, len(path)
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
