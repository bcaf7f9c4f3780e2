package merge

import (
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
)

// mergeOrdered merges the lists of an object whose order a patch sets with
// $setElementOrder. It returns the names of the members that are merged so.
func mergeOrdered(o *Object, target, patch document.Node) (done map[string]bool, err error) {
	for m := patch.First(); m.Valid(); m = m.Next() {
		name, ok := strings.CutPrefix(m.Key(), orderPrefix)
		if !ok {
			continue
		}
		if m.Kind() != document.Array {
			return nil, refuse(m, "must be a list, not %s", m.Kind().WithArticle())
		}
		if err := mergeInOrder(o.named(name).list(), target, patch, name, m); err != nil {
			return nil, err
		}
		if done == nil {
			done = map[string]bool{}
		}
		done[name] = true
	}
	return done, nil
}

// mergeInOrder merges one list and puts it in the order that the patch gives; l
// may be nil.
func mergeInOrder(l *List, target, patch document.Node, name string, order document.Node) error {
	if l == nil {
		l = &List{}
	}
	list, there := target.Get(name)
	if there && list.Kind() != document.Array {
		return refuse(order, "`%s` must be a list, not %s", clip(name), list.Kind().WithArticle())
	}
	changes, given := patch.Get(name)
	if given && changes.Kind() != document.Array {
		return refuse(changes, "must be a list, not %s", changes.Kind().WithArticle())
	}
	wanted, err := elementsOf(l, order)
	if err != nil {
		return err
	}
	ids := identities(wanted)
	if given {
		if err := inOrder(l, changes, ids); err != nil {
			return err
		}
	}
	var merged, old elements
	switch {
	case there && given && l.Merged:
		if list.Len() == 0 && changes.Len() == 0 {
			return nil
		}
		old, merged, _, err = combine(l, list, changes)
		if room := list.Len() - len(old); room > 0 && len(merged) >= len(old) {
			// Kubernetes lets new items take the places of items that the patch deletes.
			old = merged[:min(len(merged), list.Len())]
		}
	case given:
		merged, err = replacing(l, changes)
	case there:
		old, err = elementsOf(l, list)
		merged = old
	default:
		return nil
	}
	if err != nil {
		return err
	}
	merged = arrange(merged, ids, old)
	if there {
		merged.write(list)
	} else {
		target.Document().Set(target, name, merged.text())
	}
	return nil
}

// replacing are the items of a patch that make a list if there is none to merge with.
func replacing(l *List, changes document.Node) (elements, error) {
	var all elements
	for item := changes.First(); item.Valid(); item = item.Next() {
		if hasPatchDirective(item) {
			continue
		}
		e, err := elementOf(l, item)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// inOrder checks the items of a patch against the order that the patch sets: all that it does not
// delete must be named there, one behind the other.
func inOrder(l *List, changes document.Node, order []string) error {
	if len(order) == 0 || changes.Len() == 0 {
		return nil
	}
	next := 0
	for item := changes.First(); item.Valid(); item = item.Next() {
		if hasPatchDirective(item) {
			continue
		}
		e, err := elementOf(l, item)
		if err != nil {
			return err
		}
		for next < len(order) && order[next] != e.id {
			next++
		}
		if next == len(order) {
			return refuse(item, "must be named in `$setElementOrder`, in the order of the list")
		}
		next++
	}
	return nil
}
