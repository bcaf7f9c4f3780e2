package proxy

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
)

// admitForm is the way of a form that is created or replaces what is stored. The object of its fields is admitted, and
// the client's own bytes are sent on: a form that would have to be changed is refused.
func admitForm(r *request, a attempt) error {
	s := &formStorage{r.scope.storage, r.body.declared.Form}
	if err := s.CheckOptions(a.Write); err != nil {
		return err
	}
	if err := decodeForm(r, a); err != nil {
		return err
	}
	if err := s.Complete(a.Write); err != nil { // from the URL
		return err
	}
	if err := prepareForm(r, a, s, r.body.declared.Owned); err != nil {
		return err
	}
	if err := admit(r, a, s); err != nil {
		return err
	}
	if a.Object.Edited() || a.Existing.Pin == storage.PinnedByField {
		return status.UnusableForm("policies or versions change the object")
	}
	switch {
	case isEmulatedDryRun(r):
		a.Source = nil // what would be stored is shown as the object that it is
		return s.Create(a.Write)
	case a.Info.Verb == resource.VerbCreate || r.scope.isOperation:
		return s.Create(a.Write)
	}
	return s.Update(a.Write)
}

// patchForm is the way of a form that patches what is stored. Of its fields results what a merge patch of them makes,
// which is admitted. The client's own bytes are sent on.
func patchForm(r *request, a attempt) error {
	s := r.scope.storage
	if err := s.CheckOptions(a.Write); err != nil {
		return err
	}
	if err := decodeForm(r, a); err != nil {
		return err
	}
	a.Patch, a.Object, a.Source = a.Object, nil, nil
	err := applyPatch(r, a)
	if err == storage.ErrUnshown {
		if err := checkForm(r, a, s, r.body.declared); err != nil {
			return err
		}
		return passUnshown(r, a)
	}
	if err != nil {
		return err
	}
	if err := checkForm(r, a, s, r.body.declared); err != nil {
		return err
	}
	if err := keepOwned(r, a, s); err != nil {
		return err
	}
	if err := admit(r, a, s); err != nil {
		return err
	}
	return s.Patch(a.Write)
}

// isEmulatedDryRun reports whether the request is a dry run that the gateway answers itself.
func isEmulatedDryRun(r *request) bool {
	return r.Info.Options.DryRun && r.Resource.Backend.Emulated&resource.DryRun != 0
}

// passBytes is the way of a body that is not read. Policies see that there is no object.
func passBytes(r *request, a attempt) error {
	if operation, _ := operationOf(a.Write); r.scope.rules.policies.Mutates(&a.Info, operation) {
		return status.UnusableForm("policies may change the object")
	}
	a.Source = r.Body
	if isEmulatedDryRun(r) {
		a.Source = []byte("{}")
	}
	return writeOfNothing(r, a)
}

// formStorage is a storage of objects that were sent as forms.
type formStorage struct {
	storage.Storage
	form *contract.Form
}

// Validate implements storage.Strategy.
func (s *formStorage) Validate(of *schema.Schema, f *cel.Frame, w *storage.Write) schema.Result {
	result := s.Storage.Validate(of, f, w)
	result.Errors = contract.Renamed(s.form.Fields, result.Errors)
	return result
}

// decodeForm makes of a form the object of its fields. What is wrong with fields is named with what is wrong with the
// object.
func decodeForm(r *request, a attempt) error {
	share, body := r.Memory, r.Body
	if need := 2 * len(body); !share.Grow(need) || len(body) >= storage.HeavyText && !share.Work() {
		return r.Exhausted()
	}
	f := r.body.declared.Form
	var json []byte
	var failures field.ErrorList
	var err error
	if r.body.declared.As == contract.AsParts {
		json, failures, err = f.ReadParts(body, r.body.boundary)
	} else {
		json, failures, err = f.ReadFields(body)
	}
	if err != nil {
		return status.BadRequest("the body must be a form that can be read in one way only: %s", err.Error())
	}
	d, err := r.Parse(json, r.Limits.Sent)
	if err != nil {
		return notJSON(err)
	}
	a.Object, a.Source = d, body
	a.unread = append(a.unread[:0:0], failures...)
	return nil
}

// prepareForm prepares the storage for a form, which may set nothing that the gateway would have to take out.
func prepareForm(r *request, a attempt, s storage.Storage, owned *contract.Members) error {
	creates := a.Info.Verb == resource.VerbCreate
	if !creates && s.NeedsExisting(a.Write) {
		if err := s.Get(a.Write); err != nil {
			return err
		}
	}
	forbidOwned(r, s, a.Object.Root(), a.Existing.Root(), owned)
	if len(a.unread) > 0 {
		return nil // and named with everything else
	}
	if creates {
		return s.PrepareForCreate(a.Write)
	}
	return s.PrepareForUpdate(a.Write)
}

// forbidOwned notes what a form sets that the API alone sets.
func forbidOwned(r *request, s storage.Storage, sent, stored document.Node, owned *contract.Members) {
	note := func(at document.Node, why string) {
		r.attempt.unread = append(r.attempt.unread, &field.Error{Type: field.ErrorTypeForbidden, Field: at.Path(),
			BadValue: "", Detail: "may not be set: " + why})
	}
	owned.Each(sent, stored, func(at, _ document.Node) { note(at, "the API itself sets it") })
	if at, found := storage.Find(sent, s.StatusPath()); found {
		note(at, "the API alone writes it")
	}
}

// checkForm checks the fields of a form that patches an object against their declarations in the
// document, whatever the object itself has to be. All that is wrong with them is named at once.
func checkForm(r *request, a attempt, s storage.Storage, declared *contract.Body) error {
	forbidOwned(r, s, a.Patch.Root(), a.Existing.Root(), declared.Owned)
	return checkBody(r, a, a.Patch.Root(), declared)
}

// checkBody checks a body against what the API's document says of its media type, whatever becomes of it. All that is
// wrong with it and with the parameters is named at once.
func checkBody(r *request, a attempt, body document.Node, declared *contract.Body) error {
	return answerFaults(r, a, declared.Check(body, r.frame))
}
