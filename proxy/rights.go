package proxy

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/access"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage/kubernetes"
	"github.com/admission-gateway/gateway/policies"
)

// Rights are what the gateway's own account has to be allowed at an upstream of the dialect Kubernetes.
type Rights struct {
	Upstream string
	// HasAccount is false if the configuration names none: then stored objects are read as the client, and the rest
	// cannot be had.
	HasAccount bool
	// TellsMore is set if the account passes on attributes of users whose names only their proxies
	// know.
	TellsMore bool
	Rights    []Right
}

// A Right is what the account may do, and for what it has to.
type Right struct {
	Access
	For []string
}

// An Access is one thing that an account may do.
type Access struct {
	status.AccessRule
	// Name is the only object that it covers; empty for all.
	Name string
	// Path is set instead of a resource for paths outside of the API's resources.
	Path string
}

// IsGuessed is among the reasons of a right whose resource no file names.
const IsGuessed = "the name of the resource is a guess by the kind"

// RightsOf returns what the gateway's own account has to be allowed at each upstream of the dialect Kubernetes, so that
// everything works that the configuration and the policy files ask for. It asks the storages that serve requests what
// they read.
func RightsOf(c *config.Configuration, set *policies.Set) []Rights {
	g := &Gateway{
		writing: writing{unregistered: c.UnregisteredResources, admitOnResult: c.AdmitOn == config.AdmitOnDryRunResult},
		routes:  &routeTable{},
	}
	all := make([]Rights, 0, len(c.Upstreams))
	for i := range c.Upstreams {
		u := &c.Upstreams[i]
		if u.Dialect != config.Kubernetes {
			continue
		}
		r := rights{configuration: c, gateway: g, set: set, upstream: u, found: map[Access][]string{}}
		r.configured()
		r.stored()
		r.referred()
		r.states()
		all = append(all, Rights{Upstream: u.Name, HasAccount: u.HasAccount(), TellsMore: r.tellsMore(),
			Rights: r.sorted()})
	}
	return all
}

// rights collects what an upstream has to allow.
type rights struct {
	configuration *config.Configuration
	gateway       *Gateway
	set           *policies.Set
	upstream      *config.UpstreamSpec
	found         map[Access][]string
}

// need notes a right, and why it is needed.
func (r *rights) need(one Access, why string) {
	if !slices.Contains(r.found[one], why) {
		r.found[one] = append(r.found[one], why)
	}
}

// configured notes what the configuration asks for.
func (r *rights) configured() {
	rule := func(group, resource, verb string) Access {
		return Access{AccessRule: status.AccessRule{Group: group, Resource: resource, Verb: verb}}
	}
	r.need(rule("authorization.k8s.io", "subjectaccessreviews", "create"),
		"to ask what clients may do, before they are told why a request is refused, and for `authorizer`")
	if identity := r.configuration.Identity; identity != nil {
		for _, a := range identity.Authenticators {
			if a.TokenReview != nil && a.TokenReview.Upstream == r.upstream.Name {
				r.need(rule("authentication.k8s.io", "tokenreviews", "create"), "identity.authenticators: tokenReview")
			}
		}
	}
	if r.upstream.Events == config.RecordEvents {
		for _, verb := range []string{"create", "patch"} {
			r.need(rule("events.k8s.io", "events", verb), "upstreams: events: Record")
		}
	}
	if r.upstream.Credentials == config.ImpersonateCredentials {
		const why = "upstreams: credentials: Impersonate"
		for _, plural := range []string{"users", "groups", "serviceaccounts"} {
			r.need(rule("", plural, "impersonate"), why)
		}
		r.need(rule("authentication.k8s.io", "uids", "impersonate"), why)
		for _, name := range extrasOf(r.configuration.Identity) {
			extra := rule("authentication.k8s.io", "userextras", "impersonate")
			extra.Subresource = name
			r.need(extra, why)
		}
	}
}

// tellsMore reports whether a proxy may give attributes of users that go on to the upstream as an
// impersonation.
func (r *rights) tellsMore() bool {
	identity := r.configuration.Identity
	return r.upstream.Credentials == config.ImpersonateCredentials && identity != nil &&
		slices.ContainsFunc(identity.Authenticators,
			func(a config.Authenticator) bool { return a.RequestHeader != nil })
}

// reviewedExtras are the attributes that Kubernetes' TokenReviews give users.
var reviewedExtras = []string{
	"authentication.kubernetes.io/credential-id", "authentication.kubernetes.io/node-name",
	"authentication.kubernetes.io/node-uid",
	"authentication.kubernetes.io/pod-name", "authentication.kubernetes.io/pod-uid",
}

// extrasOf returns the attributes that authenticators give users, as far as the configuration names
// them: attributes that a proxy gives are not among them.
func extrasOf(identity *config.Identity) (all []string) {
	if identity == nil {
		return nil
	}
	for _, a := range identity.Authenticators {
		if a.TokenReview != nil {
			all = append(all, reviewedExtras...)
		}
		if a.ClientCertificate != nil {
			all = append(all, reviewedExtras[0])
		}
		if a.JWT != nil {
			for _, extra := range a.JWT.ClaimMappings.Extra {
				all = append(all, extra.Key)
			}
		}
	}
	return all
}

// written calls a function for each verb for which stored objects may be read.
func written(yield func(resource.Verb) bool) {
	for v := range resource.Verbs {
		if o := v.Operation(); o != 0 && o != admission.Create && !yield(v) {
			return
		}
	}
}

// described returns what the files say of a resource; nil if they say nothing.
func described(set *policies.Set, i *resource.Info) *resource.Resource {
	for _, r := range set.Registry().Resources() {
		if r.Group == i.Group && r.Version == i.Version && r.Names.Plural == i.Resource &&
			r.Envelope == resource.Kubernetes && r.Operation == nil {
			return r
		}
	}
	return nil
}

// stored notes what is read of stored objects: for each policy alone, so that its name can be
// shown, and for schemas.
func (r *rights) stored() {
	b := &backend{name: r.upstream.Name, kind: kubernetesKind{}}
	each := func(o kubernetes.Options, i resource.Info, why string) {
		of := kubernetes.New(o, i.Subresource)
		for i.Verb = range written {
			if isDeletion := i.Verb.Operation() == admission.Delete; isDeletion && i.Subresource != "" {
				continue
			}
			for _, rule := range of.Rules(&i) {
				r.need(Access{AccessRule: rule}, why)
			}
		}
	}
	r.set.Admission().Each(func(p admission.Policy, mutates bool) {
		chain := chainOf(p, mutates)
		for _, i := range subjects(p, r.set) {
			o := kubernetesOptions(r.gateway, b, described(r.set, &i))
			o.Policies = chain.For(&i)
			each(o, i, "the policy '"+p.Name()+"' is about the stored object")
		}
	})
	for _, p := range r.set.Conventions().All() {
		for _, i := range subjects(p, r.set) {
			if o := kubernetesOptions(r.gateway, b, described(r.set, &i)); !p.Excludes(&i, admission.Update) {
				rule := kubernetes.New(o, i.Subresource).ReadRule(&i)
				r.need(Access{AccessRule: rule}, "an update may leave as it was what the ConventionPolicy '"+p.Name()+
					"' refuses")
			}
		}
	}
	for _, described := range r.set.Registry().Resources() {
		if described.Envelope != resource.Kubernetes || described.Operation != nil {
			continue
		}
		i := resource.Info{IsResource: true, Group: described.Group, Version: described.Version,
			Resource: described.Names.Plural}
		o := kubernetesOptions(r.gateway, b, described)
		o.Policies, o.Schemas = admission.NewChain(nil, nil).For(&i), schemasOf(r.set, described)
		each(o, i, "an update may leave as it was what the schema of '"+described.GroupResource().String()+"' refuses")
	}
}

// chainOf returns a chain of one policy.
func chainOf(p admission.Policy, mutates bool) *admission.Chain {
	if mutates {
		return admission.NewChain([]admission.Mutator{p.(admission.Mutator)}, nil)
	}
	return admission.NewChain(nil, []admission.Validator{p.(admission.Validator)})
}

// subjects returns what the rules of a policy name, with the subresources that writes change.
func subjects(p admission.Policy, set *policies.Set) (all []resource.Info) {
	references := admission.ReferencesOf(p)
	for _, rule := range p.Rules() {
		versions := rule.Versions
		if len(versions) == 0 {
			versions = versionsOf(set, rule.Group, rule.Resource)
		}
		for _, version := range versions {
			i := resource.Info{IsResource: true, Group: rule.Group, Version: version, Resource: rule.Resource}
			for _, i.Subresource = range resource.Changeable(rule.Group, rule.Resource, references.Subresources) {
				all = append(all, i)
			}
		}
	}
	return all
}

// versionsOf returns the versions of a resource that the files describe, or one for all.
func versionsOf(set *policies.Set, group, plural string) (all []string) {
	for _, r := range set.Registry().Resources() {
		if r.Group == group && r.Names.Plural == plural {
			all = append(all, r.Version)
		}
	}
	if len(all) == 0 {
		return []string{"v1"}
	}
	return all
}

// referred notes what policies read beyond their request: parameters and namespaces.
func (r *rights) referred() {
	refer := func(name string, references admission.References) {
		why := "the policy '" + name + "' refers to it"
		if references.Namespaces && !r.isElsewhere(namespaceKind, "") {
			r.need(Access{AccessRule: status.AccessRule{Resource: "namespaces", Verb: resource.VerbGet.String()}},
				"the policy '"+name+"' reads namespaces or their labels")
		}
		for _, p := range references.Params {
			source := r.set.SourceOf(p.Kind, p.Namespace)
			switch {
			case p.Name == "" && source != nil, source != nil && source.Upstream != "", r.set.HoldsParams(p):
				continue
			}
			one := Access{AccessRule: status.AccessRule{Group: p.Kind.Group, Verb: resource.VerbGet.String()},
				Name: p.Name}
			if p.Name == "" {
				one.Verb = resource.VerbList.String()
			}
			plural, known := r.set.PluralOf(p.Kind)
			if one.Resource = plural; !known {
				guess, _ := meta.UnsafeGuessKindToResource(p.Kind)
				one.Resource = guess.Resource
				r.need(one, IsGuessed+" '"+p.Kind.Kind+"'")
			}
			r.need(one, why)
		}
	}
	r.set.Admission().Each(func(p admission.Policy, _ bool) { refer(p.Name(), admission.ReferencesOf(p)) })
	for _, p := range r.set.Conventions().All() {
		refer(p.Name(), admission.ReferencesOf(p))
	}
}

// namespaceKind is the kind of namespaces.
var namespaceKind = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}

// isElsewhere reports whether a StateSource of a named upstream has the objects of a kind, so that no other is asked.
func (r *rights) isElsewhere(kind schema.GroupVersionKind, namespace string) bool {
	s := r.set.SourceOf(kind, namespace)
	return s != nil && s.Upstream != ""
}

// states notes what collections are read from.
func (r *rights) states() {
	for _, s := range r.set.States() {
		if r.upstreamOf(s) != r.upstream.Name {
			continue
		}
		why := "the StateSource '" + s.Name + "'"
		path := strings.ReplaceAll(s.Path, "{namespace}", "default")
		info, err := access.InfoOf(http.MethodGet, &url.URL{Path: path})
		if err != nil || !info.IsResourceRequest {
			r.need(Access{Path: path, AccessRule: status.AccessRule{Verb: resource.VerbGet.String()}}, why)
			continue
		}
		one := Access{AccessRule: status.AccessRule{Group: info.APIGroup, Resource: info.Resource,
			Subresource: info.Subresource, Verb: info.Verb}, Name: info.Name}
		r.need(one, why)
		if s.Mode == state.Watch {
			one.Verb = resource.VerbWatch.String()
			r.need(one, why)
		}
	}
}

// upstreamOf returns the upstream that a StateSource is read from: the one that it names, or the one to which its path
// leads.
func (r *rights) upstreamOf(s *state.Source) string {
	if s.Upstream != "" {
		return s.Upstream
	}
	var own []*route
	for i := range r.configuration.Routes {
		one := &r.configuration.Routes[i]
		from := strings.TrimSuffix(one.PathPrefix, "/")
		own = append(own, &route{host: one.Host, spans: []span{{from, from}},
			place: resource.RouteRef{Upstream: one.Upstream}})
	}
	var all routeTable
	if err := all.compile(own, nil, nil); err != nil {
		return "" // cannot be: none of them has an expression
	}
	if one := all.find(ownListener, bareHead(http.MethodGet, "", s.Path)); one != nil {
		return one.routes[0].place.Upstream
	}
	return ""
}

// sorted returns the rights without those that others include.
func (r *rights) sorted() []Right {
	all := make([]Right, 0, len(r.found))
	for _, one := range slices.SortedFunc(maps.Keys(r.found), compareAccesses) {
		if !r.isIncluded(one) {
			all = append(all, Right{one, slices.Sorted(slices.Values(r.found[one]))})
		}
	}
	return all
}

// isIncluded reports whether another right includes one.
func (r *rights) isIncluded(one Access) bool {
	for other := range r.found {
		if other != one && other.includes(&one) {
			return true
		}
	}
	return false
}

// includes reports whether the right to do one thing includes the other, as far as both name
// resources.
func (r *Access) includes(other *Access) bool {
	const any = "*"
	return r.Path == "" && other.Path == "" && r.Verb == other.Verb && (r.Group == any || r.Group == other.Group) &&
		(r.Resource == any && (r.Subresource == "" || r.Subresource == other.Subresource) ||
			r.AccessRule.Name() == other.AccessRule.Name()) &&
		(r.Name == "" || r.Name == other.Name)
}

func compareAccesses(a, b Access) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(a.Subresource, b.Subresource),
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Verb, b.Verb))
}
