package plain

import (
	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// shows returns which part of an object that is written the backend has shown. In objects of Kubernetes' form what is
// not shown is not stored, so that it has its default.
func shows(r *resource.Resource, part storage.Shown) storage.Shown {
	if r.Envelope == resource.Kubernetes || !isRegistered(r) {
		return storage.ShownNothing
	}
	return part
}

// introduce gives the values that a JSON patch brings their defaults, before it is applied: in its result the items
// of a list that the patch has added cannot always be told from the ones that were there. Values that the patch
// itself tests later stay as they are. A merge patch brings lists as a whole, so that its result shows what it
// brought.
func (c *collection) introduce(w *storage.Write) error {
	of, limit := c.Schemas.Of(w), int(c.Limits.Body)
	if w.PatchType != storage.JSONPatch || shows(c.Resource, storage.ShownObject) == storage.ShownNothing ||
		of == nil || !of.Root().HasDefaults() {
		return nil
	}
	first := w.Patch.Root().First()
	for op := first; op.Valid(); op = op.Next() {
		if name, _ := op.Get("op"); name.Is("test") {
			first = op
		}
	}
	for op := first; op.Valid(); op = op.Next() {
		name, _ := op.Get("op")
		pointer, _ := op.Get("path")
		value, found := op.Get("value")
		if !found || !name.Is("add") && !name.Is("replace") {
			continue
		}
		if !defaults.ApplyTo(value, shapeAt(of.Root(), pointer.Str()), limit) {
			return status.RequestEntityTooLarge(
				"the object with the defaults of what it leaves unset must be at most %d bytes", limit)
		}
	}
	return nil
}

// shapeAt returns the shape of the value that a JSON pointer leads to; nil if there is none.
func shapeAt(s *schema.Shape, pointer string) *schema.Shape {
	for rest := pointer; rest != "" && s != nil; {
		var step string
		step, rest = pointerStep(rest)
		switch property := s.Property(step); {
		case property != nil:
			s = property.Shape
		case s.Items() != nil:
			s = s.Items()
		default:
			s = s.Additional()
		}
	}
	return s
}
