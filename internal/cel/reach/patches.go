package reach

import (
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

// A Patch is an operation of a JSON patch as an expression writes it. What is no literal is nil.
type Patch struct {
	Op, Path, From *string
	// Value is a bool, an int64, a float64 or a string.
	Value any
	// Members are the names of all members.
	Members []string
}

// Patches returns the operations that an expression makes.
func Patches(expression string) (all []Patch) {
	e, ok := parse(expression)
	if !ok {
		return nil
	}
	celast.PostOrderVisit(e, celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.StructKind || e.AsStruct().TypeName() != "JSONPatch" {
			return
		}
		var p Patch
		for _, entry := range e.AsStruct().Fields() {
			field := entry.AsStructField()
			p.Members = append(p.Members, field.Name())
			if field.Value().Kind() != celast.LiteralKind {
				continue
			}
			switch value := field.Value().AsLiteral(); field.Name() {
			case "op":
				p.Op = textOf(value)
			case "path":
				p.Path = textOf(value)
			case "from":
				p.From = textOf(value)
			case "value":
				switch value.Type() {
				case types.BoolType, types.IntType, types.DoubleType, types.StringType:
					p.Value = value.Value()
				}
			}
		}
		all = append(all, p)
	}))
	return all
}

// textOf returns a literal text; nil for other literals.
func textOf(value any) *string {
	s, isText := value.(types.String)
	if !isText {
		return nil
	}
	text := string(s)
	return &text
}
