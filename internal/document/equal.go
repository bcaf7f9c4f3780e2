package document

// EqualNodes reports whether two values, of one document or of two, are the same
// JSON: members in any order, numbers by their exact value (1, 1.0 and 10e-1 are
// equal), strings by their characters. Invalid nodes equal each other only.
func EqualNodes(a, b Node) bool {
	kind := a.Kind()
	if kind != b.Kind() {
		return false
	}
	switch kind {
	case Bool:
		return a.Bool() == b.Bool()
	case Number:
		return sameNumber(a.raw(), b.raw())
	case String:
		switch {
		case !a.Escaped():
			return b.Is(viewString(a.quoted()))
		case !b.Escaped():
			return a.Is(viewString(b.quoted()))
		}
		return b.Is(a.Str())
	case Array:
		if a.Len() != b.Len() {
			return false
		}
		y := b.First()
		for x := a.First(); x.Valid(); x, y = x.Next(), y.Next() {
			if !EqualNodes(x, y) {
				return false
			}
		}
	case Object:
		if a.Len() != b.Len() {
			return false
		}
		guess := b.First() // members mostly stand in the same order
		for x := a.First(); x.Valid(); x = x.Next() {
			hash, key := x.d.tape[x.i].hash, x.Key()
			y := guess
			if !y.Valid() || y.d.tape[y.i].hash != hash || !y.d.keyIs(&y.d.tape[y.i], key) {
				i := b.d.find(b.i, key, hash)
				if i == 0 {
					return false
				}
				y = Node{b.d, i}
			}
			if !EqualNodes(x, y) {
				return false
			}
			guess = y.Next()
		}
	}
	return true
}
