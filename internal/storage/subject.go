package storage

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/discovery"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// A Subject names what a client asks for, or what a write changes. It words the errors that name it.
type Subject struct {
	Info     resource.Info
	Resource *resource.Resource // nil if no policy file describes it
	// Served is the API server's description of the resource; nil if it is not asked, or does not
	// serve it.
	Served *discovery.Resource
}

// IsRead reports whether the request changes nothing, so that it may be sent again.
func (s *Subject) IsRead() bool { return s.Info.Verb.Reads() }

// GroupKind returns the kind that messages name; the plural stands in for it if no policy file describes
// the resource.
func (s *Subject) GroupKind() schema.GroupKind {
	if s.Resource != nil {
		return s.Resource.GroupKind()
	}
	return schema.GroupKind{Group: s.Info.Group, Kind: s.Info.Resource}
}

// Conflict returns the answer to a write of another version than the stored one.
func (s *Subject) Conflict() error {
	return status.Conflict(s.Info.GroupResource(), s.Info.Name, status.ModifiedMessage)
}

// Unplaced returns the Status of an object that has another value in place of a required parent of
// a field; nil for nil.
func (s *Subject) Unplaced(err error) error {
	misplaced, is := errors.AsType[*field.Error](err)
	if !is {
		return err
	}
	return s.Invalid(s.Info.Name, field.ErrorList{misplaced}, 0)
}

// Invalid returns the Status of an object with failures. A name that an ordinary API has yet to
// give is left out. No field means the whole of an ordinary object.
func (s *Subject) Invalid(name string, failures field.ErrorList, more int) *status.Error {
	if s.Info.Documented != nil {
		return status.InvalidRequest(ofWhole(failures), more)
	}
	if s.Resource != nil && s.Resource.Envelope == resource.Bare {
		failures = ofWhole(failures)
	}
	if name == "" && s.Resource != nil && s.Resource.Envelope == resource.Bare {
		return status.InvalidNameless(s.GroupKind(), failures, more)
	}
	return status.Invalid(s.GroupKind(), name, failures, more)
}

// ofWhole names no field in failures of the whole object.
func ofWhole(failures field.ErrorList) field.ErrorList {
	var whole *field.Path
	isWhole := func(f *field.Error) bool { return f.Field == whole.String() }
	if !slices.ContainsFunc(failures, isWhole) {
		return failures
	}
	failures = slices.Clone(failures)
	for i, f := range failures {
		if isWhole(f) {
			one := *f
			if one.Field = ""; one.BadValue == nil {
				one.BadValue = field.OmitValueType{}
			}
			failures[i] = &one
		}
	}
	return failures
}
