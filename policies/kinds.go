package policies

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/constraints"
)

// The groups whose kinds are policies.
const (
	ownGroup                   = "admission-gateway.io"
	admissionRegistrationGroup = "admissionregistration.k8s.io"
	apiExtensionsGroup         = "apiextensions.k8s.io"
	auditGroup                 = "audit.k8s.io"
)

// kinds are all kinds that the gateway serves, sorted by group and name.
var kinds = []kind{
	define(apiExtensionsGroup, "CustomResourceDefinition", v1, readDefinition, (*loader).customResourceDefinition),
	define(ownGroup, "APIResource", v1alpha1, readOwn, (*loader).apiResource),
	define(ownGroup, "ConventionPolicy", v1alpha1, readOwn, (*loader).conventionPolicy),
	define(ownGroup, "DefaultingPolicy", v1alpha1, readOwn, (*loader).defaultingPolicy),
	define(ownGroup, "PolicyException", v1alpha1, readOwn, policyException),
	define(ownGroup, "PolicyTest", v1alpha1, readOwn, (*loader).policyTest),
	define(ownGroup, "RateLimitPolicy", v1alpha1, readOwn, (*loader).rateLimitPolicy),
	define(ownGroup, "RegoPolicy", v1alpha1, readOwn, (*loader).regoPolicy),
	define(ownGroup, "StateSource", v1alpha1, readOwn, (*loader).stateSource),
	define(constraints.TemplatesGroup, "ConstraintTemplate", gatekeeperVersions, readDefinition, gatekeepers((*constraints.Files).Template)),
	define(constraints.MutationsGroup, "Assign", gatekeeperVersions, readKubernetes, gatekeepers((*constraints.Files).Assign)),
	define(constraints.MutationsGroup, "AssignImage", v1alpha1, readKubernetes, gatekeepers((*constraints.Files).AssignImage)),
	define(constraints.MutationsGroup, "AssignMetadata", gatekeeperVersions, readKubernetes, gatekeepers((*constraints.Files).AssignMetadata)),
	define(constraints.MutationsGroup, "ModifySet", gatekeeperVersions, readKubernetes, gatekeepers((*constraints.Files).ModifySet)),
	define(constraints.ConfigGroup, "Config", v1alpha1, readKubernetes, gatekeepers((*constraints.Files).Config)),
	define(constraints.SyncSetGroup, "SyncSet", v1alpha1, readKubernetes, gatekeepers((*constraints.Files).SyncSet)),
	define(admissionRegistrationGroup, "MutatingAdmissionPolicy", mutating, readKubernetes, (*loader).mutatingPolicy),
	define(admissionRegistrationGroup, "MutatingAdmissionPolicyBinding", mutating, readKubernetes, (*loader).mutatingBinding).binds(),
	define(admissionRegistrationGroup, "ValidatingAdmissionPolicy", validating, readKubernetes, (*loader).validatingPolicy),
	define(admissionRegistrationGroup, "ValidatingAdmissionPolicyBinding", validating, readKubernetes, (*loader).validatingBinding).binds(),
	define(auditGroup, "Policy", v1, readKubernetes, (*loader).auditPolicy).unnamed(),
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
	// decode reads an object; false, and an error is recorded, if it is not of the kind's form.
	decode func(*findings, *manifest.Object) (any, bool)
	// compile takes what was read. What needs other objects is compiled when all are there.
	compile func(*loader, *manifest.Object, any)
	// unread, if set, is called where an object cannot be read.
	unread func(*loader)
	// needsNoName is set if all files together have one object of the kind.
	needsNoName bool
}

// define makes a kind whose objects are read into T.
func define[T any](group, name string, versions []string, read func(*findings, *manifest.Object, any) bool, compile func(*loader, *manifest.Object, *T)) kind {
	return kind{
		group: group, name: name, versions: versions,
		decode: func(f *findings, o *manifest.Object) (any, bool) {
			into := new(T)
			return into, read(f, o, into)
		},
		compile: func(l *loader, o *manifest.Object, read any) { compile(l, o, read.(*T)) },
	}
}

// binds returns the kind as one of bindings: of one that cannot be read nobody can tell which policy it names.
func (k kind) binds() kind {
	k.unread = func(l *loader) { l.unbound = true }
	return k
}

// unnamed returns the kind as one whose only object needs no name.
func (k kind) unnamed() kind {
	k.needsNoName = true
	return k
}

// gatekeepers hands an object of Gatekeeper's on.
func gatekeepers[T any](take func(*constraints.Files, *manifest.Object, *T)) func(*loader, *manifest.Object, *T) {
	return func(l *loader, o *manifest.Object, read *T) { take(&l.gatekeeper, o, read) }
}

// take reads and compiles an object.
func (k *kind) take(l *loader, o *manifest.Object) {
	if !k.needsNoName && o.Name == "" {
		l.At(o, Error, "metadata.name", "Required value: must have a name")
		return
	}
	read, ok := k.decode(&l.findings, o)
	switch {
	case ok:
		k.compile(l, o, read)
	case k.unread != nil:
		k.unread(l)
	}
}

// Kubernetes' own kinds are read leniently: as on an API server a field that they do not have is left out with a warning.
// Policies and definitions are published for many versions of Kubernetes.
var (
	kubernetesDecoder = manifest.Decoder{WarnUnknown: true}
	definitionDecoder = manifest.Decoder{Inside: schemaDecoder.Inside, Elsewhere: schemaDecoder.Elsewhere, WarnUnknown: true}
)

func readKubernetes(f *findings, o *manifest.Object, into any) bool {
	return f.Read(kubernetesDecoder.Decode(o, into))
}

func readDefinition(f *findings, o *manifest.Object, into any) bool {
	return f.Read(definitionDecoder.Decode(o, into))
}

// takerOf returns what to do with objects of a kind. An object that the gateway knows, or that comes from a group of
// policies, is compiled or refused, so that nothing in the files goes unenforced in silence. Configurations of webhooks, which
// stand in the manifests that install them, are skipped with a warning.
func takerOf(of schema.GroupKind, version string) (take func(*loader, *manifest.Object), isServed bool) {
	refuse := func(format string, args ...any) (func(*loader, *manifest.Object), bool) {
		return func(l *loader, o *manifest.Object) { l.At(o, Error, "kind", format, args...) }, false
	}
	if of.Group == constraints.Group {
		return func(l *loader, o *manifest.Object) { l.gatekeeper.Constraint(o) }, true
	}
	if why := constraints.Refused(of.Group); why != "" {
		return refuse("must not be '%s': %s", of.Kind, why)
	}
	var names []string
	for i := range kinds {
		k := &kinds[i]
		switch {
		case k.group != of.Group:
		case k.name != of.Kind:
			names = append(names, k.name)
		case !slices.Contains(k.versions, version):
			return func(l *loader, o *manifest.Object) {
				l.At(o, Error, "apiVersion", "must be '%s', not '%s'", k.group+"/"+strings.Join(k.versions, "' or '"+k.group+"/"), o.APIVersion)
			}, false
		default:
			return k.take, true
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
