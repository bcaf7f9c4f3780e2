package cel

import (
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/admission-gateway/gateway/internal/cel/plan"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// Vars binds variables to values. It holds no map and is reused: setting a
// variable replaces its value. Every value must stay valid until the evaluation
// is over. A Vars may not be copied once it is in use.
type Vars struct {
	value.Bindings
	request *Request
	limited *Request // of rate limits
	http    HTTP
	named   named
	state   stateVar

	authorizer authorizer.UnconditionalAuthorizer
	tracer     Tracer  // of all evaluations in the frame whose own variables these are; nil if not needed
	loops      []bound // variables of loops around a part of an expression that is evaluated alone
}

// SetRequest binds the variable request of admission policies.
func (v *Vars) SetRequest(r *Request) { v.request = r }

// SetLimited binds the variable request of rate limits.
func (v *Vars) SetLimited(r *Request) { v.limited = r }

// SetHTTP binds the variable http.
func (v *Vars) SetHTTP(h HTTP) { v.http = h }

// Reset unbinds all variables.
func (v *Vars) Reset() { *v = Vars{named: named{values: v.named.values[:0]}} }

// A bound variable is one of a loop around the expression that is evaluated.
type bound struct {
	name  string
	value ref.Val
}

// bound is the value of a loop's variable.
func (v *Vars) bound(name string) (any, bool) {
	for i := len(v.loops) - 1; i >= 0; i-- {
		if v.loops[i].name == name {
			return v.loops[i].value, true
		}
	}
	return nil, false
}

// Loop binds a variable of a loop around a part of an expression that is evaluated
// alone.
func (v *Vars) Loop(name string, of ref.Val) { v.loops = append(v.loops, bound{name, of}) }

// LeaveLoop unbinds the last variables of loops.
func (v *Vars) LeaveLoop(variables int) { v.loops = v.loops[:len(v.loops)-variables] }

// SetAuthorizer binds the variables authorizer and authorizer.requestResource, for the user and the
// resource of the request that SetRequest binds; nil means that there are none. The context that
// the authorizer is given says nothing of the request: it has to know the request's deadline
// itself.
func (v *Vars) SetAuthorizer(a authorizer.UnconditionalAuthorizer) { v.authorizer = a }

// authorizerVal is the value of one of the two variables.
func (v *Vars) authorizerVal(name string) (any, bool) {
	if v.authorizer == nil || v.request == nil {
		return nil, false
	}
	who := userInfo(&v.request.User)
	if name == plan.NameRequestResource {
		return library.NewResourceAuthorizerVal(who, v.authorizer, requestResource{v.request}), true
	}
	return library.NewAuthorizerVal(who, v.authorizer), true
}

// SetStates binds the variable state; nil means that nothing is known.
func (v *Vars) SetStates(s States) { v.state.of = s }
