package mutate

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/merge"
)

// subject is what a run of a policy changes: the object, or a copy in the version that the policy's rules name.
type subject struct {
	attributes *admission.Attributes
	as         schema.GroupVersionResource
	param      document.Node
	needs      needs
	target     *document.Document
}

func newSubject(a *admission.Attributes, run *admission.Run, n needs) subject {
	return subject{attributes: a, as: run.As, param: run.Param, needs: n}
}

// bind binds what the attributes have not: the parameter, the object in the version that the policy's rules name, and
// the namespace, which match conditions do not see.
func (s *subject) bind(ctx context.Context, namespace bool) error {
	s.target = s.attributes.Object
	if s.converts() {
		var err error
		if s.target, err = s.attributes.BindAs(s.as); err != nil {
			return fmt.Errorf("failed to convert object version: %w", err)
		}
	}
	s.attributes.Frame.Vars().Set(cel.Params, s.param, nil)
	if namespace && s.needs.namespace {
		return s.attributes.BindNamespace(ctx)
	}
	return nil
}

func (s *subject) converts() bool { return s.as != s.attributes.Info.GroupVersionResource() }

// limits bound what policies make of the object.
func (s *subject) limits() document.Limits {
	if s.attributes.Schema == nil {
		return document.Limits{}
	}
	return s.attributes.Schema.PatchLimits()
}

// mergeType is the type by which the object is merged.
func (s *subject) mergeType() *merge.Type {
	if s.attributes.Schema == nil {
		return merge.Deduced()
	}
	version, _ := s.target.Root().Get("apiVersion")
	kind, _ := s.target.Root().Get("kind")
	return s.attributes.Schema.MergeType(s.as, schema.FromAPIVersionAndKind(version.Str(), kind.Str()))
}

// settle takes what was changed over into the object, and fills in what it leaves unset now.
func (s *subject) settle() error {
	a := s.attributes
	if s.converts() {
		back, _, err := a.Lookup.Convert(s.target, a.Info.GroupVersionResource())
		if err != nil {
			return fmt.Errorf("failed to convert object version: %w", err)
		}
		a.Object.Replace(a.Object.Root(), back.Root().Raw())
	}
	a.Changed()
	if a.Schema == nil {
		return nil
	}
	return a.Schema.SetDefaults()
}
