// Package admissiontest has a Lookup for tests of policies.
package admissiontest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
)

// Lookup is an admission.Lookup of objects in memory. The zero value knows
// nothing.
type Lookup struct {
	objects []object
	// Err, if set, is the error with which every look at objects fails.
	Err error
	// Asked counts the looks at objects.
	Asked int
	// Others are the equivalent resources; Convert copies objects unchanged but for
	// apiVersion, or fails with Inconvertible.
	Others        []schema.GroupVersionResource
	Inconvertible error
	// Known are the states; what is not among them is not known, or is to be skipped.
	Known map[string][]document.Node
	Skip  bool
	// Authz answers for the authorizer; nil: there is none.
	Authz authorizer.UnconditionalAuthorizer
}

type object struct {
	group, kind, namespace, name string
	node                         document.Node
}

// Parse makes a document of YAML or JSON.
func Parse(text string) *document.Document {
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		panic(err)
	}
	d, err := document.Parse(data, document.Limits{})
	if err != nil {
		panic(err)
	}
	return d
}

// Add adds an object, in YAML or JSON.
func (l *Lookup) Add(text string) *Lookup {
	var meta struct {
		APIVersion, Kind string
		Metadata         struct{ Namespace, Name string }
	}
	if err := yaml.Unmarshal([]byte(text), &meta); err != nil {
		panic(err)
	}
	version, err := schema.ParseGroupVersion(meta.APIVersion)
	if err != nil {
		panic(err)
	}
	l.objects = append(l.objects, object{version.Group, meta.Kind, meta.Metadata.Namespace, meta.Metadata.Name,
		Parse(text).Root()})
	slices.SortStableFunc(l.objects, func(a, b object) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	return l
}

// Namespaced implements admission.Lookup: kinds are as their first object is;
// a ConfigMap is namespaced.
func (l *Lookup) Namespaced(_ context.Context, kind schema.GroupVersionKind) (bool, error) {
	for _, o := range l.objects {
		if o.group == kind.Group && o.kind == kind.Kind {
			return o.namespace != "", nil
		}
	}
	if kind.Kind == "ConfigMap" {
		return true, nil
	}
	return false, errors.New("no object is of it")
}

// Object implements admission.Lookup.
func (l *Lookup) Object(_ context.Context, kind schema.GroupVersionKind, namespace,
	name string) (document.Node, error) {
	l.Asked++
	for _, o := range l.objects {
		if o.group == kind.Group && o.kind == kind.Kind && o.namespace == namespace && o.name == name {
			return o.node, l.Err
		}
	}
	return document.Node{}, l.Err
}

// Objects implements admission.Lookup.
func (l *Lookup) Objects(_ context.Context, kind schema.GroupVersionKind, namespace string,
	selector labels.Selector) ([]document.Node, error) {
	l.Asked++
	var found []document.Node
	for _, o := range l.objects {
		if o.group == kind.Group && o.kind == kind.Kind && o.namespace == namespace &&
			selector.Matches(labelsOf(o.node)) {
			found = append(found, o.node)
		}
	}
	return found, l.Err
}

func labelsOf(object document.Node) labels.Set {
	set := labels.Set{}
	metadata, _ := object.Get("metadata")
	all, _ := metadata.Get("labels")
	for n := all.First(); n.Valid(); n = n.Next() {
		set[n.Key()] = n.Str()
	}
	return set
}

// Equivalents implements admission.Lookup.
func (l *Lookup) Equivalents(context.Context) ([]schema.GroupVersionResource, error) {
	return l.Others, l.Err
}

// Convert implements admission.Lookup.
func (l *Lookup) Convert(d *document.Document, to schema.GroupVersionResource) (*document.Document, string, error) {
	if l.Inconvertible != nil {
		return nil, "", l.Inconvertible
	}
	converted := d.Clone()
	converted.SetString(converted.Root(), "apiVersion", to.GroupVersion().String())
	kind, _ := converted.Root().Get("kind")
	return converted, kind.Str(), nil
}

// States implements admission.Lookup.
func (l *Lookup) States() cel.States { return l }

// State implements cel.States.
func (l *Lookup) State(name string) ([]document.Node, error) {
	if objects, ok := l.Known[name]; ok {
		return objects, nil
	}
	if l.Skip {
		return nil, cel.ErrSkip
	}
	return nil, fmt.Errorf("the state '%s' is not known", name)
}

// Authorizer implements admission.Lookup.
func (l *Lookup) Authorizer() authorizer.UnconditionalAuthorizer { return l.Authz }
