package ingress

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// byAge returns objects as the API orders them if they conflict: the oldest first, then by namespace and name, and then
// as they came.
func byAge[T metav1.Object](all []T) []T {
	type aged struct { // what is compared, read once: the order of many objects takes a dozen comparisons of each
		created         time.Time
		namespace, name string
		place           int
	}
	keys := make([]aged, len(all))
	order := make([]*aged, len(all))
	for i, o := range all {
		keys[i] = aged{o.GetCreationTimestamp().Time, o.GetNamespace(), o.GetName(), i}
		order[i] = &keys[i]
	}
	slices.SortFunc(order, func(a, b *aged) int {
		return cmp.Or(a.created.Compare(b.created), strings.Compare(a.namespace, b.namespace),
			strings.Compare(a.name, b.name), a.place-b.place)
	})
	sorted := make([]T, len(all))
	for i, k := range order {
		sorted[i] = all[k.place]
	}
	return sorted
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// byName finds objects by their names.
func byName[T metav1.Object](all []T) map[types.NamespacedName]T {
	m := make(map[types.NamespacedName]T, len(all))
	for _, o := range all {
		m[nameOf(o)] = o
	}
	return m
}

// or returns what a pointer points to; the default if it is nil.
func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
