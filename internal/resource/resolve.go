package resource

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"unsafe"

	"github.com/admission-gateway/gateway/internal/status"
)

// Resolve reads the method and target of a request. The Resource is nil for a well-formed resource
// that no policy file describes and for a path that is no resource (Info.IsResource says which). A
// target that two servers could read in two ways is refused with 400, what the resource does not
// have with 404, and a method that it does not have with 405; the error is a Status, and Info then
// has what was understood until there. The resource is returned beside an error too if the path is
// one of its own, or of a subresource that it does not have.
//
// Resolve does not allocate unless it refuses or the name is percent-encoded.
// Info refers to the target's bytes, which must stay unchanged.
func (r *Registry) Resolve(method string, target []byte) (Info, *Resource, error) {
	var info Info
	res, err := r.resolve(method, unsafe.String(unsafe.SliceData(target), len(target)), &info)
	return info, res, err
}

func (r *Registry) resolve(method, target string, info *Info) (*Resource, error) {
	m := methodOf(method)
	info.Verb = m.verbs().path
	info.Path, info.Query, _ = strings.Cut(target, "?")
	var p path
	if err := p.scan(info.Path); err != nil {
		return nil, err
	}
	if p.hasSlash || p.isVeiled {
		return nil, p.spelled()
	}
	res, err := r.route(m, method, &p, info)
	if wrong := p.checkMatrix(); wrong != nil {
		info.forget(m)
		return nil, wrong
	}
	if err != nil {
		return res, info.refused(err)
	}
	if err := info.finish(m, method, true); err != nil {
		return nil, err
	}
	return res, nil
}

// forget leaves what is known of a path that means nothing.
func (i *Info) forget(m method) { *i = Info{Verb: m.verbs().path, Path: i.Path, Query: i.Query} }

// finish refuses methods that nothing has, and reads the query. readsOptions says that the query of a
// resource has options of Kubernetes.
func (i *Info) finish(m method, name string, readsOptions bool) error {
	switch {
	case m == methodOther && i.Documented != nil:
		i.OtherMethod = name
		return i.scanQuery(readsOptions)
	case m != methodOther:
		return i.scanQuery(readsOptions)
	case i.IsResource:
		return status.MethodNotAllowed(i.GroupResource(), short(name))
	}
	return status.MethodNotAllowedf("%s is not supported: the methods are %s and %s", short(name),
		strings.Join(methods[1:len(methods)-1], ", "), methods[len(methods)-1])
}

// IsDescribed implements [Resolver]: everything at an API server is of a known form.
func (r *Registry) IsDescribed() bool { return true }

// route finds the resource: by a path template, by the Kubernetes paths, or
// none at all.
func (r *Registry) route(m method, name string, p *path, info *Info) (*Resource, error) {
	if p.n == 0 {
		return nil, nil
	}
	first := p.segments[0]
	hit := match{method: m, name: name}
	r.templates.find(p, 0, &hit)
	templated := r.templates.child(first) != nil
	end := hit.ending()
	if first == "api" || first == "apis" {
		end = end.unlessVariable()
		hit.below = hit.below.unlessVariable()
	}
	switch {
	case end != nil && end.documented != nil:
		return nil, p.strict(true)
	case end != nil:
		if err := end.strict(p); err != nil {
			return nil, err
		}
		return end.resolve(p, &hit, info)
	case hit.below != nil && hit.below.resource.Subresources.OtherPaths != OtherPathsPass:
		return nil, hit.goesBeyond(p)
	case hit.folded != "":
		return nil, status.NoSuchPath("the path '%s' differs from the path of a resource only in the case of '%s'",
			short(p.raw), short(hit.folded))
	case first == "api", first == "apis":
		return r.kubernetes(m, p, info)
	case len(first) <= len("apis") && (strings.EqualFold(first, "api") || strings.EqualFold(first, "apis")):
		return nil, status.NoSuchPath("the path '%s' differs from the path of a resource only in the case of '%s'",
			short(p.raw), first)
	case templated:
		if err := p.strict(false); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// ending returns the node at which the path ends, if that is described.
func (hit *match) ending() *endpoint { return cmp.Or(hit.end, hit.elsewise) }

// unlessVariable returns the endpoint, but none if its first segment could be any: an API server's own paths are
// not taken for paths of its kind.
func (e *endpoint) unlessVariable() *endpoint {
	if e != nil && strings.HasPrefix(e.template, "/{") {
		return nil
	}
	return e
}

// goesBeyond refuses a path below a template, if the resource has nothing there.
func (hit *match) goesBeyond(p *path) error {
	if err := p.strict(false); err != nil {
		return err
	}
	return status.NoSuchPath("the path '%s' goes beyond '%s', and '%s' has nothing there", short(p.raw),
		hit.below.template, hit.below.resource.GroupResource())
}

// strict checks the form of a path of an API server against the template that it matches.
func (e *endpoint) strict(p *path) error {
	if e.trailing && !p.trailing {
		return status.NoSuchPath("the path '%s' must end in '/', as '%s' does", short(p.raw), e.template)
	}
	p.isMatrix = p.matrix&^e.matrix == 0
	return p.strict(e.trailing)
}

// resolve fills in what a template says.
func (e *endpoint) resolve(p *path, hit *match, info *Info) (*Resource, error) {
	r := e.resource
	info.IsResource = true
	info.Group, info.Version, info.Resource, info.APIVersion = r.Group, r.Version, r.Names.Plural, r.apiVersion
	info.Subresource, info.Template, info.Route = hit.subresource, e.template, e.route
	if e.namespace >= 0 {
		info.Namespace = decode(p.segments[e.namespace])
		if r.Envelope == Kubernetes {
			if err := checkLabel("namespace", info.Namespace); err != nil {
				return nil, err
			}
		}
	}
	if e.name >= 0 {
		info.Name = decode(p.segments[e.name])
	}
	if r.Operation != nil {
		return r, info.setOperation(hit, e)
	}
	return r, info.setVerb(hit.method, r, e.isItem)
}

// kubernetes resolves /api/VERSION/… and /apis/GROUP/VERSION/….
func (r *Registry) kubernetes(m method, p *path, info *Info) (*Resource, error) {
	segments := p.segments[1:min(p.n, maxSegments)]
	if p.segments[0] == "apis" {
		if len(segments) > 0 {
			if err := checkGroup(segments[0]); err != nil {
				return nil, err
			}
			info.Group = segments[0]
			segments = segments[1:]
		}
	}
	if len(segments) < 2 {
		// Discovery: /api, /api/v1, /apis, /apis/GROUP and /apis/GROUP/VERSION.
		info.Group = ""
		return nil, p.strict(false)
	}
	info.APIPrefix, info.Version = p.segments[0], segments[0]
	segments = segments[1:]
	if segments[0] == "watch" || segments[0] == "proxy" {
		return nil, status.BadRequest("the request path must not contain the old prefix '/%s/': use the query parameter 'watch', or a subresource", segments[0])
	}
	isOwn := false // the namespace is the object
	if segments[0] == namespaces && len(segments) > 1 {
		info.Namespace = segments[1]
		if isOwn = len(segments) == 2 || segments[2] == "status" || segments[2] == "finalize"; !isOwn {
			segments = segments[2:]
		}
	}
	info.IsResource = true
	info.APIVersion = apiVersion(p)
	info.Resource = segments[0]
	if len(segments) > 1 {
		info.Name = segments[1]
	}
	if len(segments) > 2 {
		info.Subresource = segments[2]
	}
	if res := r.byName[info.GroupVersionResource()]; isOwn && res != nil && !res.Namespaced && !info.IsNamespaces() {
		info.Namespace = "" // a cluster-scoped resource that has the name by chance
	}
	return r.registered(m, p, len(segments) > 3, info)
}

// apiVersion returns the part of a Kubernetes path that is written as objects
// write their apiVersion.
func apiVersion(p *path) string {
	if p.segments[0] == "api" {
		return p.segments[1]
	}
	start := len("/apis/")
	return p.raw[start : start+len(p.segments[1])+1+len(p.segments[2])]
}

// registered checks a Kubernetes path against the resource that it names. deeper says that it has
// segments after the subresource.
func (r *Registry) registered(m method, p *path, deeper bool, info *Info) (*Resource, error) {
	res := r.byName[info.GroupVersionResource()]
	// What follows a proxy subresource is a path of another server.
	proxied := info.Subresource == "proxy" && (res == nil || res.Subresources.Has("proxy"))
	if err := p.strict(proxied); err != nil {
		return nil, err
	}
	if err := info.checkForms(res); err != nil {
		return nil, err
	}
	if res != nil {
		if err := res.has(info); err != nil {
			return nil, err
		}
		if info.Subresource != "" && !res.Subresources.Has(info.Subresource) {
			return res, status.NotFound(info.GroupResource(), info.Name)
		}
	} else if _, known := r.known[info.GroupResource()]; known {
		return nil, status.NoSuchPath("'%s' is not served in version '%s'", info.GroupResource().String(), info.Version)
	}
	if deeper && !proxied {
		return nil, status.NoSuchPath("the path '%s' has more segments than '%s' has subresources", short(p.raw),
			info.GroupResource().String())
	}
	err := info.setVerb(m, res, info.Name != "")
	if refusal, is := errors.AsType[*status.Error](err); is && refusal.ErrStatus.Code == http.StatusNotFound {
		res = nil // it has no such path
	}
	return res, err
}

// checkForms checks the forms of the segments (RES-3).
func (i *Info) checkForms(res *Resource) error {
	if res == nil {
		if err := checkLabel("version", i.Version); err != nil {
			return err
		}
		if err := checkLabel("resource", i.Resource); err != nil {
			return err
		}
		if i.Subresource != "" {
			if err := checkLabel("subresource", i.Subresource); err != nil {
				return err
			}
		}
	}
	if i.Namespace != "" {
		if err := checkLabel("namespace", i.Namespace); err != nil {
			return err
		}
	}
	if i.Name == "" {
		return nil
	}
	i.Name = decode(i.Name)
	return checkName("name", i.Name)
}

// has returns an error if a resource does not have a path: one in a namespace, or one without.
func (r *Resource) has(i *Info) error {
	switch {
	case !r.Namespaced && i.ObjectNamespace() != "":
		return status.NoSuchPath("'%s' is not namespaced: its path must not contain '/namespaces/%s'",
			i.GroupResource().String(), i.Namespace)
	case r.Namespaced && i.Namespace == "" && i.Name != "":
		return status.NoSuchPath("'%s' is namespaced: the path of an object must contain '/namespaces/' and its namespace", i.GroupResource().String())
	}
	return nil
}

// setVerb finds the verb of a method on an item or a collection (RES-4).
// Subresources other than status and scale may be created or connected to.
func (i *Info) setVerb(m method, res *Resource, item bool) error {
	if m.ofResources() && i.connects() {
		i.Connect = true
		return i.setConnect(m)
	}
	if m.ofResources() {
		i.Verb = m.verb(item)
	}
	sub := i.Subresource != ""
	described := res != nil && (!sub || i.Subresource == "status" || i.Subresource == "scale")
	// Of a collection of all namespaces nothing can be created or deleted.
	everywhere := described && res.Namespaced && !item && i.Namespace == ""
	switch v := &verbs[i.Verb]; {
	case !m.ofResources():
	case !item && !v.collection:
		if described && i.APIPrefix != "" {
			// As Kubernetes answers for the resources of CRDs.
			return status.BadRequest("name must be provided")
		}
		return errMethod
	case everywhere && !v.everywhere:
		if v.operation == AdmitCreate && i.APIPrefix != "" {
			return status.NoSuchPath("'%s' is namespaced: the path of a create must contain '/namespaces/' and the namespace", i.GroupResource().String())
		}
		return errMethod
	case item && !v.object && (described || !sub), described && sub && !v.part:
		return errMethod
	}
	return i.checkMethod(m, res, item)
}

// checkMethod refuses a method that a file rules out.
func (i *Info) checkMethod(m method, res *Resource, item bool) error {
	switch {
	case res == nil:
	case i.Verb == VerbPatch && res.Backend.Patch == PatchRefused:
		return errMethod
	case i.Subresource == "":
		return res.Methods.check(m, item)
	}
	return nil
}

// errMethod says that a resource does not have the method of a request.
var errMethod = errors.New("the resource does not have the method")

// refused returns the answer to a request that cannot be resolved.
func (i *Info) refused(err error) error {
	if err == errMethod {
		return status.MethodNotAllowed(i.GroupResource(), i.Verb.String())
	}
	return err
}
