package kubernetes

import (
	"bytes"
	"cmp"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strings"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// maxAttempts bounds how often one object is judged when other writers keep coming between.
const maxAttempts = 5

// DeleteCollection implements storage.Deleter. An API server lets validating policies judge each object as
// it deletes it. If they have to see the objects, the gateway judges all of them first, and deletes each in
// the version that was judged.
func (s *Store) DeleteCollection(w *storage.Write) (storage.Collection, error) {
	if !s.Policies.NeedsOld(&w.Info, admission.Delete) {
		return nil, nil
	}
	if err := s.readOptions(w); err != nil {
		return nil, err
	}
	if err := s.authorizeCollection(w); err != nil {
		return nil, err
	}
	list, err := s.readCollection(w)
	if err != nil {
		return nil, err
	}
	items, _ := list.Root().Get("items")
	if items.Kind() != document.Array && items.Kind() != document.Null {
		list.Release()
		return nil, errUnreadableList()
	}
	return &collection{store: s, write: w, list: list, items: items}, nil
}

func errUnreadableList() error {
	return status.BadGateway("the objects to delete, which policies have to judge, must be a JSON list that the gateway can read")
}

// A collection is the listed objects that a request deletes. It implements storage.Collection.
type collection struct {
	store *Store
	write *storage.Write
	list  *document.Document
	items document.Node // of the list
	item  document.Node // at hand; invalid before the first one

	// Of the item at hand:
	name     string
	version  string // that was judged
	attempts int
	answer   message.Response // of the server to its deletion
}

// Listed implements storage.Collection.
func (c *collection) Listed() iter.Seq2[*storage.Write, error] {
	return func(yield func(*storage.Write, error) bool) {
		for item := c.items.First(); item.Valid(); item = item.Next() {
			err := c.show(item)
			if !yield(c.write, err) || err != nil {
				return
			}
		}
	}
}

// Next implements storage.Collection.
func (c *collection) Next() bool {
	if c.item.Valid() {
		c.item = c.item.Next()
	} else {
		c.item = c.items.First()
	}
	c.attempts = 0
	metadata, _ := c.item.Get("metadata")
	c.name = storage.TextIn(metadata, "name")
	c.judged(metadata)
	return c.item.Valid()
}

// judged notes the version of an object that is judged.
func (c *collection) judged(metadata document.Node) {
	c.version = strings.Clone(storage.TextIn(metadata, "resourceVersion")) // the document may be released before
}

// show makes an object the stored one of the write, as policies see it. As in kube-apiserver the request names none.
func (c *collection) show(item document.Node) error {
	c.hide()
	if item.Kind() != document.Object {
		return status.BadGateway("the objects to delete, which policies have to judge, must be JSON objects")
	}
	w := c.write
	w.Existing.Object = item.Clone()
	root := w.Existing.Object.Root()
	apiVersion, kind := storage.UnsaidType(root, w.Served) // the items of a list do not say it
	if apiVersion != "" {
		w.Existing.Object.Set(root, "apiVersion", document.AppendString(nil, apiVersion))
	}
	if kind != "" {
		w.Existing.Object.Set(root, "kind", document.AppendString(nil, kind))
	}
	return nil
}

// hide releases the object that policies have seen.
func (c *collection) hide() {
	if w := c.write; w.Existing.Object != nil {
		w.Existing.Object.Release()
		w.Existing.Object = nil
	}
}

// Delete implements storage.Collection. It deletes by the verb that the client has asked for: to delete a collection
// is another right than to delete an object.
func (c *collection) Delete() error {
	c.hide()
	s, w, e := c.store, c.write, c.write.Exchanges
	if c.version == "" || c.name == "" {
		return status.BadGateway("an object to delete has no name or no resourceVersion, so that its deletion cannot be pinned to the version that was judged")
	}
	kind := apischema.GroupResource{Group: w.Info.Group, Resource: c.kind()}
	if err := storage.CheckDeletedVersion(w.Options, kind, c.name, c.version); err != nil {
		return err
	}
	if asksDryRun(w) {
		if err := s.Proofs.prove(e, s.Backend); err != nil {
			return err
		}
	}
	options, err := pinnedOptions(w, s.Limits, c.version)
	if err != nil {
		return err
	}
	c.attempts++
	err = e.SendPart(s.Backend, []byte(collectionTarget(w, c.name)), options, &c.answer, s.Limits)
	if unknown, is := errors.AsType[*storage.UnknownOutcome](err); is {
		return c.resolve(unknown)
	}
	switch code := c.answer.Status(); {
	case err == storage.ErrNotSent:
		return nil
	case err != nil:
		return err
	case code < 300 || code == http.StatusNotFound:
		return nil
	case code == http.StatusConflict && c.attempts < maxAttempts:
		return storage.ErrConflict
	}
	return storage.NewBackendError(&w.Info, &c.answer)
}

// kind returns the kind of the item at hand; of items that do not say it and that no discovery names, the resource.
func (c *collection) kind() string {
	_, unsaid := storage.UnsaidType(c.item, c.write.Served)
	return cmp.Or(storage.TextIn(c.item, "kind"), unsaid, c.write.Info.Resource)
}

// resolve finds out by a read whether an object was deleted, after a deletion whose outcome is unknown.
func (c *collection) resolve(unknown *storage.UnknownOutcome) error {
	current, err := c.readCurrent()
	switch {
	case err == nil && current.Status() == http.StatusNotFound:
		return nil
	case unknown.Unresolved() != nil:
		return unknown
	}
	return storage.NewBackendError(&c.write.Info, &c.answer)
}

// Read implements storage.Collection.
func (c *collection) Read() (*storage.Write, error) {
	current, err := c.readCurrent()
	if err != nil {
		return nil, err
	}
	switch current.Status() {
	case http.StatusOK:
	case http.StatusNotFound:
		return nil, nil
	default:
		return nil, storage.NewBackendError(&c.write.Info, current)
	}
	d, err := c.write.Exchanges.Parse(current.Body(), c.store.Limits.Sent)
	if err != nil {
		return nil, storage.UnreadableStored()
	}
	defer d.Release()
	if err := c.show(d.Root()); err != nil {
		return nil, err
	}
	c.judged(storage.Metadata(d))
	return c.write, nil
}

// readCurrent reads the item as it is stored now.
func (c *collection) readCurrent() (*message.Response, error) {
	w := c.write
	path := w.Info.Path + "/" + url.PathEscape(c.name)
	return w.Exchanges.ReadOwn(c.store.Backend, []byte(path), itemRule(&w.Info, resource.VerbGet), &w.Subject,
		c.store.Limits)
}

// Release implements storage.Collection.
func (c *collection) Release() {
	c.hide()
	c.list.Release()
}

// Answer implements storage.Collection: with the objects that were deleted, in the form that the client asks for.
// Another form than JSON, such as metadata alone, only the server makes: of the list as it was when the objects were
// judged.
func (c *collection) Answer() error {
	w, e := c.write, c.write.Exchanges
	if asksOtherForm(e.Head.Value(message.FieldAccept)) && e.Sink == nil {
		query, _ := splitQuery(w.Info.Query)
		metadata, _ := c.list.Root().Get("metadata")
		version := storage.TextIn(metadata, "resourceVersion")
		if version != "" && !strings.Contains(query, "resourceVersion") && !strings.Contains(query, "continue=") {
			query = strings.TrimPrefix(query+"&resourceVersionMatch=Exact&resourceVersion="+url.QueryEscape(version),
				"&")
		}
		target := []byte(withQuery(w.Info.Path, query))
		err := e.Send(c.store.Backend, &storage.Message{Method: []byte(http.MethodGet), Target: target,
			ContentType: []byte{}, IsSafe: true})
		if code := e.Response.Status(); err == nil && (code == http.StatusOK || code == http.StatusNotAcceptable) {
			return nil
		}
		e.Response.Discard() // the objects are deleted all the same
	}
	if err := c.list.Err(); err != nil {
		return err
	}
	e.Response.StartJSON(http.StatusOK, nil, c.list.AppendTo(nil))
	return nil
}

// authorizeCollection lets the server say whether the client may delete the collection, before the gateway's own
// account lists it: by a dry run of the client's own request that selects no object.
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
	answer, err := e.ReadOwn(s.Backend, []byte(withQuery(w.Info.Path, query)), itemRule(&w.Info, resource.VerbList),
		&w.Subject, s.Limits)
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
	list, err := w.Exchanges.Parse(bytes.Clone(answer.Body()), s.Limits.List())
	if err != nil {
		return nil, errUnreadableList()
	}
	return list, nil
}

// splitQuery takes a query apart into what says which objects are meant and what says how they are deleted.
func splitQuery(query string) (list, deletion string) {
	var which, how []string
	for pair := range strings.SplitSeq(query, "&") {
		switch key, _, _ := strings.Cut(pair, "="); key {
		case "":
		case "labelSelector", "fieldSelector", "shardSelector", "limit", "continue", "resourceVersion",
			"resourceVersionMatch":
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

// pinnedOptions are the client's options with the version as a precondition.
func pinnedOptions(w *storage.Write, l *storage.Limits, version string) ([]byte, error) {
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
	d.SetString(at, "resourceVersion", version)
	return d.AppendTo(nil), d.Err()
}
