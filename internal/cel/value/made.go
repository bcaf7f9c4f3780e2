package value

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/mutation"
)

// MadeTypes resolves the types of patches as Kubernetes does without a schema: Object, Object.spec and so on with
// fields of any name, and JSONPatch. Kubernetes' own objects cannot be written as JSON without decoding all that is in
// them.
type MadeTypes struct{}

// Resolve implements common.TypeResolver.
func (MadeTypes) Resolve(name string) (common.ResolvedType, bool) {
	switch {
	case name == mutation.JSONPatchTypeName:
		return &mutation.JSONPatchType{}, true
	case name == mutation.ObjectTypeName, strings.HasPrefix(name, mutation.ObjectTypeName+"."):
		return &MadeType{types.NewObjectType(name)}, true
	}
	return nil, false
}

// MadeType is the type of an object that an expression makes.
type MadeType struct{ Of *types.Type }

// HasTrait implements ref.Type.
func (t *MadeType) HasTrait(trait int) bool { return t.Of.HasTrait(trait) }

// TypeName implements ref.Type.
func (t *MadeType) TypeName() string { return t.Of.TypeName() }

// Type implements common.ResolvedType.
func (t *MadeType) Type() *types.Type { return t.Of }

// FieldNames implements common.ResolvedType: there may be any.
func (t *MadeType) FieldNames() ([]string, bool) { return nil, true }

// Field implements common.ResolvedType. A field that is not set reads as null.
func (t *MadeType) Field(name string) (*types.FieldType, bool) {
	return &types.FieldType{
		Type: types.DynType,
		IsSet: func(target any) bool {
			m, ok := target.(*Made)
			return ok && m.field(name) != nil
		},
		GetFrom: func(target any) (any, error) {
			m, ok := target.(*Made)
			if !ok {
				return nil, fmt.Errorf("cannot get field %q", name)
			}
			if v := m.field(name); v != nil {
				return v, nil
			}
			return nil, nil
		},
	}, true
}

// Val implements common.ResolvedType.
func (t *MadeType) Val(fields map[string]ref.Val) ref.Val {
	m := &Made{Typ: t.Of, Names: slices.Sorted(maps.Keys(fields))}
	for _, name := range m.Names {
		m.Vals = append(m.Vals, fields[name])
	}
	return m
}

// Made is an object that an expression makes.
type Made struct {
	Typ   *types.Type
	Names []string // sorted
	Vals  []ref.Val
}

var _ traits.Zeroer = (*Made)(nil)

// field is the value of a field, nil if it is not set.
func (m *Made) field(name string) ref.Val {
	if i, ok := slices.BinarySearch(m.Names, name); ok {
		return m.Vals[i]
	}
	return nil
}

// IsZeroValue implements traits.Zeroer.
func (m *Made) IsZeroValue() bool { return len(m.Names) == 0 }

// Equal implements ref.Val.
func (m *Made) Equal(other ref.Val) ref.Val {
	o, ok := other.(*Made)
	if !ok || m.Typ.TypeName() != o.Typ.TypeName() || !slices.Equal(m.Names, o.Names) {
		return types.False
	}
	for i, v := range m.Vals {
		if types.Equal(v, o.Vals[i]) != types.True {
			return types.False
		}
	}
	return types.True
}

// Type implements ref.Val.
func (m *Made) Type() ref.Type { return m.Typ }

// Value implements ref.Val: the object itself, whose fields the type reads.
func (m *Made) Value() any { return m }

// ConvertToType implements ref.Val.
func (m *Made) ConvertToType(t ref.Type) ref.Val {
	switch {
	case t.TypeName() == m.Typ.TypeName():
		return m
	case t == types.TypeType:
		return types.NewTypeTypeWithParam(m.Typ)
	}
	return types.NewErr("unsupported conversion into %v", t)
}

// ConvertToNative implements ref.Val.
func (m *Made) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("unable to convert to %v", t)
}

// checkNames holds the names of the types of the objects in a value that goes into a patch to the names of the fields
// that they are in: an Object.spec.wrong may not be the value of spec.selector.
func checkNames(v ref.Val) error {
	var c nameCheck
	if m, ok := v.(*Made); ok {
		c.value(m, []string{m.Typ.TypeName()})
	}
	return errors.Join(c.found...)
}

type nameCheck struct{ found []error }

// value looks, like Kubernetes, into lists and maps that the expression wrote out, and through no others.
func (c *nameCheck) value(v ref.Val, path []string) {
	switch v := v.(type) {
	case *Made:
		if want := strings.Join(path, "."); want != v.Typ.TypeName() {
			c.found = append(c.found, fmt.Errorf("unexpected type name %q, expected %q, which matches field name path from root Object type", v.Typ.TypeName(), want))
		}
		for i, name := range v.Names {
			c.value(v.Vals[i], append(path, name))
		}
	case *Map, *List, *Documents, *Record, types.String:
	default:
		switch of := v.Value().(type) {
		case []ref.Val:
			for _, item := range of {
				c.value(item, path)
			}
		case map[ref.Val]ref.Val:
			for _, item := range of {
				c.value(item, path)
			}
		}
	}
}

// DropAbsent leaves out the fields without a value.
func (m *Made) DropAbsent() {
	var names []string
	var vals []ref.Val
	for i, v := range m.Vals {
		if v != nil {
			names, vals = append(names, m.Names[i]), append(vals, v)
		}
	}
	m.Names, m.Vals = names, vals
}
