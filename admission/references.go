package admission

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// References are what a policy may ask a [Lookup] for, whatever the request is, and what its rules leave open.
type References struct {
	// Namespaces is set if it reads the namespace of a request: its labels, or the object.
	Namespaces bool
	Params     []ParamReference
	// Subresources are the ones that it names, without their resources; "*" is any.
	Subresources []string
}

// A ParamReference refers to parameters.
type ParamReference struct {
	Kind schema.GroupVersionKind
	// Namespace is empty if it is the one of the request.
	Namespace string
	// Name is empty if labels select the parameters.
	Name string
}

// A Referrer is a policy that says what it refers to. One that does not refers to nothing.
type Referrer interface{ References() References }

// ReferencesOf returns what a policy and its terms refer to.
func ReferencesOf(p Policy) (r References) {
	if from, is := p.(Referrer); is {
		r = from.References()
	}
	if t, is := termsOf(p).(Referrer); is {
		r.Add(t.References())
	}
	return r
}

// Add adds other references.
func (r *References) Add(other References) {
	r.Namespaces = r.Namespaces || other.Namespaces
	for _, p := range other.Params {
		if !slices.Contains(r.Params, p) {
			r.Params = append(r.Params, p)
		}
	}
	for _, s := range other.Subresources {
		if !slices.Contains(r.Subresources, s) {
			r.Subresources = append(r.Subresources, s)
		}
	}
}
