package document

// MergePatch makes the edits of a JSON merge patch (RFC 7386): members of the patch are set, merged
// if both are objects, and removed if they are null. Patch is a value of another document. The
// result is no deeper than the deeper of both and has no more values than both together.
func (d *Document) MergePatch(patch Node) {
	if !patch.Valid() || patch.d == d {
		return
	}
	d.merge(d.Root(), patch)
}

func (d *Document) merge(target, patch Node) {
	if patch.Kind() != Object || target.Kind() != Object {
		d.Replace(target, withoutNulls(patch))
		return
	}
	for m := patch.First(); m.Valid(); m = m.Next() {
		key := m.Key()
		old, exists := target.Get(key)
		switch {
		case m.Kind() == Null && exists:
			d.Remove(old)
		case m.Kind() == Null:
		case exists:
			d.merge(old, m)
		default:
			d.Set(target, key, withoutNulls(m))
		}
	}
}

// withoutNulls is the text of a patch's value if there is none to merge it into: members that are
// null, which would remove something, are left out.
func withoutNulls(n Node) []byte {
	if !hasNulls(n) {
		return n.Raw()
	}
	return appendWithoutNulls(nil, n)
}

// hasNulls looks for members that are null. Lists are values as a whole.
func hasNulls(n Node) bool {
	if n.Kind() != Object {
		return false
	}
	for m := n.First(); m.Valid(); m = m.Next() {
		if m.Kind() == Null || hasNulls(m) {
			return true
		}
	}
	return false
}

func appendWithoutNulls(dst []byte, n Node) []byte {
	if n.Kind() != Object {
		return n.AppendRaw(dst)
	}
	dst = append(dst, '{')
	comma := false
	for m := n.First(); m.Valid(); m = m.Next() {
		if m.Kind() == Null {
			continue
		}
		if comma {
			dst = append(dst, ',')
		}
		comma = true
		dst = AppendString(dst, m.Key())
		dst = append(dst, ':')
		dst = appendWithoutNulls(dst, m)
	}
	return append(dst, '}')
}
