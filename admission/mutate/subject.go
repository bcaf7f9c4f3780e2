package mutate

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/policy"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/merge"
)

// subject is the document that a run of a policy changes: the object, or a copy in the version that
// the policy's rules name.
type subject struct {
	attributes *admission.Attributes
	as         schema.GroupVersionResource
	param      document.Node
	policy     *policy.Policy
	target     *document.Document
}

func newSubject(a *admission.Attributes, run *admission.Run, p *policy.Policy) subject {
	return subject{attributes: a, as: run.As, param: run.Param, policy: p}
}

// bind binds what the attributes have not: the parameter, the object in the version that the policy's rules name, and
// the namespace, which match conditions do not see.
func (s *subject) bind(ctx context.Context, namespace bool) error {
	s.target = s.attributes.Object
	if s.converts() {
		var err error
		if s.target, err = policy.Convert(s.attributes, s.as); err != nil {
			return err
		}
	}
	s.attributes.Frame.Vars().Set(value.Params, s.param, nil)
	if !namespace {
		return nil
	}
	return s.policy.BindNamespace(ctx, s.attributes)
}

func (s *subject) converts() bool { return s.as != s.attributes.Info.GroupVersionResource() }

// limits bound what policies make of the object.
func (s *subject) limits() document.Limits { return policy.Limits(s.attributes, s.target) }

// mergeType is the type by which the object is merged.
func (s *subject) mergeType() *merge.Type {
	if s.attributes.Schema == nil {
		return merge.Deduced()
	}
	version, _ := s.target.Root().Get("apiVersion")
	kind, _ := s.target.Root().Get("kind")
	return s.attributes.Schema.MergeType(s.as, schema.FromAPIVersionAndKind(version.Str(), kind.Str()))
}

// applyTarget takes what was changed over into the object, and fills in what it leaves unset now.
func (s *subject) applyTarget() error { return policy.ApplyTarget(s.attributes, s.target) }
