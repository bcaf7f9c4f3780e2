package cluster

import (
	"fmt"
	"log/slog"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/ingress"
	"github.com/admission-gateway/gateway/internal/state"
)

// What is kept of a kind at most.
const (
	maxObjects = 200_000
	maxBytes   = 1 << 30
)

// collections are all collections that routes are made of.
type collections struct {
	sources []source
	log     *slog.Logger
}

// A source is a collection of a kind, with its objects in Go's types.
type source struct {
	state.Source
	kind *ingress.Kind
	// read are the objects as they were decoded; nil for one that cannot be.
	read map[document.Node]any
	// stamps say what of the objects the routes depend on, by namespace and name, for a kind whose status is written.
	stamps map[types.NamespacedName]stamp
}

// A stamp changes whenever something but the status of an object does that routes depend on.
type stamp struct {
	uid        types.UID
	generation int64
	// class is that of an Ingress in its older form, which no generation counts.
	class string
}

func stampOf(o metav1.Object) stamp {
	return stamp{o.GetUID(), o.GetGeneration(), o.GetAnnotations()["kubernetes.io/ingress.class"]}
}

// sourcesOf are the collections of all kinds in namespaces; none are all.
func sourcesOf(namespaces []string) []source {
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	var all []source
	for i := range ingress.Kinds {
		k := &ingress.Kinds[i]
		for j, n := range namespaces {
			if k.IsClusterScoped && j > 0 {
				break
			}
			path := k.Path(n)
			all = append(all, source{kind: k, Source: state.Source{
				Name: path, Path: path, Query: k.Query,
				Kind:       schema.GroupVersionKind{Group: k.Group, Version: k.Versions[0], Kind: k.Kind},
				IsOptional: k.IsOptional, MaxObjects: maxObjects, MaxBytes: maxBytes,
			}})
		}
	}
	return all
}

// snapshot returns all objects, once all collections have been read, and whether more than statuses has changed since
// the last one.
func (c *collections) snapshot(states *state.Manager) (all *ingress.Objects, isNew bool, err error) {
	all = &ingress.Objects{}
	for i := range c.sources {
		s := &c.sources[i]
		nodes, known := states.Known(&s.Source)
		if !known {
			return nil, false, fmt.Errorf("the collection '%s' of the cluster has not been read yet", s.Path)
		}
		isNew = s.take(c, nodes, all) || isNew
	}
	return all, isNew, nil
}

// take adds the objects of a collection to a snapshot, and reports whether more than their statuses has changed.
func (s *source) take(c *collections, nodes []document.Node, all *ingress.Objects) (isNew bool) {
	isNew = s.read == nil || len(nodes) != len(s.read)
	read := make(map[document.Node]any, len(nodes))
	if isNew {
		s.stamps = make(map[types.NamespacedName]stamp, len(nodes))
	}
	for _, n := range nodes {
		o, was := s.read[n]
		if !was {
			o = c.decode(s.kind, n)
		}
		if isNew || !was {
			isNew = s.note(o) || isNew
		}
		if read[n] = o; o != nil {
			s.kind.Add(all, o)
		}
	}
	s.read = read
	return isNew
}

// note notes the stamp of an object that was read, and reports whether it is another one than before.
func (s *source) note(o any) bool {
	of, is := o.(metav1.Object)
	if !is || !s.kind.HasStatus {
		return true
	}
	name := types.NamespacedName{Namespace: of.GetNamespace(), Name: of.GetName()}
	now := stampOf(of)
	if s.stamps[name] == now {
		return false
	}
	s.stamps[name] = now
	return true
}

// decode returns an object in the type of its kind; nil if it cannot be read.
func (c *collections) decode(k *ingress.Kind, n document.Node) any {
	o := k.New()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(n.Raw(), o); err != nil {
		c.log.Warn("an object of the cluster cannot be read", "kind", k.Kind, "cause", err)
		return nil
	}
	return o
}
