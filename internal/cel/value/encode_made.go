package value

import (
	"fmt"
	"strconv"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/mutation"

	"github.com/admission-gateway/gateway/internal/document"
)

func (f *Arena) AppendConfiguration(dst []byte, m *Made) (json []byte, problem string) {
	if err := checkNames(m); err != nil {
		return dst, "type mismatch: " + err.Error()
	}
	if dst, problem = f.appendMade(dst, m, true); problem != "" {
		problem = "error applying patch: failed to convert patch object to typed object: " + problem
	}
	return dst, problem
}

func (f *Arena) AppendOperations(dst []byte, l traits.Lister) (json []byte, problem string) {
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
func (f *Arena) appendOperation(dst []byte, p *mutation.JSONPatchVal) (json []byte, problem string) {
	f.Charge(1)
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
	if dst, problem = f.AppendJSON(append(dst, `,"value":`...), p.Val); problem != "" {
		return dst, "JSONPath valueExpression evaluated to a type that could not marshal to JSON: " + problem
	}
	return append(dst, '}'), ""
}

// appendMade writes an object that the expression made, with its fields in the order of their names. One that is merged
// may hold less than one that is the value of an operation of a JSON patch.
func (f *Arena) appendMade(dst []byte, m *Made, merged bool) (json []byte, problem string) {
	dst = append(dst, '{')
	for i, name := range m.Names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(f.appendText(dst, name), ':')
		if dst, problem = f.appendField(dst, m.Vals[i], merged); problem != "" {
			return dst, "." + name + problem
		}
	}
	return append(dst, '}'), ""
}

// appendField writes the value of a field. Problems begin with their path in it.
func (f *Arena) appendField(dst []byte, v ref.Val, merged bool) (json []byte, problem string) {
	f.Charge(1)
	switch v := v.(type) {
	case *Map:
		return f.appendWithoutNull(dst, v.Node)
	case *List:
		return f.appendWithoutNull(dst, v.Node)
	case types.String, *Made:
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
func (f *Arena) appendItem(dst []byte, v ref.Val, merged bool) (json []byte, problem string) {
	f.Charge(1)
	switch v := v.(type) {
	case types.Null:
		return dst, ": must not be null"
	case types.Uint, types.Bytes:
		if !merged {
			return f.AppendJSON(dst, v)
		}
	case types.Bool, types.Int, types.Double, types.String, *Map, *List, *preserved, *Documents, *Record:
		dst, problem = f.AppendJSON(dst, v)
		if problem != "" {
			problem = ": " + problem
		}
		return dst, problem
	case *types.Type:
		return f.appendText(dst, v.TypeName()), ""
	case *Made:
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

// spelledOut reports whether the expression wrote a list or map itself: not one that comes from a
// document, nor one put together of two.
func spelledOut(v ref.Val) bool {
	switch v.(type) {
	case traits.Lister, traits.Mapper:
	default:
		return false
	}
	switch v.(type) {
	case *Map, *List, *preserved, *Documents, *Record:
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

func (f *Arena) appendMembers(dst []byte, m traits.Mapper, merged bool, item appender) (json []byte, problem string) {
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
func (f *Arena) appendWithoutNull(dst []byte, n document.Node) (json []byte, problem string) {
	if problem = null(n); problem != "" {
		return dst, problem
	}
	return f.appendNode(dst, n), ""
}

// null finds the path of a null in a value.
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
