// Package constraints loads Gatekeeper's objects from policy files: templates, constraints, mutators,
// and what they need.
package constraints

import (
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/gatekeeper"
	"github.com/admission-gateway/gateway/admission/gatekeeper/match"
	"github.com/admission-gateway/gateway/admission/gatekeeper/mutation"
	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/reuse"
)

// Gatekeeper's groups.
const (
	TemplatesGroup    = "templates.gatekeeper.sh"
	Group             = gatekeeper.Group
	MutationsGroup    = "mutations.gatekeeper.sh"
	ConfigGroup       = "config.gatekeeper.sh"
	SyncSetGroup      = "syncset.gatekeeper.sh"
	expansionGroup    = "expansion.gatekeeper.sh"
	externalDataGroup = "externaldata.gatekeeper.sh"
)

// Files are Gatekeeper's objects in the policy files. They are compiled when all are there.
type Files struct {
	finding.List
	// Texts are the texts of the policy files by their names.
	Texts map[string][]byte
	// Terms returns the terms of a constraint or a mutator; nil if it has none.
	Terms func(*manifest.Object) admission.Terms
	// IsMeant reports whether it is meant that an object can never apply.
	IsMeant func(*manifest.Object) bool
	// Kept has what the set before was compiled from.
	Kept        *reuse.Store
	templates   []loadedTemplate
	constraints []*manifest.Object
	mutators    []loadedMutator
	// excluded are the namespaces that constraints and mutators leave alone.
	excluded struct{ webhook, mutation []match.Wildcard }
	synced   []syncedKind
	// inventory is data.inventory, which Rego reads.
	inventory gatekeeper.Inventory
	resources match.Resources
}

type loadedTemplate struct {
	from *manifest.Object
	read *gatekeeper.ConstraintTemplate
	compiledTemplate
}

// templateKey is the key of a compiled template. What its modules say of themselves depends on the place.
type templateKey struct {
	sum  manifest.Sum
	file string
	line int
}

// compiledTemplate is the result of compiling a template.
type compiledTemplate struct {
	compiled *gatekeeper.Template // nil if it did not compile
	errs     field.ErrorList
	problems []gatekeeper.Problem
	reads    rego.RequestReads
	failing  rego.Errors // calls of constants that always fail, and rules whose values cannot be used
	dangling rego.Errors // what its modules read and what is never there, and which rules are fail-open
	asked    rego.ParameterReads
}

type loadedMutator struct {
	from    *manifest.Object
	compile func(mutation.Compiler) (*mutation.Mutator, field.ErrorList)
}

// syncedKind is a kind of objects that data.inventory has, and the line of a file that says so.
type syncedKind struct {
	apischema.GroupVersionKind
	from *manifest.Object
	path string
}

// Template takes a ConstraintTemplate.
func (f *Files) Template(o *manifest.Object, t *gatekeeper.ConstraintTemplate) {
	read := *t
	read.APIVersion = o.APIVersion
	f.templates = append(f.templates, loadedTemplate{from: o, read: &read})
}

// Constraint takes an object of the group of constraints, whose kinds templates define.
func (f *Files) Constraint(o *manifest.Object) {
	if _, version := o.GroupVersion(); version != gatekeeper.Version && version != "v1alpha1" {
		f.At(o, finding.Error, "apiVersion", "must be '%s/%s', not '%s'", gatekeeper.Group, gatekeeper.Version,
			o.APIVersion)
		return
	}
	if o.Name == "" {
		f.At(o, finding.Error, "metadata.name", "Required value: must have a name")
		return
	}
	f.constraints = append(f.constraints, o)
}

func (f *Files) mutator(o *manifest.Object, compile func(mutation.Compiler) (*mutation.Mutator, field.ErrorList)) {
	f.mutators = append(f.mutators, loadedMutator{o, compile})
}

// Assign takes an Assign.
func (f *Files) Assign(o *manifest.Object, a *mutation.Assign) {
	f.mutator(o, func(c mutation.Compiler) (*mutation.Mutator, field.ErrorList) { return c.Assign(a) })
}

// AssignMetadata takes an AssignMetadata.
func (f *Files) AssignMetadata(o *manifest.Object, a *mutation.AssignMetadata) {
	f.mutator(o, func(c mutation.Compiler) (*mutation.Mutator, field.ErrorList) { return c.AssignMetadata(a) })
}

// ModifySet takes a ModifySet.
func (f *Files) ModifySet(o *manifest.Object, s *mutation.ModifySet) {
	f.mutator(o, func(c mutation.Compiler) (*mutation.Mutator, field.ErrorList) { return c.ModifySet(s) })
}

// AssignImage takes an AssignImage.
func (f *Files) AssignImage(o *manifest.Object, a *mutation.AssignImage) {
	f.mutator(o, func(c mutation.Compiler) (*mutation.Mutator, field.ErrorList) { return c.AssignImage(a) })
}

// The processes of Gatekeeper that leave namespaces alone. The gateway does the work of two of them.
const (
	processAll      = "*"
	processWebhook  = "webhook"
	processMutation = "mutation-webhook"
	processAudit    = "audit"
	processSync     = "sync"
)

// Config takes Gatekeeper's configuration.
func (f *Files) Config(o *manifest.Object, c *gatekeeper.Config) {
	if o.Name != "config" {
		f.At(o, finding.Error, "metadata.name", "must be 'config', the only name that Gatekeeper reads, not '%s'",
			o.Name)
		return
	}
	for i, k := range c.Spec.Sync.SyncOnly {
		f.sync(o, fmt.Sprintf("spec.sync.syncOnly[%d]", i), k)
	}
	for i, exemption := range c.Spec.Match {
		for j, process := range exemption.Processes {
			switch process {
			case processAll:
				f.excluded.webhook = append(f.excluded.webhook, exemption.ExcludedNamespaces...)
				f.excluded.mutation = append(f.excluded.mutation, exemption.ExcludedNamespaces...)
			case processWebhook:
				f.excluded.webhook = append(f.excluded.webhook, exemption.ExcludedNamespaces...)
			case processMutation:
				f.excluded.mutation = append(f.excluded.mutation, exemption.ExcludedNamespaces...)
			case processAudit, processSync:
			default:
				f.At(o, finding.Error, fmt.Sprintf("spec.match[%d].processes[%d]", i, j), "must be '%s', not '%s'",
					strings.Join([]string{processAll, processAudit, processMutation, processSync, processWebhook},
						"', '"), process)
			}
		}
	}
	if len(c.Spec.Validation.Traces) > 0 {
		f.At(o, finding.Warning, "spec.validation.traces", "has no effect: the gateway takes no traces of constraints")
	}
}

// SyncSet takes a SyncSet.
func (f *Files) SyncSet(o *manifest.Object, s *gatekeeper.SyncSet) {
	for i, k := range s.Spec.GVKs {
		f.sync(o, fmt.Sprintf("spec.gvks[%d]", i), k)
	}
}

func (f *Files) sync(o *manifest.Object, path string, k gatekeeper.Kind) {
	if k.Version == "" || k.Kind == "" {
		f.At(o, finding.Error, path, "must name a version and a kind")
		return
	}
	f.synced = append(f.synced, syncedKind{apischema.GroupVersionKind(k), o, path})
}

// IsRefused reports whether a kind is one of Gatekeeper's that is refused, in files that have its definition too.
func IsRefused(kind apischema.GroupKind) bool {
	switch kind.Group {
	case expansionGroup:
		return kind.Kind == "ExpansionTemplate"
	case externalDataGroup:
		return kind.Kind == "Provider" || kind.Kind == "Connection"
	}
	return false
}

// Refused says why objects of a group of Gatekeeper's are refused; "" if they are not.
func Refused(group string) string {
	switch group {
	case expansionGroup:
		return "the gateway expands no objects that generate others: the pods of a workload are judged when they are created"
	case externalDataGroup:
		return "the gateway asks no providers of external data"
	}
	return ""
}

// Compile compiles the objects. resources returns the resources that serve a kind; note is called
// with each template.
func (f *Files) Compile(resources match.Resources,
	note func(*manifest.Object, *gatekeeper.Template, rego.RequestReads)) (mutators []admission.Mutator,
	validators []admission.Validator) {
	f.resources = resources
	if s := f.compileMutators(); s != nil {
		mutators = append(mutators, s)
	}
	f.compileTemplates(note)
	if s := f.compileConstraints(); s != nil {
		validators = append(validators, s)
	}
	return mutators, validators
}

func (f *Files) compileMutators() *mutation.MutatorSet {
	compiler := mutation.Compiler{Resources: f.resources}
	var all []*mutation.Mutator
	from := map[*mutation.Mutator]*manifest.Object{}
	for _, loaded := range f.mutators {
		m, errs := loaded.compile(compiler)
		f.Fields(loaded.from, finding.Error, errs)
		if m != nil {
			m.Govern(f.Terms(loaded.from))
			all, from[m] = append(all, m), loaded.from
		}
	}
	for m, why := range mutation.Conflicts(all) {
		f.At(from[m], finding.Error, "spec.location", "%s", why)
	}
	if len(all) == 0 {
		return nil
	}
	return mutation.NewMutatorSet(all, f.excluded.mutation)
}

// compileTemplates compiles the templates, several at a time: there may be hundreds.
func (f *Files) compileTemplates(note func(*manifest.Object, *gatekeeper.Template, rego.RequestReads)) {
	templates := f.templates
	var work sync.WaitGroup
	places := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range templates {
		var known bool
		if templates[i].compiledTemplate, known = reuse.Find[compiledTemplate](f.Kept, templates[i].key()); known {
			continue
		}
		work.Add(1)
		places <- struct{}{}
		go func() {
			defer func() { <-places; work.Done() }()
			templates[i].compile()
		}()
	}
	work.Wait()
	for _, t := range templates {
		reuse.Keep(f.Kept, t.key(), t.compiledTemplate)
		f.Fields(t.from, finding.Error, t.errs)
		for _, p := range t.problems {
			f.Found = append(f.Found, f.findingOf(p))
		}
		if t.compiled != nil {
			if !f.IsMeant(t.from) {
				f.inModules(t.failing, finding.Error)
				f.inModules(t.dangling, finding.Warning)
			}
			note(t.from, t.compiled, t.reads)
		}
	}
}

// inModules records what was found in the modules of a template.
func (f *Files) inModules(all rego.Errors, severity finding.Severity) {
	for _, e := range all {
		found := finding.Finding{File: e.File, Line: e.Line, Message: e.Message, Severity: severity}
		found.Point(f.Texts[e.File], e.Text, e.Column)
		f.Found = append(f.Found, found)
	}
}

// findingOf finds the column of a problem in its file if the module is indented.
func (f *Files) findingOf(p gatekeeper.Problem) finding.Finding {
	found := finding.Finding{File: p.File, Line: p.Line, Field: p.Path, Message: p.Message}
	found.Point(f.Texts[p.File], p.Text, p.Column)
	return found
}

func (t *loadedTemplate) key() templateKey {
	return templateKey{t.from.Sum(), t.from.File, t.from.Line("")}
}

func (t *loadedTemplate) compile() {
	t.compiled, t.errs, t.problems = gatekeeper.CompileTemplate(t.read,
		func(path string) (string, int) { return t.from.File, t.from.Line(path) })
	if t.compiled != nil && t.compiled.Modules() != nil {
		t.failing = append(t.compiled.Modules().FailingConstants(),
			t.compiled.Modules().Misvalued(t.compiled.Rule().Rule())...)
		t.dangling, t.reads = append(t.compiled.Modules().Dangling(), t.compiled.Modules().Misprinted()...),
			t.compiled.Modules().RequestReads()
		t.asked = t.compiled.Modules().ParameterReads()
		if known, isClosed := gatekeeper.Parameters(t.read); isClosed {
			t.dangling = append(t.dangling,
				t.asked.Lacking(known, "the schema of the template has no such parameter")...)
		}
		if t.compiled.IsLenient() {
			t.dangling = append(t.dangling, t.compiled.Modules().Relaxable()...)
		}
		t.compiled.Modules().Seal(t.compiled.Rule())
	}
}

// compileConstraints compiles the constraints with their templates.
func (f *Files) compileConstraints() *gatekeeper.ConstraintSet {
	templates := map[string]*loadedTemplate{}
	for i := range f.templates {
		t := &f.templates[i]
		templates[t.read.Spec.CRD.Spec.Names.Kind] = t
	}
	var all []*gatekeeper.Constraint
	used := map[string]bool{}
	for _, o := range f.constraints {
		t := templates[o.Kind]
		if used[o.Kind] = true; t == nil {
			f.At(o, finding.Error, "kind", "no ConstraintTemplate in the policy files defines the kind '%s'", o.Kind)
			continue
		}
		if t.compiled == nil {
			continue // what is wrong with the template has been said
		}
		c, errs := f.compileConstraint(t.compiled, o)
		f.Fields(o, finding.Error, errs)
		if c == nil {
			continue
		}
		f.unread(o, t)
		if c.IsIdle() {
			f.At(o, finding.Warning, "spec.scopedEnforcementActions", "no action is for the enforcement point validation.gatekeeper.sh, so that the constraint does nothing")
		}
		all = append(all, c.Governed(f.Terms(o)))
	}
	for kind, t := range templates {
		if t.compiled != nil && !used[kind] {
			f.At(t.from, finding.Warning, "spec.crd.spec.names.kind", "no constraint in the policy files is of the kind '%s', so that the template does nothing", kind)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return gatekeeper.NewConstraintSet(all, f.excluded.webhook, &f.inventory)
}

// unread warns of parameters of a constraint that its template does not read.
func (f *Files) unread(o *manifest.Object, t *loadedTemplate) {
	if t.compiled.Modules() == nil || f.IsMeant(o) {
		return
	}
	given, _ := o.At("spec.parameters")
	for m := given.First(); m.Valid() && given.Kind() == document.Object; m = m.Next() {
		if why := t.asked.Ignores(m.Key()); why != "" {
			f.At(o, finding.Warning, m.Path(), "%s", why)
		}
	}
}

// InRego returns the constraints whose templates have modules in Rego, with those templates.
func (f *Files) InRego() iter.Seq2[*manifest.Object, *gatekeeper.Template] {
	return func(yield func(*manifest.Object, *gatekeeper.Template) bool) {
		for _, o := range f.constraints {
			for i := range f.templates {
				t := &f.templates[i]
				if t.read.Spec.CRD.Spec.Names.Kind != o.Kind || t.compiled == nil || t.compiled.Modules() == nil {
					continue
				}
				if !yield(o, t.compiled) {
					return
				}
			}
		}
	}
}

// constraintKey is the key of a compiled constraint.
type constraintKey struct {
	sum      manifest.Sum
	template *gatekeeper.Template
}

// compiledConstraint is the result of compiling a constraint, and the resources that its kinds had.
type compiledConstraint struct {
	constraint *gatekeeper.Constraint
	errs       field.ErrorList
	asked      []servedKind
}

// servedKind is the answer of a [match.Resources].
type servedKind struct {
	kind    apischema.GroupKind
	plurals []string
	isKnown bool
}

// compileConstraint compiles a constraint. One that was compiled before stands as long as the same resources serve its
// kinds.
func (f *Files) compileConstraint(t *gatekeeper.Template,
	o *manifest.Object) (*gatekeeper.Constraint, field.ErrorList) {
	key := constraintKey{o.Sum(), t}
	c, found := reuse.Find[*compiledConstraint](f.Kept, key)
	if !found || !c.isOf(f.resources) {
		c = &compiledConstraint{}
		c.constraint, c.errs = gatekeeper.CompileConstraint(t, o.Name, o.Document().Clone(),
			func(k apischema.GroupKind) ([]string, bool) {
				plurals, isKnown := f.resources(k)
				c.asked = append(c.asked, servedKind{k, slices.Clone(plurals), isKnown})
				return plurals, isKnown
			})
		reuse.Keep(f.Kept, key, c)
	}
	return c.constraint, c.errs
}

// isOf reports whether the constraint would be the same with resources.
func (c *compiledConstraint) isOf(resources match.Resources) bool {
	for _, a := range c.asked {
		if plurals, isKnown := resources(a.kind); isKnown != a.isKnown || !slices.Equal(plurals, a.plurals) {
			return false
		}
	}
	return true
}
