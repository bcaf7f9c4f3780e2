package merge

import (
	"slices"

	"github.com/admission-gateway/gateway/internal/document"
)

// An element is an item of a list that is being merged.
type element struct {
	node document.Node      // in the document that is patched, in a patch, or in made
	made *document.Document // what two items of a patch were merged in; mostly nil
	id   string             // equal for items with equal keys
	isIn bool               // of the list that is patched: the others are written as they should be
}

// A list of elements, in the order of the result.
type elements []element

// mergeLists merges two lists by their keys, or as sets of scalars, and puts the
// result in order: the patch's items as they stand there, the others where the
// list had them.
func mergeLists(l *List, list, patch document.Node) (elements, error) {
	if list.Len() == 0 && patch.Len() == 0 {
		return elementsOf(l, list)
	}
	old, merged, given, err := combine(l, list, patch)
	if err != nil {
		return nil, err
	}
	return arrange(merged, given, old), nil
}

// combine merges the items of two lists. It returns the items of the list without what the patch
// deletes, the merged ones in no particular order, and the identities of the patch's items.
func combine(l *List, list, patch document.Node) (old, merged elements, given []string, err error) {
	kind := document.Invalid
	for _, n := range []document.Node{list, patch} {
		for item := n.First(); item.Valid(); item = item.Next() {
			switch {
			case item.Kind() == document.Array:
				return nil, nil, nil, refuse(patch, "lists of lists must not be merged")
			case kind == document.Invalid:
				kind = item.Kind()
			case kind != item.Kind():
				return nil, nil, nil, refuse(patch, "items of merged lists must be of one type")
			}
		}
	}
	if kind != document.Object {
		if old, err = elementsOf(l, list); err == nil {
			merged, given = unite(old, patch)
		}
		return old, merged, given, err
	}
	if len(l.MergeKeys) == 0 {
		return nil, nil, nil, refuse(patch, "a list of objects must not be merged without a key")
	}
	plain, gone, replaced, err := sort(l, patch)
	if err != nil || replaced {
		return plain, plain, nil, err
	}
	if old, err = elementsOf(l, list); err != nil {
		return nil, nil, nil, err
	}
	old = slices.DeleteFunc(old, func(e element) bool { return gone[e.id] })
	merged, err = mergeItems(l, old, plain)
	return old, merged, identities(plain), err
}

// elementsOf are the items of a list; items that are objects must have the keys.
func elementsOf(l *List, list document.Node) (elements, error) {
	all := make(elements, 0, list.Len())
	for item := list.First(); item.Valid(); item = item.Next() {
		e, err := elementOf(l, item)
		if err != nil {
			return nil, err
		}
		e.isIn = true
		all = append(all, e)
	}
	return all, nil
}

func elementOf(l *List, item document.Node) (element, error) {
	if item.Kind() != document.Object || len(l.MergeKeys) == 0 {
		id, _ := identity(nil, nil, item)
		return element{node: item, id: string(id)}, nil
	}
	for i := range l.MergeKeys {
		switch value := l.MergeKeys[i].of(item); {
		case !value.Valid():
			return element{}, refuse(item, "the merge key `%s` must be set", l.MergeKeys[i].Name)
		case value.Kind() >= document.Object:
			return element{}, refuse(value, "a merge key must be a scalar, not %s", value.Kind().WithArticle())
		}
	}
	id, _ := identity(nil, l.MergeKeys, item)
	return element{node: item, id: string(id)}, nil
}

func identities(list elements) []string {
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].id
	}
	return ids
}

// unite makes one set of scalars.
func unite(old elements, patch document.Node) (merged elements, given []string) {
	seen := make(map[string]struct{}, len(old)+patch.Len())
	add := func(e element) {
		if _, twice := seen[e.id]; !twice {
			seen[e.id] = struct{}{}
			merged = append(merged, e)
		}
	}
	for _, e := range old {
		add(e)
	}
	for item := patch.First(); item.Valid(); item = item.Next() {
		id, _ := identity(nil, nil, item)
		given = append(given, string(id))
		add(element{node: item, id: string(id)})
	}
	return merged, given
}

// sort divides the items of a patch: the items to merge, and the identities of the items to delete.
// replaced reports whether the former are all there is to be.
func sort(l *List, patch document.Node) (plain elements, gone map[string]bool, replaced bool, err error) {
	gone = map[string]bool{}
	for item := patch.First(); item.Valid(); item = item.Next() {
		directive, found := item.Get(patchDirective)
		switch {
		case found && directive.Is("replace"):
			replaced = true
			continue
		case found && !directive.Is("delete") && !directive.Is("merge"):
			return nil, nil, false, refuse(directive, "must be 'replace', 'delete' or 'merge'")
		}
		e, err := elementOf(l, item)
		if err != nil {
			return nil, nil, false, err
		}
		if found && directive.Is("delete") {
			gone[e.id] = true
		} else {
			plain = append(plain, e)
		}
	}
	return plain, gone, replaced, nil
}

// mergeItems merges the items of a patch into the items with their keys, and adds the others.
func mergeItems(l *List, old, plain elements) (elements, error) {
	merged := slices.Clone(old)
	first := make(map[string]int, len(old))
	for i := len(old) - 1; i >= 0; i-- {
		first[old[i].id] = i
	}
	for _, e := range plain {
		at, found := first[e.id]
		if !found {
			first[e.id] = len(merged)
			merged = append(merged, e)
			continue
		}
		into := &merged[at]
		if !into.isIn && into.made == nil {
			// Two items of the patch have the same keys: the second is merged into the first.
			d, err := document.Parse(appendObject(nil, into.node, false),
				document.Limits{Bytes: len(into.node.Raw()) + 1})
			if err != nil {
				return nil, refuse(e.node, "cannot be merged: %s", err)
			}
			into.node, into.made = d.Root(), d
		}
		if err := mergeObject(l.Items.object(), into.node, e.node); err != nil {
			return nil, err
		}
	}
	return merged, nil
}

// arrange puts merged items in order: items that order names as it has them, and the others as they
// stood in the old list, before the first that stood behind them.
func arrange(merged elements, order []string, old elements) elements {
	rank := make(map[string]int, len(order))
	for i := len(order) - 1; i >= 0; i-- {
		rank[order[i]] = i
	}
	stood := make(map[string]int, len(old))
	for i := len(old) - 1; i >= 0; i-- {
		stood[old[i].id] = i
	}
	var named, others elements
	for _, e := range merged {
		if _, ok := rank[e.id]; ok {
			named = append(named, e)
		} else {
			others = append(others, e)
		}
	}
	slices.SortStableFunc(named, func(a, b element) int { return rank[a.id] - rank[b.id] })
	slices.SortStableFunc(others, func(a, b element) int { return stood[a.id] - stood[b.id] })
	result := make(elements, 0, len(merged))
	for len(named) > 0 && len(others) > 0 {
		at, isOld := stood[named[0].id]
		before, wasOld := stood[others[0].id]
		if isOld && wasOld && before < at {
			result = append(result, others[0])
			others = others[1:]
		} else {
			result = append(result, named[0])
			named = named[1:]
		}
	}
	return append(append(result, named...), others...)
}

// write gives a list these items. If they are its own items and new ones behind them, nothing else
// of it is touched.
func (e elements) write(list document.Node) {
	d := list.Document()
	at, i := list.First(), 0
	for ; i < len(e) && at.Valid() && e[i].node == at; i++ {
		at = at.Next()
	}
	if !at.Valid() {
		for _, added := range e[i:] {
			d.Append(list, added.text(nil))
		}
		return
	}
	d.Replace(list, e.text())
}

// text is the list of the elements as JSON.
func (e elements) text() []byte {
	raw := []byte{'['}
	for i := range e {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = e[i].text(raw)
	}
	return append(raw, ']')
}

// text appends the element as it is to stand in the result.
func (e *element) text(dst []byte) []byte {
	if e.isIn || e.made != nil {
		return e.node.AppendRaw(dst)
	}
	return appendClean(dst, e.node, false)
}
