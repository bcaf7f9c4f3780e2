package cel

import (
	"fmt"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/mutation"

	"github.com/admission-gateway/gateway/internal/cel/plan"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// A PatchCompiler compiles the expressions of one mutating admission policy: an
// [AdmissionCompiler], whose variables must be added first, and the types that
// patches are made of.
type PatchCompiler struct {
	AdmissionCompiler
	patches *env
}

// NewPatchCompiler starts the compilation of a policy. hasParams declares the
// variable params.
func NewPatchCompiler(hasParams bool) *PatchCompiler {
	return &PatchCompiler{AdmissionCompiler: *NewAdmissionCompiler(hasParams)}
}

var (
	applyType = celgo.ObjectType(mutation.ObjectTypeName)
	patchType = celgo.ListType(celgo.ObjectType(mutation.JSONPatchTypeName))
)

// ApplyConfiguration compiles an expression whose value is an Object:
// [Program.EvalPatch] writes it as JSON.
func (c *PatchCompiler) ApplyConfiguration(expression string) (*Program, error) {
	return c.patch(expression, applyType)
}

// JSONPatch compiles an expression whose value is a list of JSONPatch:
// [Program.EvalPatch] writes it as a JSON patch.
func (c *PatchCompiler) JSONPatch(expression string) (*Program, error) {
	return c.patch(expression, patchType)
}

func (c *PatchCompiler) patch(expression string, returns *celgo.Type) (*Program, error) {
	e, err := c.env(true)
	if err == nil && c.patches == nil {
		c.patches, err = e.extend(common.ResolverEnvOption(value.MadeTypes{}), library.JSONPatch())
	}
	if err != nil {
		return nil, fmt.Errorf("environment misconfigured: %w", err)
	}
	return c.patches.compile(expression, &c.list, returns)
}

// A DefaultingCompiler compiles the expressions of one defaulting policy: an
// [AdmissionCompiler], and the variable self, the object that the field is in
// which is set.
type DefaultingCompiler struct {
	AdmissionCompiler
	defaults *env
}

// NewDefaultingCompiler starts the compilation of a policy.
func NewDefaultingCompiler() *DefaultingCompiler {
	return &DefaultingCompiler{AdmissionCompiler: *NewAdmissionCompiler(false)}
}

// When compiles an expression that reports whether a default applies.
func (c *DefaultingCompiler) When(expression string) (*Program, error) {
	e, err := c.env()
	if err != nil {
		return nil, err
	}
	return e.compile(expression, &c.list, celgo.BoolType)
}

// Value compiles an expression whose value [Program.EvalJSON] writes as JSON. The
// kind is the value's as far as it is known before it is computed, else
// document.Invalid.
func (c *DefaultingCompiler) Value(expression string) (*Program, document.Kind, error) {
	e, err := c.env()
	if err != nil {
		return nil, document.Invalid, err
	}
	ast, issues := e.Compile(expression)
	if issues != nil {
		return nil, document.Invalid, e.refuse(expression, issues)
	}
	p, err := e.plan(expression, ast.NativeRep(), &c.list)
	return p, jsonKind(ast.OutputType()), err
}

func (c *DefaultingCompiler) env() (*env, error) {
	e, err := c.AdmissionCompiler.env(true)
	if err == nil && c.defaults == nil {
		c.defaults, err = e.extend(celgo.Variable(plan.NameSelf, celgo.DynType))
	}
	if err != nil {
		return nil, fmt.Errorf("environment misconfigured: %w", err)
	}
	return c.defaults, nil
}

// jsonKind is the kind of JSON value that values of a type are written as, Invalid if that depends
// on the value.
func jsonKind(t *celgo.Type) document.Kind {
	if t.Kind() == types.OpaqueKind && t.TypeName() == types.OptionalType.TypeName() && len(t.Parameters()) == 1 {
		return jsonKind(t.Parameters()[0])
	}
	switch t.Kind() {
	case types.BoolKind:
		return document.Bool
	case types.IntKind, types.UintKind, types.DoubleKind:
		return document.Number
	case types.StringKind, types.BytesKind, types.DurationKind, types.TimestampKind:
		return document.String
	case types.ListKind:
		return document.Array
	case types.MapKind, types.StructKind:
		return document.Object
	case types.NullTypeKind:
		return document.Null
	}
	return document.Invalid
}

// extend adds to an environment.
func (e *env) extend(options ...celgo.EnvOption) (*env, error) {
	extended, err := e.Extend(options...)
	if err != nil {
		return nil, err
	}
	parent, err := functions()
	if err != nil {
		return nil, err
	}
	dispatcher := interpreter.ExtendDispatcher(parent)
	for name, fn := range extended.Functions() {
		if base().HasFunction(name) {
			continue
		}
		bindings, err := fn.Bindings()
		if err == nil {
			err = dispatcher.Add(bindings...)
		}
		if err != nil {
			return nil, err
		}
	}
	made, err := assemble(extended, dispatcher)
	if err != nil {
		return nil, err
	}
	made.stateless = e.stateless
	return made, nil
}
