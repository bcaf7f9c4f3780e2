package match

import "github.com/admission-gateway/gateway/internal/resource"

// Holds reports whether a request is certainly about an object in one of the namespaces, or about one of them.
func Holds(namespaces []Wildcard, i *resource.Info) bool {
	switch {
	case len(namespaces) == 0:
		return false
	case i.IsNamespaces():
		return namesObject(i) && Any(namespaces, i.Name)
	}
	return Any(namespaces, i.ObjectNamespace())
}

// selectsName looks at the name of a namespace.
func (m *Matcher) selectsName(name string) bool {
	return (len(m.namespaces) == 0 || Any(m.namespaces, name)) && !Any(m.excluded, name)
}

// mayBeGenerated reports whether the wildcard may stand for the beginning of a generated name, which objects keep.
func (w Wildcard) mayBeGenerated() bool {
	_, _, after := w.parts()
	return after
}
