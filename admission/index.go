package admission

import (
	"cmp"
	"slices"
)

// anyName is the group or resource that stands for all.
const anyName = "*"

// An index finds the policies that may concern a request. Each policy is in one list for each combination of group and
// resource in its rules; a request looks into four lists at most, and never at a policy of another resource.
type index struct {
	lists map[target][]entry
}

type target struct{ group, resource string }

// entry is a policy of a list. Lists are sorted by position, which is the order of names.
type entry struct {
	position   int
	operations Operation
}

func newIndex[P Policy](policies []P) index {
	x := index{lists: make(map[target][]entry)}
	for position, p := range policies {
		for _, r := range p.Rules() {
			x.add(target{r.Group, r.Resource}, entry{position, r.Operations})
		}
	}
	return x
}

// add merges the entries of one policy.
func (x *index) add(t target, e entry) {
	list := x.lists[t]
	if n := len(list); n > 0 && list[n-1].position == e.position {
		list[n-1].operations |= e.operations
		return
	}
	x.lists[t] = append(list, e)
}

// A search goes through the policies that may concern a request, in order and each once. It allocates nothing.
type search struct {
	lists     [4][]entry
	operation Operation
}

func (x *index) search(group, resource string, operation Operation) search {
	if len(x.lists) == 0 {
		return search{}
	}
	return search{
		lists: [4][]entry{
			x.lists[target{group, resource}],
			x.lists[target{group, anyName}],
			x.lists[target{anyName, resource}],
			x.lists[target{anyName, anyName}],
		},
		operation: operation,
	}
}

// next is the position of the next policy, -1 after the last one.
func (s *search) next() int {
	for {
		first := -1
		var operations Operation
		for _, list := range s.lists {
			if len(list) > 0 && (first < 0 || list[0].position < first) {
				first = list[0].position
			}
		}
		if first < 0 {
			return -1
		}
		for i, list := range s.lists {
			if len(list) > 0 && list[0].position == first {
				operations |= list[0].operations
				s.lists[i] = list[1:]
			}
		}
		if operations&s.operation != 0 {
			return first
		}
	}
}

// byName sorts policies by name; those of one name, which are of different kinds, stay in their order.
func byName[P Policy](policies []P) []P {
	sorted := slices.Clone(policies)
	slices.SortStableFunc(sorted, func(a, b P) int { return cmp.Compare(a.Name(), b.Name()) })
	return sorted
}
