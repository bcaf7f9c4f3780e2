// Package kubernetes has the types by which objects of Kubernetes' own kinds are
// merged, as kube-apiserver publishes them. They are kept in types.txt, which
// its test makes from k8s.io/client-go and k8s.io/api: those would be a third
// of the gateway's memory.
package kubernetes

import (
	_ "embed"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/merge"
)

//go:embed types.txt
var text string

// types reads the file when the first type is asked for: most policies are about
// resources with schemas of their own.
var types = sync.OnceValue(func() *file {
	f, err := read(text)
	if err != nil {
		panic("internal/merge/kubernetes/types.txt: " + err.Error()) // its test reads it
	}
	return f
})

// TypeOf is the type by which objects of one of Kubernetes' own kinds are merged,
// nil for any other kind.
func TypeOf(kind schema.GroupVersionKind) *merge.Type {
	f := types()
	return f.types[f.groups[kind.Group]+"."+kind.Version+"."+kind.Kind]
}

// TypeOfResource is the type of the objects of one of Kubernetes' own resources,
// nil for any other.
func TypeOfResource(r schema.GroupVersionResource) *merge.Type {
	f := types()
	prefix := f.groups[r.Group] + "." + r.Version + "."
	for name, t := range f.types {
		kind, ok := strings.CutPrefix(name, prefix)
		if !ok || t.Object == nil || t.Object.Member("kind") == nil {
			continue
		}
		if plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: r.Group, Version: r.Version,
			Kind: kind}); plural == r {
			return t
		}
	}
	return nil
}

// ObjectMeta is the type of the metadata of any object.
func ObjectMeta() *merge.Type { return types().types["meta.v1.ObjectMeta"] }
