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
	t := l.from.get(m)
	if t == nil {
		return true
	}
	for i := range l.keys {
		if l.isData {
			t = memberOfData(t.Value, l.keys[i].get(m))
		} else {
			t = member(t.Value, l.keys[i].get(m))
		}
		if t == nil {
			return true
		}
		m.slots[l.into[i]] = t
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
	t := m.inputMember(i.name)
	if t == nil {
		return true
	}
	m.slots[i.into] = t
	return i.next.run(m)
}

// member returns a member of a value; nil if there is none.
func member(of ast.Value, key *ast.Term) *ast.Term {
	switch v := of.(type) {
	case ast.Object:
		return v.Get(key)
	case *ast.Array:
		return v.Get(key)
	case ast.Set:
		if v.Contains(key) {
			return key
		}
	}
	return nil
}

// memberOfData is member as a path into the document data has it: of texts.
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
	m.slots[r.into] = ast.NewTerm(v)
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
	t := s.from.get(m)
	if t == nil {
		return true
	}
	switch v := t.Value.(type) {
	case *ast.Array:
		for i := range v.Len() {
			m.slots[s.key], m.slots[s.value] = ast.InternedTerm(i), v.Elem(i)
			if !m.scans() || !s.next.run(m) {
				return false
			}
		}
	case ast.Object:
		return !v.Until(func(key, value *ast.Term) bool {
			m.slots[s.key], m.slots[s.value] = key, value
			return !m.scans() || !s.next.run(m)
		})
	case ast.Set:
		return s.set(m, v)
	}
	return true
}

func (s *scan) set(m *machine, v ast.Set) bool {
	if s.wants {
		wanted := s.wanted.get(m)
		if !v.Contains(wanted) {
			return true
		}
		m.slots[s.key], m.slots[s.value] = wanted, wanted
		return s.next.run(m)
	}
	for _, t := range v.Slice() {
		m.slots[s.key], m.slots[s.value] = t, t
		if !m.scans() || !s.next.run(m) {
			return false
		}
	}
	return true
}
