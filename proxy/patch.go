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
func patch(r *request, a attempt) error {
	s := r.scope.storage
	if err := s.CheckOptions(a.Write); err != nil {
		return err
	}
	if err := decodePatch(r, a); err != nil {
		return err
	}
	if a.Patch == nil {
		return writeOfNothing(r, a)
	}
	if err := checkPatch(r, a, a.Patch.Root()); err != nil {
		return err
	}
	if isOwnLanguage(r, a) {
		return passPatch(r, a)
	}
	if err := applyPatch(r, a); err == storage.ErrUnshown {
		return passUnshown(r, a)
	} else if err != nil {
		return err
	}
	if err := checkEffect(r, a, r.scope.operation); err != nil {
		return err
	}
	if err := keepOwned(r, a, s); err != nil { // what the API itself sets is not the client's
		return err
	}
	if err := setDefaults(r, a, s); err != nil {
		return err
	}
	if err := admit(r, a, s); err != nil {
		return err
	}
	return s.Patch(a.Write)
}

// applyPatch applies the patch in the write, and prepares the object that results.
func applyPatch(r *request, a attempt) error {
	s := r.scope.storage
	isPrepared, err := s.Patched(a.Write)
	if isPrepared || err != nil {
		return err
	}
	if err := complete(r, a); err != nil {
		return err
	}
	return s.PrepareForUpdate(a.Write)
}

// checkPatch checks the client's patch against what the API's document says of its media type.
func checkPatch(r *request, a attempt, patch document.Node) error {
	if a.DeclaredPatch = r.body.declared; a.DeclaredPatch == nil {
		return nil
	}
	a.KeepsNulls = a.PatchType == storage.MergePatch && !r.body.nullRemoves &&
		r.Resource.Backend.Patch == resource.PatchValidated
	return answerPatch(r, a, a.DeclaredPatch.CheckPatch(patch, r.body.nullRemoves, r.frame))
}

// checkEffect checks the effect of a JSON patch, if the API's document declares patches and not this language: as the
// merge patch that would have had it.
func checkEffect(r *request, a attempt, o *contract.Operation) error {
	if a.PatchType != storage.JSONPatch || !o.HoldsEffects() {
		return nil
	}
	text := document.AppendMergePatch(nil, a.Existing.Root(), a.Object.Root())
	effect, err := a.Exchanges.Parse(text, r.Limits.Stored)
	if err != nil {
		return err
	}
	defer effect.Release()
	if a.DeclaredPatch = o.EffectBody(); effect.Root().Len() == 0 {
		return nil
	}
	return answerPatch(r, a, a.DeclaredPatch.CheckPatch(effect.Root(), true, r.frame))
}

// answerPatch returns the refusal of a patch in which something is wrong. What is wrong with the parameters alone is
// named with what is wrong with the result.
func answerPatch(r *request, a attempt, found schema.Result) error {
	if found.Valid() {
		return nil
	}
	return answerFaults(r, a, found)
}

// answerFaults returns the refusal of a body in which something is wrong, with what is wrong with the parameters.
func answerFaults(r *request, a attempt, found schema.Result) error {
	if found.Err != nil {
		return status.Timeout("the request was over before its body was checked", 1)
	}
	failures := namedWith(r, found.Errors)
	if len(failures) == 0 {
		return nil
	}
	countRefused(r, a.Info.Resource, failures)
	return r.Invalid(a.Info.Name, failures, found.More)
}

// isOwnLanguage reports whether a patch is in a language of the API's own: the document declares it with a schema, and
// it is neither a merge patch nor a JSON patch.
func isOwnLanguage(r *request, a attempt) bool {
	return a.PatchType == storage.MergePatch && a.Patch.Root().Kind() != document.Object &&
		r.body.declared.IsDescribed() &&
		r.Resource.Backend.Patch != resource.PatchEmulated
}

// passUnshown sends a patch on as it came, of an object that is not known. Nothing needs to know it.
func passUnshown(r *request, a attempt) error {
	if wrong := r.parameters; len(wrong) > 0 {
		return r.Invalid(a.Info.Name, wrong, 0)
	}
	if a.Source = r.Body; isEmulatedDryRun(r) {
		a.Source = []byte("{}")
	}
	return r.scope.storage.Pass(a.Write)
}

// passPatch sends a patch on as it came. What the API makes of it only the API knows.
func passPatch(r *request, a attempt) error {
	if r.scope.rules.policies.Concerns(&a.Info, admission.Update) {
		refusal := field.Invalid(nil, field.OmitValueType{},
			"must be a JSON object, or a JSON patch: policies judge what results from it")
		return r.Invalid(a.Info.Name, field.ErrorList{refusal}, 0)
	}
	if wrong := r.parameters; len(wrong) > 0 {
		return r.Invalid(a.Info.Name, wrong, 0)
	}
	a.Source = r.Body
	return r.scope.storage.Pass(a.Write)
}
