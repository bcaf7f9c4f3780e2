package policies

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/merge"
	"github.com/admission-gateway/gateway/internal/merge/kubernetes"
	"github.com/admission-gateway/gateway/internal/resource"
	kschema "github.com/admission-gateway/gateway/internal/schema"
)

// mergeTypes makes the type by which objects of a schema are merged when it is needed first: few resources ever do.
func mergeTypes(s *kschema.Schema) func() *merge.Type {
	if s == nil {
		return nil
	}
	return sync.OnceValue(s.MergeType)
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

// StrategicType is the type by which strategic merge patches of a resource are applied: nil where its schema gives no list
// merge keys, and for custom resources, which have none in Kubernetes.
func (s *Set) StrategicType(r *resource.Resource) *merge.Type {
	if c := s.compiled[r.ID]; len(r.Paths) > 0 && c.schema != nil && c.schema.HasMergeKeys() {
		return c.mergeType()
	}
	return nil
}
