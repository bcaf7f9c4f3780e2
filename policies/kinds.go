package policies

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/constraints"
	"github.com/admission-gateway/gateway/policies/reuse"
)

// The groups whose kinds are policies.
const (
	ownGroup                   = "admission-gateway.io"
	admissionRegistrationGroup = "admissionregistration.k8s.io"
	apiExtensionsGroup         = "apiextensions.k8s.io"
	auditGroup                 = "audit.k8s.io"
)

// kinds are all kinds that the gateway serves. Policies are compiled in this order, and within one
// group by name.
var kinds = []kind{
	declare(apiExtensionsGroup, "CustomResourceDefinition", v1, readDefinition, (*loader).customResourceDefinition),
	define(admissionRegistrationGroup, "MutatingAdmissionPolicy", mutating, readKubernetes, (*mutatingPolicies).policy),
	define(admissionRegistrationGroup, "MutatingAdmissionPolicyBinding", mutating, readKubernetes,
		(*mutatingPolicies).binding).binds(),
	define(admissionRegistrationGroup, "ValidatingAdmissionPolicy", validating, readKubernetes,
		(*validatingPolicies).policy),
	define(admissionRegistrationGroup, "ValidatingAdmissionPolicyBinding", validating, readKubernetes,
		(*validatingPolicies).binding).binds(),
	declare(ownGroup, "APIResource", v1alpha1, readOwn, (*loader).apiResource),
	define(ownGroup, "ConventionPolicy", v1alpha1, readOwn, (*conventionPolicies).take),
	define(ownGroup, "DefaultingPolicy", v1alpha1, readOwn, (*defaultingPolicies).take),
	define(ownGroup, "ErrorTemplate", v1alpha1, readOwn, (*errorTemplates).take),
	declare(ownGroup, "PolicyException", v1alpha1, readOwn, (*loader).policyException),
	declare(ownGroup, "PolicyTest", v1alpha1, readOwn, (*loader).policyTest),
	define(ownGroup, "RateLimitPolicy", v1alpha1, readOwn, (*rateLimits).take),
	define(ownGroup, "RegoPolicy", v1alpha1, readOwn, (*regoPolicies).take),
	define(ownGroup, "StateSource", v1alpha1, readOwn, (*stateSources).take),
	define(constraints.TemplatesGroup, "ConstraintTemplate", gatekeeperVersions, readDefinition,
		gatekeepers((*constraints.Files).Template)),
	define(constraints.MutationsGroup, "Assign", gatekeeperVersions, readKubernetes,
		gatekeepers((*constraints.Files).Assign)),
	define(constraints.MutationsGroup, "AssignImage", v1alpha1, readKubernetes,
		gatekeepers((*constraints.Files).AssignImage)),
	define(constraints.MutationsGroup, "AssignMetadata", gatekeeperVersions, readKubernetes,
		gatekeepers((*constraints.Files).AssignMetadata)),
	define(constraints.MutationsGroup, "ModifySet", gatekeeperVersions, readKubernetes,
		gatekeepers((*constraints.Files).ModifySet)),
	define(constraints.ConfigGroup, "Config", v1alpha1, readKubernetes, gatekeepers((*constraints.Files).Config)),
	define(constraints.SyncSetGroup, "SyncSet", v1alpha1, readKubernetes, gatekeepers((*constraints.Files).SyncSet)),
	routes(gatewayGroup, "BackendTLSPolicy"),
	routes(gatewayGroup, "GRPCRoute"),
	routes(gatewayGroup, "Gateway"),
	routes(gatewayGroup, "GatewayClass"),
	routes(gatewayGroup, "HTTPRoute"),
	routes(gatewayGroup, "ListenerSet"),
	routes(gatewayGroup, "ReferenceGrant"),
	routes(gatewayGroup, "TCPRoute"),
	routes(gatewayGroup, "TLSRoute"),
	routes(gatewayGroup, "UDPRoute"),
	routes(networkingGroup, "Ingress"),
	routes(networkingGroup, "IngressClass"),
	define(auditGroup, "Policy", v1, readKubernetes, (*auditPolicies).take).unnamed(),
}

// The versions of kinds. Of Kubernetes' kinds, v1beta1 and v1alpha1 have the same fields as v1.
var (
	v1         = []string{"v1"}
	v1alpha1   = []string{"v1alpha1"}
	validating = []string{"v1", "v1beta1"}
	mutating   = []string{"v1", "v1beta1", "v1alpha1"}

	gatekeeperVersions = []string{"v1", "v1beta1", "v1alpha1"}
)

// A kind is one of policy files, and what the gateway does with objects of it.
type kind struct {
	group, name string
	versions    []string
	// part returns the part of the kind in a load, which it makes first; nil: the kind has none.
	part func(*loader) any
	// decode reads an object; false, and an error is recorded, if it is not of the kind's form.
	decode func(*findings, *manifest.Object) (any, bool)
	// collect takes what was read. What needs other objects is compiled when all are there.
	collect func(*loader, *manifest.Object, any)
	// unread, if set, is called if an object cannot be read.
	unread func(*loader)
	// needsNoName is set if all files together have one object of the kind.
	needsNoName bool
	// isNamespaced is set if objects of the kind belong to namespaces; sharesGroup if its group has kinds too that mean
	// nothing to the gateway.
	isNamespaced, sharesGroup bool
}

// The part of a kind has what a load collects of the kind's objects. Kinds that are compiled together, such as policies
// and their bindings, share a part, which they name by its type. It may be a compiler and a connecter.

// A compiler compiles what it has when all objects were taken.
type compiler interface{ compile(l *loader) }

// A connecter finishes what it has when the resources are registered, so that kinds can be looked up.
type connecter interface{ connect(l *loader) }

// part returns the part of a load that is a P.
func part[P any](l *loader) *P {
	key := reflect.TypeFor[P]()
	p, made := l.parts[key].(*P)
	if !made {
		p = new(P)
		l.parts[key] = p
	}
	return p
}

// define makes a kind whose objects are read into a T, and taken by its part, a P.
func define[T, P any](group, name string, versions []string, read func(*findings, *manifest.Object, any) bool,
	take func(*P, *loader, *manifest.Object, *T)) kind {
	k := declare(group, name, versions, read,
		func(l *loader, o *manifest.Object, read *T) { take(part[P](l), l, o, read) })
	k.part = func(l *loader) any { return part[P](l) }
	return k
}

// declare makes a kind without a part: its objects are read into a T, and say something that other kinds use.
func declare[T any](group, name string, versions []string, read func(*findings, *manifest.Object, any) bool,
	take func(*loader, *manifest.Object, *T)) kind {
	return kind{
		group: group, name: name, versions: versions,
		decode: func(f *findings, o *manifest.Object) (any, bool) {
			into := new(T)
			return into, read(f, o, into)
		},
		collect: func(l *loader, o *manifest.Object, read any) { take(l, o, read.(*T)) },
	}
}

// each calls visit for each part of the kinds, in the order of the kinds.
func (l *loader) each(visit func(name string, part any)) {
	var seen []any
	for i := range kinds {
		if kinds[i].part == nil {
			continue
		}
		if p := kinds[i].part(l); !slices.Contains(seen, p) {
			seen = append(seen, p)
			visit(kinds[i].name, p)
		}
	}
}

// compileKinds compiles what takes all objects.
func (l *loader) compileKinds() {
	l.each(func(name string, part any) {
		if c, ok := part.(compiler); ok {
			begun := time.Now()
			c.compile(l)
			l.times.add("compile", name, time.Since(begun))
		}
	})
}

// binds returns the kind as one of bindings: the policy that an unreadable binding names is
// unknown.
func (k kind) binds() kind {
	k.unread = func(l *loader) { part[unreadBindings](l).any = true }
	return k
}

// unreadBindings says whether there are bindings that cannot be read.
type unreadBindings struct{ any bool }

// unnamed returns the kind as one whose only object needs no name.
func (k kind) unnamed() kind {
	k.needsNoName = true
	return k
}

// decoded is an object as it was read, which must not be changed: other sets share it. False: it cannot be read.
type decoded struct {
	read any
	ok   bool
}

// take reads and takes an object.
func (k *kind) take(l *loader, o *manifest.Object) {
	if !k.needsNoName && o.Name == "" {
		l.At(o, Error, "metadata.name", "Required value: must have a name")
		return
	}
	d := reuse.OfObject(l.kept, &l.findings, o, "decode", nil, func(f *findings) (d decoded) {
		d.read, d.ok = k.decode(f, o)
		return d
	})
	switch {
	case d.ok:
		k.collect(l, o, d.read)
	case k.unread != nil:
		k.unread(l)
	}
}

// Kubernetes' own kinds are read leniently: as on an API server a field that they do not have is left out with a
// warning. Policies and definitions are published for many versions of Kubernetes.
var (
	kubernetesDecoder = manifest.Decoder{WarnUnknown: true}
	definitionDecoder = manifest.Decoder{Inside: schemaDecoder.Inside, Elsewhere: schemaDecoder.Elsewhere,
		WarnUnknown: true}
)

func readKubernetes(f *findings, o *manifest.Object, into any) bool {
	return f.Read(kubernetesDecoder.Decode(o, into))
}

func readDefinition(f *findings, o *manifest.Object, into any) bool {
	return f.Read(definitionDecoder.Decode(o, into))
}

// takerOf returns what to do with objects of a kind, and whether they are policies, which belong to no namespace. An
// object that the gateway knows, or that comes from a group of policies, is compiled or refused, so that nothing in the
// files goes unenforced in silence. Configurations of webhooks, which stand in the manifests that install them, are
// skipped with a warning.
func takerOf(of schema.GroupKind, version string) (take func(*loader, *manifest.Object), isServed bool) {
	refuse := func(format string, args ...any) (func(*loader, *manifest.Object), bool) {
		return func(l *loader, o *manifest.Object) { l.At(o, Error, "kind", format, args...) }, false
	}
	if of.Group == constraints.Group {
		return func(l *loader, o *manifest.Object) { part[gatekeeperFiles](l).files.Constraint(o) }, true
	}
	if why := constraints.Refused(of.Group); why != "" {
		return refuse("must not be '%s': %s", of.Kind, why)
	}
	var names []string
	for i := range kinds {
		k := &kinds[i]
		switch {
		case k.group != of.Group:
		case k.name != of.Kind && k.sharesGroup:
		case k.name != of.Kind:
			names = append(names, k.name)
		case !slices.Contains(k.versions, version):
			return func(l *loader, o *manifest.Object) {
				l.At(o, Error, "apiVersion", "must be '%s', not '%s'",
					k.group+"/"+strings.Join(k.versions, "' or '"+k.group+"/"), o.APIVersion)
			}, false
		default:
			return k.take, !k.isNamespaced
		}
	}
	switch of {
	case schema.GroupKind{Group: admissionRegistrationGroup, Kind: "ValidatingWebhookConfiguration"},
		schema.GroupKind{Group: admissionRegistrationGroup, Kind: "MutatingWebhookConfiguration"}:
		return func(l *loader, o *manifest.Object) {
			l.At(o, Warning, "kind", "the %s is skipped: the gateway calls no webhooks, so that only a backend's own API server asks them", of.Kind)
		}, false
	case schema.GroupKind{Group: ownGroup, Kind: "GatewayConfiguration"}:
		return refuse("must not be '%s' among the policies: the gateway's own configuration is given with --config", of.Kind)
	}
	if len(names) == 0 {
		return (*loader).otherObject, false
	}
	served := "'" + strings.Join(names, "', '") + "'"
	if i := strings.LastIndex(served, ", "); i >= 0 {
		served = served[:i] + " or " + served[i+len(", "):]
	}
	return refuse("must be %s, not '%s'", served, of.Kind)
}

// Serves reports whether the gateway takes objects of a kind for policies.
func Serves(group, name string) bool {
	return slices.ContainsFunc(kinds, func(k kind) bool { return k.group == group && k.name == name })
}
