package state

import (
	"context"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

// discoveryTTL is how long counts what a Kubernetes API server serves.
const discoveryTTL = time.Minute

// A Served is a resource that a Kubernetes API server serves.
type Served struct {
	Plural     string
	Namespaced bool
}

// Discover finds the resource of a kind that a Kubernetes API server serves; false
// where it serves none.
func (m *Manager) Discover(ctx context.Context, b Backend, kind schema.GroupVersionKind) (Served, bool, error) {
	resources, err := m.discovery(ctx, b, GroupVersionPath(kind.GroupVersion()), "resources")
	for _, r := range resources {
		if name := text(r, "name"); text(r, "kind") == kind.Kind && !strings.Contains(name, "/") {
			namespaced, _ := r.Get("namespaced")
			return Served{Plural: name, Namespaced: namespaced.Bool()}, true, err
		}
	}
	return Served{}, false, err
}

// Versions are the versions in which a Kubernetes API server serves a resource.
func (m *Manager) Versions(ctx context.Context, b Backend, r schema.GroupResource) ([]string, error) {
	if r.Group == "" {
		return []string{"v1"}, nil // the only one that there is
	}
	known, err := m.discovery(ctx, b, "/apis/"+r.Group, "versions")
	var served []string
	for _, v := range known {
		version := text(v, "version")
		if resources, err := m.discovery(ctx, b, GroupVersionPath(schema.GroupVersion{Group: r.Group, Version: version}), "resources"); err != nil {
			return nil, err
		} else if hasResource(resources, r.Resource) {
			served = append(served, version)
		}
	}
	return served, err
}

func hasResource(resources []document.Node, plural string) bool {
	for _, r := range resources {
		if text(r, "name") == plural {
			return true
		}
	}
	return false
}

// GroupVersionPath is the path of a group and version in Kubernetes' API.
func GroupVersionPath(v schema.GroupVersion) string {
	if v.Group == "" {
		return "/api/" + v.Version
	}
	return "/apis/" + v.Group + "/" + v.Version
}

// discovery reads a list of the discovery API; what the server does not know is an empty one.
func (m *Manager) discovery(ctx context.Context, b Backend, path, member string) ([]document.Node, error) {
	return m.cache.get(ctx, reading{b, path}, discoveryTTL, m.options.LookupTimeout, func(ctx context.Context) (listing, error) {
		answer, err := b.Send(ctx, Request{Method: http.MethodGet, Target: path, Limit: maxObject})
		switch {
		case err != nil:
			return listing{}, err
		case answer.Code == http.StatusNotFound:
			return listing{absent: true}, nil
		case answer.Code != http.StatusOK:
			return listing{}, errAnswer(answer.Code, path)
		}
		all, _, err := readPage(answer.Body, resource.FieldPath{member}, schema.GroupVersionKind{}, bounds{objects: maxFound * 10, bytes: maxObject})
		return all, err
	})
}
