package document

// Hash is the hash of the name, equal to the [Node.KeyHash] of every member that
// has it. It is valid in this process only.
func (n Name) Hash() uint32 { return n.hash }

// KeyHash is the hash of a member's key, for tables of names. Of values that are
// no members it means nothing.
func (n Node) KeyHash() uint32 { return n.d.tape[n.i].hash }

// KeyIs tells whether the value is a member with the name, without decoding its
// key.
func (n Node) KeyIs(name Name) bool {
	if n.d == nil {
		return false
	}
	e := &n.d.tape[n.i]
	return e.meta&flagMember != 0 && e.hash == name.hash && n.d.keyIs(e, name.text)
}

// Add is Set for a member that the object is known not to have: two members with
// one key would be the caller's mistake.
func (d *Document) Add(object Node, name Name, raw []byte) Node {
	if !d.owns(object) || object.Kind() != Object {
		return Node{}
	}
	return d.add(object, name.text, name.hash, raw)
}

func (d *Document) add(object Node, key string, hash uint32, raw []byte) Node {
	i := d.newEntry(object.i)
	from := uint32(len(d.side))
	d.side = AppendString(d.side, key)
	e := &d.tape[i]
	e.key, e.keyEnd, e.hash = from+1, uint32(len(d.side))-1, hash
	e.meta |= flagMember
	if int(e.keyEnd-e.key) != len(key) {
		e.meta |= flagKeyEscaped
	}
	d.side = append(d.side, ':')
	d.link(object.i, i)
	d.write(i, raw)
	return Node{d, i}
}
