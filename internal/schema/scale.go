package schema

import (
	"math"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
)

// scale is what the scale subresource demands of the object that it reads.
type scale struct {
	spec, status scalePath  // numbers of replicas
	selector     *scalePath // a string
}

// scalePath is a simple JSON path, '.spec.replicas'.
type scalePath struct {
	names []document.Name
}

func newScale(from *apiextensions.CustomResourceSubresourceScale) *scale {
	if from == nil {
		return nil
	}
	s := &scale{spec: newScalePath(from.SpecReplicasPath), status: newScalePath(from.StatusReplicasPath)}
	if from.LabelSelectorPath != nil && *from.LabelSelectorPath != "" {
		p := newScalePath(*from.LabelSelectorPath)
		s.selector = &p
	}
	return s
}

func newScalePath(path string) scalePath {
	var p scalePath
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "."), ".") {
		p.names = append(p.names, document.NewName(name))
	}
	return p
}

// find is the value at the path. Where something on the way there can have no members, that is a failure of the path too.
func (w *validator) find(p *scalePath, object document.Node) (document.Node, bool) {
	at := object
	for i, name := range p.names {
		switch at.Kind() {
		case document.Object:
		case document.Null:
			return document.Node{}, false
		default:
			if !w.fails() {
				parent := scalePath{names: p.names[:i]}
				w.add(at, field.Invalid(p.path(), omitted, "`"+parent.path().String()+"` must be an object"))
			}
			return document.Node{}, false
		}
		next, found := at.Lookup(name)
		if !found {
			return document.Node{}, false
		}
		at = next
	}
	return at, true
}

func (p *scalePath) path() *field.Path {
	var path *field.Path
	for _, name := range p.names {
		path = path.Child(name.String())
	}
	return path
}

// replicas checks that a number of replicas is an int32 of at least 0.
func (w *validator) replicas(p *scalePath, object document.Node) {
	v, found := w.find(p, object)
	if !found {
		return
	}
	n := numberOf(v)
	switch {
	case v.Kind() != document.Number || !n.integer:
		if !w.fails() {
			w.add(v, typeFailureOfScale(p.path(), v, "integer"))
		}
	case n.i < 0:
		if !w.fails() {
			w.add(v, minimumFailure(p.path(), v, 0, false))
		}
	case n.i > math.MaxInt32:
		if !w.fails() {
			w.add(v, maximumFailure(p.path(), v, math.MaxInt32, false))
		}
	}
}

// scaled checks what the scale subresource reads of the status.
func (w *validator) scaled(s *scale, object document.Node) {
	w.replicas(&s.status, object)
	if s.selector == nil {
		return
	}
	if v, found := w.find(s.selector, object); found && v.Kind() != document.String && !w.fails() {
		w.add(v, typeFailureOfScale(s.selector.path(), v, "string"))
	}
}

// typeFailureOfScale does not keep CEL rules from being checked, other than what a schema says of a type.
func typeFailureOfScale(path *field.Path, v document.Node, typeName string) *field.Error {
	err := typeFailure(path, v, typeName)
	err.Type = field.ErrorTypeInvalid
	return err
}
