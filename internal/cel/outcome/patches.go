package outcome

import (
	"strings"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
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
				p.Value = valueOf(value)
			}
		}
		all = append(all, p)
	}))
	return all
}

// Applied returns what each Object that an expression makes sets, as patches that add a value to a field. Values that
// are not texts, numbers or booleans, and lists, are left out of it: the field alone is known.
func Applied(expression string) (all []Patch) {
	e, ok := parse(expression)
	if !ok {
		return nil
	}
	celast.PostOrderVisit(e, celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() == celast.StructKind && e.AsStruct().TypeName() == "Object" {
			all = appended(all, e.AsStruct(), "")
		}
	}))
	return all
}

// appended adds what an object sets in the field at a path.
func appended(all []Patch, of celast.StructExpr, path string) []Patch {
	for _, entry := range of.Fields() {
		field := entry.AsStructField()
		at, op := path+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(field.Name()), "add"
		if field.Value().Kind() == celast.StructKind {
			all = appended(all, field.Value().AsStruct(), at)
			continue
		}
		p := Patch{Members: []string{"op", "path", "value"}, Op: &op, Path: &at}
		if field.Value().Kind() == celast.LiteralKind {
			p.Value = valueOf(field.Value().AsLiteral())
		}
		all = append(all, p)
	}
	return all
}

// valueOf returns a literal that JSON has too; nil for others.
func valueOf(value ref.Val) any {
	switch value.Type() {
	case types.BoolType, types.IntType, types.DoubleType, types.StringType:
		return value.Value()
	}
	return nil
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
