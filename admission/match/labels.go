package match

import corev1 "k8s.io/api/core/v1"

// A NamespaceName is the one label that every namespace has, as labels to select by.
type NamespaceName string

// Has implements labels.Labels.
func (NamespaceName) Has(key string) bool { return key == corev1.LabelMetadataName }

// Get implements labels.Labels.
func (n NamespaceName) Get(key string) string {
	value, _ := n.Lookup(key)
	return value
}

// Lookup implements labels.Labels.
func (n NamespaceName) Lookup(key string) (string, bool) {
	if key == corev1.LabelMetadataName {
		return string(n), true
	}
	return "", false
}
