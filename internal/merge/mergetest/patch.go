package mergetest

import (
	"slices"

	"github.com/admission-gateway/gateway/internal/merge"
)

// Patch is a strategic merge patch for an object of the type, with directives if there is something
// that they could apply to.
func (g Generator) Patch(t *merge.Type, object map[string]any, depth int) map[string]any {
	patch := map[string]any{}
	switch g.IntN(50) {
	case 0:
		if plain, ok := g.Value(t, depth).(map[string]any); ok {
			patch = plain
		}
		patch["$patch"] = "replace"
		return patch
	case 1:
		patch["$patch"] = "delete"
	}
	var o *merge.Object
	if t != nil {
		o = t.Object
	}
	for name, inner := range g.members(o, object) {
		g.patchMember(patch, object, name, inner, depth)
	}
	if patch["$patch"] == nil && g.IntN(10) == 0 {
		keep := []any{}
		for name := range patch {
			if name[0] != '$' {
				keep = append(keep, name)
			}
		}
		for name := range object {
			if g.IntN(2) == 0 && !slices.Contains(keep, any(name)) {
				keep = append(keep, name)
			}
		}
		patch["$retainKeys"] = keep
	}
	return patch
}

// members are the members that a patch is about, with their types.
func (g Generator) members(o *merge.Object, object map[string]any) map[string]*merge.Type {
	members := map[string]*merge.Type{}
	for name := range object {
		if g.IntN(3) != 0 {
			members[name] = nil
		}
	}
	if o == nil {
		return members
	}
	for name := range members {
		members[name] = o.Rest
	}
	for _, f := range o.Fields() {
		if _, ok := members[f.Name]; ok || g.IntN(2*len(o.Fields())) == 0 {
			members[f.Name] = f.Type
		}
	}
	return members
}

func (g Generator) patchMember(patch, object map[string]any, name string, t *merge.Type, depth int) {
	old, there := object[name]
	switch old := old.(type) {
	case map[string]any:
		replaced := t != nil && t.Object != nil && t.Object.Replaced
		if depth > 0 && g.IntN(4) != 0 && !replaced {
			patch[name] = g.Patch(t, old, depth-1)
			return
		}
	case []any:
		if t != nil && t.List != nil && t.List.Merged && g.IntN(6) != 0 {
			g.patchList(patch, name, t.List, old, depth)
			return
		}
	}
	if there && g.IntN(6) == 0 {
		patch[name] = nil
		return
	}
	patch[name] = g.Value(t, depth)
}

// patchList patches a list that is merged.
func (g Generator) patchList(patch map[string]any, name string, l *merge.List, old []any, depth int) {
	if len(l.MergeKeys) == 0 {
		g.patchSet(patch, name, l, old)
		return
	}
	key := l.MergeKeys[0].Name.String()
	items := []any{}
	order := []any{}
	gone := []any{}
	replaced := g.IntN(15) == 0
	for range g.IntN(4) {
		item := map[string]any{}
		if len(old) > 0 && g.IntN(3) != 0 && !replaced {
			at := old[g.IntN(len(old))].(map[string]any)
			named := func(o any) bool { return o.(map[string]any)[key] == at[key] }
			switch {
			case slices.Contains(gone, at[key]):
				continue
			case g.IntN(6) == 0 && !slices.ContainsFunc(order, named):
				items = append(items, map[string]any{"$patch": "delete", key: at[key]})
				gone = append(gone, at[key])
				continue
			}
			item = g.Patch(l.Items, at, depth-1)
			delete(item, "$patch")
			delete(item, "$retainKeys")
			item[key] = at[key]
		} else if made, ok := g.Value(l.Items, depth-1).(map[string]any); ok {
			item = made
			if item[key] == nil {
				item[key] = g.word()
			}
		}
		if slices.ContainsFunc(order, func(o any) bool { return o.(map[string]any)[key] == item[key] }) {
			continue
		}
		items = append(items, item)
		order = append(order, map[string]any{key: item[key]})
	}
	if replaced {
		items = append(items, map[string]any{"$patch": "replace"})
	} else if g.IntN(3) == 0 {
		for _, item := range old {
			id := item.(map[string]any)[key]
			if g.IntN(2) == 0 && !slices.ContainsFunc(order,
				func(o any) bool { return o.(map[string]any)[key] == id }) {
				order = slices.Insert(order, g.IntN(len(order)+1), any(map[string]any{key: id}))
			}
		}
		patch["$setElementOrder/"+name] = order
	}
	if len(items) > 0 || g.IntN(2) == 0 {
		patch[name] = items
	}
}

// patchSet patches a list of scalars that is merged.
func (g Generator) patchSet(patch map[string]any, name string, l *merge.List, old []any) {
	var added, gone []any
	for range g.IntN(3) {
		if v := g.scalar(l.Items.Scalar); !slices.Contains(added, v) {
			added = append(added, v)
		}
	}
	for _, v := range old {
		if g.IntN(3) == 0 && !slices.Contains(added, v) {
			gone = append(gone, v)
		}
	}
	if gone != nil {
		patch["$deleteFromPrimitiveList/"+name] = gone
	}
	if added == nil {
		return
	}
	patch[name] = added
	if g.IntN(3) == 0 {
		order := slices.Clone(added)
		for _, v := range old {
			if g.IntN(2) == 0 && !slices.Contains(order, v) && !slices.Contains(gone, v) {
				order = slices.Insert(order, g.IntN(len(order)+1), v)
			}
		}
		patch["$setElementOrder/"+name] = order
	}
}
