package cel

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// A Type says how a node is seen by the rules of a schema: which members it has
// under which names, and what its scalars are converted to. A nil *Type means
// plain JSON, which is how admission policies see every object. A Type is
// immutable.
//
// It does what common.UnstructuredToVal does with a schema, decided once.
type Type struct {
	kind     typeKind
	nullable bool

	members    map[string]*Type  // an object's, by name; nil where it is a map
	names      map[string]string // from the names that expressions use, where they differ
	additional *Type             // of a map's members; nil: they cannot be seen
	items      *Type             // of a list

	// schema is kept for lists that Kubernetes compares without order.
	schema *structuralschema.Structural
}

type typeKind uint8

const (
	kindInvalid typeKind = iota // no type that rules can see
	kindObject                  // has members or is a map
	kindList
	kindUnorderedList // x-kubernetes-list-type set or map
	kindString
	kindDuration
	kindDate
	kindDateTime
	kindBytes
	kindNumber
	kindInteger
	kindBool
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
		t.kind = kindIntOrString
		return t
	}
	switch s.Type {
	case "object":
		t.kind = kindObject
		t.setMembers(s)
	case "array":
		t.setItems(s)
	case "string":
		t.kind = stringKind(s)
	case "number":
		t.kind = kindNumber
	case "integer":
		t.kind = kindInteger
	case "boolean":
		t.kind = kindBool
	default:
		if s.XPreserveUnknownFields {
			t.kind = kindPreserved
		}
	}
	return t
}

func stringKind(s *structuralschema.Structural) typeKind {
	if s.ValueValidation == nil {
		return kindString
	}
	switch s.ValueValidation.Format {
	case "duration":
		return kindDuration
	case "date":
		return kindDate
	case "date-time":
		return kindDateTime
	case "byte":
		return kindBytes
	}
	return kindString
}

func (t *Type) setMembers(s *structuralschema.Structural) {
	if s.Properties == nil {
		if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
			t.additional = NewType(s.AdditionalProperties.Structural, false)
		}
		return
	}
	t.members = make(map[string]*Type, len(s.Properties))
	for name, property := range s.Properties {
		t.members[name] = NewType(&property, false)
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
	t.items = NewType(s.Items, false)
	t.kind = kindList
	if s.XListType != nil && (*s.XListType == "set" || *s.XListType == "map") {
		t.kind = kindUnorderedList
		t.schema = s
	}
}

// unescape is the JSON name of a member that an expression names; false when it cannot be one.
func (t *Type) unescape(name string) (string, bool) {
	if _, ok := t.members[name]; ok && !mayBeEscaped(name) {
		return name, true
	}
	if plain, ok := t.names[name]; ok {
		return plain, true
	}
	return apiservercel.Unescape(name)
}

// mayBeEscaped tells whether the name has two underscores in a row, without which unescaping changes nothing.
func mayBeEscaped(name string) bool {
	for i := 1; i < len(name); i++ {
		if name[i] == '_' && name[i-1] == '_' {
			return true
		}
	}
	return false
}

// member is the type of a member by its JSON name; false when rules cannot see it.
func (t *Type) member(name string) (*Type, bool) {
	if t.members != nil {
		m, ok := t.members[name]
		return m, ok
	}
	return t.additional, t.additional != nil
}

// kubernetes is the schema as Kubernetes' own values want it.
func (t *Type) kubernetes() common.Schema { return &model.Structural{Structural: t.schema} }
