package policies

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/admission/terms"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/openapi"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/policies/applicability"
	"github.com/admission-gateway/gateway/policies/assembly"
	"github.com/admission-gateway/gateway/policies/constraints"
	"github.com/admission-gateway/gateway/policies/exceptions"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/reuse"
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
func Compile(s *source.Source) (*Set, []Finding) { return compileWith(nil, s, &Gateway{}) }

// CompileTimed is Compile, and passes the times of its stages to timed, which may be nil. It finds for which requests
// routes are in force, and what compiles and still cannot be meant, too.
func CompileTimed(s *source.Source, timed func([]StageTime)) (*Set, []Finding) {
	return compileWith(nil, s, &Gateway{Timed: timed, DescribesRoutes: true, Reviews: true})
}

// compileWith is Compile, with what modules in Rego have of the gateway, and with the set before; nil: there is none.
func compileWith(before *Set, s *source.Source, g *Gateway) (*Set, []Finding) {
	l := newLoader(g)
	if before != nil {
		l.kept = reuse.After(before.kept)
	}
	return l.compile(s)
}

// compile makes a set of the files; nil if a finding is an error.
func (l *loader) compile(s *source.Source) (*Set, []Finding) {
	set := l.load(s)
	found := finding.Sort(l.Found)
	if finding.HasErrors(found) {
		return nil, found
	}
	return set, found
}

func newLoader(g *Gateway) *loader {
	return &loader{
		gateway: g,
		set:     &Set{},
		kept:    reuse.After(nil),
		parts:   map[reflect.Type]any{},
		texts:   map[string][]byte{},
		objects: map[objectID]*Object{},
		bundles: map[string]string{},
		unused:  map[string]bool{},
		matched: newMatchedResources(),
		terms:   exceptions.Files{Now: time.Now()},
		common:  cel.NewCommon(),
	}
}

// load makes a set of the files, stage by stage. The set is usable only if no errors are found.
func (l *loader) load(s *source.Source) *Set {
	l.source, l.Found, l.plans.focus = s, slices.Clone(s.Found), s.Focus
	l.held.Open(l.gateway.Memory, nil)
	defer l.held.Close()
	if l.sizeOfNew(s.Files) > largeFiles {
		defer memory.Spare()()
	}
	for _, one := range stages {
		if l.isStopped() {
			break
		}
		begun := time.Now()
		one.run(l)
		l.times.add(one.name, "", time.Since(begun))
	}
	for _, one := range checks {
		if l.isStopped() {
			break
		}
		begun := time.Now()
		l.Found = append(l.Found, one.run(l)...)
		l.times.add(one.name, "", time.Since(begun))
	}
	l.kept.Close()
	l.set.kept = l.kept
	if l.gateway.Timed != nil {
		l.gateway.Timed(l.times.all)
	}
	return l.set
}

// isStopped reports whether the load was cancelled. Its set is not whole then, which is an error.
func (l *loader) isStopped() bool {
	if l.gateway.Stopped == nil || !l.gateway.Stopped() {
		return false
	}
	if !l.stopped {
		l.Found = append(l.Found, Finding{Severity: Error, Message: "the load was stopped before it was done"})
		l.stopped = true
	}
	return true
}

// largeFiles is how many bytes of files take much more memory to load than the process has otherwise.
const largeFiles = 1 << 20

// sizeOfNew returns how many bytes the files have that the set before does not share.
func (l *loader) sizeOfNew(files []source.File) (bytes int) {
	for i := range files {
		if _, found := reuse.Find[fileRead](l.kept, fileKey{files[i].Name, files[i].Sum()}); !found {
			bytes += len(files[i].Data)
		}
	}
	return bytes
}

// loader makes a set of the objects of the files. It has what several kinds of objects give and take. What is of one
// kind alone is in the part of the kind.
type loader struct {
	findings
	source  *source.Source
	gateway *Gateway
	held    memory.Reservation
	times   times
	set     *Set
	stopped bool // see isStopped
	kept    *reuse.Store
	parts   map[reflect.Type]any // of kinds, by their types

	texts  map[string][]byte // of the files, by name
	all    []*manifest.Object
	unread []unreadFile
	// assembled are the sums of the documents that consist of several files, which these may become in
	// several ways.
	assembled []string
	known     map[objectID]*manifest.Object
	plain     plainKinds
	unused    map[string]bool // files of which it is meant that they may never apply
	objects   map[objectID]*Object

	resources []loadedResource
	// documented are operations of documents that are no verbs of the resources.
	documented []loadedDocumented
	upstreams  []upstreamUse
	scopes     []scopeUse

	mutators   []admission.Mutator
	validators []admission.Validator
	matched    *matchedResources
	paramUses  []paramUse
	terms      exceptions.Files
	applicable *applicability.Index
	bundles    map[string]string // the contents of the bundles that policies name

	plans  plans       // of expressions
	common *cel.Common // of policies; nil if each expression is looked at by itself
	reads  requestReads
}

// read makes objects of the files.
func (l *loader) read() {
	for _, f := range l.source.Files {
		if f.IsUnused {
			l.unused[f.Name] = true
		}
		if f.Role == source.Reference {
			l.texts[f.Name] = f.Data
			l.set.files = append(l.set.files, File{Name: f.Name})
			continue
		}
		if f.Role != source.Objects {
			if !l.held.Grow(weightOf(&f)) {
				l.File(f.Name, "takes more memory to read, about %d bytes, than is left of `limits.bodiesInFlightBytes`: split it, or give the gateway more memory", weightOf(&f))
			}
			l.set.files = append(l.set.files, File{Name: f.Name})
			continue
		}
		l.texts[f.Name] = f.Data
		memory.Pace()
		r := l.readFile(&f)
		l.set.files = append(l.set.files, r.inventory)
		if len(r.objects) == 0 {
			l.unread = append(l.unread, unreadFile{f.Name, r.errs})
		} else {
			l.Read(r.errs)
		}
		l.all = append(l.all, r.objects...)
	}
	l.plain = plainKindsIn(l.all, Serves)
}

// fileKey is the key of what was read in a file.
type fileKey struct {
	name string
	sum  [sha256.Size]byte
}

// fileRead is what was read in a file. Nobody changes it: other sets share it.
type fileRead struct {
	objects   []*manifest.Object
	errs      []*manifest.Error
	inventory File
}

// readFile reads a file, unless the set before has read the same. What OpenAPI documents say is not kept: it may be
// large.
func (l *loader) readFile(f *source.File) fileRead {
	key := fileKey{f.Name, f.Sum()}
	if r, found := reuse.Find[fileRead](l.kept, key); found {
		return r
	}
	objects, errs := manifest.ReadWithin(f.Name, f.Data, &l.held)
	r := fileRead{objects, errs, inventoryOf(f.Name, objects)}
	if len(errs) == 0 && !slices.ContainsFunc(objects,
		func(o *manifest.Object) bool { return o.OpenAPI || o.Overlay }) {
		for _, o := range objects {
			o.Sum() // which is not made by several loads then
		}
		reuse.Keep(l.kept, key, r)
	}
	return r
}

// unreadFile is a file without an object, and why it has none. It may be a part of a document.
type unreadFile struct {
	name string
	errs []*manifest.Error
}

// assemble makes documents whole that consist of several files, and takes the overlays out.
func (l *loader) assemble() {
	a := assembly.New(l.source.Files, &l.held, &l.findings)
	before := l.all
	l.all = a.Objects(before)
	for _, o := range l.all {
		if o.OpenAPI && !slices.Contains(before, o) {
			sum := o.Sum()
			l.assembled = append(l.assembled, hex.EncodeToString(sum[:]))
		}
	}
	for _, f := range l.unread {
		if !a.IsReferred(f.name) {
			l.Read(f.errs)
		}
	}
	if l.gateway.readsOnce {
		l.forgetTexts()
	}
}

// forgetTexts drops the texts of files whose objects have all of them. Findings in Rego show lines of the file itself.
func (l *loader) forgetTexts() {
	hasRego := map[string]bool{}
	for _, o := range l.all {
		group, _ := o.GroupVersion()
		hasRego[o.File] = hasRego[o.File] || group == constraints.TemplatesGroup || group == ownGroup &&
			o.Kind == "RegoPolicy"
	}
	for i := range l.source.Files {
		f := &l.source.Files[i]
		if isNeeded, hasObjects := hasRego[f.Name]; hasObjects && !isNeeded {
			delete(l.texts, f.Name)
			f.Data = nil
		}
	}
}

// weightOf returns how much memory it takes to compile a module, or to read data for modules, at most.
func weightOf(f *source.File) int {
	if f.Role == source.Module {
		return rego.ParseWeight(f.Data)
	}
	return manifest.Weight(f.Data) + rego.DataWeight(f.Data)
}

// take takes the objects one by one.
func (l *loader) take() {
	l.known = make(map[objectID]*manifest.Object, len(l.all))
	for _, o := range l.all {
		if l.isStopped() {
			return
		}
		memory.Pace()
		begun, kind := time.Now(), "other objects"
		if group, _ := o.GroupVersion(); o.OpenAPI || Serves(group, o.Kind) {
			kind = o.Kind
		}
		l.object(o)
		l.times.add("take", kind, time.Since(begun))
	}
}

// object takes one object of a file.
func (l *loader) object(o *manifest.Object) {
	applicability.CheckUnusedMark(&l.findings, o)
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
		clusterScoped(&l.findings, o)
		l.terms.Check(o)
		id.namespace = ""
	}
	if first, twice := l.known[id]; twice && o.Name != "" {
		l.At(o, Error, "metadata.name", "must be unique; %s '%s' is in %s:%d already", o.Kind, o.QualifiedName(),
			first.File, first.Line("metadata.name"))
		return
	}
	l.known[id] = o
	take(l, o)
}

// clusterScoped warns of a namespace, which templates are fond of: all policies are cluster-scoped, and as on an API
// server it means nothing.
func clusterScoped(f *findings, o *manifest.Object) {
	if group, _ := o.GroupVersion(); o.Namespace != "" && group != constraints.ConfigGroup {
		// Gatekeeper's own is in its namespace
		f.At(o, Warning, "metadata.namespace", "has no effect: %s belongs to no namespace", withArticle(o.Kind))
	}
}

// withArticle is a kind as a sentence says it: "a Pod", "an Ingress".
func withArticle(kind string) string {
	if kind != "" && strings.Contains("AEIO", kind[:1]) {
		return "an " + kind
	}
	return "a " + kind
}

// otherObject keeps an object for others to refer to.
func (l *loader) otherObject(o *manifest.Object) {
	if o.Name == "" {
		l.At(o, Error, "metadata.name", "Required value: must have a name, by which policies refer to the object")
		return
	}
	part[routeFiles](l).refer(o)
	group, _ := o.GroupVersion()
	l.objects[objectID{group, o.Kind, o.Namespace, o.Name}] = &Object{
		APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name,
	}
}

// policyException takes a PolicyException.
func (l *loader) policyException(o *manifest.Object, p *terms.PolicyException) {
	l.useTargets(o, p.Spec.TargetRefs)
	if compiled := l.terms.Exception(o, p); compiled != nil {
		if from := l.folderOf(o.File); from != nil && from.Owner != "" {
			compiled.SetFrom(from.String())
		}
		l.plans.note(o, compiled.Programs())
		l.failing(o, compiled.Programs())
		l.reads.expressions(o, compiled.Programs())
	}
}

// index makes the chain of the policies.
func (l *loader) index() {
	l.set.chain = admission.NewChain(l.mutators, l.validators)
}

// collectMatched finds the resources at Kubernetes' paths that policies and limits match.
func (l *loader) collectMatched() {
	for _, p := range l.mutators {
		l.matched.rules(p.Rules())
	}
	for _, p := range l.validators {
		l.matched.rules(p.Rules())
	}
	l.hold()
	l.set.matched = l.matched.result()
}

// register makes the registry of the resources.
func (l *loader) register() {
	set := l.set
	l.resources = distinct(&l.findings, l.resources)
	all := make([]*resource.Resource, 0, len(l.resources))
	for _, r := range l.resources {
		all = append(all, r.Resource)
	}
	var err error
	operations := make([]*resource.Documented, 0, len(l.documented))
	for _, one := range l.documented {
		operations = append(operations, one.Documented)
		set.contracts = append(set.contracts, one.contract)
	}
	if set.registry, err = resource.NewRegistry(all, operations...); err != nil {
		blame(&l.findings, l.resources, all)
		return
	}
	set.compiled = make([]compiledResource, len(l.resources))
	for _, r := range l.resources {
		set.compiled[r.ID] = r.compiled
		set.compiled[r.ID].mergeType = mergeTypes(l.kept, r)
	}
	set.indexMergeTypes()
}

// distinct reports resources that two files define, and kinds that two resources of a group have. Names that no author
// gave give way.
func distinct(f *findings, resources []loadedResource) []loadedResource {
	byName := func(a, b loadedResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Names.Plural, b.Names.Plural),
			cmp.Compare(a.Version, b.Version))
	}
	slices.SortStableFunc(resources, byName)
	names := takenNames{plurals: map[versionedName]loadedResource{}, kinds: map[versionedName]loadedResource{},
		renamed: map[renamedFrom]string{}}
	kept := make([]loadedResource, 0, len(resources))
	for _, isMade := range []bool{false, true} { // what authors say, before what gives way
		for _, r := range resources {
			if r.Operation == nil && (r.made != madeNames{}) == isMade && names.take(f, &r) {
				kept = append(kept, r)
			}
		}
	}
	for _, r := range resources {
		if r.Operation != nil {
			if to, found := names.renamed[renamedFrom{r.at.from, r.Group, r.Version, r.Names.Plural}]; found {
				r.Names.Plural = to
			}
			kept = append(kept, r)
		}
	}
	slices.SortStableFunc(kept, byName)
	return kept
}

// versionedName is the name of a resource, or a kind, of a group in a version.
type versionedName struct{ group, version, name string }

// renamedFrom is the name that a resource of a document had before it gave way.
type renamedFrom struct {
	from                   *manifest.Object
	group, version, plural string
}

// takenNames are the names of the resources so far.
type takenNames struct {
	plurals, kinds map[versionedName]loadedResource
	renamed        map[renamedFrom]string
}

// take takes the names of a resource, and reports whether it can have them.
func (taken *takenNames) take(f *findings, r *loadedResource) bool {
	plural, kind := versionedName{r.Group, r.Version, r.Names.Plural}, versionedName{r.Group, r.Version, r.Names.Kind}
	if first, twice := taken.plurals[plural]; twice && !r.made.plural {
		f.At(r.at.from, Error, r.at.path, "must not define %s again, which %s:%d does", describe(*r),
			first.at.from.File, first.at.from.Line(first.at.path))
		return false
	} else if twice {
		plural.name = freeName(taken.plurals, plural, "-")
		f.At(r.at.from, Note, r.at.path, "is the resource '%s', because %s:%d has the name '%s'; `%s` may give it another one",
			plural.name, first.at.from.File, first.at.from.Line(first.at.path), r.Names.Plural, openapi.Extension+
				".names.plural")
		taken.renamed[renamedFrom{r.at.from, r.Group, r.Version, r.Names.Plural}] = plural.name
		r.Names.Plural = plural.name
	}
	if first, twice := taken.kinds[kind]; twice && !r.made.kind {
		f.At(r.at.from, Error, r.at.path, "must not have the kind '%s' of %s in %s:%d", r.Names.Kind, describe(first),
			first.at.from.File, first.at.from.Line(first.at.path))
		return false
	} else if twice {
		kind.name = freeName(taken.kinds, kind, "")
		r.Names.Kind, r.Names.ListKind, r.Names.Singular = kind.name, kind.name+"List", strings.ToLower(kind.name)
	}
	taken.plurals[plural], taken.kinds[kind] = *r, *r
	return true
}

// freeName returns a name with the first number behind it that makes it free.
func freeName(taken map[versionedName]loadedResource, k versionedName, before string) string {
	for n, name := 2, k.name; ; n++ {
		k.name = name + before + strconv.Itoa(n)
		if _, twice := taken[k]; !twice {
			return k.name
		}
	}
}

func describe(r loadedResource) string {
	return fmt.Sprintf("the resource '%s' in version '%s'", r.GroupResource(), r.Version)
}

// blame finds the resource that the registry does not accept beside the previous ones.
func blame(f *findings, resources []loadedResource, all []*resource.Resource) {
	for i := range all {
		if _, err := resource.NewRegistry(all[:i+1]); err != nil {
			for _, one := range applicability.Joined(err) {
				f.At(resources[i].at.from, Error, resources[i].at.path, "%s", one.Error())
			}
			return
		}
	}
}
