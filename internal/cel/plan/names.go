package plan

import (
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// Uses is the set of variables that an expression refers to.
type Uses uint16

// Slots are the variables that hold nodes.
func (u Uses) Slots() []value.Slot {
	var found []value.Slot
	for s := range value.Slots {
		if u&(1<<s) != 0 {
			found = append(found, s)
		}
	}
	return found
}

// slotNames are the names of the variables in slots.
var slotNames = [value.Slots]string{NameSelf, NameOldSelf, NameObject, NameOldObject, NameParams, NameNamespaceObject}

const (
	UsesRequest Uses = 1 << (value.Slots + iota)
	UsesVariables
	UsesAuthorizer
	UsesState
	usesHTTP
)

// names of the variables, as expressions have them.
const (
	NameSelf            = "self"
	NameOldSelf         = "oldSelf"
	NameObject          = "object"
	NameOldObject       = "oldObject"
	NameParams          = "params"
	NameNamespaceObject = "namespaceObject"
	NameRequest         = "request"
	NameVariables       = "variables"
	NameState           = "state"
	NameHTTP            = "http"
	NameAuthorizer      = "authorizer"
	NameRequestResource = "authorizer.requestResource"

	// NameFrame is no identifier: it is how planned steps find the Frame.
	NameFrame = "@frame"
)

var UsesOf = map[string]Uses{
	NameSelf:            1 << value.Self,
	NameOldSelf:         1 << value.OldSelf,
	NameObject:          1 << value.Object,
	NameOldObject:       1 << value.OldObject,
	NameParams:          1 << value.Params,
	NameNamespaceObject: 1 << value.NamespaceObject,
	NameRequest:         UsesRequest,
	NameVariables:       UsesVariables,
	NameState:           UsesState,
	NameHTTP:            usesHTTP,
	NameAuthorizer:      UsesAuthorizer,
	NameRequestResource: UsesAuthorizer,
}
