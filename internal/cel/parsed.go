package cel

import (
	"sync"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"

	"github.com/admission-gateway/gateway/internal/cel/plan"
)

// A Parsed is an expression that is parsed once, for all who ask about it before it runs.
type Parsed struct {
	text   string
	common *Common // that has it; nil: it is one's own
	isRead bool
	ast    *celgo.Ast    // nil if it cannot be parsed
	issues *celgo.Issues // nil if it can

	isFailing bool // AlwaysFails was asked for
	failing   error
}

// Parse returns an expression, which is parsed when something is asked about it.
func Parse(expression string) *Parsed { return &Parsed{text: expression} }

// tree parses the expression, once.
func (p *Parsed) tree() (*celgo.Ast, *celgo.Issues) {
	if p.isRead {
		return p.ast, p.issues
	}
	p.isRead = true
	defer func() {
		if r := recover(); r != nil {
			p.ast, p.issues = nil, panicked(r)
		}
	}()
	p.ast, p.issues = parse(p.text)
	if p.common != nil {
		p.common.keep(p)
	}
	return p.ast, p.issues
}

// tracked is the base environment, and keeps the calls of macros: messages repeat expressions.
var tracked = sync.OnceValues(func() (*celgo.Env, error) { return base().Extend(celgo.EnableMacroCallTracking()) })

// parse parses an expression. There is either a tree or an issue.
func parse(expression string) (*celgo.Ast, *celgo.Issues) {
	env, err := tracked()
	if err != nil {
		return nil, celgo.ErrorAsIssues(err)
	}
	parsed, issues := env.Parse(expression)
	if issues.Err() != nil {
		return nil, issues
	}
	return parsed, nil
}

// forget drops the tree, which is made again if it is needed.
func (p *Parsed) forget() { p.isRead, p.ast, p.issues = false, nil, nil }

// readsVariable reports whether the expression surely reads a variable that the request gives.
func readsVariable(tree *celgo.Ast) bool {
	reads, binds := map[string]bool{}, map[string]bool{}
	ast.PreOrderVisit(tree.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			reads[e.AsIdent()] = true
		case ast.ComprehensionKind:
			c := e.AsComprehension()
			binds[c.IterVar()], binds[c.IterVar2()], binds[c.AccuVar()] = true, true, true
		}
	}))
	for name := range reads {
		if _, isGiven := plan.UsesOf[name]; isGiven && !binds[name] {
			return true
		}
	}
	return false
}
