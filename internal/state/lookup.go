package state

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

const (
	// maxObject is how large one object may be that is read on demand, in bytes.
	maxObject = 3 << 20
	// maxFound is how many objects a selector may find, maxFoundBytes how large they may be together.
	maxFound      = 1000
	maxFoundBytes = 16 << 20
)

// Get reads an object that is kept for a short while; an invalid node if there is none. An object
// that leaves them out is given the kind's apiVersion and kind.
func (m *Manager) Get(ctx context.Context, b Backend, path string,
	kind schema.GroupVersionKind) (document.Node, error) {
	found, err := m.cache.get(ctx, reading{b, path}, m.options.TTL, m.options.LookupTimeout,
		func(ctx context.Context) (listing, error) {
			return get(ctx, b, path, kind)
		})
	if err != nil || len(found) == 0 {
		return document.Node{}, err
	}
	return found[0], nil
}

func get(ctx context.Context, b Backend, path string, kind schema.GroupVersionKind) (listing, error) {
	answer, err := b.Send(ctx, Request{Method: http.MethodGet, Target: path, Limit: maxObject})
	switch {
	case err != nil:
		return listing{}, err
	case answer.Code == http.StatusNotFound:
		return listing{absent: true}, nil
	case answer.Code != http.StatusOK:
		return listing{}, errAnswer(answer.Code, path)
	}
	d, err := document.Parse(answer.Body, limitsFor(len(answer.Body)))
	if err != nil || d.Root().Kind() != document.Object {
		return listing{}, errNotJSON
	}
	if !kind.Empty() {
		setIfUnset(d, d.Root(), "apiVersion", kind.GroupVersion().String())
		setIfUnset(d, d.Root(), "kind", kind.Kind)
	}
	d.Compact()
	return listing{objects: []document.Node{d.Root()}, bytes: int64(len(answer.Body))}, nil
}

// List reads the objects of a collection that the query selects; they are kept for a short while.
// items and kind are as in a [Source]. It fails if there are more than 1,000, or more than 16 MiB.
func (m *Manager) List(ctx context.Context, b Backend, path, query string, items resource.FieldPath,
	kind schema.GroupVersionKind) ([]document.Node, error) {
	target := withQuery(path, query)
	return m.cache.get(ctx, reading{b, target}, m.options.TTL, m.options.LookupTimeout,
		func(ctx context.Context) (listing, error) {
			return list(ctx, b, target, items, kind, bounds{maxFound, maxFoundBytes})
		})
}
