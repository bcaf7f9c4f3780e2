package explain

import (
	celast "github.com/google/cel-go/common/ast"

	"github.com/admission-gateway/gateway/internal/cel"
)

// A deriver takes the conditions of one checked expression apart.
type deriver struct {
	reader
	checked *cel.Checked
	over    map[int]operandLocation // what they go through
	inert   bool                    // nothing is to be evaluated: only words are asked for
}

// plan compiles a part of the expression to a program; nil if that cannot be done, or need not.
func (d *deriver) plan(e celast.Expr) *cel.Program {
	if d.inert {
		return nil
	}
	return d.checked.Part(e)
}
