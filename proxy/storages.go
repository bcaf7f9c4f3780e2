package proxy

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/merge"
	mergekubernetes "github.com/admission-gateway/gateway/internal/merge/kubernetes"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/storage/kubernetes"
	"github.com/admission-gateway/gateway/internal/storage/plain"
	"github.com/admission-gateway/gateway/policies"
)

func schemasOf(set *policies.Set, r *resource.Resource) storage.Schemas {
	return storage.Schemas{
		Create: set.SchemaFor(r, resource.VerbCreate), Update: set.SchemaFor(r, resource.VerbUpdate),
		Patch: set.SchemaFor(r, resource.VerbPatch),
		Read:  set.SchemaFor(r, resource.VerbGet), BlamesPatches: set.BlamesPatches(r),
	}
}

// storage implements kind.
func (kubernetesKind) storage(g *Gateway, set *policies.Set, b *backend, r *resource.Resource, i *resource.Info, own,
	object *admission.Scoped) storage.Storage {
	o := kubernetesOptions(g, b, r)
	o.Policies, o.Schemas, o.MergeType = own, schemasOf(set, r), set.MergeType
	return kubernetes.New(o, i.Subresource)
}

// kubernetesOptions describe a resource as far as the policies do not.
func kubernetesOptions(g *Gateway, b *backend, r *resource.Resource) kubernetes.Options {
	o := kubernetes.Options{Backend: &b.storage, Limits: &g.requestLimits, Resource: r, PreviewsWrites: g.admitOnResult,
		Proofs: b.proofs}
	switch {
	case r != nil:
		o.Status = storage.StatusPath(r)
	case g.unregistered.ProtectStatus:
		o.Status = storage.KubernetesStatus
	}
	o.ChecksNames = r == nil && g.unregistered.CheckNames
	return o
}

// storage implements kind.
func (plainKind) storage(g *Gateway, set *policies.Set, b *backend, r *resource.Resource, i *resource.Info, own,
	object *admission.Scoped) storage.Storage {
	o := plain.Options{
		Policies: own, ObjectPolicies: object,
		Backend: &b.storage, Limits: &g.requestLimits, Resource: r, Schemas: schemasOf(set, r), Hidden: set.Hidden(r),
		ProtectsStatus: g.unregistered.ProtectStatus, ChecksNames: r == nil && g.unregistered.CheckNames,
		Locks: g.locks, LocksAlone: g.locksAlone, Memory: g.memory,
	}
	if r != nil {
		o.Comparison = b.comparisons.Of(r.GroupResource())
	}
	o.StrategicType = func(existing document.Node) *merge.Type {
		if r != nil {
			return set.StrategicType(r)
		}
		version, kind := storage.TextIn(existing, "apiVersion"), storage.TextIn(existing, "kind")
		return mergekubernetes.TypeOf(schema.FromAPIVersionAndKind(version, kind))
	}
	return plain.New(o, i.Subresource)
}

// operation leaves requests at the paths of an API server to it: it reads its parameters and credentials itself.
func (kubernetesKind) operation(set *policies.Set, r *resource.Resource, i *resource.Info) *contract.Operation {
	if i.APIPrefix != "" {
		return nil
	}
	return set.Operation(r, i)
}

func (plainKind) operation(set *policies.Set, r *resource.Resource, i *resource.Info) *contract.Operation {
	return set.Operation(r, i)
}
