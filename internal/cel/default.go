package cel

import (
	"fmt"

	celgo "github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/admission-gateway/gateway/internal/cel/plan"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// objectTypeName is the name of the type of object in defaults; see selfTypeName.
const objectTypeName = "@object"

// A DefaultCompiler compiles the defaults of a schema's fields that are computed from the object that the field is in.
// Expressions read two variables, both typed by the schema: self, the object that has the field, and object, the whole.
type DefaultCompiler struct {
	schema *apiservercel.DeclType
	object *value.Type
}

// NewDefaultCompiler begins with the schema of the whole object. resource is set if kind,
// apiVersion and metadata are implied.
func NewDefaultCompiler(root *structuralschema.Structural, resource bool) (*DefaultCompiler, error) {
	declared := model.SchemaDeclType(root, resource)
	if declared == nil {
		return nil, fmt.Errorf("the types of its fields cannot be told from this schema")
	}
	return &DefaultCompiler{declared.MaybeAssignTypeName(objectTypeName), value.NewType(root, resource)}, nil
}

// A DefaultScope compiles the defaults of the fields of one kind of object.
type DefaultScope struct {
	env  *env
	self *value.Type
	of   *DefaultCompiler
}

// Scope is for the fields of objects with the schema self; resource is as for the whole.
func (c *DefaultCompiler) Scope(self *structuralschema.Structural, resource bool) (*DefaultScope, error) {
	declared := model.SchemaDeclType(self, resource)
	if declared == nil {
		return nil, fmt.Errorf("the types of its fields cannot be told from this schema")
	}
	declared = declared.MaybeAssignTypeName(selfTypeName)
	e, err := newEnv([]*apiservercel.DeclType{declared, c.schema},
		celgo.Variable(plan.NameSelf, declared.CelType()), celgo.Variable(plan.NameObject, c.schema.CelType()))
	if err != nil {
		return nil, fmt.Errorf("environment misconfigured: %w", err)
	}
	scope := &DefaultScope{e, value.NewType(self, resource), c}
	e.Seen[value.Self], e.Seen[value.Object] = scope.self, c.object
	return scope, nil
}

// A Default computes the value of a field that is not set. It is immutable and safe for concurrent use.
type Default struct {
	// Reads are the places that the expressions read.
	Reads []Read

	when, value  *Program
	self, object *value.Type
}

// Condition adds the condition under which there is a default.
func (s *DefaultScope) Condition(d *Default, expression string) error {
	ast, err := s.compile(expression, func(t *celgo.Type) error { return checkType(t, []*celgo.Type{celgo.BoolType}) })
	if err != nil {
		return err
	}
	d.Reads = append(d.Reads, readsOf(ast)...)
	d.when, err = s.env.plan(expression, ast, nil)
	return err
}

// Value compiles the expression that gives the value of a field with the schema field, or an optional one.
func (s *DefaultScope) Value(expression string, field *structuralschema.Structural) (*Default, error) {
	ast, err := s.compile(expression, func(t *celgo.Type) error {
		if t = optionalValue(t); !fits(t, field) {
			return fmt.Errorf("must evaluate to %s but got %v", wanted(field), t)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	p, err := s.env.plan(expression, ast, nil)
	if err != nil {
		return nil, err
	}
	return &Default{Reads: readsOf(ast), value: p, self: s.self, object: s.of.object}, nil
}

func (s *DefaultScope) compile(expression string, check func(*celgo.Type) error) (*celast.AST, error) {
	checked, issues := s.env.Compile(expression)
	if issues != nil {
		return nil, s.env.refuse(expression, issues)
	}
	if err := check(checked.OutputType()); err != nil {
		return nil, &CompileError{expression, err.Error()}
	}
	return checked.NativeRep(), nil
}

// Programs are the default's expressions.
func (d *Default) Programs() []*Program {
	if d.when == nil {
		return []*Program{d.value}
	}
	return []*Program{d.when, d.value}
}

// Eval appends the default of a field of the object self, which is in the object whole, to dst as
// JSON; ok is false if there is none. It sets the variables of the frame. The error is an [*Error].
func (d *Default) Eval(f *Frame, self, whole document.Node, dst []byte) (json []byte, ok bool, err error) {
	v := f.Vars()
	v.Set(value.Self, self, d.self)
	v.Set(value.Object, whole, d.object)
	if d.when != nil {
		if ok, err := d.when.EvalBool(f, v); err != nil || !ok {
			return dst, false, err
		}
	}
	return d.value.EvalJSON(f, v, dst)
}

// optionalValue is the type of an optional's value.
func optionalValue(t *celgo.Type) *celgo.Type {
	if t.TypeName() == types.OptionalType.TypeName() && len(t.Parameters()) == 1 {
		return t.Parameters()[0]
	}
	return t
}

// wanted says what type a field's value must have.
func wanted(s *structuralschema.Structural) string {
	switch {
	case s.XIntOrString:
		return "int or string"
	case s.Type == "integer":
		return "int"
	case s.Type == "number":
		return "double or int"
	case s.Type == "boolean":
		return "bool"
	case s.Type == "array":
		return "list of what the items may be"
	case s.Type == "object":
		return "map or object"
	case s.Type == "":
		return "a value that can be written as JSON"
	}
	return s.Type
}

// fits reports whether values of a type can be right for a schema. What is known only when the
// expression is evaluated is left to the check of the object.
func fits(t *celgo.Type, s *structuralschema.Structural) bool {
	switch t.Kind() {
	case types.DynKind, types.AnyKind, types.TypeParamKind:
		return true
	case types.NullTypeKind:
		return s == nil || s.Nullable || s.Type == ""
	case types.OpaqueKind, types.ErrorKind, types.TypeKind, types.UnknownKind, types.UnspecifiedKind:
		return false
	}
	if s == nil || s.Type == "" && !s.XIntOrString {
		return jsonType(t)
	}
	if s.XIntOrString {
		return t.Kind() == types.IntKind || t.Kind() == types.UintKind || t.Kind() == types.StringKind
	}
	switch s.Type {
	case "string":
		return t.Kind() == types.StringKind || t.Kind() == stringKindOf(s)
	case "integer":
		return t.Kind() == types.IntKind || t.Kind() == types.UintKind
	case "number":
		return t.Kind() == types.DoubleKind || t.Kind() == types.IntKind || t.Kind() == types.UintKind
	case "boolean":
		return t.Kind() == types.BoolKind
	case "array":
		return t.Kind() == types.ListKind && fits(t.Parameters()[0], s.Items)
	case "object":
		return t.Kind() == types.StructKind || isStringMap(t) &&
			(s.AdditionalProperties == nil || fits(t.Parameters()[1], s.AdditionalProperties.Structural))
	}
	return false
}

func jsonType(t *celgo.Type) bool {
	switch t.Kind() {
	case types.ListKind:
		return fits(t.Parameters()[0], nil)
	case types.MapKind:
		return isStringMap(t) && fits(t.Parameters()[1], nil)
	}
	return true
}

func isStringMap(t *celgo.Type) bool {
	if t.Kind() != types.MapKind {
		return false
	}
	key := t.Parameters()[0].Kind()
	return key == types.StringKind || key == types.DynKind || key == types.TypeParamKind
}

// stringKindOf is the kind of values that strings of the format are to expressions.
func stringKindOf(s *structuralschema.Structural) types.Kind {
	switch value.StringKind(s) {
	case value.KindDateTime:
		return types.TimestampKind
	case value.KindDuration:
		return types.DurationKind
	case value.KindBytes:
		return types.BytesKind
	}
	return types.StringKind
}
