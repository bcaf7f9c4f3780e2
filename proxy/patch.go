package proxy

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// patch serves a patch: the API's document validates the patch, and admission the object that results from it.
func (h *handler) patch(w *storage.Write) error {
	s := h.scope.storage
	if err := s.CheckOptions(w); err != nil {
		return err
	}
	if err := h.body.decodePatch(w); err != nil {
		return err
	}
	if w.Patch == nil {
		return h.writeOfNothing(w)
	}
	if err := h.checkPatch(w, w.Patch.Root()); err != nil {
		return err
	}
	if h.isOwnLanguage(w) {
		return h.passPatch(w)
	}
	if err := h.patched(w); err == storage.ErrUnshown {
		return h.passUnshown(w)
	} else if err != nil {
		return err
	}
	if err := h.admission.checkEffect(w, h.scope.operation); err != nil {
		return err
	}
	if err := h.admission.keepOwned(s, w); err != nil { // what the API itself sets is not the client's
		return err
	}
	if err := h.admission.setDefaults(s, w); err != nil {
		return err
	}
	if err := h.admit(s, w); err != nil {
		return err
	}
	return s.Patch(w)
}

// patched applies the patch in the write, and prepares the object that results.
func (h *handler) patched(w *storage.Write) error {
	s := h.scope.storage
	isPrepared, err := s.Patched(w)
	if isPrepared || err != nil {
		return err
	}
	if err := h.admission.Complete(w); err != nil {
		return err
	}
	return s.PrepareForUpdate(w)
}

// checkPatch checks the client's patch against what the API's document says of its media type.
func (h *handler) checkPatch(w *storage.Write, patch document.Node) error {
	a := h.admission
	if w.DeclaredPatch = h.body.declared; w.DeclaredPatch == nil {
		return nil
	}
	w.KeepsNulls = w.PatchType == storage.MergePatch && !h.body.nullRemoves && h.request.Resource.Backend.Patch == resource.PatchValidated
	return a.answerPatch(w, w.DeclaredPatch.CheckPatch(patch, h.body.nullRemoves, a.frame))
}

// checkEffect checks the effect of a JSON patch, if the API's document declares patches and not this language: as the merge
// patch that would have had it.
func (a *admitter) checkEffect(w *storage.Write, o *contract.Operation) error {
	if w.PatchType != storage.JSONPatch || !o.HoldsEffects() {
		return nil
	}
	text := document.AppendMergePatch(nil, w.Existing.Root(), w.Object.Root())
	effect, err := w.Exchanges.Parse(text, a.request.Limits.Stored)
	if err != nil {
		return err
	}
	defer effect.Release()
	if w.DeclaredPatch = o.EffectBody(); effect.Root().Len() == 0 {
		return nil
	}
	return a.answerPatch(w, w.DeclaredPatch.CheckPatch(effect.Root(), true, a.frame))
}

// answerPatch returns the refusal of a patch in which something is wrong. What is wrong with the parameters alone is named with
// what is wrong with the result.
func (a *admitter) answerPatch(w *storage.Write, found schema.Result) error {
	if found.Valid() {
		return nil
	}
	return a.answerFaults(w, found)
}

// answerFaults returns the refusal of a body in which something is wrong, with what is wrong with the parameters.
func (a *admitter) answerFaults(w *storage.Write, found schema.Result) error {
	if found.Err != nil {
		return status.Timeout("the request was over before its body was checked", 1)
	}
	failures := a.named(found.Errors)
	if len(failures) == 0 {
		return nil
	}
	a.countRefused(w.Info.Resource, failures)
	return a.request.Invalid(w.Info.Name, failures, found.More)
}

// isOwnLanguage reports whether a patch is in a language of the API's own: the document declares it with a schema, and it is
// neither a merge patch nor a JSON patch.
func (h *handler) isOwnLanguage(w *storage.Write) bool {
	return w.PatchType == storage.MergePatch && w.Patch.Root().Kind() != document.Object && h.body.declared.IsDescribed() &&
		h.request.Resource.Backend.Patch != resource.PatchEmulated
}

// passUnshown sends a patch on as it came, of an object that is not known. Nothing needs to know it.
func (h *handler) passUnshown(w *storage.Write) error {
	if wrong := h.admission.parameters; len(wrong) > 0 {
		return h.request.Invalid(w.Info.Name, wrong, 0)
	}
	if w.Source = h.request.Body; isTried(h) {
		w.Source = []byte("{}")
	}
	return h.scope.storage.Pass(w)
}

// passPatch sends a patch on as it came. What the API makes of it only the API knows.
func (h *handler) passPatch(w *storage.Write) error {
	if h.scope.rules.policies.Concerns(&w.Info, admission.Update) {
		refusal := field.Invalid(nil, field.OmitValueType{}, "must be a JSON object, or a JSON patch: policies judge what results from it")
		return h.request.Invalid(w.Info.Name, field.ErrorList{refusal}, 0)
	}
	if wrong := h.admission.parameters; len(wrong) > 0 {
		return h.request.Invalid(w.Info.Name, wrong, 0)
	}
	w.Source = h.request.Body
	return h.scope.storage.Pass(w)
}
