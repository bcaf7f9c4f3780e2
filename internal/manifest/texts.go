package manifest

import "github.com/admission-gateway/gateway/internal/document"

// Text returns the text at a path of the object; "" if there is none.
func (o *Object) Text(path string) string {
	n, _ := o.At(path)
	return n.Str()
}

// QualifiedName returns the name of the object, behind its namespace if it has one.
func (o *Object) QualifiedName() string {
	if o.Namespace != "" {
		return o.Namespace + "/" + o.Name
	}
	return o.Name
}

// Member returns the member of an object; invalid if there is none.
func Member(n document.Node, name string) document.Node {
	m, _ := n.Get(name)
	return m
}

// Texts returns the texts of a list.
func Texts(list document.Node) (texts []string) {
	for n := list.First(); n.Valid(); n = n.Next() {
		texts = append(texts, n.Str())
	}
	return texts
}
