package policies

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission/params"
	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/discovery"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/resource"
	kschema "github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/policies/natives"
	"github.com/admission-gateway/gateway/policies/reuse"
)

// objectPaths has the location of a kind's objects at a backend, as path templates with {namespace} and
// {name}.
type objectPaths struct {
	all, collection, item string // all namespaces, or the only collection; one namespace; one object
	namespaced, bare      bool
	items                 resource.FieldPath
}

// pathsOf returns the paths of the objects of a resource that the files describe.
func pathsOf(r *resource.Resource) objectPaths {
	if len(r.Paths) == 0 {
		return kubernetesPaths(r.GroupVersion(), r.Names.Plural, r.Namespaced)
	}
	p := objectPaths{namespaced: r.Namespaced, bare: r.Envelope == resource.Bare, items: r.Fields.Items}
	for _, template := range r.Paths {
		switch {
		case strings.Contains(template, "{name}"):
			p.item = template
		case strings.Contains(template, "{namespace}"):
			p.collection = template
		default:
			p.all = template
		}
	}
	if !p.namespaced {
		p.collection = p.all
	}
	return p
}

// hasObjectPaths reports whether namespace and name locate each object of the resource.
func hasObjectPaths(r *resource.Resource) bool {
	for _, template := range r.Paths {
		if strings.Contains(expand(template, "", ""), "{") {
			return false
		}
	}
	return r.Operation == nil && !r.Singleton
}

// kubernetesPaths returns the paths of the objects of a resource in Kubernetes' API.
func kubernetesPaths(version schema.GroupVersion, plural string, namespaced bool) objectPaths {
	root := discovery.GroupVersionPath(version) + "/"
	p := objectPaths{all: root + plural, collection: root + plural, namespaced: namespaced}
	if namespaced {
		p.collection = root + "namespaces/{namespace}/" + plural
	}
	p.item = p.collection + "/{name}"
	return p
}

// expand writes namespace and name into a template.
func expand(template, namespace, name string) string {
	return strings.NewReplacer("{namespace}", url.PathEscape(namespace), "{name}",
		url.PathEscape(name)).Replace(template)
}

// kindPaths has the paths of the kinds that the files describe, and the objects in the files, by
// kind.
type kindPaths struct {
	described map[schema.GroupVersionKind]*resource.Resource
	scopes    map[schema.GroupKind]bool // whether the kind is namespaced, if the files say so
	objects   map[schema.GroupKind][]*Object
}

func newKinds(registry *resource.Registry, objects map[objectID]*Object) kindPaths {
	k := kindPaths{
		described: map[schema.GroupVersionKind]*resource.Resource{},
		scopes:    map[schema.GroupKind]bool{},
		objects:   map[schema.GroupKind][]*Object{},
	}
	for id, o := range objects {
		kind := schema.GroupKind{Group: id.group, Kind: id.kind}
		k.objects[kind] = append(k.objects[kind], o)
		// An object that leaves its namespace out says nothing of its kind that one with a namespace does not say
		// better.
		k.scopes[kind] = k.scopes[kind] || o.Namespace != ""
	}
	for _, of := range k.objects {
		slices.SortFunc(of, func(a, b *Object) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
	}
	for kind, n := range natives.Kinds {
		k.scopes[kind] = n.Namespaced
	}
	for _, r := range registry.Resources() {
		if r.Operation != nil {
			continue
		}
		k.described[r.GroupVersionKind()] = r
		k.scopes[r.GroupKind()] = r.Namespaced
	}
	return k
}

// find returns the location of the kind's objects, as far as the files and Kubernetes itself define it.
// Only a Kubernetes API server has what is native.
func (k *kindPaths) find(kind schema.GroupVersionKind) (at objectPaths, isNative, found bool) {
	if r := k.described[kind]; r != nil {
		return pathsOf(r), false, hasObjectPaths(r)
	}
	n, found := natives.Kinds[kind.GroupKind()]
	return kubernetesPaths(kind.GroupVersion(), n.Plural, n.Namespaced), true, found
}

// completeObjects makes of the objects in the files that a resource describes what an API server would have stored of
// them: without unknown fields and with defaults.
func (l *loader) completeObjects(set *Set) {
	for id, o := range set.objects {
		from := l.known[id]
		version, err := schema.ParseGroupVersion(o.APIVersion)
		if err != nil {
			l.At(from, Error, "apiVersion", "must be a group and version: %v", err)
			o.Document = from.Document().Clone()
			continue
		}
		at, _, found := set.kinds.find(version.WithKind(o.Kind))
		switch {
		case !found || at.bare:
		case at.namespaced && o.Namespace == "":
			l.At(from, Warning, "metadata.namespace",
				"Required value: %s belongs to a namespace, in which policies look for it", withArticle(o.Kind))
		case !at.namespaced && o.Namespace != "":
			l.At(from, Warning, "metadata.namespace", "must not be set: %s belongs to no namespace",
				withArticle(o.Kind))
		}
		s := set.Schema(set.kinds.described[version.WithKind(o.Kind)])
		o.Document = reuse.OfObject(l.kept, &l.findings, from, "object", s, func(f *findings) *document.Document {
			d := from.Document().Clone()
			if s != nil {
				completeObject(f, d, from, s)
			}
			return d
		})
	}
}

func completeObject(f *findings, d *document.Document, from *manifest.Object, s *kschema.Schema) {
	var unknown kschema.Unknown
	if err := s.Prune(d, &unknown); err != nil {
		f.At(from, Warning, "", "must be valid: %v", err)
		return
	}
	for _, message := range unknown.Messages() {
		f.At(from, Warning, "", "%s", message)
	}
	defaults.Apply(d, s)
	frame := cel.NewFrame(context.Background())
	defer frame.Release()
	f.Fields(from, Warning, s.Validate(frame, d.Root(), document.Node{}).Errors)
	d.Compact()
}

// A paramUse is a binding that refers to parameters of its policy's kind.
type paramUse struct {
	from *manifest.Object
	kind *admissionv1.ParamKind
	ref  *admissionv1.ParamRef
}

// checkParams warns of parameters that nothing in the files provides.
func (l *loader) checkParams(set *Set) {
	for _, b := range l.paramUses {
		if b.kind == nil && b.ref != nil && !l.mayBeUnused(b.from) {
			l.At(b.from, Warning, "spec.paramRef",
				"has no effect: the policy has no `paramKind`, so that it reads no parameters")
		}
		kind, ok := params.Kind(b.kind)
		if !ok || b.ref == nil {
			continue
		}
		at, _, placed := set.kinds.find(kind)
		_, scoped := set.kinds.scopes[kind.GroupKind()]
		covered := slices.ContainsFunc(set.states, func(s *state.Source) bool { return s.Kind == kind })
		switch {
		case !placed && !scoped && !covered:
			l.At(b.from, Warning, "spec.paramRef", "nothing in the policy files provides the kind '%s' of '%s', which the parameters are of: "+
				"only a Kubernetes API server as the backend can", kind.Kind, kind.GroupVersion())
		case placed && at.collection == "" && b.ref.Selector != nil && !covered:
			l.At(b.from, Error, "spec.paramRef.selector", "must not be set, because the policy files describe no path that lists objects of the kind '%s': name one, or describe their list", kind.Kind)
		case b.ref.Name != "" && !covered && !set.kinds.has(kind.GroupKind(), b.ref):
			l.At(b.from, Remark, "spec.paramRef.name", "no policy file has the %s '%s': it is looked up at the backend",
				kind.Kind, b.ref.Name)
		}
	}
}

// has reports whether the files have an object that the reference may name.
func (k *kindPaths) has(kind schema.GroupKind, ref *admissionv1.ParamRef) bool {
	return slices.ContainsFunc(k.objects[kind], func(o *Object) bool {
		return o.Name == ref.Name && (ref.Namespace == "" || o.Namespace == ref.Namespace)
	})
}

// findsKind reports whether no file provides the kind of a policy's parameters, and Kubernetes does not either, so that
// only the backend can.
func (l *loader) findsKind(k *admissionv1.ParamKind) bool {
	kind, ok := params.Kind(k)
	if !ok || kind.Empty() {
		return false
	}
	if _, isNative := natives.Kinds[kind.GroupKind()]; isNative {
		return false
	}
	if slices.ContainsFunc(l.resources,
		func(r loadedResource) bool { return r.Operation == nil && r.GroupKind() == kind.GroupKind() }) {
		return false
	}
	for id := range l.known {
		if id.group == kind.Group && id.kind == kind.Kind {
			return false
		}
	}
	return !slices.ContainsFunc(part[stateSources](l).all, func(s loadedSource) bool {
		r := s.spec.Resource
		if r == nil { // a source of an ordinary API
			return false
		}
		version, err := schema.ParseGroupVersion(r.APIVersion)
		return err == nil && version.Group == kind.Group
	})
}
