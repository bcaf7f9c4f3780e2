package jsonschema

import (
	"cmp"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/compare"
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
		w.add(v, field.Invalid(w.path(v), wording.Omitted, "must have "+limit+" that match the schema in 'contains', and has "+strconv.Itoa(matching)))
	}
	return false
}

// fewItems is up to how many items of a list are compared with each other.
const fewItems = 8

// unique checks that no item stands twice.
func (w *walk) unique(v document.Node) bool {
	begin := len(w.hashed)
	defer func() { w.hashed = w.hashed[:begin] }()
	i := 0
	for c := v.Children(); c.Valid(); c.Next() {
		w.hashed = append(w.hashed, hashed{index: i, node: c.Node()})
		i++
	}
	items := w.hashed[begin:]
	if len(items) > fewItems {
		for i := range items {
			items[i].hash = compare.Hash(items[i].node)
		}
		slices.SortFunc(items, func(a, b hashed) int {
			return cmp.Or(cmp.Compare(a.hash, b.hash), a.index-b.index)
		})
	}
	ok := true
	for i := range items {
		for j := i - 1; j >= 0 && items[j].hash == items[i].hash; j-- {
			if w.budget--; w.budget < 0 {
				return false
			}
			if !document.EqualNodes(items[i].node, items[j].node) {
				continue
			}
			if ok = false; !w.fails() {
				w.frames[len(w.frames)-1].index = items[i].index
				w.add(items[i].node, status.Duplicate(w.path(items[i].node).String(), wording.Shown(items[i].node)))
			}
			break
		}
		if !ok && w.probing > 0 {
			return false
		}
	}
	return ok
}
