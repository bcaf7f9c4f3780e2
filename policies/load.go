package policies

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/conventions"
	"github.com/admission-gateway/gateway/admission/mutate"
	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/admission/terms"
	"github.com/admission-gateway/gateway/admission/vap"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/policies/constraints"
	"github.com/admission-gateway/gateway/policies/exceptions"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/modules"
	"github.com/admission-gateway/gateway/policies/source"
)

// Load reads and compiles the policies in files and directories. The findings are sorted by file and line; the Set is
// nil if one of them is an error.
func Load(paths []string) (*Set, []Finding) {
	return Compile(source.Read(paths, &source.Progress{}))
}

// Check returns what Load finds.
func Check(paths []string) []Finding {
	_, found := Load(paths)
	return found
}

// Compile compiles files that were read already, as Load does.
func Compile(s *source.Source) (*Set, []Finding) { return compileWith(s, &Gateway{}) }

// compileWith is Compile, with what modules in Rego have of the gateway.
func compileWith(s *source.Source, g *Gateway) (*Set, []Finding) {
	l := newLoader()
	l.rego.gateway = g
	set := l.load(s)
	found := finding.Sort(l.Found)
	if finding.HasErrors(found) {
		return nil, found
	}
	return set, found
}

func newLoader() *loader {
	return &loader{
		known:   map[objectID]*manifest.Object{},
		objects: map[objectID]*Object{},
		rego:    regoFiles{gateway: &Gateway{}, sums: map[string]string{}},

		gatekeeper: constraints.Files{Texts: map[string][]byte{}},
		terms:      exceptions.Files{Now: time.Now()},
	}
}

// load compiles what the files have. The result is usable only if no errors are found.
func (l *loader) load(s *source.Source) *Set {
	l.Found, l.plans.focus = slices.Clone(s.Found), s.Focus
	files := make([]File, 0, len(s.Files))
	var all []*manifest.Object
	l.rego.modules = modules.New(s.Files, l.rego.gateway.Print)
	var held memory.Reservation
	held.Open(l.rego.gateway.Memory, nil)
	defer held.Close()
	for _, f := range s.Files {
		if f.Role != source.Objects {
			if !held.Grow(weightOf(&f)) {
				l.File(f.Name, "takes more memory to read, about %d bytes, than is left of `limits.bodiesInFlightBytes`: split it, or give the gateway more memory", weightOf(&f))
			}
			files = append(files, File{Name: f.Name})
			continue
		}
		l.gatekeeper.Texts[f.Name] = f.Data
		objects, errs := manifest.ReadWithin(f.Name, f.Data, &held)
		files = append(files, inventoryOf(f.Name, objects))
		l.Read(errs)
		all = append(all, objects...)
	}
	l.plain = plainKindsIn(all, Serves)
	for _, o := range all {
		l.object(o)
	}
	set := l.finish()
	set.hash, set.files = l.rego.hash(s.Hash), files
	return set
}

// weightOf returns how much memory it takes to compile a module, or to read data for modules, at most.
func weightOf(f *source.File) int {
	if f.Role == source.Module {
		return rego.ParseWeight(f.Data)
	}
	return manifest.Weight(f.Data) + rego.DataWeight(f.Data)
}

// loader compiles the objects of the files one by one, and then what takes all of them.
type loader struct {
	findings
	known       map[objectID]*manifest.Object
	resources   []loadedResource
	unbound     bool // some binding cannot be read, so that nobody can tell which policy it names
	rated       loadedLimits
	upstreams   []upstreamUse
	scopes      []scopeUse
	conventions []loadedConvention
	sources     []loadedSource
	paramUses   []paramUse
	objects     map[objectID]*Object
	plain       plainKinds

	plans plans // of expressions

	defaulting []loadedDefaulting
	mutating   bound[*mutate.Policy, *mutate.Binding]
	validating bound[*vap.Policy, *vap.Binding]
	rego       regoFiles
	passing    []resource.Passing
	audit      loadedAudit
	gatekeeper constraints.Files
	terms      exceptions.Files
	reads      requestReads
}

// loadedLimits are the rate limits, and what is wrong with the shared ones if there is no store.
type loadedLimits struct {
	limits  []*ratelimit.Rule
	sharing []Finding
}

// object takes one object of a file.
func (l *loader) object(o *manifest.Object) {
	if o.OpenAPI {
		l.openAPI(o)
		return
	}
	group, version := o.GroupVersion()
	take, isServed := takerOf(schema.GroupKind{Group: group, Kind: o.Kind}, version)
	if l.plain.has(o) {
		take, isServed = (*loader).otherObject, false
	}
	id := objectID{group, o.Kind, o.Namespace, o.Name}
	if isServed {
		l.clusterScoped(o)
		l.terms.Check(o)
		id.namespace = ""
	}
	if first, twice := l.known[id]; twice && o.Name != "" {
		l.At(o, Error, "metadata.name", "must be unique; %s '%s' is in %s:%d already", o.Kind, qualified(o), first.File, first.Line("metadata.name"))
		return
	}
	l.known[id] = o
	take(l, o)
}

// clusterScoped warns of a namespace, which templates are fond of: all policies are cluster-scoped, and as on an API server
// it means nothing.
func (l *loader) clusterScoped(o *manifest.Object) {
	if group, _ := o.GroupVersion(); o.Namespace != "" && group != constraints.ConfigGroup { // Gatekeeper's own is in its namespace
		l.At(o, Warning, "metadata.namespace", "has no effect: %s belongs to no namespace", withArticle(o.Kind))
	}
}

// withArticle is a kind as a sentence says it: "a Pod", "an Ingress".
func withArticle(kind string) string {
	if kind != "" && strings.Contains("AEIO", kind[:1]) {
		return "an " + kind
	}
	return "a " + kind
}

func qualified(o *manifest.Object) string {
	if o.Namespace != "" {
		return o.Namespace + "/" + o.Name
	}
	return o.Name
}

// otherObject keeps an object for others to refer to.
func (l *loader) otherObject(o *manifest.Object) {
	if o.Name == "" {
		l.At(o, Error, "metadata.name", "Required value: must have a name, by which policies refer to the object")
		return
	}
	group, _ := o.GroupVersion()
	l.objects[objectID{group, o.Kind, o.Namespace, o.Name}] = &Object{
		APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Document: o.Document().Clone(),
	}
}

// policyException takes a PolicyException.
func policyException(l *loader, o *manifest.Object, p *terms.PolicyException) {
	if compiled := l.terms.Exception(o, p); compiled != nil {
		l.plans.note(o, compiled.Programs())
		l.reads.expressions(o, compiled.Programs())
	}
}

// finish compiles what takes all objects. The result is usable only if there are no errors.
func (l *loader) finish() *Set {
	checks := make([]*conventions.Policy, len(l.conventions))
	for i, c := range l.conventions {
		c.policy.Govern(l.terms.Terms(c.from, c.rollout))
		checks[i] = c.policy
	}
	set := &Set{limits: ratelimit.NewRules(l.rated.limits), remarks: remarks{sharing: l.rated.sharing}, upstreams: l.upstreams, objects: l.objects, conventions: conventions.New(checks), audit: l.audit}
	mutators := l.defaulters()
	for _, p := range l.mutating.compile(l, "MutatingAdmissionPolicy") {
		mutators = append(mutators, p)
	}
	var validators []admission.Validator
	for _, p := range l.validating.compile(l, "ValidatingAdmissionPolicy") {
		validators = append(validators, p)
	}
	for _, p := range l.rego.compile(l) {
		if p.Changes() {
			mutators = append(mutators, rego.Mutator{Policy: p})
		}
		if p.IsValidating() {
			validators = append(validators, p)
		}
	}
	l.gatekeeper.Terms = l.terms.TermsByAnnotation
	m, v := l.gatekeeper.Compile(resourcesWithKind(l.resources), l.template)
	mutators, validators = append(mutators, m...), append(validators, v...)
	set.chain = admission.NewChain(mutators, validators)
	l.register(set)
	set.reach = l.reach(mutators, validators)
	l.refer(set)
	l.plain.warnOfConstraints(&l.findings, maps.Values(l.known), l.paramUses)
	l.pinnable(set.chain)
	set.served, set.scopes = servedIn(l.resources), l.scopes
	names := newDescribedNames(l.resources)
	set.remarks.unmatched = names.unmatched(&l.findings, maps.Values(l.known))
	set.remarks.reached = names.reached(maps.Values(l.known), l.plain)
	unconvertible(&l.findings, l.resources, maps.Values(l.known))
	outside(&l.findings, l.resources)
	unsettable(&l.findings, l.resources)
	l.terms.Finish(maps.Values(l.known))
	set.terms = Terms{l.terms.Plans(), l.terms.Exceptions()}
	l.Found = append(append(l.Found, l.gatekeeper.Found...), l.terms.Found...)
	l.reads.gatekeepers(maps.Values(l.known))
	set.remarks.users, set.remarks.kinds = l.reads.users, l.reads.kinds
	set.remarks.raced = racedWrites(l.resources, set.Admission())
	return set
}

// reach returns the resources at Kubernetes' paths that policies and limits are about.
func (l *loader) reach(mutators []admission.Mutator, validators []admission.Validator) resource.Reach {
	r := newReach()
	for _, p := range mutators {
		r.rules(p.Rules())
	}
	for _, p := range validators {
		r.rules(p.Rules())
	}
	for _, p := range l.conventions {
		r.rules(p.policy.Rules())
	}
	for _, one := range l.rated.limits {
		r.limit(one)
	}
	return r.result()
}

// register makes the registry of the resources.
func (l *loader) register(set *Set) {
	l.resources = l.distinct(l.resources)
	all := make([]*resource.Resource, 0, len(l.resources))
	for _, r := range l.resources {
		all = append(all, r.Resource)
	}
	var err error
	if set.registry, err = resource.NewRegistry(all, l.passing...); err != nil {
		l.blame(all)
		return
	}
	set.compiled = make([]compiledResource, len(l.resources))
	for _, r := range l.resources {
		set.compiled[r.ID] = r.compiled
		set.compiled[r.ID].mergeType = mergeTypes(r)
	}
	set.indexMergeTypes()
}

// distinct reports resources that two files define, and kinds that two resources of a group have.
func (l *loader) distinct(resources []loadedResource) []loadedResource {
	slices.SortStableFunc(resources, func(a, b loadedResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Names.Plural, b.Names.Plural), cmp.Compare(a.Version, b.Version))
	})
	type versioned struct{ group, version, name string }
	plurals, kinds := map[versioned]loadedResource{}, map[versioned]loadedResource{}
	kept := make([]loadedResource, 0, len(resources))
	for _, r := range resources {
		if r.Operation != nil {
			kept = append(kept, r)
			continue
		}
		plural, kind := versioned{r.Group, r.Version, r.Names.Plural}, versioned{r.Group, r.Version, r.Names.Kind}
		if first, twice := plurals[plural]; twice {
			l.At(r.at.from, Error, r.at.path, "must not define %s again, which %s:%d does", describe(r), first.at.from.File, first.at.from.Line(first.at.path))
			continue
		}
		if first, twice := kinds[kind]; twice {
			l.At(r.at.from, Error, r.at.path, "must not have the kind '%s' of %s in %s:%d", r.Names.Kind, describe(first), first.at.from.File, first.at.from.Line(first.at.path))
			continue
		}
		plurals[plural], kinds[kind] = r, r
		kept = append(kept, r)
	}
	return kept
}

func describe(r loadedResource) string {
	return fmt.Sprintf("the resource '%s' in version '%s'", r.GroupResource(), r.Version)
}

// blame finds the resource that the registry does not take beside those before it.
func (l *loader) blame(all []*resource.Resource) {
	for i := range all {
		if _, err := resource.NewRegistry(all[:i+1]); err != nil {
			for _, one := range parts(err) {
				l.At(l.resources[i].at.from, Error, l.resources[i].at.path, "%s", one.Error())
			}
			return
		}
	}
}

// parts are the errors that were joined.
func parts(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}
