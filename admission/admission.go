// Package admission runs policies on the object of a write, after it was
// completed and defaulted and before it is sent on.
//
// A [Chain] holds the compiled policies of one set: mutators, which change the object, and
// validators, which collect what is wrong with it in a [Report]. It finds the policies that a
// request concerns through an index, so that policies for other resources cost nothing, and runs
// them in the order of their names. A policy that fails or panics stops the request or is skipped,
// as its [FailurePolicy] says; nothing fails open by accident.
//
// The kinds of policies are in the packages below this one.
package admission

import (
	"time"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/discovery"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/resource"
)

// Operation says what a write does to the object.
type Operation = resource.AdmissionOperation

// The operations.
const (
	Create  = resource.AdmitCreate
	Update  = resource.AdmitUpdate
	Delete  = resource.AdmitDelete
	Connect = resource.AdmitConnect

	// AllOperations are the operations that '*' stands for.
	AllOperations = resource.AdmitAll
)

// Attributes have all that policies can know of a request. They belong to one goroutine.
type Attributes struct {
	// Info has what method and path say.
	Info *resource.Info
	// Resource is the resource's description; nil if no policy file has one.
	Resource *resource.Resource
	// Served is what the API server says of the resource or subresource; nil if it was not asked,
	// or if it does not serve it.
	Served *discovery.Resource
	// Operation says what the request does.
	Operation Operation
	// HTTP is the request as it came; nil: nothing is known.
	HTTP cel.HTTP
	// User sends the request.
	User *identity.User
	// Object is the object as it would be stored; nil for a delete.
	Object *document.Document
	// Item is the position of Object in the body, such as "[3]", if policies see its items one
	// after the other.
	Item string
	// Old is the stored object; nil for a create, and if no policy that matches the request needs
	// it (see [Chain.NeedsOld]).
	Old *document.Document
	// NamespaceObject is the request's namespace, once something needed it (see
	// [Attributes.LookUpNamespace]); invalid for a cluster-scoped resource.
	NamespaceObject document.Node
	// Received is when the request came, by which rollouts and exceptions are judged; zero is now.
	Received time.Time
	// DryRun is set if nothing will be stored.
	DryRun bool
	// IsUncounted is set if exceptions do not count that they were used for the request.
	IsUncounted bool
	// Options are the operation's options, such as DeleteOptions; nil if there are none.
	Options cel.Options
	// Lookup answers what policies ask beyond the request; nil: nothing is known.
	Lookup Lookup
	// Frame is the frame in which CEL expressions are evaluated.
	Frame *cel.Frame
	// Schema has what is known of the resource; nil: nothing.
	Schema Schema
	// HasGeneratedName is set if the client left the name to the API, and it is known all the same.
	HasGeneratedName bool

	// Made keeps what an engine made of the attributes, so that all of its policies share it. The
	// engine looks if it still holds. What is Forgetting is kept for the next request.
	Made any

	mutated mutationProgress
	matched bool // see IsMatched
	bound   boundRequest
	found   []int32 // room for searches
}

// boundRequest is the request as expressions see it.
type boundRequest struct {
	request cel.Request
	matched cel.Matched
}

// mutationProgress is how far the mutators have come.
type mutationProgress struct {
	runs    []Run // while they run
	changes int
}

// Name is the object's name: that in the path, else that in the object; empty
// for a collection.
func (a *Attributes) Name() string {
	if a.Info.Name != "" || a.Object == nil {
		return a.Info.Name
	}
	if a.Resource != nil && a.Resource.Envelope == resource.Bare {
		return text(at(a.Object.Root(), a.Resource.Fields.Name...))
	}
	return text(at(a.Object.Root(), "metadata", "name"))
}

// IsMatched reports whether the validator that runs is known to match the request with all of its bindings, so that it
// need not be asked whether it does.
func (a *Attributes) IsMatched() bool { return a.matched }

// Time is when the request came.
func (a *Attributes) Time() time.Time {
	if a.Received.IsZero() {
		return time.Now()
	}
	return a.Received
}

// Namespace is the namespace of the request; empty for a cluster-scoped
// resource.
func (a *Attributes) Namespace() string { return a.Info.Namespace }

// RequestNamespace is the namespace as policies see it in the request: of a Namespace, the name that the client gave
// it, as in Kubernetes.
func (a *Attributes) RequestNamespace() string {
	if i := a.Info; !a.HasGeneratedName && i.Namespace == "" && i.Verb == resource.VerbCreate && i.IsNamespaces() &&
		i.APIPrefix != "" {
		return i.Name
	}
	return a.Info.Namespace
}

// Reusable is what an engine made of attributes that can forget all but its room.
type Reusable interface{ Forget() }

// Forget returns the room that is left of what an engine made, for the next request; nil if there is
// none. No value that was made of the attributes may be read any more.
func (a *Attributes) Forget() any {
	made, ok := a.Made.(Reusable)
	if !ok {
		return nil
	}
	made.Forget()
	return made
}

func root(d *document.Document) document.Node {
	if d == nil {
		return document.Node{}
	}
	return d.Root()
}

// at is the node at a path of members; invalid if there is none.
func at(n document.Node, path ...string) document.Node {
	if len(path) == 0 {
		return document.Node{}
	}
	for _, name := range path {
		var ok bool
		if n, ok = n.Get(name); !ok {
			return document.Node{}
		}
	}
	return n
}

func text(n document.Node) string {
	if n.Kind() != document.String {
		return ""
	}
	return n.Str()
}
