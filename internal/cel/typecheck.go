package cel

import (
	"fmt"
	"sync"
	"weak"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/admission-gateway/gateway/internal/cel/outcome"
	"github.com/admission-gateway/gateway/internal/cel/plan"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// An ObjectType holds what can be known of the objects of a kind before there are
// any: their fields and types. The types of all fields take more memory than the schema, and only
// checks need them: the collector frees them between checks, and the next check makes them again.
type ObjectType struct {
	name      string
	published func() *spec.Schema
	resource  bool

	mu     sync.Mutex
	fields weak.Pointer[fieldTypes]
	kept   *fieldTypes // the same, if they are kept
}

// fieldTypes are the fields of the objects of a kind, and their types.
type fieldTypes struct {
	decl *apiservercel.DeclType // its parts have no names yet
	open openTypes              // within decl
}

// NewObjectType takes the fields and types from a schema as an API server publishes it, which published returns
// whenever it is called. The name, the kind's, is for messages. resource is set for objects with the envelope of
// Kubernetes. It returns nil if the schema gives no type.
func NewObjectType(name string, published func() *spec.Schema, resource bool) *ObjectType {
	t := &ObjectType{name: name, published: published, resource: resource}
	if t.types() == nil {
		return nil
	}
	return t
}

// Keep keeps the types of the fields in memory, for a kind that is slow to make types of and that many policies match.
func (t *ObjectType) Keep() *ObjectType {
	if t != nil {
		t.kept = t.types()
	}
	return t
}

// types returns the types of the fields; nil if the schema gives none.
func (t *ObjectType) types() *fieldTypes {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.fields.Value(); f != nil {
		return f
	}
	s := t.published()
	if s == nil {
		return nil
	}
	decl := common.SchemaDeclType(declared(s), t.resource)
	if decl == nil {
		return nil
	}
	f := &fieldTypes{typeNamed(decl, s), openTypes{}}
	f.open.add(f.decl, s)
	t.fields = weak.Make(f)
	return f
}

// TypeNameExtension names the type of an object in a schema, so that two fields are known to have
// the same type.
const TypeNameExtension = "x-type-name"

// typeNamed gives the parts of a type the names that their schemas have.
func typeNamed(t *apiservercel.DeclType, s *spec.Schema) *apiservercel.DeclType {
	switch {
	case t == nil || s == nil:
	case t.IsList() && s.Items != nil:
		return apiservercel.NewListType(typeNamed(t.ElemType, s.Items.Schema), t.MaxElements)
	case t.IsMap() && s.AdditionalProperties != nil:
		return apiservercel.NewMapType(t.KeyType, typeNamed(t.ElemType, s.AdditionalProperties.Schema), t.MaxElements)
	case t.IsObject() && t.Fields != nil:
		for name, field := range t.Fields {
			if property := propertyOf(s, name, field); property != nil {
				field.Type = typeNamed(field.Type, property)
			}
		}
		if name, ok := s.Extensions.GetString(TypeNameExtension); ok {
			return t.MaybeAssignTypeName(name)
		}
	}
	return t
}

// propertyOf returns the schema of a field whose type has parts; nil for others.
func propertyOf(s *spec.Schema, name string, f *apiservercel.DeclField) *spec.Schema {
	if t := f.Type; !t.IsList() && !t.IsMap() && !t.IsObject() {
		return nil // most fields: a schema is large to copy
	}
	if plain, isEscaped := apiservercel.Unescape(name); isEscaped {
		name = plain
	}
	property, found := s.Properties[name]
	if !found {
		return nil
	}
	return &property
}

// A TypeChecker checks the expressions of an admission policy against the type of
// the objects that it matches, as kube-apiserver does for the status of a
// ValidatingAdmissionPolicy. What it finds are warnings: a policy runs on the
// object as it is, whatever its schema says. Variables must be added first.
type TypeChecker struct {
	env      *typedEnv
	common   *Common
	position position                           // of the next expression
	fields   map[string]*apiservercel.DeclField // of the variable 'variables'
	failing  map[string]bool                    // the variables that always fail

	last struct { // the expression that was checked last, and what came of it
		of     *Parsed
		ast    *celgo.Ast
		issues *celgo.Issues
	}
}

// A typedEnv is an environment with typed variables, which the checkers of several policies share.
type typedEnv struct {
	*typing
	verdicts  map[verdictKey]*verdict
	variables *apiservercel.DeclType // its fields are those of the policy that is checked
	roots     map[string]*apiservercel.DeclType
	object    *fieldTypes // of the variable object; nil if they are not known
}

// typedKey says what a typedEnv declares.
type typedKey struct {
	object, params                  *ObjectType
	hasParams, mutating, defaulting bool
	states                          string
}

// verdictKey is an expression of a policy, which is checked against a typedEnv.
type verdictKey struct {
	in         position
	expression string
}

// A verdict is what was found out about an expression, as far as somebody has asked.
type verdict struct {
	isChecked, isJudged, isCosted bool

	problem  error // of its types
	declared *apiservercel.DeclType
	fate     outcome.Fate
	why      error
	units    uint64
	hasUnits bool
}

// TypedVariables are the types of a policy's variables.
type TypedVariables struct {
	// Object is the type of object and oldObject; nil means any.
	Object *ObjectType
	// HasParams declares params. Params is their type; nil means any.
	HasParams bool
	Params    *ObjectType
	// States are the names of the collections behind state.
	States []string
	// Mutating declares the types that patches are made of.
	Mutating bool
	// Defaulting declares self, which may be any object.
	Defaulting bool
}

// NewTypeChecker starts to check a policy.
func NewTypeChecker(v TypedVariables) (*TypeChecker, error) { return NewCommon().TypeChecker(v) }

// TypeChecker is NewTypeChecker for one policy of several, which share what they have in common.
func (c *Common) TypeChecker(v TypedVariables) (*TypeChecker, error) {
	key := typedKey{v.Object, v.Params, v.HasParams, v.Mutating, v.Defaulting, joined(v.States)}
	env := c.typed[key]
	if env == nil {
		var err error
		if env, err = newTypedEnv(v); err != nil {
			return nil, fmt.Errorf("environment misconfigured: %w", err)
		}
		if len(c.typed) == keptTyped {
			clear(c.typed)
		}
		c.typed[key] = env
	}
	return &TypeChecker{env: env, common: c, fields: map[string]*apiservercel.DeclField{}, failing: map[string]bool{}},
		nil
}

// newTypedEnv makes an environment whose variable 'variables' has no fields yet.
func newTypedEnv(v TypedVariables) (*typedEnv, error) {
	variables := apiservercel.NewObjectType(variablesTypeName, map[string]*apiservercel.DeclField{})
	c := &typedEnv{verdicts: map[verdictKey]*verdict{}, variables: variables,
		roots: map[string]*apiservercel.DeclType{}}
	if v.Object != nil {
		c.object = v.Object.types()
	}
	declared := []*apiservercel.DeclType{namespaceType(), requestType(), httpType(), variables}
	named := []*decls.VariableDecl{
		decls.NewVariable(plan.NameNamespaceObject, namespaceType().CelType()),
		decls.NewVariable(plan.NameRequest, requestType().CelType()),
		decls.NewVariable(plan.NameHTTP, httpType().CelType()),
		decls.NewVariable(plan.NameVariables, variables.CelType()),
		decls.NewVariable(plan.NameAuthorizer, library.AuthorizerType),
		decls.NewVariable(plan.NameRequestResource, library.ResourceCheckType),
	}
	declare := func(t *ObjectType, suffix string, names ...string) {
		typ := celgo.DynType
		if t != nil {
			decl := t.types().decl.MaybeAssignTypeName(t.name + suffix)
			typ = decl.CelType()
			declared = append(declared, decl)
			for _, name := range names {
				c.roots[name] = decl
			}
		}
		for _, name := range names {
			named = append(named, decls.NewVariable(name, typ))
		}
	}
	declare(v.Object, "", plan.NameObject, plan.NameOldObject)
	if v.HasParams {
		declare(v.Params, "Params", plan.NameParams) // parameters can be of the same kind
	}
	if state := stateType(v.States); state != nil {
		declared = append(declared, state)
		named = append(named, decls.NewVariable(plan.NameState, state.CelType()))
	}
	if v.Defaulting {
		named = append(named, decls.NewVariable(plan.NameSelf, celgo.DynType))
	}
	declTypes := apiservercel.NewDeclTypeProvider(declared...)
	declTypes.SetRecognizeKeywordAsFieldName(true)
	provider, err := declTypes.WithTypeProvider(base().CELTypeProvider())
	if err != nil {
		return nil, err
	}
	if !v.Mutating {
		c.typing, err = newTyping(provider, named)
		return c, err
	}
	made, err := base().Extend(celgo.CustomTypeProvider(provider), common.ResolverEnvOption(value.MadeTypes{}),
		library.JSONPatch())
	if err != nil {
		return nil, err
	}
	c.typing, err = typingOf(made, named...)
	return c, err
}

// Variable adds a variable, whose value can be of any type. The error says what is
// wrong with its types; later expressions may use the variable all the same.
func (c *TypeChecker) Variable(name string, p *Parsed) error {
	v := c.checked(p)
	if v.problem != nil {
		fate, _ := c.Fate(p)
		c.failing[name] = fate == outcome.AlwaysErrs
	}
	c.fields[name] = apiservercel.NewDeclField(name, v.declared, true, nil, nil)
	c.position = c.common.position(positionKey{c.position, name, p.text})
	return v.problem
}

// Check returns what is wrong with the types in an expression; nil for nothing.
func (c *TypeChecker) Check(p *Parsed) error { return c.checked(p).problem }

// verdict returns what is known of an expression in the policy.
func (c *TypeChecker) verdict(p *Parsed) *verdict {
	key := verdictKey{c.position, p.text}
	v := c.env.verdicts[key]
	if v == nil {
		v = &verdict{}
		c.env.verdicts[key] = v
	}
	return v
}

// checked returns the verdict on the types in an expression.
func (c *TypeChecker) checked(p *Parsed) *verdict {
	v := c.verdict(p)
	if !v.isChecked {
		ast, issues := c.check(p)
		v.isChecked, v.problem, v.declared = true, problem(p.text, issues), apiservercel.DynType
		if issues == nil {
			v.declared = declType(ast.OutputType())
		}
	}
	return v
}

// check checks a parsed expression, unless it is the one that was checked last.
func (c *TypeChecker) check(p *Parsed) (ast *celgo.Ast, issues *celgo.Issues) {
	if c.last.of == p {
		return c.last.ast, c.last.issues
	}
	tree, unread := p.tree()
	c.last.of, c.last.ast, c.last.issues = p, nil, unread
	if tree != nil {
		defer func() {
			if r := recover(); r != nil { // see env.Compile
				ast, issues = nil, panicked(r)
				c.last.ast, c.last.issues = ast, issues
			}
		}()
		c.env.variables.Fields = c.fields
		c.last.ast, c.last.issues = c.env.typing.check(tree)
	}
	return c.last.ast, c.last.issues
}

func problem(expression string, issues *celgo.Issues) error {
	if issues == nil {
		return nil
	}
	return &CompileError{expression, issues.String()}
}

// Cost estimates what the expression costs for the largest object that its schema and a request
// allow, in units, by Kubernetes' measure. It is false for an expression of wrong types, and if the
// schema does not say.
func (c *TypeChecker) Cost(p *Parsed) (units uint64, ok bool) {
	v := c.checked(p)
	if v.isCosted || v.problem != nil {
		return v.units, v.hasUnits
	}
	v.isCosted = true
	ast, _ := c.check(p)
	sizes := &sizeEstimator{roots: c.env.roots}
	cost, err := base().EstimateCost(ast, &library.CostEstimator{SizeEstimator: sizes})
	v.units, v.hasUnits = cost.Max, err == nil && !sizes.unknown
	return v.units, v.hasUnits
}

// sizeEstimator estimates how large the parts of an object can be.
type sizeEstimator struct {
	roots   map[string]*apiservercel.DeclType
	unknown bool // something was asked for that no schema bounds
}

// EstimateSize implements checker.CostEstimator.
func (s *sizeEstimator) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	if t := s.find(element.Path()); t != nil {
		return &checker.SizeEstimate{Min: 0, Max: uint64(t.MaxElements)}
	}
	switch element.Type().Kind() {
	case types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind, types.NullTypeKind, types.DurationKind,
		types.TimestampKind:
	default:
		s.unknown = true
	}
	return nil
}

func (s *sizeEstimator) find(path []string) *apiservercel.DeclType {
	if len(path) == 0 {
		return nil
	}
	at := s.roots[path[0]]
	for _, name := range path[1:] {
		if at == nil {
			return nil
		}
		switch name {
		case "@items", "@values":
			at = at.ElemType
		case "@keys":
			at = at.KeyType
		default:
			field, ok := at.Fields[name]
			if !ok {
				return nil
			}
			at = field.Type
		}
	}
	return at
}

// EstimateCallCost implements checker.CostEstimator.
func (s *sizeEstimator) EstimateCallCost(function, overloadID string, target *checker.AstNode,
	args []checker.AstNode) *checker.CallEstimate {
	return nil
}
