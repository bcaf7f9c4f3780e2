package cel

import (
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/admission-gateway/gateway/internal/cel/plan"
)

// userMember is the member of the variable request that has the user.
const userMember = "userInfo"

// ReadsUser reports whether the value of the expression may depend on who asks: it reads request.userInfo, asks the
// authorizer, or takes request as a whole.
func (p *Program) ReadsUser() bool { return p.readsUser }

// readsUser errs on the side of more: a request of which no member is named counts as read with everything in it.
func readsUser(a *celast.AST) bool {
	if usesIn(a)&plan.UsesAuthorizer != 0 {
		return true
	}
	others := map[int64]bool{} // mentions of request of which another member is read
	found := false
	celast.PreOrderVisit(a.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		switch e.Kind() {
		case celast.SelectKind:
			if s := e.AsSelect(); s.FieldName() != userMember {
				others[s.Operand().ID()] = true
			}
		case celast.CallKind:
			if call := e.AsCall(); call.FunctionName() == operators.OptSelect {
				if name, ok := call.Args()[1].AsLiteral().(types.String); ok && name != userMember {
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
