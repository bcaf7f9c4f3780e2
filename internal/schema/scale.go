package schema

import (
	"math"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/compare"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// scale holds the demands of the scale subresource on the object that it reads.
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

// find is the value at the path. If something on the way there can have no members, that is a
// failure of the path too.
func (p *scalePath) find(w *validator, object document.Node) (document.Node, bool) {
	at := object
	for i, name := range p.names {
		switch at.Kind() {
		case document.Object:
		case document.Null:
			return document.Node{}, false
		default:
			if !w.fails() {
				parent := scalePath{names: p.names[:i]}
				w.add(at, field.Invalid(p.path(), wording.Omitted, "`"+parent.path().String()+"` must be an object"))
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

// checkReplicas checks that the number of replicas at the path is an int32 of at least 0.
func (p *scalePath) checkReplicas(w *validator, object document.Node) {
	v, found := p.find(w, object)
	if !found {
		return
	}
	n := compare.NumberOf(v)
	switch {
	case v.Kind() != document.Number || !n.IsInt:
		if !w.fails() {
			w.add(v, typeFailureOfScale(p.path(), v, "integer"))
		}
	case n.Int < 0:
		if !w.fails() {
			w.add(v, wording.Minimum(p.path(), v, 0, false))
		}
	case n.Int > math.MaxInt32:
		if !w.fails() {
			w.add(v, wording.Maximum(p.path(), v, math.MaxInt32, false))
		}
	}
}

// checkStatus checks what the scale subresource reads of the status.
func (s *scale) checkStatus(w *validator, object document.Node) {
	s.status.checkReplicas(w, object)
	if s.selector == nil {
		return
	}
	if v, found := s.selector.find(w, object); found && v.Kind() != document.String && !w.fails() {
		w.add(v, typeFailureOfScale(s.selector.path(), v, "string"))
	}
}

// typeFailureOfScale does not keep CEL rules from being checked, other than what a schema says of a type.
func typeFailureOfScale(path *field.Path, v document.Node, typeName string) *field.Error {
	err := wording.Type(path, v, typeName)
	err.Type = field.ErrorTypeInvalid
	return err
}
