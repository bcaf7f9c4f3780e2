package plan

import (
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
)

// A lookup goes down a value by known keys. It keeps each value on the way.
type lookup struct {
	seq
	from   source
	keys   []source
	into   []int
	isData bool // the value is of the document data, whose keys are strings
}

func (l *lookup) run(m *machine) bool {
	v := l.from.get(m)
	if !v.IsValid() {
		return true
	}
	for i := range l.keys {
		if l.isData {
			v = Made(memberOfData(v.Whole().Value, l.keys[i].whole(m)))
		} else {
			v = v.Member(l.keys[i].get(m))
		}
		if !v.IsValid() {
			return true
		}
		m.slots[l.into[i]] = v
	}
	return l.next.run(m)
}

// A hasInput goes on if there is a document input.
type hasInput struct{ seq }

func (h *hasInput) run(m *machine) bool {
	has := m.frame.whole != nil
	if !m.frame.isReplaced {
		has = has || m.env.Documents.HasInput()
	}
	return !has || h.next.run(m)
}

// allInput makes the document input, which is seldom read as a whole.
type allInput struct{}

func (allInput) make(m *machine) *ast.Term { return m.input() }

// An inputMember goes on with a member of the document input, if it has one of that name.
type inputMember struct {
	seq
	name *ast.Term
	into int
}

func (i *inputMember) run(m *machine) bool {
	v := m.inputMember(i.name)
	if !v.IsValid() {
		return true
	}
	m.slots[i.into] = v
	return i.next.run(m)
}

// memberOfData is memberOf as a path into the document data has it: of texts.
func memberOfData(of ast.Value, key *ast.Term) *ast.Term {
	switch v := of.(type) {
	case ast.Object:
		if n, ok := key.Value.(ast.Number); ok {
			key = ast.StringTerm(n.String())
		}
		return v.Get(key)
	case *ast.Array:
		if s, ok := key.Value.(ast.String); ok {
			n, err := ast.ParseTerm(string(s))
			if err != nil {
				return nil
			}
			key = n
		}
		return v.Get(key)
	}
	return nil
}

// A readData reads a part of the document data.
type readData struct {
	seq
	ref  ast.Ref
	path storage.Path
	name string
	into int
}

func (r *readData) run(m *machine) bool {
	v := m.read(r.ref, r.path, r.name)
	if v == nil {
		return m.err == nil
	}
	m.slots[r.into] = Made(ast.NewTerm(v))
	return r.next.run(m)
}

// A scan goes through all members of a value, in OPA's order.
type scan struct {
	seq
	from       source
	key, value int
	wants      bool // only the value is of interest that wanted has
	wanted     source
}

func (s *scan) run(m *machine) bool {
	of := s.from.get(m)
	if !of.IsValid() {
		return true
	}
	if s.wants && rank(of) == Set {
		wanted := of.Member(s.wanted.get(m))
		if !wanted.IsValid() {
			return true
		}
		m.slots[s.key], m.slots[s.value] = wanted, wanted
		return s.next.run(m)
	}
	return of.each(m, s)
}

// visit implements visitor.
func (s *scan) visit(m *machine, key, value Value) bool {
	m.slots[s.key], m.slots[s.value] = key, value
	return m.scans() && s.next.run(m)
}
