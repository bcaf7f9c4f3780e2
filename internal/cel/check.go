package cel

import (
	"slices"
	"sync"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/types"
)

// baseDeclarations has the variables and functions of the base environment. Environments have it in common: cel-go
// would look at each of the functions again for each of them.
var baseDeclarations = sync.OnceValues(func() (*checker.Env, error) {
	e, err := checker.NewEnv(base().Container, base().CELTypeProvider(), checker.CrossTypeNumericComparisons(true))
	if err == nil {
		err = e.AddIdents(base().Variables()...)
	}
	for _, fn := range base().Functions() {
		if err == nil && !fn.IsDeclarationDisabled() {
			err = e.AddFunctions(fn)
		}
	}
	return e, err
})

// A typing has what expressions may refer to, and finds their types as a celgo.Env does that extends the base
// environment.
type typing struct{ declarations *checker.Env }

// newTyping adds variables and functions to what the base environment has.
func newTyping(provider types.Provider, variables []*decls.VariableDecl,
	functions ...*decls.FunctionDecl) (*typing, error) {
	parent, err := baseDeclarations()
	if err != nil {
		return nil, err
	}
	e, err := checker.NewEnv(base().Container, provider, checker.CrossTypeNumericComparisons(true),
		checker.ValidatedDeclarations(parent))
	if err == nil {
		err = e.AddIdents(variables...)
	}
	if err == nil {
		err = e.AddFunctions(functions...)
	}
	return &typing{e}, err
}

// typingOf returns the typing of an environment that extends the base environment, with further variables.
func typingOf(e *celgo.Env, variables ...*decls.VariableDecl) (*typing, error) {
	var added []*decls.FunctionDecl
	known := base().Functions()
	for name, fn := range e.Functions() {
		if fn != known[name] {
			added = append(added, fn)
		}
	}
	return newTyping(e.CELTypeProvider(), slices.Concat(e.Variables(), variables), added...)
}

// check finds the types in an expression. There is either a tree with types or an issue.
func (t *typing) check(parsed *celgo.Ast) (*celgo.Ast, *celgo.Issues) {
	tree, errs := checker.Check(parsed.NativeRep(), parsed.Source(), t.declarations)
	if len(errs.GetErrors()) == 0 && mayBeInvalid(tree) {
		validate(tree, celgo.NewIssuesWithSourceInfo(errs, tree.SourceInfo()))
	}
	if len(errs.GetErrors()) > 0 {
		return nil, celgo.NewIssuesWithSourceInfo(errs, parsed.NativeRep().SourceInfo())
	}
	return astOf(tree, parsed.Source()), nil
}

// astOf returns a tree as the package cel of cel-go has it.
func astOf(tree *celast.AST, source common.Source) *celgo.Ast {
	a := celgo.ParsedExprToAstWithSource(nil, source)
	*a.NativeRep() = *tree
	return a
}

// validators are the names of those validators of cel-go that look only at what mayBeInvalid finds.
var validators = []string{
	"cel.validator.duration", "cel.validator.timestamp", "cel.validator.matches", "cel.validator.homogeneous_literals",
	"cel.validator.string_format",
}

// knowsValidators reports whether the base environment has no validators but these.
var knowsValidators = sync.OnceValue(func() bool {
	return !slices.ContainsFunc(base().Validators(),
		func(v celgo.ASTValidator) bool { return !slices.Contains(validators, v.Name()) })
})

// mayBeInvalid reports whether a validator of the base environment may find a mistake. The validators go through a tree
// once each, and make nodes of their own. Most expressions need none of them.
func mayBeInvalid(tree *celast.AST) bool {
	if !knowsValidators() {
		return true
	}
	found := false
	celast.PreOrderVisit(tree.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		switch e.Kind() {
		case celast.ListKind:
			found = found || e.AsList().Size() > 1 || len(e.AsList().OptionalIndices()) > 0
		case celast.MapKind:
			found = found || e.AsMap().Size() > 0
		case celast.CallKind:
			switch e.AsCall().FunctionName() {
			case "duration", "timestamp", "matches", "format":
				found = true
			}
		}
	}))
	return found
}

// validate runs the validators of the base environment.
func validate(tree *celast.AST, issues *celgo.Issues) {
	settings := settings{celgo.HomogeneousAggregateLiteralExemptFunctions: []string{}}
	for _, v := range base().Validators() {
		if c, has := v.(celgo.ASTValidatorConfigurer); has {
			_ = c.Configure(settings) // as cel-go does
		}
	}
	for _, v := range base().Validators() {
		v.Validate(base(), settings, tree, issues)
	}
}

// settings are those of validators.
type settings map[string]any

// GetOrDefault implements celgo.ValidatorConfig.
func (s settings) GetOrDefault(name string, otherwise any) any {
	if v, found := s[name]; found {
		return v
	}
	return otherwise
}

// Set implements celgo.MutableValidatorConfig.
func (s settings) Set(name string, v any) error {
	s[name] = v
	return nil
}
