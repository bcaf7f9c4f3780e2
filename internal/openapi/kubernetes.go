package openapi

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

// gvk is how Kubernetes says of what kind a schema's objects are, and what an operation is about.
const gvk = "x-kubernetes-group-version-kind"

// isKubernetes reports whether the document is one that a Kubernetes API server publishes.
func (d *Document) isKubernetes() bool {
	schemas, err := d.resolve("#/components/schemas")
	if err != nil {
		return false
	}
	found := false
	members(schemas, func(s document.Node) {
		_, has := s.Get(gvk)
		found = found || has
	})
	return found
}

// kubernetes finds the resources among the paths of Kubernetes.
func (d *Document) kubernetes(paths []*pathItem) []*Resource {
	var all []*Resource
	for _, p := range paths {
		at, ok := kubernetesPath(p.segments)
		if !ok || p.trailing && len(p.segments) < 4 {
			continue
		}
		p.part = kubernetesPart
		if at.plural == "" {
			continue // discovery
		}
		i := slices.IndexFunc(all, func(r *Resource) bool {
			return r.Group == at.group && r.Version == at.version && r.Plural == at.plural
		})
		if i < 0 {
			i = len(all)
			all = append(all, &Resource{Group: at.group, Version: at.version, Plural: at.plural, at: p.node, Envelope: resource.Kubernetes, Settings: d.settings()})
		}
		r := all[i]
		r.Namespaced = r.Namespaced || at.namespaced
		if own, found := p.item.Get(Extension); found {
			r.Settings = append(r.Settings, own)
		}
		switch {
		case at.subresource == "status":
			r.Status = true
		case at.subresource == "scale":
			r.Scale = true
		case at.subresource != "":
			if !slices.Contains(r.Subresources, at.subresource) && len(content.IsDNS1123Label(at.subresource)) == 0 {
				r.Subresources = append(r.Subresources, at.subresource)
			}
		case at.item:
			r.object = p
		case r.collection == nil || p.has("post"):
			r.collection = p
		}
		if at.subresource == "" && r.Kind == "" {
			r.Kind = kindIn(p)
		}
	}
	return slices.DeleteFunc(all, func(r *Resource) bool { return r.collection == nil && r.object == nil })
}

// kindIn is the kind that the operations of a path are about.
func kindIn(p *pathItem) string {
	for _, method := range []string{"post", "put", "get", "patch", "delete"} {
		about, _ := p.operation(method).Get(gvk)
		if kind := text(about, "kind"); kind != "" {
			return strings.Clone(kind)
		}
	}
	return ""
}

// kubernetesPlace is the kind of resource that a path of Kubernetes leads to.
type kubernetesPlace struct {
	group, version, plural, subresource string
	namespaced, item                    bool
}

// kubernetesPath reads /api/VERSION/… and /apis/GROUP/VERSION/….
func kubernetesPath(segments []string) (at kubernetesPlace, ok bool) {
	switch {
	case segments[0] == "apis" && len(segments) >= 2:
		at.group, segments = segments[1], segments[2:]
	case segments[0] == "api" || segments[0] == "apis" || segments[0] == "version" || segments[0] == "openapi" || segments[0] == ".well-known":
		segments = segments[1:]
	default:
		return at, false
	}
	if len(segments) < 2 || segments[1] == "watch" {
		return at, true
	}
	at.version, segments = segments[0], segments[1:]
	if segments[0] == "namespaces" && len(segments) > 2 && segments[2] != "status" && segments[2] != "finalize" {
		at.namespaced, segments = true, segments[2:]
	}
	if isVariable(segments[0]) {
		return at, false
	}
	at.plural = segments[0]
	if len(segments) > 1 {
		at.item = true
	}
	if len(segments) > 2 {
		at.subresource = segments[2]
	}
	return at, true
}
