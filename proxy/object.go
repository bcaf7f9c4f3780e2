package proxy

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/status"
)

// judged tells whether anything is to be done with the object of the request.
func (x *exchange) judged() bool {
	if !x.info.HasBody() {
		return false
	}
	operation, _ := admission.OperationOf(x.info.Verb)
	if _, held := x.heldToConventions(); held {
		return true
	}
	return x.res != nil || x.statusPath() != nil || x.gateway.unregistered.CheckNames || x.set.Admission().Concerns(&x.info, operation) ||
		// What names an object may turn out to create it.
		x.set.Admission().Concerns(&x.info, admission.Create)
}

// parse is the one reading of the body. What follows works on its tape; what nobody edits leaves byte for byte as it came.
func (x *exchange) parse() error {
	if len(x.body) == 0 {
		if x.info.HasBody() {
			return status.BadRequest("the body must not be empty")
		}
		return nil
	}
	if err := x.transcode(); err != nil {
		return err
	}
	d, err := document.Parse(x.body, x.gateway.documentLimits)
	if err != nil {
		return notJSON(err)
	}
	x.doc = d
	return nil
}

// notJSON is the Status of a body that the strict parser refused.
func notJSON(err error) error {
	var at *document.Error
	switch {
	case errors.As(err, &at) && at.Code == document.TooLarge:
		return status.RequestEntityTooLarge("%s", at.Error())
	case errors.As(err, &at):
		return status.BadRequest("the body must be JSON that can be read in one way only: %s", at.Error())
	}
	return err
}

// needsOld tells whether the stored object decides anything on the way of this request.
func (x *exchange) needsOld() bool {
	if x.info.Name == "" || x.info.Verb == resource.VerbCreate {
		return false
	}
	if operation, ok := admission.OperationOf(x.info.Verb); ok && x.set.Admission().NeedsOld(&x.info, operation) || x.mayCreate() {
		return true
	}
	if x.info.Verb == resource.VerbDelete {
		return x.emulatesDeletion()
	}
	if x.upstream.plain && (x.statusPath() != nil && x.protectsStatus() || x.info.Verb == resource.VerbPatch || x.readsToWrite()) {
		return true
	}
	s := x.schema()
	return s != nil && s.NeedsOld()
}

// schema is that of the object, nil where there is none or where the subresource's object is of another kind.
func (x *exchange) schema() *schema.Schema {
	if x.res == nil || x.info.Subresource != "" && x.info.Subresource != "status" {
		return nil
	}
	return x.set.SchemaFor(x.res, x.info.Verb)
}

// setDefaults sets what the schema has a default for and the object leaves unset (DEF-1, DEF-5): literal ones first, then
// those that are computed from the object.
func (x *exchange) setDefaults() error {
	s, most := x.schema(), int(x.gateway.bodyLimit)
	switch {
	case s == nil:
		return nil
	case !defaults.ApplyWithin(x.doc, s, most):
		return tooLargeDefaulted(most)
	}
	return x.derive(s, most)
}

func tooLargeDefaulted(most int) error {
	return status.RequestEntityTooLarge("the object with the defaults of what it leaves unset must be at most %d bytes", most)
}

// checkFields takes out what the schema does not know, and says so as far as the request or the resource asks for it.
func (x *exchange) checkFields() error {
	s := x.schema()
	if s == nil {
		return nil
	}
	var unknown schema.Unknown
	if err := s.Prune(x.doc, &unknown); err != nil {
		return x.unreadable(err.Error())
	}
	if !unknown.Any() {
		return nil
	}
	switch x.fieldValidation() {
	case resource.FieldValidationStrict:
		return x.unreadable(fmt.Sprintf("%s in version %q cannot be handled as a %s: %s", x.res.Kind, x.res.Version, x.res.Kind, unknown.Error()))
	case resource.FieldValidationWarn:
		x.warnings = append(x.warnings, unknown.Messages()...)
	}
	return nil
}

// unreadable is the Status of an object that cannot be read as one of its kind: of a request that has to be another one, or
// of a patch that results in such an object.
func (x *exchange) unreadable(message string) error {
	if x.info.Verb != resource.VerbPatch {
		return status.BadRequest("%s", message)
	}
	return status.Invalid(groupKind(x), x.info.Name, field.ErrorList{field.Invalid(field.NewPath("patch"), short(str(x.body)), message)}, 0)
}

// fieldValidation is what the request asks for, else the resource, else Warn as in Kubernetes.
func (x *exchange) fieldValidation() resource.FieldValidation {
	switch {
	case x.info.Options.FieldValidation != resource.FieldValidationUnset:
		return x.info.Options.FieldValidation
	case x.res.FieldValidation != resource.FieldValidationUnset:
		return x.res.FieldValidation
	}
	return resource.FieldValidationWarn
}

// describe gathers what policies can know of the request, if any concerns it.
func (x *exchange) describe() bool {
	operation, ok := admission.OperationOf(x.info.Verb)
	if ok && operation == admission.Update && x.creates {
		operation = admission.Create
	}
	if !ok || !x.set.Admission().Concerns(&x.info, operation) {
		return false
	}
	x.describeAs(operation)
	return true
}

// describeAs gathers what policies can know of the request.
func (x *exchange) describeAs(operation admission.Operation) {
	if operation == admission.Update && x.creates {
		operation = admission.Create
	}
	x.attributes.Info, x.attributes.Resource = &x.info, x.res
	x.attributes.Operation, x.attributes.User = operation, &x.user
	x.attributes.Object, x.attributes.Old = x.judgedObject(), x.old
	if operation == admission.Delete {
		x.attributes.Object = nil
		if x.doc != nil {
			x.attributes.Options = x.doc.Root()
		}
	}
	x.refer()
	x.attributes.DryRun = x.info.Options.DryRun
	x.frame()
}

// checkSchema holds the object against its schema and the schema's rules, and to the conventions that policies ask for, and
// answers all failures at once (VAL-1).
func (x *exchange) checkSchema() error {
	result, err := x.hold()
	if err != nil {
		return err
	}
	if !result.Valid() && x.info.Verb != resource.VerbCreate && x.old == nil && !x.creates {
		// What an update leaves as it was does not count, so the stored object may make the difference.
		if err := x.readStored(); err != nil {
			return err
		}
		if result, err = x.hold(); err != nil {
			return err
		}
	}
	x.warnings = append(x.warnings, result.Warnings...)
	switch {
	case result.Valid():
		return nil
	case len(result.Errors) == 0:
		return status.Timeout("the request was over before its object was checked", 1)
	}
	return status.Detail(status.Invalid(groupKind(x), x.shownName(), result.Errors, result.More), result.Details)
}

// shownName is how an answer names the object, as in Kubernetes: by what its name is to be made of where it has none yet.
func (x *exchange) shownName() string {
	if x.info.Name != "" || x.doc == nil {
		return x.info.Name
	}
	return textIn(metadataOf(x.doc), "generateName")
}

// hold is one validation.
func (x *exchange) hold() (result schema.Result, err error) {
	if s := x.schema(); s != nil {
		result = x.withLeftOver(x.holdAgainst(s))
	}
	if failures := x.checkOwned(); len(failures) > 0 {
		result.Errors = append(failures, result.Errors...)
	}
	return result, x.holdToConventions(&result)
}

// holdAgainst is one validation, with a budget of its own for the rules.
func (x *exchange) holdAgainst(s *schema.Schema) schema.Result {
	var old document.Node
	if x.old != nil {
		old = x.old.Root()
	}
	var f *cel.Frame
	if s.HasRules() {
		f = x.frame()
		f.SetBudget(cel.PolicyBudget)
	}
	if x.holdsStatusAlone() {
		return s.ValidateStatus(f, x.doc.Root(), old)
	}
	return s.Validate(f, x.doc.Root(), old)
}

// validate runs every validating policy that concerns the request.
func (x *exchange) validate() error {
	if !x.describe() {
		return nil
	}
	x.set.Admission().Validate(context.Background(), &x.attributes, &x.report)
	err := x.verdict()
	if err != nil {
		x.warnOfResult()
	}
	return err
}

// verdict is what the policies came to.
func (x *exchange) verdict() error {
	x.warnings = append(x.warnings, x.report.Warnings()...)
	x.audit()
	if err := x.undecided(); err != nil {
		return err
	}
	if err := x.report.Err(&x.attributes); err != nil {
		return err
	}
	return nil
}
