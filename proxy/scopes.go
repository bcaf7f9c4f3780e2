package proxy

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/policies"
)

// scopes are the scopes of a set of policies.
type scopes struct {
	set *policies.Set
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

// A scopeKey identifies an operation within a set.
type scopeKey struct {
	route int
	id    int // of a resource that files describe; -1 for any other, which is found by its names
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
	t := &scopes{set: set, resolvers: make([]resource.Resolver, len(g.routes.table))}
	t.compiled.Store(&map[scopeKey]*scope{})
	for i := range g.routes.table {
		r := &g.routes.table[i]
		t.resolvers[i] = r.backend.kind.resolver(set, resource.View{
			Place: r.place, LeadsTo: func(path string) bool { return g.routes.leadsTo(r.backend, path) }, Reaches: r.reaches,
		})
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
	if first := known[key]; first != nil { // another request was at it too
		return first
	}
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
