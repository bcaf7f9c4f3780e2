package cel

import (
	"fmt"
	"strconv"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/mutation"

	"github.com/admission-gateway/gateway/internal/document"
)

// EvalPatch evaluates an expression of a [PatchCompiler] and appends the apply configuration or JSON patch that it makes
// to dst. The error is an [*Error].
//
// Kubernetes turns what the expression makes into Go values, and refuses what these cannot hold: in objects null, types
// that JSON has not, and lists and maps written within others. So is it here, or a policy would do what it fails at there.
func (p *Program) EvalPatch(f *Frame, v *Vars, dst []byte) (json []byte, err error) {
	f.begin(p, v)
	defer f.finish(p, &err)
	out, failure := p.made(f)
	if failure != nil {
		return dst, failure
	}
	var problem string
	switch of := out.(type) {
	case *made:
		json, problem = f.appendConfiguration(dst, of)
	case traits.Lister:
		json, problem = f.appendOperations(dst, of)
	default:
		problem = "type mismatch: a patch must not be of type " + out.Type().TypeName()
	}
	if problem != "" {
		return dst, &Error{Cause: Misfit, Expression: p.source, Detail: problem}
	}
	return json, nil
}

func (f *Frame) appendConfiguration(dst []byte, m *made) (json []byte, problem string) {
	if err := checkNames(m); err != nil {
		return dst, "type mismatch: " + err.Error()
	}
	if dst, problem = f.appendMade(dst, m, true); problem != "" {
		problem = "error applying patch: failed to convert patch object to typed object: " + problem
	}
	return dst, problem
}

func (f *Frame) appendOperations(dst []byte, l traits.Lister) (json []byte, problem string) {
	dst = append(dst, '[')
	for i, it := 0, l.Iterator(); it.HasNext() == types.True; i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		op, ok := it.Next().(*mutation.JSONPatchVal)
		if !ok {
			return dst, "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch"
		}
		if dst, problem = f.appendOperation(dst, op); problem != "" {
			return dst, problem
		}
	}
	return append(dst, ']'), ""
}

// appendOperation writes an operation of a JSON patch.
func (f *Frame) appendOperation(dst []byte, p *mutation.JSONPatchVal) (json []byte, problem string) {
	f.charge(1)
	dst = f.appendText(append(dst, `{"op":`...), p.Op)
	dst = f.appendText(append(dst, `,"path":`...), p.Path)
	if p.From != "" {
		dst = f.appendText(append(dst, `,"from":`...), p.From)
	}
	if p.Val == nil {
		return append(dst, '}'), ""
	}
	if err := checkNames(p.Val); err != nil {
		return dst, "type mismatch: " + err.Error()
	}
	if dst, problem = f.appendJSON(append(dst, `,"value":`...), p.Val); problem != "" {
		return dst, "JSONPath valueExpression evaluated to a type that could not marshal to JSON: " + problem
	}
	return append(dst, '}'), ""
}

// appendMade writes an object that the expression made, with its fields in the order of their names. One that is merged
// may hold less than one that is the value of an operation of a JSON patch.
func (f *Frame) appendMade(dst []byte, m *made, merged bool) (json []byte, problem string) {
	dst = append(dst, '{')
	for i, name := range m.names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(f.appendText(dst, name), ':')
		if dst, problem = f.appendField(dst, m.vals[i], merged); problem != "" {
			return dst, "." + name + problem
		}
	}
	return append(dst, '}'), ""
}

// appendField writes the value of a field. Problems begin with where in it they are.
func (f *Frame) appendField(dst []byte, v ref.Val, merged bool) (json []byte, problem string) {
	f.charge(1)
	switch v := v.(type) {
	case *object:
		return f.appendWithoutNull(dst, v.node)
	case *list:
		return f.appendWithoutNull(dst, v.node)
	case types.String, *made:
		return f.appendItem(dst, v, merged)
	}
	item := f.appendItem
	if o, ok := v.(*types.Optional); ok && o.HasValue() {
		v = o.GetValue()
	} else if !spelledOut(v) {
		item = f.appendField
	}
	switch of := v.(type) {
	case traits.Lister:
		return appendItems(dst, of, merged, item)
	case traits.Mapper:
		return f.appendMembers(dst, of, merged, item)
	}
	return f.appendItem(dst, v, merged)
}

// appendItem writes a value in a list or map that the expression wrote.
func (f *Frame) appendItem(dst []byte, v ref.Val, merged bool) (json []byte, problem string) {
	f.charge(1)
	switch v := v.(type) {
	case types.Null:
		return dst, ": must not be null"
	case types.Uint, types.Bytes:
		if !merged {
			return f.appendJSON(dst, v)
		}
	case types.Bool, types.Int, types.Double, types.String, *object, *list, *preserved, *documents, *record:
		dst, problem = f.appendJSON(dst, v)
		if problem != "" {
			problem = ": " + problem
		}
		return dst, problem
	case *types.Type:
		return f.appendText(dst, v.TypeName()), ""
	case *made:
		return f.appendMade(dst, v, merged)
	case *types.Optional:
		if !v.HasValue() {
			return append(dst, "null"...), ""
		}
		return f.appendItem(dst, v.GetValue(), merged)
	case traits.Lister:
		if !spelledOut(v) {
			return appendItems(dst, v, merged, f.appendItem)
		}
		return dst, ": must not be a list that is written within a list or map"
	case traits.Mapper:
		return dst, ": must not be a map that is written within a list or map"
	}
	return dst, fmt.Sprintf(": must not be of type %s", v.Type().TypeName())
}

// spelledOut tells whether the expression wrote a list or map itself: not one that comes from a document, nor one put
// together of two.
func spelledOut(v ref.Val) bool {
	switch v.(type) {
	case traits.Lister, traits.Mapper:
	default:
		return false
	}
	switch v.(type) {
	case *object, *list, *preserved, *documents, *record:
		return false
	}
	switch v.Value().(type) {
	case []ref.Val, map[ref.Val]ref.Val:
		return true
	}
	return false
}

// appender writes a value that is part of a made object.
type appender = func(dst []byte, v ref.Val, merged bool) (json []byte, problem string)

func appendItems(dst []byte, l traits.Lister, merged bool, item appender) (json []byte, problem string) {
	dst = append(dst, '[')
	for i, it := 0, l.Iterator(); it.HasNext() == types.True; i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, problem = item(dst, it.Next(), merged); problem != "" {
			return dst, "[" + strconv.Itoa(i) + "]" + problem
		}
	}
	return append(dst, ']'), ""
}

func (f *Frame) appendMembers(dst []byte, m traits.Mapper, merged bool, item appender) (json []byte, problem string) {
	keys, problem := sortedKeys(m)
	if problem != "" {
		return dst, ": " + problem
	}
	dst = append(dst, '{')
	for i, key := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(f.appendText(dst, key), ':')
		if dst, problem = item(dst, m.Get(types.String(key)), merged); problem != "" {
			return dst, "." + key + problem
		}
	}
	return append(dst, '}'), ""
}

// appendWithoutNull writes a value of a document, which as a field may hold no null at any depth.
func (f *Frame) appendWithoutNull(dst []byte, n document.Node) (json []byte, problem string) {
	if problem = null(n); problem != "" {
		return dst, problem
	}
	return f.appendNode(dst, n), ""
}

// null tells where a null is in a value.
func null(n document.Node) (problem string) {
	if n.Kind() == document.Null {
		return ": must not be null"
	}
	isArray := n.Kind() == document.Array
	i := 0
	for c := n.Children(); c.Valid(); c.Next() {
		if problem := null(c.Node()); problem != "" {
			if isArray {
				return "[" + strconv.Itoa(i) + "]" + problem
			}
			return "." + c.Node().Key() + problem
		}
		i++
	}
	return ""
}
