package cel

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/admission-gateway/gateway/internal/document"
)

// A Slot is the place of one variable in [Vars].
type Slot uint8

// The variables whose values are nodes of documents.
const (
	Self            Slot = iota // the value a schema's rule is about
	OldSelf                     // its value before the update; invalid: there is none
	Object                      // the object of the request; invalid: null
	OldObject                   // the stored object; invalid: null
	Params                      // the parameter object; invalid: null
	NamespaceObject             // the object's namespace; invalid: null
	slots
)

// Vars binds variables to values. It holds no map and is reused: setting a
// variable replaces its value. Every value must stay valid until the evaluation
// is over. A Vars may not be copied once it is in use.
type Vars struct {
	slots   [slots]slot
	request *Request
	limited *Request // of rate limits
	named   named
	state   stateVar

	authorizer authorizer.UnconditionalAuthorizer
	loops      []bound // variables of loops around a part of an expression that is evaluated alone; see derive_items.go
}

// slot is a variable with room for the lazy value of a container.
type slot struct {
	node   document.Node
	typ    *Type
	object object
	list   list
}

// Set binds a variable to a node, which is seen as typ says; nil means as plain
// JSON.
func (v *Vars) Set(s Slot, n document.Node, typ *Type) {
	v.slots[s].node = n
	v.slots[s].typ = typ
}

// SetRequest binds the variable request of admission policies.
func (v *Vars) SetRequest(r *Request) { v.request = r }

// SetLimited binds the variable request of rate limits.
func (v *Vars) SetLimited(r *Request) { v.limited = r }

// Reset unbinds all variables.
func (v *Vars) Reset() { *v = Vars{named: named{values: v.named.values[:0]}} }

// uses is the set of variables that an expression refers to.
type uses uint16

const (
	usesRequest uses = 1 << (slots + iota)
	usesVariables
	usesAuthorizer
	usesState
)

// slots are the variables that hold nodes.
func (u uses) slots() []Slot {
	var found []Slot
	for s := range slots {
		if u&(1<<s) != 0 {
			found = append(found, s)
		}
	}
	return found
}

// names of the variables, as expressions have them.
const (
	nameSelf            = "self"
	nameOldSelf         = "oldSelf"
	nameObject          = "object"
	nameOldObject       = "oldObject"
	nameParams          = "params"
	nameNamespaceObject = "namespaceObject"
	nameRequest         = "request"
	nameVariables       = "variables"
	nameState           = "state"
	nameAuthorizer      = "authorizer"
	nameRequestResource = "authorizer.requestResource"

	// nameFrame is no identifier: it is how planned steps find the Frame.
	nameFrame = "@frame"
)

var usesOf = map[string]uses{
	nameSelf:            1 << Self,
	nameOldSelf:         1 << OldSelf,
	nameObject:          1 << Object,
	nameOldObject:       1 << OldObject,
	nameParams:          1 << Params,
	nameNamespaceObject: 1 << NamespaceObject,
	nameRequest:         usesRequest,
	nameVariables:       usesVariables,
	nameState:           usesState,
	nameAuthorizer:      usesAuthorizer,
	nameRequestResource: usesAuthorizer,
}

// activation is the Frame as cel-go's interpreter sees it.
type activation struct{ f *Frame }

// Parent implements interpreter.Activation.
func (a activation) Parent() interpreter.Activation { return nil }

// ResolveName implements interpreter.Activation.
func (a activation) ResolveName(name string) (any, bool) {
	f := a.f
	if name == nameFrame {
		return f, true
	}
	v := f.vars
	f.charge(1)
	switch name {
	case nameSelf:
		return v.value(f, Self)
	case nameOldSelf:
		old, ok := v.value(f, OldSelf)
		if !f.program.optionalOld {
			return old, ok
		}
		if !ok {
			return types.OptionalNone, true
		}
		return types.OptionalOf(old.(ref.Val)), true
	case nameObject:
		return v.orNull(f, Object)
	case nameOldObject:
		return v.orNull(f, OldObject)
	case nameParams:
		return v.orNull(f, Params)
	case nameNamespaceObject:
		return v.orNull(f, NamespaceObject)
	case nameRequest:
		request, fields := v.request, requestFields
		if f.program.limited {
			request, fields = v.limited, limitedFields
		}
		if request == nil {
			return nil, false
		}
		return f.newRecord(request, fields), true
	case nameVariables:
		if v.named.list == nil {
			return nil, false
		}
		return &v.named, true
	case nameState:
		v.state.frame = f
		return &v.state, true
	case nameAuthorizer, nameRequestResource:
		return v.authorizerVal(name)
	}
	return v.bound(name)
}

// value is the value of a variable; false when it has none. It uses the slot's own room for a container, so that a
// variable costs no memory however often it is read.
func (v *Vars) value(f *Frame, s Slot) (any, bool) {
	sl := &v.slots[s]
	if !sl.node.Valid() {
		return nil, false
	}
	switch {
	case isObject(sl.node, sl.typ):
		sl.object = object{frame: f, node: sl.node, typ: sl.typ}
		return &sl.object, true
	case isList(sl.node, sl.typ):
		sl.list = list{frame: f, node: sl.node, typ: sl.typ}
		return &sl.list, true
	}
	return f.value(sl.node, sl.typ), true
}

func (v *Vars) orNull(f *Frame, s Slot) (any, bool) {
	if val, ok := v.value(f, s); ok {
		return val, true
	}
	return types.NullValue, true
}

// slotNames are the names of the variables in slots.
var slotNames = [slots]string{nameSelf, nameOldSelf, nameObject, nameOldObject, nameParams, nameNamespaceObject}
