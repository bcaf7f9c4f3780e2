package builtin

import (
	"context"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"
)

// A LackError ends an evaluation that calls a function which the gateway does not run.
type LackError struct{ Function, Why string }

func (e *LackError) Error() string { return fmt.Sprintf("it calls '%s': %s", e.Function, e.Why) }

// foreign marks the context of an evaluation in which refused functions end with a LackError.
type foreign struct{}

// Foreign returns a context in which a call of a refused function ends the evaluation with a LackError.
func Foreign(ctx context.Context) context.Context { return context.WithValue(ctx, foreign{}, true) }

// lacking lets a refused function end an evaluation of foreign modules.
func lacking(name, why string, f topdown.BuiltinFunc) topdown.BuiltinFunc {
	return func(bctx topdown.BuiltinContext, of []*ast.Term, iter func(*ast.Term) error) error {
		if bctx.Context != nil && bctx.Context.Value(foreign{}) != nil {
			return topdown.Halt{Err: &LackError{name, why}}
		}
		return f(bctx, of, iter)
	}
}

// OfConftest are the functions that conftest adds to OPA's.
func OfConftest() []*ast.Builtin {
	file := types.NewFunction(types.Args(types.S), types.A)
	return []*ast.Builtin{
		{Name: "parse_config", Decl: types.NewFunction(types.Args(types.S, types.S), types.A)},
		{Name: "parse_config_file", Decl: file},
		{Name: "parse_combined_config_files", Decl: types.NewFunction(types.Args(types.NewArray(nil, types.S)),
			types.A)},
	}
}

// Lacking are the functions of conftest's for a query. Each ends the evaluation with a LackError.
func Lacking() map[string]*topdown.Builtin {
	all := map[string]*topdown.Builtin{}
	for _, decl := range OfConftest() {
		all[decl.Name] = &topdown.Builtin{Decl: decl,
			Func: func(topdown.BuiltinContext, []*ast.Term, func(*ast.Term) error) error {
				return topdown.Halt{Err: &LackError{decl.Name,
					"it is a function of conftest's, which the gateway does not have"}}
			}}
	}
	return all
}
