package policytest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/rollout"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/natives"
	"github.com/admission-gateway/gateway/policies/testcase"
	"github.com/admission-gateway/gateway/proxy"
)

// request has all that is sent for a case.
type request struct {
	method, host, path string // the host is empty if the case says none
	headers            [][2]string
	body               []byte
	times              int32
	at                 time.Time // when it comes; zero is now
}

// A location is a path of a backend.
type location struct{ upstream, path string }

// requestOf returns the request of a case, and where its existing object is.
func requestOf(g *proxy.Gateway, set *policies.Set, by *Service,
	c *testcase.Case) (r *request, stored location, err error) {
	r = &request{body: c.Object}
	asked := c.Request
	if asked == nil {
		asked = &testcase.Request{}
	}
	about := c.Object
	if about == nil {
		about = c.Existing
	}
	collection, item, unplaced := "", "", errNoObject
	if about != nil {
		collection, item, unplaced = PathsOf(set, about)
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
	if asked.Path == "" {
		if unplaced != nil {
			return nil, stored, unplaced
		}
		path := item
		if r.method == http.MethodPost {
			path = collection
		}
		var isLed bool
		if r.host, r.path, isLed = g.Way(r.method, path); !isLed {
			return nil, stored, fmt.Errorf("no route of the configuration leads to the path '%s' of the object: the case must have `request.path`", path)
		}
	} else {
		r.host, r.path, _ = proxy.CutURL(asked.Path)
	}
	for name, value := range asked.Headers {
		if strings.EqualFold(name, "host") {
			r.host = value
			continue
		}
		r.add(name, value)
	}
	at, isRead := g.Locate(r.method, r.host, r.path)
	stored.upstream = at.Upstream
	if stored.path = item; unplaced != nil || item == "" || isRead && asked.Path != "" && isPlainObject(&at) {
		stored.path, _, _ = strings.Cut(at.Target, "?")
	}
	if asked.Body != nil {
		r.body = asked.Body
	}
	if r.body != nil {
		r.add("Content-Type", cmp.Or(asked.ContentType, "application/json"))
	}
	r.times = max(1, asked.Times)
	if c.Time != "" {
		if r.at, err = rollout.Time(c.Time); err != nil {
			return nil, stored, fmt.Errorf("`time`: %w", err)
		}
	}
	return r, stored, r.identify(c.User, by)
}

var errNoObject = errors.New("`request.path` must be set where there is neither `object` nor `existing`")

func (r *request) add(name, value string) { r.headers = append(r.headers, [2]string{name, value}) }

// isPlainObject reports whether a request leads to an object of a plain API.
func isPlainObject(d *proxy.Destination) bool {
	of := d.Resource
	return of != nil && len(of.Paths) > 0 && of.Operation == nil && d.Info.IsObject() && d.Info.Subresource == ""
}

// identify names the user, as a proxy does that the gateway trusts. The gateway itself adds the
// group of all known users.
func (r *request) identify(u *testcase.User, by *Service) error {
	switch {
	case u != nil && !by.KnowsUsers() && u.Name != identity.AnonymousName:
		return fmt.Errorf("the user '%s' must not be named: the configuration has no authenticators, so that every client is '%s'", u.Name, identity.AnonymousName)
	case !by.KnowsUsers(), by.Config != nil && u != nil && u.Name == identity.AnonymousName:
		return nil // the client shows no credentials
	case u == nil:
		u = &testcase.User{Name: "test-user"}
	}
	r.add("X-Remote-User", u.Name)
	for _, g := range u.Groups {
		r.add("X-Remote-Group", g)
	}
	if u.Name == identity.AnonymousName && !slices.Contains(u.Groups, identity.UnauthenticatedGroup) {
		r.add("X-Remote-Group", identity.UnauthenticatedGroup)
	}
	return nil
}

// nameOf reads what names an object. Members of other types, which objects of plain APIs may have, name nothing.
func nameOf(object json.RawMessage) (o named) {
	text := func(member any) string {
		s, _ := member.(string)
		return s
	}
	var is map[string]any
	if json.Unmarshal(object, &is) != nil {
		return o
	}
	metadata, _ := is["metadata"].(map[string]any)
	o.APIVersion, o.Kind = text(is["apiVersion"]), text(is["kind"])
	o.Metadata.Name, o.Metadata.Namespace = text(metadata["name"]), text(metadata["namespace"])
	return o
}

// PathsOf returns the paths of an object and of its collection.
func PathsOf(set *policies.Set, object json.RawMessage) (collection, item string, err error) {
	o := nameOf(object)
	kind := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
	if names := bareResources(set); o.Kind == "" && len(names) > 1 {
		return "", "", fmt.Errorf("the case must have `request.path`: the object has no `kind`, and may be of '%s'", strings.Join(names, "', '"))
	}
	for _, r := range set.Registry().Resources() {
		if r.Operation != nil || o.Kind != "" && r.GroupVersionKind() != kind || o.Kind == "" &&
			r.Envelope != resource.Bare {
			continue
		}
		if len(r.Paths) > 0 {
			return templated(r, object, &o)
		}
		return kubernetesPaths(kind, r.Names.Plural, r.Namespaced, &o)
	}
	if o.Kind == "" || o.APIVersion == "" {
		return "", "", fmt.Errorf("the object must have `apiVersion` and `kind`, or the case `request.path`")
	}
	native, known := natives.Kinds[kind.GroupKind()]
	plural, isNamespaced := native.Plural, native.Namespaced
	if !known {
		guessed, _ := meta.UnsafeGuessKindToResource(kind)
		plural, isNamespaced = guessed.Resource, o.Metadata.Namespace != ""
	}
	return kubernetesPaths(kind, plural, isNamespaced, &o)
}

// undescribed says that neither the policies nor Kubernetes have the kind of an object; "" if they have.
func undescribed(set *policies.Set, object json.RawMessage) string {
	o := nameOf(object)
	kind := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
	if _, known := natives.Kinds[kind.GroupKind()]; known || o.Kind == "" {
		return ""
	}
	kinds := map[string]bool{}
	for _, r := range set.Registry().Resources() {
		if r.GroupVersionKind() == kind {
			return ""
		}
		kinds[r.Names.Kind] = true
	}
	return fmt.Sprintf("the resource of the object: no policy file describes the kind '%s' of '%s'%s", o.Kind,
		o.APIVersion, manifest.Suggest(o.Kind, maps.Keys(kinds)))
}

// bareResources returns the names of the resources whose objects have no kind.
func bareResources(set *policies.Set) (names []string) {
	for _, r := range set.Registry().Resources() {
		if name := r.GroupResource().String(); r.Operation == nil && r.Envelope == resource.Bare &&
			!slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// PathsIn returns the paths of an object of a resource in a namespace, and of its collection. Without a namespace it is
// the object's own.
func PathsIn(r *resource.Resource, namespace string, object json.RawMessage) (collection, item string, err error) {
	o := nameOf(object)
	o.Metadata.Namespace = cmp.Or(namespace, o.Metadata.Namespace)
	if len(r.Paths) > 0 {
		return templated(r, object, &o)
	}
	return kubernetesPaths(r.GroupVersionKind(), r.Names.Plural, r.Namespaced, &o)
}

// kubernetesPaths returns the paths that an API server has for an object.
func kubernetesPaths(kind schema.GroupVersionKind, plural string, isNamespaced bool,
	o *named) (collection, item string, err error) {
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
		return "", "", fmt.Errorf("the case must have `request.path`: the paths of %s have further variables",
			r.Names.Plural)
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
