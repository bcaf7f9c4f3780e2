package proxy

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/policies"
)

// scopes are the scopes of a set of policies. Which kind of storage serves a resource at a backend is decided here,
// when the set comes into force, and nowhere else.
type scopes struct {
	set *policies.Set
	// storages has for each backend the storages of the resources by their IDs, and first the storages of what no file
	// describes.
	storages [][]subresources
	// resolvers has for each route how requests that come by it are read.
	resolvers []resource.Resolver

	// compiled has the scopes that were asked for. It is replaced, never changed, so that requests read it without a lock.
	compiled atomic.Pointer[map[scopeKey]*scope]
	adding   sync.Mutex
	unnamed  int // how many of them are of resources that no file describes
}

// maxUnnamed bounds how many scopes are kept of resources whose names only clients know. What is beyond is compiled for
// each request.
const maxUnnamed = 4096

// subresources are the storages of a resource and of its subresources at one backend.
type subresources struct{ object, status, scale, other storage.Storage }

// A scopeKey identifies an operation within a set.
type scopeKey struct {
	route int
	id    int // of a resource that files describe; -1 for any other, of which the names count
	prefix, group, version, resource,
	subresource string
	verb                                                      resource.Verb
	isResource, isUndescribed, isNamespaced, isItem, connects bool
}

// keyOf returns the key of the operation that a request asks for. Its strings live as long as the request.
func keyOf(route *route, r *resource.Resource, i *resource.Info, connects bool) scopeKey {
	k := scopeKey{
		route: route.index, id: -1, prefix: i.APIPrefix, subresource: i.Subresource, verb: i.Verb,
		isResource: i.IsResource, isUndescribed: i.IsUndescribed, isNamespaced: i.Namespace != "", isItem: i.Name != "", connects: connects,
	}
	if r != nil {
		k.id = r.ID
		return k
	}
	k.group, k.version, k.resource = i.Group, i.Version, i.Resource
	return k
}

// kept returns the key with strings of its own.
func (k scopeKey) kept() scopeKey {
	for _, s := range []*string{&k.prefix, &k.group, &k.version, &k.resource, &k.subresource} {
		*s = strings.Clone(*s)
	}
	return k
}

// scopesOf returns the scopes of the set in force.
func (g *Gateway) scopesOf(set *policies.Set) *scopes {
	if t := g.current.Load(); t != nil && t.set == set {
		return t
	}
	t := &scopes{set: set, storages: make([][]subresources, len(g.routes.backends)), resolvers: make([]resource.Resolver, len(g.routes.table))}
	t.compiled.Store(&map[scopeKey]*scope{})
	resources := set.Registry().Resources()
	for i := range g.routes.table {
		r := &g.routes.table[i]
		t.resolvers[i] = r.backend.kind.resolver(set, resource.View{
			Place: r.place, LeadsTo: func(path string) bool { return g.routes.leadsTo(r.backend, path) }, Reaches: r.reaches,
		})
	}
	for i, b := range g.routes.backends {
		t.storages[i] = make([]subresources, len(resources)+1)
		t.storages[i][0] = g.newStorages(set, b, nil)
		for _, r := range resources {
			t.storages[i][r.ID+1] = g.newStorages(set, b, r)
		}
	}
	g.current.Store(t)
	return t
}

// find returns the scope of a request, which it compiles if it is the first of its operation.
func (t *scopes) find(g *Gateway, route *route, r *resource.Resource, i *resource.Info, connects bool) *scope {
	key := keyOf(route, r, i, connects)
	if s := (*t.compiled.Load())[key]; s != nil {
		return s
	}
	s := g.newScope(t, route, r, i, connects)
	t.adding.Lock()
	defer t.adding.Unlock()
	known := *t.compiled.Load()
	if r == nil {
		if t.unnamed == maxUnnamed {
			return s
		}
		t.unnamed++
	}
	more := maps.Clone(known)
	more[key.kept()] = s
	t.compiled.Store(&more)
	return s
}

// storageOf returns the storage of a resource or a subresource at a backend.
func (t *scopes) storageOf(b *backend, r *resource.Resource, subresource string) storage.Storage {
	id := 0
	if r != nil {
		id = r.ID + 1
	}
	switch all := &t.storages[b.index][id]; subresource {
	case "":
		return all.object
	case "status":
		return all.status
	case "scale":
		return all.scale
	default:
		return all.other
	}
}
