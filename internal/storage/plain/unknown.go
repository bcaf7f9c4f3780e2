package plain

import (
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/storage"
)

// restoreUnknown gives an object back what is stored in it and its schema does not know: the client did not ask to
// change that. A write that would lose some of it is refused.
func (c *collection) restoreUnknown(w *storage.Write, want *document.Document) error {
	schema := c.Schemas.Of(w)
	if schema == nil || w.Existing.Object == nil || w.IsKnown {
		return nil
	}
	pruned := w.Existing.Object.Clone()
	defer pruned.Release()
	if err := schema.PruneUnknown(pruned); err != nil {
		return storage.UnreadableStored()
	}
	if !pruned.Edited() {
		return nil
	}
	r := restorer{d: want, hasWholeLists: w.PatchType == storage.MergePatch || w.PatchType == storage.FormPatch}
	r.members(want.Root(), pruned.Root(), w.Existing.Root())
	if r.lost.Valid() {
		return notApplicable(w, "the items of `"+storage.Short(r.lost.Path())+
			"` have members that the schema does not know, "+
			"and which of the items they belong to is not known any more")
	}
	return nil
}

// restorer sets what was pruned from an object wherever the rest was not changed.
type restorer struct {
	d *document.Document
	// hasWholeLists says that a client that changes a list sends all of it.
	hasWholeLists bool
	lost          document.Node // a list in which something cannot be restored
}

func (r *restorer) members(object, pruned, stored document.Node) {
	for m := stored.First(); m.Valid(); m = m.Next() {
		left, wasLeft := pruned.Get(m.Key())
		now, isThere := object.Get(m.Key())
		switch {
		case !wasLeft && !isThere:
			r.d.Set(object, m.Key(), m.Raw())
		case wasLeft && isThere:
			r.value(now, left, m)
		}
	}
}

func (r *restorer) value(now, left, stored document.Node) {
	switch {
	case document.EqualNodes(left, stored):
	case document.EqualNodes(now, left):
		r.d.Replace(now, stored.AppendRaw(nil))
	case now.Kind() == document.Object && left.Kind() == document.Object:
		r.members(now, left, stored)
	case now.Kind() == document.Array && left.Kind() == document.Array && !r.hasWholeLists:
		r.items(now, left, stored)
	}
}

// items restores what was pruned from the items of a list, which are told apart by their positions.
func (r *restorer) items(list, pruned, stored document.Node) {
	now, left, all := document.Items(list), document.Items(pruned), document.Items(stored)
	if len(left) != len(all) {
		r.lost = stored
		return
	}
	for i, at := range document.MatchItems(left, now) {
		switch {
		case at == document.NoItem: // it was removed
		case at != document.UnknownItem:
			r.value(now[at], left[i], all[i])
		case !document.EqualNodes(left[i], all[i]):
			r.lost = stored
		}
	}
}
