package graph

import (
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/list"
	"github.com/admission-gateway/gateway/internal/schema/wording"
	"github.com/admission-gateway/gateway/internal/status"
)

// list checks the items of a list.
func (w *walk) list(l *listRules, v document.Node, m markers) bool {
	n := v.Len()
	ok := w.broken(l.size.Broken(n), l.size.Failure, v)
	if !ok && w.probing > 0 {
		return false
	}
	if l.isUnique && n > 1 {
		ok = w.unique(v) && ok
	}
	at := len(w.frames) - 1
	matching, i := 0, 0
	for c := v.Children(); c.Valid() && (ok || w.probing == 0); c.Next() {
		item, isDescribed := c.Node(), false
		w.frames[at].index = i
		switch {
		case i < len(l.prefix):
			isDescribed = true
			ok = w.check(l.prefix[i], item, none) && ok
		case l.items == nil:
		case l.items.isPlain && l.items.accepts.has(c.Kind()):
			isDescribed = true
		default:
			isDescribed = true
			ok = w.other(l.items, v, item, i) && ok
		}
		if l.contains != nil {
			w.probing++
			matches := w.check(l.contains, item, none)
			w.probing--
			if matches {
				matching++
				isDescribed = true
			}
		}
		if isDescribed {
			w.mark(m, i)
		}
		i++
	}
	if !ok && w.probing > 0 || l.contains == nil {
		return ok
	}
	return w.contained(l, v, matching) && ok
}

// contained checks how many items `contains` is true of.
func (w *walk) contained(l *listRules, v document.Node, matching int) bool {
	if matching >= l.minimum && (l.maximum < 0 || matching <= l.maximum) {
		return true
	}
	if !w.fails() {
		limit := "at least " + strconv.Itoa(l.minimum)
		if matching >= l.minimum {
			limit = "at most " + strconv.Itoa(l.maximum)
		}
		w.add(v, field.Invalid(w.path(v), wording.Omitted, "must have "+limit+
			" that match the schema in 'contains', and has "+strconv.Itoa(matching)))
	}
	return false
}

// uniqueItems says which items of a list may not stand in it twice.
var uniqueItems = list.Type{IsExact: true}

// unique checks that no item stands twice.
func (w *walk) unique(v document.Node) bool {
	w.repeated, _ = uniqueItems.Repeats(w.repeated[:0], v, &w.items)
	for _, item := range w.repeated {
		if w.fails() {
			if w.probing > 0 {
				return false
			}
			continue
		}
		w.frames[len(w.frames)-1].index = positionIn(v, item)
		w.add(item, status.Duplicate(w.path(item).String(), wording.Shown(item)))
	}
	return len(w.repeated) == 0
}

// positionIn is the position of an item in its list.
func positionIn(list, item document.Node) (i int) {
	for n := list.First(); n != item; n = n.Next() {
		i++
	}
	return i
}
