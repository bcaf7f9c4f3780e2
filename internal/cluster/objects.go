package cluster

import (
	"fmt"
	"log/slog"

	"k8s.io/apimachinery/pkg/runtime/schema"
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
				Name: path, Path: path, Query: k.Query, Kind: schema.GroupVersionKind{Group: k.Group, Version: k.Versions[0], Kind: k.Kind},
				IsOptional: k.IsOptional, MaxObjects: maxObjects, MaxBytes: maxBytes,
			}})
		}
	}
	return all
}

// snapshot returns all objects, once all collections have been read.
func (c *collections) snapshot(states *state.Manager) (*ingress.Objects, error) {
	all := &ingress.Objects{}
	for i := range c.sources {
		s := &c.sources[i]
		nodes, known := states.Known(&s.Source)
		if !known {
			return nil, fmt.Errorf("the collection '%s' of the cluster has not been read yet", s.Path)
		}
		read := make(map[document.Node]any, len(nodes))
		for _, n := range nodes {
			o, was := s.read[n]
			if !was {
				o = c.decode(s.kind, n)
			}
			if read[n] = o; o != nil {
				s.kind.Add(all, o)
			}
		}
		s.read = read
	}
	return all, nil
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
