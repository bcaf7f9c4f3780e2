package scan

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/policytest"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/policies"
)

var (
	errNoKind       = errors.New("it has no kind: name its resource with --resource")
	errNoNamespace  = errors.New("it has no metadata.namespace, and neither has the path that it comes from: name its namespace with --namespace")
	errNoCollection = errors.New("nothing is created at the paths of its resource")
)

// A subject is a resource as objects of it are read.
type subject struct {
	// resource is the resource in the policy files; nil if they say nothing of it.
	resource *resource.Resource
	// An API server says the others.
	gvr        schema.GroupVersionResource
	kind       string
	namespaced bool
	// namespace is the one of the path that the objects come from; "" if that has none. isListed says that they come
	// from a backend.
	namespace string
	isListed  bool
}

// apiVersion returns the apiVersion of the objects.
func (s *subject) apiVersion() string {
	if s.resource != nil {
		return s.resource.APIVersion()
	}
	return s.gvr.GroupVersion().String()
}

// A placer finds the paths of objects. It belongs to one goroutine.
type placer struct {
	set   *policies.Set
	known map[string]*collectionPath
	key   []byte
	path  []byte
}

// A collectionPath is the path of the collection of a kind and a namespace.
type collectionPath struct {
	collection []byte
	// isTemplated is set if the path of an object is made by the templates of its resource.
	isTemplated bool
	err         error
}

// maxCollectionPaths is how many paths are remembered.
const maxCollectionPaths = 4096

// target returns the path to which an object is posted, or put if it replaces one. It is valid until the next call.
func (p *placer) target(root document.Node, text []byte, about *subject, as Operation) ([]byte, error) {
	metadata, _ := root.Get("metadata")
	namespace := textIn(metadata, "namespace")
	if about != nil {
		if isBare := about.resource != nil && about.resource.Envelope == resource.Bare; namespace == "" || isBare &&
			about.namespace != "" {
			namespace = about.namespace
		}
		if namespace == "" && about.isListed && about.namespaced {
			return nil, errNoNamespace
		}
	}
	kind, apiVersion := textIn(root, "kind"), textIn(root, "apiVersion")
	if about != nil {
		kind, apiVersion = about.kind, ""
	}
	k := append(p.key[:0], apiVersion...)
	k = append(append(append(append(k, 0), kind...), 0), namespace...)
	if about != nil {
		k = append(append(append(append(k, 0), about.gvr.Group...), 0), about.gvr.Resource...)
	}
	p.key = k
	at := p.known[string(k)]
	if at == nil {
		if len(p.known) >= maxCollectionPaths || p.known == nil {
			p.known = make(map[string]*collectionPath)
		}
		at = p.find(apiVersion, kind, namespace, about, text)
		p.known[string(k)] = at
	}
	switch {
	case at.err != nil:
		return nil, at.err
	case as == Create:
		return at.collection, nil
	case at.isTemplated:
		item, err := p.item(about, namespace, text)
		return []byte(item), err
	}
	p.path = append(append(p.path[:0], at.collection...), '/')
	p.path = append(p.path, url.PathEscape(textIn(metadata, "name"))...)
	return p.path, nil
}

// item returns the path of one object of a resource with templates.
func (p *placer) item(about *subject, namespace string, text []byte) (string, error) {
	if about != nil && about.resource != nil {
		_, item, err := policytest.PathsIn(about.resource, namespace, text)
		return item, err
	}
	_, item, err := policytest.PathsOf(p.set, text)
	return item, err
}

// find finds the place of objects of a kind and namespace.
func (p *placer) find(apiVersion, kind, namespace string, about *subject, text []byte) *collectionPath {
	var collection string
	var err error
	switch {
	case about == nil && kind == "":
		return &collectionPath{err: errNoKind}
	case about == nil:
		var o struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Metadata   struct {
				Namespace string `json:"namespace,omitempty"`
			} `json:"metadata"`
		}
		o.APIVersion, o.Kind, o.Metadata.Namespace = apiVersion, kind, namespace
		like, _ := json.Marshal(o) // three strings
		collection, _, err = policytest.PathsOf(p.set, like)
	case about.resource != nil:
		collection, _, err = policytest.PathsIn(about.resource, namespace, text)
	default:
		collection = "/apis/" + about.gvr.Group + "/" + about.gvr.Version + "/"
		if about.gvr.Group == "" {
			collection = "/api/" + about.gvr.Version + "/"
		}
		if about.namespaced {
			collection += "namespaces/" + url.PathEscape(namespace) + "/"
		}
		collection += about.gvr.Resource
	}
	if err == nil && collection == "" {
		err = errNoCollection
	}
	isTemplated := about != nil && about.resource != nil && len(about.resource.Paths) > 0
	if about == nil && err == nil {
		isTemplated = !strings.HasPrefix(collection, "/api") || p.isTemplated(apiVersion, kind)
	}
	return &collectionPath{collection: []byte(collection), isTemplated: isTemplated, err: err}
}

// isTemplated reports whether a kind is of a resource with templates.
func (p *placer) isTemplated(apiVersion, kind string) bool {
	of := schema.FromAPIVersionAndKind(apiVersion, kind)
	for _, r := range p.set.Registry().Resources() {
		if r.Operation == nil && r.GroupVersionKind() == of {
			return len(r.Paths) > 0
		}
	}
	return false
}

func textIn(object document.Node, key string) string {
	n, _ := object.Get(key)
	if n.Kind() != document.String {
		return ""
	}
	return n.Str()
}
