package admission

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/status"
)

// A Lookup returns what policies refer to beside the request. An answer stays the same
// for the whole request, and nothing is read unless a policy asks. What it returns is
// shared, and must not be edited.
//
// Its errors never hold values of the objects it reads.
type Lookup interface {
	// Namespaced reports whether objects of the kind belong to namespaces. The error says that the
	// kind is not known.
	Namespaced(ctx context.Context, kind schema.GroupVersionKind) (bool, error)
	// Object returns an object of the kind, an invalid node if there is none of
	// that name. The namespace is empty for kinds that belong to none.
	Object(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (document.Node, error)
	// Objects returns the objects of the kind in the namespace that the selector
	// selects, in the order of their names.
	Objects(ctx context.Context, kind schema.GroupVersionKind, namespace string,
		selector labels.Selector) ([]document.Node, error)
	// Equivalents are the resources under which the objects of the request's
	// resource are served too: its other versions, and another group's.
	Equivalents(ctx context.Context) ([]schema.GroupVersionResource, error)
	// Convert returns a copy of an object of the request's resource as the other
	// resource has it, and the kind that it then is of. The copy is the Lookup's own:
	// the caller may edit it until the request is over.
	Convert(d *document.Document, to schema.GroupVersionResource) (*document.Document, string, error)
	// States are the collections of the variable state.
	States() cel.States
	// Authorizer answers what the variable authorizer asks.
	Authorizer() authorizer.UnconditionalAuthorizer
}

// namespaceKind is the kind of namespaces.
var namespaceKind = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}

// NoNamespace is the error about a request whose namespace does not exist. It is
// the answer to the request whatever the failure policy: as in Kubernetes nothing
// is admitted into such a namespace.
type NoNamespace struct{ answer *status.Error }

func (e *NoNamespace) Error() string { return e.answer.Error() }

// Unwrap returns the answer.
func (e *NoNamespace) Unwrap() error { return e.answer }

// unread is why a namespace cannot be read. It is a failure of the policy that
// needs the namespace: [errors.As] finds no answer to the request in it, which
// some errors of a backend have.
type unread struct{ cause error }

func (e unread) Error() string { return e.cause.Error() }

// Is lets [errors.Is] find what the policy does about its cause.
func (e unread) Is(target error) bool { return errors.Is(e.cause, target) }

// LookUpNamespace returns the namespace of the request, or the Namespace object that the request
// names; invalid if there is none. It is looked up once. The error about one that does not exist is
// a *NoNamespace.
func (a *Attributes) LookUpNamespace(ctx context.Context) (document.Node, error) {
	name := a.Namespace()
	if a.NamespaceObject.Valid() || name == "" {
		return a.NamespaceObject, nil
	}
	if a.Lookup == nil {
		return document.Node{}, fmt.Errorf("the labels of namespace '%s' are not known", name)
	}
	namespace, err := a.Lookup.Object(ctx, namespaceKind, "", name)
	switch {
	case err != nil:
		return document.Node{}, unread{err}
	case !namespace.Valid():
		return document.Node{}, &NoNamespace{status.NotFound(schema.GroupResource{Resource: "namespaces"}, name)}
	}
	a.NamespaceObject = namespace
	return namespace, nil
}

// Equivalents are the resources under which the objects of the request's
// resource are served too.
func (a *Attributes) Equivalents(ctx context.Context) ([]schema.GroupVersionResource, error) {
	if a.Lookup == nil {
		return nil, nil
	}
	return a.Lookup.Equivalents(ctx)
}

// Cohabitant is the other group under which kube-apiserver serves the objects of
// a resource.
func Cohabitant(group, resource string) (string, bool) {
	if resource != "events" && resource != anyName {
		return "", false
	}
	switch group {
	case "":
		return "events.k8s.io", true
	case "events.k8s.io":
		return "", true
	}
	return "", false
}
