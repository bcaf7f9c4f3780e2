package plan

import (
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
)

// ref makes the steps that find what a reference leads to.
func (s *scope) ref(r ast.Ref, wanted wish) source {
	switch {
	case r[0].Equal(ast.InputRootDocument):
		return s.input(r, wanted)
	case r[0].Equal(ast.DefaultRootDocument):
		return s.data(r, wanted)
	}
	v, _ := r[0].Value.(ast.Var)
	from, ok := s.known[v]
	if !ok {
		s.refuse("%s has no value", r[0])
	}
	return s.down(from, r, 1, wanted, false)
}

// input makes the steps for a reference to the document input.
func (s *scope) input(r ast.Ref, wanted wish) source {
	if len(r) > 1 {
		if name, ok := r[1].Value.(ast.String); ok {
			slot, was := s.refs["input "+string(name)]
			if !was {
				slot = s.slot()
				s.refs["input "+string(name)] = slot
				s.add(&inputMember{name: r[1], into: slot})
			}
			return s.down(inSlot(slot), r, 2, wanted, false)
		}
	}
	if _, was := s.refs["input"]; !was {
		s.refs["input"] = 0
		s.add(&hasInput{})
	}
	return s.down(source{made: allInput{}}, r, 1, wanted, false)
}

// down makes the steps that go on from a value by the parts of a reference from a position on.
func (s *scope) down(from source, r ast.Ref, at int, wanted wish, isData bool) source {
	var open *lookup // takes more keys
	for ; at < len(r); at++ {
		key, ok := s.source(r[at])
		if !ok {
			from, open = s.scan(from, r[at], wanted, at == len(r)-1), nil
			continue
		}
		name := from.name() + "|" + key.name()
		if from.name() == "" || key.name() == "" {
			name = ""
		}
		if slot, was := s.refs[name]; was && name != "" {
			from, open = inSlot(slot), nil
			continue
		}
		if open == nil {
			open = &lookup{from: from, isData: isData}
			s.add(open)
		}
		into := s.slot()
		open.keys, open.into = append(open.keys, key), append(open.into, into)
		if name != "" {
			s.refs[name] = into
		}
		from = inSlot(into)
	}
	return from
}

// scan makes the step that goes through the members of a value, whose keys match a term.
func (s *scope) scan(from source, key *ast.Term, wanted wish, isLast bool) source {
	if mustEvaluate(key) {
		s.refuse("the key %s must be evaluated", key)
	}
	all := &scan{from: from, key: s.slot(), value: s.slot()}
	if isLast && wanted != nil {
		all.wanted, all.wants = wanted()
	}
	s.add(all)
	if name := from.name(); name != "" {
		k := inSlot(all.key)
		s.refs[name+"|"+k.name()] = all.value
	}
	s.match(key, inSlot(all.key))
	return inSlot(all.value)
}

// data makes the steps for a reference to the document data: to a rule, or to what no module
// defines.
func (s *scope) data(r ast.Ref, wanted wish) source {
	node := s.compiler.RuleTree.Child(r[0].Value)
	for at := 1; at < len(r) && node != nil; at++ {
		if !ast.IsScalar(r[at].Value) {
			s.refuse("%s may lead to any rule", r)
			return source{}
		}
		if node = node.Child(r[at].Value); node == nil {
			break
		}
		if node.External != nil {
			s.refuse("%s is external", r)
		}
		if len(node.Values) > 0 {
			return s.rule(r, at, node, wanted)
		}
	}
	if node != nil {
		s.refuse("%s is all rules of a package", r)
		return source{}
	}
	end := 1
	for end < len(r) && ast.IsScalar(r[end].Value) {
		end++
	}
	path, err := storage.NewPathForRef(r[:end])
	if err != nil {
		s.add(&never{})
	}
	s.reads = append(s.reads, reading{r[:end], end < len(r)})
	read := &readData{ref: r[:end], path: path, name: path.String(), into: s.slot()}
	s.add(read)
	return s.down(inSlot(read.into), r, end, wanted, true)
}

// rule makes the steps for a reference to a rule that ends at a position.
func (s *scope) rule(r ast.Ref, at int, node *ast.TreeNode, wanted wish) source {
	of := s.ruleset(r[:at+1], node, whole)
	if of == nil {
		return source{}
	}
	if of.form == aFunction {
		s.refuse("%s is a function", r)
	}
	if !of.form.isPartial() {
		name := r[:at+1].String()
		slot, was := s.refs[name]
		if !was {
			slot = s.slot()
			s.refs[name] = slot
			s.add(&complete{of: of, into: slot})
		}
		return s.down(inSlot(slot), r, at+1, wanted, false)
	}
	if at+1 < len(r) {
		if key, ok := s.source(r[at+1]); ok {
			one := &element{all: of.id, key: key, into: s.slot()}
			one.of = s.ruleset(r[:at+1], node, keyed)
			s.add(one)
			return s.down(inSlot(one.into), r, at+2, wanted, false)
		}
	}
	all := &partial{of: of, into: s.slot()}
	s.add(all)
	return s.down(inSlot(all.into), r, at+1, wanted, false)
}
