package plain

import (
	"hash/maphash"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// maxWatched bounds of how many objects a watch remembers whether they are of its selection.
const maxWatched = 1 << 16

// A transition chooses the events of a watch with selectors. As in Kubernetes an object that comes into the selection
// is added to what the client sees, and one that leaves it is deleted from that.
type transition struct {
	*selection
	seed maphash.Seed
	seen map[uint64]bool // by object: it is of the selection, or it is known not to be
	// resumed says that the client knows objects already whose events have not passed here.
	resumed bool
}

func newTransition(l *listPass) *transition {
	if l.labels == nil && l.fields == nil {
		return nil
	}
	version := l.options.ResourceVersion
	return &transition{selection: &l.selection, seed: maphash.MakeSeed(), seen: map[uint64]bool{},
		resumed: version != "" && version != "0"}
}

// take lets an event pass, as one of another type if need be, or returns document.ErrOmit.
func (t *transition) take(d *document.Document) error {
	event := d.Root()
	object, isEvent := eventObject(event)
	if !isEvent || !object.Valid() {
		return nil // an error, a bookmark
	}
	metadata, _ := object.Get("metadata")
	var h maphash.Hash
	h.SetSeed(t.seed)
	_, _ = h.WriteString(t.namespaceOf(metadata)) // never fails, as the next
	_ = h.WriteByte('/')
	_, _ = h.WriteString(storage.TextIn(metadata, "name"))
	key := h.Sum64()
	was, known := t.seen[key]
	if !known {
		was = t.resumed
	}
	kind, _ := event.Get("type")
	is := t.selects(object)
	if kind.Is("DELETED") {
		delete(t.seen, key)
		if !is && !was {
			return document.ErrOmit
		}
		return nil
	}
	if !known && len(t.seen) >= maxWatched {
		return status.Internal("a watch with selectors can follow at most %d objects", maxWatched)
	}
	t.seen[key] = is
	switch {
	case !is && !was:
		return document.ErrOmit
	case !is:
		d.SetString(event, "type", "DELETED")
	case !was && known, !known && !t.resumed:
		if !kind.Is("ADDED") {
			d.SetString(event, "type", "ADDED")
		}
	}
	return nil
}
