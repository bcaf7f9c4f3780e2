package backend

import (
	"net/http"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

// described is what policy files say of a request.
type described struct {
	target target
	// isOperation says that the request neither reads nor writes an object in the way of a collection and its items.
	isOperation bool
	resource    *resource.Resource // nil for an operation that is no verb of a resource
	info        resource.Info
}

// theObject is the name of the one object of a resource that has no others. No path has it.
const theObject = "/"

// describe returns what policy files say of a request; nil if they say nothing, or the path has Kubernetes' form, which
// needs no description.
func describe(resolvers func() []resource.Resolver, method, request string) *described {
	if resolvers == nil {
		return nil
	}
	for _, r := range resolvers() {
		for _, tried := range [...]string{method, http.MethodGet, http.MethodPut, http.MethodPatch, http.MethodDelete,
			http.MethodPost} {
			i, of, err := r.Resolve(tried, []byte(request))
			if err != nil || i.APIPrefix != "" {
				continue
			}
			if i.Documented != nil && tried == method {
				return &described{isOperation: true, info: i}
			}
			if of != nil && i.IsResource {
				return describedObject(of, &i, tried == method)
			}
		}
	}
	return nil
}

// describedObject returns the object of a request for a resource. isVerb says that its method is one of the resource's.
func describedObject(of *resource.Resource, i *resource.Info, isVerb bool) *described {
	d := &described{resource: of, info: *i}
	d.target = target{collection: collectionOf(of, i), namespace: i.Namespace, name: i.Name}
	if of.Singleton {
		d.target.name = theObject
	}
	if i.Subresource != "" {
		d.target.collection += "/" + i.Subresource
	}
	switch i.Verb {
	case resource.VerbDeleteCollection, resource.VerbGet, resource.VerbHead, resource.VerbList, resource.VerbWatch,
		resource.VerbCreate, resource.VerbUpdate, resource.VerbPatch, resource.VerbDelete:
	default:
		d.isOperation = isVerb
	}
	d.isOperation = d.isOperation || of.Operation != nil
	return d
}

// collectionOf returns the name of the objects of a resource that the other variables of the path belong to.
func collectionOf(of *resource.Resource, i *resource.Info) string {
	name := of.GroupResource().String()
	values := strings.Split(i.Path, "/")
	for k, segment := range strings.Split(i.Template, "/") {
		if strings.HasPrefix(segment, "{") && segment != "{name}" && segment != "{namespace}" && k < len(values) {
			name += "/" + values[k]
		}
	}
	return name
}

// textAt returns the string or the number at a path of a document; "" if there is none.
func textAt(body []byte, path resource.FieldPath) string {
	d, err := document.Parse(body, document.Limits{})
	if err != nil || len(path) == 0 {
		return ""
	}
	defer d.Release()
	at := d.Root()
	for _, key := range path {
		next, found := at.Get(key)
		if !found {
			return ""
		}
		at = next
	}
	switch at.Kind() {
	case document.String:
		return strings.Clone(at.Str())
	case document.Number:
		return string(at.AppendRaw(nil))
	}
	return ""
}
