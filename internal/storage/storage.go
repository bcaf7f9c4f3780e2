// Package storage is the backend as the verbs see it. A Storage is one resource, or one
// subresource, at one backend: it knows how an object is prepared before admission, how the stored
// one is read, and how what was admitted is written so that exactly that is stored. The interfaces
// follow k8s.io/apiserver's registry/rest.
//
// The kinds of backends are in the packages below: kubernetes, an API server, and plain, an ordinary JSON
// API for which the gateway keeps versions, status, scale, deletion and lists itself. Which one serves a
// resource is decided when a set of policies comes into force, and nothing asks for it afterwards.
package storage

import (
	"errors"
	"iter"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
)

// The errors by which a storage says how a write goes on.
var (
	// ErrConflict says that the stored object is no longer the one that the write was admitted against:
	// it has to be admitted again.
	ErrConflict = errors.New("another writer came between")
	// ErrNameTaken says that a name which the gateway generated is the name of another object.
	ErrNameTaken = errors.New("the generated name is taken")
	// ErrUnshown says that the object which a patch is of is not known, and that nothing needs it: the patch passes
	// as it is.
	ErrUnshown = errors.New("the patched object is not known")
	// ErrAnswered says that the backend refused a dry run: its answer, in Request.Response, is the client's.
	ErrAnswered = errors.New("the backend's answer is the client's")
)

// A Storage is a resource or a subresource at a backend. It is immutable and safe for concurrent use; what
// is learned of a request is in its Request, and what is learned of one attempt at a write in a Write.
type Storage interface {
	Reader
	Strategy
	Creater
	Updater
	Patcher
	Deleter
	// Pass sends a body on unchanged.
	Pass(w *Write) error
	// Scaler returns the Scaler for a Scale that the gateway derives from the object, or nil.
	Scaler() Scaler
	// Shower returns how the backend shows what it would store, or nil if it cannot.
	Shower() Shower
}

// A Reader answers reads.
type Reader interface {
	// Read sends a GET, LIST or WATCH to the backend. The answer is in Request.Response. It has an
	// Editor if its objects have to be completed while it streams.
	Read(r *Request) error
}

// A Strategy is how objects are prepared and validated.
type Strategy interface {
	// Schema returns the schema of the object of a write, or nil.
	Schema(w *Write) *schema.Schema
	// MediaTypes returns the media types of bodies and answers.
	MediaTypes() *MediaTypes
	// StatusPath returns the path of the field that only the status subresource may write; nil for none.
	StatusPath() resource.FieldPath
	// IsOpaque reports whether the body passes unchanged: no policy concerns it, and nothing of the
	// resource has to be prepared, defaulted or validated.
	IsOpaque(i *resource.Info) bool
	// CheckOptions refuses parameters of a write that the backend would not refuse itself.
	CheckOptions(w *Write) error
	// OperationOptions returns the options of the write as policies see them; an invalid node if there are none.
	OperationOptions(w *Write, operation admission.Operation) (document.Node, error)
	// Reveal lets policies see in the object what the backend itself would set before they ran there. The object is
	// sent without it.
	Reveal(w *Write, validates bool)
	// Complete checks the object against the URL. What the URL says must not be contradicted by the
	// object, and is set if the backend needs it (RES-2).
	Complete(w *Write) error
	// CheckKeys refuses keys that the backend could take for others.
	CheckKeys(w *Write) error
	// PrepareForCreate takes out of a new object what no client may set.
	PrepareForCreate(w *Write) error
	// PrepareForUpdate checks the version that an update names, and carries over what it may not
	// change.
	PrepareForUpdate(w *Write) error
	// KeepStatus undoes the changes of policies to a part that the request may not write.
	KeepStatus(w *Write) error
	// SetMetadata sets what the system owns of the metadata, after the last mutation.
	SetMetadata(w *Write)
	// Validate validates the object against its schema.
	Validate(s *schema.Schema, f *cel.Frame, w *Write) schema.Result
	// ValidateMetadata returns what an update changes of the metadata although it may not.
	ValidateMetadata(w *Write) field.ErrorList
	// Warn adds the warnings that a valid object deserves.
	Warn(w *Write)
}

// A Creater creates objects.
type Creater interface {
	// Preview finds out what the backend would store, if that can be another object than the one it is
	// sent. Validating policies see it in the object's place.
	Preview(w *Write) error
	Create(w *Write) error
}

// An Updater replaces objects.
type Updater interface {
	// NeedsExisting reports whether anything about the write depends on the stored object.
	NeedsExisting(w *Write) bool
	// Get reads the stored object into the write, which is pinned to its version from then on.
	Get(w *Write) error
	// Lock makes the request the only one that writes the object, if what it writes depends on what
	// is stored, or another write could put back what it changes. isOpaque says that the body
	// passes unchanged. Request.Unlock ends that.
	Lock(r *Request, isOpaque bool) error
	Update(w *Write) error
	// Refusal returns the answer to a write that was refused: what the backend would have said first.
	Refusal(w *Write, refusal error) error
}

// A Patcher patches objects.
type Patcher interface {
	// Patched applies the patch in the write. isPrepared says that the object that results is complete and prepared.
	// If it is not, Complete and PrepareForUpdate follow, as in an update.
	Patched(w *Write) (isPrepared bool, err error)
	// Patch writes what was admitted of the result.
	Patch(w *Write) error
}

// A Deleter deletes objects.
type Deleter interface {
	// PrepareForDelete reads the options of a deletion, and the stored object if the deletion depends on it.
	PrepareForDelete(w *Write) error
	// Delete deletes the object in the version that was validated.
	Delete(w *Write) error
	// DeleteCollection finds the objects that the request selects. It returns nil if the backend deletes them itself:
	// then the collection is deleted as one object is.
	DeleteCollection(w *Write) (Collection, error)
}

// A Collection is the objects that a request deletes, one after the other. The first one that cannot be deleted ends
// it. An object that is gone counts as deleted.
type Collection interface {
	// Listed yields a write for each object as it was listed, if all of them are judged before the first one is
	// deleted. It is nil if each object is judged when its turn comes.
	Listed() iter.Seq2[*Write, error]
	// Next goes on to the next object. It returns false after the last one.
	Next() bool
	// Read reads the object as it is now. It returns nil if the object is gone, or is no longer selected.
	Read() (*Write, error)
	// Delete deletes the object in the version that was judged. ErrConflict says that another writer has changed it,
	// so that it has to be read and judged again. Delete returns ErrConflict for the same object a bounded number of
	// times.
	Delete() error
	// Answer makes the answer of the objects that were deleted.
	Answer() error
	// Release gives back what the collection holds.
	Release()
}

// A Shower shows objects in JSON, whatever the backend is sent.
type Shower interface {
	// Show returns the object that the backend would store for a body that the gateway cannot read.
	// It reports false if the gateway would have to change the body. An update has to be one of a
	// version that the client names.
	Show(w *Write) (isShown bool, err error)
}

// A Scaler writes the Scale that the gateway derives from an object.
type Scaler interface {
	// Object returns the storage of the scaled objects. Their writes are answered with a Scale.
	Object() Storage
	// ReadScale turns the Scale in the body, or the result of a patch, into the write of a Scale
	// that policies for the subresource admit: before and after.
	ReadScale(w, asked *Write) error
	// ApplyScale turns the admitted Scale into an update of its object.
	ApplyScale(w, asked *Write) error
}
