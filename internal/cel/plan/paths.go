package plan

import (
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// paths finds the members of variables that cel-go would follow name by name, such as object.spec.replicas, and plans
// steps that follow them natively.
type paths struct {
	compiler *nativeCompiler
	hidden   []string // local variables
	chains   map[int64]*chain
}

func Paths(e *Language, ast *celast.AST, m *Meter) *paths {
	p := &paths{compiler: &nativeCompiler{env: e, ast: ast, meter: m}, chains: make(map[int64]*chain)}
	p.walk(ast.Expr())
	return p
}

func (p *paths) walk(e celast.Expr) {
	switch e.Kind() {
	case celast.SelectKind:
		if c := p.chain(e); c != nil {
			p.chains[e.ID()] = c
		}
		p.walk(e.AsSelect().Operand())
	case celast.CallKind:
		for _, x := range Operands(e.AsCall()) {
			p.walk(x)
		}
	case celast.ListKind:
		for _, x := range e.AsList().Elements() {
			p.walk(x)
		}
	case celast.MapKind:
		for _, x := range e.AsMap().Entries() {
			p.walk(x.AsMapEntry().Key())
			p.walk(x.AsMapEntry().Value())
		}
	case celast.StructKind:
		for _, x := range e.AsStruct().Fields() {
			p.walk(x.AsStructField().Value())
		}
	case celast.ComprehensionKind:
		c := e.AsComprehension()
		p.walk(c.IterRange())
		p.walk(c.AccuInit())
		outer := len(p.hidden)
		p.hidden = append(p.hidden, c.AccuVar(), c.IterVar(), c.IterVar2())
		p.walk(c.LoopCondition())
		p.walk(c.LoopStep())
		p.walk(c.Result())
		p.hidden = p.hidden[:outer]
	}
}

// chain is the chain that members make, from a variable that holds a node; nil if they do not.
func (p *paths) chain(e celast.Expr) *chain {
	root := e
	for root.Kind() == celast.SelectKind {
		if _, qualified := p.compiler.ast.ReferenceMap()[root.ID()]; qualified {
			return nil
		}
		root = root.AsSelect().Operand()
	}
	if root.Kind() != celast.IdentKind {
		return nil
	}
	for _, name := range p.hidden {
		if name == root.AsIdent() {
			return nil
		}
	}
	c := p.compiler.compile(e).chain
	if p.compiler.refused != "" || c == nil || !c.keyed || !c.direct() && !c.test {
		p.compiler.refused = ""
		return nil
	}
	return c
}

// Decorate plans the native steps. cel-go calls it for every node of a plan, and goes on to add members to attributes.
func (p *paths) Decorate(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if shorter, ok := i.(*pathAttribute); ok {
		i = shorter.InterpretableAttribute
	}
	if attribute, ok := i.(interpreter.InterpretableAttribute); ok {
		if c, ok := p.chains[i.ID()]; ok {
			return &pathAttribute{attribute, c}, nil
		}
	}
	return i, nil
}

// A pathAttribute is an attribute in cel-go's terms that is followed natively.
type pathAttribute struct {
	interpreter.InterpretableAttribute
	chain *chain
}

// Exec implements interpreter.InterpretableV2.
func (a *pathAttribute) Exec(e *interpreter.ExecutionFrame) ref.Val {
	f := frameOf(e)
	return f.Ref(f.Scalar(a.chain.eval(f)))
}

// Eval implements interpreter.Interpretable.
func (a *pathAttribute) Eval(vars interpreter.Activation) ref.Val {
	return a.Exec(interpreter.AsFrame(vars))
}
