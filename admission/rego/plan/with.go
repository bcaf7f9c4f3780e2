package plan

import (
	"maps"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// with makes the steps of an expression for which documents are replaced. What was read before is
// read again within, and what is read within counts for it alone.
func (s *scope) with(e *ast.Expr) {
	begin := &enter{}
	for _, w := range e.With {
		target, ok := w.Target.Value.(ast.Ref)
		if !ok {
			s.refuse("there is no step for with %s", w.Target)
			return
		}
		value, ok := s.source(w.Value)
		if !ok {
			s.refuse("the value %s of with must be evaluated", w.Value)
		}
		one := replacement{target: target, value: value}
		switch {
		case target[0].Equal(ast.InputRootDocument):
			begin.input = append(begin.input, one)
		case target[0].Equal(ast.DefaultRootDocument) && !s.mayHaveRules(target):
			begin.data = append(begin.data, one)
			s.targets = append(s.targets, target)
		default:
			s.refuse("there is no step for with %s", target)
			return
		}
	}
	s.copyInput()
	before := s.refs
	s.refs = maps.Clone(before)
	for name := range before {
		if !strings.Contains(name, "|") { // a document, not a part of a value
			delete(s.refs, name)
		}
	}
	s.add(begin)
	s.expr(e.NoWith())
	s.copyInput()
	s.add(&leave{})
	s.refs = before
}

// copyInput makes the step that reads the whole input for each variable whose value it is. It
// must be read at the point at which the variable got it, before with replaces the input or no
// longer does.
func (s *scope) copyInput() {
	for v, from := range s.known {
		if _, isInput := from.made.(allInput); isInput {
			slot := s.slot()
			s.add(&assign{from: from, into: slot})
			s.known[v] = inSlot(slot)
		}
	}
}

// mayHaveRules reports whether modules define something at a path of the document data, or above or
// below it.
func (s *scope) mayHaveRules(path ast.Ref) bool {
	node := s.compiler.RuleTree.Child(path[0].Value)
	for at := 1; at < len(path) && node != nil; at++ {
		if len(node.Values) > 0 {
			return true
		}
		node = node.Child(path[at].Value)
	}
	return node != nil
}

// refuseReads refuses the query if it reads data in another way than OPA does when with replaces a
// part of it: OPA reads each reference as a whole, and finds in sets and by numbers what is replaced.
func (b *builder) refuseReads() {
	for _, target := range b.targets {
		for _, r := range b.reads {
			if r.ref.HasPrefix(target) && r.goesOn || len(r.ref) < len(target) && target.HasPrefix(r.ref) {
				b.refuse("%s is read, of which with replaces a part", r.ref)
			}
		}
	}
}

// A replacement is a part of a document, and what stands for it.
type replacement struct {
	target ast.Ref
	value  source
}

// An enter begins a frame in which documents are replaced.
type enter struct {
	seq
	input, data []replacement
}

func (e *enter) run(m *machine) bool {
	outer := m.frame
	f := m.newFrame()
	f.outer, f.targets = outer, outer.targets
	f.whole, f.isReplaced = outer.whole, outer.isReplaced
	if len(e.input) > 0 {
		f.whole, f.isReplaced = replace(m, m.input(), e.input), true
	}
	f.data = replace(m, outer.data, e.data)
	for i := range e.data {
		f.targets = append(f.targets[:len(f.targets):len(f.targets)], e.data[i].target)
	}
	m.frame = f
	goesOn := e.next.run(m)
	m.frame = outer
	f.clear()
	m.free = append(m.free, f)
	return goesOn
}

func (m *machine) newFrame() *frame {
	if last := len(m.free) - 1; last >= 0 {
		f := m.free[last]
		m.free = m.free[:last]
		return f
	}
	return &frame{docs: make([]document, len(m.root.docs))}
}

// A leave ends a frame: later steps see the documents as they were before the frame.
type leave struct{ seq }

func (l *leave) run(m *machine) bool {
	inner := m.frame
	m.frame = inner.outer
	goesOn := l.next.run(m)
	m.frame = inner
	return goesOn
}

// replace returns a document in which parts are replaced, one after the other.
func replace(m *machine, of *ast.Term, by []replacement) *ast.Term {
	for i := range by {
		of = put(of, by[i].target[1:], by[i].value.whole(m))
	}
	return of
}

// put returns a value with another one at a path. It makes objects on the way, also in the place of
// other values.
func put(of *ast.Term, path ast.Ref, value *ast.Term) *ast.Term {
	if len(path) == 0 {
		return value
	}
	var was ast.Object
	if of != nil {
		was, _ = of.Value.(ast.Object)
	}
	if was == nil {
		return ast.ObjectTerm(ast.Item(path[0], put(nil, path[1:], value)))
	}
	value = put(was.Get(path[0]), path[1:], value)
	pairs := make([][2]*ast.Term, 0, was.Len()+1)
	was.Foreach(func(key, other *ast.Term) {
		if !key.Equal(path[0]) {
			pairs = append(pairs, [2]*ast.Term{key, other})
		}
	})
	return ast.ObjectTerm(append(pairs, [2]*ast.Term{path[0], value})...)
}
