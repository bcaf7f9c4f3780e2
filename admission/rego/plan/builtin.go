package plan

import (
	"errors"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// A builtin calls one of OPA's functions.
type builtin struct {
	seq
	f      topdown.BuiltinFunc
	args   []source
	result *ast.Term // what the value must match; nil if it is not used
	at     *ast.Location
	needs  needs
	use    use
	isMany bool // it has many values
	into   int
}

// needs says what a function sees beside its operands.
type needs int

const (
	nothing needs = iota
	someContext
	theTime
)

// use says what happens to the value of a function.
type use int

const (
	ignore use = iota // there is none
	check             // the body goes on unless it is false
	keep
)

func (b *builtin) run(m *machine) bool {
	before := len(m.stack)
	for i := range b.args {
		m.stack = append(m.stack, b.args[i].whole(m))
	}
	if b.result != nil {
		m.stack = append(m.stack, b.result)
	}
	operands := m.stack[before:]
	var err error
	if b.isMany {
		err = b.many(m, operands)
		m.stack = m.stack[:before]
		return b.succeeds(m, err)
	}
	m.output, m.has = nil, false
	if b.needs == nothing {
		err = b.f(topdown.BuiltinContext{Location: b.at}, operands, m.keep)
	} else {
		if b.needs == theTime {
			m.keepTime()
		}
		m.context.Location = b.at
		err = b.f(m.context, operands, m.keep)
	}
	m.stack = m.stack[:before]
	if !b.succeeds(m, err) {
		return false
	}
	return !m.has || b.goOn(m, Made(m.output))
}

// A getInput is object.get of the document input by a known name, without the document as a whole.
type getInput struct {
	builtin
	name *ast.Term
}

func (g *getInput) run(m *machine) bool {
	if m.frame.isReplaced {
		return g.builtin.run(m)
	}
	value := m.inputMember(g.name)
	if !value.IsValid() {
		value = g.args[2].get(m)
	}
	return g.goOn(m, value)
}

// A getMember is object.get. Parts are read as they are.
type getMember struct{ builtin }

func (g *getMember) run(m *machine) bool {
	of, key := g.args[0].get(m), g.args[1].get(m)
	if of.part == nil || of.part.Kind() != Object || !key.isText() {
		return g.builtin.run(m)
	}
	value := of.part.Get(key.term)
	if !value.IsValid() {
		value = g.args[2].get(m)
	}
	return g.goOn(m, value)
}

// A countOf is count. Parts are counted as they are.
type countOf struct{ builtin }

func (c *countOf) run(m *machine) bool {
	of := c.args[0].get(m)
	if of.part == nil {
		return c.builtin.run(m)
	}
	return c.goOn(m, Made(ast.InternedTerm(of.part.Len())))
}

// errEnough ends a function whose other values are not needed.
var errEnough = errors.New("enough")

// many goes on with each of a function's values.
func (b *builtin) many(m *machine, operands []*ast.Term) error {
	m.context.Location = b.at
	return b.f(m.context, operands, func(t *ast.Term) error {
		if !b.goOn(m, Made(t)) {
			return topdown.Halt{Err: errEnough}
		}
		return nil
	})
}

// succeeds notes an error of a function. It reports whether the evaluation goes on.
func (b *builtin) succeeds(m *machine, err error) bool {
	if err == nil {
		return true
	}
	var halt topdown.Halt
	if errors.As(err, &halt) {
		err = halt.Err
	} else if r := m.env.Relaxed; r != nil && m.err == nil {
		if r.Count++; r.First == nil {
			r.First = err
		}
		return true
	}
	if m.err == nil && err != errEnough {
		m.err = err
	}
	return false
}

func (b *builtin) goOn(m *machine, value Value) bool {
	switch b.use {
	case keep:
		m.slots[b.into] = value
	case check:
		if value.isFalse() {
			return true
		}
	}
	return b.next.run(m)
}
