package policies

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/openapi"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/rollout"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/reuse"
)

// openAPI takes an OpenAPI document: its paths become resources, and its schemas theirs.
func (l *loader) openAPI(o *manifest.Object) {
	isMeant := l.mayBeUnused(o)
	d := reuse.OfObject(l.kept, &l.findings, o, "document", isMeant,
		func(f *findings) *documented { return compileDocument(f, o, isMeant) })
	for _, r := range d.resources {
		own := *r.Resource // which the registry of each set numbers
		r.Resource, r.at.from = &own, o
		l.resources = append(l.resources, r)
	}
	for _, one := range d.operations {
		own := *one.Documented // as above
		one.Documented, one.at.from = &own, o
		l.documented = append(l.documented, one)
	}
	for _, s := range d.scopes {
		l.useScope(o, s.scope, func(member string) string {
			member, _, _ = strings.Cut(member, "[")
			return s.places[member]
		})
	}
	l.plans.note(o, d.programs)
	l.failing(o, d.programs)
	l.plans.noteAnswers(o)
}

// documented is the result of compiling a document.
type documented struct {
	resources []loadedResource // whose origins have no object
	// operations are the ones that are no verbs of the resources.
	operations []loadedDocumented
	scopes     []documentedScope
	programs   []*cel.Program
}

// loadedDocumented is an operation that is no verb of a resource, and the part of a file that it comes from.
type loadedDocumented struct {
	*resource.Documented
	contract *contract.Operation
	at       origin
	rollout  *rollout.ResourceSpec // nil: it is enforced for all requests
	// rolloutAt is the place of the rollout.
	rolloutAt string
}

// documentedScope is a scope, and the places of its members in the document.
type documentedScope struct {
	scope  resource.Scope
	places map[string]string
}

// compileDocument compiles a document. isMeant says that its author means schemas that no value can meet.
func compileDocument(f *findings, o *manifest.Object, isMeant bool) *documented {
	c := documentCompiler{findings: f, from: o, compiled: map[compiledKey]*schema.Schema{}}
	d, err := openapi.New(o.Document())
	if err != nil {
		faults, arePlaced := errors.AsType[openapi.Faults](err)
		if !arePlaced {
			faults = openapi.Faults{{Path: "openapi", Message: err.Error()}}
		}
		for _, fault := range faults {
			c.At(o, Error, fault.Path, "%s", fault.Message)
		}
		return &documented{}
	}
	_, operations, found := d.Resources(c.resource)
	overlooked, notes := openapi.Overlooked(d)
	for _, f := range append(found, overlooked...) {
		severity := Warning
		switch {
		case f.Unmet && isMeant:
			continue
		case f.Error:
			severity = Error
		case f.Note:
			severity = Note
		case f.Gap && !isOverlaid(o, f.Path):
			severity = Gap
		}
		c.At(o, severity, f.Path, "%s", f.Message)
	}
	for _, f := range notes {
		c.At(o, Note, f.Path, "%s", f.Message)
	}
	for _, a := range d.Actions() {
		c.action(a)
	}
	for _, one := range operations {
		c.operation(one)
	}
	c.noteNames(d.Renamed())
	c.noteDefaults(d)
	made := c.made // a pointer into the compiler would keep the document
	return &made
}

// isOverlaid reports whether an overlay has put the value at a path into a document: its author means it for the
// gateway.
func isOverlaid(o *manifest.Object, path string) bool {
	return o.Where(path).File != o.File && !strings.HasPrefix(path, manifest.FilesKey+"[")
}

// noteNames says that n resources have longer names than an author of policies expects.
func (c *documentCompiler) noteNames(n int) {
	said := "1 resource has a longer name, because another path has the shorter one: policies match it by"
	switch {
	case n == 0:
		return
	case n > 1:
		said = fmt.Sprintf("%d resources have longer names, because other paths have the shorter ones: policies match them by", n)
	}
	c.At(c.from, Remark, "", "%s what 'gateway check --list' shows; `%s.names.plural` at a path gives another name", said, openapi.Extension)
}

// noteDefaults says how many defaults are filled in.
func (c *documentCompiler) noteDefaults(d *openapi.Document) {
	n, where := d.Filled(), "a request"
	if d.FillsReads() {
		where += " or an answer"
	}
	said := "1 default of a schema is filled in where " + where + " leaves it out"
	switch {
	case n == 0:
		return
	case n > 1:
		said = fmt.Sprintf("%d defaults of schemas are filled in where %s leaves them out", n, where)
	}
	c.At(c.from, Remark, "", "%s: '%s: {%s: Off}' at the root, at a path or at an operation leaves them to the API",
		said, openapi.Extension, openapi.DefaultsKey)
}

// operation takes an operation of a document that is no verb of a resource.
func (c *documentCompiler) operation(said *openapi.Documented) {
	compiled := c.contractOf(&said.Said, schema.Options{})
	plan, planAt := c.rolloutOf(said)
	for _, template := range said.Templates {
		one := &resource.Documented{
			Method: said.Method, Template: template, Scope: said.Scope, Slashes: said.Slashes, IsHeld: said.IsHeld(),
			Matrix: openapi.Matrix([]openapi.Operation{said.Said}),
		}
		if err := resource.CheckTemplate(template); err != nil {
			c.At(c.from, Warning, said.Place, "is left out: %s", err.Error())
			continue
		}
		c.made.operations = append(c.made.operations, loadedDocumented{one, compiled, origin{path: said.Place}, plan,
			planAt})
	}
}

// rolloutOf returns what the extension says of how far the description of an operation is enforced, and its place.
func (c *documentCompiler) rolloutOf(said *openapi.Documented) (spec *rollout.ResourceSpec, at string) {
	for _, m := range said.Rollouts {
		if at = openapi.Place(m); m.Kind() == document.Null {
			spec = nil
			continue
		}
		if spec == nil {
			spec = new(rollout.ResourceSpec)
		}
		strict, err := kjson.UnmarshalStrict(m.AppendRaw(nil), spec, kjson.DisallowDuplicateFields,
			kjson.DisallowUnknownFields)
		if err == nil {
			err = errors.Join(strict...)
		}
		if err != nil {
			c.At(c.from, Error, at, "must be a rollout: %v", err)
			return nil, at
		}
	}
	return spec, at
}

// action takes an operation of a document that neither reads nor writes an object.
func (c *documentCompiler) action(action *openapi.Action) {
	o := c.from
	a, at := &APIResource{}, openapi.Place(action.Setting)
	op := &APIResourceOperation{
		Name: action.Name(), Method: action.Method, Path: action.Paths[0],
		Operation: cmp.Or(action.Member("operation"), "CREATE"), Items: cmp.Or(action.Member("items"), "Whole"),
	}
	switch {
	case len(validation.IsDNS1123Label(op.Name)) > 0 && op.Name != "", op.Name == "status", op.Name == "scale":
		c.At(o, Error, at, "must give a DNS label as the name, such as 'activate', and neither 'status' nor 'scale'")
	case op.Operation != "CREATE" && op.Operation != "UPDATE":
		c.At(o, Error, at, "must have 'CREATE' or 'UPDATE' as the `operation`")
	case op.Items != "Whole" && op.Items != "Each":
		c.At(o, Error, at, "must have 'Whole' or 'Each' as `items`")
	case op.Method == "GET" || op.Method == "HEAD" || op.Method == "OPTIONS" || op.Method == "TRACE":
		c.At(o, Error, at, "must not be set for %s, whose requests have no body", op.Method)
	case c.derived(action.Of, a):
		res := a.Spec.operation(op)
		res.Paths = action.Paths
		said := action.Said
		res.Written = resource.Written{Routes: action.Routes, Matrix: openapi.Matrix([]openapi.Operation{said})}
		said.Verb = res.Operation.Verb
		compiled := compiledResource{schema: c.compile(action.Schema, schema.Options{}),
			contract: c.contract([]openapi.Operation{said}, schema.Options{})}
		if action.Schema != nil {
			compiled.unfilled = action.Schema.Unfilled
		}
		c.made.resources = append(c.made.resources, loadedResource{
			Resource: res, compiled: compiled, at: origin{path: at},
			made: madeNames{action.Of.IsMadePlural(), action.Of.IsMadeKind()}, rollout: a.Spec.Rollout,
			rolloutAt: saidAt(action.Of, "rollout"),
		})
	}
}

// resource takes a resource of a document: an APIResource in which the extension says what differs from what the
// document's paths and schemas say themselves.
func (c *documentCompiler) resource(r *openapi.Resource) {
	o := c.from
	a := &APIResource{}
	if !c.derived(r, a) {
		return
	}
	native := len(r.Paths) == 0
	if native && a.Spec.Rollout != nil {
		c.At(o, Error, saidAt(r, "rollout"), "must not be set: an API server holds requests to its own schemas")
	}
	if native && r.WatchesAnswers() {
		c.At(o, Warning, saidAt(r, openapi.AnswersKey),
			"has no effect: answers of an API server are not held to its document")
	}
	res := a.Spec.resource()
	res.ReadDefaults = r.ReadDefaults
	if !res.Scope.IsOpen() {
		scope := documentedScope{res.Scope, map[string]string{}}
		for _, member := range scopeMembers {
			scope.places[member] = saidAt(r, member)
		}
		c.made.scopes = append(c.made.scopes, scope)
	}
	res.Paths, res.Namespaced, res.Subresources.Other = r.Paths, r.Namespaced, r.Subresources
	res.Writes.NameMayChange = r.NameMayChange
	res.Written = resource.Written{Routes: r.Routes(), Matrix: openapi.Matrix(r.Operations())}
	res.Methods, res.Writes.PatchTypes = r.Methods(res.Backend.Patch == resource.PatchEmulated), r.PatchTypes()
	if r.HasPatchAlone() && res.Backend.Patch == resource.PatchEmulated {
		c.At(o, Warning, saidAt(r, "backend.patch"), "PATCH becomes a PUT of the object that results from it, and the document has no PUT here")
	}
	if res.Envelope != resource.Bare || res.Backend.Patch != resource.PatchValidated {
		for _, place := range r.PatchForms() {
			c.At(o, Warning, place, "is refused: a form is passed on to a backend that has PATCH itself (patch: Validated), for objects that are Bare")
		}
	}
	if native {
		res.Backend.Emulated &^= resource.ScaleSubresource
		if res.Subresources.Scale = nil; r.Scale {
			res.Subresources.Scale = &resource.Scaling{}
		}
	}
	options := schema.Options{
		Resource: res.Envelope == resource.Kubernetes, Namespaced: res.Namespaced, Scale: a.Spec.Scale, AnyName: native,
		MayRepeat: native,
	}
	compiled := compiledResource{
		varies: true, create: c.compile(r.Create, options), update: c.compile(r.Update, options),
		patch: c.compile(r.Result.ForPatches(), options),
		read:  c.compile(r.Read, options),
	}
	if compiled.schema = compiled.update; compiled.schema == nil {
		compiled.schema = compiled.create
	}
	compiled.contract = c.contract(r.Operations(), options)
	for _, s := range [...]*openapi.Schema{r.Update, r.Create} {
		if s != nil && s.Unfilled != nil {
			compiled.unfilled = s.Unfilled
		}
	}
	if r.Create != nil {
		compiled.ownedOnCreate = r.Create.Owned
	}
	if r.Update != nil {
		compiled.ownedOnUpdate = r.Update.Owned
	}
	if r.Result != nil {
		compiled.ownedOnPatch, compiled.hidden = r.Result.Owned, r.Result.Hidden
	}
	if r.Unshown != "" {
		c.noteUnshown(r, res)
	}
	if compiled.hidden.Any() && res.Backend.Patch == resource.PatchEmulated {
		c.At(o, Warning, saidAt(r, "backend.patch"),
			"PATCH becomes a PUT of what the API shows, which lacks what is writeOnly: "+
				"the API may refuse it, or forget what it had stored there, unless clients send it again")
	}
	c.made.resources = append(c.made.resources, loadedResource{
		Resource: res, compiled: compiled, at: origin{path: r.Path()},
		made: madeNames{r.IsMadePlural(), r.IsMadeKind()}, rollout: a.Spec.Rollout, rolloutAt: saidAt(r, "rollout"),
	})
}

// noteUnshown names the operations of a resource whose stored object the gateway cannot know.
func (c *documentCompiler) noteUnshown(r *openapi.Resource, res *resource.Resource) {
	c.At(c.from, Note, r.Path(), "%s of '%s' cannot depend on the stored object, because %s: `%s: {fields: {answer: …}}` says which member "+
		"of the answer has the object, and `answer: ''` that it is the answer itself", strings.Join(r.Changes, ", "),
		res.Names.Plural, r.Unshown, openapi.Extension)
	if res.Backend.Patch == resource.PatchEmulated && slices.Contains(r.Changes, "PATCH") {
		c.At(c.from, Warning, saidAt(r, "backend.patch"), "PATCH is refused, because the stored object is not known")
	}
}

// derived makes the APIResource of a resource. Errors point at the extension.
func (c *documentCompiler) derived(r *openapi.Resource, into *APIResource) bool {
	o := c.from
	spec, err := json.Marshal(derivedSpec(r))
	if err != nil {
		c.At(o, Error, r.Path(), "must be a resource: %v", err)
		return false
	}
	d, err := document.Parse(spec, document.Limits{})
	if err != nil {
		c.At(o, Error, r.Path(), "must be a resource: %v", err)
		return false
	}
	defer d.Release()
	for _, s := range r.Settings {
		if s.Kind() != document.Object {
			c.At(o, Error, openapi.Place(s), "must be an object with members of an APIResource's `spec`")
			return false
		}
		for _, name := range []string{"paths", "schema"} {
			if m, found := s.Get(name); found {
				c.At(o, Error, openapi.Place(m), "may not be set: the document itself says it")
				return false
			}
		}
		if m, found := s.Get(openapi.AnswersKey); found && !m.Is(openapi.AnswersIgnored) &&
			!m.Is(openapi.AnswersWarned) {
			c.At(o, Error, openapi.Place(m), "must be '%s' or '%s'", openapi.AnswersIgnored, openapi.AnswersWarned)
			return false
		}
		d.MergePatch(s)
	}
	for _, name := range []string{"ignore", openapi.AnswersKey, openapi.DefaultsKey, openapi.ReadDefaultsKey,
		openapi.NullsKey} {
		// which an operation may have too
		if m, found := d.Root().Get(name); found {
			d.Remove(m)
		}
	}
	text := append([]byte(`{"apiVersion":"`+ownGroup+
		`/v1alpha1","kind":"APIResource","metadata":{"name":"derived"},"spec":`), d.AppendTo(nil)...)
	objects, _ := manifest.Read(o.File, append(text, '}'))
	if len(objects) != 1 {
		c.At(o, Error, r.Path(), "must be a resource that can be described")
		return false
	}
	var checked findings
	ok := readOwn(&checked, objects[0], into)
	for _, f := range checked.Found {
		c.At(o, f.Severity, saidAt(r, strings.TrimPrefix(f.Field, "spec.")), "%s", f.Message)
	}
	return ok
}

// derivedSpec returns the part of an APIResource's spec that follows from the document. Its paths
// stand for the paths of the resource, which may have more variables.
func derivedSpec(r *openapi.Resource) map[string]any {
	collection := "/collection"
	if r.Namespaced {
		collection += "/{namespace}"
	}
	paths := map[string]any{"collection": collection, "item": collection + "/{name}"}
	if r.IsSingleton() {
		paths = map[string]any{"item": collection}
	}
	spec := map[string]any{
		"group": r.Group, "version": r.Version, "names": map[string]any{"plural": r.Plural, "kind": r.Kind},
		"paths":    paths,
		"envelope": r.Envelope.String(),
	}
	if r.Envelope == resource.Bare {
		spec["encodedSlash"] = "Allow"
	}
	switch {
	case r.Envelope == resource.Bare:
		spec["fields"] = map[string]any{"name": r.NameField, "items": r.ItemsField, "answer": r.Answer}
		if r.Unshown != "" {
			spec["storedObject"] = "Unknown"
		}
	case !r.Status && len(r.Paths) == 0:
		spec["statusSubresource"] = "Disabled"
	}
	return spec
}

// saidAt is where the extension says the member of an APIResource's spec; otherwise the resource.
func saidAt(r *openapi.Resource, path string) string {
	for i := len(r.Settings) - 1; i >= 0; i-- {
		at, rest := r.Settings[i], path
		for rest != "" {
			var name string
			name, rest, _ = strings.Cut(rest, ".")
			next, found := at.Get(name)
			if !found {
				break
			}
			at = next
		}
		if at != r.Settings[i] {
			return openapi.Place(at)
		}
	}
	return r.Path()
}

// documentCompiler compiles one document, each of its schemas once.
type documentCompiler struct {
	*findings
	from     *manifest.Object
	compiled map[compiledKey]*schema.Schema
	made     documented
}

type compiledKey struct {
	schema              *openapi.Schema
	resource, namespace bool
	scale               *apiextensionsv1.CustomResourceSubresourceScale
}

// compile compiles a schema; nil if there is none or if it was refused.
func (c *documentCompiler) compile(s *openapi.Schema, o schema.Options) *schema.Schema {
	if s == nil {
		return nil
	}
	key := compiledKey{s, o.Resource, o.Namespaced, o.Scale}
	if compiled, done := c.compiled[key]; done {
		return compiled
	}
	compiled, warnings, errs := s.Compile(o)
	if wrong := defaultsIn(errs); len(wrong) > 0 {
		// A default that is not right by its own schema is not applied; the schema holds all the same.
		for _, err := range errs {
			if at, _, ofDefault := strings.Cut(err.Field, ".default"); ofDefault && wrong[at] {
				c.At(c.from, Warning, s.Where(err.Field), "the default is not applied: %s", finding.BodyOf(err))
			}
		}
		s = s.Without(wrong)
		compiled, warnings, errs = s.Compile(o)
	}
	for _, err := range warnings {
		c.At(c.from, Warning, s.Where(err.Field), "%s", finding.BodyOf(err))
	}
	for _, err := range errs {
		c.At(c.from, Error, s.Where(err.Field), "%s", finding.BodyOf(err))
	}
	for _, f := range s.UnaskedReads() {
		c.At(c.from, Warning, f.Path, "%s", f.Message)
	}
	c.compiled[key] = compiled
	if compiled != nil {
		c.made.programs = append(c.made.programs, compiled.Programs()...)
	}
	return compiled
}

// contract compiles what is said of requests; nil if nothing is. The options are for JSON, which has the objects
// themselves.
func (c *documentCompiler) contract(operations []openapi.Operation, options schema.Options) *contract.Contract {
	if len(operations) == 0 {
		return nil
	}
	made := &contract.Contract{}
	for _, o := range operations {
		compiled := c.contractOf(&o, options)
		if o.At != nil {
			made.SetAt(*o.At, compiled)
		} else {
			made.Set(o.Verb, compiled)
		}
	}
	return made
}

// contractOf compiles what is said of the requests of an operation.
func (c *documentCompiler) contractOf(o *openapi.Operation, options schema.Options) *contract.Operation {
	return &contract.Operation{
		Parameters: o.Parameters, Values: c.compile(o.Values, schema.Options{}), Bodies: c.bodies(*o, options),
		MayBeEmpty:  o.MayBeEmpty,
		Underscored: o.Underscored, Security: o.Security, Answers: c.answers(o.Answers),
	}
}

// bodies compiles the schemas of bodies. Patches and the bodies of deletions are no objects of the resource.
func (c *documentCompiler) bodies(of openapi.Operation, options schema.Options) (made []contract.Body) {
	for _, b := range of.Bodies {
		as := schema.Options{}
		if b.As == contract.AsJSON && (of.Verb == resource.VerbCreate || of.Verb == resource.VerbUpdate) {
			as = options
		}
		one := contract.Body{Media: b.Media, As: b.As, Form: b.Form, Schema: c.compile(b.Schema, as)}
		if b.Schema != nil {
			one.Owned = b.Schema.Owned
		}
		made = append(made, one)
	}
	return made
}

// answers compiles the schemas of answers.
func (c *documentCompiler) answers(said []openapi.Response) (made []contract.Answer) {
	for _, a := range said {
		one := contract.Answer{Code: a.Code, Headers: a.Headers, Values: c.compile(a.Values, schema.Options{})}
		for _, of := range a.Contents {
			content := contract.Content{Media: of.Media, Schema: c.compile(of.Schema, schema.Options{})}
			if of.Schema != nil {
				content.Hidden = of.Schema.Hidden
			}
			one.Contents = append(one.Contents, content)
		}
		made = append(made, one)
	}
	return made
}

// defaultsIn are the places of the schemas whose defaults are wrong.
func defaultsIn(errs field.ErrorList) map[string]bool {
	wrong := map[string]bool{}
	for _, err := range errs {
		if at, rest, found := strings.Cut(err.Field, ".default"); found &&
			(rest == "" || rest[0] == '.' || rest[0] == '[') {
			wrong[at] = true
		}
	}
	return wrong
}
