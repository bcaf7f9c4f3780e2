package value

import "github.com/admission-gateway/gateway/internal/document"

// A Slot is the place of one variable in [Vars].
type Slot uint8

// The variables whose values are nodes of documents.
const (
	Self            Slot = iota // the value that a schema's rule judges
	OldSelf                     // its value before the update; invalid if there is none
	Object                      // the object of the request; invalid: null
	OldObject                   // the stored object; invalid: null
	Params                      // the parameter object; invalid: null
	NamespaceObject             // the object's namespace; invalid: null
	Slots
)

// Bindings are the variables that hold nodes.
type Bindings struct{ Slots [Slots]Binding }

// A Binding is a variable with room for the lazy value of a container.
type Binding struct {
	Node   document.Node
	Typ    *Type
	object Map
	list   List
}

// Value is the value of a variable; false when it has none. It uses the slot's own room for a container, so that a
// variable costs no memory however often it is read.
func (v *Bindings) Value(f *Arena, s Slot) (any, bool) {
	sl := &v.Slots[s]
	if !sl.Node.Valid() {
		return nil, false
	}
	switch {
	case IsObject(sl.Node, sl.Typ):
		sl.object = Map{frame: f, Node: sl.Node, Typ: sl.Typ}
		return &sl.object, true
	case IsList(sl.Node, sl.Typ):
		sl.list = List{Arena: f, Node: sl.Node, Typ: sl.Typ}
		return &sl.list, true
	}
	return f.Value(sl.Node, sl.Typ), true
}

// Set binds a variable to a node, which is seen as typ says; nil means as plain
// JSON.
func (v *Bindings) Set(s Slot, n document.Node, typ *Type) {
	v.Slots[s].Node = n
	v.Slots[s].Typ = typ
}
