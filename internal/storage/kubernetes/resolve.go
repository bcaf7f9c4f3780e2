package kubernetes

import (
	"bytes"
	"net/http"

	"k8s.io/apimachinery/pkg/types"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// resolve finds out by a read with the client's own credentials whether a write was carried out whose outcome is
// unknown. If it was, the answer is the one that the server would have given.
//
// The gateway holds no lock here, and the server sets the uid. So only a write whose client names no version is
// resolved, and a create whose name the gateway has made: as the object is, such a write would have left it, whoever
// wrote it.
func (s *Store) resolve(w *storage.Write, m *storage.Message, unknown *storage.UnknownOutcome) error {
	i, e := &w.Info, w.Exchanges
	isNew := i.Verb == resource.VerbCreate && w.HasGeneratedName
	if !isNew && (!w.IsRepeatable() || !i.IsObject()) || i.Subresource != "" || asksDryRun(w) ||
		asksOtherForm(e.Head.Value(message.FieldAccept)) {
		return unknown.Unresolved()
	}
	want := bytes.Clone(m.Body)
	if w.Object != nil {
		want = w.Object.AppendTo(nil)
	}
	if i.Verb == resource.VerbUpdate && w.Existing.Pin != storage.PinnedByObject && s.namesVersion(w, want) {
		return unknown.Unresolved()
	}
	target := []byte(i.Path)
	if isNew {
		target = append(append(target, '/'), i.Name...)
	}
	answer, err := e.ReadAfterWrite(s.Backend, target, s.Limits)
	if err != nil {
		return unknown.Unresolved()
	}
	switch code := answer.Status(); {
	case i.Verb == resource.VerbDelete && code == http.StatusNotFound:
		uid := types.UID(storage.TextIn(storage.Metadata(w.Existing.Object), "uid"))
		e.Response.Discard()
		e.Response.StartJSON(http.StatusOK, nil, status.AppendJSON(nil, status.Deleted(i.GroupResource(), i.Name, uid)))
		return nil
	case i.Verb == resource.VerbDelete || code != http.StatusOK || !answer.IsJSON() || !s.shows(w, answer.Body(), want,
		isNew):
		return unknown.Unresolved()
	}
	code := http.StatusOK
	if w.Creates() {
		code = http.StatusCreated
	}
	e.Response.Discard()
	e.Response.StartJSON(code, nil, bytes.Clone(answer.Body()))
	return nil
}

// namesVersion reports whether an object names the version that it replaces, or cannot be read.
func (s *Store) namesVersion(w *storage.Write, text []byte) bool {
	d, err := w.Exchanges.Parse(text, s.Limits.Stored)
	if err != nil {
		return true
	}
	defer d.Release()
	return storage.TextIn(storage.Metadata(d), "resourceVersion") != ""
}

// shows reports whether the stored object is what a write leaves, in another version than the one that was judged.
// What the server alone decides about does not count; a new object may have more than was sent.
func (s *Store) shows(w *storage.Write, stored, want []byte, isNew bool) bool {
	now, err := w.Exchanges.Parse(stored, s.Limits.Stored)
	if err != nil {
		return false
	}
	defer now.Release()
	sent, err := w.Exchanges.Parse(want, s.Limits.Stored)
	if err != nil {
		return false
	}
	defer sent.Release()
	if isNew {
		return has(now.Root(), sent.Root())
	}
	version := storage.TextIn(storage.Metadata(now), "resourceVersion")
	if version == storage.TextIn(storage.Metadata(sent), "resourceVersion") ||
		version == storage.TextIn(storage.Metadata(w.Existing.Object), "resourceVersion") {
		return false
	}
	for _, d := range [...]*document.Document{now, sent} {
		for _, path := range serverFields {
			if at, found := storage.Find(d.Root(), path); found {
				d.Remove(at)
			}
		}
	}
	return document.EqualNodes(now.Root(), sent.Root())
}

// has reports whether an object has all members of another one, and lists the same items.
func has(object, members document.Node) bool {
	switch {
	case object.Kind() != members.Kind():
		return false
	case members.Kind() == document.Object:
		for m := members.First(); m.Valid(); m = m.Next() {
			if at, found := object.Get(m.Key()); !found || !has(at, m) {
				return false
			}
		}
		return true
	case members.Kind() == document.Array:
		if object.Len() != members.Len() {
			return false
		}
		at := object.First()
		for m := members.First(); m.Valid(); m, at = m.Next(), at.Next() {
			if !has(at, m) {
				return false
			}
		}
		return true
	}
	return document.EqualNodes(object, members)
}

// asksOtherForm reports whether an Accept asks for something else than the list in JSON.
func asksOtherForm(accept []byte) bool {
	for one := range bytes.SplitSeq(accept, []byte(",")) {
		switch string(bytes.TrimSpace(one)) {
		case "", storage.JSON, "*/*", "application/*":
		default:
			return true
		}
	}
	return false
}

// serverFields are the members of metadata that the server alone decides about, for any writer.
var serverFields = [][]string{
	{"metadata", "managedFields"}, {"metadata", "generation"}, {"metadata", "resourceVersion"}, {"metadata", "uid"},
	{"metadata", "creationTimestamp"},
}
