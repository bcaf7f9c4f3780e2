package merge

import (
	"fmt"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
)

// The directives of strategic merge patches.
const (
	patchDirective      = "$patch"
	retainKeysDirective = "$retainKeys"
	deletePrefix        = "$deleteFromPrimitiveList/"
	orderPrefix         = "$setElementOrder/"
)

// A PatchError says which part of a strategic merge patch cannot be applied, and
// why.
type PatchError struct {
	Path string // of the part within the patch; "" is the whole
	Msg  string
}

// Error names the part and what must be otherwise.
func (e *PatchError) Error() string {
	if e.Path == "" {
		return "strategic merge patch: " + e.Msg
	}
	return "strategic merge patch: " + clip(e.Path) + ": " + e.Msg
}

func refuse(part document.Node, format string, args ...any) error {
	return &PatchError{part.Path(), fmt.Sprintf(format, args...)}
}

// Patch makes the edits of a strategic merge patch, a value of another document:
// all of them or, with an error, which is a [*PatchError], none. Members are
// merged, nulls remove, lists are merged by the keys that the type gives them or
// replaced, and the directives $patch, $retainKeys, $setElementOrder and
// $deleteFromPrimitiveList have their effect. The result is no deeper than the
// deeper of both and has no more values than both together.
//
// What k8s.io/apimachinery's strategicpatch does is done, with these differences: a directive never
// becomes part of the result; '$patch: merge' is taken at its word, which changes nothing; items
// may be identified by several keys; fields that the type does not know are merged as if it said
// nothing of them; and of additions to a list of scalars and deletions from it, which come there in
// any order, the deletions are first.
func (t *Type) Patch(d *document.Document, patch document.Node) error {
	switch {
	case patch.Kind() != document.Object:
		return &PatchError{Msg: "a patch must be an object, not " + patch.Kind().WithArticle()}
	case d.Root().Kind() != document.Object:
		return &PatchError{Msg: "what is patched must be an object, not " + d.Root().Kind().WithArticle()}
	}
	return d.Atomically(func() error { return mergeObject(t.object(), d.Root(), patch) })
}

// mergeObject merges a patch into an object; o may be nil.
func mergeObject(o *Object, target, patch document.Node) error {
	d := target.Document()
	if directive, ok := patch.Get(patchDirective); ok {
		switch {
		case directive.Is("replace"):
			d.Replace(target, appendMembers(nil, patch))
			return nil
		case directive.Is("delete"):
			d.Replace(target, []byte("{}"))
			return nil
		case !directive.Is("merge"):
			return refuse(directive, "must be 'replace', 'delete' or 'merge'")
		}
	}
	if err := retainKeys(target, patch); err != nil {
		return err
	}
	ordered, err := mergeOrdered(o, target, patch)
	if err != nil {
		return err
	}
	for m := patch.First(); m.Valid(); m = m.Next() {
		if name, ok := strings.CutPrefix(m.Key(), deletePrefix); ok {
			if err := deleteScalars(target, name, m); err != nil {
				return err
			}
		}
	}
	for m := patch.First(); m.Valid(); m = m.Next() {
		if isDirective(m.Key()) || ordered[m.Key()] {
			continue
		}
		if err := mergeMember(o, target, m); err != nil {
			return err
		}
	}
	return nil
}

// isDirective reports whether a member of a patch says how to merge, and is no
// member itself.
func isDirective(key string) bool {
	return key != "" && key[0] == '$' && (key == patchDirective || key == retainKeysDirective ||
		strings.HasPrefix(key, deletePrefix) || strings.HasPrefix(key, orderPrefix))
}

// mergeMember merges one member of a patch into the object that it is for.
func mergeMember(o *Object, target, m document.Node) error {
	d := target.Document()
	old, found := target.Get(m.Key())
	kind := m.Kind()
	switch {
	case kind == document.Null:
		if found {
			d.Remove(old)
		}
	case !found || old.Kind() != kind:
		// There is nothing to merge with: what the patch would remove or replace is not there either.
		if kind == document.Object && hasPatchDirective(m) {
			if found {
				d.Remove(old)
			}
			return nil
		}
		d.Set(target, m.Key(), appendClean(nil, m, true))
	case kind == document.Object:
		if inner := o.typeOf(m).object(); inner == nil || !inner.Replaced {
			return mergeObject(inner, old, m)
		}
		d.Replace(old, appendClean(nil, m, false))
	case kind == document.Array:
		if l := o.typeOf(m).list(); l != nil && l.Merged {
			merged, err := mergeLists(l, old, m)
			if err != nil {
				return err
			}
			merged.write(old)
			return nil
		}
		d.Replace(old, appendClean(nil, m, false))
	default:
		d.Replace(old, m.Raw())
	}
	return nil
}

// typeOf is the type of a member, nil if nothing is known of it.
func (o *Object) typeOf(m document.Node) *Type {
	if o == nil {
		return nil
	}
	return o.member(m)
}

// named is the type of a member by its name.
func (o *Object) named(name string) *Type {
	if o == nil {
		return nil
	}
	if i := o.names.Index(name); i >= 0 {
		return o.fields[i].Type
	}
	return o.Rest
}

// retainKeys removes what a patch does not name among the keys that stay.
func retainKeys(target, patch document.Node) error {
	list, ok := patch.Get(retainKeysDirective)
	if !ok {
		return nil
	}
	if list.Kind() != document.Array {
		return refuse(list, "must be a list, not %s", list.Kind().WithArticle())
	}
	retained := make(map[string]struct{}, list.Len())
	for n := list.First(); n.Valid(); n = n.Next() {
		if n.Kind() != document.String {
			return refuse(n, "must be a string, not %s", n.Kind().WithArticle())
		}
		retained[n.Str()] = struct{}{}
	}
	for m := patch.First(); m.Valid(); m = m.Next() {
		if _, named := retained[m.Key()]; !named && m.Kind() != document.Null && !isDirective(m.Key()) {
			return refuse(m, "must be named in `$retainKeys`, since the patch sets it")
		}
	}
	var next document.Node
	for m := target.First(); m.Valid(); m = next {
		next = m.Next()
		if _, named := retained[m.Key()]; !named {
			target.Document().Remove(m)
		}
	}
	return nil
}

// deleteScalars removes values from a list of scalars.
func deleteScalars(target document.Node, name string, deletions document.Node) error {
	if deletions.Kind() != document.Array {
		return refuse(deletions, "must be a list, not %s", deletions.Kind().WithArticle())
	}
	list, ok := target.Get(name)
	if !ok || list.Kind() != document.Array {
		return nil
	}
	gone := make(map[string]struct{}, deletions.Len())
	var id []byte
	for n := deletions.First(); n.Valid(); n = n.Next() {
		if n.Kind() >= document.Object {
			return refuse(n, "must be a scalar, not %s", n.Kind().WithArticle())
		}
		id, _ = identity(id[:0], nil, n)
		gone[string(id)] = struct{}{}
	}
	var next document.Node
	for n := list.First(); n.Valid(); n = next {
		next = n.Next()
		id, _ = identity(id[:0], nil, n)
		if _, ok := gone[string(id)]; ok {
			list.Document().Remove(n)
		}
	}
	return nil
}

func hasPatchDirective(n document.Node) bool {
	_, ok := n.Get(patchDirective)
	return n.Kind() == document.Object && ok
}

// appendMembers writes an object without its own directives, and without what
// directives in it stand for.
func appendMembers(dst []byte, n document.Node) []byte {
	return appendObject(dst, n, false)
}

// appendClean writes a value of a patch that nothing is merged with: without directives, and if
// nulls is set also without members that are null.
func appendClean(dst []byte, n document.Node, nulls bool) []byte {
	switch n.Kind() {
	case document.Object:
		return appendObject(dst, n, nulls)
	case document.Array:
		dst = append(dst, '[')
		comma := false
		for item := n.First(); item.Valid(); item = item.Next() {
			if hasPatchDirective(item) {
				continue
			}
			if comma {
				dst = append(dst, ',')
			}
			comma = true
			dst = appendClean(dst, item, nulls)
		}
		return append(dst, ']')
	}
	return n.AppendRaw(dst)
}

func appendObject(dst []byte, n document.Node, nulls bool) []byte {
	dst = append(dst, '{')
	comma := false
	for m := n.First(); m.Valid(); m = m.Next() {
		if isDirective(m.Key()) || hasPatchDirective(m) || nulls && m.Kind() == document.Null {
			continue
		}
		if comma {
			dst = append(dst, ',')
		}
		comma = true
		dst = append(document.AppendString(dst, m.Key()), ':')
		dst = appendClean(dst, m, nulls)
	}
	return append(dst, '}')
}
