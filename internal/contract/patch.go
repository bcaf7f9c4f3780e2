package contract

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// The media types of patches that say themselves what they mean.
const (
	mergePatch = "application/merge-patch+json"
	jsonPatch  = "application/json-patch+json"
)

// PatchBody returns the body that validates a patch of a media type; nil if the document has none. A merge patch of a
// type that is not declared is validated by the declared one. A JSON patch that is not declared has none: its effect
// meets [Operation.EffectBody].
func (o *Operation) PatchBody(media string) *Body {
	if o == nil {
		return nil
	}
	if b := o.BodyOf(media); b != nil && b.As == AsJSON && (media != jsonPatch || b.Media == jsonPatch) {
		return b
	}
	if media == jsonPatch {
		return nil
	}
	return o.EffectBody()
}

// EffectBody returns the declared merge patch that validates the effect of other patches; nil if none is declared with
// a schema.
func (o *Operation) EffectBody() (of *Body) {
	for k := range o.Bodies {
		b := &o.Bodies[k]
		if b.As != AsJSON || b.Schema == nil || b.Media == jsonPatch || b.Schema.IsList() {
			continue
		}
		if of == nil || b.Media == "application/json" || b.Media == mergePatch && of.Media != "application/json" {
			of = b
		}
	}
	return of
}

// HoldsEffects reports whether patches are declared, and JSON patches are not, so that their effect counts.
func (o *Operation) HoldsEffects() bool {
	return o != nil && o.EffectBody() != nil && o.PatchBody(jsonPatch) == nil
}

// CheckPatch returns what is wrong with a patch by the schema of its media type. In a patch that is said to be a merge
// patch, and in the effect of a patch, null removes the member: it is right if the member may be missing.
func (b *Body) CheckPatch(patch document.Node, nullRemoves bool, frame func() *cel.Frame) schema.Result {
	result := b.Check(patch, frame)
	if len(result.Errors) == 0 || !nullRemoves || patch.Kind() != document.Object || b.Schema == nil {
		return result
	}
	wrong := make(map[string]bool, len(result.Errors))
	for _, err := range result.Errors {
		wrong[err.Field] = true
	}
	without := patch.Clone()
	defer without.Release()
	b.removeNulls(without, without.Root(), wrong)
	if !without.Edited() {
		return result
	}
	result = b.Check(without.Root(), frame)
	result.Errors = slices.DeleteFunc(result.Errors, func(err *field.Error) bool {
		// a null is one of the members of a patch
		isFew, _ := wording.CountOf(err)
		return isFew && !wrong[err.Field]
	})
	return result
}

// removeNulls takes the members out that are null in the wrong place.
func (b *Body) removeNulls(d *document.Document, object document.Node, wrong map[string]bool) {
	for m := object.First(); m.Valid(); m = m.Next() {
		switch m.Kind() {
		case document.Object:
			b.removeNulls(d, m, wrong)
		case document.Null:
			if wrong[b.Schema.PathOf(m)] {
				d.Remove(m)
			}
		}
	}
}
