package storage

import (
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// NoVersion is a version that no object has, for a store is empty in its first revision. An
// API server does not look at the version in an object that it creates, and refuses the write if there is
// an object by then.
const NoVersion = "1"

// Unversioned says how a backend handles a write that names no version.
type Unversioned struct {
	// ZeroIsNone says that the version "0" counts as no version.
	ZeroIsNone bool
	// IsRefused says that the backend refuses the write; nothing is written into it then.
	IsRefused bool
	// IsUncertain says that only the backend knows whether it takes the write.
	IsUncertain bool
}

// PinResourceVersion makes the version that was read the precondition of the write, inside the
// object, or inside the options of a deletion, unless the client named one itself. The rule says
// how the backend handles a write that names none.
func (w *Write) PinResourceVersion(l *Limits, rule Unversioned) error {
	stored, _ := Find(w.Existing.Object.Root(), resource.FieldPath{"metadata", "resourceVersion"})
	if stored.Kind() != document.String || stored.Str() == "" {
		return status.BadGateway("the stored object has no resourceVersion, so that the write cannot be pinned to the version that was judged")
	}
	parent, member := "metadata", "metadata."
	switch w.Info.Verb {
	case resource.VerbPatch:
		w.Existing.Pin = PinnedByObject // what results from a patch has the version of what was patched
		return nil
	case resource.VerbDelete:
		parent, member = "preconditions", "preconditions."
		if err := w.MakeDeleteOptions(l); err != nil {
			return err
		}
	}
	root := w.Object.Root()
	if root.Kind() != document.Object {
		return status.BadRequest("the body must be a JSON object, not %s", root.Kind().WithArticle())
	}
	at, found := root.Get(parent)
	if !found || at.Kind() == document.Null {
		at = w.Object.Set(root, parent, []byte("{}"))
	}
	if at.Kind() != document.Object {
		return status.BadRequest("`%s` must be an object, not %s", parent, at.Kind().WithArticle())
	}
	sent, err := Text(at, "resourceVersion", member)
	isNone := sent == "" || sent == "0" && rule.ZeroIsNone
	switch {
	case err != nil:
		return err
	case isNone && rule.IsRefused:
		return nil
	case isNone:
		w.Object.Set(at, "resourceVersion", stored.Raw())
		w.Existing.Pin, w.Existing.IsUncertain = PinnedByObject, rule.IsUncertain
	case sent != stored.Str():
		return w.Conflict()
	}
	w.pinIdentity(at)
	return nil
}

// pinIdentity makes the PUT that was judged as an update fail if the object is gone by then: it is one of
// that very object.
func (w *Write) pinIdentity(metadata document.Node) {
	uid := TextIn(Metadata(w.Existing.Object), "uid")
	if uid != "" && NamesObject(&w.Info, w.Resource) && TextIn(metadata, "uid") == "" {
		w.Object.SetString(metadata, "uid", uid)
	}
}

// PinToNothing makes the PUT that is judged as a creation fail on an API server if there is an object by then.
// A dry run stores nothing that would have to be pinned, and its answer would show the version.
func (w *Write) PinToNothing() {
	w.Existing.IsAbsent = true
	if !w.Info.Options.DryRun && TextIn(Metadata(w.Object), "resourceVersion") == "" {
		w.Existing.Pin = PinnedByObject
	}
}

// WritePinToNothing writes the version into the object by which [Write.PinToNothing] pins it. No policy sees it.
func (w *Write) WritePinToNothing() {
	if !w.Existing.IsAbsent || w.Existing.Pin != PinnedByObject {
		return
	}
	if metadata := EnsureMetadata(w.Object); TextIn(metadata, "resourceVersion") == "" {
		w.Object.SetString(metadata, "resourceVersion", NoVersion)
	}
}

// MakeDeleteOptions gives a deletion that came without options some that a precondition can be set in.
func (w *Write) MakeDeleteOptions(l *Limits) error {
	if w.Object != nil {
		return nil
	}
	d, err := w.Exchanges.Parse(deleteOptions, l.Sent)
	w.SetObject(d)
	w.ContentType = valueJSON
	return err
}

// CloneDeleteOptions returns a copy of the options of a deletion, or new ones if it came without.
func (w *Write) CloneDeleteOptions(l *Limits) (*document.Document, error) {
	if w.Object != nil {
		return w.Object.Clone(), nil
	}
	return w.Exchanges.Parse(deleteOptions, l.Sent)
}
