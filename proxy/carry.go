package proxy

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/status"
)

// carryOver completes an update by what is stored: immutable fields that are left out (DEF-7), and members of unions that
// a new discriminator makes stale (VAL-6).
func (x *exchange) carryOver() error {
	s := x.schema()
	if s == nil || x.creates {
		return nil
	}
	if x.old == nil && s.Stale(x.doc.Root()) {
		if err := x.readOld(); err != nil {
			return err
		}
	}
	if x.old == nil {
		return nil
	}
	patched := x.info.Verb == resource.VerbPatch
	if x.holdsStatusAlone() {
		s.CarryStatus(x.doc, x.old.Root(), patched)
	} else {
		s.Carry(x.doc, x.old.Root(), patched)
	}
	return nil
}

// holdsStatusAlone tells whether the backend takes the rest of the object from what is stored.
func (x *exchange) holdsStatusAlone() bool {
	return x.info.Subresource == "status" && !x.emulatesStatus()
}

// derive sets the defaults that the schema computes from the object (DEF-2). Fields whose default cannot be computed are
// named when the object is held against its schema, with everything else that is wrong.
func (x *exchange) derive(s *schema.Schema, most int) error {
	x.underived = nil
	if len(s.Derived()) == 0 {
		return nil
	}
	failures, err := defaults.Derive(x.frame(), x.doc, s, most)
	var fault *cel.Error
	switch {
	case errors.Is(err, defaults.ErrTooLong):
		return tooLargeDefaulted(most)
	case errors.As(err, &fault) && fault.Cause == cel.Cancelled:
		return status.Timeout("the request was over before the defaults of its object were computed", 1)
	case err != nil:
		failures = append(failures, field.Invalid(nil, field.OmitValueType{}, "the defaults of the object cannot all be computed: "+err.Error()))
	}
	x.underived = failures
	return nil
}

// misplace notes that something stands where the status has to. With a schema that is said together with everything else
// that is wrong.
func (x *exchange) misplace(err error) error {
	x.misplaced = nil
	if err == nil || x.schema() == nil {
		return x.unplaced(err)
	}
	if !errors.As(err, &x.misplaced) {
		return err
	}
	return nil
}

// unplaced is the Status of an object in which something stands where a field has to; nil where setAt found none.
func (x *exchange) unplaced(err error) error {
	var misplaced *field.Error
	if !errors.As(err, &misplaced) {
		return err
	}
	return status.Invalid(groupKind(x), x.info.Name, field.ErrorList{misplaced}, 0)
}

// withLeftOver adds what is wrong with the object besides what its schema says of it as it is now.
func (x *exchange) withLeftOver(result schema.Result) schema.Result {
	errs := x.underived
	if x.misplaced != nil {
		errs = append(errs, x.misplaced)
	}
	if len(errs) > 0 {
		result.Errors = append(errs, result.Errors...)
	}
	return result
}
