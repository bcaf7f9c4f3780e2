package policies

import (
	"cmp"
	"net/url"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/policies/natives"
)

// StateSource is a collection of a backend that policies read. Its definition, crds/statesources.yaml, says what the
// fields mean and may hold.
type StateSource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              StateSourceSpec `json:"spec"`
}

// StateSourceSpec says what is read, from which backend, how, and what happens while it is not
// known.
type StateSourceSpec struct {
	Upstream            string               `json:"upstream"`
	Resource            *StateSourceResource `json:"resource"`
	Path                string               `json:"path"`
	Items               string               `json:"items"`
	LabelSelector       string               `json:"labelSelector"`
	FieldSelector       string               `json:"fieldSelector"`
	Mode                string               `json:"mode"`
	PeriodSeconds       int32                `json:"periodSeconds"`
	TTLSeconds          *int32               `json:"ttlSeconds"`
	WhenMissing         string               `json:"whenMissing"`
	MaxStalenessSeconds *int32               `json:"maxStalenessSeconds"`
	MaxObjects          int32                `json:"maxObjects"`
	MaxBytes            int64                `json:"maxBytes"`
}

// StateSourceResource names a resource of an API that keeps Kubernetes' conventions.
type StateSourceResource struct {
	APIVersion string `json:"apiVersion"`
	Resource   string `json:"resource"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
}

const (
	defaultTTLSeconds          = 10
	defaultMaxStalenessSeconds = 300
)

// stateSources are the StateSources of the files.
type stateSources struct{ all []loadedSource }

// loadedSource is a StateSource and its source.
type loadedSource struct {
	from *manifest.Object
	spec *StateSourceSpec
}

func (a *stateSources) take(l *loader, o *manifest.Object, s *StateSource) {
	if !cel.StateName(s.Name) {
		l.At(o, Error, "metadata.name", "must be a name that expressions can read as `state.NAME`: letters, digits, '-', '.', '_' and '/', not beginning with a digit")
	}
	if _, err := labels.Parse(s.Spec.LabelSelector); err != nil {
		l.At(o, Error, "spec.labelSelector", "must be a label selector: %v", err)
	}
	if _, err := fields.ParseSelector(s.Spec.FieldSelector); err != nil {
		l.At(o, Error, "spec.fieldSelector", "must be a field selector: %v", err)
	}
	l.useUpstream(o, "spec.upstream", s.Spec.Upstream)
	a.all = append(a.all, loadedSource{o, &s.Spec})
}

// stateNames are the names of the StateSources, for the compilers of expressions.
func (l *loader) stateNames() []string {
	sources := part[stateSources](l).all
	names := make([]string, len(sources))
	for i, s := range sources {
		names[i] = s.from.Name
	}
	slices.Sort(names)
	return names
}

// connect implements connecter. The set describes the resources of the sources.
func (a *stateSources) connect(l *loader) {
	set := l.set
	for _, loaded := range a.all {
		spec := loaded.spec
		s := &state.Source{
			Name:         loaded.from.Name,
			Upstream:     spec.Upstream,
			Path:         spec.Path,
			Items:        fieldPath(spec.Items),
			Period:       time.Duration(spec.PeriodSeconds) * time.Second,
			TTL:          seconds(spec.TTLSeconds, defaultTTLSeconds),
			MaxStaleness: seconds(spec.MaxStalenessSeconds, max(defaultMaxStalenessSeconds, 3*spec.PeriodSeconds)),
			MaxObjects:   int(spec.MaxObjects),
			MaxBytes:     spec.MaxBytes,
			Skip:         spec.WhenMissing == "Skip",
		}
		switch spec.Mode {
		case "Poll":
			s.Mode = state.Poll
		case "OnDemand":
			s.Mode = state.OnDemand
		}
		s.Query = selectors(spec)
		if spec.Resource != nil {
			if set.locate(s, spec.Resource); s.Path == "" {
				l.At(loaded.from, Error, "spec.resource", "must be a resource with a collection: the policy files describe no path that lists '%s'", spec.Resource.Resource)
			}
		} else {
			set.recognize(s)
		}
		set.states = append(set.states, s)
	}
	slices.SortFunc(set.states, func(a, b *state.Source) int { return cmp.Compare(a.Name, b.Name) })
}

func seconds(n *int32, otherwise int32) time.Duration {
	if n != nil {
		otherwise = *n
	}
	return time.Duration(otherwise) * time.Second
}

// selectors are the parameters that narrow a list.
func selectors(spec *StateSourceSpec) string {
	query := url.Values{}
	if spec.LabelSelector != "" {
		query.Set("labelSelector", spec.LabelSelector)
	}
	if spec.FieldSelector != "" {
		query.Set("fieldSelector", spec.FieldSelector)
	}
	return query.Encode()
}

// locate finds the path and the kind of a resource.
func (s *Set) locate(source *state.Source, r *StateSourceResource) {
	version, _ := schema.ParseGroupVersion(r.APIVersion) // its form was checked
	source.Kind, source.Namespace = version.WithKind(r.Kind), r.Namespace
	at := kubernetesPaths(version, r.Resource, r.Namespace != "")
	for _, known := range s.registry.Resources() {
		if hasObjectPaths(known) && known.GroupVersion() == version && known.Names.Plural == r.Resource {
			source.Kind.Kind, at = known.Names.Kind, pathsOf(known)
		}
	}
	for kind, n := range natives.Kinds {
		if kind.Group == version.Group && n.Plural == r.Resource {
			source.Kind.Kind = kind.Kind
		}
	}
	source.Items = at.items
	if source.Path = at.all; r.Namespace != "" {
		source.Path = expand(at.collection, r.Namespace, "")
	}
	source.Kind = kindOrNone(source.Kind)
}

// recognize finds out whether a path belongs to a resource that the files describe.
func (s *Set) recognize(source *state.Source) {
	for _, known := range s.registry.Resources() {
		at := pathsOf(known)
		if !hasObjectPaths(known) || source.Path != at.all && source.Path != at.collection {
			continue
		}
		if source.Items == nil {
			source.Items = at.items
		}
		if !at.bare {
			source.Kind = known.GroupVersionKind()
		}
		return
	}
}

func kindOrNone(kind schema.GroupVersionKind) schema.GroupVersionKind {
	if kind.Kind == "" {
		return schema.GroupVersionKind{}
	}
	return kind
}

// States are the collections that policies read.
func (s *Set) States() []*state.Source { return s.states }
