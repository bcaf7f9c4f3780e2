package mutation

import "slices"

// A fieldNode is a field in the objects of a scope with what locations say of it.
type fieldNode struct {
	users    map[*Mutator]bool // whose locations lead through it
	final    map[*Mutator]bool // whose locations must end at it
	children map[string]map[kindOfValue]*fieldNode
}

func newFieldNode() *fieldNode {
	return &fieldNode{users: map[*Mutator]bool{}, final: map[*Mutator]bool{},
		children: map[string]map[kindOfValue]*fieldNode{}}
}

// add notes the rest of a mutator's location.
func (p *fieldNode) add(m *Mutator, path []step) {
	p.users[m] = true
	if len(path) == 0 {
		if m.setter.isFinal() {
			p.final[m] = true
		}
		return
	}
	kinds := p.children[path[0].name]
	if kinds == nil {
		kinds = map[kindOfValue]*fieldNode{}
		p.children[path[0].name] = kinds
	}
	kind := m.setter.kind()
	if len(path) > 1 {
		if kind = objectValue; path[1].list {
			kind = listValue
		}
	}
	if kinds[kind] == nil {
		kinds[kind] = newFieldNode()
	}
	kinds[kind].add(m, path[1:])
}

// conflicts adds the mutators to found that contradict each other about something in the place.
func (p *fieldNode) conflicts(found map[*Mutator]bool) {
	for _, kinds := range p.children {
		conflictsOf(kinds, found)
		for _, child := range kinds {
			child.conflicts(found)
		}
	}
}

// conflictsOf compares what is said of one field: it must be of one kind, its items must have one key,
// and nothing may lead through it if a location must end at it.
func conflictsOf(kinds map[kindOfValue]*fieldNode, found map[*Mutator]bool) {
	known := len(kinds)
	if kinds[anyValue] != nil {
		known--
	}
	isFinal, goesOn := false, false
	for kind, child := range kinds {
		isFinal, goesOn = isFinal || len(child.final) > 0, goesOn || len(child.children) > 0
		if kind != anyValue && (known > 1 || kind == listValue && len(child.children) > 1) {
			note(found, child.users)
		}
	}
	if !isFinal || !goesOn {
		return
	}
	for _, child := range kinds {
		note(found, child.final)
		for _, grandchildren := range child.children {
			for _, grandchild := range grandchildren {
				note(found, grandchild.users)
			}
		}
	}
}

func note(found, more map[*Mutator]bool) {
	for m := range more {
		found[m] = true
	}
}

// conflicting returns, for each mutator that contradicts others, all that do so about its kinds.
func conflicting(mutators []*Mutator) map[*Mutator][]*Mutator {
	scopes := map[scope]*fieldNode{}
	for _, m := range mutators {
		for _, s := range m.scopes {
			if scopes[s] == nil {
				scopes[s] = newFieldNode()
			}
			scopes[s].add(m, m.path)
		}
	}
	sets := map[*Mutator]map[*Mutator]bool{}
	for _, p := range scopes {
		found := map[*Mutator]bool{}
		p.conflicts(found)
		for m := range found {
			if sets[m] == nil {
				sets[m] = map[*Mutator]bool{}
			}
			note(sets[m], found)
		}
	}
	others := map[*Mutator][]*Mutator{}
	for m, set := range sets {
		for o := range set {
			if o != m {
				others[m] = append(others[m], o)
			}
		}
		slices.SortFunc(others[m], compare)
	}
	return others
}
