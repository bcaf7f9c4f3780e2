package cel

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/admission-gateway/gateway/internal/cel/plan"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// userMember is the member of the variable request that has the user.
const userMember = "userInfo"

// kindMembers are the members that have the kind of the request's objects.
var kindMembers = []string{"kind", "requestKind"}

// ReadsUser reports whether the value of the expression may depend on the user: it reads
// request.userInfo, asks the authorizer, or takes request as a whole.
func (p *Program) ReadsUser() bool { return p.readsUser }

// ReadsKind reports whether the value of the expression may depend on the kind of the request's objects: it reads
// request.kind or request.requestKind, or takes request as a whole.
func (p *Program) ReadsKind() bool { return p.readsKind }

// NeedsNoObject reports whether the value of a match condition is certain before an object is read:
// it reads only the URL, the client's identity, and the authorizer.
func (p *Program) NeedsNoObject() bool { return p.needsNoObject }

func readsUser(a *celast.AST) bool {
	members, isWhole := requestMembers(a)
	return usesIn(a)&plan.UsesAuthorizer != 0 || isWhole || slices.Contains(members, userMember)
}

func readsKind(a *celast.AST) bool {
	members, isWhole := requestMembers(a)
	return isWhole || slices.ContainsFunc(members, func(name string) bool { return slices.Contains(kindMembers, name) })
}

// early are the members of request that are known before an object is. The kind is not among them: of resources that no
// policy file describes, objects say it.
var early = []string{"name", "namespace", "operation", "requestResource", "requestSubResource", "resource",
	"subResource", userMember}

func needsNoObject(a *celast.AST) bool {
	// which is null in match conditions
	const allowed = plan.UsesRequest | plan.UsesAuthorizer | 1<<value.NamespaceObject
	members, isWhole := requestMembers(a)
	return usesIn(a)&^allowed == 0 && !isWhole &&
		!slices.ContainsFunc(members, func(name string) bool { return !slices.Contains(early, name) })
}

// requestMembers returns the members of the variable request that an expression reads, and whether it reads it as a
// whole. It errs on the side of more: a request of which no member is named counts as read with everything in it.
func requestMembers(a *celast.AST) (members []string, isWhole bool) {
	if usesIn(a)&plan.UsesRequest == 0 {
		return nil, false
	}
	named := map[int64]string{} // mentions of request, with the member that is read
	celast.PreOrderVisit(a.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		switch e.Kind() {
		case celast.SelectKind:
			s := e.AsSelect()
			named[s.Operand().ID()] = s.FieldName()
		case celast.CallKind:
			if call := e.AsCall(); call.FunctionName() == operators.OptSelect {
				if name, ok := call.Args()[1].AsLiteral().(types.String); ok {
					named[call.Args()[0].ID()] = string(name)
				}
			}
		case celast.IdentKind:
			r := a.ReferenceMap()[e.ID()]
			if r == nil || r.Name != plan.NameRequest {
				return
			}
			if name, ok := named[e.ID()]; ok {
				members = append(members, name)
			} else {
				isWhole = true
			}
		}
	}))
	return members, isWhole
}
