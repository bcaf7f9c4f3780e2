// Package policies makes of policy files one compiled, immutable Set, and keeps it up to date while the files change.
package policies

import (
	"strings"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/conventions"
	"github.com/admission-gateway/gateway/admission/terms"
	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/merge"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/refusal"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/rollout"
	"github.com/admission-gateway/gateway/internal/routing"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/policies/applicability"
	"github.com/admission-gateway/gateway/policies/reuse"
	"github.com/admission-gateway/gateway/policies/source"
)

// Set is everything that the policy files say, compiled. It is immutable and safe for concurrent use: a request uses
// one Set from its first step to its last.
type Set struct {
	generation  int64
	hash        string
	successes   []resource.Success // by documents; nil in service
	files       []File
	registry    *resource.Registry
	matched     resource.NamedResources // of match blocks
	chain       *admission.Chain
	limits      *ratelimit.Rules
	conventions *conventions.Policies
	// compiled has the schema and the deprecation of each resource at its ID.
	compiled []compiledResource
	// contracts has what documents say of the operations that are no verbs of resources, each at its ID.
	contracts []*contract.Operation
	objects   map[objectID]*Object
	kinds     kindPaths
	states    []*state.Source
	routing   *routing.Table // nil if the files have no routes
	// listenersAt has where the listeners of routing are, by their names.
	listenersAt map[string]Finding

	upstreams     []upstreamUse
	scopes        []scopeUse
	served        []applicability.Served // that have paths of their own
	applicability *applicability.Result
	held          []*source.Folder // whose files are left out
	asking        []string         // the RegoPolicies that may ask other servers
	remarks       remarks
	merged        map[mergeKey]func() *merge.Type
	audit         auditPolicies
	terms         Terms

	errorTemplates map[string]*refusal.Template
	bundles        []string // that RegoPolicies name
	// logsDecisions reports whether a policy of a kind decides whose decisions are logged.
	logsDecisions bool
	kept          *reuse.Store // for the set after it
}

// remarks are findings that matter by what the configuration has.
type remarks struct {
	sharing   []Finding // of limits that gateways share, if they cannot
	users     []Finding // of policies that read the user, if the configuration does not say how to know it
	kinds     []Finding // of policies that read kinds, if the gateway has no account by which to ask for them
	raced     []Finding // of writes that several gateways without common locks may send at once
	wildcards []Finding // of what wildcards match at plain APIs
}

// Terms are the rollouts and the exceptions of a set.
type Terms struct {
	Rollouts   []*rollout.Plan
	Exceptions []*terms.Exception
}

// Terms are the rollouts and the exceptions of the policies. The answer must not be changed.
func (s *Set) Terms() Terms { return s.terms }

// Object is an object of the policy files that is no policy itself: others may refer to it.
type Object struct {
	APIVersion, Kind, Namespace, Name string
	// Document is the object. It must not be edited or released.
	Document *document.Document
}

// objectID identifies an object. The version does not count: it is another view of the same object.
type objectID struct {
	group, kind, namespace, name string
}

// Applicability says which places of the files apply to no request.
func (s *Set) Applicability() *applicability.Result { return s.applicability }

// Generation counts the sets of this process that came into force, from 1; 0 is a set that did not.
func (s *Set) Generation() int64 { return s.generation }

// Hash is the SHA-256 of the contents of the files, in hex; gateways with the same policies have the same hash.
func (s *Set) Hash() string { return s.hash }

// Registry finds the resource of a request.
func (s *Set) Registry() *resource.Registry { return s.registry }

// Schema is the schema of a resource; nil if it has none, and for a nil resource.
func (s *Set) Schema(r *resource.Resource) *schema.Schema {
	if r == nil {
		return nil
	}
	return s.compiled[r.ID].schema
}

// Successes returns how documents say that operations are answered. Only the sets of [CompileWithPlansFor] know it.
func (s *Set) Successes() []resource.Success { return s.successes }

// SchemaFor is the schema of the objects that requests of a verb carry, or ask for. OpenAPI documents may have several.
func (s *Set) SchemaFor(r *resource.Resource, verb resource.Verb) *schema.Schema {
	if r == nil {
		return nil
	}
	c := &s.compiled[r.ID]
	if !c.varies {
		return c.schema
	}
	switch verb.Schema() {
	case resource.SchemaOfCreates:
		return c.create
	case resource.SchemaOfPatches:
		return c.patch
	case resource.SchemaOfReads:
		return c.read
	}
	return c.update
}

// BlamesPatches reports whether the result of a patch is refused only for what the patch changed. It is if the schema
// is of an OpenAPI document; all others are Kubernetes' own.
func (s *Set) BlamesPatches(r *resource.Resource) bool {
	return r != nil && s.compiled[r.ID].varies && len(r.Paths) > 0
}

// Operation returns what a document declares of a request beside its body; nil if it declares nothing.
func (s *Set) Operation(r *resource.Resource, i *resource.Info) *contract.Operation {
	if i.Documented != nil {
		return s.contracts[i.Documented.ID]
	}
	if r == nil || i.IsUndescribed || i.Subresource != "" && i.APIPrefix == "" && r.Operation == nil {
		return nil
	}
	return s.compiled[r.ID].contract.Of(i)
}

// WatchesAnswers reports whether the answers to a request are checked against a document.
func (s *Set) WatchesAnswers(r *resource.Resource, i *resource.Info) bool {
	if i.Documented != nil {
		return len(s.contracts[i.Documented.ID].Answers) > 0
	}
	return r != nil && !i.IsUndescribed && (i.Subresource == "" || r.Operation != nil) &&
		s.compiled[r.ID].contract.HasAnswers()
}

// Owned says what the API itself sets in objects that requests of a verb carry, or result in; nil if that is not known.
func (s *Set) Owned(r *resource.Resource, verb resource.Verb) *contract.Members {
	switch {
	case r == nil:
		return nil
	case verb == resource.VerbCreate:
		return s.compiled[r.ID].ownedOnCreate
	case verb == resource.VerbPatch:
		return s.compiled[r.ID].ownedOnPatch
	}
	return s.compiled[r.ID].ownedOnUpdate
}

// Hidden says what the API takes in objects and does not show; nil if nothing is known.
func (s *Set) Hidden(r *resource.Resource) *contract.Members {
	if r == nil {
		return nil
	}
	return s.compiled[r.ID].hidden
}

// Deprecation returns the warning for clients of a deprecated version; "" for other resources, and for nil.
func (s *Set) Deprecation(r *resource.Resource) string {
	if r == nil {
		return ""
	}
	return s.compiled[r.ID].warning
}

// Admission has the admission policies.
func (s *Set) Admission() *admission.Chain { return s.chain }

// Conventions are the checks of API conventions; nil if there are none.
func (s *Set) Conventions() *conventions.Policies { return s.conventions }

// Limits are the rate limits.
func (s *Set) Limits() *ratelimit.Rules { return s.limits }

// Object returns an object of the files that others may refer to, such as the Namespace or the parameters of a policy.
func (s *Set) Object(group, kind, namespace, name string) (*Object, bool) {
	o, ok := s.objects[objectID{group, kind, namespace, name}]
	return o, ok
}

// File is a policy file of a Set.
type File struct {
	// Name is the file's name as the paths led to it.
	Name string
	// Folder is the folder of the file and Owner who mends it; "" if no folder has an owner.
	Folder, Owner string
	// Objects are its objects, in its order.
	Objects []FileObject
}

// FileObject names an object in a policy file.
type FileObject struct {
	APIVersion, Kind, Namespace, Name string
}

// Asking returns the names of the RegoPolicies that may ask other servers.
func (s *Set) Asking() []string { return s.asking }

// Files are the files that the set was made of, by name. The answer must not be changed.
func (s *Set) Files() []File { return s.files }

// OriginOf returns the folder that an object of the files comes from, and its owner; "" if it has none.
func (s *Set) OriginOf(kind, name string) (folder, owner string) {
	for i := range s.files {
		f := &s.files[i]
		if f.Owner == "" {
			continue
		}
		for j := range f.Objects {
			if o := &f.Objects[j]; o.Kind == kind && o.Name == name {
				return f.Folder, f.Owner
			}
		}
	}
	return "", ""
}

func inventoryOf(name string, objects []*manifest.Object) File {
	f := File{Name: name, Objects: make([]FileObject, len(objects))}
	for i, o := range objects {
		f.Objects[i] = FileObject{strings.Clone(o.APIVersion), strings.Clone(o.Kind), strings.Clone(o.Namespace),
			strings.Clone(o.Name)}
	}
	return f
}
