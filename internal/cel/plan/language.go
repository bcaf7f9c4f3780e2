package plan

import (
	"github.com/google/cel-go/common/containers"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"

	"github.com/admission-gateway/gateway/internal/cel/value"
)

// A Language holds what expressions may name: types, functions and variables.
type Language struct {
	Types     types.Provider
	Adapter   types.Adapter
	Functions interpreter.Dispatcher
	Container *containers.Container
	Seen      [value.Slots]*value.Type // how variables are seen, if that is known; nil as plain JSON
}
