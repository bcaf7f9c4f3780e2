package kubernetes

import (
	"bytes"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// What results from a patch only the server knows: who owns which field, how its own kinds are merged and
// what its webhooks add. So it is asked first, by a dry run of the client's own patch. What it answers is
// admitted, and the patch that follows is pinned to the version that the answer was made of.

var valueJSONPatch = []byte("application/json-patch+json")

// Patched implements storage.Patcher. If the server refuses the patch its answer is the client's. What it shows is
// prepared.
func (s *Store) Patched(w *storage.Write) (isPrepared bool, err error) {
	return true, s.patched(w)
}

// patched reads the result of the patch from the server.
func (s *Store) patched(w *storage.Write) error {
	want := document.Object
	if w.PatchType == storage.JSONPatch {
		want = document.Array
	}
	if got := w.Patch.Root().Kind(); got != want {
		return status.BadRequest("the body must be %s, not %s", want.WithArticle(), got.WithArticle())
	}
	w.IsPinned = storage.TextIn(storage.Metadata(w.Patch), "resourceVersion") != ""
	answer, err := s.dryRun(w.Exchanges, w.Exchanges.Body, nil)
	if err != nil {
		return err
	}
	switch answer.Status() {
	case http.StatusOK:
	case http.StatusCreated:
		w.Existing.IsAbsent = true
	default:
		w.Exchanges.Response.CopyFrom(answer)
		return storage.ErrAnswered
	}
	const unreadable = "what would result from the patch, which has to be judged, must be a JSON object that the gateway can read"
	if w.Object, err = w.Exchanges.Parse(answer.Body(), s.Limits.Stored); err != nil {
		return status.BadGateway(unreadable)
	}
	if w.Object.Root().Kind() != document.Object {
		return status.BadGateway(unreadable)
	}
	if w.Existing.IsAbsent || !s.NeedsExisting(w) {
		return nil
	}
	return s.Get(w)
}

// Patch sends the patch that leads to what was admitted, and to nothing else.
func (s *Store) Patch(w *storage.Write) error {
	var m storage.Message
	var err error
	if m.Body, m.ContentType, err = s.pinned(w); err != nil {
		return err
	}
	isOther := m.ContentType != nil // another patch than the client's
	if !isOther {
		m.ContentType = w.EditedType
	}
	if w.PatchType == storage.ApplyPatch && w.Object.Edited() {
		m.Target = forcedTarget(w.Exchanges)
	}
	if err := s.sendResolved(w, &m); err != nil {
		return err
	}
	// The dry run has shown that the server takes the patch, so that only the pin can be what it refuses now. A
	// creation that is a dry run itself has none.
	if !w.IsPinned {
		w.Existing.Pin = storage.PinnedByObject
	}
	if code := w.Exchanges.Response.Status(); w.Refused(code) == storage.Outdated || code == http.StatusOK &&
		w.Existing.IsAbsent {
		w.Exchanges.Response.Discard()
		return storage.ErrConflict
	}
	if isOther {
		w.Exchanges.LostWarnings()
	}
	return nil
}

// forcedTarget returns the client's own target with `force`, for an apply that policies have changed.
//
// The dry run, with the client's own `force`, has shown that no other manager owns what the client
// asks for, or that the client takes it over; the pin makes sure that this still holds. Only fields
// can conflict now that policies set, which another applier may own because its apply was changed
// by the same policies. An applier is not refused for what it has not asked for.
func forcedTarget(e *storage.Exchanges) []byte {
	return e.Target(func(dst []byte) []byte {
		path, query, _ := bytes.Cut(e.Head.Target, []byte("?"))
		dst = append(append(dst, path...), '?')
		for pair := range bytes.SplitSeq(query, []byte("&")) {
			if key, _, _ := bytes.Cut(pair, []byte("=")); len(pair) > 0 && string(key) != "force" {
				dst = append(append(dst, pair...), '&')
			}
		}
		return append(dst, "force=true"...)
	})
}

// pinned returns the body of the patch: the client's own if no policy changed the result, with the version
// that it is pinned to. What policies changed goes into a configuration that is applied, so that the client
// owns its fields as it would without the gateway; in any other patch who owns what follows from the result
// alone.
func (s *Store) pinned(w *storage.Write) (body, contentType []byte, err error) {
	version := storage.TextIn(storage.Metadata(w.Object), "resourceVersion")
	if version == "" && !w.Existing.IsAbsent {
		return nil, nil, status.BadGateway("the result of the patch has no resourceVersion, so that the write cannot be pinned to what was judged")
	}
	isEdited := w.Object.Edited()
	switch {
	case w.PatchType == storage.ApplyPatch:
		if isEdited {
			if err := s.foldEdits(w); err != nil {
				return nil, nil, err
			}
		}
		if w.Existing.IsAbsent && w.Info.Options.DryRun {
			break // nothing is stored that would have to be pinned, and the answer would show the version
		}
		if w.Existing.IsAbsent {
			version = storage.NoVersion
		}
		w.Patch.SetString(storage.EnsureMetadata(w.Patch), "resourceVersion", version)
	case isEdited:
		if w.Existing.Object == nil {
			if err := s.Get(w); err != nil {
				return nil, nil, err
			}
		}
		body = append(body, '[')
		body = document.AppendDifference(body, w.Existing.Object.Root(), w.Object.Root(), serverFields)
		if len(body) > 1 {
			body = append(body, ',')
		}
		return append(appendPin(body, version), ']'), valueJSONPatch, nil
	case w.PatchType == storage.JSONPatch:
		w.Patch.Append(w.Patch.Root(), appendPin(nil, version))
	default:
		w.Patch.SetString(storage.EnsureMetadata(w.Patch), "resourceVersion", version)
	}
	return w.Patch.AppendTo(nil), nil, nil
}

// foldEdits makes the changes that policies made of the result changes of the applied configuration.
func (s *Store) foldEdits(w *storage.Write) error {
	asked, err := w.Exchanges.Parse(w.Exchanges.Previewed(), s.Limits.Stored)
	if err != nil {
		return err
	}
	defer asked.Release()
	kind := schema.FromAPIVersionAndKind(storage.TextIn(w.Object.Root(), "apiVersion"),
		storage.TextIn(w.Object.Root(), "kind"))
	s.MergeType(w.Info.GroupVersionResource(), kind).Fold(w.Patch, asked.Root(), w.Object.Root())
	return nil
}

// appendPin appends the operation of a JSON patch that makes the server refuse it for any other version.
func appendPin(to []byte, version string) []byte {
	to = append(to, `{"op":"add","path":"/metadata/resourceVersion","value":`...)
	return append(document.AppendString(to, version), '}')
}
