package kubernetes

import (
	"net/http"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// What an API server adds to the objects of its own kinds only the server knows. If the configuration says
// so, it is asked by a dry run of what would be sent to it. Validating policies see what it answers, and
// what is sent then is pinned to the version that the answer was made of.

// valueJSON is the media type of what the gateway writes.
var valueJSON = []byte(storage.JSON)

// preview asks what would be stored. If the server refuses the object its answer is the client's.
func preview(s *Store, w *storage.Write) error {
	operation := w.Info.Verb.Operation()
	isWrite := operation != 0
	if w.Existing.IsAbsent {
		operation = admission.Create
	}
	if !isWrite || !s.Policies.Validates(&w.Info, operation) {
		return nil
	}
	m := w.Message()
	if w.Existing.IsUncertain {
		m.Body, m.ContentType, w.Existing.IsUncertain = withoutVersion(w), valueJSON, false // the answer says it
	}
	answer, err := s.dryRun(w.Exchanges, m.Body, m.ContentType)
	if err != nil {
		return err
	}
	switch code := answer.Status(); {
	case code == http.StatusConflict && w.Existing.Pin == storage.PinnedByObject, code == http.StatusOK &&
		w.Existing.IsAbsent:
		return storage.ErrConflict
	case code == http.StatusCreated && w.Info.Verb == resource.VerbUpdate && !w.Existing.IsAbsent:
		w.PinToNothing()
	case !storage.IsDone(code):
		w.Exchanges.Response.CopyFrom(answer)
		return storage.ErrAnswered
	}
	const unreadable = "what would be stored, which has to be judged, must be a JSON object that the gateway can read"
	if w.Result, err = w.Exchanges.Parse(answer.Body(), s.Limits.Stored); err != nil {
		return status.BadGateway(unreadable)
	}
	switch root := w.Result.Root(); {
	case root.Kind() != document.Object:
		return status.BadGateway(unreadable)
	case storage.TextIn(root, "kind") == "Status" && storage.TextIn(root, "apiVersion") == "v1":
		// The result of a binding or an eviction is no object, so policies judge what was sent.
		w.Result.Release()
		w.Result = nil
		return nil
	}
	hideToken(w)
	pinResult(w)
	return nil
}

// hideToken takes the token out of the result of a TokenRequest. The token is valid although
// nothing is stored. The server's own admission sees none either.
func hideToken(w *storage.Write) {
	if !storage.IsTokenRequest(&w.Info) {
		return
	}
	if _, found := w.Result.Root().Get("status"); found {
		w.Result.Set(w.Result.Root(), "status", []byte(`{"token":"","expirationTimestamp":null}`))
	}
}

// dryRun asks the server for the result of a request with a body, once the server has proved that
// it supports dry runs.
func (s *Store) dryRun(e *storage.Exchanges, body, contentType []byte) (*message.Response, error) {
	if err := s.Proofs.prove(e, s.Backend); err != nil {
		return nil, err
	}
	return e.DryRun(s.Backend, body, contentType, s.Limits)
}

// pinResult makes the write that follows fail if its result would not be what was judged: for
// another version, or under another name.
func pinResult(w *storage.Write) {
	metadata := storage.Metadata(w.Result)
	switch w.Info.Verb {
	case resource.VerbUpdate:
		version := storage.TextIn(metadata, "resourceVersion")
		if w.Existing.IsAbsent || version == "" {
			return
		}
		sent := storage.EnsureMetadata(w.Object)
		if storage.TextIn(sent, "resourceVersion") == "" {
			w.Object.SetString(sent, "resourceVersion", version)
			w.Existing.Pin = storage.PinnedByObject
		}
		uid := storage.TextIn(metadata, "uid")
		if uid != "" && storage.NamesObject(&w.Info, w.Resource) && storage.TextIn(sent, "uid") == "" {
			w.Object.SetString(sent, "uid", uid)
		}
	case resource.VerbCreate:
		name, sent := storage.TextIn(metadata, "name"), storage.Metadata(w.Object)
		if name == "" || w.Info.Subresource != "" || storage.TextIn(sent, "generateName") == "" ||
			storage.TextIn(sent, "name") != "" {
			return
		}
		w.Object.SetString(sent, "name", name)
		w.Info.Name, w.HasGeneratedName = name, true
	}
}
