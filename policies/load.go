package policies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/conventions"
	"github.com/admission-gateway/gateway/admission/vap"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/resource"
)

// The groups whose kinds are policies.
const (
	ownGroup                   = "admission-gateway.io"
	admissionRegistrationGroup = "admissionregistration.k8s.io"
	apiExtensionsGroup         = "apiextensions.k8s.io"
)

// Load reads and compiles the policies in files and directories. The findings are sorted by file and line; the Set is
// nil if one of them is an error.
func Load(paths []string) (*Set, []Finding) {
	return compile(readSource(paths))
}

// Check returns what Load finds.
func Check(paths []string) []Finding {
	_, found := Load(paths)
	return found
}

func compile(s *source) (*Set, []Finding) {
	l := newLoader()
	set := l.load(s)
	found := sortFindings(l.list)
	if HasErrors(found) {
		return nil, found
	}
	return set, found
}

func newLoader() *loader {
	return &loader{
		known:    map[objectID]*manifest.Object{},
		policies: map[string]*loadedPolicy{},
		objects:  map[objectID]*Object{},
	}
}

// load compiles what the files have. The result is usable only if no errors are found.
func (l *loader) load(s *source) *Set {
	l.list = slices.Clone(s.list)
	files := make([]File, 0, len(s.files))
	for _, f := range s.files {
		objects, errs := manifest.Read(f.name, f.data)
		files = append(files, inventoryOf(f.name, objects))
		l.read(errs)
		for _, o := range objects {
			l.object(o)
		}
	}
	set := l.finish()
	set.hash, set.files = s.hash, files
	return set
}

// loader compiles the objects of the files one by one, and then what takes all of them.
type loader struct {
	findings
	known       map[objectID]*manifest.Object
	resources   []loadedResource
	policies    map[string]*loadedPolicy
	bindings    []loadedBinding
	unbound     bool // some binding cannot be read, so that nobody can tell which policy it names
	limits      []*ratelimit.Rule
	sharing     []Finding
	upstreams   []upstreamUse
	conventions []*conventions.Policy
	sources     []loadedSource
	paramUses   []paramUse
	objects     map[objectID]*Object

	planning bool // somebody asks for the plans of expressions
	plans    []Plan

	defaulting       []loadedDefaulting
	mutating         []*loadedMutating
	mutatingBindings []loadedMutatingBinding
	passing          []resource.Passing
}

// loadedResource is a resource and the part of a file that it comes from.
type loadedResource struct {
	*resource.Resource
	compiledResource
	props *apiextensionsv1.JSONSchemaProps // its schema as it is written; nil where there is none
	from  *manifest.Object
	path  string
}

type loadedPolicy struct {
	from *manifest.Object
	spec *admissionv1.ValidatingAdmissionPolicy
}

type loadedBinding struct {
	from    *manifest.Object
	policy  string // the policy's name, also where the binding did not compile
	params  *admissionv1.ParamRef
	binding *vap.Binding
}

// object takes one object of a file.
func (l *loader) object(o *manifest.Object) {
	if o.OpenAPI {
		l.openAPI(o)
		return
	}
	group, version := o.GroupVersion()
	kind := schema.GroupKind{Group: group, Kind: o.Kind}
	take, served := l.takerOf(kind, version)
	if served && !l.named(o) {
		return
	}
	id := objectID{group, o.Kind, o.Namespace, o.Name}
	if served {
		id.namespace = ""
	}
	if first, twice := l.known[id]; twice {
		l.at(o, Error, "metadata.name", "must be unique; %s '%s' is in %s:%d already", o.Kind, qualified(o), first.File, first.Line("metadata.name"))
		return
	}
	l.known[id] = o
	take(o)
}

// takerOf returns what to do with objects of a kind. An object that the gateway knows, or that comes from a group of
// policies, is compiled or refused, so that nothing in the files goes unenforced in silence.
func (l *loader) takerOf(kind schema.GroupKind, version string) (take func(*manifest.Object), isServed bool) {
	refuse := func(format string, args ...any) (func(*manifest.Object), bool) {
		return func(o *manifest.Object) { l.at(o, Error, "kind", format, args...) }, false
	}
	var names []string
	for _, k := range l.kinds() {
		switch {
		case k.group != kind.Group:
		case k.name != kind.Kind:
			names = append(names, k.name)
		case !slices.Contains(k.versions, version):
			return func(o *manifest.Object) {
				l.at(o, Error, "apiVersion", "must be '%s', not '%s'", k.group+"/"+strings.Join(k.versions, "' or '"+k.group+"/"), o.APIVersion)
			}, false
		default:
			return k.take, true
		}
	}
	switch kind {
	case schema.GroupKind{Group: ownGroup, Kind: "RegoPolicy"}:
		return refuse("must not be '%s': this version of the gateway does not serve it yet", kind.Kind)
	case schema.GroupKind{Group: admissionRegistrationGroup, Kind: "ValidatingWebhookConfiguration"},
		schema.GroupKind{Group: admissionRegistrationGroup, Kind: "MutatingWebhookConfiguration"}:
		return refuse("must not be '%s': the gateway calls no webhooks", kind.Kind)
	case schema.GroupKind{Group: ownGroup, Kind: "GatewayConfiguration"}:
		return refuse("must not be '%s' among the policies: the gateway's own configuration is given with --config", kind.Kind)
	}
	if len(names) == 0 {
		return l.otherObject, false
	}
	served := "'" + strings.Join(names, "', '") + "'"
	if i := strings.LastIndex(served, ", "); i >= 0 {
		served = served[:i] + " or " + served[i+len(", "):]
	}
	return refuse("must be %s, not '%s'", served, kind.Kind)
}

// aKind is a kind of policy files that the gateway serves, and what it does with an object of it.
type aKind struct {
	group, name string
	versions    []string
	take        func(*manifest.Object)
}

// kinds are all kinds that the gateway serves, those of a group by their names.
func (l *loader) kinds() []aKind {
	v1, own := []string{"v1"}, []string{"v1alpha1"}
	validating, mutating := []string{"v1", "v1beta1"}, []string{"v1", "v1beta1", "v1alpha1"}
	return []aKind{
		{apiExtensionsGroup, "CustomResourceDefinition", v1, l.customResourceDefinition},
		{ownGroup, "APIResource", own, l.apiResource},
		{ownGroup, "ConventionPolicy", own, l.conventionPolicy},
		{ownGroup, "DefaultingPolicy", own, l.defaultingPolicy},
		{ownGroup, "RateLimitPolicy", own, l.rateLimitPolicy},
		{ownGroup, "StateSource", own, l.stateSource},
		{admissionRegistrationGroup, "MutatingAdmissionPolicy", mutating, l.mutatingPolicy},
		{admissionRegistrationGroup, "MutatingAdmissionPolicyBinding", mutating, l.mutatingBinding},
		{admissionRegistrationGroup, "ValidatingAdmissionPolicy", validating, l.validatingPolicy},
		{admissionRegistrationGroup, "ValidatingAdmissionPolicyBinding", validating, l.validatingBinding},
	}
}

// named makes sure that a policy has a name. All of them are cluster-scoped; as on an API server a namespace, which
// templates are fond of, means nothing.
func (l *loader) named(o *manifest.Object) bool {
	if o.Name == "" {
		l.at(o, Error, "metadata.name", "Required value: must have a name")
		return false
	}
	if o.Namespace != "" {
		l.at(o, Warning, "metadata.namespace", "has no effect: a %s belongs to no namespace", o.Kind)
	}
	return true
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
		l.at(o, Error, "metadata.name", "Required value: must have a name, by which policies refer to the object")
		return
	}
	d, err := document.Parse(o.JSON, document.Limits{Bytes: manifest.MaxBytes * 2, Depth: 1000})
	if err != nil {
		l.at(o, Error, "", "must be an object that can be read in one way only: %v", err)
		return
	}
	group, _ := o.GroupVersion()
	l.objects[objectID{group, o.Kind, o.Namespace, o.Name}] = &Object{
		APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Document: d,
	}
}

// finish compiles what takes all objects. The result is usable only if there are no errors.
func (l *loader) finish() *Set {
	set := &Set{limits: ratelimit.NewRules(l.limits), sharing: l.sharing, upstreams: l.upstreams, objects: l.objects, conventions: conventions.New(l.conventions)}
	set.chain = admission.NewChain(append(l.defaulters(), l.mutators()...), l.validators())
	l.register(set)
	l.refer(set)
	l.pinnable(set.chain)
	return set
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
		set.compiled[r.ID] = r.compiledResource
		set.compiled[r.ID].mergeType = mergeTypes(r)
	}
	set.indexMergeTypes()
}

// distinct reports resources that two files define, and kinds that two resources of a group have.
func (l *loader) distinct(resources []loadedResource) []loadedResource {
	slices.SortStableFunc(resources, func(a, b loadedResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Plural, b.Plural), cmp.Compare(a.Version, b.Version))
	})
	type versioned struct{ group, version, name string }
	plurals, kinds := map[versioned]loadedResource{}, map[versioned]loadedResource{}
	kept := make([]loadedResource, 0, len(resources))
	for _, r := range resources {
		plural, kind := versioned{r.Group, r.Version, r.Plural}, versioned{r.Group, r.Version, r.Kind}
		if first, twice := plurals[plural]; twice {
			l.at(r.from, Error, r.path, "must not define %s again, which %s:%d does", describe(r), first.from.File, first.from.Line(first.path))
			continue
		}
		if first, twice := kinds[kind]; twice {
			l.at(r.from, Error, r.path, "must not have the kind '%s' of %s in %s:%d", r.Kind, describe(first), first.from.File, first.from.Line(first.path))
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
				l.at(l.resources[i].from, Error, l.resources[i].path, "%s", one.Error())
			}
			return
		}
	}
}

// parts are the errors that were joined.
func parts(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}
