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

// An observer counts and traces the decisions of policies about a request, and logs them. It implements admission.Observer
// and admission.DecisionLogger.
type observer request

// Decided implements admission.Observer.
func (o *observer) Decided(place int, policy, binding string, v admission.Verdict, cost int64) {
	o.scope.decided.Decided(place, policy, string(v), cost)
	if s := o.trail.spans; s != nil {
		s.Decided(tracing.Verdict{Policy: policy, Binding: binding, Verdict: string(v)}, cost)
	}
}

// LogDecision implements admission.DecisionLogger.
func (o *observer) LogDecision(e *admission.Evaluation) {
	log := o.gateway.observers.decisions
	if o.trail.number == 0 {
		o.trail.number = log.NextRequest()
	}
	in := o.gateway.inForce(o.scope.set)
	about := decisions.Request{Number: o.trail.number, ID: o.trail.record.ID, Configuration: in.Configuration, Policies: in.Policies}
	if o.who.client.IsValid() {
		about.Client = o.who.client.String()
	}
	if t := &o.trail.record.Trace; t.Sampled {
		about.Trace, about.Span = hex.EncodeToString(t.ID[:]), hex.EncodeToString(t.Span[:])
	}
	log.Add(e, &about)
}

// beginFindings prepares for policies and schemas. What they find of a shadow is in no metric and no log: they do not refuse
// the request.
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
func (r *request) context() context.Context { return r.trail.context(r.Client) }

// complete checks the object against the URL, and removes the fields that its schema does not know.
// It says so as far as the request or the resource asks for it.
func complete(r *request, w *storage.Write) error {
	at(r.trail.story, explaining.URL, w)
	if err := r.scope.storage.Complete(w); err != nil {
		return err
	}
	if err := prune(r, w); err != nil {
		return err
	}
	operation := w.Info.Verb.Operation()
	if rules := r.scope.rulesOf(&w.Info); storage.IsConcerned(rules.policies, &w.Info) || rules.conventions.Concern(&w.Info, operation) {
		if err := r.scope.storage.CheckKeys(w); err != nil {
			return err
		}
	}
	at(r.trail.story, explaining.Prepare, w)
	return nil
}

// prune takes out of the object what its schema does not know.
func prune(r *request, w *storage.Write) error {
	s := r.scope.storage.Schema(w)
	if s == nil {
		return nil
	}
	r.attempt.unknown = schemas.Unknown{}
	unknown := &r.attempt.unknown
	if err := s.Prune(w.Object, unknown); err != nil {
		return w.Unreadable(err.Error())
	}
	r.Warnings = append(r.Warnings, unknown.Nulls()...)
	if w.IsKnown = !unknown.Any(); w.IsKnown {
		return nil
	}
	described := r.Resource
	switch w.FieldValidation() {
	case resource.FieldValidationStrict:
		return w.Unreadable(fmt.Sprintf("%s in version %q cannot be handled as a %s: %s", described.Names.Kind, described.Version, described.Names.Kind, unknown.Error()))
	case resource.FieldValidationWarn:
		r.Warnings = append(r.Warnings, unknown.Messages()...)
	}
	return nil
}

// keepOwned gives members that the API itself sets the values that are stored, and takes them out of new objects. It says
// so as it does of unknown fields.
func keepOwned(r *request, s storage.Storage, w *storage.Write) error {
	verb := w.Info.Verb
	if w.Creates() {
		verb = resource.VerbCreate
	}
	owned := r.scope.set.Owned(r.Resource, verb)
	switch {
	case w.Declared != nil:
		owned = w.Declared.Owned
	case !owned.Any() && w.DeclaredPatch != nil:
		owned = w.DeclaredPatch.Owned
	}
	if !owned.Any() || w.Info.Subresource != "" {
		return nil
	}
	changed := changesOwned(r, owned, w)
	if len(changed) == 0 {
		return nil
	}
	if !w.Creates() && w.Existing.Object == nil && !w.Existing.IsAbsent {
		if err := s.Get(w); err != nil {
			return err
		}
		if changed = changesOwned(r, owned, w); len(changed) == 0 {
			return nil
		}
	}
	var failures field.ErrorList
	for _, c := range changed {
		path := c.sent.Path()
		switch w.FieldValidation() {
		case resource.FieldValidationStrict:
			failures = append(failures, &field.Error{Type: field.ErrorTypeForbidden, Field: path, BadValue: "", Detail: "may not be set: the API itself sets it"})
			continue
		case resource.FieldValidationWarn:
			r.Warnings = append(r.Warnings, fmt.Sprintf("read-only field %q is not taken: the API itself sets it", path))
		}
		if c.stored.Valid() {
			w.Object.Replace(c.sent, c.stored.AppendRaw(nil))
		} else {
			w.Object.Remove(c.sent)
		}
	}
	if len(failures) > 0 {
		return r.Invalid(w.Info.Name, failures, 0)
	}
	return nil
}

// ownedChange is a member that the API itself sets, as a client sent it and as it is stored.
type ownedChange struct{ sent, stored document.Node }

// changesOwned returns the members that the API itself sets and that are not sent as they are
// stored. The name in the URL is not one of them: it was compared already.
func changesOwned(r *request, owned *contract.Members, w *storage.Write) (changed []ownedChange) {
	root := w.Object.Root()
	name, _ := storage.Find(root, r.Resource.Fields.Name)
	owned.Each(root, w.Existing.Root(), func(sent, stored document.Node) {
		if w.Info.Verb == resource.VerbCreate || sent != name {
			changed = append(changed, ownedChange{sent, stored})
		}
	})
	return changed
}

// setDefaults sets what the schema has a default for and the object leaves unset (DEF-1, DEF-5): literal
// defaults first, then those that are computed from the object (DEF-2). Validation reports the fields for which no
// default can be computed, with everything else that is wrong.
func setDefaults(r *request, s storage.Storage, w *storage.Write) error {
	at(r.trail.story, explaining.Defaults, w)
	schema, limit := s.Schema(w), int(r.Limits.Body)
	if schema == nil {
		return nil
	}
	w.Underived = nil
	if w.Shown != storage.ShownNothing {
		if !schema.Root().HasDefaults() && len(schema.Derived()) == 0 || defaults.IsComplete(w.Object, schema) {
			return nil
		}
		return setIntroduced(r, w, schema, limit)
	}
	return fillIn(r, w, w.Object, schema, document.Node{}, limit)
}

// fillIn sets the defaults of an object; what the backend has shown of it may be an invalid node.
func fillIn(r *request, w *storage.Write, object *document.Document, of *schemas.Schema, shown document.Node, limit int) error {
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
		failures = append(failures, field.Invalid(nil, field.OmitValueType{}, "the defaults of the object cannot all be computed: "+err.Error()))
	}
	w.Underived = failures
	return nil
}

// setIntroduced sets the defaults of what the write itself brings into an object of which the backend has shown the rest.
func setIntroduced(r *request, w *storage.Write, of *schemas.Schema, limit int) error {
	filled := w.Object.Clone()
	defer filled.Release()
	shown := w.Existing.Root()
	if w.Shown == storage.ShownStatus {
		shown = document.Node{}
	}
	err := fillIn(r, w, filled, of, shown, limit)
	switch {
	case filled.Err() != nil:
		return r.Exhausted() // whatever came of filling it
	case err != nil:
		return err
	case !filled.Edited():
		return nil
	}
	if w.Shown == storage.ShownStatus {
		withholdAt(filled, w.Object, r.scope.storage.StatusPath())
	} else {
		changeOf(w).Withhold(filled.Root(), w.Object.Root(), shown)
	}
	if !document.EqualNodes(filled.Root(), w.Object.Root()) {
		w.Object.Replace(w.Object.Root(), filled.AppendTo(nil))
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
	return status.RequestEntityTooLarge("the object with the defaults of what it leaves unset must be at most %d bytes", limit)
}

// mutate lets the mutating policies change the object. Their result must meet the same rules as a
// client's object: the URL names it, policies may not set its status, and unset fields get defaults.
func mutate(r *request, s storage.Storage, w *storage.Write) error {
	operation, _ := operationOf(w)
	mutates := r.scope.rulesOf(&w.Info).policies.Mutates(&w.Info, operation)
	if !mutates && r.trail.story == nil && r.permission.refusal == nil || !describe(r, w) {
		return nil
	}
	at(r.trail.story, explaining.Mutation, w)
	r.attempt.schema = objectSchema{r, s, w}
	r.attempt.attributes.Schema = &r.attempt.schema
	if mutates {
		r.scope.storage.Reveal(w, false)
	}
	changes, err := eachSeen(r, w, mutateSeen)
	if w.Reveals {
		w.Conceal()
		if s := r.trail.story; s != nil {
			s.Reread(w.Object)
		}
	}
	if r := r; r.permission.refusal != nil {
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
	at(r.trail.story, explaining.Settle, w)
	if limit := r.Limits.Body; int64(w.Object.Extent()) > limit {
		return status.RequestEntityTooLarge("the object as policies change it must be at most %d bytes", limit)
	}
	if err := identifyAgain(r, s, w); err != nil {
		return err
	}
	// What a policy sets and the schema does not know is no fault of the client, and is gone before it is validated.
	if schema := s.Schema(w); schema != nil {
		if err := schema.PruneUnknown(w.Object); err != nil {
			return status.Internal("the policies made an object that cannot be read: %s", err.Error())
		}
	}
	if err := s.KeepStatus(w); err != nil {
		return err
	}
	return setDefaults(r, s, w)
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

// eachSeen takes a step with the object as policies see it: whole, or item by item. What the step makes of an item takes
// the item's place in the body. It returns how often something was changed.
func eachSeen(r *request, w *storage.Write, step func(*request) error) (changes int, err error) {
	body := w.Admitted()
	if !r.Resource.ShowsItems() || body == nil || body.Root().Kind() != document.Array {
		err = step(r)
		return r.attempt.attributes.Changes(), err
	}
	if body.Root().Len() > maxItems {
		return 0, status.RequestEntityTooLarge("the body must have at most %d items, because policies see one after the other", maxItems)
	}
	defer func() { r.attempt.attributes.Object, r.attempt.attributes.Item = body, "" }()
	i := 0
	for n := body.Root().First(); n.Valid(); n = n.Next() {
		item, err := r.Parse(n.AppendRaw(nil), r.Limits.Sent)
		if err != nil {
			return changes, err
		}
		r.attempt.attributes.Object, r.attempt.attributes.Item = item, "["+strconv.Itoa(i)+"]"
		err = step(r)
		if item.Edited() {
			changes++
			n = body.Replace(n, item.AppendTo(nil))
		}
		item.Release()
		if err != nil {
			return changes, status.InItem(err, r.attempt.attributes.Item)
		}
		i++
	}
	return changes, nil
}

// identifyAgain checks the changed object against the URL. As in Kubernetes a policy may give
// another name to an object that is created, and none to one that exists.
func identifyAgain(r *request, s storage.Storage, w *storage.Write) error {
	if w.Info.Verb == resource.VerbCreate {
		w.Info.Name = ""
		return s.Complete(w)
	}
	path := resource.FieldPath{"metadata", "name"}
	if isBare(r) {
		path = r.Resource.Fields.Name
	}
	name, found := storage.Find(w.Object.Root(), path)
	if found && name.Kind() == document.String && !name.Is("") && !name.Is(w.Info.Name) && !(isBare(r) && r.Resource.Writes.NameMayChange) {
		return r.Invalid(w.Info.Name, field.ErrorList{status.Immutable(name.Path(), storage.Short(name.Str()))}, 0)
	}
	return s.Complete(w)
}

// isBare reports whether the object is one of a plain API.
func isBare(r *request) bool {
	return r.Resource != nil && r.Resource.Envelope == resource.Bare
}

// objectSchema gives mutating policies the schema of the object that they change. It implements
// admission.Schema.
type objectSchema struct {
	request *request
	storage storage.Storage
	write   *storage.Write
}

// SetDefaults implements admission.Schema.
func (o *objectSchema) SetDefaults() error { return setDefaults(o.request, o.storage, o.write) }

// MergeType implements admission.Schema.
func (o *objectSchema) MergeType(as schema.GroupVersionResource, kind schema.GroupVersionKind) *merge.Type {
	return o.request.scope.set.MergeType(as, kind)
}

// PatchLimits implements admission.Schema.
func (o *objectSchema) PatchLimits() document.Limits { return o.request.Limits.Sent }

// validateObject validates the object against its schema and the schema's rules, and against the conventions that
// policies ask for, and answers all failures at once (VAL-1).
func validateObject(r *request, s storage.Storage, w *storage.Write) error {
	at(r.trail.story, explaining.Schema, w)
	result, err := validateOnce(r, s, w)
	if err != nil {
		return err
	}
	if !result.Valid() && !w.Creates() && w.Existing.Object == nil {
		// What an update leaves as it was does not count, so the stored object may make the difference.
		if err := s.Get(w); err != nil {
			return err
		}
		if result, err = validateOnce(r, s, w); err != nil {
			return err
		}
	}
	r.Warnings = append(r.Warnings, result.Warnings...)
	result.Errors = namedWith(r, result.Errors)
	if len(r.attempt.checked.Trials)+len(r.attempt.checked.Excepted) > 0 {
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
	countRefused(r, w.Info.Resource, result.Errors)
	return status.Detail(r.Invalid(shownName(w), result.Errors, result.More), result.Details)
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

func validateOnce(r *request, s storage.Storage, w *storage.Write) (result schemas.Result, err error) {
	if schema := s.Schema(w); schema != nil {
		var f *cel.Frame
		if schema.HasRules() {
			f = r.frame()
			f.SetBudget(cel.PolicyBudget)
		}
		result = s.Validate(schema, f, w)
		result.Errors = w.Faults(result.Errors)
	}
	if failures := s.ValidateMetadata(w); len(failures) > 0 {
		result.Errors = append(failures, result.Errors...)
	}
	if operation := w.Info.Verb.Operation(); operation != 0 && r.scope.rulesOf(&w.Info).conventions.Concern(&w.Info, operation) {
		err = checkConventions(r, s, w, &result)
	}
	return result, err
}

// checkConventions adds to the result of validation what policies find that breaks the API conventions.
func checkConventions(r *request, s storage.Storage, w *storage.Write, result *schemas.Result) error {
	operation, _ := operationOf(w)
	describeAs(r, w, operation)
	o := conventions.Object{Root: w.Object.Root(), Bare: isBare(r), Schema: s.Schema(w), Status: s.StatusPath(), Old: w.Existing.Root()}
	switch {
	case w.Info.Subresource == "status":
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
	found, err := r.scope.rulesOf(&w.Info).conventions.Check(r.context(), &r.attempt.attributes, o)
	if err != nil {
		var answer *status.Error
		if errors.As(err, &answer) {
			return answer
		}
		return status.Internal("a ConventionPolicy cannot decide if it is about the request: %v", err)
	}
	r.attempt.checked.Trials, r.attempt.checked.Excepted = found.Trials, found.Excepted
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
func validate(r *request, w *storage.Write) error {
	if !describe(r, w) {
		if !r.attempt.report.IsEmpty() {
			auditTerms(r) // of conventions
		}
		return nil
	}
	at(r.trail.story, explaining.Policies, w)
	r.scope.storage.Reveal(w, true)
	if _, err := eachSeen(r, w, validateSeen); err != nil {
		return err
	}
	err := decide(r)
	if err != nil && w.Result != nil {
		r.PreviewWarnings()
	}
	return err
}

// collect runs the policies that match the deletion of one object of several.
func collect(r *request, w *storage.Write) {
	if describe(r, w) {
		policiesOf(r).Validate(r.context(), &r.attempt.attributes, &r.attempt.report)
	}
	noteKind(r)
	r.attempt.attributes.Old = nil // which does not last until the decision
}

// validateAs runs the policies that match an operation other than the verb's own.
func validateAs(r *request, w *storage.Write, operation admission.Operation) {
	describeAs(r, w, operation)
	policiesOf(r).Validate(r.context(), &r.attempt.attributes, &r.attempt.report)
}

// decide returns the decision of the policies.
func decide(r *request) error {
	if r := r; r.permission.refusal != nil {
		return forbid(r, r.permission.refusal)
	}
	if s := r.trail.spans; s != nil {
		s.EndAdmission()
	}
	r.Warnings = append(r.Warnings, r.attempt.report.Warnings()...)
	if r.attempt.report.IsEmpty() {
		return nil
	}
	auditReport(r)
	if err := undecided(r); err != nil {
		return err
	}
	if err := r.attempt.report.Err(&r.attempt.attributes); err != nil {
		return err
	}
	return nil
}

// forget drops what policies found.
func forget(r *request) { r.attempt.report.Reset() }

// describe gathers what policies can know of the write. It reports whether any concerns it.
func describe(r *request, w *storage.Write) bool {
	operation, ok := operationOf(w)
	if !ok || !r.scope.rulesOf(&w.Info).policies.Concerns(&w.Info, operation) {
		if ok && r.trail.story != nil { // which says why none does
			describeAs(r, w, operation)
		}
		return false
	}
	describeAs(r, w, operation)
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
func describeAs(r *request, w *storage.Write, operation admission.Operation) {
	to := &r.attempt.attributes
	to.Info, to.Resource, to.Served = &w.Info, r.Resource, r.Served
	to.Received = r.gateway.timeOf(r.Request)
	to.Operation, to.User, to.HTTP = operation, &r.who.user, (*storage.HTTP)(r.Request)
	to.Object, to.Old = w.Admitted(), w.Existing.Object
	if operation == admission.Delete {
		to.Object = nil
	}
	r.attempt.options = operationOptions{r.scope.storage, w, operation}
	to.Options = &r.attempt.options
	r.attempt.referred.Begin(r.context(), r.scope.set, r.gateway.states, r.scope.backend, &w.Info, (*gate)(r), r.Deadline())
	to.Lookup = &r.attempt.referred
	to.DryRun, to.HasGeneratedName = w.Info.Options.DryRun, w.HasGeneratedName
	r.frame()
	if s := r.trail.story; s != nil {
		r.attempt.report.Recorder = s
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
		if s := r.trail.story; s != nil {
			r.attempt.attributes.Frame.Trace(s)
		}
	}
	return r.attempt.attributes.Frame
}
