package gatekeeper

import (
	"errors"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/internal/document"
)

// An Inventory is data.inventory, which modules read: objects of the policy files and of
// StateSources, by namespace, version, kind and name. It is safe for concurrent use.
type Inventory struct {
	// Objects come from the policy files. An object of a StateSource takes the place of one.
	Objects []document.Node
	// Sources are the names of the StateSources.
	Sources []string
	// Kinds are the only kinds that the inventory has; none: it may have any.
	Kinds []schema.GroupVersionKind

	last atomic.Pointer[stocktaking]
}

// stocktaking is an inventory as it was made of collections, which never change.
type stocktaking struct {
	states [][]document.Node
	value  rego.Value
}

var errNoStates = errors.New("the objects of data.inventory are not known")

// value is the inventory as it is now.
func (v *Inventory) value(a *admission.Attributes) (rego.Value, error) {
	states := make([][]document.Node, len(v.Sources))
	for i, name := range v.Sources {
		if a.Lookup == nil || a.Lookup.States() == nil {
			return rego.Value{}, errNoStates
		}
		var err error
		if states[i], err = a.Lookup.States().State(name); err != nil {
			return rego.Value{}, err
		}
	}
	if last := v.last.Load(); last != nil && slices.EqualFunc(last.states, states, isSame) {
		return last.value, nil
	}
	value, err := v.take(states)
	if err != nil {
		return rego.Value{}, err
	}
	v.last.Store(&stocktaking{states, value})
	return value, nil
}

// isSame reports whether two collections are one.
func isSame(a, b []document.Node) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// tree is a map of maps whose leaves are objects.
type tree struct {
	members map[string]*tree
	object  document.Node
}

func (t *tree) put(object document.Node, path ...string) {
	for _, name := range path {
		if t.members == nil {
			t.members = map[string]*tree{}
		}
		if t.members[name] == nil {
			t.members[name] = &tree{}
		}
		t = t.members[name]
	}
	t.object = object
}

func (t *tree) value() (rego.Value, error) {
	if t.object.Valid() {
		return rego.ValueOf(t.object)
	}
	members := make([]rego.Member, 0, len(t.members))
	for name, child := range t.members {
		value, err := child.value()
		if err != nil {
			return rego.Value{}, err
		}
		members = append(members, rego.Member{Name: name, Value: value})
	}
	return rego.Object(members...), nil
}

// take makes the inventory.
func (v *Inventory) take(states [][]document.Node) (rego.Value, error) {
	root := &tree{members: map[string]*tree{}}
	for _, objects := range append([][]document.Node{v.Objects}, states...) {
		for _, object := range objects {
			v.put(root, object)
		}
	}
	return root.value()
}

func (v *Inventory) put(root *tree, object document.Node) {
	apiVersion, kind := text(object, "apiVersion"), text(object, "kind")
	metadata, _ := object.Get("metadata")
	name, namespace := text(metadata, "name"), text(metadata, "namespace")
	if apiVersion == "" || kind == "" || name == "" {
		return // what is no object of Kubernetes' form has no place
	}
	if len(v.Kinds) > 0 && !slices.Contains(v.Kinds, schema.FromAPIVersionAndKind(apiVersion, kind)) {
		return
	}
	if namespace == "" {
		root.put(object, "cluster", apiVersion, kind, name)
	} else {
		root.put(object, "namespace", namespace, apiVersion, kind, name)
	}
}

func text(object document.Node, name string) string {
	n, _ := object.Get(name)
	return n.Str()
}
