package policies

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/versions"
)

// otherVersions are the versions of a resource that the files describe beside the one; false if
// they do not describe it at all.
func (s *Set) otherVersions(i *resource.Info) (others []schema.GroupVersionResource, described bool) {
	for _, r := range s.registry.Resources() {
		if r.Operation != nil || r.Group != i.Group || r.Names.Plural != i.Resource {
			continue
		}
		described = true
		if r.Version != i.Version {
			others = append(others, r.GroupVersionResource())
		}
	}
	return others, described
}

// convert returns a copy of an object of one resource as another has it, and the kind that it then is of.
func (s *Set) convert(d *document.Document, from, to schema.GroupVersionResource) (*document.Document, string, error) {
	for _, r := range s.registry.Resources() {
		if r.Operation == nil && r.GroupVersionResource() == to && s.compiled[r.ID].convertible {
			return withVersion(d, to.GroupVersion()), r.Names.Kind, nil
		}
	}
	if converted, kind, isKnown, err := versions.Convert(d, from, to); isKnown || err != nil {
		return converted, kind, err
	}
	return nil, "", fmt.Errorf("'%s' cannot be converted from version '%s' to '%s'", from.GroupResource(), from.Version,
		to.Version)
}

// withVersion converts as the conversion strategy 'None' does.
func withVersion(d *document.Document, to schema.GroupVersion) *document.Document {
	converted := d.Clone()
	converted.SetString(converted.Root(), "apiVersion", to.String())
	return converted
}
