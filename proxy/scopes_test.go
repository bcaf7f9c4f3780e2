package proxy

import (
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/server"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/policiestest"
)

// scopedGateway returns a gateway before an API server and an ordinary API, with policies, conventions and limits for
// some of what they have.
func scopedGateway(t testing.TB) *Gateway {
	t.Helper()
	file := testutil.WriteFile(t, filepath.Join(t.TempDir(), "gateway.yaml"), `
apiVersion: admission-gateway.io/v1alpha1
kind: GatewayConfiguration
upstreams:
- {name: cluster, endpoints: ['http://127.0.0.1:1'], dialect: Kubernetes, upgrades: [apps/console, /live]}
- {name: shop, endpoints: ['http://127.0.0.1:1'], dialect: Plain}
routes:
- {name: shop, host: shop.example.com, upstream: shop}
- {name: cluster, host: cluster.example.com, upstream: cluster}
`)
	c, err := config.Load(file, config.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, name := range []string{"gadgets", "ledgers", "limit", "orders", "parcels", "placed", "rules", "statuses",
		"widgets"} {
		files = append(files, filepath.Join("testdata", "policies", name+".yaml"))
	}
	set := policiestest.LoadFiles(t, append(files, policiestest.Write(t, scopedPolicies))...)
	return newTestGateway(t, c, func() *policies.Set { return set })
}

const scopedPolicies = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: pods}
spec:
  matchConstraints:
    matchPolicy: Exact
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, CONNECT], resources: [pods, pods/exec, pods/proxy, namespaces]}
    namespaceSelector: {matchLabels: {team: a}}
  validations: [{expression: "true"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: pods}
spec: {policyName: pods, validationActions: [Deny]}
---
apiVersion: admission-gateway.io/v1alpha1
kind: ConventionPolicy
metadata: {name: strict}
spec:
  matchConstraints: {resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"]}]}
  checks: {dates: Deny}
---
apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: scoped-lists}
spec: {requests: 1, periodSeconds: 1, match: {verbs: [list, head, options], namespaces: [a]}, route: cluster}
---
apiVersion: admission-gateway.io/v1alpha1
kind: RateLimitPolicy
metadata: {name: scoped-posts}
spec: {requests: 1, periodSeconds: 1, match: {verbs: [post, create], resources: [pods, widgets/scale]}}
`

// randomTarget returns a target that leads to something described, to something that is not, or to nothing.
func randomTarget(r *rand.Rand, described []*resource.Resource) string {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	var b strings.Builder
	one := described[r.IntN(len(described))]
	switch group, version, plural := one.Group, one.Version, one.Names.Plural; {
	case len(one.Paths) > 0 && r.IntN(3) > 0:
		b.WriteString(strings.NewReplacer("{name}", pick("x", "y"), "{namespace}",
			pick("a", "b")).Replace(one.Paths[r.IntN(len(one.Paths))]))
		b.WriteString(pick("", "", "/status", "/scale", "/other"))
	case r.IntN(4) == 0:
		b.WriteString(pick("/", "/healthz", "/live/x", "/api", "/apis/apps", "/other/path"))
	default:
		if r.IntN(2) == 0 {
			group, version, plural = pick("", "apps"), pick("v1", "v2"), pick("pods", "namespaces", "apps", "nodes")
		}
		if b.WriteString("/api/"); group != "" {
			b.Reset()
			b.WriteString("/apis/" + group + "/")
		}
		b.WriteString(version + pick("", "/namespaces/a", "/namespaces/b") + "/" + plural + pick("", "/x", "/y"))
		b.WriteString(pick("", "", "/status", "/scale", "/exec", "/proxy", "/console", "/log"))
	}
	b.WriteString(pick("", "", "", "?watch=true", "?dryRun=All", "?follow=true"))
	return b.String()
}

// TestScopeOfKey: the scope that requests of one key share is the one that each of them would have alone.
func TestScopeOfKey(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	compareScopes(t, scopedGateway(t), rand.New(rand.NewPCG(seed, 1)), 20000)
}

func FuzzScopeOfKey(f *testing.F) {
	g := scopedGateway(f)
	for i := range uint64(10) {
		f.Add(i)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		g.current.Store(nil)
		compareScopes(t, g, rand.New(rand.NewPCG(seed, 2)), 200)
	})
}

func compareScopes(t *testing.T, g *Gateway, random *rand.Rand, requests int) {
	t.Helper()
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	all := g.scopesOf(g.policies())
	described := g.policies().Registry().Resources()
	found, named := 0, map[string]bool{}
	for range requests {
		method, target := pick("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"),
			[]byte(randomTarget(random, described))
		host := pick("shop", "cluster") + ".example.com"
		head := pick("", "", "Connection: Upgrade\r\nUpgrade: websocket\r\n")
		r := newRequest()
		r.gateway, r.incoming, r.set = g, new(server.Request), g.policies()
		line := method + " " + string(target) + " HTTP/1.1\r\nHost: " + host + "\r\n" + head + "\r\n"
		if err := r.incoming.Head.Parse([]byte(line), &message.Options{TargetBytes: maxForecast}); err != nil {
			continue
		}
		r.route = g.routes.find(ownListener, &r.incoming.Head).routes[0]
		info, res, err := all.resolver(r.route).Resolve(method, target)
		if r.SetSubject(&info, res); err != nil {
			continue
		}
		if info.Subresource != "" || !info.IsResource {
			resolveConnect(r)
		}
		i, connects := &r.Info, r.Info.Connect || r.upgrade.protocol != nil
		shared, own := all.find(g, r.route, res, i, connects), g.newScope(all, r.route, res, i, connects)
		if got, want := viewOf(shared), viewOf(own); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s of %s has the scope\n%+v\nand alone\n%+v", line, host, got, want)
		}
		found++
		named[strings.Join(names(shared.stages), " ")] = true
		for n := range target { // as the next request of a connection does
			target[n] = '#'
		}
	}
	for n := range all.compiled {
		for key := range copyOf(&all.compiled[n].named) {
			for _, text := range []string{key.group, key.version, key.resource, key.subresource} {
				if strings.Contains(text, "#") {
					t.Fatalf("a scope is kept under %+v, which was the memory of a request", key)
				}
			}
		}
	}
	if requests > 10000 && (found < requests/4 || len(named) < 10) {
		t.Errorf("of %d requests %d had a scope, with stages %v", requests, found, named)
	}
}

// all returns the scopes of the shard.
func (in *shard) all() []*scope {
	return slices.AppendSeq(slices.Collect(maps.Values(copyOf(&in.numbered))), maps.Values(copyOf(&in.named)))
}

// A scopeView is what requests take from a scope.
type scopeView struct {
	scope             scope
	stages, explained []string
	answer            []string
	write             string
	schemas           [5]any
	status            resource.FieldPath
	mediaTypes        any
	hasScaler         bool
}

func viewOf(s *scope) scopeView {
	schemaOf := func(verb resource.Verb) any {
		w := &storage.Write{}
		w.Info.Verb = verb
		return s.storage.Schema(w)
	}
	v := scopeView{
		scope: *s, stages: names(s.stages), explained: names(s.explained), write: s.write.name,
		schemas: [5]any{
			schemaOf(resource.VerbCreate), schemaOf(resource.VerbUpdate), schemaOf(resource.VerbPatch),
			schemaOf(resource.VerbGet), reflect.TypeOf(s.storage),
		},
		status: s.storage.StatusPath(), mediaTypes: *s.storage.MediaTypes(), hasScaler: s.scaler != nil,
	}
	for _, step := range s.answer {
		v.answer = append(v.answer, step.name)
	}
	// The view has the fields that can be compared. The set, the route and the backend are compared by identity.
	v.scope.set, v.scope.route, v.scope.backend, v.scope.resolver = nil, nil, nil, nil
	v.scope.storage, v.scope.scaler, v.scope.stages, v.scope.explained, v.scope.answer, v.scope.write = nil, nil, nil,
		nil, nil, write{}
	return v
}

// TestScopeOnce: requests that come at the same time share one scope, which counts once among those whose names only
// clients know.
func TestScopeOnce(t *testing.T) {
	g := scopedGateway(t)
	all := g.scopesOf(g.policies())
	route := g.routes.find(ownListener, bareHead("GET", "cluster.example.com", "/api/v1/things")).routes[0]
	var got [8]*scope
	var asked, done sync.WaitGroup
	key := keyOf(route, nil, &resource.Info{IsResource: true, APIPrefix: "api", Version: "v1", Resource: "things",
		Verb: resource.VerbList}, false)
	in := &all.compiled[key.sum()&(len(all.compiled)-1)]
	in.adding.Lock() // so that none finds the scope of another
	for n := range got {
		asked.Add(1)
		done.Go(func() {
			info, res, err := all.resolver(route).Resolve("GET", []byte("/api/v1/things"))
			asked.Done()
			if err != nil {
				t.Error(err)
				return
			}
			got[n] = all.find(g, route, res, &info, false)
		})
	}
	asked.Wait()
	time.Sleep(10 * time.Millisecond)
	in.adding.Unlock()
	done.Wait()
	if in.unnamed != 1 || slices.ContainsFunc(got[:], func(s *scope) bool { return s != got[0] }) {
		t.Fatalf("%d scopes are counted, and the requests have %p", in.unnamed, got)
	}
}

// TestScopesAreBounded: clients that invent names grow nothing, and do not take the place of what files describe or
// other clients ask for.
func TestScopesAreBounded(t *testing.T) {
	g := scopedGateway(t)
	all := g.scopesOf(g.policies())
	route := g.routes.find(ownListener, bareHead("GET", "cluster.example.com", "/api/v1/things")).routes[0]
	info, _, err := all.resolver(route).Resolve("GET", []byte("/api/v1/things"))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 4 * shards * maxUnnamed {
		info.Resource = strconv.Itoa(n)
		if s := all.find(g, route, nil, &info, false); s == nil || s != all.find(g, route, nil, &info, false) {
			t.Fatalf("the scope of %d is not kept", n)
		}
	}
	for n := range all.compiled {
		if kept := len(all.compiled[n].all()); kept > maxUnnamed || kept != all.compiled[n].unnamed {
			t.Errorf("a shard has %d scopes, and counts %d", kept, all.compiled[n].unnamed)
		}
	}
}

// BenchmarkScope compares a scope that is found with one that is compiled.
func BenchmarkScope(b *testing.B) {
	g := scopedGateway(b)
	all := g.scopesOf(g.policies())
	route := g.routes.find(ownListener, bareHead("GET", "cluster.example.com", "/api/v1/things")).routes[0]
	info, res, _ := all.resolver(route).Resolve("GET", []byte("/api/v1/things"))
	b.Run("found", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			all.find(g, route, res, &info, false)
		}
	})
	b.Run("compiled", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			g.newScope(all, route, res, &info, false)
		}
	})
	b.Run("added", func(b *testing.B) {
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			n++
			i := info
			i.Resource = strconv.Itoa(n)
			all.find(g, route, res, &i, false)
		}
	})
}
