package lint

import (
	"iter"
	"maps"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/merge/kubernetes"
)

// ofKind matches the kinds that a message about types names.
var ofKind = regexp.MustCompile(`(?m)^(\S+), Kind=(\w+): `)

// known returns the names of the fields that the files describe, and the fields of Kubernetes' own kinds that a message
// names.
func (r *refiner) known(message string) iter.Seq[string] {
	if r.fields == nil {
		r.fields = map[string]bool{}
		for _, f := range r.files {
			objects, _ := manifest.Read(f.Name, f.Data)
			for _, o := range objects {
				collect(o.Document().Root(), r.fields)
			}
		}
	}
	names := maps.Clone(r.fields)
	for _, m := range ofKind.FindAllStringSubmatch(message, -1) {
		version := strings.TrimPrefix(m[1], "/")
		if s := kubernetes.Published(schema.FromAPIVersionAndKind(version, m[2])); s != nil {
			collectPublished(s, names, 0)
		}
	}
	return maps.Keys(names)
}

// collect collects the names of all properties of the schemas in a value.
func collect(n document.Node, names map[string]bool) {
	for m := n.First(); m.Valid(); m = m.Next() {
		if n.Kind() == document.Object && m.Key() == "properties" && m.Kind() == document.Object {
			for p := m.First(); p.Valid(); p = p.Next() {
				names[p.Key()] = true
			}
		}
		collect(m, names)
	}
}

// maxDepth bounds how deep schemas are followed.
const maxDepth = 16

func collectPublished(s *spec.Schema, names map[string]bool, depth int) {
	if s == nil || depth > maxDepth {
		return
	}
	for name, property := range s.Properties {
		names[name] = true
		collectPublished(&property, names, depth+1)
	}
	if s.Items != nil {
		collectPublished(s.Items.Schema, names, depth+1)
	}
	if s.AdditionalProperties != nil {
		collectPublished(s.AdditionalProperties.Schema, names, depth+1)
	}
}
