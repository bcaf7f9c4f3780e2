package discovery

import (
	"encoding/json"
	"errors"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// errNoDiscovery is the error of an answer that is no document of the discovery API.
var errNoDiscovery = errors.New("the answer is no document of the discovery API")

// A document is an answer of /api or /apis: aggregated, or the names of versions and groups alone.
type document struct {
	metav1.TypeMeta
	// Items has the groups of an APIGroupDiscoveryList.
	Items []apidiscovery.APIGroupDiscovery
	// Versions has the versions of an APIVersions, the answer of /api.
	Versions []string
	// Groups has the groups of an APIGroupList, the answer of /apis.
	Groups []metav1.APIGroup
}

// The kinds of discovery documents.
const (
	kindAggregated   = "APIGroupDiscoveryList"
	kindVersions     = "APIVersions"
	kindGroups       = "APIGroupList"
	kindResourceList = "APIResourceList"
)

func readDocument(body []byte) (*document, error) {
	d := &document{}
	if err := json.Unmarshal(body, d); err != nil {
		return nil, errNoDiscovery
	}
	switch d.Kind {
	case kindAggregated, kindVersions, kindGroups:
		return d, nil
	}
	return nil, errNoDiscovery
}

// groupVersions returns the versions of a document without resources, the preferred ones of each
// group first.
func (d *document) groupVersions() []schema.GroupVersion {
	var all []schema.GroupVersion
	for _, v := range d.Versions {
		all = append(all, schema.GroupVersion{Version: v})
	}
	for _, g := range d.Groups {
		for _, v := range g.Versions {
			all = append(all, schema.GroupVersion{Group: g.Name, Version: v.Version})
		}
	}
	return all
}

// addTo adds the groups of an aggregated document.
func (d *document) addTo(c *Catalog) {
	for i := range d.Items {
		group := d.Items[i].Name
		for j := range d.Items[i].Versions {
			v := &d.Items[i].Versions[j]
			gv := schema.GroupVersion{Group: group, Version: v.Version}
			if v.Freshness == apidiscovery.DiscoveryFreshnessStale {
				c.failed[gv] = "the API server says that what it knows of them is stale"
			}
			for k := range v.Resources {
				addAggregated(c, gv, &v.Resources[k])
			}
		}
	}
}

func addAggregated(c *Catalog, gv schema.GroupVersion, r *apidiscovery.APIResourceDiscovery) {
	namespaced := r.Scope == apidiscovery.ScopeNamespace
	path := Path{GroupVersionResource: gv.WithResource(r.Resource)}
	// A server may list subresources of a resource that has no kind of its own.
	if r.ResponseKind != nil && r.ResponseKind.Kind != "" {
		c.add(path, &Resource{Kind: kindOf(gv, r.ResponseKind), Namespaced: namespaced, Verbs: r.Verbs})
	}
	for i := range r.Subresources {
		s := &r.Subresources[i]
		if s.ResponseKind == nil || s.ResponseKind.Kind == "" {
			continue
		}
		path.Subresource = s.Subresource
		c.add(path, &Resource{Kind: kindOf(gv, s.ResponseKind), Namespaced: namespaced, Verbs: s.Verbs})
	}
}

// kindOf returns a kind of an aggregated document. A kind without a version is of the version that
// lists it.
func kindOf(gv schema.GroupVersion, k *metav1.GroupVersionKind) schema.GroupVersionKind {
	if k.Version == "" {
		return gv.WithKind(k.Kind)
	}
	return schema.GroupVersionKind(*k)
}

// addResources adds the answer of /api/VERSION or /apis/GROUP/VERSION.
func addResources(c *Catalog, gv schema.GroupVersion, body []byte) error {
	list := &metav1.APIResourceList{}
	if err := json.Unmarshal(body, list); err != nil || list.Kind != kindResourceList {
		return errNoDiscovery
	}
	for i := range list.APIResources {
		r := &list.APIResources[i]
		kind := gv.WithKind(r.Kind)
		if r.Version != "" {
			kind.Group, kind.Version = r.Group, r.Version
		}
		if r.Kind == "" {
			continue
		}
		name, subresource, _ := strings.Cut(r.Name, "/")
		c.add(Path{gv.WithResource(name), subresource}, &Resource{Kind: kind, Namespaced: r.Namespaced, Verbs: r.Verbs})
	}
	return nil
}
