package storage

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

// PatchType is the language of a patch.
type PatchType uint8

// The languages of patches.
const (
	NoPatch PatchType = iota
	JSONPatch
	MergePatch
	StrategicMergePatch
	ApplyPatch // of server-side apply
	FormPatch  // a form, whose fields make a merge patch
)

// A Write is one attempt at a write. It holds all that the attempt finds out, so that the next attempt starts
// afresh.
type Write struct {
	// Subject is what the write changes. It differs from the request's if the name is only known from the
	// object, and if a write of a subresource becomes one of its object.
	Subject
	// Exchanges are the request's.
	Exchanges *Exchanges

	Body
	ClientPatch
	Problems
	// Existing describes the stored object, as far as it is known.
	Existing Existing
	// Result is the object that the backend would store, if it is known and may differ from Object.
	Result *document.Document
	// Options are the options of a deletion.
	Options *metav1.DeleteOptions
	// IsPinned is set if the client named the version that it means to change: its write is never tried again.
	IsPinned bool
	// HasGeneratedName is set if the gateway made the name.
	HasGeneratedName bool

	shownOptions shownOptions
	revealed     revealed
}

// A Body is what a write sends to the backend.
type Body struct {
	// Object is written: the object of the body, what results from a patch, or the options of a
	// deletion.
	Object *document.Document
	// Source are the bytes that Object was read from, which are sent if it was not edited; nil if
	// the gateway made it.
	Source []byte
	// ContentType replaces the client's if something else is sent than the client sent; nil leaves
	// it.
	ContentType []byte
	// EditedType is the type of what is sent in place of Source, if it differs from Source's.
	EditedType []byte
	// Declared is what the API's document declares for the media type of the object. It is nil without a declaration
	// and for patches, because the result of a patch is not a body.
	Declared *contract.Body
	// IsKnown says that the schema knew all members of Object when it was read or patched.
	IsKnown bool
	// Shown says which part of Object is the stored object as the backend shows it.
	Shown Shown

	pristine pristine
}

// pristine says that an object in this revision is as it was read.
type pristine struct {
	is       bool
	revision uint64
}

// A ClientPatch is the patch that a client sends.
type ClientPatch struct {
	// Patch is nil if the write is none, and PatchType its language.
	Patch     *document.Document
	PatchType PatchType
	// DeclaredPatch is what the API's document declares for the patch, or nil.
	DeclaredPatch *contract.Body
	// KeepsNulls says that null in the patch is a value of each member that DeclaredPatch describes: the patch is of
	// a type that the API declares, and only 'application/merge-patch+json' says that null removes.
	KeepsNulls bool
}

// Problems are what was found wrong before the object is validated.
type Problems struct {
	// Failed is the answer to the request if the stored object could not be read while policies were asked.
	Failed error
	// Misplaced names values that take the place of fields that have to be kept.
	Misplaced field.ErrorList
	// Underived are the fields for which no default can be computed.
	Underived field.ErrorList
}

// shownOptions are the options of an operation in request.options, once a policy has read them.
type shownOptions struct {
	of       admission.Operation
	document *document.Document
}

// Shown says which part of an object that is written the client did not send: it is the stored object as the backend
// shows it. The backend may have stored what it does not show, so that no default takes the place of what is missing
// there.
type Shown uint8

// The parts of an object that a backend has shown.
const (
	ShownNothing Shown = iota
	ShownStatus        // the status alone
	ShownObject        // all but what the write changes
	// ShownMerged is ShownObject for a patch that the backend itself merges into what it has stored.
	ShownMerged
)

// Existing describes the object that a write replaces, as far as it is known.
type Existing struct {
	// Object is the stored object, as a client that reads it would see it; nil if it was not read, or if
	// nothing is stored.
	Object *document.Document
	// IsAbsent is set if nothing is stored under the name, so that the write creates the object.
	IsAbsent bool
	// IsCompleted is set if defaults were set in Object that are not stored.
	IsCompleted bool
	// Version is the version of the stored object, as its resourceVersion; empty if it is not known.
	Version []byte
	// ETag is the version as the backend gave it; empty if it gave none.
	ETag []byte
	// Unread counts the writes of others since the object was read: it is as the last of them stored it.
	Unread int
	// IsCompared says that the gateway has compared the client's preconditions, and that they hold.
	IsCompared bool
	// Pin says how the write depends on the stored object.
	Pin Pin
	// IsUncertain is set if the client named no version, and only the backend knows whether it takes the write so: the
	// version that the gateway writes into the object must not make an overwrite of a refusal.
	IsUncertain bool
}

// Pin is how a write depends on what is stored.
type Pin uint8

// The ways to pin a write.
const (
	NotPinned Pin = iota
	PinnedByETag
	PinnedToNothing // nothing may be stored
	PinnedByField   // the version is in a field of the object
	PinnedByObject  // the gateway wrote the resourceVersion that it read into the object
)

// IsPinnedByHeader reports whether the write depends on what is stored by a header.
func (e *Existing) IsPinnedByHeader() bool { return e.Pin == PinnedByETag || e.Pin == PinnedToNothing }

// Root returns the root of the stored object, or an invalid node.
func (e *Existing) Root() document.Node {
	if e.Object == nil {
		return document.Node{}
	}
	return e.Object.Root()
}

// Begin prepares for an attempt.
func (w *Write) Begin(r *Request) {
	w.clear()
	w.Subject, w.Exchanges, w.PatchType = r.Subject, &r.Exchanges, r.Patch
}

// clear forgets the last attempt and keeps its memory.
func (w *Write) clear() {
	version, etag := Kept(w.Existing.Version), Kept(w.Existing.ETag)
	*w = Write{}
	w.Existing.Version, w.Existing.ETag = version, etag
}

// BeginPart prepares for an attempt at one of the writes that a write of several objects becomes.
func (w *Write) BeginPart(of *Write) {
	w.clear()
	w.Subject, w.Exchanges, w.Options = of.Subject, of.Exchanges, of.Options
}

// Release gives the documents back.
func (w *Write) Release() {
	for _, d := range [...]**document.Document{&w.Object, &w.Patch, &w.Result, &w.Existing.Object,
		&w.shownOptions.document} {
		if *d != nil {
			(*d).Release()
			*d = nil
		}
	}
}

// SetObject puts another object in the place of what was to be written. It is the gateway's own.
func (w *Write) SetObject(d *document.Document) {
	if w.Object != nil {
		w.Object.Release()
	}
	w.Object, w.Source = d, nil
}

// Creates reports whether the write creates the object.
func (w *Write) Creates() bool { return w.Info.Verb == resource.VerbCreate || w.Existing.IsAbsent }

// Admitted returns the object that validating policies see.
func (w *Write) Admitted() *document.Document {
	if w.Result != nil {
		return w.Result
	}
	return w.Object
}

// Content returns the body to send: the client's own bytes if the object was not edited. It is
// valid until the next call.
func (w *Write) Content() []byte {
	w.Conceal()
	switch {
	case w.Object == nil:
		return w.Source
	case w.Source != nil && w.isPristine():
		return w.Source
	}
	w.Exchanges.Memory.Grow(w.Object.Extent()) // a refusal is remembered, and nothing is sent then
	b := w.Exchanges.memory()
	b.room(w.Object.Extent())
	b.edited = w.Object.AppendTo(b.edited)
	return b.edited
}

// isPristine reports whether the object is as it was read. What was revealed and hidden again does not count.
func (w *Write) isPristine() bool {
	return !w.Object.Edited() || w.pristine.is && w.pristine.revision == w.Object.Revision()
}

// Message returns the request to the backend that carries the object.
func (w *Write) Message() Message {
	body := w.Content()
	switch {
	case len(body) > 0:
	case w.Info.HasBody():
		body = noBytes
	default:
		body = nil
	}
	return Message{Body: body, ContentType: w.contentType()}
}

// contentType returns what replaces the client's Content-Type for the Content.
func (w *Write) contentType() []byte {
	if w.EditedType != nil && w.Object != nil && (w.Source == nil || !w.isPristine()) {
		return w.EditedType
	}
	return w.ContentType
}

// noBytes are an empty body, which is not the same as none.
var noBytes = []byte{}

// PinnedETag returns the ETag that the write is pinned to; nil if it is pinned otherwise.
func (w *Write) PinnedETag() []byte {
	if w.Existing.Pin == PinnedByETag {
		return w.Existing.ETag
	}
	return nil
}

// FieldValidation returns what the request asks for, else the resource, else Warn as in Kubernetes.
func (w *Write) FieldValidation() resource.FieldValidation {
	switch r := w.Resource; {
	case w.Info.Options.FieldValidation != resource.FieldValidationUnset:
		return w.Info.Options.FieldValidation
	case r.Writes.FieldValidation != resource.FieldValidationUnset:
		return r.Writes.FieldValidation
	}
	return resource.FieldValidationWarn
}

// Faults adds to the errors of a validation what is wrong with the object besides.
func (w *Write) Faults(found field.ErrorList) field.ErrorList {
	faults := w.Underived
	faults = append(faults, w.Misplaced...)
	if len(faults) == 0 {
		return found
	}
	return append(faults, found...)
}
