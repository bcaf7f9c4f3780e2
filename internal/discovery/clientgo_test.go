package discovery

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgo "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// random makes the groups of a server: names, kinds and subresources that may repeat, kinds of other
// groups, versions that are stale, resources without a kind.
func random(r *rand.Rand) (groups []apidiscovery.APIGroupDiscovery) {
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	kind := func(group, version string) *metav1.GroupVersionKind {
		if r.IntN(8) == 0 {
			return &metav1.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
		}
		return &metav1.GroupVersionKind{Group: group, Version: version, Kind: pick("Pod", "Node", "Widget", "Thing")}
	}
	for _, group := range []string{"", "apps", "example.com"} {
		g := apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: group}}
		for _, version := range []string{"v1", "v1beta1"} {
			if r.IntN(3) == 0 || group == "" && version != "v1" {
				continue
			}
			v := apidiscovery.APIVersionDiscovery{Version: version, Freshness: apidiscovery.DiscoveryFreshnessCurrent}
			for _, name := range []string{"pods", "nodes", "widgets"} {
				if r.IntN(3) == 0 {
					continue
				}
				one := apidiscovery.APIResourceDiscovery{
					Resource: name, ResponseKind: kind(group, version),
					Verbs: []string{pick("get", "create"), pick("list", "delete")},
					Scope: apidiscovery.ResourceScope(pick(string(apidiscovery.ScopeCluster),
						string(apidiscovery.ScopeNamespace))),
				}
				for _, sub := range []string{"status", "scale"} {
					if r.IntN(2) == 0 {
						one.Subresources = append(one.Subresources,
							apidiscovery.APISubresourceDiscovery{Subresource: sub, ResponseKind: kind(group, version),
								Verbs: []string{"get"}})
					}
				}
				v.Resources = append(v.Resources, one)
			}
			g.Versions = append(g.Versions, v)
		}
		if len(g.Versions) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

// serving serves the groups as an API server does, with or without aggregated discovery.
func serving(t *testing.T, groups []apidiscovery.APIGroupDiscovery, isAggregated bool) *httptest.Server {
	answers := map[string]any{}
	core, others := []apidiscovery.APIGroupDiscovery{}, []apidiscovery.APIGroupDiscovery{}
	versions, list := metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: kindVersions}},
		metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: kindGroups, APIVersion: "v1"}}
	for _, g := range groups {
		if g.Name == "" {
			core = append(core, g)
		} else {
			others = append(others, g)
		}
		named := metav1.APIGroup{Name: g.Name}
		for _, v := range g.Versions {
			gv := schema.GroupVersion{Group: g.Name, Version: v.Version}
			if g.Name == "" {
				versions.Versions = append(versions.Versions, v.Version)
			}
			named.Versions = append(named.Versions,
				metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: v.Version})
			resources := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: kindResourceList, APIVersion: "v1"},
				GroupVersion: gv.String()}
			for _, r := range v.Resources {
				add := func(name string, kind *metav1.GroupVersionKind, verbs []string) {
					one := metav1.APIResource{Name: name, Namespaced: r.Scope == apidiscovery.ScopeNamespace,
						Kind: kind.Kind, Verbs: verbs}
					if kind.Group != g.Name || kind.Version != v.Version {
						one.Group, one.Version = kind.Group, kind.Version
					}
					resources.APIResources = append(resources.APIResources, one)
				}
				add(r.Resource, r.ResponseKind, r.Verbs)
				for _, s := range r.Subresources {
					add(r.Resource+"/"+s.Subresource, s.ResponseKind, s.Verbs)
				}
			}
			answers[GroupVersionPath(gv)] = resources
		}
		if g.Name != "" && len(named.Versions) > 0 {
			named.PreferredVersion = named.Versions[0]
			list.Groups = append(list.Groups, named)
		}
	}
	answers["/api"], answers["/apis"] = versions, list
	meta := metav1.TypeMeta{Kind: kindAggregated, APIVersion: "apidiscovery.k8s.io/v2"}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, found := answers[r.URL.Path]
		w.Header().Set("Content-Type", "application/json")
		if isAggregated && strings.Contains(r.Header.Get("Accept"), kindAggregated) &&
			(r.URL.Path == "/api" || r.URL.Path == "/apis") {
			w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
			items := core
			if r.URL.Path == "/apis" {
				items = others
			}
			answer, found = apidiscovery.APIGroupDiscoveryList{TypeMeta: meta, Items: items}, true
		}
		if !found {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(s.Close)
	return s
}

// ours returns the catalog of a server as lines.
func ours(t *testing.T, url string) []string {
	c := New(Options{Ask: func(ctx context.Context, q Request) (Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+q.Target, nil)
		if err != nil {
			return Response{}, err
		}
		r.Header.Set("Accept", q.Accept)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return Response{}, err
		}
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		return Response{Code: answer.StatusCode, Body: body}, err
	}})
	catalog, err := c.All(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]bool{}
	for p, r := range catalog.resources {
		name := p.Resource
		if p.Subresource != "" {
			name += "/" + p.Subresource
		}
		lines[fmt.Sprintf("%s %s: %s %t %v", p.GroupVersion(), name, r.Kind, r.Namespaced, r.Verbs)] = true
	}
	return slices.Sorted(maps.Keys(lines))
}

// theirs returns what client-go finds at a server as lines.
func theirs(t *testing.T, url string) []string {
	c, err := clientgo.NewDiscoveryClientForConfig(&rest.Config{Host: url, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := c.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]bool{}
	for _, l := range lists {
		gv, _ := schema.ParseGroupVersion(l.GroupVersion)
		for _, r := range l.APIResources {
			kind := gv.WithKind(r.Kind)
			if r.Version != "" {
				kind.Group, kind.Version = r.Group, r.Version
			}
			lines[fmt.Sprintf("%s %s: %s %t %v", gv, r.Name, kind, r.Namespaced, []string(r.Verbs))] = true
		}
	}
	return slices.Sorted(maps.Keys(lines))
}

func compare(t *testing.T, seed uint64) {
	groups := random(rand.New(rand.NewPCG(seed, 1)))
	for _, isAggregated := range []bool{true, false} {
		url := serving(t, groups, isAggregated).URL
		if got, want := ours(t, url), theirs(t, url); !slices.Equal(got, want) {
			t.Errorf("seed %d, aggregated %t: %q, client-go has %q", seed, isAggregated, got, want)
		}
	}
}

// TestSameAsClientGo: client-go finds the same resources, kinds, scopes and verbs at the same server.
func TestSameAsClientGo(t *testing.T) {
	for seed := range uint64(60) {
		compare(t, seed)
	}
}

// FuzzSameAsClientGo feeds TestSameAsClientGo.
func FuzzSameAsClientGo(f *testing.F) {
	f.Add(uint64(1000))
	f.Fuzz(compare)
}
