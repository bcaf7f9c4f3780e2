package cel

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/admission-gateway/gateway/internal/cel/plan"
)

// Members of the variable request: who asks, and of which kind the objects are.
var (
	userMembers = []string{"userInfo"}
	kindMembers = []string{"kind", "requestKind"}
)

// ReadsUser reports whether the value of the expression may depend on who asks: it reads request.userInfo, asks the
// authorizer, or takes request as a whole.
func (p *Program) ReadsUser() bool { return p.readsUser }

// ReadsKind reports whether the value of the expression may depend on the kind of the request's objects: it reads
// request.kind or request.requestKind, or takes request as a whole.
func (p *Program) ReadsKind() bool { return p.readsKind }

func readsUser(a *celast.AST) bool {
	return usesIn(a)&plan.UsesAuthorizer != 0 || readsMember(a, userMembers)
}

// readsMember reports whether an expression reads one of the members of request. It errs on the side of more: a request
// of which no member is named counts as read with everything in it.
func readsMember(a *celast.AST, members []string) bool {
	others := map[int64]bool{} // mentions of request of which another member is read
	found := false
	celast.PreOrderVisit(a.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		switch e.Kind() {
		case celast.SelectKind:
			if s := e.AsSelect(); !slices.Contains(members, s.FieldName()) {
				others[s.Operand().ID()] = true
			}
		case celast.CallKind:
			if call := e.AsCall(); call.FunctionName() == operators.OptSelect {
				if name, ok := call.Args()[1].AsLiteral().(types.String); ok && !slices.Contains(members, string(name)) {
					others[call.Args()[0].ID()] = true
				}
			}
		case celast.IdentKind:
			if r := a.ReferenceMap()[e.ID()]; r != nil && r.Name == plan.NameRequest && !others[e.ID()] {
				found = true
			}
		}
	}))
	return found
}
