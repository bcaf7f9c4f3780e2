package match

import (
	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
)

const namespaceKind = "Namespace"

// An Object is an object of a request as match blocks see it.
type Object struct {
	// Group and Kind come from the request's resource, or from the object if no file describes that.
	Group, Kind string
	// Namespace is the one that the object is in; empty for namespaces themselves too.
	Namespace string

	attributes *admission.Attributes
	root       document.Node
}

// New makes an Object of a document of the request.
func New(a *admission.Attributes, d *document.Document) Object {
	o := Object{attributes: a, root: d.Root(), Namespace: a.Info.ObjectNamespace()}
	gvk := a.KindOf(d)
	o.Group, o.Kind = gvk.Group, gvk.Kind
	if o.isNamespace() {
		o.Namespace = ""
	}
	return o
}

// Objects makes Objects of the object of a request and the stored one, as far as there are such, in room for two.
func Objects(room []Object, a *admission.Attributes) []Object {
	for _, d := range [...]*document.Document{a.Object, a.Old} {
		if d != nil {
			room = append(room, New(a, d))
		}
	}
	return room
}

func (o *Object) isNamespace() bool { return o.Kind == namespaceKind && o.Group == "" }

// IsIn reports whether the object is in one of the namespaces, or is one of them.
func (o *Object) IsIn(namespaces []Wildcard) bool {
	switch {
	case len(namespaces) == 0:
		return false
	case o.isNamespace():
		return Any(namespaces, o.name())
	}
	return Any(namespaces, o.Namespace)
}

// IsGatekeepers reports whether the object is of one of Gatekeeper's own kinds.
func (o *Object) IsGatekeepers() bool {
	switch o.Group {
	case "templates.gatekeeper.sh", "constraints.gatekeeper.sh", "mutations.gatekeeper.sh", "config.gatekeeper.sh",
		"externaldata.gatekeeper.sh", "expansion.gatekeeper.sh", "status.gatekeeper.sh":
		return true
	}
	return false
}

// name is the object's own; the request's is empty if the name is still to be generated.
func (o *Object) name() string {
	if name := o.metadata("name"); name != "" {
		return name
	}
	return o.attributes.Name()
}

func (o *Object) metadata(member string) string {
	metadata, _ := o.root.Get("metadata")
	n, _ := metadata.Get(member)
	return n.Str()
}
