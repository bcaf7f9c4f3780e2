package backend

import (
	"encoding/json"
	"mime"
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

// describe returns what policy files say of a request; nil if they say nothing, or the path has Kubernetes' form, which needs
// no description.
func (s *Server) describe(method, request string) *described {
	if s.resolvers == nil {
		return nil
	}
	for _, r := range s.resolvers() {
		for _, tried := range [...]string{method, http.MethodGet, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodPost} {
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

// describedObject returns what a request for a resource is about. isVerb says that its method is one of the resource's.
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
	case resource.VerbDeleteCollection, resource.VerbGet, resource.VerbHead, resource.VerbList, resource.VerbWatch, resource.VerbCreate, resource.VerbUpdate, resource.VerbPatch, resource.VerbDelete:
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

// serveDescribed serves a request that policy files describe.
func (s *Server) serveDescribed(w http.ResponseWriter, r *http.Request, d *described, body []byte) {
	path, query, _ := strings.Cut(r.RequestURI, "?")
	path = strings.TrimSuffix(path, "/")
	switch {
	case d.isOperation:
		echo(w, body)
	case r.Method == http.MethodPost && d.target.name == "":
		s.createDescribed(w, d, path, jsonOr(body))
	case d.target.name == "" && r.Method == http.MethodGet && wantsWatch(query):
		s.serveWatch(w, r, d.target)
	case d.target.name == "" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		objects, etag := s.store.list(d.target)
		answer(w, r, http.StatusOK, etag, listOf(objects, d.resource))
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		s.serveGet(w, r, path, d.target)
	case r.Method == http.MethodPut:
		s.replace(w, r, path, d.target, jsonOr(body))
	case r.Method == http.MethodPatch:
		s.servePatch(w, r, path, d.target, body)
	case r.Method == http.MethodDelete && d.target.name != "":
		s.serveDelete(w, r, path, d.target)
	case r.Method == http.MethodDelete:
		s.store.clear(d.target)
		w.WriteHeader(http.StatusNoContent)
	default:
		echo(w, body)
	}
}

// createDescribed stores a new object under the name that its field has, or one that is made.
func (s *Server) createDescribed(w http.ResponseWriter, d *described, path string, body []byte) {
	name := ""
	if of := d.resource; of.Envelope == resource.Bare {
		name = textAt(body, of.Fields.Name)
	} else {
		name = textAt(body, resource.FieldPath{"metadata", "name"})
	}
	if name == "" {
		name = s.makeName()
	}
	d.target.name = name
	s.insert(w, path, d.target, body)
}

// jsonOr returns a body that is JSON, and an empty object in place of any other.
func jsonOr(body []byte) []byte {
	if !json.Valid(body) {
		return []byte("{}")
	}
	return body
}

// echo answers an operation with the body that it got, if that is JSON.
func echo(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(jsonOr(body)) // the client may be gone
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

// listOf returns the list of objects as a resource has it.
func listOf(objects []*object, of *resource.Resource) []byte {
	path := []string{"items"}
	if of.Envelope == resource.Bare && of.Fields.Items != nil {
		path = of.Fields.Items
	}
	var body []byte
	for _, key := range path {
		body = append(document.AppendString(append(body, '{'), key), ':')
	}
	body = append(body, '[')
	for i, o := range objects {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, o.body...)
	}
	body = append(body, ']')
	return append(body, strings.Repeat("}", len(path))...)
}

// servePatch applies a patch.
func (s *Server) servePatch(w http.ResponseWriter, r *http.Request, path string, t target, body []byte) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		media = ""
	}
	o, err := s.store.update(t, conditionOf(r), func(old []byte) ([]byte, error) { return patched(old, media, body) })
	s.answerWrite(w, path, o, false, err)
}

// patched returns what comes of a patch.
func patched(old []byte, media string, body []byte) ([]byte, error) {
	patch, err := document.Parse(body, document.Limits{})
	if err != nil {
		return nil, patchError{err}
	}
	defer patch.Release()
	d, err := document.Parse(old, document.Limits{})
	if err != nil {
		return nil, patchError{err}
	}
	defer d.Release()
	if media == "application/json-patch+json" {
		if err := d.ApplyJSONPatch(patch.Root(), document.Limits{}); err != nil {
			return nil, patchError{err}
		}
	} else {
		d.MergePatch(patch.Root())
	}
	return d.AppendTo(nil), nil
}

// A patchError says why a patch cannot be applied.
type patchError struct{ error }
