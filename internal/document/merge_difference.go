package document

// AppendMergePatch appends a merge patch (RFC 7386) of the same effect as the change from one object to another: the
// members that differ, and null for the ones that are gone.
func AppendMergePatch(dst []byte, from, to Node) []byte {
	if from.Kind() != Object || to.Kind() != Object {
		return to.AppendRaw(dst)
	}
	dst = append(dst, '{')
	start := len(dst)
	key := func(name string) {
		if len(dst) > start {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, name), ':')
	}
	for m := to.First(); m.Valid(); m = m.Next() {
		before, found := from.Get(m.Key())
		if found && EqualNodes(before, m) {
			continue
		}
		key(m.Key())
		dst = AppendMergePatch(dst, before, m)
	}
	for m := from.First(); m.Valid(); m = m.Next() {
		if _, found := to.Get(m.Key()); !found {
			key(m.Key())
			dst = append(dst, "null"...)
		}
	}
	return append(dst, '}')
}
