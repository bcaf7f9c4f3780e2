package plan

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// call makes the steps of a call: of one of OPA's functions, or of the modules'.
func (s *scope) call(terms []*ast.Term, at *ast.Location) {
	ref, ok := terms[0].Value.(ast.Ref)
	switch {
	case !ok:
		s.refuse("%s is not a function", terms[0])
	case ref[0].Equal(ast.DefaultRootDocument):
		s.apply(ref, terms[1:])
	default:
		s.builtin(ref.String(), terms[1:], at)
	}
}

// sources returns the sources of operands.
func (s *scope) sources(terms []*ast.Term) []source {
	all := make([]source, len(terms))
	for i, t := range terms {
		from, ok := s.source(t)
		if !ok {
			s.refuse("the operand %s has no value", t)
		}
		all[i] = from
	}
	return all
}

func (s *scope) builtin(name string, operands []*ast.Term, at *ast.Location) {
	decl, f := ast.BuiltinMap[name], topdown.GetBuiltin(name)
	if decl == nil || f == nil {
		s.refuse("there is no function %s", name)
		return
	}
	b := &builtin{f: f, at: at, needs: theTime, use: keep, isMany: decl.Relation}
	if b.isMany && s.isValue {
		// OPA does not look for a second value if the first one is enough for another rule.
		s.refuse("the value of a rule comes from %s, which has many", name)
	}
	switch {
	case decl.CanSkipBctx:
		b.needs = nothing
	case isTimeless(name):
		b.needs = someContext
	}
	arity := decl.Decl.Arity()
	if len(operands) <= arity {
		b.use = check
	}
	if decl.Decl.Result() == nil {
		b.use = ignore
	}
	if b.use != keep {
		b.args = s.sources(operands)
		s.add(b.step(name))
		return
	}
	b.args, b.result = s.sources(operands[:arity]), operands[arity]
	if from, ok := s.source(b.result); ok && from.term == nil {
		b.result = ast.NullTerm() // which no function reads
	}
	b.into = s.slot()
	if name == ast.ObjectGet.Name && getsInput(b.args[0], operands[1]) {
		s.add(&getInput{builtin: *b, name: operands[1]})
	} else {
		s.add(b.step(name))
	}
	s.match(operands[arity], inSlot(b.into))
}

// step returns the step that calls a function: one of its own for what is asked of parts most.
func (b *builtin) step(name string) link {
	switch name {
	case ast.ObjectGet.Name:
		return &getMember{*b}
	case ast.Count.Name:
		return &countOf{*b}
	case ast.Minus.Name:
		return &minus{*b}
	}
	return b
}

// getsInput reports whether object.get of a value by a key finds a member of the document input by a
// known name.
func getsInput(of source, key *ast.Term) bool {
	_, isInput := of.made.(allInput)
	_, isText := key.Value.(ast.String)
	return isInput && isText
}

// isTimeless reports whether a function gives the same value at any time.
func isTimeless(name string) bool {
	for _, prefix := range []string{
		"regex.", "strings.", "array.", "object.", "trim", "json.", "glob.", "units.",
	} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	switch name {
	case ast.Sprintf.Name, ast.Concat.Name, ast.Split.Name, ast.Lower.Name, ast.Upper.Name,
		ast.Replace.Name, ast.Minus.Name, ast.Plus.Name, ast.And.Name, ast.Or.Name,
		ast.ToNumber.Name, ast.FormatInt.Name, ast.Substring.Name, ast.Count.Name:
		return true
	}
	return false
}

// apply makes the steps of a call of a function that modules define.
func (s *scope) apply(ref ast.Ref, operands []*ast.Term) {
	node := s.compiler.RuleTree.Find(ref)
	if node == nil || len(node.Values) == 0 {
		s.refuse("there is no function %s", ref)
		return
	}
	arity := len(node.Values[0].Head.Args)
	call := &apply{into: s.slot(), tests: len(operands) == arity}
	kind := whole
	result, isKnown := source{}, false
	if len(operands) == arity+1 {
		if result, isKnown = s.source(operands[arity]); isKnown {
			kind = keyed
		} else if _, isVar := operands[arity].Value.(ast.Var); !isVar {
			s.refuse("the value of %s is taken apart", ref)
		}
	}
	if call.of = s.ruleset(ref, node, kind); call.of == nil {
		return
	}
	call.args = s.sources(operands[:arity])
	if isKnown {
		call.args = append(call.args, result)
	}
	s.add(call)
	if len(operands) > arity && !isKnown {
		s.match(operands[arity], inSlot(call.into))
	}
}
