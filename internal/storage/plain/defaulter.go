package plain

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync"

	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// A completion gives objects the defaults that they lack (DEF-3), kind and apiVersion (RES-8), and
// their version (RW-1).
type completion struct {
	completer *completer
	schema    *schema.Schema // nil if there are no defaults
	// hasEvents says that the answer is a sequence of events, isItem that it is one object, and
	// isVersioned that objects get their version.
	hasEvents, isItem, isVersioned bool

	etag    []byte // of the one object
	version []byte // of the object at hand

	budget *memory.Reservation // that is asked for memory
}

// A defaulter completes the objects of one answer, and cuts the items of a collection to the list that
// was asked for.
type defaulter struct {
	completion
	stream document.Stream

	list   *listPass   // the list that is made of the items; nil if it is the backend's
	chosen *transition // which events pass; nil if all do

	path    [1]string
	members [2]document.StreamMember
	text    []byte // of the members

	memory []byte // for a large object; nil if none was taken
	class  int
}

var _ storage.Editor = (*defaulter)(nil)

var defaulters = sync.Pool{New: func() any { return new(defaulter) }}

// completionOf prepares for objects that a request of a verb reads.
func (c *completer) completionOf(i *resource.Info, budget *memory.Reservation, etag []byte) completion {
	d := completion{completer: c, schema: c.defaulting(i.Verb), budget: budget, isItem: i.Verb == resource.VerbGet,
		hasEvents: i.Options.Watch}
	if d.isVersioned = keeps(c.Resource, resource.ResourceVersions); d.isVersioned {
		switch {
		case d.isOne():
			d.etag = etag
		case c.Resource.Fields.Version == nil:
			// The ETag is the list's; versions of items differ only by their content.
			d.isVersioned = c.Resource.Backend.Versions == resource.NoVersions
		}
	}
	return d
}

// isOne reports whether the answer is one object, and no events.
func (d *completion) isOne() bool { return d.isItem && !d.hasEvents }

// outline says what is read of an object, or of an event with one, to complete it; nil if all of it is.
func (d *completion) outline() *document.Outline {
	switch of := d.completer.outlines(); {
	case !d.hasEvents:
		return of.object
	case !d.isItem:
		return of.event
	}
	return nil // of events and objects
}

// newReadDefaulter prepares for the answer to a read.
func (c *completer) newReadDefaulter(i *resource.Info, budget *memory.Reservation, l *listPass,
	etag []byte) *defaulter {
	d := defaulters.Get().(*defaulter)
	version := d.version
	d.completion = c.completionOf(i, budget, etag)
	d.version = version
	o := document.StreamOptions{Place: document.Single, Limits: c.Limits.Stored}
	o.Limits.Memory = d.budget
	if l == nil {
		o.Limits.Outline = d.outline()
	}
	switch {
	case d.hasEvents:
		if l != nil {
			d.chosen = newTransition(l)
		}
		o.Place, o.ItemsOnly = document.Sequence, d.chosen != nil
		o.Limits.Bytes += eventEnvelope
		o.Limits.Depth++
	case d.isItem:
	case l != nil:
		d.setList(&o, l)
	case d.isTyped():
		o.Place, o.Wrap = document.List, true
		d.path[0] = "items"
		o.Path, o.Members = d.path[:], d.listMembers()
	default:
		o.Place, o.Path = document.List, c.Resource.Fields.Items
	}
	d.stream.Reset(o, d)
	return d
}

// newListDefaulter prepares for a list whose objects only the gateway needs.
func (c *completer) newListDefaulter(i *resource.Info, budget *memory.Reservation, l *listPass) *defaulter {
	d := defaulters.Get().(*defaulter)
	d.completer, d.schema, d.budget = c, c.defaulting(i.Verb), budget
	o := document.StreamOptions{Limits: c.Limits.Stored}
	o.Limits.Memory = d.budget
	d.setList(&o, l)
	d.stream.Reset(o, d)
	return d
}

func (d *defaulter) setList(o *document.StreamOptions, l *listPass) {
	o.Place, o.Wrap, o.ItemsOnly = document.List, true, true
	d.path[0] = "items"
	o.Path, d.list = d.path[:], l
}

// isTyped reports whether objects get kind and apiVersion.
func (d *completion) isTyped() bool { return d.completer.Resource.Envelope == resource.Kubernetes }

// eventEnvelope bounds the bytes of an event around its object.
const eventEnvelope = 4 << 10

// listMembers returns the kind, apiVersion and metadata of a list of Kubernetes' form.
func (d *defaulter) listMembers() []document.StreamMember {
	r := d.completer.Resource
	d.text = document.AppendString(d.text[:0], r.Names.ListKind)
	n := len(d.text)
	d.text = document.AppendString(d.text, r.APIVersion())
	d.members = [...]document.StreamMember{{Name: "kind", Value: d.text[:n:n]}, {Name: "apiVersion", Value: d.text[n:]}}
	return d.members[:]
}

// HasEvents implements storage.Editor.
func (d *defaulter) HasEvents() bool { return d.hasEvents }

// IsHolding implements storage.Editor.
func (d *defaulter) IsHolding() bool { return d.stream.Holding() }

// Append implements storage.Editor.
func (d *defaulter) Append(dst, src []byte, limit int) ([]byte, int, error) {
	if d.list == nil || d.list.begun {
		return d.stream.Append(dst, src, limit)
	}
	start := len(dst)
	head := d.list.appendHead(dst)
	out, used, err := d.stream.Append(head, src, limit)
	if len(out) == len(head) {
		// Nothing of the list leaves before there is an item: what is wrong can still be answered with a Status.
		return out[:start], used, err
	}
	d.list.begun = true
	return out, used, err
}

// Close implements storage.Editor.
func (d *defaulter) Close(dst []byte) ([]byte, error) {
	if d.list == nil {
		return d.stream.Close(dst)
	}
	var err error
	if dst, err = d.stream.Close(dst); err != nil {
		return dst, err
	}
	if !d.stream.Listed() {
		return dst, status.BadGateway("the backend's answer must be a list, or an object with the list `items`")
	}
	if !d.list.begun {
		dst = d.list.appendHead(dst)
	}
	return d.list.appendFoot(dst)
}

// Release implements storage.Editor.
func (d *defaulter) Release() {
	d.Rest()
	*d = defaulter{stream: d.stream, text: storage.Kept(d.text),
		completion: completion{version: storage.Kept(d.version)}}
	d.stream.Reset(document.StreamOptions{}, nil)
	defaulters.Put(d)
}

// Rest implements storage.Editor.
func (d *defaulter) Rest() {
	if d.memory != nil {
		d.completer.Memory.Give(d.memory, d.class)
		d.budget.Shrink(1 << d.class)
		d.memory = nil
	}
}

// smallestClass is the class of the smallest memory that is lent.
const smallestClass = 15

// ItemMemory makes lent memory hold a large object.
func (d *defaulter) ItemMemory(kept []byte, least int) ([]byte, error) {
	if least > len(d.memory) {
		class := max(bits.Len(uint(least-1)), smallestClass)
		if !d.budget.Grow(1 << class) {
			return nil, d.exhausted()
		}
		lent := d.completer.Memory.Take(class)
		copy(lent, kept)
		d.Rest()
		d.memory, d.class = lent, class
	} else {
		copy(d.memory, kept)
	}
	return d.memory, nil
}

// EditItem completes one object, or the object of one event, and leaves out what was not asked for.
func (d *defaulter) EditItem(item *document.Document) error {
	defer d.budget.Rest() // what comes next waits for the client
	switch err := d.editItem(item); {
	case err != nil:
		return err
	case d.list != nil:
		return d.list.take(item.Root())
	case d.chosen != nil:
		return d.chosen.take(item)
	}
	return nil
}

// editItem completes one object, or the object of one event.
func (d *completion) editItem(item *document.Document) error {
	err := d.complete(item)
	if failed := item.Err(); failed != nil {
		err = failed // whatever came of completing it
	}
	if errors.Is(err, document.ErrNoMemory) {
		return d.exhausted()
	}
	return err
}

// exhausted returns the answer if there is no memory to complete an object.
func (d *completion) exhausted() error { return d.completer.Limits.Refused(memory.Full) }

// complete gives one object, or the object of one event, what it lacks.
func (d *completion) complete(item *document.Document) error {
	object := item.Root()
	if d.hasEvents {
		inner, isEvent := eventObject(object)
		switch {
		case isEvent && !inner.Valid():
			return nil
		case isEvent:
			object = inner
		case !d.isItem:
			return nil
		}
	}
	r := d.completer.Resource
	if d.isVersioned {
		if d.version = versionOf(d.version[:0], r, object, d.etag); len(d.version) > 0 {
			defer setVersion(item, object, d.version)
		}
	}
	if d.isTyped() {
		storage.SetMissing(item, object, "kind", r.Names.Kind)
		storage.SetMissing(item, object, "apiVersion", r.APIVersion())
	}
	limit := d.completer.Limits.Completed()
	switch {
	case d.schema == nil:
	case isPlaced(d.completer.Resource):
		return d.completePlaced(item, object)
	case object == item.Root() && !d.completer.knows(d.schema, object):
		// What has no member of an object is none.
	case object == item.Root():
		return completeStored(item, d.schema, limit, d.budget)
	case len(d.schema.Derived()) > 0:
		// Expressions see a document's root as the object.
		own := object.Clone()
		defer own.Release()
		err := completeStored(own, d.schema, limit, d.budget)
		if failed := own.Err(); failed != nil {
			return failed // whatever came of completing it
		}
		if err != nil {
			return err
		}
		if own.Edited() {
			item.Replace(object, own.AppendTo(nil))
		}
	case !defaults.ApplyAt(object, d.schema, limit):
		return tooLargeCompleted(limit)
	}
	return nil
}

// completePlaced gives an object that bodies have within them, or answers, what it lacks. Items of lists are objects.
func (d *completion) completePlaced(item *document.Document, object document.Node) error {
	fields := &d.completer.Resource.Fields
	if d.isItem {
		var found bool
		if object, found = storage.Find(object, pathOf(fields.Answer)); !found || object.Kind() != document.Object {
			return nil
		}
	}
	body, err := document.Parse(appendWithin(nil, fields.Object, object), document.Limits{Memory: item.Memory()})
	if err != nil {
		return err
	}
	defer body.Release()
	if !d.completer.knows(d.schema, body.Root()) {
		return nil
	}
	err = completeStored(body, d.schema, d.completer.Limits.Completed(), d.budget)
	if failed := body.Err(); failed != nil {
		return failed // whatever came of completing it
	}
	if err != nil || !body.Edited() {
		return err
	}
	if completed, found := storage.Find(body.Root(), pathOf(fields.Object)); found {
		item.Replace(object, completed.AppendRaw(nil))
	}
	return nil
}

// eventObject returns the object of a watch event. It is invalid for events without one: bookmarks and
// errors.
func eventObject(event document.Node) (object document.Node, isEvent bool) {
	kind, found := event.Get("type")
	if !found || kind.Kind() != document.String {
		return document.Node{}, false
	}
	object, found = event.Get("object")
	if !found || object.Kind() != document.Object || !kind.Is("ADDED") && !kind.Is("MODIFIED") && !kind.Is("DELETED") {
		object = document.Node{}
	}
	return object, found
}

// Failed returns the Status of a text that cannot be completed. A fault of the backend is counted and logged.
func (d *completion) Failed(err error) error {
	var bad *document.Error
	if !errors.As(err, &bad) {
		return err
	}
	if bad.Code == document.NoMemory {
		return d.exhausted()
	}
	d.completer.Backend.Failed(&upstream.Error{Kind: upstream.Malformed, Cause: bad})
	if bad.Code == document.TooLarge {
		return status.BadGateway("an object in the backend's answer is too large to be completed: " + bad.Error())
	}
	return status.BadGateway("the backend's answer must be JSON that can be read in one way only: " + bad.Error())
}

// defaulting returns the schema of the object if it has defaults and what is read gets them, else nil.
func (c *collection) defaulting(verb resource.Verb) *schema.Schema {
	if !c.Resource.FillsReads() {
		return nil
	}
	if schema := c.schema(verb); schema != nil && (schema.Root().HasDefaults() || len(schema.Derived()) > 0) {
		return schema
	}
	return nil
}

// completeStored sets the defaults of an object that was stored without them. A default that has no value
// stays unset: only to store the object so is wrong.
func completeStored(d *document.Document, s *schema.Schema, limit int, budget *memory.Reservation) error {
	if !defaults.ApplyWithin(d, s, limit) {
		return tooLargeCompleted(limit)
	}
	if len(s.Derived()) == 0 {
		return nil
	}
	f := cel.NewFrame(context.Background())
	defer f.Release()
	f.SetMemory(budget)
	switch _, err := defaults.Derive(f, d, s, limit); {
	case errors.Is(err, defaults.ErrTooLong):
		return tooLargeCompleted(limit)
	case err != nil:
		return status.Internal("the defaults of a stored object cannot be computed within the budget that expressions have")
	}
	return nil
}

func tooLargeCompleted(limit int) error {
	return status.BadGateway(fmt.Sprintf("the stored object with the defaults of what it leaves unset must be at most %d bytes", limit))
}
