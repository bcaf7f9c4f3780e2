package policytest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/rollout"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/testcase"
)

// request has all that is sent for a case.
type request struct {
	method, path string
	headers      [][2]string
	body         []byte
	times        int32
	at           time.Time // when it comes; zero is now
}

// requestOf returns the request of a case, and the path of its existing object.
func requestOf(set *policies.Set, c *testcase.Case) (r *request, stored string, err error) {
	r = &request{body: c.Object}
	asked := c.Request
	if asked == nil {
		asked = &testcase.Request{}
	}
	about := c.Object
	if about == nil {
		about = c.Existing
	}
	collection, item, found := "", "", error(nil)
	if about != nil {
		collection, item, found = PathsOf(set, about)
	}
	switch {
	case c.Existing != nil && c.Object == nil:
		r.method = http.MethodDelete
	case c.Existing != nil:
		r.method = http.MethodPut
	default:
		r.method = http.MethodPost
	}
	r.method = cmp.Or(asked.Method, r.method)
	r.path = asked.Path
	if r.path == "" {
		if about == nil {
			return nil, "", fmt.Errorf("`request.path` must be set where there is neither `object` nor `existing`")
		}
		if found != nil {
			return nil, "", found
		}
		if r.path = item; r.method == http.MethodPost {
			r.path = collection
		}
	}
	if asked.Body != nil {
		r.body = asked.Body
	}
	if stored = item; found != nil || stored == "" {
		stored, _, _ = strings.Cut(r.path, "?")
	}
	if at, isObject := objectAt(set, r); asked.Path != "" && isObject {
		stored = at
	}
	if r.body != nil {
		r.add("Content-Type", cmp.Or(asked.ContentType, "application/json"))
	}
	for name, value := range asked.Headers {
		r.add(name, value)
	}
	r.times = max(1, asked.Times)
	if c.Time != "" {
		if r.at, err = rollout.Time(c.Time); err != nil {
			return nil, "", fmt.Errorf("`time`: %w", err)
		}
	}
	r.identify(c.User)
	return r, stored, nil
}

// objectAt returns the path of a request if it leads to an object of a plain API.
func objectAt(set *policies.Set, r *request) (path string, isObject bool) {
	path, _, _ = strings.Cut(r.path, "?")
	i, of, err := set.Registry().Resolve(r.method, []byte(r.path))
	return path, err == nil && of != nil && len(of.Paths) > 0 && of.Envelope == resource.Bare && of.Operation == nil && i.IsObject() && i.Subresource == ""
}

func (r *request) add(name, value string) { r.headers = append(r.headers, [2]string{name, value}) }

// identify names the user, as a proxy does that the gateway trusts. The gateway itself adds the
// group of all known users.
func (r *request) identify(u *testcase.User) {
	if u == nil {
		u = &testcase.User{Name: "test-user"}
	}
	r.add("X-Remote-User", u.Name)
	for _, g := range u.Groups {
		r.add("X-Remote-Group", g)
	}
	if u.Name == identity.AnonymousName && !slices.Contains(u.Groups, identity.UnauthenticatedGroup) {
		r.add("X-Remote-Group", identity.UnauthenticatedGroup)
	}
}

// PathsOf returns the paths of an object and of its collection.
func PathsOf(set *policies.Set, object json.RawMessage) (collection, item string, err error) {
	var o named
	if err := json.Unmarshal(object, &o); err != nil {
		return "", "", err
	}
	kind := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
	for _, r := range set.Registry().Resources() {
		if r.Operation != nil || o.Kind != "" && r.GroupVersionKind() != kind || o.Kind == "" && r.Envelope != resource.Bare {
			continue
		}
		if len(r.Paths) > 0 {
			return templated(r, object, &o)
		}
		return kubernetesPaths(kind, r.Names.Plural, r.Namespaced, &o)
	}
	if o.Kind == "" {
		return "", "", fmt.Errorf("the object must have `apiVersion` and `kind`, or the case `request.path`")
	}
	plural, isNamespaced, known := policies.NativeResource(kind.GroupKind())
	if !known {
		guessed, _ := meta.UnsafeGuessKindToResource(kind)
		plural, isNamespaced = guessed.Resource, o.Metadata.Namespace != ""
	}
	return kubernetesPaths(kind, plural, isNamespaced, &o)
}

// PathsIn returns the paths of an object of a resource, and of its collection.
func PathsIn(r *resource.Resource, object json.RawMessage) (collection, item string, err error) {
	var o named
	if err := json.Unmarshal(object, &o); err != nil {
		return "", "", err
	}
	if len(r.Paths) > 0 {
		return templated(r, object, &o)
	}
	return kubernetesPaths(r.GroupVersionKind(), r.Names.Plural, r.Namespaced, &o)
}

// kubernetesPaths returns the paths that an API server has for an object.
func kubernetesPaths(kind schema.GroupVersionKind, plural string, isNamespaced bool, o *named) (collection, item string, err error) {
	collection = "/apis/" + kind.Group + "/" + kind.Version + "/"
	if kind.Group == "" {
		collection = "/api/" + kind.Version + "/"
	}
	if isNamespaced {
		collection += "namespaces/" + cmp.Or(o.Metadata.Namespace, "default") + "/"
	}
	collection += plural
	return collection, collection + "/" + url.PathEscape(o.Metadata.Name), nil
}

// templated returns the paths of an object by the templates of its resource.
func templated(r *resource.Resource, object json.RawMessage, o *named) (collection, item string, err error) {
	values := map[string]string{"{name}": o.Metadata.Name, "{namespace}": cmp.Or(o.Metadata.Namespace, "default")}
	if r.Envelope == resource.Bare {
		values["{name}"] = nameIn(object, r.Fields.Name)
	}
	for _, template := range r.Paths {
		path := template
		for variable, value := range values {
			path = strings.ReplaceAll(path, variable, url.PathEscape(value))
		}
		switch {
		case strings.Contains(path, "{"):
			continue // the case has to say the path
		case strings.Contains(template, "{name}") || r.Singleton:
			item = cmp.Or(item, path)
		default:
			collection = cmp.Or(collection, path)
		}
	}
	if item == "" && collection == "" {
		return "", "", fmt.Errorf("the case must have `request.path`: the paths of %s have further variables", r.Names.Plural)
	}
	return collection, item, nil
}

// nameIn returns the member of an object at a path, as it stands in a URL.
func nameIn(object json.RawMessage, path resource.FieldPath) string {
	var at any
	d := json.NewDecoder(strings.NewReader(string(object)))
	d.UseNumber()
	if d.Decode(&at) != nil {
		return ""
	}
	for _, name := range path {
		fields, _ := at.(map[string]any)
		at = fields[name]
	}
	if at == nil {
		return ""
	}
	return fmt.Sprint(at)
}
