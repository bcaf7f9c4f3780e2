package proxy

import (
	"bytes"
	"errors"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
)

// patchType is the language that a patch is written in.
type patchType uint8

const (
	noPatch patchType = iota
	jsonPatch
	mergePatch
	strategicMergePatch
	applyPatch // of server-side apply
)

// patchTypeOf reads a Content-Type; noPatch is one that the gateway does not read.
func patchTypeOf(contentType []byte) patchType {
	media, _, _ := bytes.Cut(contentType, []byte(";"))
	media = bytes.TrimSpace(media)
	switch {
	case bytes.EqualFold(media, []byte("application/json-patch+json")):
		return jsonPatch
	case bytes.EqualFold(media, []byte("application/merge-patch+json")):
		return mergePatch
	case bytes.EqualFold(media, []byte("application/strategic-merge-patch+json")):
		return strategicMergePatch
	case bytes.EqualFold(media, []byte("application/apply-patch+yaml")):
		return applyPatch
	}
	return noPatch
}

// checkPatch refuses a PATCH whose result the gateway cannot know. The object behind a subresource that it does not
// emulate would be stored whole, judged only by the policies of the subresource.
func (x *exchange) checkPatch() error {
	switch {
	case x.info.Subresource != "" && !x.emulatesStatus():
		return status.MethodNotAllowedf("PATCH is not supported on the subresource '%s' of '%s' before a plain backend", x.info.Subresource, x.info.GroupResource())
	case x.res != nil && !x.emulates(resource.PatchVerb):
		return status.MethodNotAllowedf("PATCH is not supported on '%s': what a backend makes of a patch cannot be judged", x.info.GroupResource())
	}
	return nil
}

// applyPatch makes of a patch the object that results from it, which is what the policies judge and a plain backend
// stores (RW-2, RW-3).
func (x *exchange) applyPatch() error {
	patch, result := x.doc, x.old.Clone()
	err := x.patchDocument(result)
	if err == nil {
		err = x.reportPatch()
	}
	patch.Release()
	x.doc, x.rebuilt = result, true
	if name, found := given(metadataOf(result), "name"); err == nil && (!found || name.Is("")) && textIn(metadataOf(x.old), "name") != "" {
		return status.BadRequest("the name of the object (%s based on URL) was undeterminable: name must be provided", x.info.Name)
	}
	return err
}

// patchDocument makes of a document what the patch that was sent makes of it.
func (x *exchange) patchDocument(result *document.Document) error {
	switch patch := x.doc.Root(); x.patchType {
	case jsonPatch:
		if err := result.ApplyJSONPatch(patch, x.gateway.documentLimits); err != nil {
			return x.patchFailed(err)
		}
	case mergePatch:
		if patch.Kind() != document.Object {
			return status.BadRequest("a merge patch must be a JSON object, not %s", article(patch.Kind()))
		}
		result.MergePatch(patch)
	case strategicMergePatch:
		t := x.strategicType()
		switch {
		case t == nil:
			return status.UnsupportedMediaType(patchMediaTypes)
		case patch.Kind() != document.Object:
			return status.BadRequest("a strategic merge patch must be a JSON object, not %s", article(patch.Kind()))
		}
		if err := t.Patch(result, patch); err != nil {
			return x.notApplicable(err.Error())
		}
	default:
		return status.UnsupportedMediaType(patchMediaTypes)
	}
	return nil
}

// patchFailed is the Status of a patch that cannot be applied; unlike Kubernetes' it names the operation.
func (x *exchange) patchFailed(err error) error {
	var failed *document.PatchError
	if !errors.As(err, &failed) {
		return err
	}
	switch {
	case failed.Code == document.PatchMalformed && !readablePatch(x.doc.Root(), failed.Operation):
		return status.BadRequest("%s", failed.Error())
	case failed.Code == document.PatchTooLong:
		return status.RequestEntityTooLarge("%s", failed.Error())
	}
	return x.notApplicable(failed.Error())
}

// notApplicable is the Status of a patch that the stored object does not allow.
func (x *exchange) notApplicable(why string) error {
	e := status.Coded(http.StatusUnprocessableEntity, "the patch cannot be applied: "+why)
	kind := groupKind(x)
	e.ErrStatus.Details = &metav1.StatusDetails{
		Name: x.info.Name, Group: kind.Group, Kind: kind.Kind,
		// No field of the object is wrong, so that none is named.
		Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Message: why}},
	}
	return e
}

// readablePatch tells whether an operation has the types that Kubernetes decodes, so that what is wrong with it shows only
// when it is applied.
func readablePatch(patch document.Node, operation int) bool {
	if operation < 0 {
		return false
	}
	op, _ := patch.At(operation)
	if op.Kind() != document.Object && op.Kind() != document.Null {
		return false
	}
	for _, name := range [...]string{"op", "path", "from"} {
		if member, found := given(op, name); found && member.Kind() != document.String {
			return false
		}
	}
	return true
}

// groupKind is the kind that messages name; of a resource that no policy file describes its plural stands in.
func groupKind(x *exchange) schema.GroupKind {
	if x.res != nil {
		return x.res.GroupKind()
	}
	return schema.GroupKind{Group: x.info.Group, Kind: x.info.Resource}
}
