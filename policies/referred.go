package policies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/state"
)

// Referred answers what the policies of a set ask beyond one request: from the policy files, else from a StateSource,
// else from the backend. It is the [admission.Lookup] and the [cel.States] of the request and is used by its goroutine
// alone. What it answered once it answers again until Reset.
type Referred struct {
	set        *Set
	states     *state.Manager
	backend    state.Backend
	info       *resource.Info
	deadline   time.Time
	gate       state.Gate
	authorizer state.Authorizer
	answers    []answer
	converted  []*document.Document
}

// An answer has a question and what came of it.
type answer struct {
	question question
	objects  []document.Node
	err      error
}

type question struct {
	kind            schema.GroupVersionKind
	namespace, name string
	how             byte
}

const (
	askObject byte = iota
	askObjects
	askState
)

// Begin prepares for a request. The backend is that to which the request goes; the gate says whether anything may be
// read for it, nil that everything may; the deadline may be zero. The context has the request's trace.
func (r *Referred) Begin(ctx context.Context, set *Set, states *state.Manager, backend state.Backend,
	info *resource.Info, gate state.Gate, deadline time.Time) {
	r.set, r.states, r.backend, r.info, r.gate, r.deadline = set, states, backend, info, gate, deadline
	r.authorizer.Backend, r.authorizer.Gate, r.authorizer.Deadline, r.authorizer.Context = backend, gate, deadline, ctx
	if states != nil {
		r.authorizer.Reviews = states.Reviews()
	}
}

// mayRead returns an error if only the files may be read for the request.
func (r *Referred) mayRead() error {
	if r.gate == nil {
		return nil
	}
	return r.gate.MayRead()
}

// Reset forgets the request.
func (r *Referred) Reset() {
	if r.set == nil { // it was not asked for
		return
	}
	for _, d := range r.converted {
		d.Release()
	}
	clear(r.answers)
	clear(r.converted)
	*r = Referred{answers: r.answers[:0], converted: r.converted[:0]}
}

// once answers a question as it was answered before.
func (r *Referred) once(q question, ask func() ([]document.Node, error)) ([]document.Node, error) {
	for i := range r.answers {
		if r.answers[i].question == q {
			return r.answers[i].objects, r.answers[i].err
		}
	}
	objects, err := ask()
	r.answers = append(r.answers, answer{q, objects, err})
	return objects, err
}

// within limits what is asked of backends to the time that the request has.
func (r *Referred) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.deadline.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, r.deadline)
}

// Namespaced implements admission.Lookup.
func (r *Referred) Namespaced(ctx context.Context, kind schema.GroupVersionKind) (bool, error) {
	if namespaced, known := r.set.kinds.scopes[kind.GroupKind()]; known {
		return namespaced, nil
	}
	at, found, err := r.place(ctx, kind)
	switch {
	case err != nil:
		return false, err
	case !found && r.hasKinds():
		return false, fmt.Errorf("neither the policy files nor the backend know it")
	case !found:
		return false, fmt.Errorf("no policy file describes it or holds an object of it")
	}
	return at.namespaced, nil
}

// hasKinds reports whether the backend serves kinds that no policy file describes, and says which.
func (r *Referred) hasKinds() bool { return r.backend != nil && r.backend.Discovery() != nil }

// place is the location of a kind's objects at the request's backend; false if it can have none.
func (r *Referred) place(ctx context.Context, kind schema.GroupVersionKind) (objectPaths, bool, error) {
	at, isNative, found := r.set.kinds.find(kind)
	switch {
	case r.backend == nil || isNative && found && !r.hasKinds():
		return objectPaths{}, false, nil
	case found || !r.hasKinds():
		return at, found, nil
	}
	if err := r.mayRead(); err != nil {
		return objectPaths{}, false, err
	}
	ctx, cancel := r.within(ctx)
	defer cancel()
	plural, served, err := r.backend.Discovery().Named(ctx, kind)
	if served == nil {
		return objectPaths{}, false, err
	}
	return kubernetesPaths(kind.GroupVersion(), plural, served.Namespaced), true, nil
}

// source is the StateSource that has every object of the kind in the namespace; nil without one.
func (r *Referred) source(kind schema.GroupVersionKind, namespace string) *state.Source {
	return r.set.SourceOf(kind, namespace)
}

// Object implements admission.Lookup.
func (r *Referred) Object(ctx context.Context, kind schema.GroupVersionKind, namespace,
	name string) (document.Node, error) {
	found, err := r.once(question{kind, namespace, name, askObject}, func() ([]document.Node, error) {
		n, err := r.find(ctx, kind, namespace, name)
		if err != nil || !n.Valid() {
			return nil, err
		}
		return []document.Node{n}, nil
	})
	if len(found) == 0 {
		return document.Node{}, err
	}
	return found[0], nil
}

func (r *Referred) find(ctx context.Context, kind schema.GroupVersionKind, namespace,
	name string) (document.Node, error) {
	if o, found := r.set.Object(kind.Group, kind.Kind, namespace, name); found {
		return r.asVersion(o, kind)
	}
	if err := r.mayRead(); err != nil {
		return document.Node{}, err
	}
	ctx, cancel := r.within(ctx)
	defer cancel()
	s := r.source(kind, namespace)
	if s != nil {
		if n, err := r.states.Find(ctx, s, namespace, name); err != nil || n.Valid() || s.Upstream != "" {
			return n, err
		}
		// What was made a moment ago may be there all the same.
	}
	at, found, err := r.place(ctx, kind)
	switch {
	case err != nil:
		return document.Node{}, r.unread(kind, name, err)
	case !found && s == nil && kind.Group == "" && kind.Kind == "Namespace":
		return document.Node{}, fmt.Errorf("the namespace '%s' is in no policy file, and the backend is no Kubernetes API server that could be asked for it", name)
	case !found:
		return document.Node{}, nil
	}
	of := kind
	if at.bare {
		of = schema.GroupVersionKind{}
	}
	n, err := r.states.Get(ctx, r.backend, expand(at.item, namespace, name), of)
	if err != nil {
		return n, r.unread(kind, name, err)
	}
	return n, nil
}

// unread is the error of an object that cannot be read; an empty name stands for several.
func (r *Referred) unread(kind schema.GroupVersionKind, name string, err error) error {
	if name == "" {
		return fmt.Errorf("the objects of kind '%s' cannot be read: %w", kind.Kind, err)
	}
	return fmt.Errorf("the %s '%s' cannot be read: %w", kind.Kind, name, err)
}

// asVersion is an object of the files in the version that is asked for.
func (r *Referred) asVersion(o *Object, kind schema.GroupVersionKind) (document.Node, error) {
	if o.APIVersion == kind.GroupVersion().String() {
		return o.Document.Root(), nil
	}
	to := r.set.kinds.described[kind]
	if to == nil || !r.set.compiled[to.ID].convertible {
		return document.Node{},
			fmt.Errorf("the %s '%s' in the policy files is of '%s', and cannot be converted to '%s'", o.Kind, o.Name,
				o.APIVersion, kind.GroupVersion())
	}
	converted := withVersion(o.Document, kind.GroupVersion())
	r.converted = append(r.converted, converted)
	return converted.Root(), nil
}

// Objects implements admission.Lookup.
func (r *Referred) Objects(ctx context.Context, kind schema.GroupVersionKind, namespace string,
	selector labels.Selector) ([]document.Node, error) {
	return r.once(question{kind, namespace, selector.String(), askObjects}, func() ([]document.Node, error) {
		var found []named
		for _, o := range r.set.kinds.objects[kind.GroupKind()] {
			if o.Namespace != namespace || !admission.Selects(selector, o.Document.Root()) {
				continue
			}
			n, err := r.asVersion(o, kind)
			if err != nil {
				return nil, err
			}
			found = append(found, named{o.Name, n})
		}
		live, err := r.list(ctx, kind, namespace, selector)
		if err != nil {
			return nil, err
		}
		for _, n := range live {
			name := nameOf(n)
			if _, shadowed := r.set.Object(kind.Group, kind.Kind, namespace, name); !shadowed &&
				admission.Selects(selector, n) {
				found = append(found, named{name, n})
			}
		}
		slices.SortStableFunc(found, func(a, b named) int { return cmp.Compare(a.name, b.name) })
		nodes := make([]document.Node, len(found))
		for i, f := range found {
			nodes[i] = f.node
		}
		return nodes, nil
	})
}

type named struct {
	name string
	node document.Node
}

// list reads the objects of a kind that no policy file holds; more than the selector selects may come.
func (r *Referred) list(ctx context.Context, kind schema.GroupVersionKind, namespace string,
	selector labels.Selector) ([]document.Node, error) {
	if err := r.mayRead(); err != nil {
		return nil, err
	}
	ctx, cancel := r.within(ctx)
	defer cancel()
	if s := r.source(kind, namespace); s != nil {
		return r.states.In(ctx, s, namespace)
	}
	at, found, err := r.place(ctx, kind)
	if err != nil || !found {
		if err != nil {
			err = r.unread(kind, "", err)
		}
		return nil, err
	}
	if at.collection == "" {
		return nil, r.unread(kind, "", errNoCollection)
	}
	query := r.backend.API().SelectorQuery(selector)
	all, err := r.states.List(ctx, r.backend, expand(at.collection, namespace, ""), query, at.items, kind)
	if err != nil {
		return nil, r.unread(kind, "", err)
	}
	return all, nil
}

// errNoCollection is the error of a list of objects that have paths and no collection.
var errNoCollection = errors.New("the policy files describe no path that lists them")

func nameOf(n document.Node) string {
	metadata, _ := n.Get("metadata")
	name, _ := metadata.Get("name")
	return name.Str()
}

// Equivalents implements admission.Lookup.
func (r *Referred) Equivalents(ctx context.Context) ([]schema.GroupVersionResource, error) {
	others, described := r.set.otherVersions(r.info)
	switch {
	case !r.hasKinds():
		return others, nil
	case described: // and in what other versions the backend is known to serve it
		return r.withVersions(others, r.backend.Discovery().Catalog().Versions(r.info.GroupResource())), nil
	}
	if err := r.mayRead(); err != nil {
		return nil, err
	}
	ctx, cancel := r.within(ctx)
	defer cancel()
	versions, err := r.backend.Discovery().Versions(ctx, r.info.GroupResource())
	others = r.withVersions(others, versions)
	if group, ok := admission.Cohabitant(r.info.Group, r.info.Resource); ok {
		others = append(others, schema.GroupVersionResource{Group: group, Version: "v1", Resource: r.info.Resource})
	}
	return others, err
}

// withVersions adds versions of the request's resource, but for its own and those that are there.
func (r *Referred) withVersions(others []schema.GroupVersionResource, versions []string) []schema.GroupVersionResource {
	for _, v := range versions {
		other := schema.GroupVersionResource{Group: r.info.Group, Version: v, Resource: r.info.Resource}
		if v != r.info.Version && !slices.Contains(others, other) {
			others = append(others, other)
		}
	}
	return others
}

// Convert implements admission.Lookup. The objects of subresources such as scale are of one kind whatever the version
// of the resource.
func (r *Referred) Convert(d *document.Document, to schema.GroupVersionResource) (*document.Document, string, error) {
	var converted *document.Document
	var kind string
	if r.info.Subresource != "" && r.info.Subresource != "status" {
		converted = d.Clone()
		n, _ := converted.Root().Get("kind")
		kind = n.Str()
	} else {
		from := r.info.GroupVersionResource()
		if to == from { // and back: the object says what it was converted to
			apiVersion, _ := d.Root().Get("apiVersion")
			version, err := schema.ParseGroupVersion(apiVersion.Str())
			if err != nil {
				return nil, "", err
			}
			from = version.WithResource(to.Resource)
		}
		var err error
		if converted, kind, err = r.set.convert(d, from, to); err != nil {
			return nil, "", err
		}
	}
	r.converted = append(r.converted, converted)
	return converted, kind, nil
}

// States implements admission.Lookup.
func (r *Referred) States() cel.States { return r }

// State implements cel.States.
func (r *Referred) State(name string) ([]document.Node, error) {
	return r.once(question{name: name, how: askState}, func() ([]document.Node, error) {
		for _, s := range r.set.states {
			if s.Name == name {
				if err := r.mayRead(); err != nil {
					return nil, err
				}
				ctx, cancel := r.within(context.Background())
				defer cancel()
				return r.states.Objects(ctx, s, r.info.Namespace)
			}
		}
		return nil, fmt.Errorf("no StateSource has the name '%s'", name)
	})
}

// Authorizer implements admission.Lookup.
func (r *Referred) Authorizer() authorizer.UnconditionalAuthorizer { return &r.authorizer }
