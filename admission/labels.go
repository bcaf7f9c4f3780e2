package admission

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/admission-gateway/gateway/internal/document"
)

// Labels are the labels of an object; false if it has none.
func Labels(object document.Node) (document.Node, bool) {
	n := at(object, "metadata", "labels")
	return n, n.Kind() == document.Object
}

// Selects reports whether the selector selects the object by its labels.
func Selects(s labels.Selector, object document.Node) bool {
	n, _ := Labels(object)
	return s.Matches(nodeLabels{n})
}

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
