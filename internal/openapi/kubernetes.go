package openapi

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

// gvk is how Kubernetes gives the kind of a schema's objects, and of an operation's.
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
			all = append(all, &Resource{Group: at.group, Version: at.version, Plural: at.plural, at: p.node,
				Envelope: resource.Kubernetes, Settings: d.settings()})
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
	isDeeper                            bool // it goes beyond the subresource
}

// isForeign reports whether what is asked there is read by something other than the storage of objects: the log of a
// container, or another server.
func (at *kubernetesPlace) isForeign() bool {
	switch at.subresource {
	case "log", "exec", "attach", "portforward", "proxy":
		return true
	}
	return at.isDeeper
}

// kubernetesOperations finds the operations of the document for the resources at paths of
// Kubernetes.
func kubernetesOperations(d *Document, all []*Resource, paths []*pathItem) {
	for _, p := range paths {
		at, _ := kubernetesPath(p.segments)
		i := slices.IndexFunc(all, func(r *Resource) bool {
			return len(r.Paths) == 0 && r.Group == at.group && r.Version == at.version && r.Plural == at.plural
		})
		if p.part != kubernetesPart || i < 0 {
			continue
		}
		for _, method := range methods {
			if verb := resource.VerbOf(strings.ToUpper(method), at.item); verb != resource.VerbOther &&
				p.writes(method) {
				if o := kubernetesSaid(d, &at, verb, p, p.operation(method)); len(o.Parameters)+len(o.Security) > 0 {
					all[i].said = append(all[i].said, o)
				}
			}
		}
	}
}

// kubernetesSaid returns the document's description of an operation. What every API server reads in
// the same way is left to the gateway's own reading of it, which is Kubernetes'.
func kubernetesSaid(d *Document, at *kubernetesPlace, verb resource.Verb, p *pathItem,
	operation document.Node) Operation {
	o := Operation{Verb: verb, At: &contract.Target{Verb: verb, Subresource: at.subresource,
		IsNamespaced: at.namespaced}}
	var enforced []document.Node
	for _, n := range d.declared(p, operation) {
		switch {
		case at.isForeign():
			d.mild.warn(n, "is not enforced: what answers there reads its parameters itself")
		case text(n, "style") == "matrix":
			d.report.warn(n, "is refused: the paths of Kubernetes have no ';'")
		case isKubernetesOwn(n):
			d.mild.warn(n, "is not enforced: it is read as every API server reads it")
		default:
			enforced = append(enforced, n)
		}
	}
	security, found := operation.Get("security")
	if !found {
		security, found = d.root.Get("security")
	}
	switch {
	case !found || security.Len() == 0:
	case at.isForeign():
		d.mild.warn(security, "is not enforced: what answers there reads its credentials itself")
	default:
		d.mild.warn(security, "is enforced at upstreams of the dialect Plain alone: an API server reads its credentials itself")
		o.Security = d.security(operation)
	}
	d.parameters(&o, p, operation, enforced)
	for _, n := range enforced {
		if slices.ContainsFunc(o.Parameters,
			func(r contract.Parameter) bool { return r.Name == text(n, "name") && r.In.String() == text(n, "in") }) {
			d.mild.warn(n, "is enforced at upstreams of the dialect Plain alone: an API server reads its parameters itself")
		}
	}
	return o
}

// isKubernetesOwn reports whether a parameter is one that every API server has: an option, or a name that may be any
// text.
func isKubernetesOwn(n document.Node) bool {
	name := text(n, "name")
	switch text(n, "in") {
	case "query":
		return resource.IsOption(name)
	case "path":
		s, _ := n.Get("schema")
		isPlain := text(s, "type") == "string"
		members(s, func(m document.Node) {
			isPlain = isPlain && slices.Contains([]string{"type", "uniqueItems", "description", "title", "example"},
				m.Key())
		})
		return isPlain && (name == "name" || name == "namespace")
	}
	return false
}

// kubernetesPath reads /api/VERSION/… and /apis/GROUP/VERSION/….
func kubernetesPath(segments []string) (at kubernetesPlace, ok bool) {
	switch {
	case len(segments) == 0:
		return at, false
	case segments[0] == "apis" && len(segments) >= 2:
		at.group, segments = segments[1], segments[2:]
	case segments[0] == "api" || segments[0] == "apis" || segments[0] == "version" || segments[0] == "openapi" ||
		segments[0] == ".well-known":
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
		at.subresource, at.isDeeper = segments[2], len(segments) > 3
	}
	return at, true
}
