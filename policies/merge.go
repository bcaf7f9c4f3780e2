package policies

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/merge"
	"github.com/admission-gateway/gateway/internal/merge/kubernetes"
	"github.com/admission-gateway/gateway/internal/resource"
	kschema "github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/policies/reuse"
)

// mergeTypes makes the type by which objects of a schema are merged when it is needed first: few
// resources ever do. The types of Kubernetes' own kinds are known, whatever the document says that
// describes them.
func mergeTypes(kept *reuse.Store, r loadedResource) func() *merge.Type {
	if r.compiled.schema == nil || ownType(r.Resource) != nil {
		return nil
	}
	return mergeTypeOf(kept, r.compiled.schema, r.showsItems())
}

// mergeTypeKey is the key of the type of a schema, or of the items of its lists.
type mergeTypeKey struct {
	schema  *kschema.Schema
	ofItems bool
}

func mergeTypeOf(kept *reuse.Store, s *kschema.Schema, ofItems bool) func() *merge.Type {
	return reuse.Of(kept, mergeTypeKey{s, ofItems}, func() func() *merge.Type {
		if ofItems {
			return sync.OnceValue(s.ItemMergeType)
		}
		return sync.OnceValue(s.MergeType)
	})
}

// ownType is the type of one of Kubernetes' own kinds; nil for others.
func ownType(r *resource.Resource) *merge.Type {
	if len(r.Paths) > 0 {
		return nil
	}
	return kubernetes.TypeOf(r.GroupVersionKind())
}

// mergeKey names the objects that a schema merges. The kind is empty if the objects do not name
// theirs.
type mergeKey struct {
	resource schema.GroupVersionResource
	kind     schema.GroupVersionKind
}

// indexMergeTypes finds the merge types by what objects are. Of several resources the first counts, as in the registry.
func (s *Set) indexMergeTypes() {
	s.merged = make(map[mergeKey]func() *merge.Type)
	for _, r := range s.registry.Resources() {
		if r.Operation != nil {
			continue
		}
		key := mergeKey{resource: r.GroupVersionResource()}
		if r.Envelope == resource.Kubernetes {
			key.kind = r.GroupVersionKind()
		}
		if _, known := s.merged[key]; !known && s.compiled[r.ID].mergeType != nil {
			s.merged[key] = s.compiled[r.ID].mergeType
		}
	}
}

// MergeType is the type by which objects of the kind are merged: from the schema of the resource
// that the files describe, else the type of Kubernetes' own kind, else deduced from the values. It
// is never nil.
func (s *Set) MergeType(as schema.GroupVersionResource, kind schema.GroupVersionKind) *merge.Type {
	for _, key := range []mergeKey{{as, kind}, {resource: as}} {
		if t := s.merged[key]; t != nil {
			return t()
		}
	}
	if t := kubernetes.TypeOf(kind); t != nil {
		return t
	}
	return merge.Deduced()
}

// StrategicType is the type by which strategic merge patches of a resource are applied: the type of
// Kubernetes' own kind, else from the schema. It is nil if the schema gives no list merge keys, and
// for custom resources, which have none in Kubernetes.
func (s *Set) StrategicType(r *resource.Resource) *merge.Type {
	c := &s.compiled[r.ID]
	custom := len(r.Paths) == 0 && !c.varies
	if c.mergeType == nil || custom || !c.schema.HasMergeKeys() {
		return ownType(r)
	}
	return c.mergeType()
}
