package proxy

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/policies"
)

// scopes are the scopes of a set of policies.
type scopes struct {
	set *policies.Set
	// resolvers has for each route how requests that come by it are read.
	resolvers []resource.Resolver

	// compiled has the scopes that were asked for, in shards so that to add one copies few.
	compiled [shards]shard
}

// A shard is a part of the scopes. Its map is replaced, never changed, so that requests read it without a lock.
type shard struct {
	scopes  atomic.Pointer[map[scopeKey]*scope]
	adding  sync.Mutex
	unnamed int // how many of them are of resources that no file describes
}

const (
	shards = 64
	// maxUnnamed bounds how many scopes a shard keeps of resources whose names only clients know. One more drops the
	// others, which are compiled again if they are asked for.
	maxUnnamed = 64
)

// A scopeKey identifies an operation within a set.
type scopeKey struct {
	route int
	id    int // of a resource that files describe; -1 for any other, which is found by its names
	prefix, group, version, resource,
	subresource string
	verb resource.Verb
	// documented is 1 more than the ID of a documented operation, and 0 for all others.
	documented                                                              int
	isResource, isUndescribed, isNamespaced, isItem, connects, isRedirected bool
	// isOther says that files describe the path for other methods, and mayWrite that the method of such a request may change
	// something.
	isOther, mayWrite bool
}

// keyOf returns the key of the operation that a request asks for. Its strings live as long as the request.
func keyOf(route *route, r *resource.Resource, i *resource.Info, connects bool) scopeKey {
	k := scopeKey{
		route: route.index, id: -1, prefix: i.APIPrefix, subresource: i.Subresource, verb: i.Verb,
		isResource: i.IsResource, isUndescribed: i.IsUndescribed, isNamespaced: i.Namespace != "", isItem: i.Name != "", connects: connects,
		isRedirected: i.IsRedirected, isOther: i.IsOtherMethod, mayWrite: i.IsOtherMethod && mayWrite(i),
	}
	if i.Documented != nil {
		k.documented = 1 + i.Documented.ID
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
	for i := range t.compiled {
		t.compiled[i].scopes.Store(&map[scopeKey]*scope{})
	}
	for i := range g.routes.table {
		r := &g.routes.table[i]
		t.resolvers[i] = r.backend.kind.resolver(set, resource.View{
			Place: r.place, LeadsTo: func(path string) bool { return g.routes.leadsTo(r.backend, path) }, Reaches: r.reaches,
		})
	}
	if now := g.current.Load(); now == nil || now.set.Generation() <= set.Generation() {
		g.current.Store(t) // and not the scopes of an older set that a request still uses
		described := map[schema.GroupResource]bool{}
		for _, r := range set.Registry().Resources() {
			described[r.GroupResource()] = true
		}
		for _, b := range g.routes.backends {
			b.comparisons.Keep(func(r schema.GroupResource) bool { return described[r] })
		}
	}
	return t
}

// find returns the scope of a request, which it compiles if it is the first of its operation.
func (t *scopes) find(g *Gateway, route *route, r *resource.Resource, i *resource.Info, connects bool) *scope {
	key := keyOf(route, r, i, connects)
	in := &t.compiled[key.shard()]
	if s := (*in.scopes.Load())[key]; s != nil {
		return s
	}
	return in.add(key, g.newScope(t, route, r, i, connects))
}

// shard returns the number of the shard of the key.
func (k *scopeKey) shard() int {
	sum := k.id + len(k.resource) + 7*int(k.verb) + k.documented
	if n := len(k.resource); n > 0 {
		sum += 11*int(k.resource[0]) + 13*int(k.resource[n-1]) + 17*int(k.resource[n/2])
	}
	return sum & (shards - 1)
}

// add keeps a scope, and returns it, or the one that another request has added meanwhile.
func (in *shard) add(key scopeKey, s *scope) *scope {
	in.adding.Lock()
	defer in.adding.Unlock()
	known := *in.scopes.Load()
	if first := known[key]; first != nil {
		return first
	}
	more := maps.Clone(known)
	if key.id < 0 {
		if in.unnamed == maxUnnamed {
			maps.DeleteFunc(more, func(k scopeKey, _ *scope) bool { return k.id < 0 })
			in.unnamed = 0
		}
		in.unnamed++
	}
	more[key.kept()] = s
	in.scopes.Store(&more)
	return s
}
