package proxy

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/conventions"
	"github.com/admission-gateway/gateway/admission/decisions"
	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/merge"
	"github.com/admission-gateway/gateway/internal/resource"
	schemas "github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/telemetry/tracing"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/proxy/explaining"
)

// findings are what was found of an attempt, by the schema of its storage and by the policies of the set in force.
type findings struct {
	found
	report   admission.Report  // what policies find
	referred policies.Referred // what they refer to
}

// found is what findings forget with the request.
type found struct {
	isBegun    bool
	attributes admission.Attributes // what policies see
	options    operationOptions     // the options of the operation, as policies see them
	schema     objectSchema         // the schema that mutating policies use
	unread     field.ErrorList      // what is wrong with the fields of a form before its object is looked at
	checked    conventions.Result   // the results of conventions that are only tried, or were not evaluated
	// unknown are the members of the object that its schema does not have.
	unknown schemas.Unknown
}

// noteWrong keeps which parameters are wrong, for templates of refusals.
func noteWrong(r *request, parameters field.ErrorList) {
	for _, f := range parameters {
		r.wrong = append(r.wrong, f.Field)
	}
}

// An observer counts and traces the decisions of policies about a request, and logs them. It implements
// admission.Observer and admission.DecisionLogger.
type observer request

// Decided implements admission.Observer.
func (o *observer) Decided(place int, policy, binding string, v admission.Verdict, cost int64) {
	o.scope.decided.Decided(place, policy, string(v), cost)
	if s := o.telemetry.spans; s != nil {
		s.Decided(tracing.Verdict{Policy: policy, Binding: binding, Verdict: string(v)}, cost)
	}
}

// LogDecision implements admission.DecisionLogger.
func (o *observer) LogDecision(e *admission.Evaluation) {
	log := o.gateway.observers.decisions
	if o.telemetry.number == 0 {
		o.telemetry.number = log.NextRequest()
	}
	in := o.gateway.inForce(o.scope.set)
	about := decisions.Request{Number: o.telemetry.number, ID: o.telemetry.record.ID, Configuration: in.Configuration,
		Policies: in.Policies}
	if o.who.client.IsValid() {
		about.Client = o.who.client.String()
	}
	if t := &o.telemetry.record.Trace; t.Sampled {
		about.Trace, about.Span = hex.EncodeToString(t.ID[:]), hex.EncodeToString(t.Span[:])
	}
	log.Add(e, &about)
}

// beginFindings prepares for policies and schemas. What they find of a shadow is in no metric and no log: they do not
// refuse the request.
func beginFindings(r *request) {
	a := r.attempt.findings
	a.isBegun = true
	a.attributes.IsUncounted = r.gateway.isUncounted
	if r.isShadow {
		return
	}
	a.report.Observer = (*observer)(r)
	if r.gateway.observers.decisions != nil {
		a.report.Decisions = (*observer)(r)
	}
}

// reset forgets the request.
func (f *findings) reset() {
	f.report.Reset()
	if !f.isBegun {
		return
	}
	if f.attributes.Frame != nil {
		f.attributes.Frame.Release()
	}
	f.report.Observer, f.report.Decisions, f.report.Recorder = nil, nil, nil
	f.referred.Reset()
	made := f.attributes.Forget()
	f.found = found{}
	f.attributes.Made = made
}

// context returns the request's context, with its trace.
func (r *request) context() context.Context { return r.telemetry.context(r.Client) }

// complete checks the object against the URL, and removes the fields that its schema does not know.
// It says so as far as the request or the resource asks for it.
func complete(r *request, a attempt) error {
	at(r.telemetry.explanation, explaining.URL, a.Write)
	if err := r.scope.storage.Complete(a.Write); err != nil {
		return err
	}
	if err := prune(r, a); err != nil {
		return err
	}
	operation := a.Info.Verb.Operation()
	if rules := r.scope.rulesOf(&a.Info); storage.IsConcerned(rules.policies, &a.Info) ||
		rules.conventions.Concern(&a.Info, operation) {
		if err := r.scope.storage.CheckKeys(a.Write); err != nil {
			return err
		}
	}
	at(r.telemetry.explanation, explaining.Prepare, a.Write)
	return nil
}

// prune takes out of the object what its schema does not know.
func prune(r *request, a attempt) error {
	s := r.scope.storage.Schema(a.Write)
	if s == nil {
		return nil
	}
	a.unknown = schemas.Unknown{}
	unknown := &a.unknown
	if err := s.Prune(a.Object, unknown); err != nil {
		return a.Unreadable(err.Error())
	}
	r.Warnings = append(r.Warnings, unknown.Nulls()...)
	if a.IsKnown = !unknown.Any(); a.IsKnown {
		return nil
	}
	described := r.Resource
	switch a.FieldValidation() {
	case resource.FieldValidationStrict:
		return a.Unreadable(fmt.Sprintf("%s in version %q cannot be handled as a %s: %s", described.Names.Kind,
			described.Version, described.Names.Kind, unknown.Error()))
	case resource.FieldValidationWarn:
		r.Warnings = append(r.Warnings, unknown.Messages()...)
	}
	return nil
}

// keepOwned gives members that the API itself sets the values that are stored, and takes them out of new objects. It
// says so as it does of unknown fields.
func keepOwned(r *request, a attempt, s storage.Storage) error {
	verb := a.Info.Verb
	if a.Creates() {
		verb = resource.VerbCreate
	}
	owned := r.scope.set.Owned(r.Resource, verb)
	switch {
	case a.Declared != nil:
		owned = a.Declared.Owned
	case !owned.Any() && a.DeclaredPatch != nil:
		owned = a.DeclaredPatch.Owned
	}
	if !owned.Any() || a.Info.Subresource != "" {
		return nil
	}
	changed := changesOwned(r, owned, a)
	if len(changed) == 0 {
		return nil
	}
	if !a.Creates() && a.Existing.Object == nil && !a.Existing.IsAbsent {
		if err := s.Get(a.Write); err != nil {
			return err
		}
		if changed = changesOwned(r, owned, a); len(changed) == 0 {
			return nil
		}
	}
	var failures field.ErrorList
	for _, c := range changed {
		path := c.sent.Path()
		switch a.FieldValidation() {
		case resource.FieldValidationStrict:
			failures = append(failures, &field.Error{Type: field.ErrorTypeForbidden, Field: path, BadValue: "",
				Detail: "may not be set: the API itself sets it"})
			continue
		case resource.FieldValidationWarn:
			r.Warnings = append(r.Warnings, fmt.Sprintf("read-only field %q is not taken: the API itself sets it",
				path))
		}
		if c.stored.Valid() {
			a.Object.Replace(c.sent, c.stored.AppendRaw(nil))
		} else {
			a.Object.Remove(c.sent)
		}
	}
	if len(failures) > 0 {
		return r.Invalid(a.Info.Name, failures, 0)
	}
	return nil
}

// ownedChange is a member that the API itself sets, as a client sent it and as it is stored.
type ownedChange struct{ sent, stored document.Node }

// changesOwned returns the members that the API itself sets and that are not sent as they are
// stored. The name in the URL is not one of them: it was compared already.
func changesOwned(r *request, owned *contract.Members, a attempt) (changed []ownedChange) {
	root := a.Object.Root()
	name, _ := storage.Find(root, r.Resource.Fields.Name)
	owned.Each(root, a.Existing.Root(), func(sent, stored document.Node) {
		if a.Info.Verb == resource.VerbCreate || sent != name {
			changed = append(changed, ownedChange{sent, stored})
		}
	})
	return changed
}

// setDefaults sets what the schema has a default for and the object leaves unset (DEF-1, DEF-5): literal
// defaults first, then those that are computed from the object (DEF-2). Validation reports the fields for which no
// default can be computed, with everything else that is wrong.
func setDefaults(r *request, a attempt, s storage.Storage) error {
	at(r.telemetry.explanation, explaining.Defaults, a.Write)
	schema, limit := s.Schema(a.Write), int(r.Limits.Body)
	if schema == nil {
		return nil
	}
	a.Underived = nil
	if a.Shown != storage.ShownNothing {
		if !schema.Root().HasDefaults() && len(schema.Derived()) == 0 || defaults.IsComplete(a.Object, schema) {
			return nil
		}
		return setIntroduced(r, a, schema, limit)
	}
	return fillIn(r, a, a.Object, schema, document.Node{}, limit)
}

// fillIn sets the defaults of an object; what the backend has shown of it may be an invalid node.
func fillIn(r *request, a attempt, object *document.Document, of *schemas.Schema, shown document.Node,
	limit int) error {
	if !defaults.ApplyWithin(object, of, limit) {
		return tooLargeDefaulted(limit)
	}
	if len(of.Derived()) == 0 {
		return nil
	}
	failures, err := defaults.DeriveSince(r.frame(), object, of, shown, limit)
	var fault *cel.Error
	switch {
	case errors.Is(err, defaults.ErrTooLong):
		return tooLargeDefaulted(limit)
	case errors.As(err, &fault) && fault.Cause == value.Cancelled:
		return status.Timeout("the request was over before the defaults of its object were computed", 1)
	case err != nil:
		failures = append(failures,
			field.Invalid(nil, field.OmitValueType{}, "the defaults of the object cannot all be computed: "+
				err.Error()))
	}
	a.Underived = failures
	return nil
}

// setIntroduced sets the defaults of what the write itself brings into an object of which the backend has shown the
// rest.
func setIntroduced(r *request, a attempt, of *schemas.Schema, limit int) error {
	filled := a.Object.Clone()
	defer filled.Release()
	shown := a.Existing.Root()
	if a.Shown == storage.ShownStatus {
		shown = document.Node{}
	}
	err := fillIn(r, a, filled, of, shown, limit)
	switch {
	case filled.Err() != nil:
		return r.Exhausted() // whatever came of filling it
	case err != nil:
		return err
	case !filled.Edited():
		return nil
	}
	if a.Shown == storage.ShownStatus {
		withholdAt(filled, a.Object, r.scope.storage.StatusPath())
	} else {
		changeOf(a.Write).Withhold(filled.Root(), a.Object.Root(), shown)
	}
	if !document.EqualNodes(filled.Root(), a.Object.Root()) {
		a.Object.Replace(a.Object.Root(), filled.AppendTo(nil))
	}
	return nil
}

// changeOf returns how what a write changes of a shown object reaches the backend.
func changeOf(w *storage.Write) defaults.Change {
	isMerge := w.PatchType == storage.MergePatch || w.PatchType == storage.FormPatch
	return defaults.Change{HasWholeLists: isMerge, IsMerged: w.Shown == storage.ShownMerged}
}

// withholdAt takes back the defaults at a path.
func withholdAt(filled, before *document.Document, path resource.FieldPath) {
	is, found := storage.Find(filled.Root(), path)
	if !found {
		return
	}
	if was, wasThere := storage.Find(before.Root(), path); wasThere {
		defaults.Change{}.Withhold(is, was, was)
	} else {
		filled.Remove(is)
	}
}

func tooLargeDefaulted(limit int) error {
	return status.RequestEntityTooLarge("the object with the defaults of what it leaves unset must be at most %d bytes",
		limit)
}

// mutate lets the mutating policies change the object. Their result must meet the same rules as a
// client's object: the URL names it, policies may not set its status, and unset fields get defaults.
func mutate(r *request, a attempt, s storage.Storage) error {
	operation, _ := operationOf(a.Write)
	mutates := r.scope.rulesOf(&a.Info).policies.Mutates(&a.Info, operation)
	if !mutates && r.telemetry.explanation == nil && r.permission.refusal == nil || !describe(r, a) {
		return nil
	}
	at(r.telemetry.explanation, explaining.Mutation, a.Write)
	a.schema = objectSchema{r, a, s}
	a.attributes.Schema = &a.schema
	if mutates {
		r.scope.storage.Reveal(a.Write, false)
	}
	changes, err := eachSeen(r, a, mutateSeen)
	if s := r.telemetry.explanation; a.Conceal() && s != nil {
		s.Reread(a.Object)
	}
	if r.permission.refusal != nil {
		return forbid(r, r.permission.refusal)
	}
	if err != nil {
		countDenials(r)
		if late := undecided(r); late != nil {
			return late
		}
		return err
	}
	if changes == 0 {
		return nil
	}
	at(r.telemetry.explanation, explaining.Settle, a.Write)
	if limit := r.Limits.Body; int64(a.Object.Extent()) > limit {
		return status.RequestEntityTooLarge("the object as policies change it must be at most %d bytes", limit)
	}
	if err := identifyAgain(r, a, s); err != nil {
		return err
	}
	// What a policy sets and the schema does not know is no fault of the client, and is gone before it is validated.
	if schema := s.Schema(a.Write); schema != nil {
		if err := schema.PruneUnknown(a.Object); err != nil {
			return status.Internal("the policies made an object that cannot be read: %s", err.Error())
		}
	}
	if err := s.KeepStatus(a.Write); err != nil {
		return err
	}
	return setDefaults(r, a, s)
}

// policiesOf returns the policies that may match what is described.
func policiesOf(r *request) *admission.Scoped {
	return r.scope.rulesOf(r.attempt.attributes.Info).policies
}

// mutateSeen and validateSeen run the policies on the objects that they see.
func mutateSeen(r *request) error {
	return policiesOf(r).Mutate(r.context(), &r.attempt.attributes, &r.attempt.report)
}

func validateSeen(r *request) error {
	policiesOf(r).Validate(r.context(), &r.attempt.attributes, &r.attempt.report)
	return nil
}

// maxItems bounds how many items of a body policies see one after the other.
const maxItems = 1000

// eachSeen takes a step with the object as policies see it: whole, or item by item. What the step makes of an item
// takes the item's place in the body. It returns how often something was changed.
func eachSeen(r *request, a attempt, step func(*request) error) (changes int, err error) {
	body := a.Admitted()
	if !r.Resource.ShowsItems() || body == nil || body.Root().Kind() != document.Array {
		err = step(r)
		return a.attributes.Changes(), err
	}
	if body.Root().Len() > maxItems {
		return 0,
			status.RequestEntityTooLarge(
				"the body must have at most %d items, because policies see one after the other", maxItems)
	}
	defer func() { a.attributes.Object, a.attributes.Item = body, "" }()
	i := 0
	for n := body.Root().First(); n.Valid(); n = n.Next() {
		item, err := r.Parse(n.AppendRaw(nil), r.Limits.Sent)
		if err != nil {
			return changes, err
		}
		a.attributes.Object, a.attributes.Item = item, "["+strconv.Itoa(i)+"]"
		err = step(r)
		if item.Edited() {
			changes++
			n = body.Replace(n, item.AppendTo(nil))
		}
		item.Release()
		if err != nil {
			return changes, status.InItem(err, a.attributes.Item)
		}
		i++
	}
	return changes, nil
}

// identifyAgain checks the changed object against the URL. As in Kubernetes a policy may give
// another name to an object that is created, and none to one that exists.
func identifyAgain(r *request, a attempt, s storage.Storage) error {
	if a.Info.Verb == resource.VerbCreate {
		a.Info.Name = ""
		return s.Complete(a.Write)
	}
	path := resource.FieldPath{"metadata", "name"}
	if isBare(r) {
		path = r.Resource.Fields.Name
	}
	name, found := storage.Find(a.Object.Root(), path)
	if found && name.Kind() == document.String && !name.Is("") && !name.Is(a.Info.Name) &&
		!(isBare(r) && r.Resource.Writes.NameMayChange) {
		return r.Invalid(a.Info.Name, field.ErrorList{status.Immutable(name.Path(), storage.Short(name.Str()))}, 0)
	}
	return s.Complete(a.Write)
}

// isBare reports whether the object is one of a plain API.
func isBare(r *request) bool {
	return r.Resource != nil && r.Resource.Envelope == resource.Bare
}

// objectSchema gives mutating policies the schema of the object that they change. It implements
// admission.Schema.
type objectSchema struct {
	request *request
	attempt attempt
	storage storage.Storage
}

// SetDefaults implements admission.Schema.
func (o *objectSchema) SetDefaults() error { return setDefaults(o.request, o.attempt, o.storage) }

// MergeType implements admission.Schema.
func (o *objectSchema) MergeType(as schema.GroupVersionResource, kind schema.GroupVersionKind) *merge.Type {
	return o.request.scope.set.MergeType(as, kind)
}

// PatchLimits implements admission.Schema.
func (o *objectSchema) PatchLimits() document.Limits { return o.request.Limits.Sent }

// validateObject validates the object against its schema and the schema's rules, and against the conventions that
// policies ask for, and answers all failures at once (VAL-1).
func validateObject(r *request, a attempt, s storage.Storage) error {
	at(r.telemetry.explanation, explaining.Schema, a.Write)
	result, err := validateOnce(r, a, s)
	if err != nil {
		return err
	}
	if !result.Valid() && !a.Creates() && a.Existing.Object == nil {
		// What an update leaves as it was does not count, so the stored object may make the difference.
		if err := s.Get(a.Write); err != nil {
			return err
		}
		if result, err = validateOnce(r, a, s); err != nil {
			return err
		}
	}
	r.Warnings = append(r.Warnings, result.Warnings...)
	result.Errors = namedWith(r, result.Errors)
	if len(a.checked.DryRuns)+len(a.checked.Excepted) > 0 {
		noteConventions(r)
	}
	if result.Valid() {
		return nil
	}
	auditTerms(r) // nothing else is decided
	switch {
	case len(result.Errors) == 0:
		return status.Timeout("the request was over before its object was checked", 1)
	}
	countRefused(r, a.Info.Resource, result.Errors)
	return status.Detail(r.Invalid(shownName(a.Write), result.Errors, result.More), result.Details)
}

// countRefused counts what schemas refuse of a resource or a route. A request that is only tried is not refused.
func countRefused(r *request, of string, failures field.ErrorList) {
	if r.isShadow {
		return
	}
	for _, e := range failures {
		r.gateway.metrics.SchemaRefused(of, string(e.Type))
	}
}

// namedWith returns everything that is wrong with the request, by what is wrong with its object.
func namedWith(r *request, found field.ErrorList) field.ErrorList {
	return append(r.parameters[:len(r.parameters):len(r.parameters)], contract.Named(r.attempt.unread, found)...)
}

// shownName returns how an answer names the object, as in Kubernetes: by what its name is to be made of if it has
// none yet.
func shownName(w *storage.Write) string {
	if w.Info.Name != "" || w.Object == nil {
		return w.Info.Name
	}
	return storage.TextIn(storage.Metadata(w.Object), "generateName")
}

func validateOnce(r *request, a attempt, s storage.Storage) (result schemas.Result, err error) {
	if schema := s.Schema(a.Write); schema != nil {
		var f *cel.Frame
		if schema.HasRules() {
			f = r.frame()
			f.SetBudget(cel.PolicyBudget)
		}
		result = s.Validate(schema, f, a.Write)
		result.Errors = a.Faults(result.Errors)
	}
	if failures := s.ValidateMetadata(a.Write); len(failures) > 0 {
		result.Errors = append(failures, result.Errors...)
	}
	if operation := a.Info.Verb.Operation(); operation != 0 && r.scope.rulesOf(&a.Info).conventions.Concern(&a.Info,
		operation) {
		err = checkConventions(r, a, s, &result)
	}
	return result, err
}

// checkConventions adds to the result of validation what policies find that breaks the API conventions.
func checkConventions(r *request, a attempt, s storage.Storage, result *schemas.Result) error {
	operation, _ := operationOf(a.Write)
	describeAs(r, a, operation)
	o := conventions.Object{Root: a.Object.Root(), Bare: isBare(r), Schema: s.Schema(a.Write), Status: s.StatusPath(),
		Old: a.Existing.Root()}
	switch {
	case a.Info.Subresource == "status":
		o.Part = conventions.StatusAlone
		if o.Status == nil {
			o.Status = storage.KubernetesStatus
		}
	case o.Status != nil:
		o.Part = conventions.WithoutStatus
	case !o.Bare:
		// Nothing keeps clients from writing a status that the resource does not set apart.
		if _, found := o.Root.Get("status"); found {
			o.Status = storage.KubernetesStatus
		}
	}
	found, err := r.scope.rulesOf(&a.Info).conventions.Check(r.context(), &a.attributes, o)
	if err != nil {
		var answer *status.Error
		if errors.As(err, &answer) {
			return answer
		}
		return status.Internal("a ConventionPolicy cannot decide if it is about the request: %v", err)
	}
	a.checked.DryRuns, a.checked.Excepted = found.DryRuns, found.Excepted
	for _, f := range found.Errors {
		// A field that its schema refuses already, such as a date, is not refused twice.
		if !slices.ContainsFunc(result.Errors, func(e *field.Error) bool { return e.Field == f.Field }) {
			result.Errors = append(result.Errors, f)
		}
	}
	result.More += found.More
	result.Warnings = append(result.Warnings, found.Warnings...)
	return nil
}

// validate runs every validating policy that concerns the write.
func validate(r *request, a attempt) error {
	if !describe(r, a) {
		if !a.report.IsEmpty() {
			auditTerms(r) // of conventions
		}
		return nil
	}
	at(r.telemetry.explanation, explaining.Policies, a.Write)
	r.scope.storage.Reveal(a.Write, true)
	if _, err := eachSeen(r, a, validateSeen); err != nil {
		return err
	}
	err := decide(r, a)
	if err != nil && a.Result != nil {
		r.PreviewWarnings()
	}
	return err
}

// collect runs the policies that match the deletion of one object of several.
func collect(r *request, a attempt) {
	if describe(r, a) {
		policiesOf(r).Validate(r.context(), &a.attributes, &a.report)
	}
	noteKind(r)
	a.attributes.Old = nil // which does not last until the decision
}

// validateAs runs the policies that match an operation other than the verb's own.
func validateAs(r *request, a attempt, operation admission.Operation) {
	describeAs(r, a, operation)
	policiesOf(r).Validate(r.context(), &a.attributes, &a.report)
}

// decide returns the decision of the policies.
func decide(r *request, a attempt) error {
	if r.permission.refusal != nil {
		return forbid(r, r.permission.refusal)
	}
	if s := r.telemetry.spans; s != nil {
		s.EndAdmission()
	}
	r.Warnings = append(r.Warnings, a.report.Warnings()...)
	if a.report.IsEmpty() {
		return nil
	}
	auditReport(r)
	if err := undecided(r); err != nil {
		return err
	}
	if err := a.report.Err(&a.attributes); err != nil {
		return err
	}
	return nil
}

// forget drops what policies found of the attempt.
func (a attempt) forget() { a.report.Reset() }

// describe gathers what policies can know of the write. It reports whether any concerns it.
func describe(r *request, a attempt) bool {
	operation, ok := operationOf(a.Write)
	if !ok || !r.scope.rulesOf(&a.Info).policies.Concerns(&a.Info, operation) {
		if ok && r.telemetry.explanation != nil { // which says why none does
			describeAs(r, a, operation)
		}
		return false
	}
	describeAs(r, a, operation)
	return true
}

// operationOf returns what the write does to the object.
func operationOf(w *storage.Write) (admission.Operation, bool) {
	operation := w.Info.Verb.Operation()
	isWrite := operation != 0
	if operation == admission.Update && w.Existing.IsAbsent {
		operation = admission.Create
	}
	return operation, isWrite
}

// describeAs gathers what policies can know of the write.
func describeAs(r *request, a attempt, operation admission.Operation) {
	to := &a.attributes
	to.Info, to.Resource, to.Served = &a.Info, r.Resource, r.Served
	to.Received = r.gateway.timeOf(r.Request)
	to.Operation, to.User, to.HTTP = operation, &r.who.user, (*storage.HTTP)(r.Request)
	to.Object, to.Old = a.Admitted(), a.Existing.Object
	if operation == admission.Delete {
		to.Object = nil
	}
	a.options = operationOptions{r.scope.storage, a.Write, operation}
	to.Options = &a.options
	a.referred.Begin(r.context(), r.scope.set, r.gateway.states, r.scope.backend, &a.Info, (*gate)(r), r.Deadline())
	to.Lookup = &a.referred
	to.DryRun, to.HasGeneratedName = a.Info.Options.DryRun, a.HasGeneratedName
	r.frame()
	if s := r.telemetry.explanation; s != nil {
		a.report.Recorder = s
		s.See(to)
	}
}

// operationOptions are the options of a write, which the storage makes when a policy first reads them. They implement
// cel.Options.
type operationOptions struct {
	storage   storage.Storage
	write     *storage.Write
	operation admission.Operation
}

// Options implements cel.Options.
func (o *operationOptions) Options() (document.Node, error) {
	return o.storage.OperationOptions(o.write, o.operation)
}

// frame returns what CEL is evaluated in, taken on first use; evaluations end when the client's own deadline
// passes.
func (r *request) frame() *cel.Frame {
	if r.attempt.attributes.Frame == nil {
		r.attempt.attributes.Frame = cel.NewFrame(r.context())
		r.attempt.attributes.Frame.SetDeadline(r.Deadline())
		r.attempt.attributes.Frame.SetMemory(r.Memory)
		if s := r.telemetry.explanation; s != nil {
			r.attempt.attributes.Frame.Trace(s)
		}
	}
	return r.attempt.attributes.Frame
}
