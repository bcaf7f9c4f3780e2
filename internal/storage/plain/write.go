package plain

import (
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

var (
	methodGet    = []byte(http.MethodGet)
	methodPut    = []byte(http.MethodPut)
	methodDelete = []byte(http.MethodDelete)
	typeJSON     = []byte(storage.JSON)
)

// objectWrites writes whole objects.
type objectWrites struct{ a *access }

// Create implements storage.Creater.
func (s objectWrites) Create(w *storage.Write) error {
	if err := s.checkNew(w); err != nil {
		return err
	}
	if w.Info.Options.DryRun && emulates(s.a.Resource, resource.DryRun) {
		return s.answerUnwritten(w, http.StatusCreated)
	}
	m, err := s.message(w)
	if err != nil {
		return err
	}
	if w.Existing.Pin == storage.PinnedToNothing {
		if m.Target, err = newTarget(s.a.Resource, w); err != nil {
			return err
		}
		m.Method = methodPut
	}
	if err := s.a.sender.send(w, &m); err != nil {
		return err
	}
	if w.Refused(w.Exchanges.Response.Status()) == storage.NameTaken {
		w.Exchanges.Response.Discard()
		return taken(w)
	}
	return s.answerWritten(w, m.Body, http.StatusCreated)
}

// Update implements storage.Updater.
func (s objectWrites) Update(w *storage.Write) error {
	isLast, err := s.isLastUpdate(w)
	if err != nil {
		return err
	}
	code := http.StatusOK
	if w.Existing.IsAbsent {
		code = http.StatusCreated
	}
	switch {
	case w.Info.Options.DryRun && emulates(s.a.Resource, resource.DryRun):
		return s.answerUnwritten(w, code)
	case isLast:
		return s.remove(w, code)
	case s.isUnchanged(w):
		// The answer is the stored object, in its own spelling.
		w.SetObject(w.Existing.Object)
		w.Existing.Object = nil
		return s.answerObject(w, w.Object, code, w.PinnedETag())
	}
	return s.replace(w, code)
}

// checkNew refuses what only stored objects have, and looks for an object of the name if the backend would
// not refuse it itself (META-4).
func (s objectWrites) checkNew(w *storage.Write) error {
	if keeps(s.a.Resource, resource.ResourceVersions) {
		version, err := storage.Text(storage.Metadata(w.Object), "resourceVersion", "metadata.")
		if err != nil {
			return err
		}
		if version != "" && version != "0" {
			// As Kubernetes answers, which takes it for a fault of its own.
			e := status.Internal("")
			e.ErrStatus.Message, e.ErrStatus.Reason, e.ErrStatus.Details = "resourceVersion should not be set on objects to be created", "", nil
			return e
		}
	}
	if w.Info.Name == "" {
		return nil
	}
	switch {
	case w.Info.Options.DryRun && emulates(s.a.Resource, resource.DryRun) && isRegistered(s.a.Resource):
		return s.lookForTaken(w)
	case !emulates(s.a.Resource, resource.ExistingNames):
		return nil
	case s.a.Resource.Backend.Versions != resource.ETagVersions:
		path, err := newTarget(s.a.Resource, w)
		if err != nil {
			return err
		}
		if err := s.a.locker.lockNew(w.Exchanges, path); err != nil {
			return err
		}
		return s.lookForTaken(w)
	}
	w.Existing.Pin = storage.PinnedToNothing
	return nil
}

// lookForTaken refuses to create an object that exists.
func (s objectWrites) lookForTaken(w *storage.Write) error {
	path, err := newTarget(s.a.Resource, w)
	if err != nil {
		return err
	}
	answer, err := w.Exchanges.ReadStored(s.a.Backend, path, s.a.Limits)
	if err != nil {
		return err
	}
	switch code := answer.Status(); {
	case code == http.StatusNotFound || code == http.StatusGone:
		return nil
	case code != http.StatusOK:
		return s.a.unread(w, answer)
	}
	return taken(w)
}

// taken returns the answer to a create of a name that another object has; a name that the gateway made is
// made again.
func taken(w *storage.Write) error {
	if w.HasGeneratedName {
		return storage.ErrNameTaken
	}
	return status.AlreadyExists(w.Info.GroupResource(), w.Info.Name)
}

// newTarget returns the target that an object which is to be created will have.
func newTarget(r *resource.Resource, w *storage.Write) ([]byte, error) {
	i := &w.Info
	if problems := content.IsPathSegmentName(i.Name); len(problems) > 0 {
		return nil, status.BadRequest("the name of the object (%s) %s", storage.Short(i.Name),
			strings.Join(problems, ", "))
	}
	return w.Exchanges.Target(func(dst []byte) []byte {
		name := url.PathEscape(i.Name) // what is stored may have any name
		if i.APIPrefix != "" {
			return append(append(append(dst, i.Path...), '/'), name...)
		}
		for _, template := range r.Paths {
			if strings.Contains(template, "{name}") {
				return i.Expand(dst, template, url.PathEscape(i.Namespace), name)
			}
		}
		return dst
	}), nil
}

// replace sends the object in the place of the stored one.
func (s objectWrites) replace(w *storage.Write, code int) error {
	m, err := s.message(w)
	if err != nil {
		return err
	}
	if w.Info.Verb != resource.VerbUpdate || w.Info.Subresource != "" {
		m.Target = w.Exchanges.ItemTarget(&w.Info)
		s.a.warnOfHidden(w)
	}
	if w.Info.Verb != resource.VerbUpdate {
		m.Method, m.ContentType = methodPut, typeJSON
	}
	sent := time.Now()
	if err := s.sendPinned(w, &m); err != nil {
		return err
	}
	if err := refusedPin(w); err != nil {
		return err
	}
	s.a.conditions.leaveStored(w, &m, sent)
	return s.answerWritten(w, m.Body, code)
}

// refusedPin returns ErrConflict if the backend refused a precondition that the gateway, and not the client, had set.
func refusedPin(w *storage.Write) error {
	if w.Refused(w.Exchanges.Response.Status()) != storage.Outdated {
		return nil
	}
	w.Exchanges.Response.Discard()
	return storage.ErrConflict
}

// message returns the request that carries the object as it is stored, with the precondition that pins it.
func (s objectWrites) message(w *storage.Write) (storage.Message, error) {
	if err := s.a.keepUnknown(w, w.Object); err != nil {
		return storage.Message{}, err
	}
	if err := s.toStoredForm(w); err != nil {
		return storage.Message{}, err
	}
	m := w.Message()
	m.Precondition = preconditionOf(w)
	if answersObject(s.a.Resource) {
		m.IsEdited, m.Whole = true, 2*s.a.Limits.Body
	}
	return m, nil
}

func preconditionOf(w *storage.Write) storage.Precondition {
	switch w.Existing.Pin {
	case storage.PinnedByETag:
		return storage.Precondition{ETag: w.Existing.ETag}
	case storage.PinnedToNothing:
		// Nothing was stored when the object was admitted, so nothing may be stored when it arrives.
		return storage.Precondition{IsAbsent: true}
	}
	return storage.Precondition{IsCompared: w.Existing.IsCompared}
}

// send sends a write, and resolves its outcome if that is unknown.
func (s sender) send(w *storage.Write, m *storage.Message) error {
	if limit := s.Limits.Stored.Bytes; len(m.Body) > limit {
		return storage.TooLarge(limit)
	}
	m.MustEnd = s.mustEnd(w, m)
	err := w.Exchanges.Send(s.Backend, m)
	if unknown, is := errors.AsType[*storage.UnknownOutcome](err); is {
		return s.resolve(w, m, unknown)
	}
	return err
}

// answersObject reports whether a write is answered with the object as it is stored and its version,
// whatever the backend answers.
func answersObject(r *resource.Resource) bool { return keeps(r, resource.ResourceVersions) }

// toStoredForm turns the admitted object into what is stored: the backend chooses the version, so
// it is left out.
func (s objectWrites) toStoredForm(w *storage.Write) error {
	if keeps(s.a.Resource, resource.ResourceVersions) {
		if at, found := storage.Metadata(w.Object).Get("resourceVersion"); found {
			w.Object.Remove(at)
		}
	}
	if w.Existing.Pin == storage.PinnedByField {
		stored, _ := storage.Find(w.Existing.Root(), s.a.Resource.Fields.Version)
		return w.Unplaced(storage.SetAt(w.Object, s.a.Resource.Fields.Version, stored.Raw()))
	}
	return nil
}

// isUnchanged reports whether the write leaves the stored object as it is. As in Kubernetes nothing is stored
// then, and the version stays.
func (s objectWrites) isUnchanged(w *storage.Write) bool {
	e := &w.Existing
	return e.Object != nil && !e.IsCompleted && answersObject(s.a.Resource) && len(e.Version) > 0 &&
		document.EqualNodes(w.Object.Root(), e.Root())
}

// answerUnwritten answers with what would have been stored: the backend knows no dry run, so nothing reaches it.
func (s objectWrites) answerUnwritten(w *storage.Write, code int) error {
	if !answersObject(s.a.Resource) {
		if err := s.a.keepUnknown(w, w.Object); err != nil {
			return err
		}
		s.a.hide(w.Object)
		w.Exchanges.Response.StartJSON(code, nil, asAnswered(s.a.Resource, w.Content(), w.Object))
		return nil
	}
	if len(w.Existing.Version) == 0 {
		if err := s.toStoredForm(w); err != nil {
			return err
		}
	}
	return s.answerObject(w, w.Object, code, w.PinnedETag())
}

func answerContent(w *storage.Write, code int) error {
	w.Exchanges.Response.StartJSON(code, nil, bytes.Clone(w.Content()))
	return nil
}

// hide takes out of an object that becomes an answer of the gateway's what the API does not show.
func (c *collection) hide(object *document.Document) {
	for _, n := range c.Hidden.In(object.Root()) {
		object.Remove(n)
	}
}

// maxNamedHidden bounds how many members one warning names.
const maxNamedHidden = 8

// warnOfHidden warns the client of what is missing in a PUT that the gateway makes from the stored
// object, because the API does not show it. An object that shows it loses nothing.
func (c *collection) warnOfHidden(w *storage.Write) {
	var names []string
	c.Hidden.Missing(w.Object.Root(), func(around document.Node, name string) {
		path := strings.TrimPrefix(around.Path()+"."+name, ".")
		if path = strconv.Quote(storage.Short(path)); len(names) < maxNamedHidden && !slices.Contains(names, path) {
			names = append(names, path)
		}
	})
	if len(names) > 0 {
		w.Exchanges.Warn("the API does not show write-only fields, so that the object which was sent to it lacks " + strings.Join(names, ", "))
	}
}

// answerWritten makes the answer to a write what an API server answers: the object as it is stored, with its
// version (RW-1). Backends answer with anything, from the object to nothing.
func (s objectWrites) answerWritten(w *storage.Write, sent []byte, code int) error {
	if !answersObject(s.a.Resource) {
		return nil
	}
	r := &w.Exchanges.Response
	if r.Status() == http.StatusCreated && w.Existing.Object == nil {
		code = http.StatusCreated // the gateway had not looked whether the object was there
	}
	if len(r.ContentEncoding()) > 0 && !storage.ReadPlain(w.Exchanges, &r.Response, 2*s.a.Limits.Body) {
		return nil // the write is done, and this is its answer
	}
	o, isWritten, err := s.written(w, sent)
	if !isWritten {
		return nil
	}
	defer o.release(w)
	switch {
	case err != nil:
	case !r.IsStream() && r.Status() == code && r.IsJSON():
		// Headers of the backend's answer stay: it is an answer of this kind.
		s.setVersion(w, o.object)
		err = w.Exchanges.Response.AnswerEdited(o.object)
	default:
		err = s.answerObject(w, o.object, code, o.etag)
	}
	if err != nil && w.Exchanges.Memory.Committed() {
		return nil // the write is done: without memory to complete it, the backend's own answer is the client's
	}
	return err
}

// written is an object as it is stored after a write, and the ETag of the answer to the write.
type written struct {
	object *document.Document // the write's own, or one that was read
	etag   []byte
}

func (o *written) release(w *storage.Write) {
	if o.object != w.Object {
		o.object.Release()
	}
}

// written finds out what is stored after a write; its version is in the write from then on. It returns false
// if the backend's answer is an error, or says that the write is not done yet. The error is ErrNoMemory.
func (s objectWrites) written(w *storage.Write, sent []byte) (o written, isWritten bool, err error) {
	r, e := &w.Exchanges.Response, &w.Existing
	switch r.Status() {
	case http.StatusOK, http.StatusCreated, http.StatusNoContent, http.StatusNonAuthoritativeInfo:
	default:
		return o, false, nil
	}
	o.etag = r.ETag()
	var isStored bool
	if o.object, isStored = s.objectIn(w, r.Body(), sent); isStored {
		e.Version = versionOf(e.Version[:0], s.a.Resource, o.object.Root(), o.etag)
	} else if e.Version = e.Version[:0]; s.a.Resource.Fields.Version == nil &&
		s.a.Resource.Backend.Versions == resource.ETagVersions {
		e.Version = appendVersion(e.Version, o.etag)
	}
	// A backend with weak ETags gives no version, however often it is asked.
	isUntellable := len(o.etag) > len(strong(o.etag)) && s.a.Resource.Fields.Version == nil &&
		s.a.Resource.Backend.Concurrency != resource.BestEffort
	isKnown := len(e.Version) > 0 || isUntellable
	if !keeps(s.a.Resource, resource.ResourceVersions) {
		isKnown = isStored
	}
	if !isKnown {
		if current, etag := s.readBack(w); current != nil {
			o.release(w)
			o.object = current
			e.Version = versionOf(e.Version[:0], s.a.Resource, current.Root(), etag)
		}
	}
	if o.object != w.Object {
		err = s.completeAnswer(w, o.object)
	}
	return o, true, err
}

// objectIn returns the object in the backend's answer, and whether it shows what is stored:
// backends also answer with nothing, or with something else. An answer without an object, or equal
// to the one that was sent, counts as that one.
func (s objectWrites) objectIn(w *storage.Write, body, sent []byte) (object *document.Document, isStored bool) {
	if bytes.Equal(body, sent) {
		// What changes with every write would not be the same.
		return w.Object, s.a.Resource.Fields.Version == nil
	}
	d, err := w.Exchanges.Parse(body, s.a.Limits.Stored)
	if err != nil {
		return w.Object, false
	}
	if d.Root().Kind() != document.Object || storage.TextIn(storage.Metadata(d), "name") != w.Info.Name {
		d.Release()
		return w.Object, false
	}
	return d, true
}

// readBack reads the object that was written, if the answer to the write did not have its version.
// Object and version are of one answer, so that they belong together even if another writer has
// come since. It returns nil if that fails: what was written is known anyway.
func (s objectWrites) readBack(w *storage.Write) (*document.Document, []byte) {
	if w.Existing.Object != nil {
		w.Existing.Object.Release()
		w.Existing.Object = nil
	}
	var target []byte
	var err error
	if w.Info.Verb == resource.VerbCreate {
		if target, err = newTarget(s.a.Resource, w); err != nil {
			return nil, nil
		}
	} else {
		target = w.Exchanges.ItemTarget(&w.Info)
	}
	answer, err := w.Exchanges.ReadStored(s.a.Backend, target, s.a.Limits)
	if err != nil || answer.Status() != http.StatusOK {
		return nil, nil
	}
	d, err := w.Exchanges.ParseStored(answer.Body())
	if err != nil {
		return nil, nil
	}
	return d, answer.Header("ETag")
}

// completeAnswer gives an object of the backend what a client that reads it would see. The error is
// ErrNoMemory: what is stored is known but for the backend's own changes.
func (s objectWrites) completeAnswer(w *storage.Write, object *document.Document) error {
	d := completion{completer: &s.a.completer, schema: s.a.defaulting(w.Info.Verb), budget: w.Exchanges.Memory}
	if err := d.complete(object); errors.Is(err, document.ErrNoMemory) {
		return err
	}
	return object.Err()
}

// setVersion gives the object its version.
func (s objectWrites) setVersion(w *storage.Write, object *document.Document) {
	if len(w.Existing.Version) > 0 && keeps(s.a.Resource, resource.ResourceVersions) {
		setVersion(object, object.Root(), w.Existing.Version)
	}
}

// answerObject makes an object with its version the answer.
func (s objectWrites) answerObject(w *storage.Write, object *document.Document, code int, etag []byte) error {
	s.a.hide(object)
	s.setVersion(w, object)
	return w.Exchanges.Response.Answer(code, etag, object)
}

// mustEnd reports whether the lock of the object is kept until the backend can no longer carry the write out: it is
// pinned to no version that the backend is known to compare.
func (s sender) mustEnd(w *storage.Write, m *storage.Message) bool {
	if !w.Exchanges.IsLocked() {
		return false
	}
	switch w.Existing.Pin {
	case storage.PinnedByField, storage.PinnedByObject:
		return false
	case storage.PinnedByETag, storage.PinnedToNothing:
		method := m.Method
		if method == nil {
			method = w.Exchanges.Head.Method
		}
		return !s.Comparison.compares(methodOf(method))
	}
	return true
}

// keepUnknown is restoreUnknown for an object that a PUT replaces although the client sent only a part of it. Objects
// of Kubernetes' form lose what their schema does not know, as in an API server.
func (c *collection) keepUnknown(w *storage.Write, want *document.Document) error {
	if w.Shown != storage.ShownObject && w.Shown != storage.ShownMerged {
		return nil
	}
	return c.restoreUnknown(w, want)
}
