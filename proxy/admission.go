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

// An admitter completes, defaults, mutates and validates the objects of one request, by the schema of its
// storage and by the policies of the set in force.
type admitter struct {
	admitted

	// What the requests after this one use again.
	report   admission.Report  // what policies find
	referred policies.Referred // what they refer to
	outside  outside           // which policies do not match the request
}

// admitted is what an admitter forgets with the request.
type admitted struct {
	gateway *Gateway
	scope   *scope
	request *storage.Request
	who     *who
	trail   *trail
	// permission keeps from clients that may not write what policies find.
	permission *permission

	parameters field.ErrorList      // what is wrong with the parameters of a request with an object
	wrong      []string             // the parameters among what is wrong, by their fields
	unread     field.ErrorList      // what is wrong with the fields of a form before its object is looked at
	attributes admission.Attributes // what policies see
	options    operationOptions     // the options of the operation, as policies see them
	schema     objectSchema         // the schema that mutating policies use
	kind       string               // of the object, if policies found something that is recorded as an Event
	number     uint64               // of the request in the decision log; 0 until it has a decision
	checked    conventions.Result   // the results of conventions that are only tried, or were not evaluated
	// isRehearsal reports whether the request is only tried.
	isRehearsal bool
	// unknown are the members of the object that its schema does not have.
	unknown schemas.Unknown
}

// noteWrong keeps which parameters are wrong, for templates of refusals.
func (a *admitter) noteWrong(parameters field.ErrorList) {
	for _, f := range parameters {
		a.wrong = append(a.wrong, f.Field)
	}
}

// Decided implements admission.Observer.
func (a *admitter) Decided(place int, policy, binding string, v admission.Verdict, cost int64) {
	a.scope.decided.Decided(place, policy, string(v), cost)
	if s := a.trail.spans; s != nil {
		s.Decided(tracing.Verdict{Policy: policy, Binding: binding, Verdict: string(v)}, cost)
	}
}

// context returns the request's context, with its trace.
func (a *admitter) context() context.Context {
	if a.trail == nil {
		return context.Background()
	}
	return a.trail.context(a.request.Client)
}

// story records the request; nil if no explanation is wanted.
func (a *admitter) story() *explaining.Recorder {
	if a.trail == nil {
		return nil
	}
	return a.trail.story
}

// LogDecision implements admission.DecisionLogger.
func (a *admitter) LogDecision(e *admission.Evaluation) {
	log := a.gateway.observers.decisions
	if a.number == 0 {
		a.number = log.NextRequest()
	}
	in := a.gateway.inForce(a.scope.set)
	r := decisions.Request{Number: a.number, ID: a.trail.record.ID, Configuration: in.Configuration, Policies: in.Policies}
	if a.who.client.IsValid() {
		r.Client = a.who.client.String()
	}
	if t := &a.trail.record.Trace; t.Sampled {
		r.Trace, r.Span = hex.EncodeToString(t.ID[:]), hex.EncodeToString(t.Span[:])
	}
	log.Add(e, &r)
}

// begin prepares for a request.
func (a *admitter) begin(h *handler) {
	a.gateway, a.scope, a.request, a.who, a.trail, a.permission = h.gateway, h.scope, h.request, &h.who, h.trail, &h.permission
	a.report.Observer = a
	a.attributes.IsUncounted, a.outside.attributes.IsUncounted = h.gateway.isUncounted, h.gateway.isUncounted
	if h.gateway.observers.decisions != nil {
		a.report.Decisions = a
	}
}

// foresee lets the policies be asked before an object is read, if that may spare it. A new object is all in the request.
func (a *admitter) foresee() {
	i := &a.request.Info
	a.outside.admitter = a
	i.Foresight = &a.outside
}

// rehearse keeps the findings of policies and schemas out of metrics and logs: they do not refuse the request.
func (a *admitter) rehearse() {
	a.isRehearsal, a.report.Observer, a.report.Decisions = true, nil, nil
}

// reset forgets the request.
func (a *admitter) reset() {
	a.report.Reset()
	if a.gateway == nil {
		return // it has not begun
	}
	if a.attributes.Frame != nil {
		a.attributes.Frame.Release()
	}
	a.report.Observer, a.report.Decisions, a.report.Recorder = nil, nil, nil
	a.referred.Reset()
	if a.outside.admitter != nil {
		a.outside.reset()
	}
	made := a.attributes.Forget()
	a.admitted = admitted{}
	a.attributes.Made = made
}

// Complete checks the object against the URL, and removes the fields that its schema does not know.
// It says so as far as the request or the resource asks for it.
func (a *admitter) Complete(w *storage.Write) error {
	at(a.story(), explaining.URL, w)
	if err := a.scope.storage.Complete(w); err != nil {
		return err
	}
	if err := a.prune(w); err != nil {
		return err
	}
	operation := w.Info.Verb.Operation()
	if rules := a.scope.rulesOf(&w.Info); storage.IsConcerned(rules.policies, &w.Info) || rules.conventions.Concern(&w.Info, operation) {
		if err := a.scope.storage.CheckKeys(w); err != nil {
			return err
		}
	}
	at(a.story(), explaining.Prepare, w)
	return nil
}

// prune takes out of the object what its schema does not know.
func (a *admitter) prune(w *storage.Write) error {
	s := a.scope.storage.Schema(w)
	if s == nil {
		return nil
	}
	a.unknown = schemas.Unknown{}
	unknown := &a.unknown
	if err := s.Prune(w.Object, unknown); err != nil {
		return w.Unreadable(err.Error())
	}
	a.request.Warnings = append(a.request.Warnings, unknown.Nulls()...)
	if w.IsKnown = !unknown.Any(); w.IsKnown {
		return nil
	}
	r := a.request.Resource
	switch w.FieldValidation() {
	case resource.FieldValidationStrict:
		return w.Unreadable(fmt.Sprintf("%s in version %q cannot be handled as a %s: %s", r.Names.Kind, r.Version, r.Names.Kind, unknown.Error()))
	case resource.FieldValidationWarn:
		a.request.Warnings = append(a.request.Warnings, unknown.Messages()...)
	}
	return nil
}

// keepOwned gives members that the API itself sets the values that are stored, and takes them out of new objects. It says
// so as it does of unknown fields.
func (a *admitter) keepOwned(s storage.Storage, w *storage.Write) error {
	verb := w.Info.Verb
	if w.Creates() {
		verb = resource.VerbCreate
	}
	owned := a.scope.set.Owned(a.request.Resource, verb)
	switch {
	case w.Declared != nil:
		owned = w.Declared.Owned
	case !owned.Any() && w.DeclaredPatch != nil:
		owned = w.DeclaredPatch.Owned
	}
	if !owned.Any() || w.Info.Subresource != "" {
		return nil
	}
	changed := a.changesOwned(owned, w)
	if len(changed) == 0 {
		return nil
	}
	if !w.Creates() && w.Existing.Object == nil && !w.Existing.IsAbsent {
		if err := s.Get(w); err != nil {
			return err
		}
		if changed = a.changesOwned(owned, w); len(changed) == 0 {
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
			a.request.Warnings = append(a.request.Warnings, fmt.Sprintf("read-only field %q is not taken: the API itself sets it", path))
		}
		if c.stored.Valid() {
			w.Object.Replace(c.sent, c.stored.AppendRaw(nil))
		} else {
			w.Object.Remove(c.sent)
		}
	}
	if len(failures) > 0 {
		return a.request.Invalid(w.Info.Name, failures, 0)
	}
	return nil
}

// ownedChange is a member that the API itself sets, as a client sent it and as it is stored.
type ownedChange struct{ sent, stored document.Node }

// changesOwned returns the members that the API itself sets and that are not sent as they are
// stored. The name in the URL is not one of them: it was compared already.
func (a *admitter) changesOwned(owned *contract.Members, w *storage.Write) (changed []ownedChange) {
	root := w.Object.Root()
	name, _ := storage.Find(root, a.request.Resource.Fields.Name)
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
func (a *admitter) setDefaults(s storage.Storage, w *storage.Write) error {
	at(a.story(), explaining.Defaults, w)
	schema, limit := s.Schema(w), int(a.request.Limits.Body)
	if schema == nil {
		return nil
	}
	w.Underived = nil
	if w.Shown != storage.ShownNothing {
		if !schema.Root().HasDefaults() && len(schema.Derived()) == 0 || defaults.IsComplete(w.Object, schema) {
			return nil
		}
		return a.setIntroduced(w, schema, limit)
	}
	return a.fillIn(w, w.Object, schema, document.Node{}, limit)
}

// fillIn sets the defaults of an object; what the backend has shown of it may be an invalid node.
func (a *admitter) fillIn(w *storage.Write, object *document.Document, of *schemas.Schema, shown document.Node, limit int) error {
	if !defaults.ApplyWithin(object, of, limit) {
		return tooLargeDefaulted(limit)
	}
	if len(of.Derived()) == 0 {
		return nil
	}
	failures, err := defaults.DeriveSince(a.frame(), object, of, shown, limit)
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
func (a *admitter) setIntroduced(w *storage.Write, of *schemas.Schema, limit int) error {
	filled := w.Object.Clone()
	defer filled.Release()
	shown := w.Existing.Root()
	if w.Shown == storage.ShownStatus {
		shown = document.Node{}
	}
	err := a.fillIn(w, filled, of, shown, limit)
	switch {
	case filled.Err() != nil:
		return a.request.Exhausted() // whatever came of filling it
	case err != nil:
		return err
	case !filled.Edited():
		return nil
	}
	if w.Shown == storage.ShownStatus {
		withholdAt(filled, w.Object, a.scope.storage.StatusPath())
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
func (a *admitter) mutate(s storage.Storage, w *storage.Write) error {
	operation, _ := operationOf(w)
	mutates := a.scope.rulesOf(&w.Info).policies.Mutates(&w.Info, operation)
	if !mutates && a.story() == nil && a.permission.refusal == nil || !a.describe(w) {
		return nil
	}
	at(a.story(), explaining.Mutation, w)
	a.schema = objectSchema{a, s, w}
	a.attributes.Schema = &a.schema
	if mutates {
		a.scope.storage.Reveal(w, false)
	}
	changes, err := a.seen(w, (*admitter).mutateSeen)
	if w.Reveals {
		w.Conceal()
		if s := a.story(); s != nil {
			s.Reread(w.Object)
		}
	}
	if p := a.permission; p.refusal != nil {
		return p.forbid(p.refusal)
	}
	if err != nil {
		a.countDenials()
		if late := a.undecided(); late != nil {
			return late
		}
		return err
	}
	if changes == 0 {
		return nil
	}
	at(a.story(), explaining.Settle, w)
	if limit := a.request.Limits.Body; int64(w.Object.Extent()) > limit {
		return status.RequestEntityTooLarge("the object as policies change it must be at most %d bytes", limit)
	}
	if err := a.identifyAgain(s, w); err != nil {
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
	return a.setDefaults(s, w)
}

// policies returns the policies that may match what is described.
func (a *admitter) policies() *admission.Scoped { return a.scope.rulesOf(a.attributes.Info).policies }

// mutateSeen and validateSeen run the policies on the objects that they see.
func (a *admitter) mutateSeen() error {
	return a.policies().Mutate(a.context(), &a.attributes, &a.report)
}

func (a *admitter) validateSeen() error {
	a.policies().Validate(a.context(), &a.attributes, &a.report)
	return nil
}

// maxItems bounds how many items of a body policies see one after the other.
const maxItems = 1000

// seen takes a step with the object as policies see it: whole, or item by item. What the step makes of an item takes
// the item's place in the body. It returns how often something was changed.
func (a *admitter) seen(w *storage.Write, step func(*admitter) error) (changes int, err error) {
	body := w.Admitted()
	if !a.request.Resource.ShowsItems() || body == nil || body.Root().Kind() != document.Array {
		err = step(a)
		return a.attributes.Changes(), err
	}
	if body.Root().Len() > maxItems {
		return 0, status.RequestEntityTooLarge("the body must have at most %d items, because policies see one after the other", maxItems)
	}
	defer func() { a.attributes.Object, a.attributes.Item = body, "" }()
	i := 0
	for n := body.Root().First(); n.Valid(); n = n.Next() {
		item, err := a.request.Parse(n.AppendRaw(nil), a.request.Limits.Sent)
		if err != nil {
			return changes, err
		}
		a.attributes.Object, a.attributes.Item = item, "["+strconv.Itoa(i)+"]"
		err = step(a)
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
func (a *admitter) identifyAgain(s storage.Storage, w *storage.Write) error {
	if w.Info.Verb == resource.VerbCreate {
		w.Info.Name = ""
		return s.Complete(w)
	}
	path := resource.FieldPath{"metadata", "name"}
	if a.isBare() {
		path = a.request.Resource.Fields.Name
	}
	name, found := storage.Find(w.Object.Root(), path)
	if found && name.Kind() == document.String && !name.Is("") && !name.Is(w.Info.Name) && !(a.isBare() && a.request.Resource.Writes.NameMayChange) {
		return a.request.Invalid(w.Info.Name, field.ErrorList{status.Immutable(name.Path(), storage.Short(name.Str()))}, 0)
	}
	return s.Complete(w)
}

// isBare reports whether the object is one of a plain API.
func (a *admitter) isBare() bool {
	return a.request.Resource != nil && a.request.Resource.Envelope == resource.Bare
}

// objectSchema gives mutating policies the schema of the object that they change. It implements
// admission.Schema.
type objectSchema struct {
	admitter *admitter
	storage  storage.Storage
	write    *storage.Write
}

// SetDefaults implements admission.Schema.
func (o *objectSchema) SetDefaults() error { return o.admitter.setDefaults(o.storage, o.write) }

// MergeType implements admission.Schema.
func (o *objectSchema) MergeType(as schema.GroupVersionResource, kind schema.GroupVersionKind) *merge.Type {
	return o.admitter.scope.set.MergeType(as, kind)
}

// PatchLimits implements admission.Schema.
func (o *objectSchema) PatchLimits() document.Limits { return o.admitter.request.Limits.Sent }

// validateObject validates the object against its schema and the schema's rules, and against the conventions that
// policies ask for, and answers all failures at once (VAL-1).
func (a *admitter) validateObject(s storage.Storage, w *storage.Write) error {
	at(a.story(), explaining.Schema, w)
	result, err := a.validateOnce(s, w)
	if err != nil {
		return err
	}
	if !result.Valid() && !w.Creates() && w.Existing.Object == nil {
		// What an update leaves as it was does not count, so the stored object may make the difference.
		if err := s.Get(w); err != nil {
			return err
		}
		if result, err = a.validateOnce(s, w); err != nil {
			return err
		}
	}
	a.request.Warnings = append(a.request.Warnings, result.Warnings...)
	result.Errors = a.named(result.Errors)
	if len(a.checked.Trials)+len(a.checked.Excepted) > 0 {
		a.noteConventions()
	}
	if result.Valid() {
		return nil
	}
	a.auditTerms() // nothing else is decided
	switch {
	case len(result.Errors) == 0:
		return status.Timeout("the request was over before its object was checked", 1)
	}
	a.countRefused(w.Info.Resource, result.Errors)
	return status.Detail(a.request.Invalid(shownName(w), result.Errors, result.More), result.Details)
}

// countRefused counts what schemas refuse of a resource or a route. A request that is only tried is not refused.
func (a *admitter) countRefused(of string, failures field.ErrorList) {
	if a.isRehearsal {
		return
	}
	for _, e := range failures {
		a.gateway.metrics.SchemaRefused(of, string(e.Type))
	}
}

// named returns everything that is wrong with the request, by what is wrong with its object.
func (a *admitter) named(found field.ErrorList) field.ErrorList {
	return append(a.parameters[:len(a.parameters):len(a.parameters)], contract.Named(a.unread, found)...)
}

// shownName returns how an answer names the object, as in Kubernetes: by what its name is to be made of if it has
// none yet.
func shownName(w *storage.Write) string {
	if w.Info.Name != "" || w.Object == nil {
		return w.Info.Name
	}
	return storage.TextIn(storage.Metadata(w.Object), "generateName")
}

func (a *admitter) validateOnce(s storage.Storage, w *storage.Write) (result schemas.Result, err error) {
	if schema := s.Schema(w); schema != nil {
		var f *cel.Frame
		if schema.HasRules() {
			f = a.frame()
			f.SetBudget(cel.PolicyBudget)
		}
		result = s.Validate(schema, f, w)
		result.Errors = w.Faults(result.Errors)
	}
	if failures := s.ValidateMetadata(w); len(failures) > 0 {
		result.Errors = append(failures, result.Errors...)
	}
	if operation := w.Info.Verb.Operation(); operation != 0 && a.scope.rulesOf(&w.Info).conventions.Concern(&w.Info, operation) {
		err = a.checkConventions(s, w, &result)
	}
	return result, err
}

// checkConventions adds to the result of validation what policies find that breaks the API conventions.
func (a *admitter) checkConventions(s storage.Storage, w *storage.Write, result *schemas.Result) error {
	operation, _ := operationOf(w)
	a.describeAs(w, operation)
	o := conventions.Object{Root: w.Object.Root(), Bare: a.isBare(), Schema: s.Schema(w), Status: s.StatusPath(), Old: w.Existing.Root()}
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
	found, err := a.scope.rulesOf(&w.Info).conventions.Check(a.context(), &a.attributes, o)
	if err != nil {
		var answer *status.Error
		if errors.As(err, &answer) {
			return answer
		}
		return status.Internal("a ConventionPolicy cannot decide if it is about the request: %v", err)
	}
	a.checked.Trials, a.checked.Excepted = found.Trials, found.Excepted
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

// Validate runs every validating policy that concerns the write.
func (a *admitter) Validate(w *storage.Write) error {
	if !a.describe(w) {
		if !a.report.IsEmpty() {
			a.auditTerms() // of conventions
		}
		return nil
	}
	at(a.story(), explaining.Policies, w)
	a.scope.storage.Reveal(w, true)
	if _, err := a.seen(w, (*admitter).validateSeen); err != nil {
		return err
	}
	err := a.Decide()
	if err != nil && w.Result != nil {
		a.request.PreviewWarnings()
	}
	return err
}

// Collect runs the policies that match the deletion of one object of several.
func (a *admitter) Collect(w *storage.Write) {
	if a.describe(w) {
		a.policies().Validate(a.context(), &a.attributes, &a.report)
	}
	a.noteKind()
	a.attributes.Old = nil // which does not last until the decision
}

// validateAs runs the policies that match an operation other than the verb's own.
func (a *admitter) validateAs(w *storage.Write, operation admission.Operation) {
	a.describeAs(w, operation)
	a.policies().Validate(a.context(), &a.attributes, &a.report)
}

// Decide returns the decision of the policies.
func (a *admitter) Decide() error {
	if p := a.permission; p.refusal != nil {
		return p.forbid(p.refusal)
	}
	if s := a.trail.spans; s != nil {
		s.EndAdmission()
	}
	a.request.Warnings = append(a.request.Warnings, a.report.Warnings()...)
	if a.report.IsEmpty() {
		return nil
	}
	a.audit()
	if err := a.undecided(); err != nil {
		return err
	}
	if err := a.report.Err(&a.attributes); err != nil {
		return err
	}
	return nil
}

// Forget drops what policies found.
func (a *admitter) Forget() { a.report.Reset() }

// describe gathers what policies can know of the write. It reports whether any concerns it.
func (a *admitter) describe(w *storage.Write) bool {
	operation, ok := operationOf(w)
	if !ok || !a.scope.rulesOf(&w.Info).policies.Concerns(&w.Info, operation) {
		if ok && a.story() != nil { // which says why none does
			a.describeAs(w, operation)
		}
		return false
	}
	a.describeAs(w, operation)
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
func (a *admitter) describeAs(w *storage.Write, operation admission.Operation) {
	to := &a.attributes
	to.Info, to.Resource, to.Served = &w.Info, a.request.Resource, a.request.Served
	to.Received = a.gateway.timeOf(a.request)
	to.Operation, to.User, to.HTTP = operation, &a.who.user, (*storage.HTTP)(a.request)
	to.Object, to.Old = w.Admitted(), w.Existing.Object
	if operation == admission.Delete {
		to.Object = nil
	}
	a.options = operationOptions{a.scope.storage, w, operation}
	to.Options = &a.options
	a.referred.Begin(a.context(), a.scope.set, a.gateway.states, a.scope.backend, &w.Info, a.permission, a.request.Deadline())
	to.Lookup = &a.referred
	to.DryRun, to.HasGeneratedName = w.Info.Options.DryRun, w.HasGeneratedName
	a.frame()
	if s := a.story(); s != nil {
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
func (a *admitter) frame() *cel.Frame {
	if a.attributes.Frame == nil {
		a.attributes.Frame = cel.NewFrame(a.context())
		a.attributes.Frame.SetDeadline(a.request.Deadline())
		a.attributes.Frame.SetMemory(a.request.Memory)
		if s := a.story(); s != nil {
			a.attributes.Frame.Trace(s)
		}
	}
	return a.attributes.Frame
}
