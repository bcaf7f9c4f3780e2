package match

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/admission-gateway/gateway/internal/document"
)

// nodeLabels are the labels in an object's metadata.
type nodeLabels struct{ node document.Node }

// Has implements labels.Labels.
func (l nodeLabels) Has(key string) bool {
	_, ok := l.node.Get(key)
	return ok
}

// Get implements labels.Labels.
func (l nodeLabels) Get(key string) string {
	value, _ := l.Lookup(key)
	return value
}

// Lookup implements labels.Labels.
func (l nodeLabels) Lookup(key string) (string, bool) {
	n, ok := l.node.Get(key)
	if !ok || n.Kind() != document.String {
		return "", ok
	}
	return n.Str(), true
}

// namespaceName is the one label that every namespace has.
type namespaceName string

// Has implements labels.Labels.
func (namespaceName) Has(key string) bool { return key == corev1.LabelMetadataName }

// Get implements labels.Labels.
func (n namespaceName) Get(key string) string {
	value, _ := n.Lookup(key)
	return value
}

// Lookup implements labels.Labels.
func (n namespaceName) Lookup(key string) (string, bool) {
	if key == corev1.LabelMetadataName {
		return string(n), true
	}
	return "", false
}
