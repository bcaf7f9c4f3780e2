package policytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/merge"
	"github.com/admission-gateway/gateway/internal/merge/kubernetes"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/policies"
)

// A patcher applies patches as an API server does. It keeps no account of who owns which field, so
// that an apply removes nothing.
type patcher struct{ set *policies.Set }

// refusedPatch is an error with the code that an API server answers it with.
type refusedPatch struct {
	code    int
	reason  string
	message string
}

func (r *refusedPatch) Error() string { return r.message }

// apply returns what results from a patch of the existing object; nil if there is none. The error is
// a *refusedPatch.
func (p patcher) apply(existing json.RawMessage, contentType string, body []byte) (json.RawMessage, error) {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		media = contentType
	}
	isApply := media == "application/apply-patch+yaml"
	if isApply {
		if body, err = yaml.YAMLToJSON(body); err != nil {
			return nil, badPatch(err)
		}
	}
	patch, err := document.Parse(body, document.Limits{})
	if err != nil {
		return nil, badPatch(err)
	}
	switch {
	case existing != nil:
	case !isApply:
		return nil, &refusedPatch{http.StatusNotFound, "NotFound", "there is no such object"}
	default:
		return versioned(body), nil
	}
	d, err := document.Parse(existing, document.Limits{})
	if err != nil {
		return nil, badPatch(err)
	}
	kind := kindOf(existing)
	switch media {
	case "application/merge-patch+json":
		d.MergePatch(patch.Root())
	case "application/json-patch+json":
		err = d.ApplyPolicyPatch(patch.Root(), document.Limits{})
	case "application/strategic-merge-patch+json":
		t := p.strategicType(kind)
		if t == nil {
			return nil, unsupportedPatch(media)
		}
		err = t.Patch(d, patch.Root())
	case "application/apply-patch+yaml":
		_, err = p.typeOf(kind).Apply(d, patch.Root())
	default:
		return nil, unsupportedPatch(media)
	}
	if err != nil {
		return nil, &refusedPatch{http.StatusUnprocessableEntity, "Invalid", err.Error()}
	}
	result := d.AppendTo(nil)
	if versionIn(result) != versionIn(existing) {
		return nil, &refusedPatch{http.StatusConflict, "Conflict", "the object has been modified; please apply your changes to the latest version and try again"}
	}
	return result, nil
}

func badPatch(err error) error {
	return &refusedPatch{http.StatusBadRequest, "BadRequest", err.Error()}
}

func unsupportedPatch(media string) error {
	return &refusedPatch{http.StatusUnsupportedMediaType, "UnsupportedMediaType",
		fmt.Sprintf("the body of the request was in an unknown format: %s", media)}
}

// kindOf returns the kind that an object says it is of.
func kindOf(object json.RawMessage) schema.GroupVersionKind {
	var o named
	if json.Unmarshal(object, &o) != nil {
		return schema.GroupVersionKind{}
	}
	return schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
}

// versionIn returns the resourceVersion of an object.
func versionIn(object json.RawMessage) string {
	var o struct {
		Metadata struct{ ResourceVersion string }
	}
	if json.Unmarshal(object, &o) != nil {
		return ""
	}
	return o.Metadata.ResourceVersion
}

// resourceOf returns the resource of a kind that the files describe; nil if they do not.
func (p patcher) resourceOf(kind schema.GroupVersionKind) *resource.Resource {
	for _, r := range p.set.Registry().Resources() {
		if r.Operation == nil && r.GroupVersionKind() == kind {
			return r
		}
	}
	return nil
}

// typeOf returns the type by which an apply merges objects of a kind.
func (p patcher) typeOf(kind schema.GroupVersionKind) *merge.Type {
	if r := p.resourceOf(kind); r != nil {
		return p.set.MergeType(r.GroupVersionResource(), kind)
	}
	return p.set.MergeType(schema.GroupVersionResource{}, kind)
}

// strategicType returns the type by which strategic merge patches of a kind are applied; nil for
// custom resources, because API servers take none of them.
func (p patcher) strategicType(kind schema.GroupVersionKind) *merge.Type {
	if r := p.resourceOf(kind); r != nil {
		return p.set.StrategicType(r)
	}
	return kubernetes.TypeOf(kind)
}

// patch answers a PATCH as a backend of the dialect Kubernetes.
func (s *server) patch(w http.ResponseWriter, contentType string, existing json.RawMessage, body []byte) {
	result, err := s.patcher.apply(existing, contentType, body)
	var refused *refusedPatch
	switch {
	case errors.As(err, &refused):
		status, _ := json.Marshal(map[string]any{ // strings and a number
			"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": refused.reason,
			"message": refused.message, "code": refused.code,
		})
		answer(w, refused.code, string(status))
	case existing == nil:
		answer(w, http.StatusCreated, string(result))
	default:
		answer(w, http.StatusOK, string(result))
	}
}
