package manifest

import (
	"strconv"
	"strings"
)

// Line returns the line, counted from 1, of the value at a field path as k8s.io/apimachinery writes them:
// "spec.versions[0].name", "metadata.labels[example.com/x]". Of a member it is the line of its key. Where the file
// has no such value, the line is that of its closest ancestor; the empty path is the object itself.
func (o *Object) Line(path string) int {
	line, at := o.line, o.root
	for path != "" {
		m, rest, ok := at.step(path)
		if !ok {
			break
		}
		line, at, path = m.line, m.value, rest
	}
	return line
}

// step takes the first element off a field path. Keys may themselves hold dots and brackets, and both ways to
// write a key are in use (`properties.a.b` and `properties[a.b]`), so the value's own keys decide: the longest wins.
func (v *value) step(path string) (found member, rest string, ok bool) {
	switch v.kind {
	case array:
		digits, rest, closed := strings.Cut(strings.TrimPrefix(path, "["), "]")
		i, err := strconv.Atoi(digits)
		if !closed || path[0] != '[' || err != nil || i < 0 || i >= len(v.members) {
			return member{}, "", false
		}
		return v.members[i], rest, true
	case object:
		bracketed := path[0] == '['
		path = strings.TrimPrefix(path, ".")
		for _, m := range v.members {
			after, has := strings.CutPrefix(path, m.key)
			if bracketed {
				after, has = strings.CutPrefix(path, "["+m.key+"]")
			}
			if !has || after != "" && after[0] != '.' && after[0] != '[' {
				continue
			}
			if !ok || len(m.key) > len(found.key) {
				found, rest, ok = m, after, true
			}
		}
		return found, rest, ok
	default:
		return member{}, "", false
	}
}
