package explain

import (
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/cel/plan"
)

// A Compiler compiles the expressions of a policy, and explains its conditions by the expressions
// of its variables.
type Compiler struct {
	*cel.AdmissionCompiler
	known knowledge
}

// NewCompiler explains conditions that the compiler compiles.
func NewCompiler(c *cel.AdmissionCompiler) *Compiler { return &Compiler{AdmissionCompiler: c} }

// variable is a variable as policies share it.
type variable struct {
	program     *cel.Program
	declared    *apiservercel.DeclType
	explanation *Explanation
}

// Variable is [cel.AdmissionCompiler.Variable].
func (c *Compiler) Variable(name, expression string) error {
	isAdded := false
	v, err := cel.Once(c.AdmissionCompiler, "variable", expression, func() (v variable, err error) {
		checked, of, err := c.CheckVariable(expression)
		if v.declared = of; err != nil {
			return v, err
		}
		v.program = checked.Program
		isAdded, v.explanation = true,
			c.known.add(name, &Explanation{program: v.program, field: fieldOf(checked.AST, &c.known)})
		v.explanation.derive(name, checked, &c.known)
		return v, nil
	})
	if err == nil && !isAdded {
		c.known.add(name, v.explanation)
	}
	c.Declare(name, expression, v.program, v.declared)
	return err
}

// condition is a condition as policies share it.
type condition struct {
	program     *cel.Program
	explanation *Explanation
}

// Condition is [cel.AdmissionCompiler.Condition], with what explains why the condition does not hold.
func (c *Compiler) Condition(expression string) (*cel.Program, *Explanation, error) {
	made, err := cel.Once(c.AdmissionCompiler, "condition", expression, func() (made condition, err error) {
		checked, err := c.CheckCondition(expression)
		if err != nil {
			return made, err
		}
		x := &Explanation{program: checked.Program, field: fieldOf(checked.AST, &c.known), source: c.Source(checked)}
		if x.source == nil {
			x.whenTrue = demandsOf(checked, &c.known)
		}
		return condition{checked.Program, x}, nil
	})
	return made.program, made.explanation, err
}

// add adds a variable, or replaces the one of the same name. What is known of all others may come from the variable
// that is replaced.
func (k *knowledge) add(name string, x *Explanation) *Explanation {
	if i, ok := k.places[name]; ok {
		for _, known := range k.all {
			*known = Explanation{program: known.program}
		}
		k.all[i] = &Explanation{program: x.program}
		return k.all[i]
	}
	if k.places == nil {
		k.places = make(map[string]int)
	}
	k.places[name] = len(k.all)
	k.all = append(k.all, x)
	return x
}

// derive finds the expression of a variable.
func (x *Explanation) derive(name string, c *cel.Checked, known *knowledge) {
	d := deriver{reader: reader{ast: c.AST, variables: known}, checked: c}
	root := c.AST.Expr()
	x.operand = d.operand(root)
	if x.operand.kind == operandOther && d.chooses(root) {
		p := operandLocation{base: baseChosen, name: plan.NameVariables + "." + name, chosen: x}
		x.operand = operand{kind: operandPlace, place: p, text: p.text()}
	}
	if isBool(c.AST, root) {
		x.whenTrue, x.whenFalse = d.clause(root, true), d.clause(root, false)
	}
}

func isBool(ast *celast.AST, e celast.Expr) bool { return ast.GetType(e.ID()).Kind() == types.BoolKind }
