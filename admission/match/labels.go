package match

import corev1 "k8s.io/api/core/v1"

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
