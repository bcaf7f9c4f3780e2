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
	// reached are the resources at Kubernetes' paths that match blocks are about, and that no file defines.
	reached   reached
	spellings spellings
}

// A View shows the part of an ordinary API that one route leads to.
type View struct {
	Place Place
	// LeadsTo reports whether the API gets requests at, above or below a path, by any route; Reaches whether it
	// gets some by this one. The paths are as the API gets them.
	LeadsTo, Reaches func(path string) bool
}

// NewPlain describes what a route shows of an ordinary API, by the resources of a registry whose scope covers the
// route, and by resources that match blocks are about at the paths that they have on an API server. It takes
// every resource that any route leads to, for a path of one may be spelled as another's.
func NewPlain(r *Registry, reach Reach, v View) *Plain {
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
	p.registry = r.selected(covered, &v.Place)
	return p
}

// isLedTo reports whether requests for the resource lead to the API.
func (r *Resource) isLedTo(leadsTo func(path string) bool) bool {
	for _, template := range r.Paths {
		literal, _, _ := strings.Cut(template, "{")
		if leadsTo(strings.TrimSuffix(literal, "/")) {
			return true
		}
	}
	return len(r.Paths) == 0 && leadsTo(groupPath(r.Group))
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
	p.spellings.add(template)
	if r.ClosesOtherPaths() {
		p.spellings.addBelow(template)
	}
	if !r.hasItem(template) || r.Operation != nil {
		return
	}
	for _, s := range slices.Concat([]string{"status", "scale"}, r.Subresources.Other) {
		if r.Subresources.Has(s) {
			p.spellings.add(template + "/" + s)
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
		p.spellings.add(template)
		p.spellings.addBelow(template)
	}
}

// IsDescribed implements [Resolver].
func (p *Plain) IsDescribed() bool { return p.spellings.any }

// Resolve finds the resource of a request, as [Registry.Resolve] does, if a file describes its path. A path
// that some server could read as a described one, but that is not spelled as it, is refused with 400 or 404.
// Every other path is undescribed: Info.IsResource is false, and nothing of method, path and query was
// checked.
func (p *Plain) Resolve(method string, target []byte) (Info, *Resource, error) {
	info := Info{}
	if !p.spellings.any {
		info.undescribed(method, target)
		return info, nil, nil
	}
	res, found, err := p.resolve(method, unsafe.String(unsafe.SliceData(target), len(target)), &info)
	switch {
	case err != nil:
		return info, res, err
	case !found:
		info = Info{}
		info.undescribed(method, target)
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
		res, found, err = p.find(m, &cut, info)
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
		return res, true, err
	}
	if info.IsUndescribed || !p.spellings.match(info.Path) {
		return nil, false, nil
	}
	switch {
	case err != nil:
	case cut.disguised != "" || cut.trailing:
		err = cut.strict(false)
	default:
		err = status.NoSuchPath("the path '%s' is not spelled as the path of a resource that it could be taken for", short(info.Path))
	}
	return nil, false, err
}

// checkPatch refuses patches of subresources whose objects are of another kind than the one that is stored, if the gateway
// would have to apply them.
func (i *Info) checkPatch(r *Resource) error {
	isOther := i.Subresource != "" && i.Subresource != "status" && i.Subresource != "scale" && !i.Connect
	if r == nil || r.Operation != nil || !isOther || r.Backend.Patch != PatchEmulated && r.Backend.Patch != PatchValidated {
		return nil
	}
	return status.MethodNotAllowedf("PATCH is not supported on the subresource '%s' of '%s' before a plain backend", i.Subresource, i.GroupResource())
}

// find looks for a described path that is spelled as it is described. A path that a file lets pass, spelled so, is
// undescribed, though the template of a resource may match it too.
func (p *Plain) find(m method, cut *path, info *Info) (*Resource, bool, error) {
	if cut.n == 0 {
		return nil, false, nil
	}
	hit := match{method: m}
	p.registry.templates.find(cut, 0, &hit)
	end, isKubernetes := hit.ending(), p.isKubernetes(cut)
	if isKubernetes {
		end = end.unlessVariable()
	}
	switch {
	case end != nil && end.resource == nil:
		info.IsUndescribed = cut.strict(end.trailing) == nil
		return nil, false, nil
	case end != nil:
		if err := end.strict(cut); err != nil {
			return nil, true, err
		}
		res, err := end.resolve(m, cut, &hit, info)
		return res, true, err
	case hit.below != nil && !isKubernetes && hit.below.resource.ClosesOtherPaths():
		return nil, true, hit.goesBeyond(cut)
	case isKubernetes:
		res, err := p.registry.kubernetes(m, cut, info)
		return res, true, err
	}
	return nil, false, nil
}
