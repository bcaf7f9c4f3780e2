package plain

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// patchTypes are the media types of the patches that the gateway applies to every resource.
const patchTypes = storage.JSONPatchType + ", " + storage.MergePatchType

// appliedPatches applies patches itself. The result is validated and stored (RW-2, RW-3).
type appliedPatches struct {
	a      *access
	writes writes
}

// Patched implements storage.Patcher.
func (s appliedPatches) Patched(w *storage.Write) (isPrepared bool, err error) {
	if !appliesPatches(s.a.Resource) {
		const format = "PATCH is not supported on '%s': what a backend makes of a patch cannot be judged"
		return false, status.MethodNotAllowedf(format, w.Info.GroupResource())
	}
	return false, s.a.reader.patched(w)
}

// Patch implements storage.Patcher: the result is stored in one PUT.
func (s appliedPatches) Patch(w *storage.Write) error { return s.writes.Update(w) }

// refusedPatches are patches of subresources. The object behind one would be stored whole, judged only by the policies
// of the subresource.
type refusedPatches struct{}

// Patched implements storage.Patcher.
func (s refusedPatches) Patched(w *storage.Write) (isPrepared bool, err error) {
	return false, s.Patch(w)
}

// Patch implements storage.Patcher.
func (refusedPatches) Patch(w *storage.Write) error {
	return status.MethodNotAllowedf("PATCH is not supported on the subresource '%s' of '%s' before a plain backend",
		w.Info.Subresource, w.Info.GroupResource())
}

// patched applies a patch to the stored object.
func (s storedReader) patched(w *storage.Write) error {
	if isUnshown(s.Resource) {
		if err := s.refuseUnshown(&w.Info); err != nil {
			return err
		}
		if err := checkUnshownName(s.Resource, w); err != nil {
			return err
		}
		return storage.ErrUnshown
	}
	if err := s.getObject(w); err != nil {
		return err
	}
	if err := s.introduce(w); err != nil {
		return err
	}
	result := w.Existing.Object.Clone()
	w.Shown = shows(s.Resource, storage.ShownObject)
	if isMerge := w.PatchType == storage.MergePatch || w.PatchType == storage.FormPatch; isMerge &&
		sendsPatch(s.Resource, w) {
		w.Shown = shows(s.Resource, storage.ShownMerged)
	}
	err := s.apply(w, result)
	if err == nil {
		err = reportUnknown(w)
	}
	if sendsPatch(s.Resource, w) {
		edited := result
		defer edited.Release()
		result = edited.Clone() // whose edits are the gateway's own from here on
	}
	w.SetObject(result)
	w.ContentType = typeJSON
	name, found := storage.Given(storage.Metadata(result), "name")
	if err == nil && (!found || name.Is("")) && storage.TextIn(storage.Metadata(w.Existing.Object), "name") != "" {
		return status.BadRequest("the name of the object (%s based on URL) was undeterminable: name must be provided", w.Info.Name)
	}
	return err
}

// apply applies the patch that was sent to a document.
func (c *collection) apply(w *storage.Write, result *document.Document) error {
	switch patch := w.Patch.Root(); w.PatchType {
	case storage.JSONPatch:
		if err := result.ApplyJSONPatch(patch, c.Limits.Sent); err != nil {
			return patchFailed(w, err)
		}
	case storage.MergePatch, storage.FormPatch:
		if patch.Kind() != document.Object {
			return status.BadRequest("a merge patch must be a JSON object, not %s", patch.Kind().WithArticle())
		}
		mergePatch(w, result, patch)
	case storage.StrategicMergePatch:
		t := c.StrategicType(w.Existing.Root())
		switch {
		case t == nil:
			return status.UnsupportedMediaType(patchTypes)
		case patch.Kind() != document.Object:
			return status.BadRequest("a strategic merge patch must be a JSON object, not %s",
				patch.Kind().WithArticle())
		}
		if err := t.Patch(result, patch); err != nil {
			return notApplicable(w, err.Error())
		}
	default:
		return status.UnsupportedMediaType(patchTypes)
	}
	return nil
}

// mergePatch applies a merge patch.
func mergePatch(w *storage.Write, result *document.Document, patch document.Node) {
	result.MergePatch(patch)
	if w.KeepsNulls {
		keepNulls(result, result.Root(), patch, patch, w.DeclaredPatch.Schema)
	}
}

// keepNulls sets the members to null that a patch sets to null and its schema describes.
func keepNulls(d *document.Document, object, patch, whole document.Node, described *schema.Schema) {
	for m := patch.First(); m.Valid(); m = m.Next() {
		switch m.Kind() {
		case document.Null:
			if described.Describes(whole, m) {
				d.Set(object, m.Key(), m.Raw())
			}
		case document.Object:
			if inner, _ := object.Get(m.Key()); inner.Kind() == document.Object {
				keepNulls(d, inner, m, whole, described)
			}
		}
	}
}

// patchFailed returns the Status of a patch that cannot be applied; unlike Kubernetes' it names the operation.
func patchFailed(w *storage.Write, err error) error {
	var failed *document.PatchError
	if !errors.As(err, &failed) {
		return err
	}
	switch {
	case failed.Code == document.PatchMalformed && !isReadable(w.Patch.Root(), failed.Operation):
		return status.BadRequest("%s", failed.Error())
	case failed.Code == document.PatchTooLong:
		return status.RequestEntityTooLarge("%s", failed.Error())
	}
	return notApplicable(w, failed.Error())
}

// notApplicable returns the Status of a patch that the stored object does not allow.
func notApplicable(w *storage.Write, why string) error {
	e := status.Coded(http.StatusUnprocessableEntity, "the patch cannot be applied: "+why)
	kind := w.GroupKind()
	e.ErrStatus.Details = &metav1.StatusDetails{
		Name: w.Info.Name, Group: kind.Group, Kind: kind.Kind,
		// No field of the object is wrong, so that none is named.
		Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Message: why}},
	}
	return e
}

// isReadable reports whether an operation has the types that Kubernetes decodes, so that what is wrong with it
// shows only when it is applied.
func isReadable(patch document.Node, operation int) bool {
	if operation < 0 {
		return false
	}
	op, _ := patch.At(operation)
	if op.Kind() != document.Object && op.Kind() != document.Null {
		return false
	}
	for _, name := range [...]string{"op", "path", "from"} {
		if member, found := storage.Given(op, name); found && member.Kind() != document.String {
			return false
		}
	}
	return true
}

// reportUnknown reports the members of a JSON patch that have no meaning, as far as the request
// asks for it (VAL-7).
func reportUnknown(w *storage.Write) error {
	if w.PatchType != storage.JSONPatch || w.Resource == nil {
		return nil
	}
	validation := w.FieldValidation()
	if validation == resource.FieldValidationIgnore {
		return nil
	}
	unknown := unknownInPatch(w.Patch.Root())
	switch {
	case len(unknown) == 0:
	case validation == resource.FieldValidationStrict:
		return w.Unreadable("strict decoding error: " + strings.Join(unknown, ", "))
	default:
		w.Exchanges.Warnings = append(w.Exchanges.Warnings, unknown...)
	}
	return nil
}

// unknownInPatch returns the members of the operations of a JSON patch that no operation has, as Kubernetes
// names them.
func unknownInPatch(patch document.Node) []string {
	var unknown []string
	i := 0
	for op := patch.First(); op.Valid() && len(unknown) < maxNamed; op = op.Next() {
		for m := op.First(); m.Valid() && op.Kind() == document.Object; m = m.Next() {
			switch key := m.Key(); key {
			case "op", "path", "from", "value":
			default:
				unknown = append(unknown, fmt.Sprintf("json patch unknown field %q", "["+strconv.Itoa(i)+"]."+
					storage.Short(key)))
			}
		}
		i++
	}
	return unknown
}
