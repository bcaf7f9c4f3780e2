package cel

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

// madeTypes resolves the types of patches as Kubernetes does without a schema: Object, Object.spec and so on with fields
// of any name, and JSONPatch. Kubernetes' own objects cannot be written as JSON without decoding all that is in them.
type madeTypes struct{}

// Resolve implements common.TypeResolver.
func (madeTypes) Resolve(name string) (common.ResolvedType, bool) {
	switch {
	case name == mutation.JSONPatchTypeName:
		return &mutation.JSONPatchType{}, true
	case name == mutation.ObjectTypeName, strings.HasPrefix(name, mutation.ObjectTypeName+"."):
		return &madeType{types.NewObjectType(name)}, true
	}
	return nil, false
}

// madeType is the type of an object that an expression makes.
type madeType struct{ of *types.Type }

// HasTrait implements ref.Type.
func (t *madeType) HasTrait(trait int) bool { return t.of.HasTrait(trait) }

// TypeName implements ref.Type.
func (t *madeType) TypeName() string { return t.of.TypeName() }

// Type implements common.ResolvedType.
func (t *madeType) Type() *types.Type { return t.of }

// FieldNames implements common.ResolvedType: there may be any.
func (t *madeType) FieldNames() ([]string, bool) { return nil, true }

// Field implements common.ResolvedType. A field that is not set reads as null.
func (t *madeType) Field(name string) (*types.FieldType, bool) {
	return &types.FieldType{
		Type: types.DynType,
		IsSet: func(target any) bool {
			m, ok := target.(*made)
			return ok && m.field(name) != nil
		},
		GetFrom: func(target any) (any, error) {
			m, ok := target.(*made)
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
func (t *madeType) Val(fields map[string]ref.Val) ref.Val {
	m := &made{typ: t.of, names: slices.Sorted(maps.Keys(fields))}
	for _, name := range m.names {
		m.vals = append(m.vals, fields[name])
	}
	return m
}

// made is an object that an expression makes.
type made struct {
	typ   *types.Type
	names []string // sorted
	vals  []ref.Val
}

var _ traits.Zeroer = (*made)(nil)

// field is the value of a field, nil if it is not set.
func (m *made) field(name string) ref.Val {
	if i, ok := slices.BinarySearch(m.names, name); ok {
		return m.vals[i]
	}
	return nil
}

// IsZeroValue implements traits.Zeroer.
func (m *made) IsZeroValue() bool { return len(m.names) == 0 }

// Equal implements ref.Val.
func (m *made) Equal(other ref.Val) ref.Val {
	o, ok := other.(*made)
	if !ok || m.typ.TypeName() != o.typ.TypeName() || !slices.Equal(m.names, o.names) {
		return types.False
	}
	for i, v := range m.vals {
		if types.Equal(v, o.vals[i]) != types.True {
			return types.False
		}
	}
	return types.True
}

// Type implements ref.Val.
func (m *made) Type() ref.Type { return m.typ }

// Value implements ref.Val: the object itself, whose fields the type reads.
func (m *made) Value() any { return m }

// ConvertToType implements ref.Val.
func (m *made) ConvertToType(t ref.Type) ref.Val {
	switch {
	case t.TypeName() == m.typ.TypeName():
		return m
	case t == types.TypeType:
		return types.NewTypeTypeWithParam(m.typ)
	}
	return types.NewErr("unsupported conversion into %v", t)
}

// ConvertToNative implements ref.Val.
func (m *made) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("unable to convert to %v", t)
}

// checkNames holds the names of the types of the objects in a value that goes into a patch to the names of the fields that
// they are in: an Object.spec.wrong may not be the value of spec.selector.
func checkNames(v ref.Val) error {
	var c nameCheck
	if m, ok := v.(*made); ok {
		c.value(m, []string{m.typ.TypeName()})
	}
	return errors.Join(c.found...)
}

type nameCheck struct{ found []error }

// value looks, like Kubernetes, into lists and maps that the expression wrote out, and through no others.
func (c *nameCheck) value(v ref.Val, path []string) {
	switch v := v.(type) {
	case *made:
		if want := strings.Join(path, "."); want != v.typ.TypeName() {
			c.found = append(c.found, fmt.Errorf("unexpected type name %q, expected %q, which matches field name path from root Object type", v.typ.TypeName(), want))
		}
		for i, name := range v.names {
			c.value(v.vals[i], append(path, name))
		}
	case *object, *list, *documents, *record, types.String:
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
