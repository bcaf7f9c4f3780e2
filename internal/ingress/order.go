package ingress

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// older compares objects as the API orders them if they conflict: by age, then by namespace and name.
func older[T metav1.Object](a, b T) int {
	at, bt := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	return cmp.Or(at.Compare(bt.Time), strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
}

// byAge returns objects with the oldest first.
func byAge[T metav1.Object](all []T) []T {
	return slices.SortedStableFunc(slices.Values(all), older[T])
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
