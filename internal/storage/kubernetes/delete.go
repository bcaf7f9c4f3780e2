package kubernetes

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// Delete implements storage.Deleter. The server deletes; if a policy reads the stored object, the deletion
// is pinned to its version.
func (s *Store) Delete(w *storage.Write, h storage.Handler) error {
	if err := s.readOptions(w); err != nil {
		return err
	}
	if s.NeedsExisting(w) {
		if err := s.Get(w); err != nil {
			return err
		}
	}
	err := h.Validate(w)
	if w.Failed != nil {
		return w.Failed
	}
	if err != nil {
		return err
	}
	return s.Update(w)
}

// readOptions reads the options of a deletion if something depends on them. The server reads either the
// body or, without one, the query: policies have to see the same, and options that the gateway adds must
// not hide the options in the query.
func (s *Store) readOptions(w *storage.Write) error {
	if !w.Info.IsResource || !s.Policies.Concerns(&w.Info, admission.Delete) && !s.NeedsExisting(w) {
		return nil
	}
	if w.Object != nil {
		w.Info.Options.DryRun = false
	}
	return w.ReadDeleteOptions(s.Limits)
}

// DeleteCollection implements storage.Deleter. An API server lets validating policies judge each object as
// it deletes it. If they have to see the objects, the gateway judges all of them first, and deletes each in
// the version that was judged.
func (s *Store) DeleteCollection(w *storage.Write, h storage.Handler) error {
	if !s.Policies.NeedsOld(&w.Info, admission.Delete) {
		return s.Delete(w, h)
	}
	if err := s.readOptions(w); err != nil {
		return err
	}
	if err := s.authorizeCollection(w); err != nil {
		return err
	}
	list, err := s.readCollection(w)
	if err != nil {
		return err
	}
	defer list.Release()
	items, _ := list.Root().Get("items")
	if items.Kind() != document.Array && items.Kind() != document.Null {
		return status.BadGateway("the objects to delete, which policies have to judge, must be a JSON list that the gateway can read")
	}
	for item := items.First(); item.Valid(); item = item.Next() {
		if err := collect(w, h, item); err != nil {
			return err
		}
	}
	if err := h.Decide(w); err != nil {
		return err
	}
	if asksDryRun(w) {
		if err := s.Proofs.prove(w.Exchanges, s.Backend); err != nil {
			return err
		}
	}
	answer := new(message.Response)
	for item := items.First(); item.Valid(); item = item.Next() {
		// The first that cannot be deleted ends it; what is gone already is as good as deleted.
		if err := s.deleteOne(w, h, item, answer); err != nil {
			return err
		}
	}
	return s.answerCollection(w, list)
}

// answerCollection answers with the objects that were deleted, in the form that the client asks for. Another form than JSON, such as
// metadata alone, only the server makes: of the list as it was when the objects were judged.
func (s *Store) answerCollection(w *storage.Write, list *document.Document) error {
	e := w.Exchanges
	if asksOtherForm(e.Head.Value(message.FieldAccept)) && e.Sink == nil {
		query, _ := splitQuery(w.Info.Query)
		metadata, _ := list.Root().Get("metadata")
		version := storage.TextIn(metadata, "resourceVersion")
		if version != "" && !strings.Contains(query, "resourceVersion") && !strings.Contains(query, "continue=") {
			query = strings.TrimPrefix(query+"&resourceVersionMatch=Exact&resourceVersion="+url.QueryEscape(version), "&")
		}
		target := []byte(withQuery(w.Info.Path, query))
		err := e.Send(s.Backend, &storage.Message{Method: []byte(http.MethodGet), Target: target, ContentType: []byte{}, IsSafe: true})
		if code := e.Response.Status(); err == nil && (code == http.StatusOK || code == http.StatusNotAcceptable) {
			return nil
		}
		e.Response.Discard() // the objects are deleted all the same
	}
	if err := list.Err(); err != nil {
		return err
	}
	e.Response.StartJSON(http.StatusOK, nil, list.AppendTo(nil))
	return nil
}

// authorizeCollection lets the server say whether the client may delete the collection, before the gateway's own account lists
// it: by a dry run of the client's own request that selects no object.
func (s *Store) authorizeCollection(w *storage.Write) error {
	e := w.Exchanges
	if s.Backend.Account == nil || e.IsExplained() {
		return nil // the client itself lists it
	}
	if err := s.Proofs.prove(e, s.Backend); err != nil {
		return err
	}
	answer, err := e.DryRunOf(s.Backend, []byte(collectionTarget(w, nobody)), noDeletion, s.Limits)
	if err != nil {
		return err
	}
	if !storage.IsDone(answer.Status()) {
		e.Response.CopyFrom(answer)
		return storage.ErrAnswered
	}
	return nil
}

// nobody cannot be the name of an object. It can be looked up as any other name can.
const nobody = "admission-gateway.io.nobody"

// noDeletion are the options of a deletion that is a dry run. Options in a body count; options in
// the query do not.
var noDeletion = []byte(`{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}`)

// collectionTarget narrows the request to the object with a name.
func collectionTarget(w *storage.Write, name string) string {
	which, how := splitQuery(w.Info.Query)
	fields, labels := "", ""
	for pair := range strings.SplitSeq(which, "&") {
		switch key, value, _ := strings.Cut(pair, "="); { // of several the server reads the first
		case key == "labelSelector" && labels == "":
			labels = "&" + pair
		case key == "fieldSelector" && fields == "" && value != "":
			fields = value + "%2C"
		}
	}
	target := w.Info.Path + "?fieldSelector=" + fields + url.QueryEscape("metadata.name="+name) + labels
	if how != "" {
		target += "&" + how
	}
	return target
}

// readCollection lists the objects that the request selects.
func (s *Store) readCollection(w *storage.Write) (*document.Document, error) {
	e := w.Exchanges
	query, _ := splitQuery(w.Info.Query)
	answer, err := e.ReadOwn(s.Backend, []byte(withQuery(w.Info.Path, query)), itemRule(&w.Info, resource.VerbList), &w.Subject, s.Limits)
	if err != nil {
		var failed *upstream.Error
		if errors.As(err, &failed) && failed.Kind == upstream.TooLarge {
			return nil, status.RequestEntityTooLarge("the collection is too large for policies to judge all its objects: narrow it by selectors, or by `limit`")
		}
		return nil, err
	}
	if answer.Status() != http.StatusOK {
		return nil, storage.NewBackendError(&w.Info, answer)
	}
	if !e.Memory.Grow(len(answer.Body())) { // for the copy, which outlasts the answer
		return nil, e.Exhausted()
	}
	list, err := w.Exchanges.Parse(append([]byte(nil), answer.Body()...), s.Limits.List())
	if err != nil {
		return nil, status.BadGateway("the objects to delete, which policies have to judge, must be a JSON list that the gateway can read")
	}
	return list, nil
}

// splitQuery takes a query apart into what says which objects are meant and what says how they are deleted.
func splitQuery(query string) (list, deletion string) {
	var which, how []string
	for pair := range strings.SplitSeq(query, "&") {
		switch key, _, _ := strings.Cut(pair, "="); key {
		case "":
		case "labelSelector", "fieldSelector", "shardSelector", "limit", "continue", "resourceVersion", "resourceVersionMatch":
			which = append(which, pair)
		default:
			how = append(how, pair)
		}
	}
	return strings.Join(which, "&"), strings.Join(how, "&")
}

func withQuery(path, query string) string {
	if query == "" {
		return path
	}
	return path + "?" + query
}

// collect runs the policies for the deletion of one object. As in kube-apiserver the request names none.
func collect(w *storage.Write, h storage.Handler, item document.Node) error {
	if item.Kind() != document.Object {
		return status.BadGateway("the objects to delete, which policies have to judge, must be JSON objects")
	}
	w.Existing.Object = item.Clone()
	root := w.Existing.Object.Root()
	apiVersion, kind := storage.UnsaidType(root, w.Served) // the items of a list do not say it
	if apiVersion != "" {
		w.Existing.Object.Set(root, "apiVersion", document.AppendString(nil, apiVersion))
	}
	if kind != "" {
		w.Existing.Object.Set(root, "kind", document.AppendString(nil, kind))
	}
	defer func() {
		w.Existing.Object.Release()
		w.Existing.Object = nil
	}()
	h.Collect(w)
	return nil
}

// maxAttempts bounds how often one object is judged when other writers keep coming between.
const maxAttempts = 5

// deleteOne deletes an object, by the verb that the client has asked for: to delete a collection is another right than to delete
// an object. One that another writer changed is judged again as it is now.
func (s *Store) deleteOne(w *storage.Write, h storage.Handler, item document.Node, answer *message.Response) error {
	e := w.Exchanges
	metadata, _ := item.Get("metadata")
	name, _ := metadata.Get("name")
	version, _ := metadata.Get("resourceVersion")
	for attempt := 1; ; attempt++ {
		if version.Kind() != document.String || version.Str() == "" || name.Str() == "" {
			return status.BadGateway("an object to delete has no name or no resourceVersion, so that its deletion cannot be pinned to the version that was judged")
		}
		path := w.Info.Path + "/" + url.PathEscape(name.Str())
		options, err := pinnedOptions(w, s.Limits, version.Raw())
		if err != nil {
			return err
		}
		err = e.SendPart(s.Backend, []byte(collectionTarget(w, name.Str())), options, answer, s.Limits)
		unknown, isUnknown := errors.AsType[*storage.UnknownOutcome](err)
		switch code := answer.Status(); {
		case err == storage.ErrNotSent:
			return nil
		case isUnknown: // settled by the read
		case err != nil:
			return err
		case code < 300 || code == http.StatusNotFound:
			return nil
		case code != http.StatusConflict || attempt == maxAttempts:
			return storage.NewBackendError(&w.Info, answer)
		}
		// Another writer came between, or the object may be gone.
		current, err := e.ReadOwn(s.Backend, []byte(path), itemRule(&w.Info, resource.VerbGet), &w.Subject, s.Limits)
		switch {
		case err == nil && current.Status() == http.StatusNotFound:
			return nil
		case isUnknown && unknown.Unsettled() != nil:
			return unknown
		case isUnknown:
			return storage.NewBackendError(&w.Info, answer)
		case err != nil:
			return err
		}
		switch code := current.Status(); {
		case code != http.StatusOK:
			return storage.NewBackendError(&w.Info, current)
		}
		d, err := w.Exchanges.Parse(current.Body(), s.Limits.Sent)
		if err != nil {
			return storage.UnreadableStored()
		}
		defer d.Release()
		h.Forget()
		if err := collect(w, h, d.Root()); err != nil {
			return err
		}
		if err := h.Decide(w); err != nil {
			return err
		}
		metadata, _ = d.Root().Get("metadata")
		version, _ = metadata.Get("resourceVersion")
	}
}

// pinnedOptions are the client's options with the version as a precondition.
func pinnedOptions(w *storage.Write, l *storage.Limits, version []byte) ([]byte, error) {
	d, err := w.CloneDeleteOptions(l)
	if err != nil {
		return nil, err
	}
	defer d.Release()
	root := d.Root()
	if root.Kind() != document.Object {
		return nil, status.BadRequest("the body must be a JSON object, not %s", root.Kind().WithArticle())
	}
	at, found := root.Get("preconditions")
	if !found || at.Kind() == document.Null {
		at = d.Set(root, "preconditions", []byte("{}"))
	}
	if at.Kind() != document.Object {
		return nil, status.BadRequest("`preconditions` must be an object, not %s", at.Kind().WithArticle())
	}
	if sent, _ := at.Get("resourceVersion"); sent.Kind() != document.String || sent.Str() == "" {
		d.Set(at, "resourceVersion", version)
	}
	return d.AppendTo(nil), d.Err()
}
