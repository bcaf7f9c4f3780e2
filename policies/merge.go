package policies

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/merge"
	"github.com/admission-gateway/gateway/internal/merge/kubernetes"
	"github.com/admission-gateway/gateway/internal/resource"
)

// mergeTypes makes the type by which objects of a schema are merged when it is needed first: few resources ever do. That
// of Kubernetes' own kinds is known, whatever the document says that describes them.
func mergeTypes(r loadedResource) func() *merge.Type {
	if r.schema == nil || ownType(r.Resource) != nil {
		return nil
	}
	return sync.OnceValue(r.schema.MergeType)
}

// ownType is the type of one of Kubernetes' own kinds; nil for others.
func ownType(r *resource.Resource) *merge.Type {
	if len(r.Paths) > 0 {
		return nil
	}
	return kubernetes.TypeOf(r.GroupVersionKind())
}

// MergeType is the type by which objects of the kind are merged: from the schema of the resource that the files describe,
// else that of Kubernetes' own kind, else deduced from the values. It is never nil.
func (s *Set) MergeType(as schema.GroupVersionResource, kind schema.GroupVersionKind) *merge.Type {
	for _, r := range s.registry.Resources() {
		if r.GroupVersionResource() != as || r.Envelope == resource.Kubernetes && r.GroupVersionKind() != kind {
			continue
		}
		if t := s.compiled[r.ID].mergeType; t != nil {
			return t()
		}
	}
	if t := kubernetes.TypeOf(kind); t != nil {
		return t
	}
	return merge.Deduced()
}

// StrategicType is the type by which strategic merge patches of a resource are applied: that of Kubernetes' own kind, else
// from the schema. It is nil where the schema gives no list merge keys, and for custom resources, which have none in
// Kubernetes.
func (s *Set) StrategicType(r *resource.Resource) *merge.Type {
	c := &s.compiled[r.ID]
	custom := len(r.Paths) == 0 && !c.varies
	if c.mergeType == nil || custom || !c.schema.HasMergeKeys() {
		return ownType(r)
	}
	return c.mergeType()
}
