package resource

import (
	"slices"
	"strings"
	"unsafe"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/status"
)

// Plain resolves requests to an ordinary API. Only paths that files describe mean anything there. All others
// are the API's own: they pass, unless some server could read them as a described path.
type Plain struct {
	registry *Registry
	// reached are the resources at Kubernetes' paths that match blocks name, and that no file defines.
	reached   namedMatcher
	spellings spellings
}

// A View shows the part of an ordinary API that one route leads to.
type View struct {
	Place RouteRef
	// LeadsTo reports whether the API gets requests at, above or below a path, by any route; Reaches whether it
	// gets some by this one. The paths are as the API gets them.
	LeadsTo, Reaches func(path string) bool
}

// NewPlain describes what a route shows of an ordinary API, by the resources of a registry whose scope covers the
// route, and by resources that match blocks name at the paths that they have on an API server. It takes
// every resource that any route leads to, for a path of one may be spelled as another's.
func NewPlain(r *Registry, reach NamedResources, v View) *Plain {
	led := reach.within(v.LeadsTo)
	p := &Plain{reached: led.index()}
	p.describeReach(led)
	var covered []*Resource
	for _, res := range r.resources {
		switch isCovered := res.Scope.Covers(&v.Place); {
		case !res.isLedTo(v.LeadsTo), !isCovered && res.isLedTo(v.Reaches):
			continue
		case isCovered:
			covered = append(covered, res)
		}
		if len(res.Paths) == 0 {
			p.describeKubernetes(res.GroupResource())
		}
		for _, template := range res.Paths {
			p.describe(res, template)
		}
	}
	for _, d := range r.documented {
		if d.IsHeld && isLedTo(d.Template, v.LeadsTo) && (d.Scope.Covers(&v.Place) || !isLedTo(d.Template, v.Reaches)) {
			p.spellings.describe(d.Template, d.Method)
		}
	}
	p.registry = r.selected(covered, &v.Place)
	p.registry.eachTemplate(func(template string) { p.spellings.note(template) })
	return p
}

// isLedTo reports whether requests for the resource lead to the API.
func (r *Resource) isLedTo(leadsTo func(path string) bool) bool {
	for _, template := range r.Paths {
		if isLedTo(template, leadsTo) {
			return true
		}
	}
	return len(r.Paths) == 0 && leadsTo(groupPath(r.Group))
}

// isLedTo reports whether requests for paths of the template lead to the API.
func isLedTo(template string, leadsTo func(path string) bool) bool {
	literal, _, _ := strings.Cut(template, "{")
	return leadsTo(strings.TrimSuffix(literal, "/"))
}

// groupPath is how the paths of a group begin on an API server.
func groupPath(group string) string {
	if group == "" {
		return "/api"
	}
	return "/apis/" + group
}

// describe adds a path of a resource, and of the subresources of its objects.
func (p *Plain) describe(r *Resource, template string) {
	p.spellings.add(template, r.described(template))
	if r.ClosesOtherPaths() {
		p.spellings.addBelow(template)
	}
	if !r.hasItem(template) || r.Operation != nil {
		return
	}
	for _, s := range slices.Concat([]string{"status", "scale"}, r.Subresources.Other) {
		if r.Subresources.Has(s) {
			p.spellings.add(template+"/"+s, anyMethod)
		}
	}
}

// describeKubernetes adds the paths of a resource of Kubernetes' form, in whatever version, and everything
// below them.
func (p *Plain) describeKubernetes(r schema.GroupResource) {
	prefix := groupPath(r.Group) + "/{version}/"
	if r.Resource == anyResource {
		p.describeBelow(prefix + "{resource}")
		return
	}
	p.describeBelow(prefix+r.Resource, prefix+"namespaces/{namespace}/"+r.Resource)
}

// describeBelow adds paths, and everything below them.
func (p *Plain) describeBelow(templates ...string) {
	for _, template := range templates {
		p.spellings.add(template, anyMethod)
		p.spellings.addBelow(template)
	}
}

// IsDescribed implements [Resolver].
func (p *Plain) IsDescribed() bool { return p.spellings.any }

// Methods implements [Resolver].
func (p *Plain) Methods() []string { return p.registry.Methods() }

// Resolve finds the resource of a request, as [Registry.Resolve] does, if a file describes its path. A path
// that some server could read as a described one, but that is not spelled as it, is refused with 400 or 404.
// Every other path is undescribed: Info.IsResource is false, and nothing of method, path and query was
// checked. So is a request of a method that no file describes at a path that files describe for others: the
// resource is returned then, if it has objects of its own there.
func (p *Plain) Resolve(method string, target []byte) (Info, *Resource, error) {
	info := Undescribed(method, target)
	if !p.spellings.any || p.spellings.isUndescribed(info.Path) {
		return info, nil, nil
	}
	return p.look(method, target)
}

// look is Resolve for a path that may be described.
func (p *Plain) look(method string, target []byte) (Info, *Resource, error) {
	info := Info{}
	res, found, err := p.resolve(method, unsafe.String(unsafe.SliceData(target), len(target)), &info)
	switch {
	case err != nil:
		return info, res, err
	case !found:
		known := info
		info = Info{}
		info.undescribed(method, target)
		if known.IsUndescribed {
			info.Template, info.Route, info.Name = known.Template, known.Route, known.Name
			info.Documented, info.IsOtherMethod = known.Documented, known.IsOtherMethod
		}
	}
	return info, res, nil
}

// Undescribed returns what is known of a request that no file describes.
func Undescribed(method string, target []byte) (i Info) {
	i.undescribed(method, target)
	return i
}

// undescribed fills in what is known of a request that no file describes.
func (i *Info) undescribed(method string, target []byte) {
	if i.Verb = methodOf(method).verbs().path; i.Verb == VerbOther {
		i.OtherMethod = method
	}
	i.IsUndescribed = true
	i.Path, i.Query, _ = strings.Cut(unsafe.String(unsafe.SliceData(target), len(target)), "?")
}

func (p *Plain) resolve(method, target string, info *Info) (res *Resource, found bool, err error) {
	m := methodOf(method)
	info.Verb = m.verbs().path
	info.Path, info.Query, _ = strings.Cut(target, "?")
	var cut path
	if err = cut.scan(info.Path); err == nil {
		res, found, err = p.find(m, method, &cut, info)
		if wrong := cut.checkMatrix(); wrong != nil {
			res, found, err = nil, false, wrong
			info.forget(m)
		} else if err == nil && found {
			if err = info.finish(m, method, res.readsOptions()); err == nil && m == methodPatch {
				err = info.checkPatch(res)
			}
		}
	}
	if found {
		return res, true, info.refused(err)
	}
	asked, other := anyMethod, anyOther
	if info.IsUndescribed {
		if !info.IsOtherMethod || m == methodOptions {
			return res, false, nil
		}
		// Nothing that is described for the method may be meant.
		if asked, other = 1<<m, ""; m == methodOther {
			asked, other = 0, method
		}
	}
	if !p.spellings.match(info.Path, asked, other) {
		return res, false, nil
	}
	switch {
	case err != nil:
	case cut.disguised != "" || cut.hasSlash || cut.trailing:
		err = cut.strict(false)
	default:
		err = status.NoSuchPath("the path '%s' is not spelled as the path of a resource that it could be taken for", short(info.Path))
	}
	return nil, false, err
}

// checkPatch refuses patches of subresources whose objects are of another kind than the one that is stored, if the
// gateway would have to apply them.
func (i *Info) checkPatch(r *Resource) error {
	isOther := i.Subresource != "" && i.Subresource != "status" && i.Subresource != "scale" && !i.Connect
	if r == nil || r.Operation != nil || !isOther || r.Backend.Patch != PatchEmulated &&
		r.Backend.Patch != PatchValidated {
		return nil
	}
	return status.MethodNotAllowedf("PATCH is not supported on the subresource '%s' of '%s' before a plain backend",
		i.Subresource, i.GroupResource())
}

// find looks for a described path that is spelled as it is described. A method that no file describes there, and an
// operation whose document has no checks, are undescribed, though the template of a resource may
// match the path too.
func (p *Plain) find(m method, name string, cut *path, info *Info) (*Resource, bool, error) {
	hit := match{method: m, name: name}
	p.registry.templates.find(cut, 0, &hit)
	end, isKubernetes := hit.ending(), cut.n > 0 && p.isKubernetes(cut)
	if isKubernetes {
		end = end.unlessVariable()
	}
	switch {
	case end != nil && end.documented != nil:
		found, err := end.take(cut, &hit, info)
		return nil, found, err
	case end != nil:
		if err := end.spelled(cut); err != nil {
			return nil, true, err
		}
		return end.resolvePlain(cut, &hit, info)
	case hit.isDistinct:
		info.IsUndescribed = cut.spelled() == nil
		return nil, false, nil
	case !isKubernetes && hit.isClosed():
		return nil, true, hit.goesBeyond(cut)
	case isKubernetes:
		res, err := p.registry.kubernetes(m, cut, info)
		return res, true, err
	}
	return nil, false, nil
}

// take fills in what is known of a request at the path of a documented operation. It is found if requests are checked
// against the document.
func (e *endpoint) take(cut *path, hit *match, info *Info) (found bool, err error) {
	d := e.documented
	if err := e.spelled(cut); err != nil {
		return d.IsHeld, err
	}
	info.Template, info.Route = e.template, e.route
	if !e.takes(hit) {
		if hit.isClosed() {
			return true,
				status.MethodNotAllowedf("the path '%s' has no such method, and the paths below '%s' are closed",
					short(cut.raw), hit.below.template)
		}
		info.IsUndescribed, info.IsOtherMethod = true, true
		return false, nil
	}
	info.Documented, info.IsRedirected = d, hit.isOtherSlash && e.slashes.Trailing == RedirectSlash
	info.IsUndescribed = !d.IsHeld && !info.IsRedirected
	return !info.IsUndescribed, nil
}

// resolvePlain fills in what a template of a resource says. A method that objects or operations of an ordinary API do
// not have is undescribed.
func (e *endpoint) resolvePlain(cut *path, hit *match, info *Info) (*Resource, bool, error) {
	m := hit.method
	r, err := e.resolve(cut, hit, info)
	if hit.subresource != "" && cut.trailing && e.slashes.Trailing == DistinctSlash {
		return nil, true, cut.strict(false)
	}
	info.IsRedirected = hit.isOtherSlash && e.slashes.Trailing == RedirectSlash
	isOther := (err == errMethod || err == nil && m == methodOther) && r.leavesOthers(m, hit.subresource)
	if !isOther || r.Operation != nil && hit.isClosed() {
		return r, true, err
	}
	info.IsUndescribed, info.IsOtherMethod = true, true
	if r.Operation != nil {
		return nil, false, nil
	}
	return r, false, nil
}

// isClosed reports whether the path is below one of a resource that refuses whatever is not described there.
func (hit *match) isClosed() bool { return hit.below != nil && hit.below.resource.ClosesOtherPaths() }

// leavesOthers reports whether methods that no file describes at a path of the resource may be the API's own.
func (r *Resource) leavesOthers(m method, subresource string) bool {
	isRefused := m == methodPatch && r.Backend.Patch == PatchRefused
	return r.Envelope == Bare && !isRefused && (r.Operation != nil || subresource == "")
}
