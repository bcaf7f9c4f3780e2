package plain

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

// A fold puts into a patch what the gateway changes of its result, so that the backend arrives at
// the object that was admitted. What need not change stays as in the client's patch.
type fold struct {
	write *storage.Write
	patch *document.Document
	// stored is the object as the backend has it, completed the same with the defaults that a client sees.
	stored, completed *document.Document
	want              *document.Document
	limits            document.Limits
	// isUnfilled says that nothing is stored only because what was read had a default there.
	isUnfilled bool
	// pin is the field whose stored value the patch has to name; nil for none.
	pin resource.FieldPath
}

// mergePatch returns a merge patch; false if there is none that leads to the object: it sets null only where
// [mergePatch] keeps it.
func (f *fold) mergePatch() ([]byte, bool) {
	asked := f.stored.Clone()
	defer asked.Release()
	mergePatch(f.write, asked, f.patch.Root())
	f.unfill(asked)
	f.object(f.patch.Root(), f.stored.Root(), asked.Root(), f.want.Root())
	if f.pin != nil && !f.setPin() {
		return nil, false
	}
	result := f.stored.Clone()
	defer result.Release()
	mergePatch(f.write, result, f.patch.Root())
	return f.patch.AppendTo(nil), document.EqualNodes(result.Root(), f.want.Root())
}

// setPin sets the stored version in a merge patch.
func (f *fold) setPin() bool {
	at := f.patch.Root()
	last := len(f.pin) - 1
	stored := f.stored.Root()
	for i, key := range f.pin {
		var found bool
		if stored, found = stored.Get(key); !found {
			return false
		}
		if i == last {
			break
		}
		next, found := at.Get(key)
		if !found {
			next = f.patch.Set(at, key, []byte("{}"))
		}
		at = next
	}
	return f.patch.Set(at, f.pin[last], stored.Raw()).Valid()
}

// object changes the patch of one object: what it asks for becomes what is wanted.
func (f *fold) object(patch, stored, asked, want document.Node) {
	for m := asked.First(); m.Valid(); m = m.Next() {
		wanted, _ := want.Get(m.Key())
		f.member(patch, stored, m.Key(), m, wanted)
	}
	for m := want.First(); m.Valid(); m = m.Next() {
		if _, found := asked.Get(m.Key()); !found {
			f.member(patch, stored, m.Key(), document.Node{}, m)
		}
	}
}

// member changes the patch's value for a member. An invalid node is a member that is not there.
func (f *fold) member(patch, stored document.Node, key string, asked, want document.Node) {
	if asked.Valid() == want.Valid() && document.EqualNodes(asked, want) {
		return
	}
	said, isSaid := patch.Get(key)
	old, _ := stored.Get(key)
	switch {
	case old.Valid() == want.Valid() && document.EqualNodes(old, want):
		if isSaid {
			f.patch.Remove(said)
		}
	case !want.Valid():
		f.patch.Set(patch, key, []byte("null"))
	case asked.Kind() == document.Object && want.Kind() == document.Object &&
		(!isSaid || said.Kind() == document.Object):
		if !isSaid {
			said = f.patch.Set(patch, key, []byte("{}"))
		}
		f.object(said, old, asked, want)
	default:
		f.patch.Set(patch, key, appendMergePatch(nil, old, want))
	}
}

// appendMergePatch appends the merge patch that turns one value into another.
func appendMergePatch(dst []byte, from, to document.Node) []byte {
	if from.Kind() != document.Object || to.Kind() != document.Object {
		return to.AppendRaw(dst)
	}
	dst = append(dst, '{')
	start := len(dst)
	member := func(key string) {
		if len(dst) > start {
			dst = append(dst, ',')
		}
		dst = append(document.AppendString(dst, key), ':')
	}
	for m := to.First(); m.Valid(); m = m.Next() {
		old, found := from.Get(m.Key())
		if found && document.EqualNodes(old, m) {
			continue
		}
		member(m.Key())
		dst = appendMergePatch(dst, old, m)
	}
	for m := from.First(); m.Valid(); m = m.Next() {
		if _, found := to.Get(m.Key()); !found {
			member(m.Key())
			dst = append(dst, "null"...)
		}
	}
	return append(dst, '}')
}

// jsonPatch returns a JSON patch: what the gateway adds before the client's operations, which were applied to the
// completed object, then these, and what the gateway changes after them.
func (f *fold) jsonPatch() ([]byte, bool) {
	from, body := f.completed, []byte{'['}
	if f.isUnfilled {
		from, body = f.stored, f.appendReplaced(body)
	} else {
		body = document.AppendDifference(body, f.stored.Root(), f.completed.Root(), nil)
	}
	asked := from.Clone()
	defer asked.Release()
	if f.isUnfilled && !f.apply(asked, append(body[:len(body):len(body)], ']')) {
		return nil, false
	}
	if err := asked.ApplyJSONPatch(f.patch.Root(), f.limits); err != nil {
		return nil, false
	}
	f.unfill(asked)
	body = separated(body, bytes.Trim(bytes.TrimSpace(f.patch.AppendTo(nil)), "[]"))
	body = separated(body, document.AppendDifference(nil, asked.Root(), f.want.Root(), nil))
	if f.pin != nil {
		value := f.stored.Root()
		pointer := []byte(nil)
		for _, key := range f.pin {
			value, _ = value.Get(key)
			pointer = appendPointer(pointer, key)
		}
		operation := append(document.AppendString([]byte(`{"op":"replace","path":`), string(pointer)), `,"value":`...)
		body = separated(body, append(value.AppendRaw(operation), '}'))
	}
	body = append(body, ']')
	return body, f.leads(body)
}

// unfill takes out of the wanted object the defaults that only reads have set, and that nothing has changed.
func (f *fold) unfill(asked *document.Document) {
	if f.isUnfilled {
		f.unfillObject(f.want.Root(), f.stored.Root(), f.completed.Root(), asked.Root())
	}
}

func (f *fold) unfillObject(want, stored, completed, asked document.Node) {
	for m := want.First(); m.Valid(); {
		next := m.Next()
		old, isStored := stored.Get(m.Key())
		filled, isThere := completed.Get(m.Key())
		now, isAsked := asked.Get(m.Key())
		switch {
		case !isStored && isThere && !isAsked && document.EqualNodes(m, filled):
			f.want.Remove(m)
		case isStored && isThere && isAsked:
			f.unfillValue(m, old, filled, now)
		}
		m = next
	}
}

func (f *fold) unfillValue(want, stored, completed, asked document.Node) {
	switch kind := stored.Kind(); {
	case kind == document.Object && want.Kind() == kind && asked.Kind() == kind:
		f.unfillObject(want, stored, completed, asked)
	case document.EqualNodes(asked, stored) && document.EqualNodes(want, completed):
		f.want.Replace(want, stored.AppendRaw(nil))
	}
}

// appendReplaced appends operations that add the members which the patch replaces and which only reads have set.
func (f *fold) appendReplaced(body []byte) []byte {
	for op := f.patch.Root().First(); op.Valid(); op = op.Next() {
		if name, _ := op.Get("op"); !name.Is("replace") {
			continue
		}
		pointer, _ := op.Get("path")
		if _, isStored := pointed(f.stored.Root(), pointer.Str()); isStored {
			continue
		}
		if value, isThere := pointed(f.completed.Root(), pointer.Str()); isThere {
			operation := append(document.AppendString([]byte(`{"op":"add","path":`), pointer.Str()), `,"value":`...)
			body = separated(body, append(value.AppendRaw(operation), '}'))
		}
	}
	return body
}

// pointed returns the value that a JSON pointer leads to.
func pointed(at document.Node, pointer string) (document.Node, bool) {
	for rest := pointer; rest != ""; {
		var step string
		step, rest = pointerStep(rest)
		next, found := at.Get(step)
		if at.Kind() == document.Array {
			i, err := strconv.Atoi(step)
			if err != nil {
				return document.Node{}, false
			}
			next, found = at.At(i)
		}
		if !found {
			return document.Node{}, false
		}
		at = next
	}
	return at, true
}

// pointerStep cuts a JSON pointer behind its first step, whose name it returns.
func pointerStep(pointer string) (name, rest string) {
	name = strings.TrimPrefix(pointer, "/")
	if at := strings.IndexByte(name, '/'); at >= 0 {
		name, rest = name[:at], name[at:]
	}
	return strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~"), rest
}

// leads reports whether a JSON patch turns the stored object into the wanted one.
func (f *fold) leads(body []byte) bool {
	result := f.stored.Clone()
	defer result.Release()
	return f.apply(result, body) && document.EqualNodes(result.Root(), f.want.Root())
}

// apply applies the text of a JSON patch.
func (f *fold) apply(to *document.Document, body []byte) bool {
	patch, err := document.Parse(body, document.Limits{Depth: f.limits.Depth + 2, Memory: f.limits.Memory})
	if err != nil {
		return false
	}
	defer patch.Release()
	return to.ApplyJSONPatch(patch.Root(), f.limits) == nil
}

// appendPointer appends a member's name to a JSON pointer (RFC 6901).
func appendPointer(dst []byte, key string) []byte {
	dst = append(dst, '/')
	for i := range len(key) {
		switch key[i] {
		case '~':
			dst = append(dst, "~0"...)
		case '/':
			dst = append(dst, "~1"...)
		default:
			dst = append(dst, key[i])
		}
	}
	return dst
}

// separated appends operations to others.
func separated(body, more []byte) []byte {
	more = bytes.TrimSpace(more)
	if len(more) > 0 && len(body) > 1 {
		body = append(body, ',')
	}
	return append(body, more...)
}
