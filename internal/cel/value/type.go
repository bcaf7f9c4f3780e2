package value

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/admission-gateway/gateway/internal/document"
)

// A Type says how a node is seen by the rules of a schema: which members it has
// under which names, and what its scalars are converted to. A nil *Type means
// plain JSON, which is how admission policies see every object. A Type is
// immutable.
//
// It does what common.UnstructuredToVal does with a schema, decided once.
type Type struct {
	Kind     TypeKind
	nullable bool

	Members    map[string]*Type  // an object's, by name; nil if it is a map
	names      map[string]string // from the names that expressions use, if they differ
	Additional *Type             // of a map's members; nil: they cannot be seen
	Items      *Type             // of a list

	// schema is kept for lists that Kubernetes compares without order.
	schema *structuralschema.Structural
}

type TypeKind uint8

const (
	KindInvalid TypeKind = iota // no type that rules can see
	KindObject                  // has members or is a map
	KindList
	KindUnorderedList // x-kubernetes-list-type set or map
	KindString
	KindDuration
	kindDate
	KindDateTime
	KindBytes
	KindNumber
	KindInteger
	KindBool
	kindIntOrString
	kindPreserved // x-kubernetes-preserve-unknown-fields without a type: can only be compared
)

// NewType is how rules see values of the schema. resourceRoot is true for the
// root of a resource, whose kind, apiVersion, metadata.name and
// metadata.generateName rules can always read.
func NewType(s *structuralschema.Structural, resourceRoot bool) *Type {
	if resourceRoot || s.XEmbeddedResource {
		s = model.WithTypeAndObjectMeta(s)
	}
	t := &Type{nullable: s.Nullable}
	if s.XIntOrString {
		t.Kind = kindIntOrString
		return t
	}
	switch s.Type {
	case "object":
		t.Kind = KindObject
		t.setMembers(s)
	case "array":
		t.setItems(s)
	case "string":
		t.Kind = StringKind(s)
	case "number":
		t.Kind = KindNumber
	case "integer":
		t.Kind = KindInteger
	case "boolean":
		t.Kind = KindBool
	default:
		if s.XPreserveUnknownFields {
			t.Kind = kindPreserved
		}
	}
	return t
}

func StringKind(s *structuralschema.Structural) TypeKind {
	if s.ValueValidation == nil {
		return KindString
	}
	switch s.ValueValidation.Format {
	case "duration":
		return KindDuration
	case "date":
		return kindDate
	case "date-time":
		return KindDateTime
	case "byte":
		return KindBytes
	}
	return KindString
}

func (t *Type) setMembers(s *structuralschema.Structural) {
	if s.Properties == nil {
		if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
			t.Additional = NewType(s.AdditionalProperties.Structural, false)
		}
		return
	}
	t.Members = make(map[string]*Type, len(s.Properties))
	for name, property := range s.Properties {
		t.Members[name] = NewType(&property, false)
		if escaped, ok := apiservercel.Escape(name); ok && escaped != name {
			if t.names == nil {
				t.names = make(map[string]string)
			}
			t.names[escaped] = name
		}
	}
}

func (t *Type) setItems(s *structuralschema.Structural) {
	if s.Items == nil {
		return
	}
	t.Items = NewType(s.Items, false)
	t.Kind = KindList
	if s.XListType != nil && (*s.XListType == "set" || *s.XListType == "map") {
		t.Kind = KindUnorderedList
		t.schema = s
	}
}

// Unescape is the JSON name of a member that an expression names; false when it cannot be one.
func (t *Type) Unescape(name string) (string, bool) {
	if _, ok := t.Members[name]; ok && !MayBeEscaped(name) {
		return name, true
	}
	if plain, ok := t.names[name]; ok {
		return plain, true
	}
	return apiservercel.Unescape(name)
}

// MayBeEscaped reports whether the name has two underscores in a row, without which unescaping
// changes nothing.
func MayBeEscaped(name string) bool {
	for i := 1; i < len(name); i++ {
		if name[i] == '_' && name[i-1] == '_' {
			return true
		}
	}
	return false
}

// Member is the type of a member by its JSON name; false when rules cannot see it.
func (t *Type) Member(name string) (*Type, bool) {
	if t.Members != nil {
		m, ok := t.Members[name]
		return m, ok
	}
	return t.Additional, t.Additional != nil
}

// kubernetes is the schema as Kubernetes' own values want it.
func (t *Type) kubernetes() common.Schema { return &model.Structural{Structural: t.schema} }

// Includes reports whether all values of the kind are values of the type.
func (t *Type) Includes(kind document.Kind) bool {
	if t == nil {
		return kind != document.Number
	}
	switch t.Kind {
	case KindObject:
		return kind == document.Object
	case KindList, KindUnorderedList:
		return kind == document.Array
	case KindString:
		return kind == document.String
	case KindBool:
		return kind == document.Bool
	}
	return false
}
