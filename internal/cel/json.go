package cel

import (
	"fmt"

	celgo "github.com/google/cel-go/cel"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/admission-gateway/gateway/internal/cel/plan"
	"github.com/admission-gateway/gateway/internal/cel/value"
	"github.com/admission-gateway/gateway/internal/document"
)

// A JSONCompiler compiles expressions that make JSON of one object, which they read as self.
type JSONCompiler struct {
	env  *env
	self *value.Type
}

// NewJSONCompiler is for objects of a schema.
func NewJSONCompiler(of *structuralschema.Structural) (*JSONCompiler, error) {
	declared := model.SchemaDeclType(of, false)
	if declared == nil {
		return nil, fmt.Errorf("the types of its fields cannot be told from this schema")
	}
	declared = declared.MaybeAssignTypeName(selfTypeName)
	e, err := newEnv([]*apiservercel.DeclType{declared}, celgo.Variable(plan.NameSelf, declared.CelType()))
	if err != nil {
		return nil, fmt.Errorf("environment misconfigured: %w", err)
	}
	c := &JSONCompiler{e, value.NewType(of, false)}
	e.Seen[value.Self] = c.self
	return c, nil
}

// A JSONExpression makes JSON of an object. It is immutable and safe for concurrent use.
type JSONExpression struct {
	// Reads are the places that the expression reads.
	Reads []Read

	program *Program
	self    *value.Type
}

// Compile compiles an expression whose value must fit a schema; nil is any value that can be written as JSON.
func (c *JSONCompiler) Compile(expression string, made *structuralschema.Structural) (*JSONExpression, error) {
	if made == nil {
		made = &structuralschema.Structural{}
	}
	checked, issues := c.env.Compile(expression)
	if issues != nil {
		return nil, c.env.refuse(expression, issues)
	}
	if t := checked.OutputType(); !fits(t, made) {
		return nil, &CompileError{expression, fmt.Sprintf("must evaluate to %s but got %v", wanted(made), t)}
	}
	ast := checked.NativeRep()
	p, err := c.env.plan(expression, ast, nil)
	if err != nil {
		return nil, err
	}
	return &JSONExpression{readsOf(ast), p, c.self}, nil
}

// Program is the compiled expression.
func (e *JSONExpression) Program() *Program { return e.program }

// Eval appends what the expression makes of an object to dst as JSON. It sets the variables of the frame. The error is
// an [*Error].
func (e *JSONExpression) Eval(f *Frame, self document.Node, dst []byte) ([]byte, error) {
	v := f.Vars()
	v.Set(value.Self, self, e.self)
	json, _, err := e.program.EvalJSON(f, v, dst)
	return json, err
}
