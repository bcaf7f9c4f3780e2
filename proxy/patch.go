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
func patch(r *request, w *storage.Write) error {
	s := r.scope.storage
	if err := s.CheckOptions(w); err != nil {
		return err
	}
	if err := decodePatch(r, w); err != nil {
		return err
	}
	if w.Patch == nil {
		return writeOfNothing(r, w)
	}
	if err := checkPatch(r, w, w.Patch.Root()); err != nil {
		return err
	}
	if isOwnLanguage(r, w) {
		return passPatch(r, w)
	}
	if err := applyPatch(r, w); err == storage.ErrUnshown {
		return passUnshown(r, w)
	} else if err != nil {
		return err
	}
	if err := checkEffect(r, w, r.scope.operation); err != nil {
		return err
	}
	if err := keepOwned(r, s, w); err != nil { // what the API itself sets is not the client's
		return err
	}
	if err := setDefaults(r, s, w); err != nil {
		return err
	}
	if err := admit(r, s, w); err != nil {
		return err
	}
	return s.Patch(w)
}

// applyPatch applies the patch in the write, and prepares the object that results.
func applyPatch(r *request, w *storage.Write) error {
	s := r.scope.storage
	isPrepared, err := s.Patched(w)
	if isPrepared || err != nil {
		return err
	}
	if err := complete(r, w); err != nil {
		return err
	}
	return s.PrepareForUpdate(w)
}

// checkPatch checks the client's patch against what the API's document says of its media type.
func checkPatch(r *request, w *storage.Write, patch document.Node) error {
	if w.DeclaredPatch = r.body.declared; w.DeclaredPatch == nil {
		return nil
	}
	w.KeepsNulls = w.PatchType == storage.MergePatch && !r.body.nullRemoves && r.Resource.Backend.Patch == resource.PatchValidated
	return answerPatch(r, w, w.DeclaredPatch.CheckPatch(patch, r.body.nullRemoves, r.frame))
}

// checkEffect checks the effect of a JSON patch, if the API's document declares patches and not this language: as the merge
// patch that would have had it.
func checkEffect(r *request, w *storage.Write, o *contract.Operation) error {
	if w.PatchType != storage.JSONPatch || !o.HoldsEffects() {
		return nil
	}
	text := document.AppendMergePatch(nil, w.Existing.Root(), w.Object.Root())
	effect, err := w.Exchanges.Parse(text, r.Limits.Stored)
	if err != nil {
		return err
	}
	defer effect.Release()
	if w.DeclaredPatch = o.EffectBody(); effect.Root().Len() == 0 {
		return nil
	}
	return answerPatch(r, w, w.DeclaredPatch.CheckPatch(effect.Root(), true, r.frame))
}

// answerPatch returns the refusal of a patch in which something is wrong. What is wrong with the parameters alone is named with
// what is wrong with the result.
func answerPatch(r *request, w *storage.Write, found schema.Result) error {
	if found.Valid() {
		return nil
	}
	return answerFaults(r, w, found)
}

// answerFaults returns the refusal of a body in which something is wrong, with what is wrong with the parameters.
func answerFaults(r *request, w *storage.Write, found schema.Result) error {
	if found.Err != nil {
		return status.Timeout("the request was over before its body was checked", 1)
	}
	failures := namedWith(r, found.Errors)
	if len(failures) == 0 {
		return nil
	}
	countRefused(r, w.Info.Resource, failures)
	return r.Invalid(w.Info.Name, failures, found.More)
}

// isOwnLanguage reports whether a patch is in a language of the API's own: the document declares it with a schema, and it is
// neither a merge patch nor a JSON patch.
func isOwnLanguage(r *request, w *storage.Write) bool {
	return w.PatchType == storage.MergePatch && w.Patch.Root().Kind() != document.Object && r.body.declared.IsDescribed() &&
		r.Resource.Backend.Patch != resource.PatchEmulated
}

// passUnshown sends a patch on as it came, of an object that is not known. Nothing needs to know it.
func passUnshown(r *request, w *storage.Write) error {
	if wrong := r.parameters; len(wrong) > 0 {
		return r.Invalid(w.Info.Name, wrong, 0)
	}
	if w.Source = r.Body; isTried(r) {
		w.Source = []byte("{}")
	}
	return r.scope.storage.Pass(w)
}

// passPatch sends a patch on as it came. What the API makes of it only the API knows.
func passPatch(r *request, w *storage.Write) error {
	if r.scope.rules.policies.Concerns(&w.Info, admission.Update) {
		refusal := field.Invalid(nil, field.OmitValueType{}, "must be a JSON object, or a JSON patch: policies judge what results from it")
		return r.Invalid(w.Info.Name, field.ErrorList{refusal}, 0)
	}
	if wrong := r.parameters; len(wrong) > 0 {
		return r.Invalid(w.Info.Name, wrong, 0)
	}
	w.Source = r.Body
	return r.scope.storage.Pass(w)
}
