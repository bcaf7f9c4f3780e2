package proxy

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/policies"
)

// scopes are the scopes of a set of policies.
type scopes struct {
	set *policies.Set
	// resolvers has for each route how requests that come by it are read; nil before the first of them.
	resolvers []atomic.Pointer[resource.Resolver]
	routes    *routeTable
	decided   *telemetry.PolicyCounters // of the policies of the set

	// compiled has the scopes that were asked for, in shards so that to add one copies few. Their number is a power of
	// two.
	compiled []shard
	// mostUnnamed is how many scopes a shard keeps of resources that no file describes. One more drops the others,
	// which are compiled again if they are asked for.
	mostUnnamed int
}

// A shard is a part of the scopes. Its maps are replaced, never changed, so that requests read them without a lock.
type shard struct {
	numbered atomic.Pointer[map[keyNumbers]*scope] // whose keys have no names
	named    atomic.Pointer[map[scopeKey]*scope]
	adding   sync.Mutex
	unnamed  int // how many of the named ones are of resources that no file describes
}

const (
	// shards is how many shards there are at least, maxUnnamed how many scopes each of so many keeps of resources whose
	// names only clients know, and minUnnamed how many it keeps however many shards there are.
	shards, maxUnnamed, minUnnamed = 64, 64, 16
)

// A scopeKey identifies the scope of an operation within a set.
type scopeKey struct {
	keyNumbers
	keyNames
}

// keyNumbers are what of a key is no text. They are all of it for a resource that files describe and for a path that is
// no resource, and are found in a third of the time.
type keyNumbers struct {
	route int
	id    int // of a resource that files describe; -1 for any other, which is found by its names
	// documented is 1 more than the ID of a documented operation, and 0 for all others.
	documented                                                              int
	verb                                                                    resource.Verb
	prefix                                                                  uint8 // how long it is, which says which one it is
	isResource, isUndescribed, isNamespaced, isItem, connects, isRedirected bool
	// isOther says that files describe the path for other methods, and mayWrite that the method of such a request may
	// change something.
	isOther, mayWrite bool
}

// keyNames are those of a resource that no file describes, and of a subresource.
type keyNames struct{ group, version, resource, subresource string }

// keyOf returns the key of the operation that a request asks for. Its strings live as long as the request.
func keyOf(route *route, r *resource.Resource, i *resource.Info, connects bool) (k scopeKey) {
	k.route, k.id, k.verb, k.prefix, k.subresource = route.index, -1, i.Verb, uint8(len(i.APIPrefix)), i.Subresource
	k.isResource, k.isUndescribed, k.isNamespaced, k.isItem, k.connects = i.IsResource, i.IsUndescribed,
		i.Namespace != "", i.Name != "", connects
	k.isRedirected, k.isOther, k.mayWrite = i.IsRedirected, i.IsOtherMethod, i.IsOtherMethod && mayWrite(i)
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
	for _, s := range []*string{&k.group, &k.version, &k.resource, &k.subresource} {
		*s = strings.Clone(*s)
	}
	return k
}

// scopesOf returns the scopes of the set in force.
func (g *Gateway) scopesOf(set *policies.Set) *scopes {
	if t := g.current.Load(); t != nil && t.set == set {
		return t
	}
	t := newScopes(set, g.routes, g.metrics)
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

// newScopes returns the scopes of a set, of which none is compiled yet.
func newScopes(set *policies.Set, routes *routeTable, metrics *telemetry.Telemetry) *scopes {
	n := shards
	for n < len(routes.table) {
		n *= 2
	}
	t := &scopes{set: set, routes: routes, decided: metrics.PolicyCounters(set.Admission().Names()),
		resolvers: make([]atomic.Pointer[resource.Resolver], len(routes.table)), compiled: make([]shard, n)}
	t.mostUnnamed = max(maxUnnamed*shards/n, minUnnamed)
	return t
}

// resolver returns how requests that come by a route are read.
func (t *scopes) resolver(r *route) resource.Resolver {
	at := &t.resolvers[r.index]
	if known := at.Load(); known != nil {
		return *known
	}
	made := r.backend.kind.resolver(t.set, resource.View{
		Place: r.place, LeadsTo: func(path string) bool { return t.routes.leadsTo(r.backend, path) },
		Reaches: r.reaches,
	})
	at.CompareAndSwap(nil, &made) // another request may have made it meanwhile
	return *at.Load()
}

// find returns the scope of a request, which it compiles if it is the first of its operation.
func (t *scopes) find(g *Gateway, route *route, r *resource.Resource, i *resource.Info, connects bool) *scope {
	key := keyOf(route, r, i, connects)
	in := &t.compiled[key.sum()&(len(t.compiled)-1)]
	if s := in.find(&key); s != nil {
		return s
	}
	return in.add(&key, g.newScope(t, route, r, i, connects), t.mostUnnamed)
}

// sum returns a number by which keys are spread over shards.
func (k *scopeKey) sum() int {
	sum := 19*k.route + k.id + len(k.resource) + 7*int(k.verb) + k.documented
	if n := len(k.resource); n > 0 {
		sum += 11*int(k.resource[0]) + 13*int(k.resource[n-1]) + 17*int(k.resource[n/2])
	}
	return sum
}

// find returns the scope of a key; nil if there is none yet.
func (in *shard) find(key *scopeKey) *scope {
	if key.keyNames == (keyNames{}) {
		if known := in.numbered.Load(); known != nil {
			return (*known)[key.keyNumbers]
		}
	} else if known := in.named.Load(); known != nil {
		return (*known)[*key]
	}
	return nil
}

// add keeps a scope, and returns it, or the one that another request has added meanwhile.
func (in *shard) add(key *scopeKey, s *scope, mostUnnamed int) *scope {
	in.adding.Lock()
	defer in.adding.Unlock()
	if first := in.find(key); first != nil {
		return first
	}
	if key.keyNames == (keyNames{}) {
		more := copyOf(&in.numbered)
		more[key.keyNumbers] = s
		in.numbered.Store(&more)
		return s
	}
	more := copyOf(&in.named)
	if key.id < 0 {
		if in.unnamed >= mostUnnamed {
			maps.DeleteFunc(more, func(k scopeKey, _ *scope) bool { return k.id < 0 })
			in.unnamed = 0
		}
		in.unnamed++
	}
	more[key.kept()] = s
	in.named.Store(&more)
	return s
}

// copyOf returns a copy of scopes to which one is to be added.
func copyOf[K comparable](known *atomic.Pointer[map[K]*scope]) map[K]*scope {
	if all := known.Load(); all != nil {
		return maps.Clone(*all)
	}
	return make(map[K]*scope, 1)
}
