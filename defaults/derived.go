package defaults

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
)

// [Derive] returns ErrTooLong if an object becomes too long.
var ErrTooLong = errors.New("the object becomes too long")

// maxFailures is how many defaults that have no value are named.
const maxFailures = 100

// Derive computes the defaults that a schema derives from the object itself (DEF-2). It comes after
// [Apply]: an expression sees literal defaults, and the ones computed earlier. Only unset fields
// are set, and what is set gets the literal defaults within it.
//
// Failures name the fields whose default has no value, which stay unset: the object may not be stored so. The error is
// ErrTooLong, or a [*cel.Error] after which nothing more may be evaluated for the object. The frame's budget is spent.
func Derive(f *cel.Frame, d *document.Document, s *schema.Schema, most int) (failures field.ErrorList, err error) {
	return DeriveSince(f, d, s, document.Node{}, most)
}

// DeriveSince is [Derive] for an object that a backend has shown, and that was changed since; an invalid node is none.
// Failures name no field that the backend does not show: [Change.Withhold] leaves it unset.
func DeriveSince(f *cel.Frame, d *document.Document, s *schema.Schema, shown document.Node,
	most int) (failures field.ErrorList, err error) {
	f.SetBudget(cel.PolicyBudget)
	c := deriver{filler: newFiller(d, s, most), frame: f, schema: s, shown: shown}
	derived := s.Derived()
	for i := range derived {
		derived[i].Objects(d.Root(), func(object document.Node) bool { return c.derive(&derived[i], object) })
		if c.err != nil {
			break
		}
	}
	vars := f.Vars()
	vars.Set(value.Self, document.Node{}, nil)
	vars.Set(value.Object, document.Node{}, nil)
	return c.failures, c.err
}

type deriver struct {
	filler
	frame    *cel.Frame
	schema   *schema.Schema
	shown    document.Node
	raw      []byte
	failures field.ErrorList
	err      error
}

// derive sets a field of an object; it returns false if nothing more may be set.
func (c *deriver) derive(d *schema.Derived, object document.Node) bool {
	m, found := object.Lookup(d.Name)
	if found && (m.Kind() != document.Null || d.Field.Shape.Nullable()) {
		return true
	}
	raw, ok, err := d.Eval(c.frame, object, c.Root(), c.raw[:0])
	c.raw = raw
	if err != nil {
		return c.failed(d, object, err)
	}
	if !ok || string(raw) == "null" && !d.Field.Shape.Nullable() {
		return true
	}
	c.fill(d.Field.Shape, c.Set(object, d.Field.Name, raw))
	if c.full() {
		c.err = ErrTooLong
	}
	return c.err == nil
}

func (c *deriver) failed(d *schema.Derived, object document.Node, err error) bool {
	var failure *cel.Error
	if !errors.As(err, &failure) || failure.Fatal() {
		c.err = err
		return false
	}
	if c.shown.Valid() && !(Change{}).Introduces(object, d.Field.Name, c.shown) {
		return true
	}
	if len(c.failures) < maxFailures {
		c.failures = append(c.failures, field.Invalid(c.schema.Path(object, d.Field.Name), field.OmitValueType{},
			fmt.Sprintf("must be set, because its default cannot be computed: %s, evaluating: %s", failure.Detail,
				failure.Expression)))
	}
	return true
}
