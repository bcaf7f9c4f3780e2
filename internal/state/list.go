package state

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

// pageSize is how many objects a Kubernetes API server is asked for at once.
const pageSize = "500"

// bounds are how much of a collection may be kept.
type bounds struct {
	objects int
	bytes   int64
}

// listing is a collection as a backend gave it.
type listing struct {
	objects []document.Node
	sizes   []int  // of the objects' JSON, in bytes
	bytes   int64  // all of them
	version string // the resourceVersion of the list; empty if it has none
	absent  bool   // a single object has none
}

// list reads a whole collection, page by page. items and kind are as in a [Source].
func list(ctx context.Context, b Backend, target string, items resource.FieldPath, kind schema.GroupVersionKind,
	most bounds) (listing, error) {
	var all listing
	next := b.API().firstPage(target)
	for {
		// A list is a little more than its objects.
		answer, err := b.Send(ctx, Request{Method: http.MethodGet, Target: next, Limit: most.bytes - all.bytes +
			most.bytes/8 + 64<<10})
		if err != nil {
			return listing{}, err
		}
		if b.API().isEmpty(answer.Code) {
			return all, nil
		}
		if answer.Code == http.StatusNotFound {
			return listing{}, absentError{errAnswer(answer.Code, next)}
		}
		if answer.Code != http.StatusOK {
			return listing{}, errAnswer(answer.Code, next)
		}
		page, more, err := readPage(answer.Body, items, kind, most)
		if err != nil {
			return listing{}, err
		}
		all.objects = append(all.objects, page.objects...)
		all.sizes = append(all.sizes, page.sizes...)
		all.bytes += page.bytes
		all.version = page.version
		if len(all.objects) > most.objects || all.bytes > most.bytes {
			return listing{}, errTooMany
		}
		if more == "" {
			return all, nil
		}
		next = withQuery(target, "limit="+pageSize+"&continue="+url.QueryEscape(more))
	}
}

// readPage reads a list, or a page of one, and the start of the next page. Its objects share a
// document.
func readPage(body []byte, items resource.FieldPath, kind schema.GroupVersionKind,
	most bounds) (page listing, more string, err error) {
	d, err := document.Parse(body, limitsFor(len(body)))
	if err != nil {
		return page, "", errNotJSON
	}
	root := d.Root()
	array, ok := itemsOf(root, items)
	if !ok {
		return page, "", errNotJSON
	}
	if array.Len() > most.objects {
		return page, "", errTooMany
	}
	metadata, _ := root.Get("metadata")
	page.version = text(metadata, "resourceVersion")
	version, of := text(root, "apiVersion"), strings.TrimSuffix(text(root, "kind"), "List")
	if version == "" || of == "" {
		version, of = kind.GroupVersion().String(), kind.Kind
	}
	page.objects = make([]document.Node, 0, array.Len())
	page.sizes = make([]int, 0, array.Len())
	for n := array.First(); n.Valid(); n = n.Next() {
		size := len(n.Raw())
		page.sizes = append(page.sizes, size)
		page.bytes += int64(size)
		if n.Kind() == document.Object && version != "" && of != "" {
			// The items of a list leave out what the list's own kind says.
			setIfUnset(d, n, "apiVersion", version)
			setIfUnset(d, n, "kind", of)
		}
		page.objects = append(page.objects, n)
	}
	d.Compact()
	return page, text(metadata, "continue"), nil
}

// maxDepth is how deep what backends answer may be nested: definitions of resources are nested deeply.
const maxDepth = 1000

// limitsFor are the limits of an answer whose size was bounded when it was read.
func limitsFor(size int) document.Limits {
	return document.Limits{Bytes: max(size, 1), Depth: maxDepth, Nodes: max(size/8, 1<<16)}
}

// itemsOf is the array of objects in an answer.
func itemsOf(root document.Node, path resource.FieldPath) (document.Node, bool) {
	at := root
	switch {
	case path != nil:
		for _, name := range path {
			at, _ = at.Get(name)
		}
	case root.Kind() == document.Object:
		at, _ = root.Get("items")
	}
	if at.Kind() == document.Null && path == nil {
		return document.Node{}, true // Go's nil slice: an empty list
	}
	return at, at.Kind() == document.Array
}

func setIfUnset(d *document.Document, object document.Node, name, value string) {
	if _, found := object.Get(name); !found {
		d.SetString(object, name, value)
	}
}

func text(object document.Node, name string) string {
	n, _ := object.Get(name)
	return n.Str()
}
