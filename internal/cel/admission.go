package cel

import (
	"fmt"
	"sync"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/traits"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/admission-gateway/gateway/internal/cel/plan"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// requestType and namespaceType are the types of the variables request and namespaceObject.
var (
	requestType   = sync.OnceValue(plugincel.BuildRequestType)
	namespaceType = sync.OnceValue(plugincel.BuildNamespaceType)
)

// An AdmissionCompiler compiles the expressions of one admission policy, in the
// environment that Kubernetes gives them. Variables must be added first.
type AdmissionCompiler struct {
	hasParams bool
	list      Variables
	fields    map[string]*apiservercel.DeclField // of the variable 'variables'
	state     *apiservercel.DeclType             // of the variable 'state'; nil if there is no state
	states    string                             // the names in it

	composed bool // match conditions see the variables

	common   *Common  // has the environments, which are made when an expression needs them
	isShared bool     // other policies have the same Common
	position position // of the next expression; for Once
}

const variablesTypeName = "kubernetes.variables"

// NewAdmissionCompiler starts the compilation of a policy. hasParams declares
// the variable params.
func NewAdmissionCompiler(hasParams bool) *AdmissionCompiler {
	return &AdmissionCompiler{hasParams: hasParams, fields: map[string]*apiservercel.DeclField{}, common: NewCommon()}
}

// Share lets the compiler share what it has in common with the compilers of other policies. The policy may declare no
// variable twice. DeclareState and
// ComposeConditions come before, all else after.
func (c *AdmissionCompiler) Share(common *Common) {
	c.common, c.isShared = common, true
	c.position = common.position(positionKey{0, fmt.Sprintf("params=%v composed=%v", c.hasParams, c.composed),
		c.states})
}

// env returns the environment of the policy, with the variables so far.
func (c *AdmissionCompiler) env(authorizer bool) (*env, error) {
	key := envKey{c.hasParams, authorizer, false, c.states}
	e := c.common.envs[key]
	if e == nil {
		variables := apiservercel.NewObjectType(variablesTypeName, map[string]*apiservercel.DeclField{})
		var err error
		if e, err = newAdmissionEnv(variables, c.state, c.hasParams, authorizer); err != nil {
			return nil, fmt.Errorf("environment misconfigured: %w", err)
		}
		e.variables = variables
		if authorizer { // without it, what names the authorizer is wrong in other words
			e.common = c.common
		}
		c.common.envs[key] = e
	}
	e.variables.Fields = c.fields // which expressions are checked against
	return e, nil
}

// newAdmissionEnv declares the variables of a policy; variables and state may be nil.
func newAdmissionEnv(variables, state *apiservercel.DeclType, params, authorizer bool) (*env, error) {
	declTypes := []*apiservercel.DeclType{namespaceType(), requestType(), httpType()}
	options := []celgo.EnvOption{
		celgo.Variable(plan.NameObject, celgo.DynType),
		celgo.Variable(plan.NameOldObject, celgo.DynType),
		celgo.Variable(plan.NameNamespaceObject, namespaceType().CelType()),
		celgo.Variable(plan.NameRequest, requestType().CelType()),
		celgo.Variable(plan.NameHTTP, httpType().CelType()),
	}
	if variables != nil {
		declTypes = append(declTypes, variables)
		options = append(options, celgo.Variable(plan.NameVariables, variables.CelType()))
	}
	if state != nil {
		declTypes = append(declTypes, state)
		options = append(options, declareState(state))
	}
	if params {
		options = append(options, celgo.Variable(plan.NameParams, celgo.DynType))
	}
	if authorizer {
		options = append(options,
			celgo.Variable(plan.NameAuthorizer, library.AuthorizerType),
			celgo.Variable(plan.NameRequestResource, library.ResourceCheckType))
	}
	e, err := newEnv(declTypes, options...)
	if err == nil {
		e.stateless = state == nil
	}
	return e, err
}

func (c *AdmissionCompiler) compile(expression string, authorizer bool, returns ...*celgo.Type) (*Program, error) {
	e, err := c.env(authorizer)
	if err != nil {
		return nil, err
	}
	return e.compile(expression, &c.list, returns...)
}

// Variable adds a variable, which later expressions read as variables.NAME. An
// expression of any type will do. A variable that does not compile is declared
// all the same, with any type, so that it is reported once.
func (c *AdmissionCompiler) Variable(name, expression string) error {
	checked, of, err := c.CheckVariable(expression)
	if err != nil {
		c.Declare(name, expression, nil, of)
		return err
	}
	c.Declare(name, expression, checked.Program, of)
	return nil
}

// CheckVariable compiles the expression of a variable that is to be declared. It returns the variable's type even if
// the expression does not compile.
func (c *AdmissionCompiler) CheckVariable(expression string) (*Checked, *apiservercel.DeclType, error) {
	e, err := c.env(true)
	if err != nil {
		return nil, apiservercel.DynType, err
	}
	ast, issues := e.Compile(expression)
	if issues != nil {
		return nil, apiservercel.DynType, e.refuse(expression, issues)
	}
	of := declType(ast.OutputType())
	p, err := e.plan(expression, ast.NativeRep(), &c.list)
	if err != nil {
		return nil, of, err
	}
	return &Checked{p, ast.NativeRep(), e, &c.list}, of, nil
}

// Declare declares a variable of a type. The program is nil if its expression does not compile.
func (c *AdmissionCompiler) Declare(name, expression string, p *Program, of *apiservercel.DeclType) {
	if p != nil {
		c.list.add(name, p)
	}
	c.fields[name] = apiservercel.NewDeclField(name, of, true, nil, nil)
	if c.isShared {
		c.position = c.common.position(positionKey{c.position, name, expression})
	}
}

// Variables are those added so far; nil when there are none.
func (c *AdmissionCompiler) Variables() *Variables {
	if len(c.list.names) == 0 {
		return nil
	}
	list := c.list
	return &list
}

// Condition compiles an expression that must be true for a request to pass.
func (c *AdmissionCompiler) Condition(expression string) (*Program, error) {
	checked, err := c.CheckCondition(expression)
	if err != nil {
		return nil, err
	}
	return checked.Program, nil
}

// CheckCondition is Condition for who explains why it does not hold.
func (c *AdmissionCompiler) CheckCondition(expression string) (*Checked, error) {
	e, err := c.env(true)
	if err != nil {
		return nil, err
	}
	return e.condition(expression, &c.list)
}

// Message compiles a messageExpression. It may not refer to the authorizer.
func (c *AdmissionCompiler) Message(expression string) (*Message, error) {
	return Once(c, "message", expression, func() (*Message, error) {
		p, err := c.compile(expression, false, celgo.StringType)
		if err != nil {
			return nil, err
		}
		return &Message{p}, nil
	})
}

// Annotation compiles the valueExpression of an audit annotation: a string or
// null.
func (c *AdmissionCompiler) Annotation(expression string) (*Program, error) {
	return Once(c, "annotation", expression, func() (*Program, error) {
		return c.compile(expression, true, celgo.StringType, celgo.NullType)
	})
}

// matchEnv declares no variables: match conditions have none.
var (
	matchEnv           = sync.OnceValues(func() (*env, error) { return newAdmissionEnv(nil, nil, false, true) })
	matchEnvWithParams = sync.OnceValues(func() (*env, error) { return newAdmissionEnv(nil, nil, true, true) })
)

// ComposeConditions lets match conditions see the variables that were added before, as in
// Gatekeeper's templates.
func (c *AdmissionCompiler) ComposeConditions() { c.composed = true }

// MatchCondition compiles a match condition.
func (c *AdmissionCompiler) MatchCondition(expression string) (*Program, error) {
	return Once(c, "match condition", expression, func() (*Program, error) {
		if c.composed {
			return c.compile(expression, true, celgo.BoolType)
		}
		e, err := c.matchEnv()
		if err != nil {
			return nil, fmt.Errorf("environment misconfigured: %w", err)
		}
		return e.compile(expression, nil, celgo.BoolType)
	})
}

func (c *AdmissionCompiler) matchEnv() (e *env, err error) {
	switch {
	case c.state != nil:
		key := envKey{c.hasParams, true, true, c.states}
		if e = c.common.envs[key]; e == nil {
			if e, err = newAdmissionEnv(nil, c.state, c.hasParams, true); err == nil {
				c.common.envs[key] = e
			}
		}
		return e, err
	case c.hasParams:
		return matchEnvWithParams()
	}
	return matchEnv()
}

// A Message is a compiled messageExpression.
type Message struct{ p *Program }

// Program is the message's expression.
func (m *Message) Program() *Program { return m.p }

// Uses reports whether the message refers to the variable.
func (m *Message) Uses(s value.Slot) bool { return m.p.Uses(s) }

// Eval evaluates the message. It returns "" when the expression gives no usable
// message. The error is an [*Error] of cause OverBudget, OverLimit or Cancelled.
func (m *Message) Eval(f *Frame, v *Vars) (string, error) { return evalMessage(m.p, f, v) }

// declType is the declared type of a variable whose expression has this type.
func declType(t *celgo.Type) *apiservercel.DeclType {
	switch t {
	case celgo.AnyType:
		return apiservercel.AnyType
	case celgo.BoolType:
		return apiservercel.BoolType
	case celgo.BytesType:
		return apiservercel.BytesType
	case celgo.DoubleType:
		return apiservercel.DoubleType
	case celgo.DurationType:
		return apiservercel.DurationType
	case celgo.IntType:
		return apiservercel.IntType
	case celgo.NullType:
		return apiservercel.NullType
	case celgo.StringType:
		return apiservercel.StringType
	case celgo.TimestampType:
		return apiservercel.TimestampType
	case celgo.UintType:
		return apiservercel.UintType
	}
	if t.HasTrait(traits.ContainerType) && t.HasTrait(traits.IndexerType) {
		switch parameters := t.Parameters(); len(parameters) {
		case 1:
			return apiservercel.NewListType(declType(parameters[0]), -1)
		case 2:
			return apiservercel.NewMapType(declType(parameters[0]), declType(parameters[1]), -1)
		}
	}
	return apiservercel.DynType
}

// DeclareState declares the variable state with the collections of these names,
// each a list of objects: state.NAME. Names that are no identifiers are escaped as
// names of fields are. It must be called before anything is compiled.
func (c *AdmissionCompiler) DeclareState(names []string) {
	c.state, c.states = stateType(names), joined(names)
}
